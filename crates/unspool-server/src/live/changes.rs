//! The stream for programs: the changes of `unspool-model` with the seqs they lead from and to.
//! A slow client receives several batches in one message and loses nothing. A client that lags
//! beyond the backlog receives `behind`, followed by a new snapshot.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use serde::Serialize;
use serde_json::json;
use tokio::task::spawn_blocking;
use unspool_model::document::{SessionDocument, TurnDocument};
use unspool_model::id::SessionId;
use unspool_query::live::Update;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoredSession, TurnWindow, View};

use super::{current_seq, is_connected, send_json, snapshot};
use crate::App;

/// Changes are joined up to this many bytes. Every subscriber may buffer that much.
const MAX_BATCH_BYTES: usize = 32 * 1024;

pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    id: SessionId,
    since: Option<u64>,
) -> Result<(), axum::Error> {
    // Subscribe before loading, so that no update is lost in between.
    let mut updates = app.updates.subscribe();
    let mut artifacts = app.artifacts.subscribe();
    let mut seq = match since {
        Some(since) if current_seq(&app, id).await == Some(since) => since,
        Some(_) | None => send_snapshot(&app, &mut socket, id).await?,
    };
    loop {
        let update = tokio::select! {
            update = updates.next() => update,
            update = artifacts.recv() => {
                if let Ok((session, what)) = update && session == id {
                    socket.send(Message::Text(what)).await?;
                }
                continue
            }
            received = socket.recv() => {
                if is_connected(received.as_ref()) { continue } else { return Ok(()) }
            }
        };
        let mut batch = ChangeBatch { id, from: seq, seq, changes: String::new() };
        let mut continuity = match update {
            Some(update) => batch.take(&update),
            None => return Ok(()),
        };
        // Join what arrived while the last message was sent.
        while continuity == Continuity::All && batch.changes.len() < MAX_BATCH_BYTES {
            continuity = match updates.try_next() {
                Some(update) => batch.take(&update),
                None => break,
            };
        }
        if batch.seq > seq {
            seq = batch.seq;
            socket.send(Message::Text(batch.frame().into())).await?;
        }
        if continuity == Continuity::Gap {
            send_json(&mut socket, json!({ "type": "behind", "session": id, "seq": seq })).await?;
            // Queued updates are part of the snapshot that follows: drop them.
            updates = app.updates.subscribe();
            seq = send_snapshot(&app, &mut socket, id).await?;
        }
    }
}

/// A batch of consecutive changes.
struct ChangeBatch {
    id: SessionId,
    from: u64,
    seq: u64,
    /// JSON array elements without the brackets.
    changes: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Continuity {
    All,
    /// Changes before this update are missing.
    Gap,
}

impl ChangeBatch {
    fn take(&mut self, updates: &Update) -> Continuity {
        let written = match updates {
            Update::Written(written) => written,
            Update::Lagged => return Continuity::Gap,
        };
        if written.session != self.id || written.seq <= self.seq {
            return Continuity::All;
        }
        let Some(changes) = written.changes_json().filter(|_| written.from_seq == self.seq) else {
            return Continuity::Gap;
        };
        if !self.changes.is_empty() && !changes.is_empty() {
            self.changes.push(',');
        }
        self.changes.push_str(changes);
        self.seq = written.seq;
        Continuity::All
    }

    fn frame(&self) -> String {
        let ChangeBatch { id, from, seq, changes } = self;
        format!(
            r#"{{"type":"changes","session":"{id}","from_seq":{from},"seq":{seq},"changes":[{changes}]}}"#
        )
    }
}

/// Sends the stored session, several turns per message. Returns its seq.
async fn send_snapshot<S: Store>(
    app: &Arc<App<S>>,
    socket: &mut WebSocket,
    id: SessionId,
) -> Result<u64, axum::Error> {
    loop {
        let Ok(Some(stored)) = app.view().session(id).await else { return Ok(0) };
        let Ok(sizes) = app.view().sizes(stored.row).await else { return Ok(0) };
        let seq = stored.seq;
        let stored = Arc::new(stored);
        let mut turn_ranges = snapshot::turn_ranges(&sizes).into_iter().peekable();
        let mut first = true;
        while first || turn_ranges.peek().is_some() {
            let (number, count) = turn_ranges.next().unwrap_or((0, 0));
            let more = turn_ranges.peek().is_some();
            let permit = app.large_responses.acquire().await;
            let (held, stored) = (app.clone(), stored.clone());
            let window = TurnWindow::From { number, count };
            let building =
                spawn_blocking(move || snapshot_message(&held, &stored, window, first, more));
            let message = building.await.map_err(axum::Error::new)?;
            snapshot::send(socket, permit, vec![message.into()]).await?;
            first = false;
        }
        // If something was written while reading, the turns may be inconsistent: start over.
        if current_seq(app, id).await == Some(seq) {
            return Ok(seq);
        }
    }
}

#[derive(Serialize)]
struct SnapshotMessage<'a> {
    r#type: &'static str,
    session: SessionId,
    seq: u64,
    first: bool,
    more: bool,
    document: SnapshotDocument<'a>,
}

#[derive(Serialize)]
struct SnapshotDocument<'a> {
    session: Option<SessionDocument<'a>>,
    turns: Vec<TurnDocument<'a>>,
}

/// Blocks.
fn snapshot_message<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    window: TurnWindow,
    first: bool,
    more: bool,
) -> String {
    let turns = block_on(app.view().turns(stored.row, window)).unwrap_or_default();
    let (summary, prices) = (&stored.summary, &app.settings.prices);
    let agent = &summary.session.agent;
    let document = SnapshotDocument {
        session: first.then_some(SessionDocument { summary, prices }),
        turns: turns.iter().map(|turn| TurnDocument { agent, turn, prices }).collect(),
    };
    let (session, seq) = (summary.session.id, stored.seq);
    let message = SnapshotMessage { r#type: "snapshot", session, seq, first, more, document };
    // Serializing our own types cannot fail.
    serde_json::to_string(&message).unwrap_or_default()
}
