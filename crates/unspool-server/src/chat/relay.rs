//! Carries messages between a page and the host of a chat.
//!
//! Up: `{"number": 7, "do": COMMAND}`, the commands of the host's clients. Down: `chat` with the
//! fields of the panel that changed, `done` with what became of a command, `notice`, and `recorded`
//! when the archive has the session of the chat.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{MissedTickBehavior, interval};
use unspool_live::client::Attached;
use unspool_live::follow::{follow_chat, follow_session};
use unspool_live::protocol::{
    ChatState, ClientMessage, Command, HostMessage, Outcome, other_surface,
};
use unspool_model::id::SessionId;
use unspool_model::session::Session;
use unspool_store::store::{Store, View};

use super::SURFACE;
use super::panel::Panel;
use crate::App;
use crate::socket_json::send_json;

/// How often the session of a new chat is looked for in the archive.
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
    mut socket: WebSocket,
    target: &str,
) -> Result<(), axum::Error> {
    let Some(chats) = app.chats.get() else { return Ok(()) };
    let folders = chats.folders.clone();
    let (connection, recorded) = match folders.find(target) {
        Some(folder) => match follow_chat(folders, &folder).await {
            Ok(connection) => (connection, None),
            Err(error) => return gone(&mut socket, &error.to_string()).await,
        },
        None => match crate::api::find(&app, target).await {
            Ok(stored) => {
                let Session { id, agent, agent_session_id, .. } = stored.summary.session;
                (follow_session(folders, agent, agent_session_id).await, Some(id))
            }
            Err(problem) => return gone(&mut socket, problem.detail()).await,
        },
    };
    let (fields, panel) = (connection.state.fields(), Panel::new(&connection.state));
    let answers = BTreeMap::new();
    Relay { app: &app, socket, recorded, connection, fields, panel, answers }.run().await
}

/// There is nothing to relay.
async fn gone(socket: &mut WebSocket, why: &str) -> Result<(), axum::Error> {
    send_json(socket, json!({ "type": "gone", "text": why })).await
}

struct Relay<'a, S: Store> {
    app: &'a App<S>,
    socket: WebSocket,
    /// The session that the page knows to be in the archive.
    recorded: Option<SessionId>,
    connection: Attached,
    fields: Map<String, Value>,
    panel: Panel,
    /// Questions that the page answered, by the number of the command, unless somebody else was first.
    answers: BTreeMap<u64, String>,
}

impl<S: Store> Relay<'_, S> {
    async fn run(mut self) -> Result<(), axum::Error> {
        let mut look = interval(LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.show().await?;
        loop {
            tokio::select! {
                received = self.socket.recv() => match received {
                    Some(Ok(Message::Text(text))) => self.command(&text).await?,
                    Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_))) => {}
                    None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(()),
                },
                message = self.connection.messages.recv() => match message {
                    Some(message) => self.take(message).await?,
                    None => return Ok(()),
                },
                _ = look.tick() => self.look_for_session().await?,
            }
        }
    }

    /// Tells the page when the archive has the session of the chat.
    async fn look_for_session(&mut self) -> Result<(), axum::Error> {
        let ChatState { agent, session, .. } = &self.connection.state;
        let id = session.as_ref().map(|own| SessionId::of(agent, own));
        let Some(id) = id.filter(|id| self.recorded != Some(*id)) else { return Ok(()) };
        if matches!(self.app.view().session(id).await, Ok(Some(_))) {
            self.recorded = Some(id);
            send_json(&mut self.socket, json!({ "type": "recorded", "session": id })).await?;
        }
        Ok(())
    }

    /// Takes a message of the host.
    async fn take(&mut self, message: HostMessage) -> Result<(), axum::Error> {
        match message {
            HostMessage::Hello { state, .. } => self.fields = state,
            HostMessage::Changed(changed) => self.fields.extend(changed),
            HostMessage::Done { number, outcome } => {
                if outcome != Outcome::Accepted {
                    self.answers.remove(&number);
                }
                let outcome = outcome_fields(&outcome);
                let done = json!({ "type": "done", "number": number, "outcome": outcome });
                return send_json(&mut self.socket, done).await;
            }
        }
        if let Some(state) = ChatState::of_fields(self.fields.clone()) {
            self.connection.state = state;
        }
        self.show().await?;
        self.look_for_session().await
    }

    /// Sends what changed of the panel.
    async fn show(&mut self) -> Result<(), axum::Error> {
        let answered = self.panel.other_answer(&self.connection.state, &self.answers);
        let update = self.panel.show(&self.connection.state);
        for message in update.into_iter().chain(answered) {
            send_json(&mut self.socket, message).await?;
        }
        Ok(())
    }

    async fn command(&mut self, text: &str) -> Result<(), axum::Error> {
        let PageCommand { number, command } = match serde_json::from_str(text) {
            Ok(command) => command,
            Err(error) => {
                let what = format!("not a command: {error}");
                return send_json(&mut self.socket, json!({ "type": "notice", "text": what }))
                    .await;
            }
        };
        if let Command::Answer { question, .. } = &command {
            self.answers.insert(number, question.clone());
        }
        let message = ClientMessage { number, by: SURFACE.to_owned(), command };
        // Without a host the connection ends, and the page connects again.
        let _ = self.connection.commands.send(message).await;
        Ok(())
    }
}

/// What became of a command, with the name of who was first.
fn outcome_fields(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Already { by, answer } => {
            json!({ "already": { "by": other_surface(by, SURFACE), "answer": answer } })
        }
        Outcome::Accepted | Outcome::Refused(_) => json!(outcome),
    }
}
