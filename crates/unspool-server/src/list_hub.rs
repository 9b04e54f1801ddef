//! Live updates of the session list. Changed rows are painted once for all open list pages; each
//! page receives those that match its filters.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use unspool_model::id::{SessionId, digest};
use unspool_model::summary::UsageScope;
use unspool_query::activity::{ActiveSession, recent_sessions};
use unspool_query::attention::{Alert, Attention};
use unspool_query::live::{Subscription, Update};
use unspool_store::store::{SessionFilter, Store, StoreError, View};

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
    session: ActiveSession,
    html: String,
    /// For lists with rows of their own for sub-agents, if it differs.
    own_html: Option<String>,
}

impl PaintedRow {
    fn html(&self, scope: UsageScope) -> &str {
        match scope {
            UsageScope::Own => self.own_html.as_ref().unwrap_or(&self.html),
            UsageScope::WithAgents => &self.html,
        }
    }

    fn id(&self) -> SessionId {
        self.session.stored.summary.session.id
    }
}

/// What one repaint found.
struct Repaint {
    /// The rows that changed.
    rows: Vec<PaintedRow>,
    /// The sessions that wait, all of them.
    waiting: Vec<Value>,
    alerts: Vec<Alert>,
    /// Sessions that are no longer in the archive.
    deleted: Vec<SessionId>,
}

/// The subscribers of the list. The painter task runs only while there are any.
#[derive(Default)]
pub struct ListHub(Mutex<Weak<broadcast::Sender<Arc<Repaint>>>>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListSubscription {
    /// The query of the page.
    query: ListParams,
    /// For a page that shows no list and only needs to know who waits.
    attention_only: bool,
}

/// Streams matching rows until the client disconnects.
pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    message: &str,
) -> Result<(), axum::Error> {
    let subscription: ListSubscription = serde_json::from_str(message).unwrap_or_default();
    // The painter stops when the last clone of this sender is dropped.
    let (list_hub, mut rows) = subscribe(&app);
    // A page that was loaded empty may be outdated already.
    let one = SessionFilter { limit: Some(1), ..SessionFilter::default() };
    let empty = app.view().sessions(one).await.is_ok_and(|found| found.is_empty());
    send_json(&mut socket, &json!({ "type": "ready", "empty": empty })).await?;
    if let Ok(rows) = load_rows(&app, &FxHashSet::default()).await {
        let waiting = waiting(&rows);
        let (alerts, deleted) = (Vec::new(), Vec::new());
        send(&mut socket, &Repaint { rows, waiting, alerts, deleted }, &subscription).await?;
    }
    let outcome = loop {
        tokio::select! {
            latest = rows.recv() => match latest {
                Ok(latest) => send(&mut socket, &latest, &subscription).await?,
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

async fn send_json(socket: &mut WebSocket, what: &Value) -> Result<(), axum::Error> {
    socket.send(Message::Text(what.to_string().into())).await
}

/// Sends the rows that match the page's filters, and who needs a person.
async fn send(
    socket: &mut WebSocket,
    repaint: &Repaint,
    subscription: &ListSubscription,
) -> Result<(), axum::Error> {
    let Repaint { rows, waiting, alerts, deleted } = repaint;
    send_json(socket, &json!({ "type": "attention", "waiting": waiting })).await?;
    for alert in alerts {
        let told = json!({
            "type": "alert",
            "session": alert.session,
            "since": alert.since,
            "headline": alert.headline(),
            "text": alert.text(),
        });
        send_json(socket, &told).await?;
    }
    if !deleted.is_empty() && !subscription.attention_only {
        let ids: Vec<String> = deleted.iter().map(|id| format!("s-{id}")).collect();
        send_json(socket, &json!({ "type": "deleted", "ids": ids })).await?;
    }
    // Computed per message: relative filters such as `today` move on.
    let Ok(filter) = subscription.query.filter(Timestamp::now(), 0) else { return Ok(()) };
    let chosen: Vec<Value> = rows
        .iter()
        .filter(|row| !subscription.attention_only && filter.allows(&row.session.stored))
        .map(|row| {
            let live = row.session.activity.is_some();
            let html = row.html(filter.scope());
            json!({ "id": format!("s-{}", row.id()), "live": live, "html": html })
        })
        .collect();
    if chosen.is_empty() {
        return Ok(());
    }
    send_json(socket, &json!({ "type": "rows", "rows": chosen })).await
}

/// The sessions that wait for a person.
fn waiting(rows: &[PaintedRow]) -> Vec<Value> {
    let seen = rows.iter().map(|row| row.session.seen());
    let waits = seen.filter(|seen| !seen.sub_agent);
    let waits =
        waits.filter_map(|seen| Some((seen, seen.activity.filter(|now| now.is_waiting())?)));
    waits
        .map(|(seen, activity)| {
            json!({ "session": seen.session, "title": seen.title, "what": activity.what() })
        })
        .collect()
}

fn subscribe<S: Store>(
    app: &Arc<App<S>>,
) -> (Arc<broadcast::Sender<Arc<Repaint>>>, broadcast::Receiver<Arc<Repaint>>) {
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
    out: Weak<broadcast::Sender<Arc<Repaint>>>,
    mut updates: Subscription,
) {
    let mut live: FxHashSet<SessionId> = FxHashSet::default();
    let mut latest: FxHashMap<SessionId, u64> = FxHashMap::default();
    let mut attention = Attention::default();
    // The first look, so that the next one sees what has begun since.
    if let Ok(rows) = load_rows(&app, &live).await {
        attention.update(rows.iter().map(|row| row.session.seen()), Timestamp::now());
        live = rows.iter().filter(|row| is_live(row)).map(PaintedRow::id).collect();
    }
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
        live = rows.iter().filter(|row| is_live(row)).map(PaintedRow::id).collect();
        let alerts = attention.update(rows.iter().map(|row| row.session.seen()), Timestamp::now());
        let waiting = waiting(&rows);
        changed.retain(|id| !rows.iter().any(|row| row.id() == *id));
        let deleted: Vec<SessionId> = changed.into_iter().collect();
        // Do not replace unchanged rows: the pointer may be on one.
        let rows = rows.into_iter().filter(|row| {
            let now = digest(row.html.as_bytes());
            latest.insert(row.id(), now) != Some(now)
        });
        let rows: Vec<PaintedRow> = rows.collect();
        if !rows.is_empty() || !alerts.is_empty() || !deleted.is_empty() {
            let _ = out.send(Arc::new(Repaint { rows, waiting, alerts, deleted }));
        }
    }
}

fn is_live(row: &PaintedRow) -> bool {
    row.session.activity.is_some()
}

/// The rows of these sessions and of all sessions with recent activity.
async fn load_rows<S: Store>(
    app: &App<S>,
    changed: &FxHashSet<SessionId>,
) -> Result<Vec<PaintedRow>, StoreError> {
    let sessions = recent_sessions(&app.view(), changed).await?;
    let rows = sessions.into_iter().map(|session| {
        let mut row = template::ListRow {
            summary: &session.stored.summary,
            sub_agent: session.stored.is_agent(),
            activity: session.activity.clone(),
            scope: UsageScope::WithAgents,
            findings: app.settings.reflection.count_kept(&session.stored),
        };
        let html = template::row(&row, &app.settings.prices).into_string();
        row.scope = UsageScope::Own;
        let own_html = template::row(&row, &app.settings.prices).into_string();
        let own_html = Some(own_html).filter(|own| *own != html);
        PaintedRow { session, html, own_html }
    });
    Ok(rows.collect())
}
