//! Questions about a tool call: how feeds ask and answer them, and the answers and denials that
//! follow from the end of a call.
//!
//! A call may be asked about again after an answer: Codex asks for a command in its sandbox, and
//! once more for the same command outside of it. Each feed has its own account of that
//! (`FeedQuestions`). The questions shown are those of the strongest feed that asked. So the result
//! does not depend on the order of feeds, and two feeds with the same question never make two. A feed
//! that has only the answer (`inferred`) asks in the decoder's words, which are shown if no feed has
//! the question itself.

use super::new_tool;
use crate::assemble::part::PartIndex;
use crate::assemble::{Assembler, Head};
use crate::change::{PartPatch, SkipReason, ToolPatch};
use crate::event::CallRef;
use crate::part::{Answer, Decision, EarlierQuestion, Question, QuestionKind, Tool, ToolState};
use crate::provenance::{AskOutcome, Origin};
use crate::rank::PartField;

impl Assembler {
    pub(in crate::assemble) fn ask(
        &mut self,
        head: &Head,
        call: &CallRef,
        tool: &str,
        question: Question,
        requested: bool,
        inferred: bool,
    ) {
        let at = match self.find_tool(head, call) {
            // Some feeds ask before they report the call: the question is their place for it,
            // whether or not another feed has reported it.
            Some(found) => {
                let turn = self.turn_for(head);
                self.arrive(head, turn, found)
            }
            // A request about an unknown call opens its part (R-003-11).
            None => {
                let tool = Tool { name: tool.to_owned(), ..new_tool(call) };
                self.open_tool(head, call, tool)
            }
        };
        let part = self.part(at);
        let Some(fold) = &mut part.tool else { return };
        let told = part.origin.questions_of(head.feed);
        let outcome = told.ask(&question, head.evidence.source, inferred);
        if outcome == AskOutcome::Contradiction {
            return self.count(SkipReason::Contradiction);
        }
        let answer = told.answers.get(told.asked.len().saturating_sub(2)).cloned();
        part.origin.awaited_answer |= requested;
        let before = part.origin.ranks.holder(PartField::Question);
        let mut tool = ToolPatch::default();
        if part.origin.asking_feed() == Some(head.feed) {
            part.origin.ranks.set(PartField::Question, head.feed);
            if before != Some(head.feed) {
                // The account of a feed replaces the whole account of the one before.
                tool.earlier = (!fold.earlier.is_empty()).then(Vec::new);
                tool.question = Some(question);
            } else {
                match outcome {
                    AskOutcome::Newest => tool.question = Some(question),
                    AskOutcome::Again => {
                        let mut earlier = fold.earlier.clone();
                        let pair = fold.question.clone().zip(answer);
                        earlier.extend(
                            pair.map(|(question, answer)| EarlierQuestion { question, answer }),
                        );
                        tool.earlier = Some(earlier);
                        tool.question = Some(question);
                    }
                    AskOutcome::Earlier | AskOutcome::Contradiction => {}
                }
            }
        }
        let waits = part.origin.awaited_answer;
        self.emit_questions(
            at,
            PartPatch { evidence: vec![head.evidence], ..PartPatch::default() },
            tool,
        );
        if waits {
            self.settle_hidden(at);
        }
        self.settle_tool(at);
    }

    pub(in crate::assemble) fn answer(&mut self, head: &Head, call: &CallRef, answer: Answer) {
        let at = match self.find_tool(head, call) {
            Some(at) => at,
            None => self.open_tool(head, call, new_tool(call)),
        };
        let part = self.part(at);
        let Some(fold) = &mut part.tool else { return };
        let told = part.origin.questions_of(head.feed);
        let nth = told.answer(answer.clone());
        part.origin.ranks.claim(PartField::Answer, head.feed);
        let mut tool = ToolPatch::default();
        // A source that is read again repeats the answer to an earlier question.
        if part.origin.ranks.holder(PartField::Question) == Some(head.feed)
            && fold.earlier.get(nth).is_some_and(|earlier| earlier.answer != answer)
        {
            let mut earlier = fold.earlier.clone();
            if let Some(earlier) = earlier.get_mut(nth) {
                earlier.answer = answer;
            }
            tool.earlier = Some(earlier);
        }
        // An overruled feed still counts as evidence.
        let patch = PartPatch { evidence: vec![head.evidence], ..PartPatch::default() };
        self.emit_questions(at, patch, tool);
        self.settle_tool(at);
    }

    /// Emits new questions of a call together with the answer to the newest one, which the accounts
    /// of all feeds decide.
    fn emit_questions(&mut self, at: PartIndex, mut patch: PartPatch, mut tool: ToolPatch) {
        let part = self.part(at);
        let answer = shown_answer(&part.origin);
        let Some(fold) = &mut part.tool else { return };
        if let Some(question) = &tool.question {
            fold.question = Some(question.clone());
        }
        if let Some(earlier) = &tool.earlier {
            fold.earlier.clone_from(earlier);
        }
        if fold.answer.is_some() && answer.is_none() {
            // Only a patch with earlier questions takes an answer back.
            tool.earlier.get_or_insert_with(|| fold.earlier.clone());
        }
        if tool.earlier.is_some() || answer != fold.answer {
            fold.inferred = None;
            fold.answer.clone_from(&answer);
            tool.answer = answer;
        }
        patch.tool = Some(Box::new(tool));
        self.emit_part_patch(at, patch);
    }

    /// Decides again which answer is shown, after another part of the same call was merged in.
    pub(in crate::assemble) fn settle_answer(&mut self, at: PartIndex) {
        let part = self.part(at);
        let answer = shown_answer(&part.origin);
        if part.tool.as_ref().is_some_and(|fold| fold.answer != answer) {
            self.emit_questions(at, PartPatch::default(), ToolPatch::default());
        }
    }

    /// Recomputes inferred state, independent of the order of events: a rejected call with a
    /// question was denied, a command with an exit code other than 0 has failed (C-25), and a call
    /// that ended has no open question.
    pub(in crate::assemble) fn settle_tool(&mut self, at: PartIndex) {
        let part = self.part(at);
        let reported = part.origin.ranks.holder(PartField::State).is_some();
        let Some(fold) = &mut part.tool else { return };
        let mut tool = ToolPatch::default();
        let refused = part.origin.denied || (part.origin.rejected && part.origin.awaited_answer);
        if refused && reported && fold.state == ToolState::Interrupted {
            fold.state = ToolState::Denied;
            tool.state = Some(ToolState::Denied);
            // An exit code may have had a say before the call was refused.
            if fold.reported_state.is_some() {
                fold.reported_state = Some(ToolState::Denied);
                tool.reported_state = Some(ToolState::Denied);
            }
        }
        let denied = fold.state == ToolState::Denied;
        let reported = fold.reported_state.filter(|_| !denied).unwrap_or(fold.state);
        let failed = fold.exit_code.is_some_and(|code| code != 0);
        let state =
            if failed && reported == ToolState::Completed { ToolState::Failed } else { reported };
        if state != fold.state {
            (fold.state, fold.reported_state) = (state, Some(reported));
            (tool.state, tool.reported_state) = (Some(state), Some(reported));
        }
        let kind = fold.question.as_ref().map(|question| question.kind);
        let decision = kind.and_then(|kind| inferred_decision(fold.state, kind));
        if kind.is_some() && fold.answer.is_none() && decision != fold.inferred {
            fold.inferred = decision;
            if decision.is_none() {
                // The call goes on: only a patch with earlier questions takes an answer back.
                tool.earlier = Some(fold.earlier.clone());
            }
            tool.answer = decision.map(|decision| Answer {
                decision,
                text: decision.name().to_owned(),
                choices: Vec::new(),
                observed: false,
                by: None,
            });
        }
        if tool != ToolPatch::default() {
            self.emit_tool_patch(at, tool);
        }
    }
}

/// What the end of a call says about a question that nobody answered.
fn inferred_decision(state: ToolState, question: QuestionKind) -> Option<Decision> {
    match (state, question) {
        (ToolState::Pending | ToolState::Running, _) => None,
        (ToolState::Completed | ToolState::Failed, QuestionKind::Permission) => {
            Some(Decision::Allowed)
        }
        (ToolState::Completed | ToolState::Failed, QuestionKind::Choice | QuestionKind::Text) => {
            Some(Decision::Answered)
        }
        (ToolState::Denied, QuestionKind::Permission) => Some(Decision::Denied),
        (ToolState::Denied, QuestionKind::Choice | QuestionKind::Text) => Some(Decision::Declined),
        (ToolState::Interrupted, _) => Some(Decision::Declined),
    }
}

/// The reported answer to the newest question: of the strongest feed that has one. Feeds count their
/// questions alike, so a weaker feed answers the question of the same number. A stronger feed that
/// never asked reports how it ended: the log has only the last word. If that agrees with what the
/// asking feed has, its words are shown.
/// Who answered is what any feed says of it: agents do not know which surface a person used.
pub(in crate::assemble) fn shown_answer(origin: &Origin) -> Option<Answer> {
    let holder = origin.ranks.holder(PartField::Question);
    let asking = origin.questions.iter().find(|told| Some(told.feed) == holder);
    let newest = asking.map_or(0, |told| told.asked.len().saturating_sub(1));
    let own = asking.and_then(|told| told.answers.get(newest));
    let own = own.filter(|answer| !answer.text.is_empty());
    let shown = origin.questions.iter().rev().find_map(|told| match holder {
        Some(holder) if told.feed <= holder => told.answers.get(newest),
        Some(_) if told.inferred => {
            let last = told.answers.last()?;
            Some(own.filter(|own| own.decision == last.decision).unwrap_or(last))
        }
        Some(_) | None => told.answers.last(),
    });
    let mut shown = shown?.clone();
    let agrees = |answer: &&Answer| answer.decision == shown.decision && answer.by.is_some();
    let others = origin.questions.iter().rev().filter_map(|told| told.answers.get(newest));
    let by = others.filter(agrees).find_map(|answer| answer.by.clone());
    shown.by = shown.by.or(by);
    Some(shown)
}
