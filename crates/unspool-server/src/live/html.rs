//! For pages: the pieces that differ, as the room of the session paints them.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use unspool_core::id::SessionId;
use unspool_store::contract::Store;

use super::{is_there, say};
use crate::App;
use crate::room::{self, Joined};

pub async fn tell<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    id: SessionId,
) -> Result<(), axum::Error> {
    let joining = tokio::task::spawn_blocking(move || room::join(&app, id));
    let Ok(Ok(Some(Joined { seq, mut then }))) = joining.await else {
        let what = "the session cannot be read now; try again";
        return say(&mut socket, json!({ "type": "error", "detail": what })).await;
    };
    // Whoever hears this loads what it looks at: what is told from here on follows that.
    say(&mut socket, json!({ "type": "ready", "session": id, "seq": seq })).await?;
    loop {
        tokio::select! {
            told = then.recv() => match told {
                Ok(text) => socket.send(Message::Text(text)).await?,
                // Too slow: whoever hears this loads what it looks at, and goes on from there.
                Err(RecvError::Lagged(_)) => {
                    say(&mut socket, json!({ "type": "behind", "session": id })).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            heard = socket.recv() => if !is_there(heard.as_ref()) { return Ok(()) },
        }
    }
}
