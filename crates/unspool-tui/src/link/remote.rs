//! The backend over a remote server's WebSocket (`/api/live`). A thread of its own sends queries,
//! receives responses and updates, and reconnects when the connection is lost.

mod address;
mod dial;
mod error;

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use unspool_engine::reader::wire::{ClientMessage, MAX_QUERY_BYTES, ServerMessage};
use unspool_engine::reader::{Query, Response};
use unspool_engine::request::Request;

pub use address::{Address, Secrets};
pub use error::RemoteError;

use super::{Ear, Link, Number, Told};
use crate::event::Event;
use dial::{Dialler, Socket};

/// The first and the longest delay between two attempts to reconnect; it doubles each time.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Queries queued while disconnected. The oldest are dropped first.
const KEPT: usize = 32;
/// How often a ping makes the server respond.
const BEAT: Duration = Duration::from_secs(10);
/// A server that sends nothing for this long counts as gone.
const SILENCE: Duration = Duration::from_secs(30);

pub struct Remote {
    name: String,
    wishes: UnboundedSender<(Number, Query)>,
    ear: Ear,
}

impl Remote {
    /// Connects to a server, by the address that it printed or the URL of any of its pages. Blocks
    /// until the connection is established. Afterwards the thread reconnects whenever the
    /// connection is lost, as long as the backend lives. A token in the address overrides the
    /// credentials.
    pub fn connect(address: &str, secrets: Secrets, ear: Ear) -> Result<Remote, RemoteError> {
        let (address, token) = Address::read(address)?;
        let secrets = Secrets { token: token.or(secrets.token), ..secrets };
        let name = address.name();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut dialler = Dialler::new(address, secrets);
        let socket = runtime.block_on(dialler.dial())?;
        let (wishes, wished) = mpsc::unbounded_channel();
        let reader = Reader { dialler, wished, kept: VecDeque::new(), ear: ear.clone() };
        thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || runtime.block_on(reader.go_on(socket)))?;
        Ok(Remote { name, wishes, ear })
    }
}

impl Link for Remote {
    fn ask(&self, number: Number, query: Query) {
        // The thread has ended only if the application is ending.
        let _ = self.wishes.send((number, query));
    }

    fn change(&self, _: Request) {
        let name = &self.name;
        let what = format!(
            "{name} is read only: changes are made on the machine that records; run unspool there"
        );
        let _ = self.ear.send(Event::Told(Told::Done(Err(what))));
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Why a connection ended.
enum Over {
    /// The application is ending.
    Ended,
    Lost(String),
}

struct Reader {
    dialler: Dialler,
    wished: UnboundedReceiver<(Number, Query)>,
    kept: VecDeque<(Number, Query)>,
    ear: Ear,
}

impl Reader {
    async fn go_on(mut self, mut socket: Socket) {
        loop {
            let why = match self.talk(socket).await {
                Over::Ended => return,
                Over::Lost(why) => why,
            };
            if !tell(&self.ear, Told::Lost(why)) {
                return;
            }
            socket = match self.connect_again().await {
                Some(socket) => socket,
                None => return,
            };
            if !tell(&self.ear, Told::Connected) {
                return;
            }
        }
    }

    async fn talk(&mut self, socket: Socket) -> Over {
        let (out, heard) = socket.split();
        let ear = self.ear.clone();
        // Concurrently: a send that blocks must not stop reading, or both sides could block
        // forever.
        tokio::select! {
            over = self.ask(out) => over,
            over = hear(heard, &ear) => over,
        }
    }

    async fn ask(&mut self, mut out: SplitSink<Socket, Message>) -> Over {
        let mut beat = interval(BEAT);
        loop {
            let message = match self.kept.pop_front() {
                Some((number, query)) => self.message(number, query),
                None => tokio::select! {
                    wished = self.wished.recv() => match wished {
                        Some((number, query)) => self.message(number, query),
                        None => {
                            let _ = out.close().await;
                            return Over::Ended;
                        }
                    },
                    _ = beat.tick() => Some(Message::Ping(Bytes::new())),
                },
            };
            if let Some(message) = message
                && let Err(error) = out.send(message).await
            {
                return Over::Lost(why(&error));
            }
        }
    }

    /// The query as a message. `None` if it is too long: the server would close the connection.
    fn message(&self, number: Number, query: Query) -> Option<Message> {
        let what = match serde_json::to_string(&ClientMessage { number, query }) {
            Ok(text) if text.len() <= MAX_QUERY_BYTES => return Some(Message::text(text)),
            Ok(_) => "the query is too long; ask for less".to_owned(),
            Err(error) => format!("cannot encode the query: {error}"),
        };
        tell(&self.ear, Told::Answered(number, Response::Failed(what)));
        None
    }

    /// Tries until it succeeds. `None` if the application is ending.
    async fn connect_again(&mut self) -> Option<Socket> {
        let (mut pause, longest) = PAUSES;
        loop {
            let due = Instant::now() + pause;
            loop {
                tokio::select! {
                    () = sleep_until(due) => break,
                    wished = self.wished.recv() => {
                        let (number, query) = wished?;
                        self.keep(number, query);
                    }
                }
            }
            let dialled = self.dialler.dial().await;
            while let Ok((number, query)) = self.wished.try_recv() {
                self.keep(number, query);
            }
            // Retry after any error: the server's token or version may change meanwhile.
            if let Ok(socket) = dialled {
                return Some(socket);
            }
            pause = (pause * 2).min(longest);
        }
    }

    fn keep(&mut self, number: Number, query: Query) {
        self.kept.push_back((number, query));
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }
}

async fn hear(mut heard: SplitStream<Socket>, ear: &Ear) -> Over {
    loop {
        let text = match timeout(SILENCE, heard.next()).await {
            Err(_) => return Over::Lost("the server did not respond in time".to_owned()),
            Ok(None | Some(Ok(Message::Close(_)))) => {
                return Over::Lost("the server closed the connection".to_owned());
            }
            Ok(Some(Err(error))) => return Over::Lost(why(&error)),
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_),
            ))) => continue,
        };
        let told = match understand(&text) {
            Ok(Some(told)) => told,
            Ok(None) => continue,
            Err(why) => return Over::Lost(why),
        };
        if !tell(ear, told) {
            return Over::Ended;
        }
    }
}

/// Parses a server message. Unknown kinds are ignored. An error message ends the connection.
fn understand(text: &str) -> Result<Option<Told>, String> {
    /// The id of a response whose content cannot be decoded.
    #[derive(Deserialize)]
    struct Numbered {
        number: Number,
    }
    match serde_json::from_str(text) {
        Ok(ServerMessage::Response { number, response }) => {
            Ok(Some(Told::Answered(number, response)))
        }
        Ok(ServerMessage::Written { session, urgency }) => {
            Ok(Some(Told::Written { session, urgency }))
        }
        Ok(ServerMessage::Lagged) => Ok(Some(Told::Lagged)),
        Ok(ServerMessage::Ready { .. }) => Ok(None),
        Ok(ServerMessage::Error { detail }) => Err(detail),
        Err(error) => Ok(serde_json::from_str(text).ok().map(|Numbered { number }| {
            let what = format!("cannot decode the response: {error}");
            Told::Answered(number, Response::Failed(what))
        })),
    }
}

fn why(error: &Error) -> String {
    format!("the connection was lost: {error}")
}

/// False if the application is ending.
fn tell(ear: &Ear, told: Told) -> bool {
    ear.send(Event::Told(told)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_understood_still_finds_who_asked() {
        let failed = |text| match understand(text) {
            Ok(Some(Told::Answered(number, Response::Failed(what)))) => (number, what),
            other => panic!("{other:?}"),
        };
        let (number, what) = failed(r#"{"type":"answer","number":7,"answer":{"sung":[]}}"#);
        assert!(number == 7 && what.contains("sung"), "{what}");
        for other in [r#"{"type":"news"}"#, "{", r#"{"type":"ready","version":"0"}"#] {
            assert!(matches!(understand(other), Ok(None)), "{other}");
        }
        assert!(matches!(understand(r#"{"type":"missed"}"#), Ok(Some(Told::Lagged))));
        let over = understand(r#"{"type":"error","detail":"enough"}"#);
        assert_eq!(over.err().as_deref(), Some("enough"));
    }
}
