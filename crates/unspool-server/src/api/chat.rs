//! `/api/chat/{id}/stream`: a turn as a UI message stream of the AI SDK. A finished turn is sent at
//! once; a running turn is sent as far as it is and then as it grows. A redacted stream grows by
//! whole closed parts (law 12), one with `redact=0` by every delta.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::sleep;
use unspool_export::export::collect_secrets;
use unspool_export::project::Sdk;
use unspool_export::project::uimessage::stream::{ChunkEncoder, DONE, MessageChunk};
use unspool_export::project::uimessage::{UiMessage, reply};
use unspool_model::session::{Turn, TurnState};
use unspool_query::live::{Subscription, Update};
use unspool_redact::Redactor;
use unspool_store::store::{Store, StoredSession, TurnWindow, View};

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
        None => match app.view().sizes(stored.row).await?.pop() {
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
    let (out, body) = body_channel();
    let redact = params.flag("redact").unwrap_or(true);
    let headers = params.headers().clone();
    let turn_stream = TurnStream { app: app.clone(), stored, number, redact, headers, out };
    tokio::spawn(turn_stream.emit(updates, ChunkEncoder::new(sdk), turn));
    Ok(ApiResponse::Events(body))
}

async fn load<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    number: u32,
) -> Result<Option<Turn>, Problem> {
    let mut turns = app.view().turns(stored.row, TurnWindow::Turn(number)).await?;
    stored.summary.settle(&mut turns, Timestamp::now());
    Ok(turns.pop())
}

/// The redacted message of a turn as it is now.
fn message(stored: &StoredSession, turn: Turn, sdk: Sdk, redactor: &mut Redactor<'_>) -> UiMessage {
    let session = redactor.release_session(stored.summary.session.clone());
    reply(&session, &redactor.release_live_turn(turn), sdk)
}

fn events(chunks: &[MessageChunk], end: &str) -> Bytes {
    let mut text: String = chunks.iter().map(MessageChunk::event).collect();
    text.push_str(end);
    Bytes::from(text)
}

/// A turn and the client that reads it.
struct TurnStream<S: Store> {
    app: Arc<App<S>>,
    stored: StoredSession,
    number: u32,
    redact: bool,
    /// Of the request: the stream ends with the login of its browser.
    headers: HeaderMap,
    out: mpsc::Sender<BodyChunk>,
}

impl<S: Store> TurnStream<S> {
    async fn emit(self, mut updates: Subscription, mut encoder: ChunkEncoder, first: Turn) {
        // One redactor for the whole stream: a secret that was recognised once stays recognised,
        // and keeps its number.
        let mut redactor =
            if self.redact { Redactor::new(&self.app.settings.rules) } else { Redactor::off() };
        if collect_secrets(&self.app.view(), &self.stored, &mut redactor).await.is_err() {
            return self.abort().await;
        }
        let (sdk, session) = (encoder.sdk(), self.stored.summary.session.id);
        let mut next = Some(message(&self.stored, first, sdk, &mut redactor));
        let mut shutdown = self.app.shutdown.subscribe();
        let mut login_ended = pin!(self.app.auth.login_ended(self.headers.clone()));
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
                    Some(Update::Written(update)) if update.session != session => continue,
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
                () = &mut login_ended => return self.abort().await,
            }
            let Ok(Some(stored)) = self.app.view().session(session).await else { return };
            let Ok(Some(turn)) = load(&self.app, &stored, self.number).await else {
                return self.abort().await;
            };
            next = Some(message(&stored, turn, sdk, &mut redactor));
        }
    }

    /// Resets the connection, so that the message does not look complete.
    async fn abort(&self) {
        let abort = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let _ = self.out.send(Err(abort)).await;
    }
}
