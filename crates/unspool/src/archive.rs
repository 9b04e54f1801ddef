//! The archive that the commands use, and how they find a session in it.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use unspool_ingest::report::Progress;
use unspool_ingest::service::request::RequestOutcome;
use unspool_model::id::SessionId;
use unspool_query::request::{ChangeHandler, Request};
use unspool_server::ShareStore;
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;
use unspool_store::postgres::Address;
use unspool_store::store::{StoredSession, View};

pub use unspool_ingest::service::archive::{Archive, Writer};

/// The archive in this folder, or in the default one, or on a server. Says on a terminal when it has
/// to wait.
pub fn open(data: Option<PathBuf>, store: Option<Address>) -> Archive {
    Archive::new(data).on_server(store).on_wait(|| {
        if stderr().is_terminal() {
            stderr_line!("unspool: another unspool is recording; waiting for it to finish");
        }
    })
}

/// Finds one session by our id, a unique prefix of it, or the agent's own id.
pub fn find(view: &DatabaseView, text: &str) -> Result<StoredSession> {
    let mut found = block_on(view.find(text.to_owned()))?;
    if found.len() > 1 {
        let ids: Vec<String> = found
            .iter()
            .map(|stored| {
                let session = &stored.summary.session;
                format!("{}  {}", session.id, stored.summary.title.as_deref().unwrap_or_default())
            })
            .collect();
        bail!(
            "{text} matches {} sessions; give a longer prefix of the id:\n  {}",
            ids.len(),
            ids.join("\n  ")
        );
    }
    found.pop().ok_or_else(|| {
        anyhow!("there is no session {text} in the archive; `unspool list` shows all sessions")
    })
}

/// Deletes a session. An agent that is driven in it ends first.
pub fn delete(archive: &Archive, session: SessionId) -> Result<RequestOutcome> {
    #[cfg(unix)]
    crate::command::chat::forget(archive, session)?;
    // A link would work again if the session came back.
    ShareStore::in_data_folder(archive.folder()?.path()).revoke_session(session)?;
    Ok(archive.writer()?.submit(Request::Delete { session }, &Progress::default())?)
}

/// Executes the write requests of an application in this process.
pub fn change_handler(archive: Archive) -> ChangeHandler {
    Arc::new(move |request: Request| {
        let what = match &request {
            Request::Tag { .. } => "tagged",
            Request::Rename { .. } => "renamed",
            Request::Note { text: None, .. } => "note removed",
            Request::Note { text: Some(text), .. } if text.trim().is_empty() => "bookmark saved",
            Request::Note { .. } => "note saved",
            Request::Delete { .. } => "deleted",
            Request::ReadFiles { .. }
            | Request::ReadText { .. }
            | Request::ReadAgents { .. }
            | Request::Receive { .. } => "read",
        };
        let done = if let Request::Delete { session } = &request {
            delete(&archive, *session)
        } else {
            let writer = archive.writer();
            let done = writer.and_then(|mut writer| writer.submit(request, &Progress::default()));
            done.map_err(anyhow::Error::from)
        };
        let outcome = done.map_err(|error| format!("{error:#}"))?;
        Ok(match outcome {
            // For a program: the server passes it on.
            RequestOutcome::Received(receipts, _) => {
                serde_json::to_string(&receipts).map_err(|error| error.to_string())?
            }
            RequestOutcome::Written
            | RequestOutcome::Deleted(_)
            | RequestOutcome::Synced(_)
            | RequestOutcome::Agents(_) => what.to_owned(),
        })
    })
}

/// That a session has no such turn, and which it has.
pub fn no_turn(number: u32, turns: impl Iterator<Item = u32>) -> String {
    let turns: Vec<u32> = turns.collect();
    let existing = match (turns.first(), turns.last()) {
        (Some(first), Some(last)) if first == last => format!("only turn {first}"),
        (Some(first), Some(last)) => format!("turns {first} to {last}"),
        (Some(_) | None, _) => "no turns".to_owned(),
    };
    format!("there is no turn {number}; the session has {existing}")
}
