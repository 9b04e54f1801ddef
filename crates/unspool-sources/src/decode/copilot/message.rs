//! Steps and assistant messages: a step per `assistant.turn_start`, whose id is the same in the log
//! and live, and the blocks of its message. Extends `EventsDecoder`.
//!
//! A block is named by its step, its kind and its number within that kind: live blocks have no
//! ids, and the message id arrives only after the reasoning.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, EventKind, ProseDetail, ProseKind, ToolCall};
use unspool_model::part::{Body, Data};
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields, RecordOutcome};
use super::events::{EventRecord, EventsDecoder};

/// The current model call.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    id: Option<Arc<str>>,
    /// Its message has arrived and calls no tool.
    done: bool,
    stop_reason: Option<String>,
}

impl Step {
    pub fn name(&self) -> Option<Name> {
        self.id.clone().map(Name::Message)
    }

    /// The name of a block of this step.
    pub fn block(&self, prose_kind: ProseKind, nth: u32) -> Option<Name> {
        Some(block_name(self.id.as_ref()?, prose_kind, nth))
    }
}

fn block_name(step: &Arc<str>, prose_kind: ProseKind, nth: u32) -> Name {
    let kind = match prose_kind {
        ProseKind::Reasoning => 0,
        ProseKind::Text => 1,
    };
    Name::Block(step.clone(), nth.saturating_mul(2).saturating_add(kind))
}

/// The signer and the signature.
type Signature = (&'static str, Option<String>);

/// Names the blocks of one message in their order.
struct Blocks {
    step: Arc<str>,
    said: [u32; 2],
}

impl Blocks {
    fn say(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        text: String,
        detail: ProseDetail,
    ) -> bool {
        if text.trim().is_empty() && !detail.redacted {
            return false;
        }
        let count = match prose_kind {
            ProseKind::Reasoning => &mut self.said[0],
            ProseKind::Text => &mut self.said[1],
        };
        let block = Some(block_name(&self.step, prose_kind, *count));
        *count += 1;
        emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        true
    }

    /// Emits reasoning. If only its encrypted form is stored, it is redacted.
    fn think(&mut self, emit: &mut Emitter<'_>, text: String, signature: Signature) -> bool {
        let (signer, signature) = signature;
        let signature = signature.filter(|signature| !signature.is_empty());
        let signer = signature.is_some().then(|| signer.to_owned());
        let redacted = text.trim().is_empty() && signature.is_some();
        let detail = ProseDetail { signature, signer, redacted, ..ProseDetail::default() };
        self.say(emit, ProseKind::Reasoning, text, detail)
    }

    /// A reasoning block in its provider's format.
    fn reasoning(&mut self, emit: &mut Emitter<'_>, block: &Fields<'_>) -> bool {
        match block.text("type").as_deref() {
            Some("redacted_thinking") => {
                self.think(emit, String::new(), ("anthropic", block.string("data")))
            }
            Some("reasoning") => {
                let summary: Vec<String> =
                    block.list("summary").filter_map(|piece| piece.string("text")).collect();
                self.think(
                    emit,
                    summary.join("\n\n"),
                    ("openai", block.string("encrypted_content")),
                )
            }
            _ => {
                let text = block.string("thinking").unwrap_or_default();
                self.think(emit, text, ("anthropic", block.string("signature")))
            }
        }
    }
}

impl EventsDecoder {
    pub(super) fn start_step(
        &mut self,
        emit: &mut Emitter<'_>,
        event: &EventRecord<'_>,
    ) -> RecordOutcome {
        self.continue_turn(emit, &event.data);
        let id: Arc<str> = (&*event.id).into();
        self.step = Step { id: Some(id.clone()), ..Step::default() };
        self.live.begin();
        emit.push(EventKind::StepStarted { step: Name::Message(id), model: None });
        RecordOutcome::Metadata
    }

    /// Ends the step. A step without tool calls ends its turn too: the log has no other sign of it.
    pub(super) fn end_step(&mut self, emit: &mut Emitter<'_>) -> RecordOutcome {
        let Step { id, done, stop_reason } = std::mem::take(&mut self.step);
        if let Some(id) = id {
            emit.push(EventKind::StepEnded { step: Name::Message(id), stop_reason });
        }
        if done {
            emit.push(EventKind::TurnEnded(EndReason::Completed));
        }
        RecordOutcome::Metadata
    }

    /// Token usage of the current step. The log writes it before the message it belongs to.
    pub(super) fn usage(&mut self, emit: &mut Emitter<'_>, value: &Fields<'_>) -> RecordOutcome {
        let Some(step) = self.step.name() else {
            return RecordOutcome::left_out("usage of no step");
        };
        let count = |name: &str| value.number(name).unwrap_or(0);
        // Copilot counts as OpenAI does: input includes cached tokens, output includes reasoning.
        let (cache_read, cache_write) = (count("cacheReadTokens"), count("cacheWriteTokens"));
        let cached = cache_read.saturating_add(cache_write);
        let usage = Usage {
            input: count("inputTokens").saturating_sub(cached),
            output: count("outputTokens"),
            cache_read,
            cache_write,
            reasoning: count("reasoningTokens"),
            ..Usage::default()
        };
        let model = value.string("model");
        emit.push(EventKind::StepStarted { step: step.clone(), model });
        if let Some(request) = value.text("apiCallId").filter(|request| !request.is_empty()) {
            let (step, request) = (step.clone(), request.as_ref().into());
            emit.push(EventKind::RequestNamed { step, request });
        }
        emit.push(EventKind::UsageUpdated { step, usage });
        self.step.stop_reason = value.string("finishReason");
        RecordOutcome::Metadata
    }

    pub(super) fn message(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) -> RecordOutcome {
        if let Some(step) = self.step.name() {
            emit.push(EventKind::StepStarted { step, model: data.string("model") });
        }
        // Copilot reads reports of background agents and commands by a message that no model wrote
        // and that is in no step.
        let message = || data.text("messageId").unwrap_or_default().into();
        let step = self.step.id.clone().unwrap_or_else(message);
        let mut blocks = Blocks { step, said: [0; 2] };
        let reasoning = data.fields("reasoningBlocks");
        let mut made = false;
        let mut called: Vec<String> = Vec::new();
        let is_ordered = reasoning.list("orderedBlocks").next().is_some();
        for block in reasoning.list("orderedBlocks") {
            match block.text("type").as_deref() {
                Some("text") => {
                    let text = block.string("text").unwrap_or_default();
                    made |= blocks.say(emit, ProseKind::Text, text, ProseDetail::default());
                }
                Some("thinking" | "redacted_thinking" | "reasoning") => {
                    made |= blocks.reasoning(emit, &block);
                }
                Some("tool_use") => {
                    let id = block.string("id").unwrap_or_default();
                    let is_it = |request: &Fields<'_>| request.is("toolCallId", &id);
                    if let Some(request) = data.list("toolRequests").find(is_it) {
                        self.call(emit, &request);
                        called.push(id);
                    }
                }
                kind => {
                    let kind = kind.unwrap_or("block").to_owned();
                    emit.push(EventKind::Part(
                        None,
                        Body::Data(Data { kind, payload: block.whole() }),
                    ));
                    made = true;
                }
            }
        }
        if !is_ordered {
            made |= unordered(emit, &mut blocks, data, &reasoning);
        }
        for request in data.list("toolRequests") {
            let id = request.string("toolCallId").unwrap_or_default();
            if !called.contains(&id) {
                self.call(emit, &request);
                called.push(id);
            }
        }
        self.step.done = called.is_empty();
        if made || !called.is_empty() { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn call(&mut self, emit: &mut Emitter<'_>, request: &Fields<'_>) {
        let id: Arc<str> = request.text("toolCallId").unwrap_or_default().into();
        let name = request.string("name").unwrap_or_default();
        let title = request.string("intentionSummary").or_else(|| request.string("toolTitle"));
        let content_hash = request.content_hash(&name, "arguments");
        self.calls.insert(id.clone(), name.clone());
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(id.clone()),
            parent_call_id: None,
            name: name.clone(),
            input: request.json("arguments"),
            content_hash,
            provider_executed: false,
            title,
            running: false,
        })));
        self.called(emit, &id, &name, &request.fields("arguments"));
    }
}

/// Emits a message without `orderedBlocks` in the usual order: reasoning, then text. Its tools
/// follow.
fn unordered(
    emit: &mut Emitter<'_>,
    blocks: &mut Blocks,
    data: &Fields<'_>,
    reasoning: &Fields<'_>,
) -> bool {
    let mut made = false;
    for block in reasoning.list("blocks") {
        made |= blocks.reasoning(emit, &block);
    }
    if reasoning.list("blocks").next().is_none() {
        let text = data.string("reasoningText").unwrap_or_default();
        // Copilot's field for any provider's signature.
        let opaque = data.string("reasoningOpaque").map(|opaque| ("copilot", Some(opaque)));
        let signature = opaque.unwrap_or_else(|| ("openai", data.string("encryptedContent")));
        made |= blocks.think(emit, text, signature);
    }
    let text = data.string("content").unwrap_or_default();
    made | blocks.say(emit, ProseKind::Text, text, ProseDetail::default())
}
