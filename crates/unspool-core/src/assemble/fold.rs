//! What the assembler holds in memory: skeletons. Text, inputs and outputs leave as changes and
//! are not kept, except the text that is still growing.

use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use crate::id::{Id, PartId, SessionId, StepId, TurnId};
use crate::part::{Agent, Decision, Kind, Place, QuestionKind, ToolState};
use crate::session::{Provenance, Step, TurnOrigin, TurnState, Usage};
use crate::telling::{Name, Origin, Positions, Telling};

/// A turn, without what it says.
#[derive(Clone, Debug)]
pub(super) struct TurnFold {
    pub id: TurnId,
    pub number: u32,
    pub origin: TurnOrigin,
    /// Merged into another turn.
    pub gone: bool,
    /// Let go: its parts are in the store, and only its head is here.
    pub stored: bool,
    pub thinking_mode: bool,
    pub has_reasoning: bool,
    /// Some part of it is a piece of something that another telling may have whole.
    pub has_pieces: bool,
    pub is_command: bool,
    pub state: TurnState,
    pub ended: Option<Timestamp>,
    pub abandoned: bool,
    pub inherited: bool,
    /// How many parts each telling has placed.
    pub placed: [u32; 3],
    /// How many steps each telling has placed.
    pub stepped: [u32; 3],
    /// The step that each telling placed last: the one that it is in.
    pub step: [Option<StepId>; 3],
    pub parts: Vec<PartFold>,
    pub steps: Vec<StepFold>,
    /// Names that mean something only in this turn.
    pub local: FxHashMap<Name, usize>,
    /// How often each content was seen: by hooks, and by the tellings that share ids.
    pub alike: FxHashMap<(bool, u64), u32>,
}

#[derive(Clone, Debug)]
pub(super) struct PartFold {
    pub id: PartId,
    pub kind: Kind,
    pub place: Place,
    pub step: Option<StepId>,
    pub origin: Origin,
    /// Removed again: it was provisional.
    pub gone: bool,
    /// A digest of the prose or of the whole body, to see whether a retelling changes anything.
    pub digest: u64,
    /// Says why its turn did not end by itself.
    pub explains: bool,
    /// Which capture told prose to its end.
    pub source: Option<u16>,
    pub prose: Option<Box<Prose>>,
    pub tool: Option<Box<ToolFold>>,
    pub agents: Option<Box<AgentsFold>>,
}

/// Prose that is still growing.
#[derive(Clone, Debug)]
pub(super) struct Prose {
    pub owner: Telling,
    /// Another capture of the same stream repeats what this one tells.
    pub source: u16,
    pub text: String,
    /// Whether it is shown as growing. The end of a turn closes it for the eye; only its own
    /// end, or a step's, makes it final.
    pub open: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ToolFold {
    pub call_id: String,
    pub state: ToolState,
    pub question: Option<QuestionKind>,
    pub request_id: Option<String>,
    /// A digest of what was asked.
    pub asked: u64,
    /// An answer that follows from what happened, while no telling gave one.
    pub inferred: Option<Decision>,
    /// Which log or capture its input or its output grows by.
    pub grown_by: Option<u16>,
    /// The forms of tool and input under which the call was counted.
    pub likenesses: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct AgentsFold {
    pub call_id: String,
    pub agents: Vec<Agent>,
}

impl PartFold {
    pub fn is_prose(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Reasoning)
    }

    /// It is known by its content alone.
    pub fn is_nameless(&self) -> bool {
        let by_content = |name: &Name| matches!(name, Name::Alike(..) | Name::Piece(..));
        !self.origin.names.is_empty() && self.origin.names.iter().all(by_content)
    }

    /// Only hooks have told of it.
    pub fn is_only_hooks(&self) -> bool {
        let [hooks, stream, log] = self.origin.at.0;
        hooks.is_some() && stream.is_none() && log.is_none()
    }
}

#[derive(Clone, Debug)]
pub(super) struct StepFold {
    pub id: StepId,
    pub name: Name,
    pub at: Positions,
    pub place: Place,
    pub model: Option<Arc<str>>,
    pub usage: Usage,
    pub stop_reason: Option<Arc<str>>,
    pub provenance: Option<Provenance>,
}

impl StepFold {
    pub fn step(&self) -> Step {
        Step {
            id: self.id,
            name: self.name.clone(),
            at: self.at,
            model: self.model.clone(),
            usage: self.usage,
            stop_reason: self.stop_reason.clone(),
            provenance: self.provenance.clone(),
        }
    }
}

impl TurnFold {
    pub fn new(id: TurnId) -> TurnFold {
        TurnFold {
            id,
            number: 0,
            origin: TurnOrigin::default(),
            gone: false,
            stored: false,
            thinking_mode: false,
            has_reasoning: false,
            has_pieces: false,
            is_command: false,
            state: TurnState::Running,
            ended: None,
            abandoned: false,
            inherited: false,
            placed: [0; 3],
            stepped: [0; 3],
            step: [None; 3],
            parts: Vec::new(),
            steps: Vec::new(),
            local: FxHashMap::default(),
            alike: FxHashMap::default(),
        }
    }

    pub fn is_preamble(&self) -> bool {
        self.origin.names.contains(&Name::Preamble)
    }

    /// A part that is shown, or may be again.
    pub fn live_parts(&self) -> impl Iterator<Item = &PartFold> {
        self.parts.iter().filter(|part| !part.gone && !part.origin.foreign)
    }

    /// The only telling that has placed parts here, if there is just one.
    pub fn only_telling(&self) -> Option<Telling> {
        let mut found = None;
        for telling in Telling::ALL {
            if self.placed[telling.index()] > 0 {
                if found.is_some() {
                    return None;
                }
                found = Some(telling);
            }
        }
        found
    }

    /// Counts a part among the things with this content; says which one it is.
    pub fn count_alike(&mut self, telling: Telling, part: usize, content: u64) -> Name {
        // Log and stream name the same things alike, so they share a count; hooks do not.
        let class = telling == Telling::Hooks;
        let count = self.alike.entry((class, content)).or_default();
        *count += 1;
        let name = Name::Alike(content, *count - 1);
        // Kept sorted: log and stream may tell a call's input in two forms, in either order.
        let alike = &mut self.parts[part].origin.alike;
        alike.push((class, content, *count - 1));
        alike.sort_unstable();
        name
    }
}

/// The id that a name gives. Names that mean something only in a turn take the turn along.
pub(super) fn id_of(session: SessionId, turn: TurnId, name: &Name) -> Id {
    let number = |n: u32| n.to_le_bytes();
    let (session, turn) = (session.0.bytes(), turn.0.bytes());
    let (session, turn) = (session.as_slice(), turn.as_slice());
    match name {
        Name::Preamble => Id::derive([session, b"preamble"]),
        Name::Call(id) => Id::derive([session, b"call", id.as_bytes()]),
        Name::AgentsOf(id) => Id::derive([session, b"agents", id.as_bytes()]),
        Name::Agent(id) => Id::derive([session, b"agent", id.as_bytes()]),
        Name::Block(message, index) => {
            Id::derive([session, b"block", message.as_bytes(), &number(*index)])
        }
        Name::Message(id) => Id::derive([session, b"message", id.as_bytes()]),
        Name::Prompt(id) => Id::derive([session, b"prompt", id.as_bytes()]),
        Name::Record(id) => Id::derive([session, b"record", id.as_bytes()]),
        Name::Alike(content, nth) => {
            Id::derive([session, turn, b"alike", &content.to_le_bytes(), &number(*nth)])
        }
        Name::Piece(content, nth, piece) => {
            let (content, nth, piece) = (content.to_le_bytes(), number(*nth), number(*piece));
            Id::derive([session, turn, b"piece", &content, &nth, &piece])
        }
        Name::Nth(telling, nth) => {
            Id::derive([session, turn, b"nth", &[telling.index() as u8], &number(*nth)])
        }
        Name::Ending => Id::derive([session, turn, b"ending"]),
    }
}
