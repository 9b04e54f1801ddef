//! The stream for chat clients: message frames with their own `seq` (R-000-12, R-000-13).

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use unspool_model::id::SessionId;
use unspool_query::live::Update;
use unspool_store::store::{Store, TurnWindow, View};

use super::{current_seq, is_connected, send_json};
use crate::App;
use crate::frames_encoder::FramesEncoder;

pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    id: SessionId,
) -> Result<(), axum::Error> {
    // Subscribe before loading, so that no update is lost in between.
    let mut updates = app.updates.subscribe();
    let mut artifacts = app.artifacts.subscribe();
    let Some((mut seq, mut encoder)) = load(&app, id).await else { return Ok(()) };
    for frame in encoder.snapshot() {
        send_json(&mut socket, frame).await?;
    }
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
        let next = match update {
            Some(Update::Written(update)) if update.session != id || update.seq <= seq => continue,
            Some(Update::Written(update)) if update.from_seq == seq => {
                update.delta.clone().map(|delta| (update.seq, delta))
            }
            Some(_) => None,
            None => return Ok(()),
        };
        let frames = match next {
            Some((next, delta)) => {
                seq = next;
                encoder.frames(&delta)
            }
            None => {
                updates = app.updates.subscribe();
                let Some((now, stored)) = load(&app, id).await else { return Ok(()) };
                seq = now;
                encoder.restart(stored)
            }
        };
        for frame in frames {
            send_json(&mut socket, frame).await?;
        }
    }
}

/// Loads the session, and the seq it was read at.
async fn load<S: Store>(app: &App<S>, id: SessionId) -> Option<(u64, FramesEncoder)> {
    loop {
        let stored = app.view().session(id).await.ok()??;
        let turns = app.view().whole_turns(stored.row, TurnWindow::All).await.ok()?;
        // Retry if something was written while reading: the turns may be inconsistent.
        if current_seq(app, id).await == Some(stored.seq) {
            return Some((stored.seq, FramesEncoder::new(stored.summary.session, turns)));
        }
    }
}
