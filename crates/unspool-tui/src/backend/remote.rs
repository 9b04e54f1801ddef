//! The backend over a remote server's WebSocket (`/api/live`). A thread of its own sends queries,
//! receives responses and updates, and reconnects when the connection is lost.

mod address;
mod dialler;
mod error;

use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

use dialler::{Dialler, Socket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, interval, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use unspool_query::live::Update;
use unspool_query::reader::wire::{ChangeMessage, ClientMessage, MAX_QUERY_BYTES, ServerMessage};
use unspool_query::reader::{Query, Response};
use unspool_query::request::Request;

pub use address::{Address, Credentials};
pub use error::RemoteError;

use super::{Backend, BackendEvent, EventSender, QueryId};
use crate::event::AppEvent;

/// The first and the longest delay between two attempts to reconnect; it doubles each time.
const RECONNECT_DELAYS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// Queries queued while disconnected. The oldest are dropped first.
const MAX_QUEUED_QUERIES: usize = 32;
/// How often a ping makes the server respond.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// A server that sends nothing for this long counts as gone.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);

pub struct RemoteBackend {
    name: String,
    outgoing: UnboundedSender<Outgoing>,
}

/// What is sent to the server.
enum Outgoing {
    Query(QueryId, Query),
    Change(Request),
}

/// The number of a change, in the place of the number of a query.
const CHANGE_NUMBER: u64 = u64::MAX;

impl RemoteBackend {
    /// Connects to a server, by the address that it printed or the URL of any of its pages. Blocks
    /// until the connection is established. Afterwards the thread reconnects whenever the
    /// connection is lost, as long as the backend lives. A token in the address overrides the
    /// credentials.
    pub fn connect(
        address: &str,
        credentials: Credentials,
        sender: EventSender,
    ) -> Result<RemoteBackend, RemoteError> {
        let (address, token) = Address::parse(address)?;
        let credentials = Credentials { token: token.or(credentials.token), ..credentials };
        let name = address.name();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut dialler = Dialler::new(address, credentials);
        let socket = runtime.block_on(dialler.dial())?;
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let reader = Connection { dialler, incoming, queued: VecDeque::new(), sender };
        thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || runtime.block_on(reader.run(socket)))?;
        Ok(RemoteBackend { name, outgoing })
    }
}

impl Backend for RemoteBackend {
    fn send_query(&self, number: QueryId, query: Query) {
        // The thread has ended only if the application is ending.
        let _ = self.outgoing.send(Outgoing::Query(number, query));
    }

    fn change(&self, request: Request) {
        let _ = self.outgoing.send(Outgoing::Change(request));
    }

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Why a connection ended.
enum Disconnect {
    /// The application is ending.
    Closed,
    Lost(String),
}

struct Connection {
    dialler: Dialler,
    incoming: UnboundedReceiver<Outgoing>,
    queued: VecDeque<(QueryId, Query)>,
    sender: EventSender,
}

impl Connection {
    async fn run(mut self, mut socket: Socket) {
        loop {
            let reason = match self.exchange(socket).await {
                Disconnect::Closed => return,
                Disconnect::Lost(reason) => reason,
            };
            if !send_event(&self.sender, BackendEvent::Lost(reason)) {
                return;
            }
            socket = match self.reconnect().await {
                Some(socket) => socket,
                None => return,
            };
            if !send_event(&self.sender, BackendEvent::Connected) {
                return;
            }
        }
    }

    async fn exchange(&mut self, socket: Socket) -> Disconnect {
        let (out, stream) = socket.split();
        let sender = self.sender.clone();
        // Concurrently: a send that blocks must not stop reading, or both sides could block
        // forever.
        tokio::select! {
            disconnect = self.send_query(out) => disconnect,
            disconnect = receive(stream, &sender) => disconnect,
        }
    }

    async fn send_query(&mut self, mut out: SplitSink<Socket, Message>) -> Disconnect {
        let mut ping = interval(PING_INTERVAL);
        loop {
            let message = match self.queued.pop_front() {
                Some((number, query)) => self.message(number, query),
                None => tokio::select! {
                    incoming = self.incoming.recv() => match incoming {
                        Some(Outgoing::Query(number, query)) => self.message(number, query),
                        Some(Outgoing::Change(change)) => self.change_message(change),
                        None => {
                            let _ = out.close().await;
                            return Disconnect::Closed;
                        }
                    },
                    _ = ping.tick() => Some(Message::Ping(Bytes::new())),
                },
            };
            if let Some(message) = message
                && let Err(error) = out.send(message).await
            {
                return Disconnect::Lost(reason(&error));
            }
        }
    }

    /// The query as a message. `None` if it is too long: the server would close the connection.
    fn message(&self, number: QueryId, query: Query) -> Option<Message> {
        let reason = match serde_json::to_string(&ClientMessage { number, query }) {
            Ok(text) if text.len() <= MAX_QUERY_BYTES => return Some(Message::text(text)),
            Ok(_) => "the query is too long; shorten it".to_owned(),
            Err(error) => format!("cannot encode the query: {error}"),
        };
        send_event(&self.sender, BackendEvent::Response(number, Response::Failed(reason)));
        None
    }

    fn change_message(&self, change: Request) -> Option<Message> {
        let message = ChangeMessage { number: CHANGE_NUMBER, change };
        let reason = match serde_json::to_string(&message) {
            Ok(text) if text.len() <= MAX_QUERY_BYTES => return Some(Message::text(text)),
            Ok(_) => "not saved: it is too long".to_owned(),
            Err(error) => format!("not saved: {error}"),
        };
        send_event(&self.sender, BackendEvent::ChangeDone(Err(reason)));
        None
    }

    /// Tries until it succeeds. `None` if the application is ending.
    async fn reconnect(&mut self) -> Option<Socket> {
        let (mut pause, longest) = RECONNECT_DELAYS;
        loop {
            let due = Instant::now() + pause;
            loop {
                tokio::select! {
                    () = sleep_until(due) => break,
                    incoming = self.incoming.recv() => self.enqueue(incoming?),
                }
            }
            let dialled = self.dialler.dial().await;
            while let Ok(outgoing) = self.incoming.try_recv() {
                self.enqueue(outgoing);
            }
            // Retry after any error: the server's token or version may change meanwhile.
            if let Ok(socket) = dialled {
                return Some(socket);
            }
            pause = (pause * 2).min(longest);
        }
    }

    /// Keeps a query for the next connection. A change is not kept: nobody would see that it was made
    /// much later.
    fn enqueue(&mut self, outgoing: Outgoing) {
        let (number, query) = match outgoing {
            Outgoing::Query(number, query) => (number, query),
            Outgoing::Change(_) => {
                let reason =
                    "not saved: there is no connection to the server; try again".to_owned();
                send_event(&self.sender, BackendEvent::ChangeDone(Err(reason)));
                return;
            }
        };
        self.queued.push_back((number, query));
        if self.queued.len() > MAX_QUEUED_QUERIES {
            self.queued.pop_front();
        }
    }
}

async fn receive(mut stream: SplitStream<Socket>, sender: &EventSender) -> Disconnect {
    loop {
        let text = match timeout(SERVER_TIMEOUT, stream.next()).await {
            Err(_) => return Disconnect::Lost("the server did not respond in time".to_owned()),
            Ok(None | Some(Ok(Message::Close(_)))) => {
                return Disconnect::Lost("the server closed the connection".to_owned());
            }
            Ok(Some(Err(error))) => return Disconnect::Lost(reason(&error)),
            Ok(Some(Ok(Message::Text(text)))) => text,
            Ok(Some(Ok(
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_),
            ))) => continue,
        };
        let event = match parse_message(&text) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(reason) => return Disconnect::Lost(reason),
        };
        if !send_event(sender, event) {
            return Disconnect::Closed;
        }
    }
}

/// Parses a server message. Unknown kinds are ignored. An error message ends the connection.
fn parse_message(text: &str) -> Result<Option<BackendEvent>, String> {
    /// The id of a response whose content cannot be decoded.
    #[derive(Deserialize)]
    struct Numbered {
        number: QueryId,
    }
    match serde_json::from_str(text) {
        Ok(ServerMessage::Response { number: CHANGE_NUMBER, response }) => {
            Ok(Some(BackendEvent::ChangeDone(outcome(response))))
        }
        Ok(ServerMessage::Response { number, response }) => {
            Ok(Some(BackendEvent::Response(number, response)))
        }
        Ok(ServerMessage::Written(write)) => Ok(Some(BackendEvent::Update(Update::Written(write)))),
        Ok(ServerMessage::Lagged) => Ok(Some(BackendEvent::Update(Update::Lagged))),
        Ok(ServerMessage::Ready { .. }) => Ok(None),
        Ok(ServerMessage::Error { detail }) => Err(detail),
        Err(error) => Ok(serde_json::from_str(text).ok().map(|Numbered { number }| {
            let reason = format!("cannot decode the response: {error}");
            BackendEvent::Response(number, Response::Failed(reason))
        })),
    }
}

/// The outcome of a change.
#[allow(clippy::wildcard_enum_match_arm)]
fn outcome(response: Response) -> Result<String, String> {
    match response {
        Response::Changed(done) => Ok(done),
        Response::Failed(reason) => Err(reason),
        _ => Err("the server did not say whether it was saved; look again".to_owned()),
    }
}

fn reason(error: &Error) -> String {
    format!("the connection was lost: {error}")
}

/// False if the application is ending.
fn send_event(sender: &EventSender, event: BackendEvent) -> bool {
    sender.send(AppEvent::Backend(event)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undecodable_response_still_reaches_its_requester() {
        let failed = |text| match parse_message(text) {
            Ok(Some(BackendEvent::Response(number, Response::Failed(reason)))) => (number, reason),
            other => panic!("{other:?}"),
        };
        let (number, reason) = failed(r#"{"type":"response","number":7,"response":{"sung":[]}}"#);
        assert!(number == 7 && reason.contains("sung"), "{reason}");
        for other in [r#"{"type":"news"}"#, "{", r#"{"type":"ready","version":"0"}"#] {
            assert!(matches!(parse_message(other), Ok(None)), "{other}");
        }
        let lagged = parse_message(r#"{"type":"lagged"}"#);
        assert!(matches!(lagged, Ok(Some(BackendEvent::Update(Update::Lagged)))));
        let disconnect = parse_message(r#"{"type":"error","detail":"enough"}"#);
        assert_eq!(disconnect.err().as_deref(), Some("enough"));
    }
}
