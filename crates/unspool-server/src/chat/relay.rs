//! Carries messages between a page and the host of a chat.
//!
//! Up: `{"number": 7, "do": COMMAND}`, the commands of the host's clients. Down: `chat` with the
//! fields of the panel that changed, `done` with what became of a command, `notice`, and `recorded`
//! when the archive has the session of the chat.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{MissedTickBehavior, interval};
use unspool_live::client::{Attached, attach, chats_of};
use unspool_live::protocol::{ChatState, ClientMessage, Command, HostMessage};
use unspool_model::id::SessionId;
use unspool_store::store::{Store, View};

use super::panel::{Panel, no_chat};
use super::{Chats, SURFACE};
use crate::App;
use crate::live::send_json;

/// How often a page without a chat looks for one, and for the session of a new one.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A command of a page.
#[derive(Deserialize)]
struct PageCommand {
    number: u64,
    #[serde(rename = "do")]
    command: Command,
}

/// Serves a page that named a chat, or a session.
pub async fn serve<S: Store>(
    app: Arc<App<S>>,
    socket: WebSocket,
    target: &str,
) -> Result<(), axum::Error> {
    let Some(chats) = app.chats.get() else { return Ok(()) };
    let session = match chats.folders.find(target) {
        Some(_) => None,
        None => crate::api::find(&app, target).await.ok().map(|it| it.summary.session.id),
    };
    let mut relay =
        Relay { app: &app, chats, socket, session, recorded: session, chat: None };
    if session.is_none() {
        relay.attach(target).await;
        if relay.chat.is_none() {
            let what = "the chat has ended";
            return send_json(&mut relay.socket, json!({ "type": "gone", "text": what })).await;
        }
    }
    relay.run().await
}

struct Relay<'a, S: Store> {
    app: &'a App<S>,
    chats: &'a Chats,
    socket: WebSocket,
    /// The session that the page shows, if it shows one.
    session: Option<SessionId>,
    /// The session that the page knows to be in the archive.
    recorded: Option<SessionId>,
    chat: Option<HeldChat>,
}

struct HeldChat {
    id: String,
    connection: Attached,
    fields: Map<String, Value>,
    panel: Panel,
}

impl<S: Store> Relay<'_, S> {
    async fn run(&mut self) -> Result<(), axum::Error> {
        let mut look = interval(LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.look().await?;
        self.show().await?;
        if self.chat.is_none()
            && let Some(message) = Panel::default().update(no_chat())
        {
            send_json(&mut self.socket, message).await?;
        }
        loop {
            tokio::select! {
                received = self.socket.recv() => match received {
                    Some(Ok(Message::Text(text))) => self.command(&text).await?,
                    Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                    None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(()),
                },
                message = next_message(&mut self.chat) => match message {
                    Some(message) => self.told(message).await?,
                    None => self.closed().await?,
                },
                _ = look.tick() => self.look().await?,
            }
        }
    }

    /// Looks for what may have come: a chat of the session, or the session of the chat.
    async fn look(&mut self) -> Result<(), axum::Error> {
        if self.chat.is_none()
            && let Some(session) = self.session
        {
            let found = chats_of(&self.chats.folders, session).into_iter();
            let live = found.map(|(folder, _)| folder).find(|folder| folder.is_live());
            if let Some(folder) = live {
                self.attach(&folder.id).await;
                self.show().await?;
            }
        }
        self.look_for_session().await
    }

    async fn look_for_session(&mut self) -> Result<(), axum::Error> {
        let state = self.chat.as_ref().map(|chat| &chat.connection.state);
        let named = state.and_then(|state| Some((&state.agent, state.session.as_ref()?)));
        let id = named.map(|(agent, own)| SessionId::of(agent, own));
        let Some(id) = id.filter(|id| self.recorded != Some(*id)) else { return Ok(()) };
        if matches!(self.app.view().session(id).await, Ok(Some(_))) {
            self.recorded = Some(id);
            send_json(&mut self.socket, json!({ "type": "recorded", "session": id })).await?;
        }
        Ok(())
    }

    async fn attach(&mut self, chat: &str) {
        let Some(folder) = self.chats.folders.find(chat) else { return };
        if let Ok(connection) = attach(&folder).await {
            let (fields, panel) = (connection.state.fields(), Panel::new(&connection.state));
            self.chat = Some(HeldChat { id: folder.id, connection, fields, panel });
        }
    }

    /// Takes a message of the host.
    async fn told(&mut self, message: HostMessage) -> Result<(), axum::Error> {
        let Some(chat) = &mut self.chat else { return Ok(()) };
        match message {
            HostMessage::Hello { state, .. } => chat.fields = state,
            HostMessage::Changed(changed) => chat.fields.extend(changed),
            HostMessage::Done { number, outcome } => {
                let done = json!({ "type": "done", "number": number, "outcome": outcome });
                return send_json(&mut self.socket, done).await;
            }
        }
        if let Some(state) = ChatState::of_fields(chat.fields.clone()) {
            chat.connection.state = state;
        }
        self.show().await?;
        self.look_for_session().await
    }

    /// Sends what changed of the panel.
    async fn show(&mut self) -> Result<(), axum::Error> {
        let Some(chat) = &mut self.chat else { return Ok(()) };
        let answered = chat.panel.other_answer(&chat.connection.state);
        let update = chat.panel.show(&chat.id, &chat.connection.state);
        for message in update.into_iter().chain(answered) {
            send_json(&mut self.socket, message).await?;
        }
        Ok(())
    }

    /// The host is gone. Its last words stay on the page.
    async fn closed(&mut self) -> Result<(), axum::Error> {
        self.chat = None;
        send_json(&mut self.socket, json!({ "type": "closed" })).await
    }

    async fn command(&mut self, text: &str) -> Result<(), axum::Error> {
        let PageCommand { number, command } = match serde_json::from_str(text) {
            Ok(command) => command,
            Err(error) => {
                let what = format!("not a command: {error}");
                return send_json(&mut self.socket, json!({ "type": "notice", "text": what })).await;
            }
        };
        let message = ClientMessage { number, by: SURFACE.to_owned(), command };
        let sent = match &self.chat {
            Some(chat) => chat.connection.commands.send(message).await.is_ok(),
            None => false,
        };
        if sent {
            return Ok(());
        }
        let outcome = json!({ "refused": "the agent does not run" });
        send_json(&mut self.socket, json!({ "type": "done", "number": number, "outcome": outcome }))
            .await
    }
}

/// The next message of the host; never completes without one.
async fn next_message(chat: &mut Option<HeldChat>) -> Option<HostMessage> {
    match chat {
        Some(chat) => chat.connection.messages.recv().await,
        None => std::future::pending().await,
    }
}
