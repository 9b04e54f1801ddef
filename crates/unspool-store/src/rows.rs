//! What is written to an archive, free of any database: the recorder makes these, a store keeps
//! them, and the columns say nothing that the parts do not.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_core::assemble::Cursor;
use unspool_core::id::{PartId, SessionId, StepId, TurnId};
use unspool_core::part::{Body, Part};
use unspool_core::session::{Session, Step, Turn};
use unspool_core::telling::Telling;

/// The number of a row. Rows are numbered by the recorder, so that a batch can be prepared away
/// from the database.
pub type Row = i64;

/// One transaction's worth of writing.
#[derive(Default)]
pub struct Batch {
    pub sessions: Vec<SessionWrite>,
    pub files: Vec<FileRow>,
    /// Compressed pieces that part rows point into.
    pub chunks: Vec<Chunk>,
    /// Large payloads, stored once.
    pub contents: Vec<Content>,
    /// The words of the parts in this batch.
    pub segment: Option<crate::index::Segment>,
    /// Parts whose words are not in a segment yet.
    pub unindexed: Vec<Row>,
    /// Parts that may have been among those, and are in this segment.
    pub indexed: Vec<Row>,
    /// What was said of files and holds no longer, unless it is said again.
    pub outdated: Vec<(Row, &'static str)>,
    pub warnings: Vec<WarningRow>,
}

impl Batch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.files.is_empty() && self.warnings.is_empty()
    }
}

/// What changed in one session.
pub struct SessionWrite {
    pub row: Row,
    pub id: SessionId,
    /// The head, when it changed.
    pub head: Option<Session>,
    /// How many events were taken, this batch included.
    pub seq: u64,
    pub completeness: String,
    pub sources: Vec<SourceRow>,
    pub cursors: Vec<Cursor>,
    pub turns: Vec<TurnWrite>,
    pub parts: Vec<PartRow>,
    /// Turns that turned out to be another: their rows, and the other's.
    pub merged: Vec<(Row, Row)>,
    pub gone_parts: Vec<Row>,
    pub snapshots: Vec<Snapshot>,
    /// Events that were counted and not applied, by reason.
    pub oddities: BTreeMap<String, u64>,
}

/// A turn's head and its steps.
pub struct TurnWrite {
    pub row: Row,
    /// Without its parts and its steps.
    pub turn: Turn,
    pub steps: Vec<Step>,
    /// Digests of the names that lead into it; all of them, or those that are new.
    pub names: Names,
    /// Whether nothing in it goes on.
    pub settled: bool,
}

/// Digests of names.
pub enum Names {
    All(Vec<u64>),
    New(Vec<u64>),
}

/// Who speaks in a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    User,
    Reply,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Reply => "assistant",
        }
    }
}

/// One part: columns to ask for, and where its payload lies.
pub struct PartRow {
    pub row: Row,
    pub turn: Row,
    pub place: i64,
    pub id: PartId,
    pub role: Role,
    pub kind: &'static str,
    pub state: Option<&'static str>,
    pub tool: Option<String>,
    pub call_id: Option<String>,
    pub step: Option<StepId>,
    pub started: Option<i64>,
    pub ended: Option<i64>,
    pub duration: Option<i64>,
    /// The first record that told of it: source, offset, length.
    pub evidence: Option<(u16, u64, u32)>,
    /// Prose, as it is.
    pub text: Option<String>,
    pub payload: Payload,
    /// It has a row already, and perhaps a payload by itself.
    pub stored: bool,
    pub content: Option<u128>,
    /// Kept and not shown.
    pub hidden: bool,
    /// The sub-agents that it speaks of: their own ids, the call, their sessions.
    pub agents: Vec<(String, String, SessionId)>,
}

/// Where the rest of a part lies.
pub enum Payload {
    /// In a chunk of this batch: which one, where, how long.
    Chunk { chunk: usize, at: usize, length: usize },
    /// By itself, for it will change soon: the part or its turn is still open.
    Open(Vec<u8>),
}

pub struct Chunk {
    pub row: Row,
    /// None where its payloads may be shared.
    pub session: Option<Row>,
    pub data: Vec<u8>,
}

/// A large payload, in a chunk of the same batch.
pub struct Content {
    pub digest: u128,
    pub chunk: usize,
    pub at: usize,
    pub size: usize,
}

pub struct Snapshot {
    pub kind: String,
    pub sha256: String,
    pub content: String,
}

/// A file that was read: what it looked like and how far it was taken.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FileRow {
    pub row: Row,
    pub path: String,
    pub stamp: FileStamp,
    /// Where to read on, and the number of the line there.
    pub offset: u64,
    pub line: u64,
    /// Digests of its beginning and of what stands before `offset`.
    pub head: u64,
    pub tail: u64,
    /// What the decoder remembers, to read on without reading again.
    pub saved: Option<String>,
    /// Why nothing was taken from it.
    pub refused: Option<String>,
}

/// What the file system says of a file: hints that spare a look at its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileStamp {
    pub size: u64,
    pub modified: i64,
    pub changed: i64,
    pub inode: u64,
    pub device: u64,
}

/// What one file told of one session.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceRow {
    pub file: Row,
    /// Its place in the session's list of sources.
    pub number: u16,
    pub telling: Telling,
    /// A digest of the first record.
    pub first: u64,
    pub sub_agent: bool,
    pub records: Records,
}

/// The count of records by what became of them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Records {
    pub read: u64,
    pub in_parts: u64,
    pub metadata: u64,
    pub left_out: BTreeMap<String, u64>,
    pub unreadable: u64,
}

impl Records {
    pub fn add(&mut self, other: &Records) {
        self.read += other.read;
        self.in_parts += other.in_parts;
        self.metadata += other.metadata;
        self.unreadable += other.unreadable;
        for (kind, count) in &other.left_out {
            *self.left_out.entry(kind.clone()).or_default() += count;
        }
    }
}

/// Something a person should know about a file, with the bytes that could not be read.
#[derive(Clone, PartialEq, Debug)]
pub struct WarningRow {
    pub file: Row,
    pub session: Option<Row>,
    pub line: u64,
    pub what: String,
    pub bytes: Vec<u8>,
}

/// Milliseconds, for columns that people compare. The exact time is in the payload.
pub fn milliseconds(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.as_millisecond())
}

/// The place of the n-th thing that the user said: before everything else.
pub fn user_place(nth: usize, of: usize) -> i64 {
    nth as i64 - of as i64
}

/// The id of the n-th thing that the user said in a turn.
pub fn user_part_id(turn: TurnId, nth: usize) -> PartId {
    let nth = (nth as u64).to_le_bytes();
    PartId(unspool_core::id::Id::derive([turn.0.bytes().as_slice(), b"user", &nth]))
}

/// The columns of a part that its body gives.
pub(crate) struct Columns {
    pub kind: &'static str,
    pub state: Option<&'static str>,
    pub tool: Option<String>,
    pub call_id: Option<String>,
    pub duration: Option<i64>,
}

pub(crate) fn columns(body: &Body) -> Columns {
    let kind = body.kind().name();
    let plain = Columns { kind, state: None, tool: None, call_id: None, duration: None };
    match body {
        Body::Tool(tool) => Columns {
            state: Some(tool.state.name()),
            tool: Some(tool.name.clone()),
            call_id: Some(tool.call_id.clone()).filter(|id| !id.is_empty()),
            duration: tool.duration_ms.and_then(|took| i64::try_from(took).ok()),
            ..plain
        },
        Body::Reasoning(reasoning) => Columns {
            duration: reasoning.duration_ms.and_then(|took| i64::try_from(took).ok()),
            ..plain
        },
        Body::Agent(agents) => Columns { call_id: Some(agents.call_id.clone()), ..plain },
        Body::SkillLoad(skill) => Columns { call_id: skill.call_id.clone(), ..plain },
        Body::Patch(patch) => Columns { call_id: patch.call_id.clone(), ..plain },
        Body::Text(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => plain,
    }
}

/// Whether a part says nothing more by itself: worth packing, and worth finding.
pub fn is_settled(part: &Part) -> bool {
    match &part.body {
        Body::Text(text) => !text.open,
        Body::Reasoning(reasoning) => !reasoning.open,
        Body::Tool(tool) => tool.state.is_terminal(),
        Body::Agent(agents) => agents.agents.iter().all(|agent| agent.state.is_terminal()),
        Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => true,
    }
}
