//! The connection to the host of a chat, in a thread of its own. The binary starts hosts, because it
//! knows the archive and the configuration.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use unspool_live::follow::{follow_chat, follow_session};
pub use unspool_live::open::{ChatOpener, OpenedChat};
use unspool_live::project_files::project_files;
use unspool_live::protocol::{ClientMessage, HostMessage};

use super::{ChatEffect, ChatEvent, ChatRequest, LinkId};
use crate::backend::EventSender;
use crate::event::AppEvent;

/// How long the last commands may take to reach the host when the application ends.
const FAREWELL_TIME: Duration = Duration::from_millis(500);

/// The connections of the application: one at a time is used, older ones end by themselves.
pub struct Links {
    opener: Option<ChatOpener>,
    sender: EventSender,
    current: Option<Link>,
    /// Connections that were left, until their hosts have the last commands.
    leaving: Vec<JoinHandle<()>>,
}

struct Link {
    id: LinkId,
    commands: UnboundedSender<ClientMessage>,
    thread: JoinHandle<()>,
}

impl Links {
    pub fn new(opener: Option<ChatOpener>, sender: EventSender) -> Links {
        Links { opener, sender, current: None, leaving: Vec::new() }
    }

    pub fn run(&mut self, id: LinkId, effect: ChatEffect) {
        match effect {
            ChatEffect::Open(request) => self.open(id, request),
            ChatEffect::Send(message) => {
                // A host that is gone has said so.
                if let Some(link) = self.current.as_ref().filter(|link| link.id == id) {
                    let _ = link.commands.send(message);
                }
            }
            ChatEffect::ListFiles(folder) => {
                let sender = self.sender.clone();
                thread::spawn(move || {
                    let event = ChatEvent::Files(project_files(&folder));
                    let _ = sender.send(AppEvent::Chat(id, event));
                });
            }
            ChatEffect::Close => self.leave(),
        }
    }

    fn open(&mut self, id: LinkId, request: ChatRequest) {
        let sender = self.sender.clone();
        let Some(opener) = self.opener.clone() else {
            let reason = "--connect drives no agents: open the address of `unspool serve --chat` in \
                          a browser, or run `unspool` on that machine";
            let _ = sender.send(AppEvent::Chat(id, ChatEvent::Failed(reason.to_owned())));
            return;
        };
        let (commands, incoming) = unbounded_channel();
        let thread = thread::spawn(move || {
            let report = |event| sender.send(AppEvent::Chat(id, event)).is_ok();
            match opener(request) {
                Ok(opened) => serve(opened, incoming, report),
                Err(reason) => {
                    report(ChatEvent::Failed(reason));
                }
            }
        });
        self.leave();
        self.current = Some(Link { id, commands, thread });
    }

    fn leave(&mut self) {
        self.leaving.retain(|thread| !thread.is_finished());
        // Its commands are closed, so it ends when the host has confirmed the last.
        self.leaving.extend(self.current.take().map(|link| link.thread));
    }

    /// Waits until the hosts have the last commands.
    pub fn close(mut self) {
        self.leave();
        let until = Instant::now() + FAREWELL_TIME;
        while self.leaving.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Carries messages between a host and the application until one of them ends.
fn serve(
    opened: OpenedChat,
    mut commands: UnboundedReceiver<ClientMessage>,
    report: impl Fn(ChatEvent) -> bool,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let (chat, attached) = match opened {
            OpenedChat::Chat(folders, folder) => {
                (Some(folder.id.clone()), follow_chat(folders, &folder).await)
            }
            OpenedChat::Session { folders, agent, session } => {
                (None, Ok(follow_session(folders, agent, session).await))
            }
        };
        let mut attached = match attached {
            Ok(attached) => attached,
            Err(error) => {
                report(ChatEvent::Failed(error.to_string()));
                return;
            }
        };
        let state = Box::new(attached.state);
        if !report(ChatEvent::Attached { chat, state }) {
            return;
        }
        let (mut last, mut confirmed) = (0, 0);
        let take = |message: HostMessage, confirmed: &mut u64| {
            if let HostMessage::Done { number, .. } = &message {
                *confirmed = *number;
            }
            report(ChatEvent::Host(message))
        };
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => {
                        last = command.number;
                        if attached.commands.send(command).await.is_err() {
                            break;
                        }
                    }
                    None => break,
                },
                message = attached.messages.recv() => match message {
                    Some(message) => {
                        if !take(message, &mut confirmed) {
                            return;
                        }
                    }
                    None => break,
                },
            }
        }
        // What was sent last has arrived before the connection is closed.
        while confirmed < last
            && let Some(message) = attached.messages.recv().await
        {
            take(message, &mut confirmed);
        }
        report(ChatEvent::Closed);
    });
}
