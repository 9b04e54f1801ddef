//! Follows all chats of a session as if they were one: the chat that drives the agent, if there is
//! one, and the hooks of an agent in its own terminal that wait for an answer. They come and go
//! while a surface is connected, so the folder of chats is looked at again and again.

mod ended;
mod merge;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::chat::ChatSpec;
use crate::client::{Attached, ClientError, attach};
use crate::host::CLIENT_QUEUE;
use crate::host::folder::{ChatFolder, ChatFolders};
use crate::protocol::{ChatState, ClientMessage, Command, HostMessage, Outcome, Phase, changed};
use ended::EndedChat;
use merge::{AnswerLog, merged, own_question};

/// How often new chats are looked for.
const SCAN_TIME: Duration = Duration::from_millis(300);
/// How long a chat that is found may take to greet, and how long one that did not is left alone: its
/// process may be stopped, and the others must not wait for it.
const GREETING_TIME: Duration = Duration::from_millis(500);
const SILENT_TIME: Duration = Duration::from_secs(10);
/// Why a command is refused that only a driven agent could obey.
pub const ONLY_ANSWERS: &str = "this agent runs in its own terminal; it can only be answered here";

/// Connects to all chats of a session, now and later. Ids of questions are `<chat>/<question>`. The
/// connection stays while there is no chat at all: its state then has no questions, and
/// `answers_only`. It ends when the receiver or the sender is dropped.
pub async fn follow_session(folders: ChatFolders, agent: String, session: String) -> Attached {
    let mut follower = Follower::new(folders, agent, Some(session));
    follower.scan().await;
    follower.start()
}

/// Connects to a chat that runs, and to whatever else its session has.
pub async fn follow_chat(
    folders: ChatFolders,
    folder: &ChatFolder,
) -> Result<Attached, ClientError> {
    let attached = attach(folder).await?;
    let spec = folder.read().map(|stored| stored.spec).unwrap_or_default();
    let (agent, session) = (attached.state.agent.clone(), attached.state.session.clone());
    let mut follower = Follower::new(folders, agent, session);
    follower.add(folder.id.clone(), spec, attached);
    follower.scan().await;
    Ok(follower.start())
}

/// The connection to one chat.
struct Link {
    commands: mpsc::Sender<ClientMessage>,
    state: ChatState,
    fields: Map<String, Value>,
    process: u32,
    /// How the agent was started.
    spec: ChatSpec,
}

/// A command that was handed on, and is not confirmed.
struct HandedOn {
    chat: String,
    /// The client's number of it.
    number: u64,
    question: Option<String>,
    /// The draft of the composer, which is kept whatever becomes of the chat.
    draft: Option<String>,
}

/// What a chat says; None when it is gone.
type News = (String, Option<HostMessage>);

/// Until when a chat is none of the session.
enum Other {
    Always,
    /// Until its state changes.
    Unchanged(Option<(u64, SystemTime)>),
}

struct Follower {
    folders: ChatFolders,
    agent: String,
    session: Option<String>,
    links: BTreeMap<String, Link>,
    /// Chats that are none of this session, or that speak another version.
    others: BTreeMap<String, Other>,
    /// Chats that did not greet, and when they are tried again.
    silent: BTreeMap<String, Instant>,
    /// The last chat that drove the agent: how it ended is shown until another comes.
    ended: Option<EndedChat>,
    answers: AnswerLog,
    handed_on: BTreeMap<u64, HandedOn>,
    next_number: u64,
    news: (mpsc::Sender<News>, mpsc::Receiver<News>),
    to_client: Option<mpsc::Sender<HostMessage>>,
    published: Map<String, Value>,
}

impl Follower {
    fn new(folders: ChatFolders, agent: String, session: Option<String>) -> Follower {
        Follower {
            folders,
            agent,
            session,
            links: BTreeMap::new(),
            others: BTreeMap::new(),
            silent: BTreeMap::new(),
            ended: None,
            answers: AnswerLog::default(),
            handed_on: BTreeMap::new(),
            next_number: 0,
            news: mpsc::channel(CLIENT_QUEUE),
            to_client: None,
            published: Map::new(),
        }
    }

    fn start(mut self) -> Attached {
        let (to_client, messages) = mpsc::channel(CLIENT_QUEUE);
        let (commands, from_client) = mpsc::channel(CLIENT_QUEUE);
        let state = self.state();
        let process = self.driving().map_or(0, |link| link.process);
        self.published = state.fields();
        self.to_client = Some(to_client);
        tokio::spawn(self.run(from_client));
        Attached { state, process, commands, messages }
    }

    async fn run(mut self, mut from_client: mpsc::Receiver<ClientMessage>) {
        let Some(to_client) = self.to_client.clone() else { return };
        let mut scans = interval(SCAN_TIME);
        scans.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = to_client.closed() => return,
                message = from_client.recv() => match message {
                    Some(message) => self.command(message).await,
                    None => break,
                },
                Some((chat, message)) = self.news.1.recv() => self.hear(&chat, message).await,
                _ = scans.tick() => self.scan().await,
            }
            if !self.publish().await {
                return;
            }
        }
        // What was sent last is confirmed before the connection is closed.
        while !self.handed_on.is_empty() {
            tokio::select! {
                () = to_client.closed() => return,
                Some((chat, message)) = self.news.1.recv() => self.hear(&chat, message).await,
            }
        }
    }

    /// Connects to chats of the session that have come.
    async fn scan(&mut self) {
        for folder in self.folders.all() {
            let version = folder.version();
            let is_seen = match self.others.get(&folder.id) {
                Some(Other::Always) => true,
                Some(Other::Unchanged(seen)) => *seen == version,
                None => false,
            };
            if is_seen || self.links.contains_key(&folder.id) {
                continue;
            }
            let Some(stored) = folder.read() else { continue };
            let is_ours = stored.state.agent == self.agent
                && stored.state.session.is_some()
                && stored.state.session == self.session;
            if !is_ours {
                // A driven agent may begin another session; a hook never does.
                let only_hook = stored.state.answers_only;
                let other = if only_hook { Other::Always } else { Other::Unchanged(version) };
                self.others.insert(folder.id, other);
                continue;
            }
            let id = folder.id.clone();
            if stored.state.phase == Phase::Ended {
                self.others.insert(id, Other::Unchanged(version));
                if !stored.state.answers_only && self.driving().is_none() {
                    self.ended = EndedChat::left(&folder, stored).or(self.ended.take());
                }
                continue;
            }
            let is_silent = self.silent.get(&id).is_some_and(|until| Instant::now() < *until);
            if is_silent || !folder.is_live() {
                continue;
            }
            match timeout(GREETING_TIME, attach(&folder)).await {
                Ok(Ok(attached)) => self.add(id, stored.spec, attached),
                Ok(Err(ClientError::Version { .. })) => {
                    self.others.insert(id, Other::Always);
                }
                // It has not begun to listen, or has ended.
                Ok(Err(
                    ClientError::Unknown(_) | ClientError::NotStarted(_) | ClientError::Io(_),
                )) => {}
                Ok(Err(ClientError::Silent)) | Err(_) => {
                    self.silent.insert(id, Instant::now() + SILENT_TIME);
                }
            }
        }
    }

    fn add(&mut self, id: String, spec: ChatSpec, attached: Attached) {
        let Attached { state, process, commands, mut messages } = attached;
        if !state.answers_only {
            self.ended = None;
        }
        self.answers.note(&id, &state);
        let fields = state.fields();
        self.links.insert(id.clone(), Link { commands, state, fields, process, spec });
        let news = self.news.0.clone();
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                if news.send((id.clone(), Some(message))).await.is_err() {
                    return;
                }
            }
            let _ = news.send((id, None)).await;
        });
    }

    async fn hear(&mut self, chat: &str, message: Option<HostMessage>) {
        match message {
            Some(HostMessage::Hello { state, .. }) => self.update(chat, state, true),
            Some(HostMessage::Changed(fields)) => self.update(chat, fields, false),
            Some(HostMessage::Done { number, outcome }) => {
                if let Some(sent) = self.handed_on.remove(&number) {
                    self.reply(sent.number, outcome).await;
                }
            }
            None => self.drop_link(chat).await,
        }
    }

    fn update(&mut self, chat: &str, fields: Map<String, Value>, whole: bool) {
        let Some(link) = self.links.get_mut(chat) else { return };
        if whole {
            link.fields = fields;
        } else {
            link.fields.extend(fields);
        }
        let Some(state) = ChatState::of_fields(link.fields.clone()) else { return };
        self.answers.note(chat, &state);
        // `/clear` begins another session in the same chat.
        if !state.answers_only && state.session.is_some() && state.session != self.session {
            self.agent.clone_from(&state.agent);
            self.session.clone_from(&state.session);
            self.others.clear();
        }
        link.state = state;
        let session = &self.session;
        self.links.retain(|_, link| !link.state.answers_only || link.state.session == *session);
    }

    /// A chat is gone: what was asked of it is answered by what is known.
    async fn drop_link(&mut self, chat: &str) {
        let link = self.links.remove(chat);
        if let Some(link) = link.filter(|link| !link.state.answers_only) {
            self.ended = Some(EndedChat::of(chat.to_owned(), link.spec, link.state));
        }
        let is_its = |sent: &HandedOn| sent.chat == chat;
        let numbers: Vec<u64> =
            self.handed_on.iter().filter(|(_, sent)| is_its(sent)).map(|(n, _)| *n).collect();
        for number in numbers {
            let Some(sent) = self.handed_on.remove(&number) else { continue };
            let outcome = match (&mut self.ended, sent.draft) {
                (Some(ended), Some(draft)) => ended.keep_draft(&self.folders, draft).await,
                _ => self.gone(sent.question.as_deref()),
            };
            self.reply(sent.number, outcome).await;
        }
    }

    /// The reply to a command for a chat that is gone.
    fn gone(&self, question: Option<&str>) -> Outcome {
        match question {
            Some(question) => match self.answers.find(question) {
                Some(given) => {
                    Outcome::Already { by: given.by.clone(), answer: given.answer.clone() }
                }
                None => Outcome::Refused("the question is gone".to_owned()),
            },
            None if self.ended.is_some() => Outcome::Refused("the agent has ended".to_owned()),
            None => Outcome::Refused(ONLY_ANSWERS.to_owned()),
        }
    }

    /// Hands a command on: about a question to the chat that asks, all others to the one that drives
    /// the agent.
    async fn command(&mut self, message: ClientMessage) {
        let ClientMessage { number, by, command } = message;
        if self.driving().is_none()
            && let (Command::Draft { question: None, text }, Some(ended)) =
                (&command, &mut self.ended)
        {
            let outcome = ended.keep_draft(&self.folders, text.clone()).await;
            return self.reply(number, outcome).await;
        }
        let question = question_of(&command).map(str::to_owned);
        let (target, command) = match question.as_deref().map(own_question) {
            Some(Some((chat, own))) => (Some(chat.to_owned()), about(command, own)),
            Some(None) => (None, command),
            None => {
                let driving = self.links.iter().find(|(_, link)| !link.state.answers_only);
                (driving.map(|(chat, _)| chat.clone()), command)
            }
        };
        let mut draft = None;
        if let Command::Draft { question: None, text } = &command {
            draft = Some(text.clone());
        }
        let own_number = self.next_number;
        self.next_number += 1;
        if let Some(chat) = target
            && let Some(link) = self.links.get(&chat)
            && link.commands.send(ClientMessage { number: own_number, by, command }).await.is_ok()
        {
            self.handed_on.insert(own_number, HandedOn { chat, number, question, draft });
            return;
        }
        let outcome = self.gone(question.as_deref());
        self.reply(number, outcome).await;
    }

    async fn reply(&mut self, number: u64, outcome: Outcome) {
        // Whoever answered learns first that the question is gone, then how.
        self.publish().await;
        if let Some(client) = &self.to_client {
            let _ = client.send(HostMessage::Done { number, outcome }).await;
        }
    }

    fn driving(&self) -> Option<&Link> {
        self.links.values().find(|link| !link.state.answers_only)
    }

    fn state(&self) -> ChatState {
        let links = self.links.iter().map(|(id, link)| (id.as_str(), &link.state));
        let mut state = merged(links, self.ended.as_ref().map(|ended| &ended.state), &self.answers);
        if state.agent.is_empty() {
            state.agent.clone_from(&self.agent);
        }
        if state.session.is_none() {
            state.session.clone_from(&self.session);
        }
        state
    }

    /// Tells the client what changed. False if it is gone.
    async fn publish(&mut self) -> bool {
        let Some(client) = self.to_client.clone() else { return true };
        let fields = self.state().fields();
        let differing = changed(&self.published, &fields);
        if differing.is_empty() {
            return true;
        }
        self.published = fields;
        client.send(HostMessage::Changed(differing)).await.is_ok()
    }
}

/// The question that a command is about.
fn question_of(command: &Command) -> Option<&str> {
    match command {
        Command::Answer { question, .. } => Some(question),
        Command::Draft { question, .. } => question.as_deref(),
        Command::Prompt { .. }
        | Command::Cancel
        | Command::Edit { .. }
        | Command::Remove { .. }
        | Command::Move { .. }
        | Command::Release
        | Command::Set { .. }
        | Command::Clear
        | Command::End => None,
    }
}

/// The command, about the question of this id.
fn about(mut command: Command, own: &str) -> Command {
    if let Command::Answer { question, .. } | Command::Draft { question: Some(question), .. } =
        &mut command
    {
        own.clone_into(question);
    }
    command
}
