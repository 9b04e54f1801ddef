//! Indexes the steps of a conversation before they are decoded: their names, which of them form the
//! prompt, which call each output belongs to, which snapshots a prompt used.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::CallRef;
use unspool_model::id::{digest, sha256};
use unspool_model::json::Json;
use unspool_model::part::ToolState;
use unspool_model::provenance::Name;

use super::super::Fields;
use super::unmapped::is_own;
use super::{call, kinds};

/// One step.
pub(super) struct Step<'a> {
    pub index: usize,
    /// Its own id, or its number if the id is missing or already used.
    pub id: Arc<str>,
    pub label: Cow<'a, str>,
    pub fields: Fields<'a>,
    pub started: Fields<'a>,
    pub completed: Fields<'a>,
    pub depends_on: Vec<String>,
}

/// The fields of a step (R-002-05).
pub(super) const STEP_FIELDS: [&str; 8] = [
    "step_id",
    "label",
    "depends_on",
    "started_at",
    "ended_at",
    "duration_ms",
    "payload_started",
    "payload_completed",
];

impl<'a> Step<'a> {
    fn of(index: usize, fields: Fields<'a>, taken: &mut BTreeSet<String>) -> Step<'a> {
        let source_id = fields.string("step_id").filter(|id| !id.is_empty());
        let id = match source_id {
            Some(id) if taken.insert(id.clone()) => id,
            Some(id) => format!("{id} #{index}"),
            None => format!("#{index}"),
        };
        let several: Option<Vec<String>> = fields.read("depends_on");
        Step {
            index,
            id: id.into(),
            label: fields.text("label").unwrap_or_default(),
            started: fields.fields("payload_started"),
            completed: fields.fields("payload_completed"),
            // R-002-03: a string or a list.
            depends_on: fields
                .string("depends_on")
                .map(|one| vec![one])
                .or(several)
                .unwrap_or_default(),
            fields,
        }
    }

    pub fn began(&self) -> Option<Timestamp> {
        self.fields.time("started_at")
    }

    pub fn ended(&self) -> Option<Timestamp> {
        self.fields.time("ended_at")
    }

    /// True if it has a label and its payloads are objects or absent.
    pub fn is_sound(&self) -> bool {
        let sound = |name: &str| self.fields.raw(name).is_none_or(|raw| raw.starts_with('{'));
        !self.label.is_empty() && sound("payload_started") && sound("payload_completed")
    }

    pub fn is_snapshot(&self) -> bool {
        snapshot_kind(&self.label).is_some() || self.label == "prompt.adaptations"
    }

    /// Its id in the document, if not empty.
    pub fn source_id(&self) -> Option<Cow<'a, str>> {
        self.fields.text("step_id").filter(|id| !id.is_empty())
    }

    /// Its non-empty payload, or both merged, where `payload_completed` wins (R-002-05).
    pub fn payload(&self) -> Option<Payload<'a>> {
        match (has_fields(&self.started), has_fields(&self.completed)) {
            (true, false) => Some(Payload::One(self.started)),
            (false, true) => Some(Payload::One(self.completed)),
            (true, true) => Some(Payload::Both(self.both())),
            (false, false) => None,
        }
    }

    fn both(&self) -> String {
        let mut all: BTreeMap<Cow<'a, str>, &'a str> = self.started.each().collect();
        all.extend(self.completed.each());
        let field =
            |(name, value): (Cow<'a, str>, &str)| format!("{}:{value}", Json::string(&name).text());
        let fields: Vec<String> = all.into_iter().map(field).collect();
        format!("{{{}}}", fields.join(","))
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.started.text(name).or_else(|| self.completed.text(name))
    }

    /// True if it can be part of a prompt, or is the trigger of a turn without one.
    fn is_prompt(&self) -> bool {
        match &*self.label {
            "user_message" => !self.started.is("kind", "interjection"),
            "generic" => {
                let given = self.started.is_object() && !has_fields(&self.completed);
                let readable = || kinds::body(&self.started).is_some() || self.trigger().is_some();
                given && readable()
            }
            _ => false,
        }
    }

    /// The trigger of a turn that has no prompt text.
    pub fn trigger(&self) -> Option<Cow<'a, str>> {
        let own =
            self.started.is("kind", "trigger") && kinds::has_only(&self.started, &["trigger"]);
        self.started.text("trigger").filter(|_| own)
    }
}

/// The payload of a step.
pub(super) enum Payload<'a> {
    One(Fields<'a>),
    /// Both payloads merged into one JSON object.
    Both(String),
}

/// True if a payload has any field; an empty object counts as none.
pub(super) fn has_fields(payload: &Fields<'_>) -> bool {
    payload.names().next().is_some()
}

/// The kind of a snapshot, by its label.
pub(super) fn snapshot_kind(label: &str) -> Option<&'static str> {
    Some(match label {
        "policy.snapshot" => "policy",
        "tool.schemas.snapshot" => "tools",
        "context.preamble" => "context",
        "channel.preamble" => "channel",
        _ => return None,
    })
}

/// The calls of a document. Some models number their calls from 0 in every reply: an id that
/// another call has used is prefixed with its conversation and step.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Calls(BTreeMap<u64, u64>);

impl Calls {
    fn of(&mut self, conversation: &str, step: &Step<'_>) -> CallRef {
        let own = format!("{conversation} {}", step.id);
        let Some(id) = step.text("call_id").filter(|id| !id.is_empty()) else {
            // A call without an id is named by its step.
            return CallRef::ByContent(digest(own.as_bytes()), 0);
        };
        let owner = digest(own.as_bytes());
        let held = *self.0.entry(digest(id.as_bytes())).or_insert(owner);
        CallRef::Id(if held == owner { id.into() } else { format!("{own} {id}").into() })
    }

    pub fn has(&self, id: &str) -> bool {
        self.0.contains_key(&digest(id.as_bytes()))
    }
}

/// The steps of a conversation.
pub(super) struct Steps<'a> {
    pub all: Vec<Step<'a>>,
    /// Indexes of the steps that form the prompt.
    pub prompt: BTreeSet<usize>,
    /// The calls, by the index of their step.
    calls: BTreeMap<usize, StepCall>,
    /// The steps that make calls, by their id in the document.
    by_step: BTreeMap<String, usize>,
    /// The same, by call id. Several steps may share one.
    by_call: BTreeMap<String, Vec<usize>>,
    model_calls: BTreeSet<String>,
    /// Snapshots that a model call with a recorded prompt depends on.
    pub used: BTreeSet<usize>,
    /// The same, by id in the document.
    used_by_id: BTreeMap<String, Vec<usize>>,
    /// Digests of all prompt pieces.
    pub pieces: BTreeSet<String>,
    /// The document is our own export: its dependencies follow from its parts.
    pub own: bool,
}

/// A call that a step makes.
pub(super) struct StepCall {
    pub call: CallRef,
    /// The step itself records how it ended.
    pub ended: bool,
}

impl<'a> Steps<'a> {
    pub fn of(fields: &Fields<'a>, conversation: &str, calls: &mut Calls) -> Steps<'a> {
        let mut taken = BTreeSet::new();
        let all: Vec<Step<'a>> = fields
            .list("steps")
            .enumerate()
            .map(|(index, step)| Step::of(index, step, &mut taken))
            .collect();
        let own = is_own(conversation) && all.iter().all(|step| is_own(&step.id));
        let mut steps = Steps {
            prompt: prompt(&all),
            calls: BTreeMap::new(),
            by_step: BTreeMap::new(),
            by_call: BTreeMap::new(),
            model_calls: BTreeSet::new(),
            used: BTreeSet::new(),
            used_by_id: BTreeMap::new(),
            pieces: BTreeSet::new(),
            all,
            own,
        };
        for step in &steps.all {
            let source_id = step.source_id().map(Cow::into_owned);
            match &*step.label {
                "tool_call" => {
                    let call = calls.of(conversation, step);
                    if let Some(id) = step.text("call_id").filter(|id| !id.is_empty()) {
                        steps.by_call.entry(id.into_owned()).or_default().push(step.index);
                    }
                    if let Some(source_id) = source_id {
                        steps.by_step.entry(source_id).or_insert(step.index);
                    }
                    let ended = call::state(&step.completed).is_some_and(ToolState::is_terminal);
                    steps.calls.insert(step.index, StepCall { call, ended });
                }
                "assistant_call" => steps.model_calls.extend(source_id),
                _ => {}
            }
        }
        steps.note_used();
        steps
    }

    fn note_used(&mut self) {
        let prompts = |step: &&Step<'_>| {
            step.label == "assistant_call" && step.started.fields("prompt_provenance").is_object()
        };
        let on: BTreeSet<&str> = self
            .all
            .iter()
            .filter(prompts)
            .flat_map(|step| step.depends_on.iter().map(String::as_str))
            .collect();
        for step in self.all.iter().filter(|step| step.is_snapshot() && step.is_sound()) {
            if let Some(id) = step.source_id().filter(|id| on.contains(&**id)) {
                self.used.insert(step.index);
                self.used_by_id.entry(id.into_owned()).or_default().push(step.index);
            }
        }
        // Only needed to decide what follows from the prompts of our own documents.
        if self.own && !self.used.is_empty() {
            let pieces = self.all.iter().flat_map(|step| {
                let provenance = step.started.fields("prompt_provenance");
                let values = provenance.list("parts").filter_map(|piece| piece.text("value"));
                values.collect::<Vec<_>>()
            });
            let distinct: BTreeSet<Cow<'_, str>> = pieces.collect();
            self.pieces = distinct.iter().map(|value| sha256(value.as_bytes())).collect();
        }
    }

    /// The call that a step makes.
    pub fn call(&self, step: &Step<'_>) -> CallRef {
        let alike = || CallRef::ByContent(digest(step.id.as_bytes()), 0);
        self.calls.get(&step.index).map_or_else(alike, |called| called.call.clone())
    }

    /// The call of an output and its step: the one that the output depends on, or has the id of.
    pub fn called(&self, step: &Step<'_>) -> Option<(&StepCall, &Step<'a>)> {
        let on = step.depends_on.iter().find_map(|id| self.by_step.get(id)).copied();
        let index = on.or_else(|| self.call_named(step, &step.text("call_id")?))?;
        Some((self.calls.get(&index)?, self.all.get(index)?))
    }

    /// The step that makes the call with this id: one that this step depends on, or the nearest
    /// before it, because some models reuse call ids.
    fn call_named(&self, step: &Step<'_>, id: &str) -> Option<usize> {
        let alike = self.by_call.get(id)?;
        let on = step.depends_on.iter().filter_map(|on| self.by_step.get(on));
        let on = on.copied().find(|index| alike.binary_search(index).is_ok());
        let before = alike.partition_point(|index| *index < step.index);
        on.or_else(|| alike.get(before.saturating_sub(1)).copied())
    }

    /// The id that we use for the call with this id.
    pub fn id_of_call(&self, step: &Step<'_>, id: &str) -> Arc<str> {
        let called = self.call_named(step, id).and_then(|index| self.calls.get(&index));
        match called.map(|called| &called.call) {
            Some(CallRef::Id(own)) => own.clone(),
            Some(CallRef::ByContent(..)) | None => id.into(),
        }
    }

    pub fn is_of_model(&self, step: &Step<'_>) -> bool {
        step.depends_on.iter().any(|id| self.model_calls.contains(id))
    }

    /// The snapshots that a model call used, in their order.
    pub fn snapshots_of(&self, call: &Step<'_>) -> impl Iterator<Item = &Step<'a>> {
        let used = call.depends_on.iter().filter_map(|id| self.used_by_id.get(id));
        let used: BTreeSet<usize> = used.flatten().copied().collect();
        used.into_iter().filter_map(|index| self.all.get(index))
    }

    /// True if a step becomes one or more parts.
    pub fn is_part(&self, step: &Step<'_>) -> bool {
        let other = self.prompt.contains(&step.index) || self.used.contains(&step.index);
        !other && step.label != "assistant_call"
    }
}

/// The steps that form the prompt. They come first; only snapshots may precede them.
fn prompt(all: &[Step<'_>]) -> BTreeSet<usize> {
    let first =
        all.iter().take_while(|step| step.is_sound() && (step.is_snapshot() || step.is_prompt()));
    first.filter(|step| step.is_prompt()).map(|step| step.index).collect()
}

/// The name of the part of a step.
pub(super) fn name(conversation: &str, step: &Step<'_>) -> Name {
    Name::Record(format!("{conversation} {}", step.id).into())
}
