//! The signs before boxes, choices, notices and answers, and what is said of an answer: the same on
//! every surface.

use super::{Answer, Check, Decision, Notice, Question, QuestionItem, Tone};

impl Check {
    pub fn glyph(self) -> &'static str {
        match self {
            Check::Open => "☐",
            Check::Running => "◐",
            Check::Done => "☑",
            Check::Cancelled => "☒",
        }
    }
}

impl Notice {
    pub fn glyph(&self) -> &'static str {
        match self.tone {
            Tone::Failed => "✕",
            Tone::Warning | Tone::Interrupted => "!",
            Tone::Background => "⧈",
            Tone::Pending
            | Tone::Running
            | Tone::Ok
            | Tone::Muted
            | Tone::Accent
            | Tone::User
            | Tone::Added
            | Tone::Removed => "·",
        }
    }
}

impl Question {
    /// The answer to the whole, unless answers stand with the questions.
    pub fn untold_answer(&self) -> Option<&Answer> {
        let is_told = self.items.iter().any(|item| item.answer.is_some());
        self.answer.as_ref().filter(|_| !is_told)
    }
}

impl QuestionItem {
    /// The sign before a choice.
    pub fn glyph(&self, chosen: bool) -> &'static str {
        match (self.multi_select, chosen) {
            (false, false) => "○",
            (false, true) => "◉",
            (true, false) => "☐",
            (true, true) => "☑",
        }
    }
}

impl Answer {
    pub fn glyph(&self) -> &'static str {
        match self.decision {
            Decision::Allowed | Decision::Answered => "✓",
            Decision::Denied | Decision::Declined => "✕",
        }
    }

    pub fn tone(&self) -> Tone {
        match self.decision {
            Decision::Allowed | Decision::Answered => Tone::Ok,
            Decision::Denied => Tone::Failed,
            Decision::Declined => Tone::Interrupted,
        }
    }

    /// The decision, in the words that were said where they name it (`allowed once`), and what else
    /// was said.
    pub fn said(&self) -> (&str, Option<&str>) {
        let (text, decision) = (self.text.trim(), self.decision.name());
        if text.split(|c: char| !c.is_alphanumeric()).any(|word| word == decision) {
            return (text, None);
        }
        (decision, Some(text).filter(|text| !text.is_empty()))
    }
}
