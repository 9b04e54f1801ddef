//! Executes the write requests that `unspool-query` defines. A process that holds the recorder lock
//! calls `execute` directly; any other forwards the same request over the change socket
//! (`socket.rs`).

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use unspool_model::id::SessionId;
use unspool_model::note::{MAX_NOTE_BYTES, Note, NoteTarget};
use unspool_query::request::{ReadReason, Request};
use unspool_query::ship::Receipts;
use unspool_sources::read::source::lines_of;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoreError, StoredSession, View, Viewer};

use crate::recorder::{Deleted, Recorder};
use crate::report::{Progress, SyncReport};
use crate::sync::agents::{self, AgentTableReport, ImportError};
use crate::sync::received::{ReceiveError, receive};
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
    Received(Receipts, SyncReport),
}

impl RequestOutcome {
    /// What was read. None if nothing was.
    pub fn report(&self) -> Option<&SyncReport> {
        match self {
            RequestOutcome::Synced(report) | RequestOutcome::Received(_, report) => Some(report),
            RequestOutcome::Written | RequestOutcome::Deleted(_) | RequestOutcome::Agents(_) => {
                None
            }
        }
    }
}

#[derive(Debug, Error)]
pub enum RequestError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sync(#[from] SyncError),
    #[error(transparent)]
    Agents(#[from] ImportError),
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    #[error("session {0} is no longer in the archive")]
    Gone(SessionId),
    #[error("the note has {0} bytes; at most {MAX_NOTE_BYTES} are possible: shorten it")]
    LongNote(usize),
    #[error("session {0} has no such turn or part; look at it again with `unspool show`")]
    NoTarget(SessionId),
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
            let stored = stored(store, session)?;
            block_on(store.tag(stored.row, add, remove))?;
            recorder.publish_user_change(&stored);
            Ok(RequestOutcome::Written)
        }
        Request::Rename { session, name } => {
            let stored = stored(store, session)?;
            block_on(store.rename(stored.row, name))?;
            recorder.publish_user_change(&stored);
            Ok(RequestOutcome::Written)
        }
        Request::Note { session, target, text } => {
            let stored = stored(store, session)?;
            note(store, &stored, target, text)?;
            recorder.publish_user_change(&stored);
            Ok(RequestOutcome::Written)
        }
        Request::Delete { session } => {
            let stored = stored(store, session)?;
            let deleted = block_on(store.delete(stored.row))?;
            // Whoever shows it looks for it, and finds that it is gone.
            recorder.publish_user_change(&stored);
            Ok(RequestOutcome::Deleted(deleted))
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
        Request::Receive { sender, units } => {
            let file = File::open(&units).and_then(|file| Ok((file.metadata()?.len(), file)));
            let file = file.map_err(|error| RequestError::Unreadable { path: units, error });
            let (size, file) = file?;
            // What strangers send may bring a decoder down, but not whoever records.
            let states = &mut *file_states;
            let work = || receive(recorder, states, &sender, &mut BufReader::new(file), size);
            let taken = std::thread::scope(|scope| scope.spawn(work).join());
            let taken = taken.unwrap_or(Err(SyncError::Thread.into()));
            if taken.is_err() {
                *file_states = FileStates::load(recorder)?;
            }
            let (receipts, report) = taken?;
            Ok(RequestOutcome::Received(receipts, report))
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

fn stored<S: Store>(store: &S, session: SessionId) -> Result<StoredSession, RequestError> {
    let found = block_on(store.view(Viewer::Sole).session(session))?;
    found.ok_or(RequestError::Gone(session))
}

fn note<S: Store>(
    store: &S,
    stored: &StoredSession,
    target: NoteTarget,
    text: Option<String>,
) -> Result<(), RequestError> {
    let session = stored.summary.session.id;
    let Some(text) = text else { return Ok(block_on(store.remove_note(session, target))?) };
    let text = text.trim().to_owned();
    if text.len() > MAX_NOTE_BYTES {
        return Err(RequestError::LongNote(text.len()));
    }
    let view = store.view(Viewer::Sole);
    let is_there = match target {
        NoteTarget::Session => true,
        NoteTarget::Turn(turn) => {
            block_on(view.sizes(stored.row))?.iter().any(|size| size.id == turn)
        }
        NoteTarget::Part(part) => block_on(view.locate(stored.row, None, part))?.is_some(),
    };
    // A note whose target is gone can still be edited.
    let is_noted = || -> Result<bool, StoreError> {
        Ok(block_on(view.notes(session))?.iter().any(|placed| placed.note.target == target))
    };
    if !is_there && !is_noted()? {
        return Err(RequestError::NoTarget(session));
    }
    Ok(block_on(store.set_note(session, Note { target, text, at: Timestamp::now() }))?)
}
