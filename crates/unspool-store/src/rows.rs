//! The rows of the archive, independent of the database. The recorder's `Packer` (`unspool-ingest`)
//! builds them, a `Store` writes them. Columns only repeat facts that are in the parts, so that SQL
//! can query them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use unspool_model::assemble::Cursor;
use unspool_model::id::{PartId, SessionId, StepId, TurnId};
use unspool_model::note::NoteTarget;
use unspool_model::part::{Body, Part};
use unspool_model::prompt::PromptRecord;
use unspool_model::provenance::Feed;
use unspool_model::session::{Session, Step, Turn};
use unspool_model::source::{FileStamp, Fingerprint, RecordCounts};
pub use unspool_view::present::tools::edited_paths;

/// A row number. The recorder assigns row numbers, so a batch can be built without the database.
pub type RowId = i64;

/// The writes of one transaction.
#[derive(Default)]
pub struct Batch {
    pub sessions: Vec<SessionWrite>,
    pub files: Vec<FileRow>,
    /// Compressed chunks that part rows point into.
    pub chunks: Vec<Chunk>,
    /// Large payloads, stored once.
    pub contents: Vec<Content>,
    /// The index segment of the parts in this batch.
    pub segment: Option<unspool_index::Segment>,
    /// Parts that are not in a segment yet.
    pub unindexed: Vec<RowId>,
    /// Parts in this segment that may be marked as unindexed in the database.
    pub indexed: Vec<RowId>,
    /// Warnings to delete, by file and text, before `warnings` are inserted.
    pub outdated_warnings: Vec<(RowId, &'static str)>,
    pub warnings: Vec<WarningRow>,
    /// Texts that other machines sent.
    pub received: Vec<ReceivedWrite>,
}

impl Batch {
    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.files.is_empty()
            && self.warnings.is_empty()
            && self.received.is_empty()
    }
}

/// What changed in one session.
pub struct SessionWrite {
    pub row: RowId,
    pub id: SessionId,
    /// The head, if it changed.
    pub head: Option<Session>,
    /// The number of events applied, this batch included.
    pub seq: u64,
    pub completeness: String,
    /// True if a sub-agent wrote it.
    pub sub_agent: bool,
    /// The sources and cursors that changed.
    pub sources: Vec<SourceRow>,
    pub cursors: Vec<Cursor>,
    pub turns: Vec<TurnWrite>,
    pub parts: Vec<PartRow>,
    /// Merged turns: the row that goes, and the row it was merged into.
    pub merged: Vec<(RowId, RowId)>,
    pub deleted_parts: Vec<RowId>,
    /// Turns and parts that got another id or were merged into another, in order: their notes follow.
    pub moved_targets: Vec<(NoteTarget, NoteTarget)>,
    /// Parts that went to another turn, and that turn: so do their notes.
    pub moved_parts: Vec<(PartId, TurnId)>,
    pub snapshots: Vec<Snapshot>,
    /// What model calls were sent, in the order in which the sources say it.
    pub prompts: Vec<PromptRecord>,
    /// Number of skipped events, by reason.
    pub skip_counts: BTreeMap<String, u64>,
}

/// A turn's head and its steps.
pub struct TurnWrite {
    pub row: RowId,
    /// Without its parts and its steps.
    pub turn: Turn,
    /// Its steps from this index on; those before are stored and unchanged.
    pub steps_from: usize,
    pub steps: Vec<Step>,
    /// Digests of the names of the turn, its steps and parts.
    pub names: NameDigests,
    /// Digests to remove from the stored ones, if others are added to them.
    pub forgotten_names: Vec<u64>,
    /// True if nothing in the turn is open.
    pub settled: bool,
}

/// All name digests of a turn, or those to add to the stored ones.
pub enum NameDigests {
    All(Vec<u64>),
    Added(Vec<u64>),
}

/// The author of a part.
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

/// One part: its columns and the location of its payload.
pub struct PartRow {
    pub row: RowId,
    pub turn: RowId,
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
    pub counted_calls: Option<i64>,
    /// The first source record of the part: source, offset, length.
    pub evidence: Option<(u16, u64, u32)>,
    /// Prose, uncompressed.
    pub text: Option<String>,
    pub payload: Payload,
    /// The part already has a row, and may have a journal entry.
    pub stored: bool,
    /// The turn that its row is in, if that is another one.
    pub moved_from: Option<RowId>,
    pub content: Option<u128>,
    /// Stored but not shown.
    pub hidden: bool,
    /// The sub-agents of an agent part: agent id, call id, session.
    pub agents: Vec<(String, String, SessionId)>,
    /// The paths of the files that it changed.
    pub edited: Vec<String>,
}

/// Where the payload of a part is stored.
pub enum Payload {
    /// In a chunk of this batch: index of the chunk, offset, length.
    Chunk { chunk: usize, at: usize, length: usize },
    /// In the journal, because the part or its turn is still open and will change soon.
    Journal(Vec<u8>),
}

pub struct Chunk {
    pub row: RowId,
    /// None if several sessions may share its payloads.
    pub session: Option<RowId>,
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

/// A file that was read, its stamp and fingerprint, and how far it was read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FileRow {
    pub row: RowId,
    pub path: String,
    pub stamp: FileStamp,
    /// The part that was read. Reading resumes at its end.
    pub print: Fingerprint,
    /// The line number there.
    pub line: u64,
    /// The decoder's state there, to resume without re-reading the file.
    pub saved: Option<String>,
    /// Why the file was rejected.
    pub refused: Option<String>,
}

/// How far the file of another machine has been received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    pub file: RowId,
    /// How often the sender has replaced the file.
    pub generation: u32,
    /// The part of the sender's file that was taken, before redaction.
    pub print: Fingerprint,
    /// The sender said that nobody writes the file any more.
    pub idle: bool,
}

/// A text that another machine sent, to be appended to what was received of its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedWrite {
    pub state: Received,
    /// Where the text begins in what was received. 0 drops what was received before.
    pub start: u64,
    pub text: Vec<u8>,
}

/// A stored piece of what was received of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedPiece {
    pub start: u64,
    pub length: u64,
}

/// The name of a file of another machine.
pub fn received_name(member: &str, machine: &str, path: &str) -> String {
    let root = if path.starts_with('/') { "" } else { "/" };
    format!("{RECEIVED}{member}@{machine}{root}{path}")
}

/// The member who sent a file of another machine. None for a file of this one.
pub fn received_from(name: &str) -> Option<&str> {
    let (member, _) = name.strip_prefix(RECEIVED)?.split_once('@')?;
    Some(member)
}

/// No path begins like this: those of files are absolute.
const RECEIVED: &str = "ship://";

/// What stands for a path that the archive is to forget: enough to recognise the file, and no more.
pub fn forgotten_path(path: &str) -> String {
    format!("{FORGOTTEN}{:032x}", xxhash_rust::xxh3::xxh3_128(path.as_bytes()))
}

pub fn is_forgotten(path: &str) -> bool {
    path.starts_with(FORGOTTEN)
}

/// No path begins like this: those of files are absolute.
const FORGOTTEN: &str = "forgotten:";

/// One file as a source of one session.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceRow {
    pub file: RowId,
    /// Its index in the session's list of sources.
    pub number: u16,
    pub feed: Feed,
    /// A digest of the first record.
    pub first: u64,
    pub sub_agent: bool,
    pub records: RecordCounts,
}

/// A warning about a file, with the bytes that could not be read.
#[derive(Clone, PartialEq, Debug)]
pub struct WarningRow {
    pub file: RowId,
    pub session: Option<RowId>,
    pub line: u64,
    pub what: String,
    pub bytes: Vec<u8>,
}

/// Milliseconds, for columns that queries compare. The exact time is in the payload.
pub fn milliseconds(at: Option<Timestamp>) -> Option<i64> {
    at.map(|at| at.as_millisecond())
}

/// The place of the n-th body of the user's message. Negative: before all parts of the reply.
pub fn user_place(nth: usize, of: usize) -> i64 {
    nth as i64 - of as i64
}

/// The id of the n-th body of the user's message in a turn.
pub fn user_part_id(turn: TurnId, nth: usize) -> PartId {
    let nth = (nth as u64).to_le_bytes();
    PartId(unspool_model::id::Id::derive([turn.0.bytes().as_slice(), b"user", &nth]))
}

/// The columns of a part that are derived from its body.
pub struct PartColumns {
    pub kind: &'static str,
    pub state: Option<&'static str>,
    pub tool: Option<String>,
    pub call_id: Option<String>,
    pub duration: Option<i64>,
    /// Tool calls that the part stands for, if it is a count of them.
    pub counted_calls: Option<i64>,
}

pub fn columns(body: &Body) -> PartColumns {
    let plain = PartColumns {
        kind: body.kind().name(),
        state: None,
        tool: None,
        call_id: None,
        duration: None,
        counted_calls: body.counted_calls().map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
    };
    match body {
        Body::Tool(tool) => PartColumns {
            state: Some(tool.state.name()),
            tool: Some(tool.name.clone()),
            call_id: Some(tool.call_id.clone()).filter(|id| !id.is_empty()),
            duration: tool.duration_ms.and_then(|took| i64::try_from(took).ok()),
            ..plain
        },
        Body::Reasoning(reasoning) => PartColumns {
            duration: reasoning.duration_ms.and_then(|took| i64::try_from(took).ok()),
            ..plain
        },
        Body::Agent(agents) => PartColumns { call_id: Some(agents.call_id.clone()), ..plain },
        Body::SkillLoad(skill) => PartColumns { call_id: skill.call_id.clone(), ..plain },
        Body::Patch(patch) => PartColumns { call_id: patch.call_id.clone(), ..plain },
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

/// True if a part is complete and can be packed and indexed.
pub fn is_settled(part: &Part) -> bool {
    !part.body.is_open()
}

/// The sub-agents of an agent part: agent id, call id, session.
pub fn sub_agents(agent: &str, body: &Body) -> Vec<(String, String, SessionId)> {
    let Body::Agent(found) = body else { return Vec::new() };
    found
        .agents
        .iter()
        // An agent with a temporary id has no session yet.
        .filter(|sub_agent| !sub_agent.id.starts_with("temp_"))
        .map(|sub_agent| {
            (sub_agent.id.clone(), found.call_id.clone(), SessionId::of(agent, &sub_agent.id))
        })
        .collect()
}
