//! Parts of assistant messages, and whole messages with their parts. A part is written again under
//! the same id when it changes; a text is written when it begins and when it is complete. Extends
//! `OpenCodeDecoder`.

use std::sync::Arc;

use unspool_model::event::{EventKind, ProseDetail, ProseKind};
use unspool_model::part::{Body, ContextInfo, Data, Notice, Patch};
use unspool_model::provenance::Name;

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::message::usage;
use super::user::{compaction, file};
use super::{duration, time_of, wrap_side};

impl OpenCodeDecoder {
    /// One message with all its parts, or the session info of an export.
    pub(super) fn document(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let info = fields.fields("info");
        if !info.has("role") {
            return self.session(emit, &info);
        }
        let id = info.string("id").unwrap_or_default();
        if info.is("role", "user") {
            self.user_message(emit, &info);
            emit.at = super::user::created(&info);
        } else {
            self.assistant(emit, &info);
        }
        let mut outcome = RecordOutcome::Metadata;
        // OpenCode sorts parts by id, which puts those created after a wrap first.
        let mut parts: Vec<Fields<'_>> = fields.list("parts").collect();
        parts.sort_by_key(|part| wrap_side(&id, &part.text("id").unwrap_or_default()));
        for part in parts {
            if self.decode_part(emit, &id, &part) == RecordOutcome::InParts {
                outcome = RecordOutcome::InParts;
            }
        }
        self.settle(emit, &id, false);
        outcome
    }

    /// A new or changed part.
    pub(super) fn part(&mut self, emit: &mut Emitter<'_>, part: &Fields<'_>) -> RecordOutcome {
        let message = part.string("messageID").unwrap_or_default();
        let outcome = self.decode_part(emit, &message, part);
        self.settle(emit, &message, true);
        outcome
    }

    fn decode_part(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &str,
        part: &Fields<'_>,
    ) -> RecordOutcome {
        if self.user(message).is_some() {
            return self.user_part(emit, part);
        }
        if is_transient(part) {
            self.transient.insert(part.text("id").unwrap_or_default().into());
            return RecordOutcome::left_out("transient text");
        }
        self.ensure_message(emit, message);
        let turn = self.held(message).and_then(|held| {
            held.filled = true;
            held.turn.clone()
        });
        emit.turn = turn.map(Name::Prompt);
        let id: Arc<str> = part.text("id").unwrap_or_default().into();
        let name = || Some(Name::Record(id.clone()));
        match part.text("type").as_deref() {
            Some("text") if part.flag("synthetic") => {
                let text = part.string("text").unwrap_or_default();
                let title = self.product.context_title();
                emit.push(EventKind::Part(name(), Body::ContextInfo(ContextInfo { title, text })));
                RecordOutcome::InParts
            }
            Some("text") => self.prose(emit, message, id, ProseKind::Text, part),
            Some("reasoning") => self.prose(emit, message, id, ProseKind::Reasoning, part),
            Some("tool") => self.tool(emit, message, id, part),
            Some("step-start") => self.step_start(emit, message),
            Some("step-finish") => self.step_finish(emit, message, part),
            Some("patch") => {
                let files: Vec<String> = part.read("files").unwrap_or_default();
                for (nth, path) in files.into_iter().enumerate() {
                    let name = Name::Block(id.clone(), u32::try_from(nth).unwrap_or(u32::MAX));
                    let patch = Patch { path: Some(path), ..Patch::default() };
                    emit.push(EventKind::Part(Some(name), Body::Patch(patch)));
                }
                RecordOutcome::InParts
            }
            Some("file") => {
                emit.push(EventKind::Part(name(), Body::File(file(part))));
                RecordOutcome::InParts
            }
            Some("retry") => {
                let error = part.fields("error");
                let why = error.fields("data").string("message").unwrap_or_default();
                let attempt = part.number("attempt").unwrap_or(1);
                let text = format!("Retry, attempt {attempt}: {why}");
                emit.push(EventKind::Part(
                    name(),
                    Body::Notice(Notice { code: "retry".to_owned(), text }),
                ));
                RecordOutcome::InParts
            }
            Some("snapshot") => RecordOutcome::Metadata,
            kind => {
                let kind = kind.unwrap_or("part").to_owned();
                let payload = part.whole();
                emit.push(EventKind::Part(name(), Body::Data(Data { kind, payload })));
                RecordOutcome::InParts
            }
        }
    }

    fn prose(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &str,
        id: Arc<str>,
        prose_kind: ProseKind,
        part: &Fields<'_>,
    ) -> RecordOutcome {
        let text = part.string("text").unwrap_or_default();
        let time = part.fields("time");
        let ended = time.has("end");
        emit.at = time_of(&time, if ended { "end" } else { "start" }).or(emit.at);
        if prose_kind == ProseKind::Text && self.held(message).is_some_and(|held| held.summary) {
            return self.summary(emit, message, text);
        }
        let block = Name::Block(id.clone(), 0);
        let Signed { signature, signer, hidden } = signed(&part.fields("metadata"));
        let redacted =
            prose_kind == ProseKind::Reasoning && ended && hidden && text.trim().is_empty();
        if text.is_empty() && !redacted {
            // A failed attempt leaves empty texts that never end.
            if !ended {
                self.open.insert(id, prose_kind);
                emit.push(EventKind::BlockStarted { block });
            }
            return RecordOutcome::Metadata;
        }
        self.open.remove(&id);
        let duration_ms = duration(&time).filter(|_| prose_kind == ProseKind::Reasoning);
        let detail =
            ProseDetail { signature, signer, redacted, duration_ms, ..ProseDetail::default() };
        emit.push(EventKind::ProseCompleted { prose_kind, block: Some(block), text, detail });
        RecordOutcome::InParts
    }

    /// Emits the text of a summary message as the summary of the compaction that requested it.
    fn summary(&mut self, emit: &mut Emitter<'_>, message: &str, text: String) -> RecordOutcome {
        let turn = self.held(message).and_then(|held| held.turn.clone());
        let requested = turn.and_then(|turn| self.user(&turn)?.compaction());
        let Some((part, auto)) = requested.filter(|_| !text.is_empty()) else {
            return RecordOutcome::Metadata;
        };
        let name = Some(Name::Record(part));
        emit.push(EventKind::Part(name, Body::Compaction(compaction(auto, text))));
        RecordOutcome::InParts
    }

    /// A delta of a text.
    pub(super) fn delta(&mut self, emit: &mut Emitter<'_>, body: &Fields<'_>) -> RecordOutcome {
        let message = body.string("messageID").unwrap_or_default();
        let id: Arc<str> = body.text("partID").unwrap_or_default().into();
        let prose_kind = self.open.get(&id).copied().filter(|_| body.is("field", "text"));
        let Some(prose_kind) = prose_kind else {
            return RecordOutcome::left_out("message.part.delta");
        };
        let turn = self.held(&message).and_then(|held| held.turn.clone());
        emit.turn = turn.map(Name::Prompt).or_else(|| self.turn_name());
        let text = body.string("delta").unwrap_or_default();
        emit.push(EventKind::ProseDelta { prose_kind, block: Some(Name::Block(id, 0)), text });
        RecordOutcome::InParts
    }

    fn step_start(&mut self, emit: &mut Emitter<'_>, message: &str) -> RecordOutcome {
        let Some(held) = self.held(message) else { return RecordOutcome::Metadata };
        // A failed attempt is restarted in the same message.
        if !held.in_step {
            held.steps += 1;
            held.in_step = true;
            let model = held.model.clone();
            emit.push(EventKind::StepStarted { step: held.step(), model });
        }
        RecordOutcome::Metadata
    }

    fn step_finish(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &str,
        part: &Fields<'_>,
    ) -> RecordOutcome {
        let Some(held) = self.held(message) else { return RecordOutcome::Metadata };
        let step = held.step();
        held.in_step = false;
        let is_own = !held.inherited;
        let is_first = std::mem::replace(&mut held.steps_with_cost, held.steps) < held.steps;
        if is_own {
            let usage = usage(&part.fields("tokens"));
            emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
        }
        if is_own && is_first {
            self.head.add_cost(emit, part);
        }
        emit.push(EventKind::StepEnded { step, stop_reason: part.string("reason") });
        RecordOutcome::Metadata
    }
}

/// True for a text that says what Kilo waits for. It is rewritten many times and then removed.
fn is_transient(part: &Fields<'_>) -> bool {
    part.fields("metadata").is("kilocode.lifecycle", "transient")
}

/// A provider's signature of reasoning. `hidden`: it is the encrypted reasoning itself.
#[derive(Default)]
struct Signed {
    signature: Option<String>,
    signer: Option<String>,
    hidden: bool,
}

fn signed(metadata: &Fields<'_>) -> Signed {
    for provider in ["openai", "anthropic", "google", "bedrock", "azure", "openrouter", "copilot"] {
        let kept = metadata.fields(provider);
        let hidden = ["reasoningEncryptedContent", "redactedData"];
        let hidden = hidden.iter().find_map(|name| kept.string(name));
        let open = || {
            let names = ["signature", "thoughtSignature", "reasoningOpaque"];
            names.iter().find_map(|name| kept.string(name))
        };
        let (signature, hidden) = (hidden.clone().or_else(open), hidden.is_some());
        if signature.is_some() {
            return Signed { signature, signer: Some(provider.to_owned()), hidden };
        }
    }
    Signed::default()
}
