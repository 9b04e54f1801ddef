//! Glyphs of check boxes, options, notices and answers, and the text of an answer. Shared by all
//! surfaces.

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
    /// The answer to the question as a whole. `None` if the items have their own answers.
    pub fn overall_answer(&self) -> Option<&Answer> {
        let has_item_answers = self.items.iter().any(|item| item.answer.is_some());
        self.answer.as_ref().filter(|_| !has_item_answers)
    }

    /// Who answered, in words.
    pub fn answered_by(&self) -> Option<&str> {
        self.answer.as_ref()?.answered_by.as_deref()
    }

    /// Where an open question is answered. It is shown here and cannot be answered here.
    pub fn instruction(&self) -> Option<&'static str> {
        self.open.then_some(
            "Answer in the agent's terminal: arrow keys choose, enter confirms, esc declines",
        )
    }
}

impl QuestionItem {
    /// The glyph of an option.
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

    /// True if there was an answer that no source reports.
    pub fn is_inferred(&self) -> bool {
        !self.observed && !self.missing
    }

    /// The decision and an optional remark. If the answer's text contains the decision
    /// (`allowed once`), the text replaces it and there is no remark.
    pub fn decision_text(&self) -> (&str, Option<&str>) {
        let (text, decision) = (self.text.trim(), self.decision.name());
        if self.missing {
            return ("not answered", None);
        }
        if text.split(|c: char| !c.is_alphanumeric()).any(|word| word == decision) {
            return (text, None);
        }
        (decision, Some(text).filter(|text| !text.is_empty()))
    }
}
