//! The stream for pages: the `DomOp`s that the session hub paints.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use unspool_model::id::SessionId;
use unspool_store::store::Store;

use super::{is_connected, send_json};
use crate::App;
use crate::session_hub::{self, HubSubscription};

pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    id: SessionId,
) -> Result<(), axum::Error> {
    let joining = tokio::task::spawn_blocking(move || session_hub::join(&app, id));
    let Ok(Ok(Some(HubSubscription { seq, mut messages }))) = joining.await else {
        let what = "the session cannot be read at the moment; try again";
        return send_json(&mut socket, json!({ "type": "error", "detail": what })).await;
    };
    // On `ready` the page reloads its window; the messages that follow build on that.
    send_json(&mut socket, json!({ "type": "ready", "session": id, "seq": seq })).await?;
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Ok(text) => socket.send(Message::Text(text)).await?,
                // The page lagged: on `behind` it reloads its window and continues from there.
                Err(RecvError::Lagged(_)) => {
                    send_json(&mut socket, json!({ "type": "behind", "session": id })).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            received = socket.recv() => if !is_connected(received.as_ref()) { return Ok(()) },
        }
    }
}
