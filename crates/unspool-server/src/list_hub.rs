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
use unspool_model::id::{SessionId, digest};
use unspool_model::live::MAX_SILENCE;
use unspool_model::session::SessionState;
use unspool_query::live::{Subscription, Update};
use unspool_query::activity::activity;
use unspool_store::store::{SessionFilter, Store, StoreError, StoredSession, View};

use crate::App;
use crate::pages::sessions::template;
use crate::query_params::ListParams;

/// Rows are repainted at most this often.
const REPAINT_INTERVAL: Duration = Duration::from_millis(500);
/// Live sessions are rechecked this often: they fall silent or wait without an update.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(2);
const ROW_BACKLOG: usize = 64;

/// A painted row and the session it shows.
struct PaintedRow {
    stored: StoredSession,
    html: String,
}

/// The rows of one repaint.
type Rows = Arc<Vec<PaintedRow>>;

/// The subscribers of the list. The painter task runs only while there are any.
#[derive(Default)]
pub struct ListHub(Mutex<Weak<broadcast::Sender<Rows>>>);

#[derive(Debug, Deserialize)]
struct ListSubscription {
    /// The query of the page.
    #[serde(default)]
    query: ListParams,
}

/// Streams matching rows until the client disconnects.
pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    message: &str,
) -> Result<(), axum::Error> {
    let params = serde_json::from_str::<ListSubscription>(message)
        .map(|message| message.query)
        .unwrap_or_default();
    // The painter stops when the last clone of this sender is dropped.
    let (list_hub, mut rows) = subscribe(&app);
    // A page that was loaded empty may be outdated already.
    let one = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    let empty = app.view().sessions(one).await.is_ok_and(|found| found.is_empty());
    send_json(&mut socket, &json!({ "type": "ready", "empty": empty })).await?;
    if let Ok(now) = load_rows(&app, &FxHashSet::default()).await {
        send_rows(&mut socket, &now, &params).await?;
    }
    let outcome = loop {
        tokio::select! {
            latest = rows.recv() => match latest {
                Ok(latest) => send_rows(&mut socket, &latest, &params).await?,
                // The client lagged: on `behind` the page reloads its list.
                Err(RecvError::Lagged(_)) => send_json(&mut socket, &json!({ "type": "behind" })).await?,
                Err(RecvError::Closed) => break Ok(()),
            },
            received = socket.recv() => match received {
                None | Some(Err(_) | Ok(Message::Close(_))) => break Ok(()),
                Some(Ok(_)) => {}
            },
        }
    };
    drop(list_hub);
    outcome
}

async fn send_json(socket: &mut WebSocket, what: &serde_json::Value) -> Result<(), axum::Error> {
    socket.send(Message::Text(what.to_string().into())).await
}

async fn send_rows(
    socket: &mut WebSocket,
    rows: &[PaintedRow],
    params: &ListParams,
) -> Result<(), axum::Error> {
    // Computed per message: relative filters such as `today` move on.
    let Ok(filter) = params.filter(Timestamp::now(), 0) else { return Ok(()) };
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
    send_json(socket, &json!({ "type": "rows", "rows": chosen })).await
}

fn subscribe<S: Store>(
    app: &Arc<App<S>>,
) -> (Arc<broadcast::Sender<Rows>>, broadcast::Receiver<Rows>) {
    let mut list_hub = app.list_hub.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(out) = list_hub.upgrade() {
        let rows = out.subscribe();
        return (out, rows);
    }
    let out = Arc::new(broadcast::channel(ROW_BACKLOG).0);
    *list_hub = Arc::downgrade(&out);
    let rows = out.subscribe();
    tokio::spawn(paint(app.clone(), Arc::downgrade(&out), app.updates.subscribe()));
    (out, rows)
}

/// Paints changed rows while there are subscribers.
async fn paint<S: Store>(
    app: Arc<App<S>>,
    out: Weak<broadcast::Sender<Rows>>,
    mut updates: Subscription,
) {
    let mut live: FxHashSet<SessionId> = FxHashSet::default();
    let mut latest: FxHashMap<SessionId, u64> = FxHashMap::default();
    loop {
        let mut changed: FxHashSet<SessionId> = FxHashSet::default();
        let mut all = false;
        // Wait for an update, then collect what follows within the repaint interval.
        let mut due = Instant::now() + LIVENESS_INTERVAL;
        loop {
            tokio::select! {
                () = sleep_until(due) => break,
                latest = updates.next() => {
                    if changed.is_empty() && !all {
                        due = due.min(Instant::now() + REPAINT_INTERVAL);
                    }
                    match latest {
                        Some(Update::Written(written)) => { changed.insert(written.session); }
                        Some(Update::Lagged) => all = true,
                        None => return,
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
        let Ok(rows) = load_rows(&app, &changed).await else { continue };
        live = rows
            .iter()
            .filter(|row| is_live(row))
            .map(|row| row.stored.summary.session.id)
            .collect();
        // Do not replace unchanged rows: the pointer may be on one.
        let rows = rows.into_iter().filter(|row| {
            let now = digest(row.html.as_bytes());
            latest.insert(row.stored.summary.session.id, now) != Some(now)
        });
        let rows: Vec<PaintedRow> = rows.collect();
        if !rows.is_empty() {
            let _ = out.send(Arc::new(rows));
        }
    }
}

fn is_live(row: &PaintedRow) -> bool {
    row.stored.summary.session.state == SessionState::Live
}

/// The rows of these sessions and of all sessions with recent activity.
async fn load_rows<S: Store>(
    app: &App<S>,
    changed: &FxHashSet<SessionId>,
) -> Result<Vec<PaintedRow>, StoreError> {
    let lately = (Timestamp::now() - MAX_SILENCE).as_millisecond();
    let view = app.view();
    let recent = SessionFilter { since: Some(lately), ..SessionFilter::default() };
    let mut found = view.sessions(recent).await?;
    let is_found = |id: &SessionId| found.iter().any(|stored| stored.summary.session.id == *id);
    let others = changed.iter().copied().filter(|id| !is_found(id)).collect();
    found.extend(view.sessions_by_id(others).await?);
    let mut rows = Vec::with_capacity(found.len());
    for stored in found {
        let activity = activity(&view, &stored).await?;
        let row =
            template::ListRow { summary: &stored.summary, sub_agent: stored.is_agent(), activity };
        let html = template::row(&row, &app.prices).into_string();
        rows.push(PaintedRow { stored, html });
    }
    Ok(rows)
}
