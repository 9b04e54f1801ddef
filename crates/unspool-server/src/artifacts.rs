//! Writes the ThoughtFlow and D2 files of a session once it becomes idle, beside the archive, and
//! notifies subscribers. Only sessions with recent activity are written; the files of any other
//! session are made on request (`pages/thoughtflow.rs`).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::Utf8Bytes;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use serde_json::json;
use unspool_export::export;
use unspool_export::project::{Options, Projection};
use unspool_model::id::SessionId;
use unspool_query::live::Update;
use unspool_store::blocking::block_on;
use unspool_store::replace_file::FileReplacement;
use unspool_store::store::{Store, StoredSession, View};

use crate::App;

/// A session without updates for this long is idle, unless a turn is running.
const QUIET_PERIOD: Duration = Duration::from_millis(700);
/// Sessions that ended longer ago were imported, not observed live: no artifacts.
const MAX_AGE: SignedDuration = SignedDuration::from_mins(2);

/// A session whose artifacts changed, and the message for its subscribers.
pub type ArtifactNotice = (SessionId, Utf8Bytes);

/// Runs as long as the server does.
pub async fn run<S: Store>(app: Arc<App<S>>, folder: PathBuf) {
    let mut updates = app.updates.subscribe();
    let mut waiting = QuietSessions::default();
    loop {
        let message = match waiting.next_due() {
            None => Some(updates.next().await),
            Some(due) => tokio::time::timeout_at(due.into(), updates.next()).await.ok(),
        };
        match message {
            Some(Some(Update::Written(written))) => waiting.note(written.session, Instant::now()),
            Some(Some(Update::Lagged)) => {}
            Some(None) => return,
            None => {}
        }
        // Also after an update: beside a busy session there may always be another one.
        for session in waiting.take_due(Instant::now()) {
            let (app, folder) = (app.clone(), folder.clone());
            let artifacts = move || draw(&app, session, &folder);
            if let Ok(Err(error)) = tokio::task::spawn_blocking(artifacts).await {
                eprintln!("unspool: cannot write the artifacts of session {session}: {error}");
            }
        }
    }
}

/// Sessions with recent updates. Each has its own quiet period: a busy session must not delay the
/// artifacts of another.
#[derive(Default)]
struct QuietSessions {
    due: FxHashMap<SessionId, Instant>,
    queue: BTreeSet<(Instant, SessionId)>,
}

impl QuietSessions {
    /// Begins the quiet period of a session anew.
    fn note(&mut self, session: SessionId, now: Instant) {
        let due = now + QUIET_PERIOD;
        if let Some(before) = self.due.insert(session, due) {
            self.queue.remove(&(before, session));
        }
        self.queue.insert((due, session));
    }

    fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Removes the sessions whose quiet period is over.
    fn take_due(&mut self, now: Instant) -> Vec<SessionId> {
        let mut quiet = Vec::new();
        while self.next_due().is_some_and(|due| due <= now) {
            let Some((_, session)) = self.queue.pop_first() else { break };
            self.due.remove(&session);
            quiet.push(session);
        }
        quiet
    }
}

/// Writes the artifacts of an idle session and notifies if they changed. Idempotent (R-002-28).
fn draw<S: Store>(app: &App<S>, session: SessionId, folder: &Path) -> io::Result<()> {
    let found = block_on(app.view().session(session)).map_err(io::Error::other)?;
    let Some(stored) = found else { return Ok(()) };
    let lately = |last: Timestamp| Timestamp::now().duration_since(last) < MAX_AGE;
    if stored.summary.running || !stored.summary.last_heard().is_some_and(lately) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let mut changed = false;
    for (form, extension) in FORMS {
        changed |= write(app, &stored, form, &folder.join(format!("{session}.{extension}")))?;
    }
    if changed {
        // Fails only when there is no subscriber.
        let _ = app.artifacts.send((session, message(app, session)));
    }
    Ok(())
}

/// Projection names and file extensions.
const FORMS: [(&str, &str); 2] = [("thoughtflow", "json"), ("d2", "d2")];

/// The notice for subscribers of the session, with absolute URLs (R-002-30).
fn message<S: Store>(app: &App<S>, session: SessionId) -> Utf8Bytes {
    let origin = app.auth.origin();
    let address = |extension: &str| format!("{origin}/thoughtflow/{session}.{extension}");
    let message = json!({
        "type": "thoughtflow.artifacts",
        "session": session,
        "json": address("json"),
        "d2": address("d2"),
    });
    message.to_string().into()
}

/// Writes one projection atomically. Returns true if the content changed.
fn write<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    form: &str,
    path: &Path,
) -> io::Result<bool> {
    let Some(projection) = Projection::named(form) else { return Ok(false) };
    let options = Options { prices: app.prices.clone(), ..Options::default() };
    let mut out = FileReplacement::begin(path)?;
    export::write(&app.view(), stored, projection, &options, Some(&app.rules), &mut out)
        .map_err(io::Error::other)?;
    if out.changes_nothing()? {
        return Ok(false);
    }
    out.commit()?;
    Ok(true)
}

#[cfg(test)]
#[path = "artifacts_tests.rs"]
mod tests;
