//! Write requests and their execution. One process records at a time: a write command calls
//! `carry_out` directly if it holds the recorder lock, and otherwise forwards the same request over
//! the change socket (`socket.rs`).

use std::fs::File;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use unspool_core::id::SessionId;
use unspool_sources::read::source::lines_of;
use unspool_store::blocking::block_on;
use unspool_store::recorder::{Deleted, Recorder};
use unspool_store::rows::RowId;
use unspool_store::store::{Store, StoreError};

use crate::agents::{self, ImportError, Imported};
use crate::report::{Progress, Report};
use crate::sync::{Candidate, Known, SyncError, sync, take_stream};

/// A write request. Paths are absolute, because the recorder may have another working directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    Tag {
        session: SessionId,
        add: Vec<String>,
        remove: Vec<String>,
    },
    Rename {
        session: SessionId,
        /// None restores the agent's own title.
        name: Option<String>,
    },
    Delete {
        session: SessionId,
    },
    /// Reads files.
    Take {
        paths: Vec<PathBuf>,
        why: Why,
    },
    /// Reads input that was not a file; the sender has copied it into one.
    TakeText {
        name: String,
        waits_in: PathBuf,
        why: Why,
    },
    /// Imports the agents of an application's database.
    TakeAgents {
        database: PathBuf,
        why: Why,
    },
}

/// Why files are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// A scan found them.
    Found,
    /// The user named them: read them completely, without waiting for more data.
    Named,
    /// Like `Named`, and deleted sessions are restored.
    Restored,
}

/// The result of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    Written,
    /// The number of deleted sessions.
    Deleted(u64),
    Taken(Report),
    Agents(Imported),
}

#[derive(Debug, Error)]
pub enum RequestError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sync(#[from] SyncError),
    #[error(transparent)]
    Agents(#[from] ImportError),
    #[error("session {0} is no longer in the archive")]
    Gone(SessionId),
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The error message of the recorder process.
    #[error("{0}")]
    There(String),
}

/// Executes a request. The caller holds the recorder lock.
pub fn carry_out<S: Store>(
    recorder: &Recorder<S>,
    known: &mut Known,
    request: Request,
    progress: &Progress,
) -> Result<Done, RequestError> {
    let store = recorder.store();
    match request {
        Request::Tag { session, add, remove } => {
            block_on(store.tag(row_of(store, session)?, add, remove))?;
            Ok(Done::Written)
        }
        Request::Rename { session, name } => {
            block_on(store.rename(row_of(store, session)?, name))?;
            Ok(Done::Written)
        }
        Request::Delete { session } => {
            Ok(Done::Deleted(block_on(store.delete(row_of(store, session)?))?))
        }
        Request::Take { paths, why } => {
            let candidates = paths.into_iter().map(|path| why.candidate(path)).collect();
            Ok(Done::Taken(sync(&why.recorder(recorder), known, candidates, progress)?))
        }
        Request::TakeText { name, waits_in, why } => {
            let text = File::open(&waits_in).and_then(lines_of);
            let text = text.map_err(|error| RequestError::Unreadable { path: waits_in, error })?;
            let taken = take_stream(&why.recorder(recorder), &name, text, progress);
            *known = Known::load(recorder)?;
            Ok(Done::Taken(taken?))
        }
        Request::TakeAgents { database, why } => {
            let taken = agents::import(&why.recorder(recorder), &database, progress);
            *known = Known::load(recorder)?;
            Ok(Done::Agents(taken?))
        }
    }
}

impl Why {
    fn candidate(self, path: PathBuf) -> Candidate {
        let found = Candidate::of(&path);
        match self {
            Why::Found => Candidate { named: false, ..found },
            Why::Named => found,
            // Without a stamp the file is read even if unchanged.
            Why::Restored => Candidate { stamp: None, ..found },
        }
    }

    fn recorder<S: Store>(self, recorder: &Recorder<S>) -> Recorder<S> {
        match self {
            Why::Found | Why::Named => recorder.clone(),
            Why::Restored => recorder.clone().with_deleted(Deleted::Restore),
        }
    }
}

fn row_of<S: Store>(store: &S, session: SessionId) -> Result<RowId, RequestError> {
    let found = block_on(store.find(session.to_string()))?;
    let found = found.iter().find(|stored| stored.summary.session.id == session);
    found.map(|stored| stored.row).ok_or(RequestError::Gone(session))
}
