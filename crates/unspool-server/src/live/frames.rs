//! The stream for chat clients: message frames with their own `seq` (R-000-12, R-000-13).

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use tokio::sync::broadcast::error::RecvError;
use unspool_core::id::SessionId;
use unspool_store::store::{Store, TurnWindow};

use super::{current, is_there, say};
use crate::dialect::Dialect;
use crate::news::News;
use crate::{App, api};

pub async fn tell<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    id: SessionId,
) -> Result<(), axum::Error> {
    // Subscribe before loading, so that no update is lost in between.
    let mut news = app.news.subscribe();
    let mut drawn = app.drawn.subscribe();
    let Some((mut seq, mut dialect)) = load(&app, id).await else { return Ok(()) };
    for frame in dialect.snapshot() {
        say(&mut socket, frame).await?;
    }
    loop {
        let told = tokio::select! {
            told = news.recv() => told,
            told = drawn.recv() => {
                if let Ok((session, what)) = told && session == id {
                    socket.send(Message::Text(what)).await?;
                }
                continue
            }
            heard = socket.recv() => {
                if is_there(heard.as_ref()) { continue } else { return Ok(()) }
            }
        };
        let frames = match told {
            Ok(News::Written(told)) if told.session != id || told.seq <= seq => continue,
            Ok(News::Written(told)) if told.from_seq == seq && told.changes.is_some() => {
                seq = told.seq;
                dialect.frames(told.changes.as_deref().map_or(&[][..], Vec::as_slice))
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {
                news = app.news.subscribe();
                let Some((now, stored)) = load(&app, id).await else { return Ok(()) };
                seq = now;
                dialect.restart(stored)
            }
            Err(RecvError::Closed) => return Ok(()),
        };
        for frame in frames {
            say(&mut socket, frame).await?;
        }
    }
}

/// Loads the session, and the seq it was read at.
async fn load<S: Store>(app: &App<S>, id: SessionId) -> Option<(u64, Dialect)> {
    loop {
        let stored = api::find(app, &id.to_string()).await.ok()?;
        let turns = app.store.whole_turns(stored.row, TurnWindow::All).await.ok()?;
        // Retry if something was written while reading: the turns may be inconsistent.
        if current(app, id).await == Some(stored.seq) {
            return Some((stored.seq, Dialect::new(stored.summary.session, turns)));
        }
    }
}
