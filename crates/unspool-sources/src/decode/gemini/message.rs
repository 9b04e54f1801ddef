//! The model's messages in a chat file: thoughts, one text, and the calls, which are written when
//! all of them have ended. Extends `ChatDecoder`.

use std::collections::BTreeMap;
use std::sync::Arc;

use unspool_model::event::{EndReason, EventKind, ProseDetail, ProseKind};
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields, RecordOutcome};
use super::chat::{ChatDecoder, text_of};
use super::tool::{emit_call, emit_end, emit_response};

/// The digest of each call's latest version.
pub(super) type Calls = BTreeMap<Arc<str>, u64>;

impl ChatDecoder {
    pub(super) fn model(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        self.waits = false;
        let mut made = false;
        // As an editor's agent, Gemini collects the calls of all steps in one message without text,
        // and adds each call when it has ended.
        let calls_only = message.has("toolCalls") && !message.has("tokens");
        if !calls_only || !text_of(message).is_empty() {
            made |= self.step(emit, id, message);
        }
        for call in message.list("toolCalls") {
            made |= self.call(emit, &call);
        }
        if self.cancelled {
            // Calls that were cancelled are written after the end of their turn.
            emit.push(EventKind::TurnEnded(EndReason::Interrupted));
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn step(&mut self, emit: &mut Emitter<'_>, id: &Arc<str>, message: &Fields<'_>) -> bool {
        let next = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let nth = *self.steps.entry(id.clone()).or_insert(next);
        let step = Name::Message(id.clone());
        emit.push(EventKind::StepStarted { step: step.clone(), model: message.string("model") });
        let mut made = false;
        let mut thoughts = 0;
        let mut think = |emit: &mut Emitter<'_>, text: String| {
            let (prose_kind, block) =
                (ProseKind::Reasoning, Some(Name::Block(id.clone(), thoughts)));
            thoughts += 1;
            emit.push(EventKind::ProseCompleted {
                prose_kind,
                block,
                text,
                detail: ProseDetail::default(),
            });
        };
        for thought in message.list("thoughts") {
            let subject = thought.string("subject").filter(|text| !text.is_empty());
            let body = thought.string("description").unwrap_or_default();
            // Gemini splits the title off; restore the model's own form.
            let text = match subject {
                Some(subject) => format!("**{subject}**\n\n{body}"),
                None => body,
            };
            if !text.trim().is_empty() {
                think(emit, text);
                made = true;
            }
        }
        // A resumed session has thoughts in the shape of the API.
        for part in message.list("content").filter(|part| part.flag("thought")) {
            if let Some(text) = part.string("text").filter(|text| !text.trim().is_empty()) {
                think(emit, text);
                made = true;
            }
        }
        let text = text_of(message);
        if !text.trim().is_empty() {
            let (prose_kind, block) = (ProseKind::Text, Some(super::text_name(nth)));
            emit.push(EventKind::ProseCompleted {
                prose_kind,
                block,
                text,
                detail: ProseDetail::default(),
            });
            made = true;
        }
        for part in message.list("content").filter(|part| part.has("functionCall")) {
            made |= self.call(emit, &part.fields("functionCall"));
        }
        if message.has("tokens") {
            emit.push(EventKind::UsageUpdated { step, usage: usage(&message.fields("tokens")) });
        }
        made
    }

    fn call(&mut self, emit: &mut Emitter<'_>, call: &Fields<'_>) -> bool {
        let Some(id) = call.text("id").map(Arc::<str>::from) else { return false };
        let content = call.whole().canonical_digest();
        match self.calls.insert(id.clone(), content) {
            Some(previous) if previous == content => return true,
            // The list of a resumed session has fewer fields of the call.
            Some(_) if !call.has("status") => return true,
            Some(_) => {}
            None => emit_call(emit, &id, call, "args", call.has("status")),
        }
        if call.has("status") {
            emit_end(emit, &id, call);
        }
        true
    }

    /// Function responses sent to the model. They repeat the calls' results, but a refused call is
    /// recorded only here.
    pub(super) fn responses(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let mut made = false;
        for part in message.list("content") {
            let response = part.fields("functionResponse");
            let Some(id) = response.text("id").map(Arc::<str>::from) else { continue };
            if !self.calls.contains_key(&id) {
                self.calls.insert(id.clone(), 0);
                emit_call(emit, &id, &response, "args", true);
                emit_response(emit, &id, &response);
                made = true;
            }
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::left_out("results told again") }
    }
}

/// Token usage. `input` includes cached tokens, `output` excludes thoughts, and `tool` counts the
/// tokens that the provider's own tools added to the prompt.
fn usage(tokens: &Fields<'_>) -> Usage {
    let count = |name: &str| tokens.number(name).unwrap_or(0);
    let (cached, thoughts) = (count("cached"), count("thoughts"));
    Usage {
        input: count("input").saturating_sub(cached).saturating_add(count("tool")),
        output: count("output").saturating_add(thoughts),
        cache_read: cached,
        reasoning: thoughts,
        ..Usage::default()
    }
}
