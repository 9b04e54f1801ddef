//! The steps of a conversation before anything is made of them: what each is called, which of them
//! the user said, which call each output belongs to, which snapshots a prompt used.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_core::event::Call;
use unspool_core::id::digest;
use unspool_core::telling::Name;

use super::super::Fields;
use super::kinds;
use super::rest::is_own;

/// One step.
pub(super) struct Step<'a> {
    pub index: usize,
    /// What it is called here: its own id, or its number where that is missing or another's.
    pub id: Arc<str>,
    pub label: Cow<'a, str>,
    pub fields: Fields<'a>,
    pub started: Fields<'a>,
    pub completed: Fields<'a>,
    pub depends_on: Vec<String>,
}

/// What a step may have (R-002-05).
pub(super) const STEP: [&str; 8] = [
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
        let told = fields.string("step_id").filter(|id| !id.is_empty());
        let id = match told {
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

    /// Whether what it carries can be read: objects, or nothing.
    pub fn is_sound(&self) -> bool {
        let sound = |name: &str| self.fields.raw(name).is_none_or(|raw| raw.starts_with('{'));
        !self.label.is_empty() && sound("payload_started") && sound("payload_completed")
    }

    pub fn is_snapshot(&self) -> bool {
        snapshot_kind(&self.label).is_some() || self.label == "prompt.adaptations"
    }

    /// What it carries, where it is one of the two.
    pub fn payload(&self) -> Option<Fields<'a>> {
        match (self.started.is_object(), self.completed.is_object()) {
            (true, false) => Some(self.started),
            (false, true) => Some(self.completed),
            (true, true) | (false, false) => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.started.text(name).or_else(|| self.completed.text(name))
    }

    /// Whether it is something that came with a prompt, or what began the turn in its place.
    fn is_asked(&self) -> bool {
        match &*self.label {
            "user_message" => true,
            "generic" => {
                let given = self.started.is_object() && !self.completed.is_object();
                let known = || kinds::body(&self.started).is_some() || self.trigger().is_some();
                given && known()
            }
            _ => false,
        }
    }

    /// What began the turn, where no words did.
    pub fn trigger(&self) -> Option<Cow<'a, str>> {
        let own =
            self.started.is("kind", "trigger") && kinds::has_only(&self.started, &["trigger"]);
        self.started.text("trigger").filter(|_| own)
    }
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

/// The calls of a document. Some models count their calls from 0 in every reply: an id that another
/// call has already is told apart by its step.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Calls(BTreeMap<u64, u64>);

impl Calls {
    fn of(&mut self, conversation: &str, step: &Step<'_>) -> Call {
        let own = format!("{conversation} {}", step.id);
        let Some(id) = step.text("call_id").filter(|id| !id.is_empty()) else {
            // Without an id it is known by its step alone.
            return Call::Alike(digest(own.as_bytes()), 0);
        };
        let owner = digest(own.as_bytes());
        let held = *self.0.entry(digest(id.as_bytes())).or_insert(owner);
        Call::Id(if held == owner { id.into() } else { format!("{own} {id}").into() })
    }

    pub fn has(&self, id: &str) -> bool {
        self.0.contains_key(&digest(id.as_bytes()))
    }
}

/// The steps of a conversation.
pub(super) struct Steps<'a> {
    pub all: Vec<Step<'a>>,
    /// What the user said.
    pub asked: BTreeSet<usize>,
    /// The call that a step makes, by the step's id as it is told.
    calls: BTreeMap<String, Call>,
    /// The same by the call's id as it is told; of several the last.
    by_call: BTreeMap<String, Call>,
    model_calls: BTreeSet<String>,
    /// Snapshots that the prompt of a model call used, as far as it says so.
    pub used: BTreeSet<usize>,
    /// Our own document: its dependencies follow from its parts.
    pub own: bool,
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
            asked: asked(&all),
            calls: BTreeMap::new(),
            by_call: BTreeMap::new(),
            model_calls: BTreeSet::new(),
            used: BTreeSet::new(),
            all,
            own,
        };
        for step in &steps.all {
            let told = step.fields.string("step_id").unwrap_or_default();
            match &*step.label {
                "tool_call" => {
                    let call = calls.of(conversation, step);
                    if let Some(id) = step.text("call_id").filter(|id| !id.is_empty()) {
                        steps.by_call.insert(id.into_owned(), call.clone());
                    }
                    steps.calls.entry(told).or_insert(call);
                }
                "assistant_call" => drop(steps.model_calls.insert(told)),
                _ => {}
            }
        }
        let prompts = |step: &&Step<'_>| step.started.fields("prompt_provenance").is_object();
        let on: BTreeSet<&str> = steps
            .all
            .iter()
            .filter(|step| step.label == "assistant_call")
            .filter(prompts)
            .flat_map(|step| step.depends_on.iter().map(String::as_str))
            .collect();
        let used = steps.all.iter().filter(|step| {
            step.is_snapshot()
                && step.is_sound()
                && step.fields.text("step_id").is_some_and(|id| on.contains(&*id))
        });
        steps.used = used.map(|step| step.index).collect();
        steps
    }

    /// The call that a step makes.
    pub fn call(&self, step: &Step<'_>) -> Call {
        let told = step.fields.string("step_id").unwrap_or_default();
        let alike = || Call::Alike(digest(step.id.as_bytes()), 0);
        self.calls.get(&told).cloned().unwrap_or_else(alike)
    }

    /// The call of an output: the one that it depends on, or whose id it has.
    pub fn called(&self, step: &Step<'_>) -> Option<Call> {
        let on = step.depends_on.iter().find_map(|id| self.calls.get(id));
        let named = || self.by_call.get(&*step.text("call_id")?);
        on.or_else(named).cloned()
    }

    pub fn is_of_model(&self, step: &Step<'_>) -> bool {
        step.depends_on.iter().any(|id| self.model_calls.contains(id))
    }

    /// The snapshots that a model call used.
    pub fn snapshots_of(&self, call: &Step<'_>) -> impl Iterator<Item = &Step<'a>> {
        let on = call.depends_on.clone();
        self.all.iter().filter(move |step| {
            self.used.contains(&step.index)
                && step.fields.text("step_id").is_some_and(|id| on.iter().any(|on| *on == id))
        })
    }

    /// Whether a step becomes a part, or parts.
    pub fn is_part(&self, step: &Step<'_>) -> bool {
        let other = self.asked.contains(&step.index) || self.used.contains(&step.index);
        !other && step.label != "assistant_call"
    }
}

/// What the user said stands first; snapshots may stand before it.
fn asked(all: &[Step<'_>]) -> BTreeSet<usize> {
    let first =
        all.iter().take_while(|step| step.is_sound() && (step.is_snapshot() || step.is_asked()));
    first.filter(|step| step.is_asked()).map(|step| step.index).collect()
}

/// What a part of a conversation is called.
pub(super) fn name(conversation: &str, step: &Step<'_>) -> Name {
    Name::Record(format!("{conversation} {}", step.id).into())
}
