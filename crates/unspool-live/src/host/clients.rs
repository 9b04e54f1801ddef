//! The clients of a host: each gets the whole state, then what changes.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Connection, FAREWELL_TIME, Host};
use crate::chat::Input;
use crate::protocol::{ClientMessage, HostMessage, SOCKET_VERSION, changed};

pub(super) struct Client {
    pub messages: mpsc::Sender<HostMessage>,
    /// It missed a message and gets the whole state next.
    behind: bool,
}

pub(super) enum ClientEvent {
    Message(u64, ClientMessage),
    Gone(u64),
}

impl Host {
    pub(super) fn connect(&mut self, connection: Connection) {
        let Connection { to_client, mut from_client } = connection;
        let id = self.next_client;
        self.next_client += 1;
        let hello = HostMessage::Hello {
            version: SOCKET_VERSION,
            chat: self.folder.id.clone(),
            process: std::process::id(),
            state: self.chat.state.fields(),
        };
        if to_client.try_send(hello).is_err() {
            return;
        }
        self.clients.insert(id, Client { messages: to_client, behind: false });
        let events = self.events.0.clone();
        tokio::spawn(async move {
            while let Some(message) = from_client.recv().await {
                if events.send(ClientEvent::Message(id, message)).await.is_err() {
                    return;
                }
            }
            let _ = events.send(ClientEvent::Gone(id)).await;
        });
        self.take(Input::Clients(self.clients.len()));
    }

    pub(super) fn client_event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Message(client, ClientMessage { number, by, command }) => {
                self.take(Input::Client { client, number, by, command });
            }
            ClientEvent::Gone(client) => {
                self.clients.remove(&client);
                self.take(Input::Clients(self.clients.len()));
            }
        }
    }

    /// Reports what changed to clients and to the files of the chat.
    pub(super) fn publish(&mut self) {
        let behind = self.clients.values().any(|client| client.behind);
        if self.chat.state == self.published.0 && !behind {
            return;
        }
        self.claim_session();
        let fields = self.chat.state.fields();
        let differing = changed(&self.published.1, &fields);
        for client in self.clients.values_mut() {
            let news = if client.behind { fields.clone() } else { differing.clone() };
            if news.is_empty() {
                continue;
            }
            client.behind = client.messages.try_send(HostMessage::Changed(news)).is_err();
        }
        if self.chat.state != self.published.0 {
            self.published = (self.chat.state.clone(), fields);
            self.store();
        }
    }

    /// Lets clients read the last messages before the process may end.
    pub(super) async fn farewell(&self) {
        let deadline = Instant::now() + FAREWELL_TIME;
        let pending = |client: &Client| {
            client.messages.capacity() < client.messages.max_capacity()
                && !client.messages.is_closed()
        };
        while self.clients.values().any(pending) && Instant::now() < deadline {
            sleep(Duration::from_millis(5)).await;
        }
        // The last one is taken from its queue, but may not be written.
        if !self.clients.is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    }
}
