//! Writes the ThoughtFlow and D2 files of a session once it becomes idle, beside the archive, and
//! notifies subscribers. Only sessions with recent activity are written; the files of any other
//! session are made on request (`pages/thoughtflow.rs`).

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashSet;
use serde_json::json;
use unspool_core::id::SessionId;
use unspool_engine::exchange::export;
use unspool_engine::live::Update;
use unspool_render::project::{Options, Projection};
use unspool_store::blocking::block_on;
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
    let mut waiting: FxHashSet<SessionId> = FxHashSet::default();
    loop {
        let message = match waiting.is_empty() {
            true => Some(updates.next().await),
            false => tokio::time::timeout(QUIET_PERIOD, updates.next()).await.ok(),
        };
        match message {
            Some(Some(Update::Written(written))) => {
                waiting.insert(written.session);
            }
            Some(Some(Update::Lagged)) => {}
            Some(None) => return,
            None => {
                for session in waiting.drain() {
                    let (app, folder) = (app.clone(), folder.clone());
                    let artifacts = move || draw(&app, session, &folder);
                    if let Ok(Err(error)) = tokio::task::spawn_blocking(artifacts).await {
                        eprintln!(
                            "unspool: cannot write the artifacts of session {session}: {error}"
                        );
                    }
                }
            }
        }
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
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut out = BufWriter::new(fs::File::create(&partial)?);
    export::write(&app.view(), stored, projection, &options, Some(&app.rules), &mut out)
        .map_err(io::Error::other)?;
    out.flush()?;
    drop(out);
    if fs::read(&partial)? == fs::read(path).unwrap_or_default() {
        fs::remove_file(&partial)?;
        return Ok(false);
    }
    fs::rename(&partial, path)?;
    Ok(true)
}
