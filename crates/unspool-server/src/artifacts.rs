//! What is drawn of a session when it has come to rest: its ThoughtFlow and the D2 of it, written
//! beside the archive and told to those who listen. Only of sessions that are live: whoever wants
//! those of another session asks for them.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashSet;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use unspool_core::id::SessionId;
use unspool_engine::export;
use unspool_render::project::{Options, Projection};
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, StoredSession};

use crate::App;
use crate::news::News;

/// A session that nothing came of for so long is at rest, if no turn of it goes on.
const REST: Duration = Duration::from_millis(700);
/// What happened before then is read, and not lived.
const LATELY: SignedDuration = SignedDuration::from_mins(2);

/// A session of which something was drawn, and what its subscribers are told.
pub type Drawn = (SessionId, Utf8Bytes);

/// Draws as long as the server runs.
pub async fn keep<S: Store>(app: Arc<App<S>>, folder: PathBuf) {
    let mut news = app.news.subscribe();
    let mut waiting: FxHashSet<SessionId> = FxHashSet::default();
    loop {
        let told = match waiting.is_empty() {
            true => Some(news.recv().await),
            false => tokio::time::timeout(REST, news.recv()).await.ok(),
        };
        match told {
            Some(Ok(News::Written(written))) => {
                waiting.insert(written.session);
            }
            Some(Ok(News::Missed) | Err(RecvError::Lagged(_))) => {}
            Some(Err(RecvError::Closed)) => return,
            None => {
                for session in waiting.drain() {
                    let (app, folder) = (app.clone(), folder.clone());
                    let drawn = move || draw(&app, session, &folder);
                    if let Ok(Err(error)) = tokio::task::spawn_blocking(drawn).await {
                        eprintln!("unspool: cannot draw session {session}: {error}");
                    }
                }
            }
        }
    }
}

/// Draws a session if it is at rest, and says so if that is another drawing than before. Doing it
/// again changes nothing (R-002-28).
fn draw<S: Store>(app: &App<S>, session: SessionId, folder: &Path) -> io::Result<()> {
    let found = wait(app.store.find(session.to_string())).map_err(io::Error::other)?;
    let Some(stored) = found.into_iter().find(|one| one.summary.session.id == session) else {
        return Ok(());
    };
    let lately = |ended: Timestamp| Timestamp::now().duration_since(ended) < LATELY;
    if stored.summary.running || !stored.summary.ended.is_some_and(lately) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let mut changed = false;
    for (form, extension) in FORMS {
        changed |= write(app, &stored, form, &folder.join(format!("{session}.{extension}")))?;
    }
    if changed {
        // Nobody listens: no matter.
        let _ = app.drawn.send((session, told(app, session)));
    }
    Ok(())
}

/// The forms, and how their files end.
const FORMS: [(&str, &str); 2] = [("thoughtflow", "json"), ("d2", "d2")];

/// What those who follow the session are told, with addresses that can be opened (R-002-30).
fn told<S: Store>(app: &App<S>, session: SessionId) -> Utf8Bytes {
    let origin = app.door.origin();
    let address = |extension: &str| format!("{origin}/thoughtflow/{session}.{extension}");
    let told = json!({
        "type": "thoughtflow.artifacts",
        "session": session,
        "json": address("json"),
        "d2": address("d2"),
    });
    told.to_string().into()
}

/// Writes a form of a session, whole or not at all. Says whether it is another than before.
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
    export::write(&app.store, stored, projection, &options, Some(&app.rules), &mut out)
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
