//! The archive that the commands use, and how they find a session in it.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use unspool_store::blocking::block_on;
use unspool_store::sqlite::SqliteView;
use unspool_store::store::{StoredSession, View};

pub use unspool_ingest::service::archive::{Archive, Writer};

/// The archive in this folder, or in the default one. Says on a terminal when it has to wait.
pub fn open(data: Option<PathBuf>) -> Archive {
    Archive::new(data).on_wait(|| {
        if stderr().is_terminal() {
            stderr_line!("unspool: another unspool is recording; waiting for it to finish");
        }
    })
}

/// Finds one session by our id, a unique prefix of it, or the agent's own id.
pub fn find(view: &SqliteView, text: &str) -> Result<StoredSession> {
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
