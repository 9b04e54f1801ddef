//! Live updates of the session list. Changed rows are painted once for all open list pages; each
//! page receives those that match its filters.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use unspool_core::id::{SessionId, digest};
use unspool_core::live::SILENCE;
use unspool_core::session::SessionState;
use unspool_engine::reader::activity;
use unspool_render::page;
use unspool_store::store::{SessionFilter, Store, StoreError, StoredSession};

use crate::asked::Asked;
use crate::{App, News};

/// Rows are repainted at most this often.
const PACE: Duration = Duration::from_millis(500);
/// Live sessions are rechecked this often: they become idle without an update.
const ROUND: Duration = Duration::from_secs(20);
const BACKLOG: usize = 64;

/// A painted row and the session it shows.
struct Painted {
    stored: StoredSession,
    html: String,
}

/// The rows of one repaint.
type Rows = Arc<Vec<Painted>>;

/// The subscribers of the list. The painter task runs only while there are any.
#[derive(Default)]
pub struct Feed(Mutex<Weak<broadcast::Sender<Rows>>>);

#[derive(Debug, Deserialize)]
struct Wish {
    /// The query of the page.
    #[serde(default)]
    query: Asked,
}

/// Streams matching rows until the client disconnects.
pub async fn tell<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    wish: &str,
) -> Result<(), axum::Error> {
    let asked = serde_json::from_str::<Wish>(wish).map(|wish| wish.query).unwrap_or_default();
    // The painter stops when the last clone of this sender is dropped.
    let (feed, mut rows) = listen(&app);
    // A page that was loaded empty may be outdated already.
    let one = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    let empty = app.store.sessions(one).await.is_ok_and(|found| found.is_empty());
    say(&mut socket, &json!({ "type": "ready", "empty": empty })).await?;
    if let Ok(now) = look(&app, &FxHashSet::default()).await {
        tell_rows(&mut socket, &now, &asked).await?;
    }
    let outcome = loop {
        tokio::select! {
            told = rows.recv() => match told {
                Ok(told) => tell_rows(&mut socket, &told, &asked).await?,
                // The client lagged: on `behind` the page reloads its list.
                Err(RecvError::Lagged(_)) => say(&mut socket, &json!({ "type": "behind" })).await?,
                Err(RecvError::Closed) => break Ok(()),
            },
            heard = socket.recv() => match heard {
                None | Some(Err(_) | Ok(Message::Close(_))) => break Ok(()),
                Some(Ok(_)) => {}
            },
        }
    };
    drop(feed);
    outcome
}

async fn say(socket: &mut WebSocket, what: &serde_json::Value) -> Result<(), axum::Error> {
    socket.send(Message::Text(what.to_string().into())).await
}

async fn tell_rows(
    socket: &mut WebSocket,
    rows: &[Painted],
    asked: &Asked,
) -> Result<(), axum::Error> {
    // Computed per message: relative filters such as `today` move on.
    let filter = asked.filter(Timestamp::now(), 0);
    let chosen: Vec<serde_json::Value> = rows
        .iter()
        .filter(|row| filter.allows(&row.stored))
        .map(|row| {
            let session = &row.stored.summary.session;
            let live = session.state == SessionState::Live;
            json!({ "id": format!("s-{}", session.id), "live": live, "html": row.html })
        })
        .collect();
    if chosen.is_empty() {
        return Ok(());
    }
    say(socket, &json!({ "type": "rows", "rows": chosen })).await
}

fn listen<S: Store>(
    app: &Arc<App<S>>,
) -> (Arc<broadcast::Sender<Rows>>, broadcast::Receiver<Rows>) {
    let mut feed = app.feed.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(out) = feed.upgrade() {
        let rows = out.subscribe();
        return (out, rows);
    }
    let out = Arc::new(broadcast::channel(BACKLOG).0);
    *feed = Arc::downgrade(&out);
    let rows = out.subscribe();
    tokio::spawn(paint(app.clone(), Arc::downgrade(&out), app.news.subscribe()));
    (out, rows)
}

/// Paints changed rows while there are subscribers.
async fn paint<S: Store>(
    app: Arc<App<S>>,
    out: Weak<broadcast::Sender<Rows>>,
    mut news: broadcast::Receiver<News>,
) {
    let mut live: FxHashSet<SessionId> = FxHashSet::default();
    let mut told: FxHashMap<SessionId, u64> = FxHashMap::default();
    loop {
        let mut changed: FxHashSet<SessionId> = FxHashSet::default();
        let mut all = false;
        // Wait for an update, then collect what follows within the repaint interval.
        let mut due = Instant::now() + ROUND;
        loop {
            tokio::select! {
                () = sleep_until(due) => break,
                told = news.recv() => {
                    if changed.is_empty() && !all {
                        due = due.min(Instant::now() + PACE);
                    }
                    match told {
                        Ok(News::Written(written)) => { changed.insert(written.session); }
                        Ok(News::Missed) | Err(RecvError::Lagged(_)) => all = true,
                        Err(RecvError::Closed) => return,
                    }
                }
            }
        }
        let Some(out) = out.upgrade() else { return };
        changed.extend(&live);
        if changed.is_empty() && !all {
            continue;
        }
        // If the archive cannot be read now, retry with the next update.
        let Ok(rows) = look(&app, &changed).await else { continue };
        live = rows
            .iter()
            .filter(|row| is_live(row))
            .map(|row| row.stored.summary.session.id)
            .collect();
        // Do not replace unchanged rows: the pointer may be on one.
        let rows = rows.into_iter().filter(|row| {
            let now = digest(row.html.as_bytes());
            told.insert(row.stored.summary.session.id, now) != Some(now)
        });
        let rows: Vec<Painted> = rows.collect();
        if !rows.is_empty() {
            let _ = out.send(Arc::new(rows));
        }
    }
}

fn is_live(row: &Painted) -> bool {
    row.stored.summary.session.state == SessionState::Live
}

/// The rows of these sessions and of all sessions with recent activity.
async fn look<S: Store>(
    app: &App<S>,
    changed: &FxHashSet<SessionId>,
) -> Result<Vec<Painted>, StoreError> {
    let lately = (Timestamp::now() - SILENCE).as_millisecond();
    let mut found = app
        .store
        .sessions(SessionFilter { since: Some(lately), ..SessionFilter::default() })
        .await?;
    for id in changed {
        if found.iter().all(|stored| stored.summary.session.id != *id) {
            found.extend(app.store.find(id.to_string()).await?.pop());
        }
    }
    let mut rows = Vec::with_capacity(found.len());
    for stored in found {
        let activity = activity(&app.store, &stored).await?;
        let row = page::Row { summary: &stored.summary, sub_agent: stored.is_agent(), activity };
        let html = page::row(&row, &app.prices).into_string();
        rows.push(Painted { stored, html });
    }
    Ok(rows)
}
