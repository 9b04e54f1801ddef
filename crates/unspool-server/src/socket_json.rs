//! Sends JSON on a WebSocket.

use axum::extract::ws::{Message, WebSocket};
use serde_json::Value;

pub async fn send_json(socket: &mut WebSocket, what: Value) -> Result<(), axum::Error> {
    socket.send(Message::Text(what.to_string().into())).await
}
