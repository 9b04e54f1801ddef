//! Tool calls as they start and end. They start in the order of the message and end in any order.
//! Extends `EventsDecoder`.

use std::sync::Arc;

use unspool_model::event::{AgentRef, CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome};

use super::super::{Emitter, Fields, RecordOutcome};
use super::events::EventsDecoder;

impl EventsDecoder {
    /// Emits the agent or question that a call of certain tools starts.
    pub(super) fn called(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        tool: &str,
        input: &Fields<'_>,
    ) {
        if tool == "task" {
            emit.push(EventKind::AgentStarted {
                agent: AgentRef { call: Some(id.clone()), id: None },
                name: input.string("agent_type").unwrap_or_else(|| "agent".to_owned()),
                task: input.string("description").unwrap_or_default(),
                background: input.asks_for_background(),
            });
        }
        if let Some(question) = super::questions::question_of_call(tool, input) {
            let (call, tool, requested) = (CallRef::Id(id.clone()), tool.to_owned(), false);
            emit.push(EventKind::QuestionAsked {
                call,
                tool,
                question,
                requested,
                inferred: false,
            });
        }
    }

    pub(super) fn tool_starts(
        &mut self,
        emit: &mut Emitter<'_>,
        data: &Fields<'_>,
    ) -> RecordOutcome {
        let Some(id) = data.text("toolCallId").map(Arc::<str>::from) else {
            return RecordOutcome::left_out("tool.execution_start of no call");
        };
        if self.calls.contains_key(&id) {
            emit.push(EventKind::ToolStarted { call: CallRef::Id(id) });
            return RecordOutcome::InParts;
        }
        // A call that is in no message.
        let name = data.string("toolName").unwrap_or_default();
        self.calls.insert(id.clone(), name.clone());
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(id.clone()),
            parent_call_id: None,
            name: name.clone(),
            input: data.json("arguments"),
            content_hash: data.content_hash(&name, "arguments"),
            provider_executed: false,
            title: data.string("toolTitle"),
            running: true,
        })));
        self.called(emit, &id, &name, &data.fields("arguments"));
        RecordOutcome::InParts
    }

    pub(super) fn tool_ends(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) -> RecordOutcome {
        let Some(id) = data.text("toolCallId").map(Arc::<str>::from) else {
            return RecordOutcome::left_out("tool.execution_complete of no call");
        };
        // Events of the sub-agent may still refer to its call.
        let tool = match self.calls.get(&id) {
            Some(tool) if tool == "task" => tool.clone(),
            Some(_) | None => self.calls.remove(&id).unwrap_or_default(),
        };
        self.live.printed.remove(&id);
        let (result, error) = (data.fields("result"), data.fields("error"));
        // A command with a non-zero exit code is still a `success`.
        let end = match (data.flag("success"), error.text("code").as_deref()) {
            (true, _) => ToolEnd::Completed,
            (false, Some("denied" | "rejected")) => ToolEnd::Denied,
            (false, _) => ToolEnd::Failed,
        };
        if let Some(answer) = super::questions::answer_of_call(&tool, end, data) {
            emit.push(EventKind::QuestionAnswered { call: CallRef::Id(id.clone()), answer });
        }
        let output = result.string("content").or_else(|| error.string("message"));
        let exit_code = data.fields("shellExecution").read("exitCode");
        // `content` is the output sent to the model; the rest is for display.
        let shown = result.has("detailedContent") || result.has("contents");
        let kept = data.json("result").filter(|_| shown);
        let outcome = ToolOutcome { output, result: kept, exit_code, duration_ms: None };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
        RecordOutcome::InParts
    }
}
