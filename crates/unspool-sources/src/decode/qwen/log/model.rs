//! The model's replies and the results of calls in a session log. Extends `LogDecoder`.

use std::sync::Arc;

use unspool_model::event::{EndReason, EventKind, ProseDetail, ProseKind, ToolEnd};
use unspool_model::part::{Body, Notice};
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::super::{Emitter, Fields, RecordOutcome};
use super::super::tool::{emit_call, emit_result};
use super::super::{prose_name, retry_name};
use super::{LogDecoder, call_session};

/// The text of the notice between a reply that was dropped and the next one.
pub(in crate::decode::qwen) const RETRY_TEXT: &str = "The program asked the model again";

impl LogDecoder {
    pub(super) fn assistant(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let is_agent = fields.flag("isSidechain");
        let step = self.start_step(emit, fields, is_agent);
        let mut made = false;
        let mut calls = 0;
        for part in fields.fields("message").list("parts") {
            if part.has("functionCall") {
                calls += 1;
                made |= self.call(emit, fields, &part.fields("functionCall"));
            } else {
                made |= self.prose(emit, &part);
            }
        }
        let usage = fields.fields("usageMetadata");
        if usage.is_object() && !self.inherited {
            let usage = usage_of(&usage);
            emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
        }
        let whole = usage.is_object() || std::mem::take(&mut self.responded);
        let said = self.prose[1] > 0;
        // Of a sub-agent, the calls of a reply follow in records of their own, and the turn goes on.
        if calls == 0 && (!is_agent || said) {
            // A reply that the user stopped has no counts, and no telemetry before it.
            let whole = whole || is_agent;
            let reason = if whole { EndReason::Completed } else { EndReason::Interrupted };
            emit.push(EventKind::StepEnded { step, stop_reason: None });
            self.end(emit, reason);
        }
        self.responded = false;
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn start_step(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, is_agent: bool) -> Name {
        let uuid = fields.text("uuid").unwrap_or_default();
        let round = fields.number("agentRound").filter(|_| is_agent).map(|round| {
            let run = fields.text("agentRunId").unwrap_or_default();
            Arc::<str>::from(format!("{run}/{round}"))
        });
        let step = Name::Message(round.clone().unwrap_or_else(|| uuid.into()));
        if round.is_some() && round == self.round {
            return step;
        }
        // After a reply that was cut at the limit or had broken arguments the model is asked again,
        // and both replies are written. Calls of the first one never run.
        if !is_agent && std::mem::replace(&mut self.replied, true) {
            self.calls.clear();
            self.note_retry(emit);
        }
        self.round = round;
        self.goes_on = false;
        self.steps = self.steps.saturating_add(1);
        self.prose = [0, 0];
        self.running = true;
        emit.push(EventKind::StepStarted { step: step.clone(), model: fields.string("model") });
        step
    }

    pub(super) fn note_retry(&mut self, emit: &mut Emitter<'_>) {
        let notice = Notice { code: "retry".to_owned(), text: RETRY_TEXT.to_owned() };
        emit.push(EventKind::Part(Some(retry_name(self.retries)), Body::Notice(notice)));
        self.retries += 1;
    }

    fn prose(&mut self, emit: &mut Emitter<'_>, part: &Fields<'_>) -> bool {
        let Some(text) = part.string("text").filter(|text| !text.trim().is_empty()) else {
            return false;
        };
        let (prose_kind, at) =
            if part.flag("thought") { (ProseKind::Reasoning, 0) } else { (ProseKind::Text, 1) };
        let kind = if part.flag("thought") { "reasoning" } else { "text" };
        self.name_by_content(emit, kind, &text);
        let name = prose_name(prose_kind, self.steps, self.prose[at]);
        self.prose[at] += 1;
        let signature = part.string("thoughtSignature").filter(|text| !text.is_empty());
        let detail = ProseDetail { signature, ..ProseDetail::default() };
        emit.push(EventKind::ProseCompleted { prose_kind, block: Some(name), text, detail });
        true
    }

    fn call(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, call: &Fields<'_>) -> bool {
        let Some(id) = call.text("id").map(Arc::<str>::from) else { return false };
        self.name_by_content(emit, "call", &id);
        let tool = emit_call(emit, &call_session(fields), &id, call, "args");
        self.calls.insert(id, tool);
        true
    }

    /// The results of all calls of a reply are written together, when the last one has ended.
    pub(super) fn tool_result(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        self.replied = false;
        let result = fields.fields("toolCallResult");
        let mut made = false;
        for part in fields.fields("message").list("parts") {
            let response = part.fields("functionResponse");
            let id = response.text("id").or_else(|| result.text("callId"));
            let tool = id.and_then(|id| self.calls.remove(&*id));
            let tool = tool.or_else(|| response.string("name")).unwrap_or_default();
            let end = emit_result(emit, &tool, &response, &result);
            made |= end.is_some();
            self.goes_on |= !result.is("status", "cancelled");
            if end == Some(ToolEnd::Interrupted) {
                self.end(emit, EndReason::Interrupted);
            } else if end == Some(ToolEnd::Denied) && !self.goes_on && self.calls.is_empty() {
                // The user refused all calls of the reply: the model is not asked again.
                self.end(emit, EndReason::Completed);
            }
        }
        if made { RecordOutcome::InParts } else { self.data(emit, "tool_result", fields) }
    }
}

/// `promptTokenCount` includes cached tokens, `candidatesTokenCount` includes thoughts.
fn usage_of(counts: &Fields<'_>) -> Usage {
    let count = |name: &str| counts.number(name).unwrap_or(0);
    let cache_read = count("cachedContentTokenCount");
    Usage {
        input: count("promptTokenCount").saturating_sub(cache_read),
        output: count("candidatesTokenCount"),
        cache_read,
        reasoning: count("thoughtsTokenCount"),
        ..Usage::default()
    }
}
