//! Tool calls. A `tool_call_update` is a patch, and some agents send a call's whole input or output
//! again with each.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::assemble::content_hash;
use unspool_model::event::{EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::id::digest;

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::AcpDecoder;

/// A call of this turn.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    name: String,
    /// A digest of the input that was last reported.
    input: u64,
    /// The length and the digest of the output so far.
    output: (usize, u64),
    pub ended: bool,
    /// A person refused it.
    pub refused: bool,
    /// A sub-agent made it: it is in that agent's session.
    foreign: bool,
}

impl AcpDecoder {
    pub(super) fn call(&mut self, emit: &mut Emitter<'_>, update: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = update.text("toolCallId").unwrap_or_default().into();
        if self.adapter.is_compaction(update) {
            return RecordOutcome::left_out("compaction");
        }
        let parent = self.adapter.parent_call(update);
        let known = self.calls.get(&id);
        if known.is_some_and(|call| call.foreign) || (known.is_none() && parent.is_some()) {
            self.calls.entry(id).or_default().foreign = true;
            return RecordOutcome::left_out("call of a sub-agent");
        }
        self.report_call(emit, &id, update, None);
        self.report_output(emit, &id, update);
        self.report_end(emit, &id, update);
        RecordOutcome::InParts
    }

    /// Reports a call that is new, or whose input has changed.
    pub(super) fn report_call(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        update: &Fields<'_>,
        parent_call_id: Option<String>,
    ) {
        let input = update.json("rawInput").filter(|input| input.text() != "{}");
        let new_input = input.as_ref().map_or(0, |input| digest(input.text().as_bytes()));
        let name = self.adapter.tool_name(id, update);
        let is_new = !self.calls.contains_key(id);
        if is_new {
            self.go_on(emit);
            self.end_block(emit);
        }
        let call = self.calls.entry(id.clone()).or_default();
        call.foreign = false;
        if !call.ended && update.fields("rawInput").has("agent_type") {
            self.agent_calls.insert(id.clone());
        }
        let changed = new_input != 0 && new_input != call.input && !call.ended;
        if !is_new && !changed {
            return;
        }
        if let Some(name) = name {
            call.name = name;
        } else if call.name.is_empty() {
            call.name = update.string("kind").unwrap_or_default();
        }
        call.input = new_input;
        let running = update.is("status", "in_progress");
        let title = update.string("title");
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: self.adapter.call(id),
            parent_call_id,
            name: call.name.clone(),
            content_hash: content_hash(&call.name, input.as_ref()),
            input,
            provider_executed: false,
            title,
            running,
        })));
    }

    fn report_output(&mut self, emit: &mut Emitter<'_>, id: &Arc<str>, update: &Fields<'_>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.ended) else { return };
        if update.is("status", "in_progress") {
            emit.push(EventKind::ToolStarted { call: self.adapter.call(id) });
        }
        let is_end = update.is("status", "completed") || update.is("status", "failed");
        if is_end || !self.adapter.streams_output() || update.is("sessionUpdate", "tool_call") {
            return;
        }
        let text = content_text(update);
        let (length, held) = call.output;
        let extends = text.get(..length).is_some_and(|start| digest(start.as_bytes()) == held);
        // What replaces the output instead of extending it comes with the end.
        if let Some(more) = text.get(length..).filter(|more| extends && !more.is_empty()) {
            let more = more.to_owned();
            call.output = (text.len(), digest(text.as_bytes()));
            emit.push(EventKind::ToolOutputDelta { call: self.adapter.call(id), text: more });
        } else if length == 0 && !text.is_empty() {
            call.output = (text.len(), digest(text.as_bytes()));
            emit.push(EventKind::ToolOutputDelta { call: self.adapter.call(id), text });
        }
    }

    fn report_end(&mut self, emit: &mut Emitter<'_>, id: &Arc<str>, update: &Fields<'_>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.ended) else { return };
        let end = match update.text("status").as_deref() {
            Some("completed") => ToolEnd::Completed,
            // The agent reports a call that a person refused as failed.
            Some("failed") if call.refused => ToolEnd::Rejected,
            Some("failed") => ToolEnd::Failed,
            Some(_) | None => return,
        };
        call.ended = true;
        self.agent_calls.remove(id);
        let outcome = ToolOutcome {
            output: output(update).filter(|text| !text.is_empty()),
            exit_code: exit_code(update),
            ..ToolOutcome::default()
        };
        emit.push(EventKind::ToolEnded { call: self.adapter.call(id), end, outcome });
    }

    /// True while a call that starts a sub-agent is open.
    pub(super) fn runs_agent(&self) -> bool {
        !self.agent_calls.is_empty()
    }
}

/// The texts of a call's content.
fn content_text(update: &Fields<'_>) -> String {
    let texts = update.list("content").filter(|item| item.is("type", "content"));
    texts.filter_map(|item| item.fields("content").string("text")).collect()
}

/// The output of a call that has ended.
fn output(update: &Fields<'_>) -> Option<String> {
    if update.is_text("rawOutput") {
        return update.string("rawOutput");
    }
    let raw = update.fields("rawOutput");
    let names = ["formatted_output", "aggregated_output", "content", "output", "stdout", "message"];
    let from_object =
        names.iter().find_map(|name| raw.string(name).filter(|text| !text.is_empty()));
    let from_list = || {
        let texts: String =
            update.list("rawOutput").filter_map(|item| item.string("text")).collect();
        Some(texts).filter(|text| !text.is_empty())
    };
    from_object.or_else(from_list).or_else(|| Some(content_text(update)))
}

fn exit_code(update: &Fields<'_>) -> Option<i64> {
    let terminal = update.fields("_meta").fields("terminal_exit");
    let code = terminal.raw("exit_code").or_else(|| update.fields("rawOutput").raw("exit_code"));
    code?.parse().ok()
}
