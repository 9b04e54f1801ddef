//! Reviews. The reviewer is a thread of its own; its items are also written to the rollout of the
//! thread that requested the review, under the reviewer's turn. They become calls nested in one
//! `review` call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use unspool_model::event::{AgentEnd, AgentRef, CallRef, EventKind, ToolEnd, ToolOutcome};
use unspool_model::json::Json;

use super::super::{Emitter, Fields};
use super::call::emit_call;

/// A review in progress.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Review {
    /// The `review` call, named by the id of the item that started the review.
    pub call: Arc<str>,
    /// The reviewer's turn, whose items appear in this rollout.
    pub turn: Option<String>,
    pub reviewer: Option<String>,
}

impl Review {
    pub fn begin(emit: &mut Emitter<'_>, item: &Fields<'_>) -> Review {
        let call: Arc<str> = item.text("id").unwrap_or_default().into();
        let instructions = item.fields("target").string("instructions");
        let instructions = instructions.or_else(|| item.string("user_facing_hint"));
        let instructions = instructions.or_else(|| item.string("review")).unwrap_or_default();
        let input = Json::parse(&json!({ "instructions": instructions }).to_string());
        emit_call(emit, &call, None, "review", input);
        Review { call, turn: None, reviewer: None }
    }

    /// Links the reviewer's thread, at the first item that names it.
    pub fn set_reviewer(&mut self, emit: &mut Emitter<'_>, thread: &str) {
        if self.reviewer.is_none() {
            self.reviewer = Some(thread.to_owned());
            let agent = AgentRef { call: Some(self.call.clone()), id: Some(thread.into()) };
            let (name, task) = ("reviewer".to_owned(), String::new());
            emit.push(EventKind::AgentStarted { agent, name, task, background: false });
        }
    }

    pub fn end(self, emit: &mut Emitter<'_>, item: &Fields<'_>) {
        if let Some(thread) = self.reviewer {
            let agent = AgentRef { call: None, id: Some(thread.into()) };
            emit.push(EventKind::AgentEnded { agent, end: AgentEnd::Completed });
        }
        let output = item.fields("review_output");
        let output = output.string("overall_explanation").or_else(|| item.string("review"));
        let outcome = ToolOutcome { output, result: Some(item.whole()), ..ToolOutcome::default() };
        let (call, end) = (CallRef::Id(self.call), ToolEnd::Completed);
        emit.push(EventKind::ToolEnded { call, end, outcome });
    }
}
