//! Questions about a tool call: how feeds ask and answer them, and the answers and denials that
//! follow from the end of a call.

use super::new_tool;
use crate::assemble::part::PartIndex;
use crate::assemble::{Assembler, Head};
use crate::change::{PartPatch, SkipReason, ToolPatch};
use crate::event::CallRef;
use crate::id::digest;
use crate::part::{Answer, Decision, Question, QuestionKind, Tool, ToolState};
use crate::rank::PartField;

impl Assembler {
    pub(in crate::assemble) fn ask(
        &mut self,
        head: &Head,
        call: &CallRef,
        tool: &str,
        question: Question,
        requested: bool,
    ) {
        let at = match self.find_tool(head, call) {
            Some(at) => at,
            // A request about an unknown call opens its part (R-003-11).
            None => {
                let tool = Tool { name: tool.to_owned(), ..new_tool(call) };
                self.open_tool(head, call, tool)
            }
        };
        let part = self.part(at);
        let answered = part.origin.ranks.holder(PartField::Answer).is_some();
        let same_feed = part.origin.ranks.holder(PartField::Question) == Some(head.feed);
        let Some(fold) = &mut part.tool else { return };
        // A new request never replaces an answered question (R-X-09).
        let named = fold.request_id.is_some() && question.request_id.is_some();
        let question_digest = digest(format!("{:?}", question.items).as_bytes());
        let again = if named {
            fold.request_id != question.request_id
        } else {
            fold.question_digest != question_digest
        };
        if answered && same_feed && again {
            return self.count(SkipReason::Contradiction);
        }
        part.origin.awaited_answer |= requested;
        let taken = part.origin.ranks.take(PartField::Question, head.feed, Some(question));
        if let Some(question) = &taken {
            fold.question = Some(question.kind);
            fold.request_id.clone_from(&question.request_id);
            fold.question_digest = question_digest;
        }
        let waits = part.origin.awaited_answer;
        let tool = ToolPatch { question: taken, ..ToolPatch::default() };
        self.emit_part_patch(
            at,
            PartPatch {
                evidence: vec![head.evidence],
                tool: Some(Box::new(tool)),
                ..PartPatch::default()
            },
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
        let answer = part.origin.ranks.take(PartField::Answer, head.feed, Some(answer));
        if let Some(fold) = part.tool.as_mut().filter(|_| answer.is_some()) {
            fold.inferred = None;
        }
        // An overruled feed still counts as evidence.
        let tool = ToolPatch { answer, ..ToolPatch::default() };
        self.emit_part_patch(
            at,
            PartPatch {
                evidence: vec![head.evidence],
                tool: Some(Box::new(tool)),
                ..PartPatch::default()
            },
        );
    }

    /// Recomputes inferred state, independent of the order of events: a rejected call with a
    /// question was denied, a command with an exit code other than 0 has failed (C-25), and a call
    /// that ended has no open question.
    pub(in crate::assemble) fn settle_tool(&mut self, at: PartIndex) {
        let part = self.part(at);
        let answered = part.origin.ranks.holder(PartField::Answer).is_some();
        let reported = part.origin.ranks.holder(PartField::State).is_some();
        let Some(fold) = &mut part.tool else { return };
        let mut tool = ToolPatch::default();
        let refused = part.origin.denied || (part.origin.rejected && part.origin.awaited_answer);
        if refused && reported && fold.state == ToolState::Interrupted {
            fold.state = ToolState::Denied;
            tool.state = Some(ToolState::Denied);
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
        let Some(question) = fold.question else {
            if tool != ToolPatch::default() {
                self.emit_tool_patch(at, tool);
            }
            return;
        };
        let decision = match (fold.state, question) {
            (ToolState::Pending | ToolState::Running, _) => None,
            (ToolState::Completed | ToolState::Failed, QuestionKind::Permission) => {
                Some(Decision::Allowed)
            }
            (
                ToolState::Completed | ToolState::Failed,
                QuestionKind::Choice | QuestionKind::Text,
            ) => Some(Decision::Answered),
            (ToolState::Denied, QuestionKind::Permission) => Some(Decision::Denied),
            (ToolState::Denied, QuestionKind::Choice | QuestionKind::Text) => {
                Some(Decision::Declined)
            }
            (ToolState::Interrupted, _) => Some(Decision::Declined),
        };
        if !answered && decision != fold.inferred {
            fold.inferred = decision;
            tool.answer = decision.map(|decision| Answer {
                decision,
                text: decision.name().to_owned(),
                choices: Vec::new(),
                observed: false,
            });
        }
        if tool != ToolPatch::default() {
            self.emit_tool_patch(at, tool);
        }
    }
}
