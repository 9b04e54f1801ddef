//! The steps of a trajectory: what a person or a program says to the model, and the model's calls
//! with their tools and results. Extends `TrajectoryDecoder`.

use std::sync::Arc;

use unspool_model::event::{EventKind, ProseDetail, ProseKind};
use unspool_model::id::digest;
use unspool_model::json::Json;
use unspool_model::part::{Body, ContextInfo, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::{Emitter, Fields, RecordOutcome};
use super::calls::{emit_call, emit_results};
use super::content::{self, Piece};
use super::document;
use super::order::{Entry, entries};
use super::subagents::emit_references;
use super::trajectory::{CurrentTurn, TrajectoryDecoder, message_source, snapshot};

impl TrajectoryDecoder {
    pub(super) fn decode_step(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        self.step = self.step.saturating_add(1);
        self.calls.add_step(self.step, fields);
        let own = fields.fields("extra").fields("unspool");
        let source = fields.text("source").unwrap_or_default();
        let is_prompt = own.flag("prompt") || (!own.is_object() && source == "user");
        let number = own.number("turn");
        let is_new_turn = is_prompt || number.is_some() && number != self.turn.number;
        if is_new_turn {
            emit.at = None;
            self.end_turn(emit, true);
        }
        emit.at = fields.time("timestamp");
        if is_new_turn && (is_prompt || number != Some(0)) {
            self.start_turn(emit, fields, &own, is_prompt);
        }
        let outcome = match &*source {
            _ if is_prompt => RecordOutcome::InParts,
            "agent" => self.model_step(emit, fields, &own),
            "user" | "system" => self.other_step(emit, fields, &own),
            _ => {
                self.keep_whole(emit, fields);
                emit.at = None;
                return RecordOutcome::InParts;
            }
        };
        // Only agents call tools. A prompt that does is not valid, and nothing of it is lost.
        if is_prompt {
            for (nth, call) in fields.list("tool_calls").enumerate() {
                emit_call(emit, &self.calls, self.step, nth, &call);
            }
        }
        emit_references(emit, &self.session, self.step, fields, &mut self.starts);
        let has_open_calls = emit_results(emit, &self.calls, self.step, fields);
        self.turn.has_open_calls |= has_open_calls && !own.is_object();
        emit.at = None;
        outcome
    }

    /// A person's message starts a turn. In our exports a turn may have another trigger, or none.
    fn start_turn(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        own: &Fields<'_>,
        is_prompt: bool,
    ) {
        let content = digest(message_source(fields).as_bytes());
        let id: Arc<str> = format!("{}/{content:016x}", self.step).into();
        self.turn = CurrentTurn {
            name: Some(id.clone()),
            number: own.number("turn"),
            state: own.string("turn_state"),
            abandoned: own.flag("abandoned"),
            has_open_calls: false,
        };
        self.model_call = None;
        let trigger = own.text("trigger").and_then(|name| Trigger::of_name(&name));
        let user = if is_prompt { self.prompt(fields) } else { Vec::new() };
        let names = vec![Name::Prompt(id)];
        emit.push(EventKind::TurnStarted { names, trigger: trigger.unwrap_or_default(), user });
        // Copied steps of other programs may be a part of a turn that goes on.
        if own.is_object() && fields.flag("is_copied_context") {
            emit.push(EventKind::TurnInherited);
        }
    }

    fn prompt(&self, fields: &Fields<'_>) -> Vec<Body> {
        let text = |text| Body::Text(Text { text, ..Text::default() });
        let mut bodies = Vec::new();
        for entry in entries(fields) {
            match entry {
                Entry::Text(said, _) | Entry::Reasoning(said, _) => bodies.push(text(said)),
                Entry::Content(Piece::Text(said)) => bodies.push(text(said)),
                Entry::Content(Piece::File(file)) => bodies.push(Body::File(file)),
                Entry::Part(part, said) => bodies.push(document::body(&part, said, &self.calls)),
                Entry::Call(_) => {}
            }
        }
        bodies
    }

    /// A model call, or a dispatch without one.
    fn model_step(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        own: &Fields<'_>,
    ) -> RecordOutcome {
        let id: Arc<str> = format!("step-{}", self.step).into();
        // Our exports have a count if the source separates model calls.
        let count = fields.number("llm_call_count");
        let is_call = if own.is_object() { count.is_some() } else { count != Some(0) };
        let continues = own.flag("continues").then(|| self.model_call.clone()).flatten();
        if is_call {
            self.model_call = Some(id.clone());
        }
        let call = if is_call { Some(id.clone()) } else { continues }.map(Name::Message);
        if let Some(step) = &call {
            let model = fields.string("model_name").or_else(|| self.model.clone());
            emit.push(EventKind::StepStarted { step: step.clone(), model });
        }
        self.emit_entries(emit, &id, fields);
        if let Some(step) = call.filter(|_| is_call) {
            let turn = self.turn_name();
            self.metrics.report_step(emit, turn, &step, fields);
            let stop_reason = own.string("stop_reason");
            emit.push(EventKind::StepEnded { step, stop_reason });
        }
        RecordOutcome::InParts
    }

    fn emit_entries(&self, emit: &mut Emitter<'_>, id: &Arc<str>, fields: &Fields<'_>) {
        let calls: Vec<Fields<'_>> = fields.list("tool_calls").collect();
        for (nth, entry) in (0..).zip(entries(fields)) {
            let block = Name::Block(id.clone(), nth);
            match entry {
                Entry::Text(text, part) => {
                    let citations = part.items("citations").map(|(raw, _)| Json::checked(raw));
                    let citations = citations.collect();
                    let detail = ProseDetail { citations, ..ProseDetail::default() };
                    emit_prose(emit, ProseKind::Text, block, text, detail);
                }
                Entry::Reasoning(text, part) => {
                    let detail = ProseDetail {
                        redacted: part.flag("redacted"),
                        signature: part.string("signature"),
                        duration_ms: part.number("duration_ms"),
                        ..ProseDetail::default()
                    };
                    emit_prose(emit, ProseKind::Reasoning, block, text, detail);
                }
                Entry::Content(Piece::Text(text)) => {
                    emit_prose(emit, ProseKind::Text, block, text, ProseDetail::default());
                }
                Entry::Content(Piece::File(file)) => {
                    emit.push(EventKind::Part(Some(block), Body::File(file)));
                }
                Entry::Call(nth) => {
                    if let Some(call) = calls.get(nth) {
                        emit_call(emit, &self.calls, self.step, nth, call);
                    }
                }
                Entry::Part(part, text) => {
                    let place = (&*self.session, &self.calls);
                    document::emit_part(emit, block, &part, text, place);
                }
            }
        }
    }

    /// A step of the system, or one of the user that our exports mark as no prompt.
    fn other_step(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        own: &Fields<'_>,
    ) -> RecordOutcome {
        let id: Arc<str> = format!("step-{}", self.step).into();
        if own.is_object() {
            // Without parts: our export of a session without content.
            if own.list("parts").next().is_none() {
                return RecordOutcome::Metadata;
            }
            self.emit_entries(emit, &id, fields);
            return RecordOutcome::InParts;
        }
        let text = content::text(fields, "message").unwrap_or_default();
        if self.turn.name.is_none() && self.model_call.is_none() && !text.is_empty() {
            emit.push(snapshot(&text));
        }
        for (nth, piece) in (0..).zip(content::pieces(fields, "message")) {
            let body = match piece {
                Piece::Text(text) if text.is_empty() => continue,
                Piece::Text(text) => {
                    Body::ContextInfo(ContextInfo { title: "System message".to_owned(), text })
                }
                Piece::File(file) => Body::File(file),
            };
            emit.push(EventKind::Part(Some(Name::Block(id.clone(), nth)), body));
        }
        for (nth, call) in fields.list("tool_calls").enumerate() {
            emit_call(emit, &self.calls, self.step, nth, &call);
        }
        RecordOutcome::InParts
    }
}

/// Emits prose. An empty text is none, unless it stands for reasoning that cannot be read.
fn emit_prose(
    emit: &mut Emitter<'_>,
    prose_kind: ProseKind,
    block: Name,
    text: String,
    detail: ProseDetail,
) {
    if text.is_empty() && !detail.redacted && detail.signature.is_none() {
        return;
    }
    emit.push(EventKind::ProseCompleted { prose_kind, block: Some(block), text, detail });
}
