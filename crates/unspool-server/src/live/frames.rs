//! The stream for chat clients: message frames with their own `seq` (R-000-12, R-000-13).

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use tokio::task::spawn_blocking;
use unspool_model::id::SessionId;
use unspool_query::live::Update;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, TurnWindow, View};

use super::{current_seq, is_connected, send_json, snapshot};
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
    let Ok(Some(stored)) = app.view().session(id).await else { return Ok(()) };
    let encoder = FramesEncoder::new(stored.summary.session, Vec::new());
    let snapshot = send_snapshot(&app, &mut socket, id, encoder).await?;
    let Some((mut seq, mut encoder)) = snapshot else { return Ok(()) };
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
                let frames = update.delta.as_ref().map(|delta| encoder.frames_in_memory(delta));
                frames.flatten().map(|frames| (update.seq, frames))
            }
            Some(_) => None,
            None => return Ok(()),
        };
        if let Some((next, frames)) = next {
            seq = next;
            for frame in frames {
                send_json(&mut socket, frame).await?;
            }
        } else {
            updates = app.updates.subscribe();
            let snapshot = send_snapshot(&app, &mut socket, id, encoder).await?;
            let Some(snapshot) = snapshot else { return Ok(()) };
            (seq, encoder) = snapshot;
        }
    }
}

/// Sends the stored session, some turns at a time. Returns its seq; None if it cannot be read.
async fn send_snapshot<S: Store>(
    app: &Arc<App<S>>,
    socket: &mut WebSocket,
    id: SessionId,
    mut encoder: FramesEncoder,
) -> Result<Option<(u64, FramesEncoder)>, axum::Error> {
    loop {
        let Ok(Some(stored)) = app.view().session(id).await else { return Ok(None) };
        let Ok(sizes) = app.view().sizes(stored.row).await else { return Ok(None) };
        for frame in encoder.restart(stored.summary.session.clone()) {
            send_json(socket, frame).await?;
        }
        for (number, count) in snapshot::turn_ranges(&sizes) {
            let permit = app.large_responses.acquire().await;
            let (app, row) = (app.clone(), stored.row);
            let window = TurnWindow::From { number, count };
            let building = spawn_blocking(move || {
                let turns = block_on(app.view().whole_turns(row, window)).ok()?;
                let frames = encoder.add_turns(turns).into_iter();
                Some((frames.map(|frame| frame.to_string().into()).collect(), encoder))
            });
            let Ok(Some((frames, held))) = building.await else { return Ok(None) };
            encoder = held;
            snapshot::send(socket, permit, frames).await?;
        }
        // Start over if something was written while reading: the turns may be inconsistent.
        if current_seq(app, id).await == Some(stored.seq) {
            return Ok(Some((stored.seq, encoder)));
        }
    }
}
