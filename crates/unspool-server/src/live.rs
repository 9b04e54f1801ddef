//! The WebSocket for everything live. The first message selects a session, a start and a form; the
//! server then streams from there without gaps or repeats. `{"read": true}` starts the query
//! protocol of the remote terminal (`live/reader.rs`).

mod changes;
mod frames;
mod html;
mod reader;
mod snapshot;

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use unspool_model::id::SessionId;
use unspool_query::reader::wire::MAX_QUERY_BYTES;
use unspool_store::store::{Store, View};

use crate::problem::Problem;
use crate::socket_json::send_json;
use crate::{App, api, list_hub};

/// Read buffer per socket in bytes: small, since there may be thousands of sockets.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// The largest message of a page that may drive: prompts and answers are longer than queries.
const MAX_COMMAND_BYTES: usize = 1024 * 1024;

#[derive(Debug, Deserialize)]
struct SubscribeRequest {
    /// Start the query protocol; the other fields are ignored then.
    #[serde(default)]
    read: bool,
    subscribe: Option<String>,
    /// A chat, or a session whose chat is wanted.
    chat: Option<String>,
    /// The key of a page that may drive.
    key: Option<String>,
    #[serde(default)]
    form: Form,
    since: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Form {
    /// The changes of `unspool-model`.
    #[default]
    Json,
    /// DOM operations for the page.
    Html,
    /// Frames of messages (R-000-12).
    Frames,
}

/// Upgrades to the WebSocket.
pub async fn connect<S: Store>(
    State(app): State<Arc<App<S>>>,
    headers: HeaderMap,
    up: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let up = match up {
        Ok(up) => up,
        Err(error) => {
            let what = format!("{}; connect to it as a WebSocket, version 13", error.body_text());
            return Problem::new(StatusCode::UPGRADE_REQUIRED, what).into_response();
        }
    };
    let max_bytes = if app.auth.is_driver(&headers) { MAX_COMMAND_BYTES } else { MAX_QUERY_BYTES };
    let up = up.max_message_size(max_bytes).max_frame_size(max_bytes);
    up.read_buffer_size(READ_BUFFER_BYTES).write_buffer_size(0).on_upgrade(
        move |socket| async move {
            let ended = app.auth.login_ended(headers.clone());
            tokio::select! {
                // A disconnected client is not an error.
                _ = run(app.clone(), socket, headers) => {}
                () = ended => {}
            }
        },
    )
}

async fn run<S: Store>(
    app: Arc<App<S>>,
    mut socket: WebSocket,
    headers: HeaderMap,
) -> Result<(), axum::Error> {
    let Some(request) = recv_text(&mut socket).await else { return Ok(()) };
    let text = request;
    let request: SubscribeRequest = match serde_json::from_str(&text) {
        Ok(request) => request,
        Err(error) => return reject(&mut socket, &error.to_string()).await,
    };
    if request.read {
        return reader::serve(app, socket).await;
    }
    if let Some(chat) = request.chat {
        if !app.auth.may_drive(&headers, request.key.as_deref()) {
            let what = "this browser may not drive agents; `unspool serve --chat` prints an address \
                        that allows it";
            return send_json(&mut socket, json!({ "type": "error", "detail": what })).await;
        }
        #[cfg(unix)]
        return tokio::select! {
            ended = crate::chat::serve(app.clone(), socket, &chat) => ended,
            () = app.auth.driving_ended(headers) => Ok(()),
        };
        #[cfg(not(unix))]
        return reject(&mut socket, &format!("there is no chat {chat}")).await;
    }
    let Some(subscribe) = request.subscribe else {
        return reject(&mut socket, "`subscribe` is missing").await;
    };
    if subscribe == "sessions" {
        return list_hub::serve(app, socket, &text).await;
    }
    let stored = match api::find(&app, &subscribe).await {
        Ok(stored) => stored,
        Err(problem) => {
            let what = json!({ "type": "error", "detail": problem.detail() });
            return send_json(&mut socket, what).await;
        }
    };
    let id = stored.summary.session.id;
    match request.form {
        Form::Html => html::serve(app, socket, id).await,
        Form::Json => changes::serve(app, socket, id, request.since).await,
        Form::Frames => frames::serve(app, socket, id).await,
    }
}

async fn reject(socket: &mut WebSocket, why: &str) -> Result<(), axum::Error> {
    let what = format!("{why}; send {{\"subscribe\": SESSION, \"form\": \"json\"}}");
    send_json(socket, json!({ "type": "error", "detail": what })).await
}

/// The next text message. None when the socket closes.
async fn recv_text(socket: &mut WebSocket) -> Option<Utf8Bytes> {
    loop {
        match socket.recv().await?.ok()? {
            Message::Text(text) => return Some(text),
            Message::Close(_) => return None,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
}

/// False if the received message means that the client is gone.
fn is_connected(received: Option<&Result<Message, axum::Error>>) -> bool {
    !matches!(received, None | Some(Err(_) | Ok(Message::Close(_))))
}

async fn current_seq<S: Store>(app: &App<S>, id: SessionId) -> Option<u64> {
    app.view().session(id).await.ok()?.map(|stored| stored.seq)
}
