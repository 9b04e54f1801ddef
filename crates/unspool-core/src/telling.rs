//! Tellings. One session may be told several times: by the agent's log, by its live stream, by
//! its hooks. Two tellings speak of one thing when they call it by one name. What each of them
//! says is ranked, not timed, so the order in which they arrive cannot change the result.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Who tells. A later variant is believed before an earlier one, and the last one that covers a
/// turn is the turn's spine: it places the parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Telling {
    /// Payloads that the agent hands to a command of ours while it works.
    Hooks,
    /// The live protocol, token by token.
    Stream,
    /// What the agent keeps on disk: a log, a rollout, a database.
    Log,
}

impl Telling {
    pub const ALL: [Telling; 3] = [Telling::Hooks, Telling::Stream, Telling::Log];

    pub fn index(self) -> usize {
        self as usize
    }
}

/// What a source calls a turn, a step or a part. Stronger names come first: the strongest one
/// known makes the id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Everything before the first prompt.
    Preamble,
    /// A tool call, by its id.
    Call(Arc<str>),
    /// The agents that a tool call started.
    AgentsOf(Arc<str>),
    /// A sub-agent, by its own id: it leads to the part of its call's agents.
    Agent(Arc<str>),
    /// A block of a model message, by message id and index.
    Block(Arc<str>, u32),
    /// A model message: a step.
    Message(Arc<str>),
    /// A prompt, by its id: a turn.
    Prompt(Arc<str>),
    /// A record of the source, by its own id.
    Record(Arc<str>),
    /// The n-th thing with this content, in the turn or, for a turn, in the session. This is how
    /// sources that share no ids are brought together.
    Alike(u64, u32),
    /// A later piece of the thing that `Alike` names so, told apart because something stood between
    /// the two. A stronger telling that has the thing whole has the pieces in it.
    Piece(u64, u32, u32),
    /// The n-th thing that this telling opened, where the source names nothing.
    Nth(Telling, u32),
    /// What the end rule put there.
    Ending,
}

impl Name {
    /// A digest of the name, the same on every machine: an index of a million names holds these.
    pub fn digest(&self) -> u64 {
        let of = |kind: u64, text: &str| xxh3_64_with_seed(text.as_bytes(), kind);
        match self {
            Name::Preamble => of(1, ""),
            Name::Call(id) => of(2, id),
            Name::AgentsOf(id) => of(3, id),
            Name::Agent(id) => of(4, id),
            Name::Block(message, index) => of(5 | u64::from(*index) << 8, message),
            Name::Message(id) => of(6, id),
            Name::Prompt(id) => of(7, id),
            Name::Record(id) => of(8, id),
            Name::Alike(content, nth) => {
                xxh3_64_with_seed(&content.to_le_bytes(), 9 | u64::from(*nth) << 8)
            }
            Name::Piece(content, nth, piece) => {
                let whole = Name::Alike(*content, *nth).digest();
                xxh3_64_with_seed(&whole.to_le_bytes(), 12 | u64::from(*piece) << 8)
            }
            Name::Nth(telling, nth) => {
                xxh3_64_with_seed(&[telling.index() as u8], 10 | u64::from(*nth) << 8)
            }
            Name::Ending => of(11, ""),
        }
    }

    /// Whether the name means something only inside one turn.
    pub fn is_local(&self) -> bool {
        match self {
            Name::Alike(..) | Name::Piece(..) | Name::Nth(..) | Name::Ending => true,
            Name::Preamble
            | Name::Call(_)
            | Name::AgentsOf(_)
            | Name::Agent(_)
            | Name::Block(..)
            | Name::Message(_)
            | Name::Prompt(_)
            | Name::Record(_) => false,
        }
    }
}

/// The record that told something: enough to find it again and to see that it is the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Evidence {
    pub telling: Telling,
    /// Which of the session's files or streams, by its place in the session's list of them.
    pub source: u16,
    /// Where the record begins: a byte offset, a row number or a frame number.
    pub offset: u64,
    /// How long it is, in bytes.
    pub length: u32,
    pub digest: u64,
}

/// The place of a thing in each telling that spoke of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Positions(pub [Option<u32>; 3]);

impl Positions {
    pub fn of(self, telling: Telling) -> Option<u32> {
        self.0[telling.index()]
    }

    pub fn set(&mut self, telling: Telling, position: u32) {
        self.0[telling.index()].get_or_insert(position);
    }
}

/// How strongly each field of a part has been told: not at all, or with the telling's rank.
/// A weaker telling never overrides a stronger one, whichever came first, and may always add
/// what nobody else has told.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranks([u8; Field::COUNT]);

/// One digit for each field, without the zeros at the end: `33003`.
impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.0.iter().rposition(|rank| *rank > 0).map_or(0, |last| last + 1);
        self.0[..told].iter().try_for_each(|rank| write!(f, "{rank}"))
    }
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ranks({self})")
    }
}

impl Serialize for Ranks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ranks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ranks, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let mut ranks = Ranks::default();
        // A newer version may know more fields than we do.
        for (held, digit) in ranks.0.iter_mut().zip(text.bytes()) {
            *held = digit.wrapping_sub(b'0').min(Telling::ALL.len() as u8);
        }
        Ok(ranks)
    }
}

/// A field that tellings may tell differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// Prose, or the whole of a part that has no finer fields.
    Body,
    Name,
    Input,
    ParentCall,
    Title,
    Provider,
    State,
    Output,
    Result,
    ExitCode,
    Duration,
    Question,
    Answer,
    Signature,
    Citations,
    Step,
    Started,
    Ended,
    /// The input as it streams.
    InputText,
    /// The output as it streams.
    OutputText,
}

impl Field {
    const COUNT: usize = Field::OutputText as usize + 1;
}

impl Ranks {
    /// Takes the field for `telling` unless something stronger was told already.
    pub fn claim(&mut self, field: Field, telling: Telling) -> bool {
        let rank = telling.index() as u8 + 1;
        let held = &mut self.0[field as usize];
        let claimed = rank >= *held;
        if claimed {
            *held = rank;
        }
        claimed
    }

    /// Lets a told value through if it may be taken.
    pub fn take<T>(&mut self, field: Field, telling: Telling, value: Option<T>) -> Option<T> {
        value.filter(|_| self.claim(field, telling))
    }

    /// Nobody tells this field any more: what it stood for is whole. Says whether anybody did.
    pub fn drop(&mut self, field: Field) -> bool {
        std::mem::take(&mut self.0[field as usize]) > 0
    }

    /// What is left when two things turn out to be one.
    pub fn join(&mut self, other: Ranks) {
        for (held, told) in self.0.iter_mut().zip(other.0) {
            *held = (*held).max(told);
        }
    }

    /// The strongest telling of this field.
    pub fn holder(self, field: Field) -> Option<Telling> {
        Telling::ALL.into_iter().find(|telling| telling.index() as u8 + 1 == self.0[field as usize])
    }
}

/// What the assembler remembers of a part beside what people see.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    pub names: Vec<Name>,
    pub at: Positions,
    pub ranks: Ranks,
    /// The call was rejected in a way that does not say whether a person said no or
    /// interrupted; a question asked about it decides.
    pub rejected: bool,
    /// A person was asked about the call, and it waited for the answer.
    pub asked: bool,
    /// Some telling says that the call was denied: what another calls interrupted is denied.
    pub denied: bool,
    /// A call that only hooks told of, in a turn that its log or stream has told to the end: it
    /// was made elsewhere, by a sub-agent of a version whose hooks do not say so. Not shown.
    pub foreign: bool,
    /// Where it stands among the things with the same content: whether hooks counted it, the
    /// content, and which one it is.
    pub alike: Vec<(bool, u64, u32)>,
    /// Prose that the end of its turn closed before its own end came: it may still grow.
    pub unfinished: bool,
}
