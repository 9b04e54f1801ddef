//! What an archive can do, whatever database it is in. One suite of tests holds every
//! implementation to it.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use thiserror::Error;
use unspool_core::assemble::{Cursor, Outline};
use unspool_core::id::{PartId, SessionId, TurnId};
use unspool_core::part::{Part, Place};
use unspool_core::session::{Session, Turn};
use unspool_core::skeleton::Skeleton;
use unspool_core::summary::Summary;

use crate::choices::{Choices, ChoicesRequest};
use crate::pack::PackError;
use crate::rows::{Batch, FileRow, Records, Row, Snapshot, SourceRow, WarningRow};
use crate::search::{Findings, SearchRequest};
use crate::stats::{Stats, StatsRequest};

/// Why an archive could not do what it was asked. Each says what to do next.
#[derive(Debug, Error)]
pub enum StoreError {
    #[error("there is no archive at {0} yet; `unspool sync` makes one")]
    Missing(PathBuf),
    #[error(
        "{0} is a database of another program, and was left alone; choose another folder with --data"
    )]
    Foreign(PathBuf),
    #[error(
        "{path} was written by a newer Unspool (its version is {version}, this program knows \
         {known}); install the newer one, or choose another folder with --data"
    )]
    Newer { path: PathBuf, version: usize, known: usize },
    #[error("{0} was opened to be read only")]
    ReadOnly(PathBuf),
    #[error(
        "no space is left on the disk of {0}; what was stored before is safe: make room and run it again"
    )]
    Full(PathBuf),
    #[error(
        "{0} cannot be written: the file or its folder is read-only; change that, or choose another folder with --data"
    )]
    NotWritable(PathBuf),
    #[error(
        "{0} cannot be opened: it must be a file that you may read and write, as you may its folder; change that, or choose another folder with --data"
    )]
    NotOpened(PathBuf),
    #[error(
        "{path} is damaged ({what}); put a copy of it back, or move it away: then `unspool sync` \
         makes a new one from the agents' logs"
    )]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{path}: {error}; its disk may be full, broken or gone. What was stored before is safe: \
         mend that and run it again"
    )]
    Disk { path: PathBuf, error: rusqlite::Error },
    #[error("another program holds {0} for too long; end it, or try again")]
    Busy(PathBuf),
    #[error("{path}: {what}; it may be damaged: `unspool db check` says more")]
    Sqlite { path: PathBuf, what: String },
    #[error("a stored part cannot be read: {0}")]
    Packed(#[from] PackError),
    #[error("the index of words is damaged ({0}); `unspool db rebuild` makes it anew")]
    Index(crate::index::Corrupt),
    #[error(
        "the index of words in {path} is damaged ({error}); `unspool db rebuild` makes it anew"
    )]
    IndexIn { path: PathBuf, error: crate::index::Corrupt },
    #[error("the archive was closed")]
    Gone,
    #[error("{0}")]
    Bare(rusqlite::Error),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::Bare(error)
    }
}

impl From<rusqlite::types::FromSqlError> for StoreError {
    fn from(error: rusqlite::types::FromSqlError) -> StoreError {
        StoreError::Bare(error.into())
    }
}

impl StoreError {
    /// Says which file it was.
    pub(crate) fn at(self, path: &Path) -> StoreError {
        let path = path.to_owned();
        if let StoreError::Bare(error) = self {
            StoreError::sqlite(&path, error)
        } else if let StoreError::Packed(error) = self {
            StoreError::Damaged { path, what: format!("a stored part cannot be read: {error}") }
        } else if let StoreError::Index(error) = self {
            StoreError::IndexIn { path, error }
        } else {
            self
        }
    }

    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode;
        use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        let path = path.to_owned();
        let extended = error.sqlite_error().map(|error| error.extended_code);
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full(path),
            Some(ErrorCode::ReadOnly) => StoreError::NotWritable(path),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                StoreError::NotOpened(path)
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Damaged { path, what: first_line(&error) }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(path),
            // The index beside the write-ahead log finds no room: that is no "disk full" to SQLite.
            Some(ErrorCode::SystemIoFailure) if extended == Some(SQLITE_IOERR_SHMSIZE) => {
                StoreError::Full(path)
            }
            Some(ErrorCode::SystemIoFailure) => StoreError::Disk { path, error },
            Some(_) | None => StoreError::Sqlite { path, what: first_line(&error) },
        }
    }
}

/// SQLite may quote a schema or a query, line by line.
fn first_line(error: &rusqlite::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A session as it is stored, without its turns.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredSession {
    pub row: Row,
    pub summary: Summary,
    /// What the user calls it.
    pub name: Option<String>,
    pub sub_agent: bool,
    pub seq: u64,
    /// Events that were counted and not applied, by reason.
    pub oddities: BTreeMap<String, u64>,
}

/// Which sessions to list.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionFilter {
    pub agent: Option<String>,
    /// A project's folder, or a part of its path.
    pub project: Option<String>,
    pub tag: Option<String>,
    /// One of the models that it used, by its whole name.
    pub model: Option<String>,
    /// Only those in which something failed.
    pub with_errors: bool,
    /// Milliseconds: sessions that ended then or later.
    pub since: Option<i64>,
    pub until: Option<i64>,
    /// Also sub-agents in which nobody said anything.
    pub with_empty: bool,
    /// Without the sessions of sub-agents.
    pub without_agents: bool,
    /// Only what comes behind this one in the list.
    pub after: Option<After>,
    pub limit: Option<u64>,
}

impl SessionFilter {
    /// Whether a session is one of these: its place in the list and how many there are do not count.
    pub fn allows(&self, stored: &StoredSession) -> bool {
        let StoredSession { summary, sub_agent, .. } = stored;
        let session = &summary.session;
        let time = |at: Option<Timestamp>| at.map(Timestamp::as_millisecond);
        let (started, ended) = (time(summary.started), time(summary.ended));
        let is =
            |asked: &Option<String>, is: &dyn Fn(&String) -> bool| asked.as_ref().is_none_or(is);
        let project = session.facts.project.as_deref().unwrap_or_default();
        is(&self.agent, &|agent| *agent == session.agent)
            && is(&self.project, &|asked| project.contains(asked.as_str()))
            && is(&self.model, &|model| summary.models.contains(model))
            && is(&self.tag, &|tag| summary.tags.contains(tag))
            && (!self.with_errors || summary.errors > 0)
            && (self.with_empty || !*sub_agent || summary.turns > 0)
            && !(self.without_agents && stored.is_agent())
            && self.since.is_none_or(|since| ended.or(started).is_some_and(|last| last >= since))
            && self.until.is_none_or(|until| started.is_some_and(|started| started < until))
    }
}

impl StoredSession {
    /// Whether it is a sub-agent's: its own log says it, or the one who started it does.
    pub fn is_agent(&self) -> bool {
        self.sub_agent || self.summary.session.parent.is_some()
    }
}

/// A place in a list of sessions: when the last one that was told began, in milliseconds, and which
/// one it was. It holds when sessions come and go meanwhile.
pub type After = (Option<i64>, SessionId);

/// A stored turn with the rows that it lies in.
pub struct StoredTurn {
    pub row: Row,
    /// With every part, also those that are not shown.
    pub turn: Turn,
    /// The rows of its parts.
    pub parts: Vec<Row>,
    /// The rows of what the user said.
    pub user: Vec<Row>,
    /// Parts whose payload is by itself.
    pub open: Vec<Row>,
}

/// What the recorder needs to go on with a session.
pub struct SessionOutline {
    pub stored: StoredSession,
    pub turns: Vec<(Row, Outline)>,
    /// The turns in which something goes on.
    pub unsettled: Vec<TurnId>,
    pub cursors: Vec<Cursor>,
    pub sources: Vec<SourceRow>,
}

/// What is stored of a session beside its turns.
pub struct Archived {
    /// As it was told, without what is joined when it is read.
    pub session: Session,
    pub sources: Vec<SourceRow>,
    pub cursors: Vec<Cursor>,
    /// With the path of the file that each speaks of.
    pub warnings: Vec<(String, WarningRow)>,
    pub snapshots: Vec<Snapshot>,
}

/// The next free numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextRows {
    pub session: Row,
    pub turn: Row,
    pub part: Row,
    pub chunk: Row,
    pub file: Row,
}

/// Which turns of a session to load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    All,
    /// The turn with this number.
    Turn(u32),
    /// So many turns from this number on.
    From {
        number: u32,
        count: u32,
    },
}

/// How much there is in a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnSize {
    pub id: TurnId,
    pub number: u32,
    pub parts: u64,
}

/// A sub-agent's session, and the part that it is shown in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Relative {
    pub session: SessionId,
    pub turn: u32,
    pub place: Place,
}

/// A turn in one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prompt {
    pub turn: TurnId,
    pub number: u32,
    /// The beginning of what the user said.
    pub said: String,
    pub errors: u64,
}

/// What a check of the archive found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    pub sessions: u64,
    pub turns: u64,
    pub parts: u64,
    /// The first of them.
    pub problems: Vec<String>,
    /// How many there are.
    pub count: u64,
}

/// How much tidying to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tidy {
    /// What is due.
    WhenDue,
    /// All that can be done: one segment, no unused space.
    Thorough,
}

/// Which messages to list (R-001-36).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MessageFilter {
    /// `user` or `assistant`.
    pub role: Option<String>,
    pub has_tool_calls: Option<bool>,
    /// With a call of this tool.
    pub tool_name: Option<String>,
    /// Of this turn.
    pub execution: Option<TurnId>,
    /// Only what comes behind this `sequence`.
    pub after: Option<u64>,
    pub limit: Option<u64>,
}

/// One side of a turn. `content` is derived from the text parts (R-000-23).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
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

/// An archive.
pub trait Store: Clone + Send + Sync + 'static {
    /// Writes a batch, all of it or nothing.
    fn write(&self, batch: Batch) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn next_rows(&self) -> impl Future<Output = Result<NextRows, StoreError>> + Send;

    /// What the decoder of a file remembers, to read on.
    fn saved(&self, file: Row) -> impl Future<Output = Result<Option<String>, StoreError>> + Send;

    fn files(&self) -> impl Future<Output = Result<Vec<FileRow>, StoreError>> + Send;

    /// What the recorder needs to go on with a session. Sees what was written before it.
    fn outline(
        &self,
        id: SessionId,
    ) -> impl Future<Output = Result<Option<SessionOutline>, StoreError>> + Send;

    /// One turn, as the recorder needs it. Sees what was written before it.
    fn turn(
        &self,
        session: Row,
        id: TurnId,
    ) -> impl Future<Output = Result<Option<StoredTurn>, StoreError>> + Send;

    /// One part, as the recorder needs it. Sees what was written before it.
    fn part(&self, row: Row) -> impl Future<Output = Result<Option<Part>, StoreError>> + Send;

    /// Whether the user deleted this session: it does not come back by itself.
    fn is_deleted(&self, id: SessionId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    fn sessions(
        &self,
        filter: SessionFilter,
    ) -> impl Future<Output = Result<Vec<StoredSession>, StoreError>> + Send;

    /// What a list of sessions can be narrowed to, and sums over what it has.
    fn choices(
        &self,
        request: ChoicesRequest,
    ) -> impl Future<Output = Result<Choices, StoreError>> + Send;

    /// The sessions that a person may mean: our id or its start, or the agent's own id.
    fn find(
        &self,
        text: String,
    ) -> impl Future<Output = Result<Vec<StoredSession>, StoreError>> + Send;

    /// Turns in their order, as they are shown.
    fn turns(
        &self,
        session: Row,
        window: Window,
    ) -> impl Future<Output = Result<Vec<Turn>, StoreError>> + Send;

    /// How many parts each turn shows, in the order of the turns.
    fn sizes(&self, session: Row)
    -> impl Future<Output = Result<Vec<TurnSize>, StoreError>> + Send;

    /// What the user said first in each turn, in the order of the turns.
    fn prompts(&self, session: Row)
    -> impl Future<Output = Result<Vec<Prompt>, StoreError>> + Send;

    /// The tools that were called in a session, those called most first, and how often.
    fn tools(
        &self,
        session: Row,
    ) -> impl Future<Output = Result<Vec<(String, u64)>, StoreError>> + Send;

    /// The parts that may say what is to be done, in the order of the session.
    fn plans(&self, session: Row) -> impl Future<Output = Result<Vec<Part>, StoreError>> + Send;

    /// A turn without its parts, and what is known of them without reading them.
    fn skeleton(
        &self,
        session: Row,
        number: u32,
    ) -> impl Future<Output = Result<Option<Skeleton>, StoreError>> + Send;

    /// A turn without its parts.
    fn head(
        &self,
        session: Row,
        number: u32,
    ) -> impl Future<Output = Result<Option<Turn>, StoreError>> + Send;

    /// Some parts of a turn, in their order: those at these places.
    fn parts(
        &self,
        session: Row,
        number: u32,
        places: Vec<Place>,
    ) -> impl Future<Output = Result<Vec<Part>, StoreError>> + Send;

    /// The turn and the place of a part. Who knows the turn says it: a session may be long.
    fn locate(
        &self,
        session: Row,
        turn: Option<u32>,
        part: PartId,
    ) -> impl Future<Output = Result<Option<(u32, Place)>, StoreError>> + Send;

    /// The sub-agents of a session, nested ones too, and where in it they were started.
    fn relatives(
        &self,
        session: Row,
    ) -> impl Future<Output = Result<Vec<Relative>, StoreError>> + Send;

    /// Looks for words in everything that was stored.
    fn search(
        &self,
        request: SearchRequest,
    ) -> impl Future<Output = Result<Findings, StoreError>> + Send;

    /// Figures over everything that was stored.
    fn stats(
        &self,
        request: StatsRequest,
    ) -> impl Future<Output = Result<Stats, StoreError>> + Send;

    /// Keeps the index in order.
    fn tidy(&self, how: Tidy) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Derives anew what is derived: columns, sums and the index of words. Says how many parts
    /// there are.
    fn rebuild(&self) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Holds everything against everything.
    fn check(&self) -> impl Future<Output = Result<Checked, StoreError>> + Send;

    /// Gives a session a name of the user's, or takes it away.
    fn rename(
        &self,
        session: Row,
        name: Option<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn tag(
        &self,
        session: Row,
        add: Vec<String>,
        remove: Vec<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes a session and its sub-agents' sessions, and remembers not to bring them back. Says
    /// how many are gone.
    fn delete(&self, session: Row) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Lets a deleted session come back. Says whether it was deleted.
    fn undelete(&self, id: SessionId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    fn setting(
        &self,
        name: String,
    ) -> impl Future<Output = Result<Option<String>, StoreError>> + Send;

    fn set(
        &self,
        name: String,
        value: Option<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What is stored of a session beside its turns, as it was told.
    fn archived(&self, session: Row) -> impl Future<Output = Result<Archived, StoreError>> + Send;

    /// Turns in their order with everything in them, also what is not shown.
    fn whole_turns(
        &self,
        session: Row,
        window: Window,
    ) -> impl Future<Output = Result<Vec<Turn>, StoreError>> + Send;

    /// Takes a session out so that it can be stored anew: its name and tags wait for it, and its
    /// files are looked at again.
    fn forget(&self, session: Row) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The messages of a session, in their order.
    fn messages(
        &self,
        session: SessionId,
        filter: MessageFilter,
    ) -> impl Future<Output = Result<Vec<Message>, StoreError>> + Send;

    fn records(&self, session: Row) -> impl Future<Output = Result<Records, StoreError>> + Send;

    fn warnings(
        &self,
        session: Row,
    ) -> impl Future<Output = Result<Vec<StoredWarning>, StoreError>> + Send;
}
