//! `/api/chat/{id}/stream`: a turn as a UI message stream of the AI SDK. A finished turn is sent at
//! once; a running turn is sent as far as it is and then as it grows.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::sleep;
use unspool_core::id::SessionId;
use unspool_core::redact::{Redactor, Rules};
use unspool_core::session::{Turn, TurnState};
use unspool_engine::live::{Subscription, Update};
use unspool_render::project::Sdk;
use unspool_render::project::uimessage::stream::{Chunk, ChunkEncoder, DONE, encode_whole};
use unspool_render::project::uimessage::{UiMessage, reply};
use unspool_store::store::{Store, StoredSession, TurnWindow};

use super::find;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use super::stream::{BodyChunk, body_channel};
use super::turns::no_turn;
use crate::App;
use crate::problem::Problem;

/// The turn is re-read at most this often.
const TEXT_INTERVAL: Duration = Duration::from_millis(100);
/// A comment is sent after this long without data, to keep the connection open.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// The SDK version from the `sdk` parameter.
pub fn sdk(params: &RequestParams) -> Sdk {
    if params.text("sdk") == Some("7") { Sdk::Seven } else { Sdk::Common }
}

pub async fn stream<S: Store>(
    app: &Arc<App<S>>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    // Subscribe before loading, so that no update is lost in between.
    let updates = app.updates.subscribe();
    let stored = find(app, params.path_param("id")).await?;
    let number = match params.number("turn").and_then(|number| u32::try_from(number).ok()) {
        Some(number) => number,
        // A reconnecting client wants the running turn, if there is one.
        None => match app.store.sizes(stored.row).await?.pop() {
            Some(last) => last.number,
            None => return Ok(ApiResponse::NoContent),
        },
    };
    let turn = load(app, &stored, number).await?.ok_or_else(|| no_turn(&stored, number))?;
    let is_running = turn.state == TurnState::Running;
    if params.text("turn").is_none() && !is_running {
        return Ok(ApiResponse::NoContent);
    }
    let sdk = sdk(params);
    let rules = params.flag("redact").unwrap_or(true).then(|| app.rules.clone());
    let message = message(&stored, turn, sdk, rules.as_ref());
    let (out, body) = body_channel();
    if is_running {
        let session = stored.summary.session.id;
        let turn_stream = TurnStream { app: app.clone(), session, number, rules, out };
        tokio::spawn(turn_stream.emit(updates, ChunkEncoder::new(sdk), message));
    } else {
        // One chunk fits the channel, so this never blocks.
        let _ = out.try_send(Ok(events(&encode_whole(message, sdk), DONE)));
    }
    Ok(ApiResponse::Events(body))
}

async fn load<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    number: u32,
) -> Result<Option<Turn>, Problem> {
    let mut turns = app.store.turns(stored.row, TurnWindow::Turn(number)).await?;
    stored.summary.settle(&mut turns, Timestamp::now());
    Ok(turns.pop())
}

/// The redacted message of a turn as it is now. A secret that is still being written is recognised
/// only when it is complete; then the text that was sent no longer matches and the stream aborts.
fn message(stored: &StoredSession, mut turn: Turn, sdk: Sdk, rules: Option<&Rules>) -> UiMessage {
    let mut session = stored.summary.session.clone();
    if let Some(rules) = rules {
        let mut redactor = Redactor::new(rules);
        redactor.session(&mut session);
        redactor.turn(&mut turn);
    }
    reply(&session, &turn, sdk)
}

fn events(chunks: &[Chunk], end: &str) -> Bytes {
    let mut text: String = chunks.iter().map(Chunk::event).collect();
    text.push_str(end);
    Bytes::from(text)
}

/// A running turn and the client that follows it.
struct TurnStream<S: Store> {
    app: Arc<App<S>>,
    session: SessionId,
    number: u32,
    rules: Option<Rules>,
    out: mpsc::Sender<BodyChunk>,
}

impl<S: Store> TurnStream<S> {
    async fn emit(self, mut updates: Subscription, mut encoder: ChunkEncoder, first: UiMessage) {
        let sdk = encoder.sdk();
        let mut next = Some(first);
        let mut shutdown = self.app.shutdown.subscribe();
        loop {
            if let Some(message) = next.take() {
                let running = message.metadata["state"] == TurnState::Running.name();
                // Earlier content changed: abort, so that the client reconnects and reloads.
                let Ok(chunks) = encoder.emit(message) else { return self.abort().await };
                let event_bytes = match running {
                    true if chunks.is_empty() => Bytes::new(),
                    true => events(&chunks, ""),
                    false => events(&[chunks, encoder.end()].concat(), DONE),
                };
                if !event_bytes.is_empty() && self.out.send(Ok(event_bytes)).await.is_err()
                    || !running
                {
                    return;
                }
            }
            tokio::select! {
                update = updates.next() => match update {
                    Some(Update::Written(update)) if update.session != self.session => continue,
                    Some(_) => {
                        sleep(TEXT_INTERVAL).await;
                        // Updates received meanwhile are covered by the next load.
                        updates = self.app.updates.subscribe();
                    }
                    None => return,
                },
                () = sleep(KEEPALIVE_INTERVAL) => {
                    let alive = Bytes::from_static(b": still there\n\n");
                    if self.out.send(Ok(alive)).await.is_err() {
                        return;
                    }
                }
                () = self.out.closed() => return,
                _ = shutdown.changed() => return self.abort().await,
            }
            let Ok(stored) = find(&self.app, &self.session.to_string()).await else { return };
            let Ok(Some(turn)) = load(&self.app, &stored, self.number).await else {
                return self.abort().await;
            };
            next = Some(message(&stored, turn, sdk, self.rules.as_ref()));
        }
    }

    /// Resets the connection, so that the message does not look complete.
    async fn abort(&self) {
        let abort = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let _ = self.out.send(Err(abort)).await;
    }
}
