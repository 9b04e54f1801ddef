//! Executes the write requests that `unspool-query` defines. A process that holds the recorder lock
//! calls `execute` directly; any other forwards the same request over the change socket
//! (`socket.rs`).

use std::fs::File;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use unspool_model::id::SessionId;
use unspool_query::request::{ReadReason, Request};
use unspool_sources::read::source::lines_of;
use unspool_store::blocking::block_on;
use unspool_store::rows::RowId;
use unspool_store::store::{Store, StoreError, View, Viewer};

use crate::recorder::{Deleted, Recorder};
use crate::report::{Progress, SyncReport};
use crate::sync::agents::{self, AgentTableReport, ImportError};
use crate::sync::{FileCandidate, FileStates, LiveFiles, SyncError, ingest_stream, sync_beside};

/// The result of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOutcome {
    Written,
    /// The number of deleted sessions.
    Deleted(u64),
    Synced(SyncReport),
    Agents(AgentTableReport),
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
    Remote(String),
}

/// Executes a request, and meanwhile ingests live files. The caller holds the recorder lock.
pub fn execute<S: Store>(
    recorder: &Recorder<S>,
    file_states: &mut FileStates,
    request: Request,
    progress: &Progress,
    live: Option<&dyn LiveFiles>,
) -> Result<RequestOutcome, RequestError> {
    let store = recorder.store();
    match request {
        Request::Tag { session, add, remove } => {
            block_on(store.tag(row_of(store, session)?, add, remove))?;
            Ok(RequestOutcome::Written)
        }
        Request::Rename { session, name } => {
            block_on(store.rename(row_of(store, session)?, name))?;
            Ok(RequestOutcome::Written)
        }
        Request::Delete { session } => {
            Ok(RequestOutcome::Deleted(block_on(store.delete(row_of(store, session)?))?))
        }
        Request::ReadFiles { paths, reason } => {
            let candidates = paths.into_iter().map(|path| candidate(reason, path)).collect();
            // Live files of deleted sessions are not to be restored.
            let live = live.filter(|_| reason != ReadReason::Restore);
            let recorder = recorder_for(reason, recorder);
            let report = sync_beside(&recorder, file_states, candidates, progress, live)?;
            Ok(RequestOutcome::Synced(report))
        }
        Request::ReadText { name, text_file, reason } => {
            let text = File::open(&text_file).and_then(lines_of);
            let text = text.map_err(|error| RequestError::Unreadable { path: text_file, error })?;
            let report = ingest_stream(&recorder_for(reason, recorder), &name, text, progress);
            *file_states = FileStates::load(recorder)?;
            Ok(RequestOutcome::Synced(report?))
        }
        Request::ReadAgents { database, reason } => {
            let report = agents::import(&recorder_for(reason, recorder), &database, progress);
            *file_states = FileStates::load(recorder)?;
            Ok(RequestOutcome::Agents(report?))
        }
    }
}

fn candidate(reason: ReadReason, path: PathBuf) -> FileCandidate {
    let found = FileCandidate::of(&path);
    match reason {
        ReadReason::Scan => FileCandidate { named: false, ..found },
        ReadReason::Named => found,
        // Without a stamp the file is read even if unchanged.
        ReadReason::Restore => FileCandidate { stamp: None, ..found },
    }
}

fn recorder_for<S: Store>(reason: ReadReason, recorder: &Recorder<S>) -> Recorder<S> {
    match reason {
        ReadReason::Scan | ReadReason::Named => recorder.clone(),
        ReadReason::Restore => recorder.clone().with_deleted(Deleted::Restore),
    }
}

fn row_of<S: Store>(store: &S, session: SessionId) -> Result<RowId, RequestError> {
    let found = block_on(store.view(Viewer::Sole).session(session))?;
    found.map(|stored| stored.row).ok_or(RequestError::Gone(session))
}
