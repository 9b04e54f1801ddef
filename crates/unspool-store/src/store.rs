//! The `Store` trait, its data types and its errors, independent of the database. The contract
//! suite in `crates/unspool-ingest/tests/contract` is what every implementation must pass.

mod edited_file;
mod error;
mod view;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;
use unspool_model::assemble::{Cursor, TurnStub};
use unspool_model::id::{SessionId, StepId, TurnId};
use unspool_model::note::{Note, NoteTarget};
use unspool_model::part::{Part, Place};
use unspool_model::prompt::PromptRecord;
use unspool_model::provenance::Name;
use unspool_model::session::{Session, Turn, Usage};
use unspool_model::summary::{Summary, UsageScope};

use crate::rows::{Batch, FileRow, RowId, Snapshot, SourceRow, WarningRow};

pub use edited_file::{EditedFile, EditedFiles};
pub use error::{ArchivePlace, StoreError, StoreErrorKind};
pub use view::{View, Viewer};

/// A session as it is stored, without its turns.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredSession {
    pub row: RowId,
    pub summary: Summary,
    /// The name that the user gave it.
    pub name: Option<String>,
    pub sub_agent: bool,
    pub seq: u64,
    /// Number of skipped events, by reason.
    pub skip_counts: BTreeMap<String, u64>,
}

/// Which sessions to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionFilter {
    pub agent: Option<String>,
    /// The project's folder, or a substring of its path.
    pub project: Option<String>,
    pub tag: Option<String>,
    /// The full name of a model that the session used.
    pub model: Option<String>,
    /// Only sessions with errors.
    pub with_errors: bool,
    /// Milliseconds: only sessions that ended at or after this time.
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// Include sub-agents without turns.
    pub with_empty: bool,
    /// Exclude the sessions of sub-agents.
    pub without_agents: bool,
    /// Only sessions after this position in the list.
    pub after: Option<ListPosition>,
    pub limit: Option<u64>,
}

impl SessionFilter {
    /// What the figures in a row of the list include. Sub-agents that are rows themselves do not
    /// count in the row of their parent too.
    pub fn scope(&self) -> UsageScope {
        match self.without_agents {
            true => UsageScope::WithAgents,
            false => UsageScope::Own,
        }
    }

    /// True if a session passes the filter. Ignores `after` and `limit`.
    pub fn allows(&self, stored: &StoredSession) -> bool {
        let StoredSession { summary, sub_agent, .. } = stored;
        let session = &summary.session;
        let time = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        let (started, last) = (time(summary.started), time(summary.last_heard()));
        let is =
            |wanted: &Option<String>, is: &dyn Fn(&String) -> bool| wanted.as_ref().is_none_or(is);
        let project = session.facts.project.as_deref().unwrap_or_default();
        is(&self.agent, &|agent| *agent == session.agent)
            && is(&self.project, &|wanted| project.contains(wanted.as_str()))
            && is(&self.model, &|model| summary.models.contains(model))
            && is(&self.tag, &|tag| summary.tags.contains(tag))
            && (!self.with_errors || summary.errors > 0)
            && (self.with_empty || !*sub_agent || summary.turns > 0)
            && !(self.without_agents && stored.is_agent())
            && self.since.is_none_or(|since| last.is_some_and(|last| last >= since))
            && self.until.is_none_or(|until| started.is_some_and(|started| started < until))
    }
}

impl StoredSession {
    /// True if it is a sub-agent's session, by its own log or by its parent's.
    pub fn is_agent(&self) -> bool {
        self.sub_agent || self.summary.session.parent.is_some()
    }
}

/// A position in the session list: start time in milliseconds and id of the last session on the
/// page before. A keyset, so it stays valid while sessions are added and deleted.
pub type ListPosition = (Option<i64>, SessionId);

/// A stored turn with its row numbers.
pub struct StoredTurn {
    pub row: RowId,
    /// With every part, hidden ones included.
    pub turn: Turn,
    /// The rows of its parts.
    pub parts: Vec<RowId>,
    /// The rows of the user's message.
    pub user: Vec<RowId>,
    /// The rows of parts whose payload is in the journal.
    pub open: Vec<RowId>,
}

/// What the recorder needs to resume a session.
pub struct SessionOutline {
    pub stored: StoredSession,
    pub turns: Vec<(RowId, TurnStub)>,
    /// Turns with open parts.
    pub unsettled: Vec<TurnId>,
    pub cursors: Vec<Cursor>,
    pub sources: Vec<SourceRow>,
}

/// Everything stored about a session except its turns, for exports.
pub struct SessionExport {
    /// The stored head, without the fields that reads join in (parent, state).
    pub session: Session,
    pub sources: Vec<SourceRow>,
    pub cursors: Vec<Cursor>,
    /// Each with the path of its file.
    pub warnings: Vec<(String, WarningRow)>,
    pub snapshots: Vec<Snapshot>,
    pub prompts: Vec<PromptRecord>,
}

/// A model call of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct StepRequest {
    pub turn: u32,
    /// Its number in the turn, from 1.
    pub step: u32,
    pub id: StepId,
    pub name: Name,
    pub model: Option<String>,
    pub usage: Usage,
    /// The request that it answers, if its source names it.
    pub request: Option<Arc<str>>,
    /// It has tokens, or something that the model said or called.
    pub has_reply: bool,
}

/// The next free row number of each table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextRows {
    pub session: RowId,
    pub turn: RowId,
    pub part: RowId,
    pub chunk: RowId,
    pub file: RowId,
}

/// Which turns of a session to load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnWindow {
    All,
    /// The turn with this number.
    Turn(u32),
    /// `count` turns, starting at this number.
    From {
        number: u32,
        count: u32,
    },
}

/// The number of parts of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnSize {
    pub id: TurnId,
    pub number: u32,
    pub parts: u64,
}

/// A sub-agent's session and the position of the agent part that started it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubagentRef {
    pub session: SessionId,
    pub turn: u32,
    pub place: Place,
}

/// The user's prompt of one turn, for an outline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TurnPrompt {
    pub turn: TurnId,
    pub number: u32,
    /// The beginning of the user's text.
    pub said: String,
    pub errors: u64,
}

/// The last prompt of a session, and its compactions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LastPrompt {
    /// `None` if there was no model call since the last compaction.
    pub tokens: Option<u64>,
    pub model: Option<String>,
    pub compactions: u64,
    /// The tokens before the last compaction that the agent made by itself, if it reports them.
    pub compacted_at: Option<u64>,
}

/// The result of checking the archive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckReport {
    pub sessions: u64,
    pub turns: u64,
    pub parts: u64,
    /// At most the first 100 problems.
    pub problems: Vec<String>,
    /// The number of all problems.
    pub count: u64,
}

/// How much maintenance to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maintenance {
    /// Only what has passed its threshold.
    IfDue,
    /// Everything: merge to one segment and free unused space.
    Full,
}

/// Which messages to list (R-001-36).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MessageFilter {
    /// `user` or `assistant`.
    pub role: Option<String>,
    pub has_tool_calls: Option<bool>,
    /// Only turns that call this tool.
    pub tool_name: Option<String>,
    /// Of this turn.
    pub execution: Option<TurnId>,
    /// Only messages after this `sequence`.
    pub after: Option<u64>,
    pub limit: Option<u64>,
}

/// One side of a turn. `content` is derived from the text parts (R-000-23).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredMessage {
    pub id: String,
    pub execution: TurnId,
    pub role: String,
    pub sequence: u64,
    pub has_tool_calls: bool,
    pub has_reasoning: bool,
    pub has_files: bool,
    pub text_preview: String,
    pub content: String,
    /// Milliseconds.
    pub created_at: Option<i64>,
}

/// A stored warning.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredWarning {
    pub file: String,
    pub line: u64,
    pub what: String,
}

/// An archive: what its recorder reads and writes. Everything that people see of it is read through
/// a [`View`].
pub trait Store: Clone + Send + Sync + 'static {
    type View: View;

    /// The archive as one viewer may see it.
    fn view(&self, viewer: Viewer) -> Self::View;

    /// Fails if the archive was deleted, moved or replaced since it was opened. Every read and
    /// write does this as well.
    fn check_identity(&self) -> Result<(), StoreError>;

    /// Writes a batch in one transaction.
    fn write(&self, batch: Batch) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn next_rows(&self) -> impl Future<Output = Result<NextRows, StoreError>> + Send;

    /// The saved decoder state of a file, to resume reading it.
    fn saved(&self, file: RowId)
    -> impl Future<Output = Result<Option<String>, StoreError>> + Send;

    fn files(&self) -> impl Future<Output = Result<Vec<FileRow>, StoreError>> + Send;

    /// The row of the file with this path.
    fn file_row(
        &self,
        path: String,
    ) -> impl Future<Output = Result<Option<RowId>, StoreError>> + Send;

    /// What the recorder needs to resume a session. Reads its own earlier writes.
    fn outline(
        &self,
        id: SessionId,
    ) -> impl Future<Output = Result<Option<SessionOutline>, StoreError>> + Send;

    /// One turn, for the recorder. Reads its own earlier writes.
    fn turn(
        &self,
        session: RowId,
        id: TurnId,
    ) -> impl Future<Output = Result<Option<StoredTurn>, StoreError>> + Send;

    /// One part, for the recorder. Reads its own earlier writes.
    fn part(&self, row: RowId) -> impl Future<Output = Result<Option<Part>, StoreError>> + Send;

    /// True if the user deleted this session. Syncing does not bring it back.
    fn is_deleted(&self, id: SessionId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Indexes new parts and merges index segments.
    fn maintain(&self, how: Maintenance) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Does a piece of the maintenance that is due, so that other writes do not wait for all of it.
    /// False if nothing is due.
    fn maintain_a_little(&self) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Rebuilds all derived data: columns, sums and the search index. Returns the number of parts.
    fn rebuild(&self) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Verifies the database: references, payloads, derived columns, sums and the search index.
    fn check(&self) -> impl Future<Output = Result<CheckReport, StoreError>> + Send;

    /// Sets or clears the user's name for a session.
    fn rename(
        &self,
        session: RowId,
        name: Option<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn tag(
        &self,
        session: RowId,
        add: Vec<String>,
        remove: Vec<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes a note in place of the one that its target has.
    fn set_note(
        &self,
        session: SessionId,
        note: Note,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn remove_note(
        &self,
        session: SessionId,
        target: NoteTarget,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes a session and its sub-agents' sessions, and records that syncing must not restore
    /// them. Returns the number of deleted sessions.
    fn delete(&self, session: RowId) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Allows a deleted session to be recorded again. Returns true if it was deleted.
    fn undelete(&self, id: SessionId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Forgets where the logs are that were last written before a time, in nanoseconds: their paths
    /// and the digests of their content. Returns the number of files.
    fn forget_logs(&self, before: i64) -> impl Future<Output = Result<u64, StoreError>> + Send;

    fn setting(
        &self,
        name: String,
    ) -> impl Future<Output = Result<Option<String>, StoreError>> + Send;

    fn set(
        &self,
        name: String,
        value: Option<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes a session so that the next sync re-reads its files. Its name and tags are kept and
    /// reapplied then.
    fn forget(&self, session: RowId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes the sessions of a file whose sender takes back what it sent, and their bytes. Returns
    /// the names of their other files, from which they are to be recorded again.
    fn withdraw(&self, file: RowId)
    -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;
}
