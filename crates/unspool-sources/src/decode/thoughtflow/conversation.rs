//! Decodes one conversation into a turn: the prompt, and a part per step. `decoder.rs` calls it;
//! `generic.rs` and `tool.rs` extend it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use unspool_model::event::{CallRef, EndReason, EventKind, ProseDetail, ProseKind};
use unspool_model::id::{digest, sha256};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Interjection, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::{Emitter, Fields, JsonOutline};
use super::decoder::CONVERSATION_FIELDS;
use super::steps::{Calls, Payload, STEP_FIELDS, Step, Steps, name};
use super::unmapped::UnmappedFields;
use super::{call, kinds};

pub(super) struct ConversationDecoder<'r, 'a> {
    pub(super) id: &'r Arc<str>,
    /// The conversation comes before the first prompt.
    pub(super) early: bool,
    /// The agent's name in the model calls.
    agent: String,
    pub(super) steps: &'r Steps<'a>,
    pub(super) calls: &'r Calls,
    ids: &'r mut BTreeSet<u64>,
    pub(super) rest: UnmappedFields,
    /// Calls that have an output. A second output would replace the first.
    pub(super) with_output: FxHashSet<CallRef>,
    /// The end of the turn was emitted.
    pub ended: bool,
}

impl<'r, 'a> ConversationDecoder<'r, 'a> {
    pub fn new(
        id: &'r Arc<str>,
        early: bool,
        agent: String,
        steps: &'r Steps<'a>,
        calls: &'r Calls,
        ids: &'r mut BTreeSet<u64>,
    ) -> ConversationDecoder<'r, 'a> {
        let (rest, with_output) = (UnmappedFields::default(), FxHashSet::default());
        ConversationDecoder { id, early, agent, steps, calls, ids, rest, with_output, ended: false }
    }

    pub fn decode(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        self.keep_fields(fields);
        emit.at = fields.time("started_at");
        self.start_turn(emit);
        let ending = self.ending(fields);
        for step in &self.steps.all {
            if !self.steps.prompt.contains(&step.index) && Some(step.index) != ending {
                self.step(emit, step);
            }
        }
        emit.at = None;
        self.keep_source(emit, fields);
        if let Some(kept) = self.rest.data("thoughtflow-conversation") {
            let name = Name::Record(format!("{} rest", self.id).into());
            emit.push(EventKind::Part(Some(name), Body::Data(kept)));
        }
        let why = ending.and_then(|at| self.steps.all.get(at)?.completed.string("text"));
        let reason = match fields.text("status").as_deref() {
            Some("completed") => EndReason::Completed,
            Some("aborted") => EndReason::Interrupted,
            Some("error") => EndReason::Failed(why),
            // R-002-07: the end is not recorded.
            Some(_) | None => return,
        };
        emit.at = fields.time("ended_at");
        emit.push(EventKind::TurnEnded(reason));
        self.ended = true;
    }

    /// Keeps the unmapped fields of the conversation.
    fn keep_fields(&mut self, fields: &Fields<'_>) {
        let steps = self.steps;
        for (field, value) in fields.each() {
            let keep = match &*field {
                "channel" => value != "\"text\"",
                "status" => !["completed", "aborted", "error", "unknown"]
                    .iter()
                    .any(|mapped| fields.is("status", mapped)),
                "conversation_id" => !fields.is_text("conversation_id"),
                "started_at" | "ended_at" if steps.own => {
                    fields.has(&field) && fields.time(&field).is_none()
                }
                "started_at" | "ended_at" | "duration_ms" => !steps.own && value != "null",
                other => !CONVERSATION_FIELDS.contains(&other),
            };
            if keep {
                self.rest.fields.insert(field.into_owned(), Json::checked(value));
            }
        }
        // Entries of `steps` that are no objects.
        let odd = fields.items("steps").enumerate().filter(|(_, (_, step))| !step.is_object());
        for (at, (raw, _)) in odd {
            self.rest.fields.insert(format!("steps[{at}]"), Json::checked(raw));
        }
    }

    /// Keeps the conversation of another program as it is, once it has ended: until then its program
    /// writes it again for each step. Our own follow from their parts.
    fn keep_source(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let ends = ["completed", "aborted", "error"];
        if self.steps.own || !ends.iter().any(|end| fields.is("status", end)) {
            return;
        }
        let content = fields.whole();
        let digest = sha256(content.text().as_bytes());
        self.rest.source = Some(digest.clone());
        let kind = "thoughtflow-conversation".to_owned();
        emit.push(EventKind::SnapshotTaken { kind, sha256: digest, content });
    }

    fn start_turn(&mut self, emit: &mut Emitter<'_>) {
        let mut trigger = Trigger::User;
        let mut user = Vec::new();
        let prompt = |step: &&Step<'_>| self.steps.prompt.contains(&step.index);
        for step in self.steps.all.iter().filter(prompt) {
            let reported = step
                .text("trigger")
                .filter(|_| step.label == "user_message" || step.trigger().is_some());
            match reported.as_deref().map(Trigger::of_name) {
                Some(Some(named)) => trigger = named,
                Some(None) => self.rest.keep_present(step.index, &step.started, "trigger"),
                None => {}
            }
            user.extend(self.prompt(step));
        }
        if self.early && emit.at.is_none() {
            return;
        }
        let turn = if self.early { Name::Preamble } else { Name::Prompt(self.id.clone()) };
        emit.push(EventKind::TurnStarted { names: vec![turn], trigger, user });
    }

    /// One part of the prompt.
    fn prompt(&mut self, step: &Step<'_>) -> Option<Body> {
        if step.label != "user_message" {
            self.keep_around(step);
            // A trigger step has no text.
            return kinds::body(&step.started);
        }
        let Some(text) = said(step) else {
            return Some(Body::Data(self.whole(step)));
        };
        self.keep_around(step);
        self.keep_beside_words(step, &["trigger"]);
        Some(Body::Text(Text { text, ..Text::default() }))
    }

    /// A whole step as a data part.
    fn whole(&self, step: &Step<'_>) -> Data {
        let label = Some(&*step.label).filter(|label| !label.is_empty());
        Data { kind: label.unwrap_or("thoughtflow-step").to_owned(), payload: step.fields.whole() }
    }

    fn give_whole(&self, emit: &mut Emitter<'_>, step: &Step<'_>) {
        emit.at = step.began().or(step.ended());
        let name = name(self.id, step);
        emit.push(EventKind::Part(Some(name), Body::Data(self.whole(step))));
    }

    /// Keeps the fields of a step outside its payloads, unless they follow from the parts.
    fn keep_around(&mut self, step: &Step<'_>) {
        for (field, value) in step.fields.each() {
            let mapped = STEP_FIELDS.contains(&&*field);
            let payload = field.starts_with("payload_") || field == "label";
            let time = matches!(&*field, "started_at" | "ended_at");
            let follows = self.steps.own && !(time && step.fields.time(&field).is_none());
            if !mapped || !payload && !follows && value != "null" {
                self.rest.keep(step.index, &field, Json::checked(value));
            }
        }
    }

    fn step(&mut self, emit: &mut Emitter<'_>, step: &Step<'_>) {
        emit.at = step.began();
        let reported = step.is_sound()
            && match &*step.label {
                "user_message" => self.interjected(emit, step),
                "assistant_call" => self.model_call(emit, step),
                "assistant_message" => self.said(emit, step),
                "tool_call" => self.tool_call(emit, step),
                "tool_output" | "tool_error" => {
                    self.with_payload(step, |run, payload| run.tool_output(emit, step, payload))
                }
                "generic" => {
                    self.with_payload(step, |run, payload| run.generic(emit, step, payload))
                }
                _ if self.steps.used.contains(&step.index) => {
                    // The prompt's provenance names the snapshot, but not its own content.
                    if call::snapshot_has_extra(self.steps, step) {
                        self.rest.keep_present(step.index, &step.fields, "payload_started");
                        self.rest.keep_present(step.index, &step.fields, "payload_completed");
                    }
                    true
                }
                _ => false,
            };
        if reported {
            self.keep_around(step);
        } else {
            self.give_whole(emit, step);
        }
    }

    /// Decodes the payload of a step, if it has one. Keeps the fields of `payload_started` that
    /// `payload_completed` overrides.
    fn with_payload(
        &mut self,
        step: &Step<'_>,
        decode: impl FnOnce(&mut Self, &Fields<'_>) -> bool,
    ) -> bool {
        let both = match step.payload() {
            None => return false,
            Some(Payload::One(payload)) => return decode(self, &payload),
            Some(Payload::Both(both)) => both,
        };
        let mut outline = JsonOutline::default();
        let Ok(payload) = outline.read(&both) else { return false };
        let is_decoded = decode(self, &payload);
        if is_decoded {
            let held = step.started.each().filter(|(name, value)| {
                payload.raw_or_null(name).is_some_and(|reported| reported == *value)
            });
            let names: Vec<_> = held.map(|(name, _)| name).collect();
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            self.rest.keep_except(step.index, "payload_started", &step.started, &names);
        }
        is_decoded
    }

    /// Keeps the payload fields of a text step except its text.
    fn keep_beside_words(&mut self, step: &Step<'_>, mapped: &[&'static str]) {
        for (of, payload) in
            [("payload_started", &step.started), ("payload_completed", &step.completed)]
        {
            let mut mapped = mapped.to_vec();
            mapped.extend(payload.is_text("text").then_some("text"));
            self.rest.keep_except(step.index, of, payload, &mapped);
        }
    }

    /// A user message sent while the model worked.
    fn interjected(&mut self, emit: &mut Emitter<'_>, step: &Step<'_>) -> bool {
        let Some(text) = said(step) else { return false };
        emit.push(EventKind::Part(
            Some(name(self.id, step)),
            Body::Interjection(Interjection { text }),
        ));
        let own = step.started.is("kind", "interjection");
        self.keep_beside_words(step, if own { &["kind"] } else { &[] });
        true
    }

    fn model_call(&mut self, emit: &mut Emitter<'_>, step: &Step<'_>) -> bool {
        let (started, completed) = (&step.started, &step.completed);
        let response = completed.text("response_id").filter(|id| !id.contains([' ', '/']));
        let own = response.filter(|id| !id.is_empty() && self.ids.insert(digest(id.as_bytes())));
        // The fallback name has a space, which no response id has.
        let named = own.is_some();
        let id = own.map_or_else(|| format!("{} {}", self.id, step.id).into(), Arc::from);
        let model_call = Name::Message(id);
        let model = started.string("model");
        emit.push(EventKind::StepStarted { step: model_call.clone(), model });
        let mut mapped = Vec::new();
        mapped.extend(
            (!completed.has("stop_reason") || completed.is_text("stop_reason"))
                .then_some("stop_reason"),
        );
        mapped.extend(named.then_some("response_id"));
        // The status follows from the end of the turn.
        mapped.extend(self.steps.own.then_some("status"));
        if let Some((usage, exact)) = call::usage(&completed.fields("usage")) {
            emit.push(EventKind::UsageUpdated { step: model_call.clone(), usage });
            mapped.extend(exact.then_some("usage"));
        }
        self.rest.keep_except(step.index, "payload_completed", completed, &mapped);
        let mut mapped = Vec::new();
        mapped.extend((!started.has("model") || started.is_text("model")).then_some("model"));
        mapped.extend(started.is("name", &self.agent).then_some("name"));
        let provenance = call::provenance(self.steps, step);
        if provenance.is_some() {
            mapped.push("prompt_provenance");
            let left = call::unmapped_provenance(&started.fields("prompt_provenance"));
            if let Some(left) = left {
                self.rest.keep(step.index, "prompt_provenance", left);
            }
        }
        let prompt = provenance.as_ref().and_then(|mapped| mapped.final_prompt.as_deref());
        let more = call::arguments_have_extra(&started.fields("arguments"), prompt);
        mapped.extend((!more).then_some("arguments"));
        self.rest.keep_except(step.index, "payload_started", started, &mapped);
        if let Some(provenance) = provenance {
            emit.push(EventKind::ProvenanceUpdated { step: model_call.clone(), provenance });
        }
        let stop_reason = completed.string("stop_reason");
        emit.push(EventKind::StepEnded { step: model_call, stop_reason });
        true
    }

    fn said(&mut self, emit: &mut Emitter<'_>, step: &Step<'_>) -> bool {
        let Some(text) = said(step).filter(|text| !text.trim().is_empty()) else { return false };
        let open = step.completed.flag("open");
        let citations: Option<Vec<Json>> = step.completed.read("citations");
        let mut mapped = Vec::new();
        mapped.extend(step.completed.truth("open").map(|_| "open"));
        // Open text cannot hold citations yet.
        let read = !step.completed.has("citations") || citations.is_some() && !open;
        mapped.extend(read.then_some("citations"));
        mapped.extend(step.completed.is_text("text").then_some("text"));
        self.rest.keep_except(step.index, "payload_completed", &step.completed, &mapped);
        self.rest.keep_except(step.index, "payload_started", &step.started, &["text"]);
        let citations = citations.unwrap_or_default();
        let detail = ProseDetail { citations, ..ProseDetail::default() };
        self.prose(emit, step, open, Prose { prose_kind: ProseKind::Text, text, detail });
        true
    }

    pub(super) fn prose(
        &mut self,
        emit: &mut Emitter<'_>,
        step: &Step<'_>,
        open: bool,
        Prose { prose_kind, text, detail }: Prose,
    ) {
        let block = Some(name(self.id, step));
        // Emit a delta at the start time, so that the part has both times.
        if open || step.began() != step.ended() {
            emit.push(EventKind::ProseDelta {
                prose_kind,
                block: block.clone(),
                text: text.clone(),
            });
        }
        if !open {
            emit.at = step.ended();
            emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        }
    }
}

/// Text or reasoning.
pub(super) struct Prose {
    pub prose_kind: ProseKind,
    pub text: String,
    pub detail: ProseDetail,
}

/// The text of a step; `None` if its payloads disagree.
fn said(step: &Step<'_>) -> Option<String> {
    let one = |fields: &Fields<'_>| fields.string("text");
    match (one(&step.started), one(&step.completed)) {
        (Some(text), None) | (None, Some(text)) => Some(text),
        (Some(began), Some(whole)) if began == whole => Some(whole),
        (Some(_), Some(_)) | (None, None) => None,
    }
}
