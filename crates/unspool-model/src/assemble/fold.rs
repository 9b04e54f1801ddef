//! The assembler's in-memory state: turns, steps and parts without their content. Text, inputs and
//! outputs leave as changes and are not kept, except prose that is still open.

use std::sync::Arc;

use jiff::Timestamp;

use crate::id::{Id, PartId, SessionId, StepId, TurnId};
use crate::part::{Agent, Answer, Decision, EarlierQuestion, Kind, Place, Question, ToolState};
use crate::provenance::{Feed, Name, Origin, Positions};
use crate::session::{Provenance, Step, TurnOrigin, TurnState, Usage};

use super::feed_order::FeedOrder;
use super::lookups::LazyLookups;
use super::order::{Beside, Item};
use super::runs::Words;

/// A turn without its content.
#[derive(Clone, Debug)]
pub(super) struct TurnFold {
    pub id: TurnId,
    pub number: u32,
    pub origin: TurnOrigin,
    /// Merged into another turn.
    pub gone: bool,
    /// Released: its parts are in the store, and only its head is here.
    pub stored: bool,
    pub thinking_mode: bool,
    pub has_reasoning: bool,
    pub is_command: bool,
    pub state: TurnState,
    pub ended: Option<Timestamp>,
    pub abandoned: bool,
    pub inherited: bool,
    /// The number of parts placed by each feed.
    pub placed: [u32; 3],
    /// The number of steps placed by each feed.
    pub stepped: [u32; 3],
    /// The current step of each feed: the one it placed last.
    pub step: [Option<StepId>; 3],
    pub parts: Vec<PartFold>,
    pub steps: Vec<StepFold>,
    pub lookups: LazyLookups,
    /// The order of its parts, and of its steps, once two feeds have placed some.
    pub order: Option<Box<FeedOrder<StepId>>>,
    pub step_order: Option<Box<FeedOrder<()>>>,
}

#[derive(Clone, Debug)]
pub(super) struct PartFold {
    pub id: PartId,
    pub kind: Kind,
    pub place: Place,
    pub step: Option<StepId>,
    pub origin: Origin,
    /// Removed or merged into another part.
    pub gone: bool,
    /// In the list of parts that may have changed.
    pub noted: bool,
    /// A digest of the prose or of the whole body, to detect whether a repeat changes anything.
    pub digest: u64,
    /// Explains why its turn failed or was interrupted.
    pub explains: bool,
    /// The source that completed the prose.
    pub source: Option<u16>,
    /// The words of prose that the log has completed.
    pub words: Words,
    /// What is kept about a run after it ended.
    pub run: Option<Box<RunFold>>,
    /// The stream position of the run that has the end of this text, and on which side of it.
    pub beside: Option<(u32, Beside)>,
    /// The names that led here in the turn's lookups, and may still do so.
    pub aliases: Vec<Name>,
    pub prose: Option<Box<Prose>>,
    pub tool: Option<Box<ToolFold>>,
    pub agents: Option<Box<AgentsFold>>,
}

/// Prose that a stream reported without a name.
#[derive(Clone, Debug, Default)]
pub(super) struct RunFold {
    /// Its words, once it has ended. They are compared with those of the log.
    pub text: String,
    /// Its size when it was last compared.
    pub compared_at: usize,
}

/// Prose that is still growing.
#[derive(Clone, Debug)]
pub(super) struct Prose {
    pub owner: Feed,
    /// The only source that may extend it: another capture of the same stream repeats it.
    pub source: u16,
    pub text: String,
    /// Whether it is shown as open. The end of the turn closes it for display; only its own end
    /// or the end of its step makes it final.
    pub open: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ToolFold {
    pub call_id: String,
    pub state: ToolState,
    /// What feeds call it, where the exit code says otherwise or did.
    pub reported_state: Option<ToolState>,
    pub exit_code: Option<i64>,
    pub provider_executed: bool,
    pub question: Option<Question>,
    pub earlier: Vec<EarlierQuestion>,
    /// The answer that a feed reported, if it is the one shown.
    pub answer: Option<Answer>,
    /// The decision inferred from later events, while no feed has an answer.
    pub inferred: Option<Decision>,
    /// The source that extends its input or output.
    pub grown_by: Option<u16>,
    /// The content hashes under which the call was counted.
    pub content_hashes: Vec<u64>,
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

    /// What its order depends on, unless it is gone.
    pub fn item(&self) -> Option<Item<StepId>> {
        let mut item = Item::new(self.origin.at, self.step);
        if let Some((position, side)) = self.beside.filter(|_| item.at.of(Feed::Stream).is_none()) {
            item.at.set(Feed::Stream, position);
            item.beside = Some(side);
        }
        (!self.gone).then_some(item)
    }

    /// True if all its names are derived from its content.
    pub fn is_named_by_content(&self) -> bool {
        let by_content =
            |name: &Name| matches!(name, Name::ByContent(..) | Name::ContentFragment(..));
        !self.origin.names.is_empty() && self.origin.names.iter().all(by_content)
    }

    /// True if only hooks have it.
    pub fn is_only_hooks(&self) -> bool {
        let [hooks, stream, log] = self.origin.at.0;
        hooks.is_some() && stream.is_none() && log.is_none()
    }
}

#[derive(Clone, Debug)]
pub(super) struct StepFold {
    pub id: StepId,
    /// Moved to another turn.
    pub gone: bool,
    pub name: Name,
    pub at: Positions,
    pub place: Place,
    pub model: Option<Arc<str>>,
    pub usage: Usage,
    pub stop_reason: Option<Arc<str>>,
    pub request: Option<Arc<str>>,
    pub provenance: Option<Provenance>,
}

impl StepFold {
    /// What its order depends on.
    pub fn item(&self) -> Option<Item<()>> {
        (!self.gone).then_some(Item::new(self.at, None))
    }

    pub fn step(&self) -> Step {
        Step {
            id: self.id,
            name: self.name.clone(),
            at: self.at,
            model: self.model.clone(),
            usage: self.usage,
            stop_reason: self.stop_reason.clone(),
            request: self.request.clone(),
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
            lookups: LazyLookups::default(),
            order: None,
            step_order: None,
        }
    }

    /// What its order depends on. A turn without a number has none.
    pub fn item(&self) -> Option<Item<()>> {
        let numbered = !self.gone && !self.is_preamble();
        numbered.then_some(Item::new(self.origin.at, None))
    }

    pub fn is_preamble(&self) -> bool {
        self.origin.names.contains(&Name::Preamble)
    }

    /// Lets the local name of a step lead to it, unless an earlier step has the name.
    pub fn register_step(&mut self, step: usize) {
        let name = &self.steps[step].name;
        if name.is_local() && !self.lookups.steps.contains_key(name) {
            self.lookups.steps.insert(name.clone(), step);
        }
    }

    /// The feed that has placed parts here, if there is exactly one.
    pub fn only_feed(&self) -> Option<Feed> {
        let mut found = None;
        for feed in Feed::ALL {
            if self.placed[feed.index()] > 0 {
                if found.is_some() {
                    return None;
                }
                found = Some(feed);
            }
        }
        found
    }

    /// Counts a part as an occurrence of this content hash and returns its name.
    pub fn count_occurrence(&mut self, feed: Feed, part: usize, content: u64) -> Name {
        // Log and stream share ids and therefore a count; hooks do not.
        let class = feed == Feed::Hooks;
        let count = self.lookups.occurrences.entry((class, content)).or_default();
        *count += 1;
        let name = Name::ByContent(content, *count - 1);
        // Kept sorted: log and stream may have a call's input in two forms, in either order.
        let occurrences = &mut self.parts[part].origin.occurrences;
        let occurrence = (class, content, *count - 1);
        let at = occurrences.partition_point(|other| *other < occurrence);
        occurrences.insert(at, occurrence);
        name
    }

    /// Lets the name of each occurrence lead to its part: to the one that hooks counted only if no
    /// other feed counted one.
    pub fn name_by_content(&mut self) {
        for by_hooks in [true, false] {
            for part in 0..self.parts.len() {
                if self.parts[part].gone {
                    continue;
                }
                for (class, content, nth) in self.parts[part].origin.occurrences.clone() {
                    if class == by_hooks {
                        self.set_local(Name::ByContent(content, nth), part);
                    }
                }
            }
        }
    }
}

/// The id of the part with this name. `None` for a name that is unique in its turn only.
pub fn part_id(session: SessionId, name: &Name) -> Option<PartId> {
    let anywhere = TurnId(session.0);
    (!name.is_local()).then(|| PartId(id_of(session, anywhere, name)))
}

/// The id derived from a name. Local names are hashed together with their turn.
pub(super) fn id_of(session: SessionId, turn: TurnId, name: &Name) -> Id {
    let number = |n: u32| n.to_le_bytes();
    let (session, turn) = (session.0.bytes(), turn.0.bytes());
    let (session, turn) = (session.as_slice(), turn.as_slice());
    match name {
        Name::Preamble | Name::Session => Id::derive([session, b"preamble"]),
        Name::Call(id) => Id::derive([session, b"call", id.as_bytes()]),
        Name::AgentsOf(id) => Id::derive([session, b"agents", id.as_bytes()]),
        Name::Agent(id) => Id::derive([session, b"agent", id.as_bytes()]),
        Name::Block(message, index) => {
            Id::derive([session, b"block", message.as_bytes(), &number(*index)])
        }
        Name::Message(id) => Id::derive([session, b"message", id.as_bytes()]),
        Name::Prompt(id) => Id::derive([session, b"prompt", id.as_bytes()]),
        Name::Record(id) => Id::derive([session, b"record", id.as_bytes()]),
        Name::ByContent(content, nth) => {
            Id::derive([session, turn, b"alike", &content.to_le_bytes(), &number(*nth)])
        }
        Name::ContentFragment(content, nth, piece) => {
            let (content, nth, piece) = (content.to_le_bytes(), number(*nth), number(*piece));
            Id::derive([session, turn, b"piece", &content, &nth, &piece])
        }
        Name::Nth(feed, nth) => {
            Id::derive([session, turn, b"nth", &[feed.index() as u8], &number(*nth)])
        }
        Name::Ending => Id::derive([session, turn, b"ending"]),
    }
}
