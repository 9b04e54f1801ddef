//! Changes: the effect of applying one event. The assembler emits them; the store, the live views
//! and `TranscriptBuilder` consume them. They are small (a text delta stays a delta), mergeable,
//! and sufficient to rebuild the session: the assembler keeps no second copy of the content.

mod change_set;
mod touched;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{PartId, StepId, TurnId};
use crate::json::Json;
use crate::part::{Answer, Body, EarlierQuestion, Part, Place, Question, ToolState};
use crate::prompt::PromptRecord;
use crate::provenance::{Evidence, Origin};
use crate::session::{Facts, SessionState, Step, Trigger, TurnOrigin, TurnState};

pub use change_set::ChangeSet;
pub use touched::{Delta, ToolUpdate, Touched, Urgency};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The new session head.
    SessionUpdated { facts: Box<Facts>, state: SessionState },
    /// A turn appeared. Its patch follows in the same list.
    TurnOpened { turn: TurnId },
    /// A turn's own fields changed.
    TurnUpdated { turn: TurnId, patch: Box<TurnPatch> },
    /// The turn got a stronger name, and with it a new id.
    TurnRenamed { turn: TurnId, to: TurnId },
    /// Two feeds described the same turn: `turn` is gone. Its parts, its steps and the fields in
    /// `take` go to `into`.
    TurnMerged { turn: TurnId, into: TurnId, take: Vec<TurnMergeField> },
    /// The new value of a step, and its place among the steps of its turn.
    StepUpdated { turn: TurnId, place: Place, step: Box<Step> },
    /// A stronger feed has the step in another turn. `parts`, which stay, have the `previous` one.
    StepRemoved { turn: TurnId, step: StepId, parts: Vec<PartId>, previous: Option<StepId> },
    /// A part appeared.
    PartOpened { turn: TurnId, part: Box<Part> },
    /// Text was appended to a part's text, input or output.
    PartDelta { part: PartId, field: DeltaField, text: String },
    /// Some fields of a part changed.
    PartUpdated { part: PartId, patch: Box<PartPatch> },
    /// The part got a stronger name, and with it a new id.
    PartRenamed { part: PartId, to: PartId },
    /// Two feeds described the same part: `part` is gone. Its evidence and the fields in `take` go
    /// to `into`.
    PartMerged { part: PartId, into: PartId, take: Vec<PartMergeField> },
    /// A stronger feed has the part in another turn. It has no step until a patch sets one.
    PartMoved { part: PartId, to: TurnId },
    /// A provisional part turned out to be wrong and was removed.
    PartRemoved { part: PartId },
    /// What a model call was sent, or a message of it.
    PromptRecorded(Box<PromptRecord>),
    /// Content to be stored once, keyed by its digest.
    SnapshotTaken { kind: String, sha256: String, content: Json },
    /// An event was not applied: a duplicate, a contradiction, or from an old stream.
    EventSkipped { reason: SkipReason },
}

/// Which text of a part a delta extends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeltaField {
    Text,
    Input,
    Output,
}

/// A field of a turn that a merge copies, under its name in the turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnMergeField {
    User,
    Trigger,
    Started,
    Abandoned,
    Inherited,
}

/// A field of a part that a merge copies, under its name in the part or in its tool. `state` comes
/// with `reported_state`, if the tool that goes has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartMergeField {
    Step,
    Started,
    Ended,
    Body,
    CallId,
    ParentCallId,
    Name,
    Input,
    State,
    Output,
    Result,
    ExitCode,
    DurationMs,
    Question,
    Answer,
    ProviderExecuted,
    Title,
}

/// Why an event was skipped. Skipped events are counted by reason.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    /// Already applied.
    Duplicate,
    /// It would have moved a state backward or changed a final one.
    Contradiction,
    /// It came from a stream that a newer one replaced.
    Stale,
    /// It referred to a turn, part or agent that does not exist.
    Unknown,
}

impl SkipReason {
    pub fn name(self) -> &'static str {
        match self {
            SkipReason::Duplicate => "duplicate",
            SkipReason::Contradiction => "contradiction",
            SkipReason::Stale => "stale",
            SkipReason::Unknown => "unknown",
        }
    }
}

/// New values for some fields of a turn. `None` leaves a field as it is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnPatch {
    pub number: Option<u32>,
    pub trigger: Option<Trigger>,
    pub user: Option<Vec<Body>>,
    /// The user's initial parts, replayed by another file of the same feed. They replace as many
    /// leading parts; parts added later stay.
    pub user_replayed: Option<Vec<Body>>,
    pub user_added: Vec<Body>,
    pub thinking_mode: Option<bool>,
    pub state: Option<TurnState>,
    pub abandoned: Option<bool>,
    pub inherited: Option<bool>,
    pub started: Option<Timestamp>,
    /// `Some(None)` removes the end: the turn continues.
    #[serde(with = "ended_field")]
    pub ended: Option<Option<Timestamp>>,
    pub origin: Option<TurnOrigin>,
}

/// Writes the inner option as an array of one, since JSON cannot tell `Some(None)` from `None`.
mod ended_field {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Field = Option<Option<Timestamp>>;

    pub fn serialize<S: Serializer>(field: &Field, serializer: S) -> Result<S::Ok, S::Error> {
        field.as_ref().map(|inner| [inner]).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Field, D::Error> {
        Ok(Option::<[Option<Timestamp>; 1]>::deserialize(deserializer)?.map(|[inner]| inner))
    }
}

/// New values for some fields of a part. `None` leaves a field as it is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PartPatch {
    pub place: Option<Place>,
    pub step: Option<StepId>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// Further source records of the part.
    pub evidence: Vec<Evidence>,
    pub origin: Option<Origin>,
    /// A complete body, to which the fields below are then applied.
    pub body: Option<Body>,
    pub text: Option<String>,
    pub open: Option<bool>,
    pub citations: Option<Vec<Json>>,
    pub signature: Option<String>,
    pub signer: Option<String>,
    pub redacted: Option<bool>,
    pub duration_ms: Option<u64>,
    pub tool: Option<Box<ToolPatch>>,
}

impl TurnPatch {
    /// True if no field is set. Called for every event, so the likeliest field comes first.
    pub fn is_empty(&self) -> bool {
        self.origin.is_none() && *self == TurnPatch::default()
    }

    /// Merges a later patch into this one.
    pub fn merge(&mut self, later: TurnPatch) {
        if later.user.is_some() {
            self.user_replayed = None;
            self.user_added.clear();
        }
        if let (Some(leading), Some(user)) = (&later.user_replayed, &mut self.user) {
            user.append(&mut self.user_added);
            replace_leading(user, leading.clone());
        } else {
            take(&mut self.user_replayed, later.user_replayed);
        }
        take(&mut self.number, later.number);
        take(&mut self.trigger, later.trigger);
        take(&mut self.user, later.user);
        self.user_added.extend(later.user_added);
        take(&mut self.thinking_mode, later.thinking_mode);
        take(&mut self.state, later.state);
        take(&mut self.abandoned, later.abandoned);
        take(&mut self.inherited, later.inherited);
        take(&mut self.started, later.started);
        take(&mut self.ended, later.ended);
        take(&mut self.origin, later.origin);
    }
}

/// Replaces the leading parts of the user's message.
pub fn replace_leading(user: &mut Vec<Body>, leading: Vec<Body>) {
    user.splice(..leading.len().min(user.len()), leading);
}

impl PartPatch {
    /// True if no field is set. Called for every event, so the likeliest fields come first.
    pub fn is_empty(&self) -> bool {
        self.evidence.is_empty()
            && self.place.is_none()
            && self.open.is_none()
            && self.tool.is_none()
            && *self == PartPatch::default()
    }

    /// Merges a later patch into this one.
    pub fn merge(&mut self, later: PartPatch) {
        // A new body discards field patches that preceded it.
        if later.body.is_some() {
            (self.text, self.open, self.citations) = (None, None, None);
            (self.signature, self.signer) = (None, None);
            (self.redacted, self.duration_ms) = (None, None);
            self.tool = None;
        }
        self.evidence.extend(later.evidence);
        take(&mut self.place, later.place);
        take(&mut self.step, later.step);
        take(&mut self.started, later.started);
        take(&mut self.ended, later.ended);
        take(&mut self.origin, later.origin);
        take(&mut self.body, later.body);
        take(&mut self.text, later.text);
        take(&mut self.open, later.open);
        take(&mut self.citations, later.citations);
        // The signer always changes with the signature.
        if later.signature.is_some() {
            (self.signature, self.signer) = (later.signature, later.signer);
        }
        take(&mut self.redacted, later.redacted);
        take(&mut self.duration_ms, later.duration_ms);
        match (&mut self.tool, later.tool) {
            (Some(held), Some(later)) => held.merge(*later),
            (held, later) => take(held, later),
        }
    }
}

impl ToolPatch {
    fn merge(&mut self, later: ToolPatch) {
        take(&mut self.call_id, later.call_id);
        take(&mut self.parent_call_id, later.parent_call_id);
        take(&mut self.name, later.name);
        take(&mut self.input, later.input);
        take(&mut self.input_text, later.input_text);
        take(&mut self.state, later.state);
        take(&mut self.reported_state, later.reported_state);
        take(&mut self.output, later.output);
        take(&mut self.result, later.result);
        take(&mut self.exit_code, later.exit_code);
        take(&mut self.duration_ms, later.duration_ms);
        take(&mut self.question, later.question);
        if later.earlier.is_some() {
            self.answer = None;
        }
        take(&mut self.answer, later.answer);
        take(&mut self.earlier, later.earlier);
        take(&mut self.provider_executed, later.provider_executed);
        take(&mut self.title, later.title);
    }
}

fn take<T>(held: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *held = later;
    }
}

/// New values for some fields of a tool part.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolPatch {
    pub call_id: Option<String>,
    pub parent_call_id: Option<String>,
    pub name: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::present"
    )]
    pub input: Option<Json>,
    pub input_text: Option<String>,
    pub state: Option<ToolState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_state: Option<ToolState>,
    pub output: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::json::present"
    )]
    pub result: Option<Json>,
    pub exit_code: Option<i64>,
    pub duration_ms: Option<u64>,
    pub question: Option<Question>,
    pub answer: Option<Answer>,
    /// All questions before the newest one. The call was asked about again, so a patch that has them
    /// takes the answer back unless it also has an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Vec<EarlierQuestion>>,
    pub provider_executed: Option<bool>,
    pub title: Option<String>,
}

impl Change {
    /// Merges `next` into this change if the two can be one change. Returns it otherwise.
    pub fn merge(&mut self, next: Change) -> Option<Change> {
        match (self, next) {
            (
                Change::PartDelta { part, field, text },
                Change::PartDelta { part: next_part, field: next_field, text: more },
            ) if *part == next_part && *field == next_field => {
                text.push_str(&more);
                None
            }
            (
                Change::SessionUpdated { facts, state },
                Change::SessionUpdated { facts: f, state: s },
            ) => {
                *facts = f;
                *state = s;
                None
            }
            (_, next) => Some(next),
        }
    }
}

/// Merges adjacent changes where possible, without dropping any content (R-X-14).
pub fn merged(changes: impl IntoIterator<Item = Change>) -> Vec<Change> {
    let mut out: Vec<Change> = Vec::new();
    for change in changes {
        let left = match out.last_mut() {
            Some(last) => last.merge(change),
            None => Some(change),
        };
        out.extend(left);
    }
    out
}
