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
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use unspool_core::id::SessionId;
use unspool_engine::reader::wire::{LONGEST_ANSWER, Said, VERSION};
use unspool_engine::reader::{Answer, Growth, Wish, answer, growth};
use unspool_store::store::Store;

use crate::App;
use crate::news::News;

/// Queries queued per client. When the queue is full the socket is not read.
const WAITING: usize = 16;
/// A client is notified of one session at most this often.
const PACE: Duration = Duration::from_millis(50);
/// If more sessions changed at once, one notice of missed updates is sent instead.
const SESSIONS: usize = 256;

/// A query with its number parsed first, so that an invalid query can still be answered.
#[derive(Deserialize)]
struct Wished<'a> {
    number: u64,
    #[serde(borrow)]
    wish: &'a RawValue,
}

pub async fn tell<S: Store>(app: Arc<App<S>>, mut socket: WebSocket) -> Result<(), axum::Error> {
    // Subscribe before the first query, so that no update is lost in between.
    let mut news = app.news.subscribe();
    say(&mut socket, &Said::Ready { version: VERSION.to_owned() }).await?;
    let mut gathered = Gathered::default();
    let mut due = Instant::now();
    let mut waiting: VecDeque<Utf8Bytes> = VecDeque::new();
    // One query at a time, in its own task: a slow query does not delay notifications. The task is
    // aborted with the connection.
    let mut answering: JoinSet<Result<String, String>> = JoinSet::new();
    loop {
        if answering.is_empty()
            && let Some(text) = waiting.pop_front()
        {
            let app = Arc::clone(&app);
            answering.spawn(async move { answered(&app, &text).await });
        }
        tokio::select! {
            told = news.recv() => match told {
                Ok(told) => gathered.take(&told),
                Err(RecvError::Lagged(_)) => gathered.miss(),
                Err(RecvError::Closed) => return Ok(()),
            },
            () = sleep_until(due), if !gathered.is_empty() => {
                for said in gathered.empty() {
                    say(&mut socket, &said).await?;
                }
                due = Instant::now() + PACE;
            }
            Some(done) = answering.join_next() => match done {
                Ok(Ok(text)) => socket.send(Message::Text(text.into())).await?,
                Ok(Err(detail)) => return say(&mut socket, &Said::Error { detail }).await,
                // The task panicked, and the number of its query is lost: close.
                Err(_) => return Ok(()),
            },
            heard = socket.recv(), if waiting.len() < WAITING => match heard {
                Some(Ok(Message::Text(text))) => waiting.push_back(text),
                Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(()),
            },
        }
    }
}

async fn say(socket: &mut WebSocket, said: &Said) -> Result<(), axum::Error> {
    let text = serde_json::to_string(said).map_err(axum::Error::new)?;
    socket.send(Message::Text(text.into())).await
}

/// The response to a query. Err if the message is not a query at all.
async fn answered<S: Store>(app: &App<S>, text: &str) -> Result<String, String> {
    let Wished { number, wish } = serde_json::from_str(text)
        .map_err(|error| format!("{error}; ask with {{\"number\": 1, \"wish\": WISH}}"))?;
    let answer = match serde_json::from_str::<Wish>(wish.get()) {
        Ok(wish) => answer(&app.store, &app.prices, wish.bounded()).await,
        Err(error) => Answer::Failed(format!(
            "the server does not understand this query ({error}); use the same version of unspool \
             on both sides"
        )),
    };
    let text = written(number, answer)?;
    if text.len() <= LONGEST_ANSWER {
        return Ok(text);
    }
    let what =
        "the response is too large; ask for less, or open the session on the recording machine";
    written(number, Answer::Failed(what.to_owned()))
}

fn written(number: u64, answer: Answer) -> Result<String, String> {
    serde_json::to_string(&Said::Answer { number, answer }).map_err(|error| error.to_string())
}

/// Notifications for the next round.
#[derive(Default)]
struct Gathered {
    /// Sent before `written`.
    missed: bool,
    written: FxHashMap<SessionId, Growth>,
}

impl Gathered {
    fn take(&mut self, news: &News) {
        let written = match news {
            News::Written(written) => written,
            News::Missed => return self.miss(),
        };
        let growth = growth(written);
        let held = self.written.entry(written.session).or_insert(growth);
        *held = growth.max(*held);
        if self.written.len() > SESSIONS {
            self.miss();
        }
    }

    /// The client reloads everything, so single sessions need not be listed.
    fn miss(&mut self) {
        self.missed = true;
        self.written.clear();
    }

    fn is_empty(&self) -> bool {
        !self.missed && self.written.is_empty()
    }

    fn empty(&mut self) -> Vec<Said> {
        let missed = std::mem::take(&mut self.missed).then_some(Said::Missed);
        let written = self.written.drain();
        let written = written.map(|(session, growth)| Said::Written { session, growth });
        missed.into_iter().chain(written).collect()
    }
}

#[cfg(test)]
mod tests {
    use unspool_core::change::{Change, Growing};
    use unspool_core::id::{Id, PartId};
    use unspool_store::recorder::ChangeSet;

    use super::*;

    fn news(session: SessionId, changes: Vec<Change>) -> News {
        News::written(ChangeSet {
            session,
            agent: String::new(),
            agent_session_id: String::new(),
            from_seq: 0,
            seq: 1,
            changes: Some(Arc::new(changes)),
        })
    }

    fn part() -> PartId {
        PartId(Id::derive([b"part".as_slice()]))
    }

    fn grew() -> Vec<Change> {
        let text = "more".to_owned();
        vec![Change::PartGrew { part: part(), field: Growing::Text, text }]
    }

    fn session(nth: usize) -> SessionId {
        SessionId::of("codex", &nth.to_string())
    }

    #[test]
    fn a_session_is_told_once_and_states_win() {
        let mut gathered = Gathered::default();
        assert!(gathered.is_empty());
        let opened = vec![Change::PartRemoved { part: part() }];
        for changes in [grew(), opened, grew()] {
            gathered.take(&news(session(1), changes));
        }
        gathered.take(&news(session(2), grew()));
        let told = gathered.empty();
        assert_eq!(told.len(), 2);
        let state = Said::Written { session: session(1), growth: Growth::State };
        let text = Said::Written { session: session(2), growth: Growth::Text };
        assert!(told.contains(&state) && told.contains(&text), "{told:?}");
        assert!(gathered.is_empty());
    }

    #[test]
    fn too_many_sessions_are_something_missed() {
        let mut gathered = Gathered::default();
        for nth in 0..SESSIONS * 4 {
            gathered.take(&news(session(nth), grew()));
            assert!(gathered.written.len() <= SESSIONS);
        }
        // Sessions that changed after the overflow are listed after it.
        let told = gathered.empty();
        assert_eq!(told[0], Said::Missed);
        assert!(told.len() <= SESSIONS + 1);
        gathered.take(&News::Missed);
        assert_eq!(gathered.empty(), [Said::Missed]);
    }
}
