//! Provenance: feeds, names and evidence. A session may have several feeds: the agent's
//! log, its live stream, its hooks. Two feeds describe the same turn, step or part if they share a
//! name for it. Values are ranked by feed and not by time, so arrival order cannot change the
//! result. Decoders fill these types, the assembler merges by them, the store keeps them per part.

mod feed_questions;

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::rank::{PartField, Ranks};

pub use feed_questions::{AskOutcome, FeedQuestions};

/// One source's account of a session. A later variant outranks an earlier one. The strongest feed
/// that covers a turn is the turn's spine: it places the parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feed {
    /// Payloads that the agent passes to our hook command while it works.
    Hooks,
    /// The live protocol, token by token.
    Stream,
    /// The agent's own files: a log, a rollout, a database.
    Log,
}

impl Feed {
    pub const ALL: [Feed; 3] = [Feed::Hooks, Feed::Stream, Feed::Log];

    pub fn index(self) -> usize {
        self as usize
    }
}

/// A source's name for a turn, a step or a part. Stronger names come first; the id is derived
/// from the strongest known name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Everything before the first prompt.
    Preamble,
    /// A tool call, by its id.
    Call(Arc<str>),
    /// The part for the agents that a tool call started.
    AgentsOf(Arc<str>),
    /// A sub-agent, by its own id. Resolves to the agents part of its call.
    Agent(Arc<str>),
    /// A block of a model message, by message id and index.
    Block(Arc<str>, u32),
    /// A model message: a step.
    Message(Arc<str>),
    /// A prompt, by its id: a turn.
    Prompt(Arc<str>),
    /// A record of the source, by its own id.
    Record(Arc<str>),
    /// The n-th occurrence of this content hash in the turn (for a turn: in the session). Matches
    /// feeds that share no ids.
    #[serde(rename = "alike")]
    ByContent(u64, u32),
    /// A later fragment of the block that `ByContent` names, separate because another part came
    /// in between. A stronger feed that has the complete block covers its fragments.
    #[serde(rename = "piece")]
    ContentFragment(u64, u32, u32),
    /// The n-th part or turn that this feed opened, for sources without names.
    Nth(Feed, u32),
    /// The part that the end rule added.
    Ending,
    /// The session as a whole, for what belongs to no turn, such as tokens that an agent reports
    /// per session. Leads to the preamble, but no feed reaches the preamble by it.
    Session,
}

impl Evidence {
    /// The source number of the recorder itself, for what no record reports (`EndReason::Lost`).
    pub const RECORDER: u16 = u16::MAX;
}

/// The seed of XXH3 changes a text of at most 16 bytes in a way that another text of the same length
/// may undo: with the kind and the index as the seed, block 0 of the message `m6` and block 1 of
/// `m66` had one digest. In names with such texts they follow the text instead.
const SHORT_TEXT: usize = 16;

impl Name {
    /// A 64-bit digest, the same on every machine. The name index holds digests to stay small.
    pub fn digest(&self) -> u64 {
        self.digest_of(|kind, text| match text.len() {
            1..=SHORT_TEXT => {
                let mut bytes = [0; SHORT_TEXT + 9];
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                // No UTF-8 text has this byte.
                bytes[text.len()] = 0xff;
                bytes[text.len() + 1..text.len() + 9].copy_from_slice(&kind.to_le_bytes());
                xxh3_64(&bytes[..text.len() + 9])
            }
            _ => xxh3_64_with_seed(text.as_bytes(), kind),
        })
    }

    /// The digest that the first archives have of a name with a short text. Some names of one
    /// session share it (see [`SHORT_TEXT`]), so it only says which turn to look at.
    pub fn shared_digest(&self) -> u64 {
        self.digest_of(|kind, text| xxh3_64_with_seed(text.as_bytes(), kind))
    }

    fn digest_of(&self, of: impl Fn(u64, &str) -> u64) -> u64 {
        match self {
            Name::Preamble => of(1, ""),
            Name::Call(id) => of(2, id),
            Name::AgentsOf(id) => of(3, id),
            Name::Agent(id) => of(4, id),
            Name::Block(message, index) => of(5 | u64::from(*index) << 8, message),
            Name::Message(id) => of(6, id),
            Name::Prompt(id) => of(7, id),
            Name::Record(id) => of(8, id),
            Name::ByContent(content, nth) => {
                xxh3_64_with_seed(&content.to_le_bytes(), 9 | u64::from(*nth) << 8)
            }
            Name::ContentFragment(content, nth, piece) => {
                let whole = Name::ByContent(*content, *nth).digest();
                xxh3_64_with_seed(&whole.to_le_bytes(), 12 | u64::from(*piece) << 8)
            }
            Name::Nth(feed, nth) => {
                xxh3_64_with_seed(&[feed.index() as u8], 10 | u64::from(*nth) << 8)
            }
            Name::Ending => of(11, ""),
            Name::Session => of(13, ""),
        }
    }

    /// The text from which ids are derived. It is part of the stored format: variants may be
    /// renamed in the code, never here.
    pub fn id_text(&self) -> String {
        match self {
            Name::ByContent(content, nth) => format!("Alike({content}, {nth})"),
            Name::ContentFragment(content, nth, piece) => {
                format!("Piece({content}, {nth}, {piece})")
            }
            Name::Preamble
            | Name::Call(_)
            | Name::AgentsOf(_)
            | Name::Agent(_)
            | Name::Block(..)
            | Name::Message(_)
            | Name::Prompt(_)
            | Name::Record(_)
            | Name::Nth(..)
            | Name::Ending
            | Name::Session => format!("{self:?}"),
        }
    }

    /// True if the name is unique only within its turn.
    pub fn is_local(&self) -> bool {
        match self {
            Name::ByContent(..) | Name::ContentFragment(..) | Name::Nth(..) | Name::Ending => true,
            Name::Preamble
            | Name::Call(_)
            | Name::AgentsOf(_)
            | Name::Agent(_)
            | Name::Block(..)
            | Name::Message(_)
            | Name::Prompt(_)
            | Name::Record(_)
            | Name::Session => false,
        }
    }

    /// The name by which a turn is stored.
    pub fn of_turn(&self) -> &Name {
        if *self == Name::Session { &Name::Preamble } else { self }
    }
}

/// The source record behind a value: enough to find it again and to verify that it is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Evidence {
    #[serde(rename = "telling")]
    pub feed: Feed,
    /// Index of the file or stream in the session's list of sources.
    pub source: u16,
    /// Where the record begins: a byte offset, a row number or a frame number.
    pub offset: u64,
    /// How long it is, in bytes.
    pub length: u32,
    pub digest: u64,
}

/// The position of a turn, step or part in each feed that has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Positions(pub [Option<u32>; 3]);

impl Positions {
    pub fn of(self, feed: Feed) -> Option<u32> {
        self.0[feed.index()]
    }

    pub fn set(&mut self, feed: Feed, position: u32) {
        self.0[feed.index()].get_or_insert(position);
    }

    /// The strongest feed that has it.
    pub fn strongest(self) -> Option<Feed> {
        Feed::ALL.into_iter().rev().find(|feed| self.of(*feed).is_some())
    }

    /// True if any single feed has both.
    pub fn overlaps(self, other: Positions) -> bool {
        self.0.iter().zip(other.0).any(|(own, other)| own.is_some() && other.is_some())
    }
}

/// Why a part is kept and not shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HiddenReason {
    /// A sub-agent made the call: only hooks report it, in a turn that its log or stream covers to
    /// the end. Claude Code hooks before 2.1.197 do not say whose call it is.
    SubAgentCall,
    /// A fragment of prose that a stronger feed has complete.
    CoveredFragment,
}

/// What the assembler needs to know about a part and no surface shows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "StoredOrigin")]
pub struct Origin {
    pub names: Vec<Name>,
    pub at: Positions,
    pub ranks: Ranks<PartField>,
    /// The call was rejected and the source does not say whether a person denied or interrupted
    /// it. Denied if `awaited_answer` is set.
    pub rejected: bool,
    /// The call waited for a person's answer.
    #[serde(rename = "asked")]
    pub awaited_answer: bool,
    /// Some feed reports the call as denied. Overrides `interrupted` from another feed.
    pub denied: bool,
    #[serde(rename = "foreign", serialize_with = "serialize_hidden")]
    pub hidden: Option<HiddenReason>,
    /// Its occurrence numbers per content hash: (counted by hooks, content hash, number).
    #[serde(rename = "alike")]
    pub occurrences: Vec<(bool, u64, u32)>,
    /// Prose that the end of its turn closed before the block ended. It may still grow.
    pub unfinished: bool,
    /// Of prose that a stream reported without a name: words that the log has and that are not
    /// shown here, with the offset in the shown text where each stood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<(usize, String)>,
    /// Of a call: what each feed asked about it, sorted by feed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<FeedQuestions>,
    /// The feeds that have it in another turn, sorted. A stronger feed has it in this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Feed>,
}

impl Origin {
    pub fn is_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// Notes that this feed has the part in another turn.
    pub fn add_elsewhere(&mut self, feed: Feed) {
        if let Err(at) = self.elsewhere.binary_search(&feed) {
            self.elsewhere.insert(at, feed);
        }
    }
}

/// Archives and exports have only whether a part is hidden. The reason follows from its names.
fn serialize_hidden<S: Serializer>(
    hidden: &Option<HiddenReason>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(hidden.is_some())
}

#[derive(Deserialize)]
struct StoredOrigin {
    names: Vec<Name>,
    at: Positions,
    ranks: Ranks<PartField>,
    rejected: bool,
    #[serde(rename = "asked")]
    awaited_answer: bool,
    denied: bool,
    #[serde(rename = "foreign")]
    hidden: bool,
    #[serde(rename = "alike")]
    occurrences: Vec<(bool, u64, u32)>,
    unfinished: bool,
    #[serde(default)]
    cut: Vec<(usize, String)>,
    #[serde(default)]
    questions: Vec<FeedQuestions>,
    #[serde(default)]
    elsewhere: Vec<Feed>,
}

impl From<StoredOrigin> for Origin {
    fn from(stored: StoredOrigin) -> Origin {
        let fragment = |name: &Name| matches!(name, Name::ContentFragment(..));
        // Of parts without a name only prose is hidden.
        let unnamed = |name: &Name| matches!(name, Name::Nth(Feed::Stream, _));
        let is_fragment = stored.names.iter().any(fragment) || stored.names.iter().all(unnamed);
        let reason =
            if is_fragment { HiddenReason::CoveredFragment } else { HiddenReason::SubAgentCall };
        Origin {
            hidden: stored.hidden.then_some(reason),
            names: stored.names,
            at: stored.at,
            ranks: stored.ranks,
            rejected: stored.rejected,
            awaited_answer: stored.awaited_answer,
            denied: stored.denied,
            occurrences: stored.occurrences,
            unfinished: stored.unfinished,
            cut: stored.cut,
            questions: stored.questions,
            elsewhere: stored.elsewhere,
        }
    }
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;
