//! The query protocol of the remote terminal (`unspool --connect`). The client sends the queries
//! that it would run on a local archive and is notified which sessions changed. It then queries
//! again, so a slow client loses nothing: it is notified that it missed updates.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use unspool_model::change::Urgency;
use unspool_model::id::SessionId;
use unspool_query::live::{Update, WriteNotice};
use unspool_query::reader::wire::{MAX_RESPONSE_BYTES, ServerMessage, VERSION};
use unspool_query::reader::{Query, Response, answer};
use unspool_query::request::Request;
use unspool_store::blocking::block_on;
use unspool_store::store::Store;

use crate::App;
use crate::api::change;

/// Queries queued per client. When the queue is full the socket is not read.
const MAX_QUEUED_QUERIES: usize = 16;
/// A client is notified of one session at most this often.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(50);
/// If more sessions changed at once, one notice of missed updates is sent instead.
const MAX_PENDING_SESSIONS: usize = 256;

/// A query with its number parsed first, so that an invalid query can still be answered.
#[derive(Deserialize)]
struct RawClientMessage<'a> {
    number: u64,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
    #[serde(borrow)]
    change: Option<&'a RawValue>,
}

pub async fn serve<S: Store>(app: Arc<App<S>>, mut socket: WebSocket) -> Result<(), axum::Error> {
    // Subscribe before the first query, so that no update is lost in between.
    let mut updates = app.updates.subscribe();
    send(&mut socket, &ServerMessage::Ready { version: VERSION.to_owned() }).await?;
    let mut pending = PendingUpdates::default();
    let mut due = Instant::now();
    let mut waiting: VecDeque<Utf8Bytes> = VecDeque::new();
    // One query at a time, in its own task: a slow query does not delay notifications. The task is
    // aborted with the connection.
    let mut responding: JoinSet<Result<String, String>> = JoinSet::new();
    loop {
        if responding.is_empty()
            && let Some(text) = waiting.pop_front()
        {
            let app = Arc::clone(&app);
            responding.spawn(async move { respond(&app, &text).await });
        }
        tokio::select! {
            update = updates.next() => match update {
                Some(update) => pending.take(update.notice()),
                None => return Ok(()),
            },
            () = sleep_until(due), if !pending.is_empty() => {
                for update in pending.drain() {
                    send(&mut socket, &update.into()).await?;
                }
                due = Instant::now() + NOTIFY_INTERVAL;
            }
            Some(done) = responding.join_next() => match done {
                Ok(Ok(text)) => socket.send(Message::Text(text.into())).await?,
                Ok(Err(detail)) => return send(&mut socket, &ServerMessage::Error { detail }).await,
                // The task panicked, and the number of its query is lost: close.
                Err(_) => return Ok(()),
            },
            received = socket.recv(), if waiting.len() < MAX_QUEUED_QUERIES => match received {
                Some(Ok(Message::Text(text))) => waiting.push_back(text),
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(()),
            },
        }
    }
}

async fn send(socket: &mut WebSocket, message: &ServerMessage) -> Result<(), axum::Error> {
    let text = serde_json::to_string(message).map_err(axum::Error::new)?;
    socket.send(Message::Text(text.into())).await
}

/// The response to a query. Err if the message is not a query at all.
async fn respond<S: Store>(app: &Arc<App<S>>, text: &str) -> Result<String, String> {
    const HINT: &str = r#"ask with {"number": 1, "query": QUERY}"#;
    let RawClientMessage { number, query, change } =
        serde_json::from_str(text).map_err(|error| format!("{error}; {HINT}"))?;
    if let Some(change) = change {
        return written(number, make_change(app, change.get()).await);
    }
    let Some(query) = query else { return Err(format!("missing field `query`; {HINT}")) };
    let answer = match serde_json::from_str::<Query>(query.get()) {
        // Redacting a long session takes a while and blocks: keep it off the server's threads.
        Ok(query @ Query::Markdown { .. }) => {
            let app = Arc::clone(app);
            let answer = move || block_on(answer(&app.view(), &app.settings, query));
            let answer = tokio::task::spawn_blocking(answer).await;
            answer.unwrap_or_else(|error| Response::Failed(error.to_string()))
        }
        Ok(query) => answer(&app.view(), &app.settings, query.bounded()).await,
        Err(error) => Response::Failed(format!(
            "the server does not understand this query ({error}); use the same version of unspool \
             on both sides"
        )),
    };
    let text = written(number, answer)?;
    if text.len() <= MAX_RESPONSE_BYTES {
        return Ok(text);
    }
    let what =
        "the response is too large; ask for less, or open the session on the machine of the server";
    written(number, Response::Failed(what.to_owned()))
}

/// Makes a change for the client. Only what is beside the transcripts can be changed from afar.
async fn make_change<S: Store>(app: &Arc<App<S>>, text: &str) -> Response {
    let request = match serde_json::from_str::<Request>(text) {
        Ok(request) if request.is_annotation() => request,
        Ok(_) => {
            let what = "this can only be done on the machine that records; run unspool there";
            return Response::Failed(what.to_owned());
        }
        Err(error) => {
            return Response::Failed(format!(
                "the server does not understand this change ({error}); use the same version of \
                 unspool on both sides"
            ));
        }
    };
    match change(app, request).await {
        Ok(done) => Response::Changed(done),
        Err(problem) => Response::Failed(problem.detail().to_owned()),
    }
}

fn written(number: u64, answer: Response) -> Result<String, String> {
    serde_json::to_string(&ServerMessage::Response { number, response: answer })
        .map_err(|error| error.to_string())
}

/// Notifications for the next round.
#[derive(Default)]
struct PendingUpdates {
    /// Sent before `written`.
    missed: bool,
    written: FxHashMap<SessionId, Urgency>,
}

impl PendingUpdates {
    fn take(&mut self, update: Update<WriteNotice>) {
        let WriteNotice { session, urgency } = match update {
            Update::Written(write) => write,
            Update::Lagged => return self.mark_missed(),
        };
        let held = self.written.entry(session).or_insert(urgency);
        *held = urgency.max(*held);
        if self.written.len() > MAX_PENDING_SESSIONS {
            self.mark_missed();
        }
    }

    /// The client reloads everything, so single sessions need not be listed.
    fn mark_missed(&mut self) {
        self.missed = true;
        self.written.clear();
    }

    fn is_empty(&self) -> bool {
        !self.missed && self.written.is_empty()
    }

    fn drain(&mut self) -> Vec<Update<WriteNotice>> {
        let missed = std::mem::take(&mut self.missed).then_some(Update::Lagged);
        let written = self.written.drain();
        let written =
            written.map(|(session, urgency)| Update::Written(WriteNotice { session, urgency }));
        missed.into_iter().chain(written).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(nth: usize) -> SessionId {
        SessionId::of("codex", &nth.to_string())
    }

    fn write(nth: usize, urgency: Urgency) -> Update<WriteNotice> {
        Update::Written(WriteNotice { session: session(nth), urgency })
    }

    #[test]
    fn updates_coalesce_per_session_and_states_win() {
        let mut pending = PendingUpdates::default();
        assert!(pending.is_empty());
        for urgency in [Urgency::Text, Urgency::State, Urgency::Text] {
            pending.take(write(1, urgency));
        }
        pending.take(write(2, Urgency::Text));
        let received = pending.drain();
        assert_eq!(received.len(), 2);
        let (state, text) = (write(1, Urgency::State), write(2, Urgency::Text));
        assert!(received.contains(&state) && received.contains(&text), "{received:?}");
        assert!(pending.is_empty());
    }

    #[test]
    fn too_many_sessions_are_something_missed() {
        let mut pending = PendingUpdates::default();
        for nth in 0..MAX_PENDING_SESSIONS * 4 {
            pending.take(write(nth, Urgency::Text));
            assert!(pending.written.len() <= MAX_PENDING_SESSIONS);
        }
        // Sessions that changed after the overflow are listed after it.
        let received = pending.drain();
        assert_eq!(received[0], Update::Lagged);
        assert!(received.len() <= MAX_PENDING_SESSIONS + 1);
        pending.take(Update::Lagged);
        assert_eq!(pending.drain(), [Update::Lagged]);
    }
}
