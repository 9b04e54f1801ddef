//! The model's replies. One message is one model call, with its blocks in the model's order.
//! Extends `Conversation`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EndReason, EventKind, ProseDetail, ProseKind, ToolCall};
use unspool_model::part::{Body, Data, Failure, Notice};
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields, RecordOutcome};
use super::conversation::Conversation;

impl Conversation {
    pub(super) fn assistant(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        key: &Arc<str>,
    ) -> RecordOutcome {
        let stop = message.text("stopReason").unwrap_or_default();
        self.report_retry(emit, None);
        self.result_at = None;
        let step = Name::Message(key.clone());
        let used = usage(&message.fields("usage"));
        let mut made = false;
        // A request that was stopped or refused at once leaves an empty message.
        if message.list("content").next().is_some() || used != Usage::default() {
            self.start_reply(emit, message, key);
            for (nth, block) in message.list("content").enumerate() {
                let nth = u32::try_from(nth).unwrap_or(u32::MAX);
                let name = Name::Block(key.clone(), nth);
                made |= self.block(emit, message, &block, name);
            }
            if !self.inherited {
                emit.push(EventKind::UsageUpdated { step: step.clone(), usage: used });
                self.report_cost(emit, message, used);
            }
            let stop_reason = Some(stop.to_string()).filter(|stop| !stop.is_empty());
            emit.push(EventKind::StepEnded { step, stop_reason });
        }
        let failed = stop == "error";
        if failed {
            let text = message.string("errorMessage").unwrap_or_default();
            let name = Name::Record(format!("{key}/error").into());
            let failure = Failure { text, ..Failure::default() };
            emit.push(EventKind::Part(Some(name), Body::Error(failure)));
            self.failed = Some(key.clone());
            made = true;
        }
        let end = match &*stop {
            "stop" | "length" => Some(EndReason::Completed),
            "aborted" => Some(EndReason::Interrupted),
            "error" => Some(EndReason::Failed(None)),
            // `toolUse`: the results follow.
            _ => None,
        };
        self.running = end.is_none();
        if let Some(end) = end {
            emit.push(EventKind::TurnEnded(end));
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    /// A reply begins, or is there as a whole.
    pub(super) fn start_reply(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        key: &Arc<str>,
    ) {
        let model = message.string("model");
        emit.push(EventKind::StepStarted { step: Name::Message(key.clone()), model });
    }

    /// After a failed reply Pi asks again.
    pub(super) fn report_retry(&mut self, emit: &mut Emitter<'_>, why: Option<String>) {
        let Some(failed) = self.failed.take() else { return };
        let name = Name::Record(format!("{failed}/retry").into());
        let text = why.unwrap_or_else(|| "The request was sent again".to_owned());
        let notice = Notice { code: "retry".to_owned(), text };
        emit.push(EventKind::Part(Some(name), Body::Notice(notice)));
    }

    fn block(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        block: &Fields<'_>,
        name: Name,
    ) -> bool {
        let block_name = Some(name.clone());
        match block.text("type").as_deref() {
            Some("text") => {
                let text = block.string("text").unwrap_or_default();
                let made = !text.trim().is_empty();
                let (prose_kind, detail) = (ProseKind::Text, ProseDetail::default());
                emit.push(EventKind::ProseCompleted {
                    prose_kind,
                    block: block_name,
                    text,
                    detail,
                });
                made
            }
            Some("thinking") => {
                let redacted = block.flag("redacted");
                // The text of a redacted block is a placeholder of Pi.
                let text = block.string("thinking").filter(|_| !redacted).unwrap_or_default();
                let made = redacted || !text.trim().is_empty();
                let (signature, signer) = signature(message, block);
                let detail = ProseDetail { signature, signer, redacted, ..ProseDetail::default() };
                let prose_kind = ProseKind::Reasoning;
                emit.push(EventKind::ProseCompleted {
                    prose_kind,
                    block: block_name,
                    text,
                    detail,
                });
                made
            }
            Some("toolCall") => {
                self.call(emit, block);
                true
            }
            kind => {
                let kind = kind.unwrap_or("block").to_owned();
                let data = Data { kind, payload: block.whole() };
                emit.push(EventKind::Part(block_name, Body::Data(data)));
                true
            }
        }
    }

    fn call(&mut self, emit: &mut Emitter<'_>, block: &Fields<'_>) {
        let id: Arc<str> = block.text("id").unwrap_or_default().into();
        let name = block.string("name").unwrap_or_default();
        self.calls.insert(id.clone(), name.clone());
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(id.clone()),
            parent_call_id: None,
            name: name.clone(),
            input: block.json("arguments"),
            content_hash: block.content_hash(&name, "arguments"),
            provider_executed: false,
            title: None,
            running: true,
        })));
        if name == super::result::AGENT_TOOL {
            self.start_agents(emit, &id, &block.fields("arguments"));
        }
    }

    /// Pi computes costs from a table of its own, in which an unknown model costs nothing.
    pub(super) fn report_cost(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        used: Usage,
    ) {
        let cost = message.fields("usage").fields("cost").read("total");
        self.cost.report(emit, cost, used);
    }
}

/// `input` excludes cached tokens.
pub(super) fn usage(usage: &Fields<'_>) -> Usage {
    let count = |name: &str| usage.number(name).unwrap_or(0);
    Usage {
        input: count("input"),
        output: count("output"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
        reasoning: count("reasoning"),
        ..Usage::default()
    }
}

/// The provider's signature of reasoning, and whose it is. With OpenAI's chat API the field has the
/// name of the field that the text came from.
fn signature(message: &Fields<'_>, block: &Fields<'_>) -> (Option<String>, Option<String>) {
    let api = message.text("api").unwrap_or_default();
    let held = block.string("thinkingSignature").filter(|text| !text.is_empty());
    let signer = match &*api {
        "openai-completions" => return (None, None),
        "openai-responses" | "openai-codex-responses" | "azure-openai-responses" => "openai",
        api if api.starts_with("google") => "google",
        _ => return (held, None),
    };
    let signer = held.as_ref().map(|_| signer.to_owned());
    (held, signer)
}
