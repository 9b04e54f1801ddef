//! Answers the question of an agent that is not ours: it runs in its own terminal, where it shows
//! its own dialog meanwhile. Whoever is first counts. It is a small host: clients find and answer it
//! like a chat, and can do nothing else with it.
//!
//! Nothing is ever allowed because time passed, a client left or something failed.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::chat::{ValidAnswer, validate};
use crate::follow::ONLY_ANSWERS;
use crate::host::folder::{ChatFolder, ChatFolders, StoredChat, StoredProcess};
use crate::host::{self, CLIENT_QUEUE, Connection, socket};
use crate::protocol::{
    AGENT_TERMINAL, ChatState, ClientMessage, Command, GivenAnswer, HostMessage, OpenQuestion,
    Outcome, Phase, SOCKET_VERSION, UserAnswer, changed,
};

/// How often it is checked whether the question is still open.
const POLL_TIME: Duration = Duration::from_millis(250);
/// How long the last messages to clients may take: the agent waits for the process to end.
const FAREWELL_TIME: Duration = Duration::from_millis(300);
/// A longer draft is no message to an agent.
const MAX_DRAFT_BYTES: usize = 256 * 1024;

/// How a question ended in the agent's own terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuestionEnd {
    /// Somebody answered: in a word.
    Answered(&'static str),
    /// Nobody will: in a sentence.
    Gone(&'static str),
}

/// What to wait for.
pub struct Wait {
    pub folders: ChatFolders,
    pub agent: &'static str,
    /// Where the agent works.
    pub project: PathBuf,
    pub question: OpenQuestion,
    /// The agent's process: it and what it started must not answer.
    pub caller: Option<StoredProcess>,
}

/// An answer of a client.
pub struct ClientAnswer<'a> {
    pub answer: &'a ValidAnswer<'a>,
    /// What the person wrote beside it.
    pub words: Option<&'a str>,
    /// The surface.
    pub by: &'a str,
}

/// Waits for an answer, which `deliver` hands to the agent, or until `poll` says that the question is
/// over without one. `terminated` ends it at once.
pub async fn wait(
    spec: Wait,
    mut poll: impl FnMut() -> Option<QuestionEnd>,
    terminated: impl Future<Output = ()>,
    deliver: impl FnMut(&ClientAnswer<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let folder = spec.folders.create()?;
    let result = async {
        let _lock = host::lock(&folder).await?;
        let mut connections = socket::listen_beside(&folder, spec.caller)?;
        let mut host = QuestionHost::new(folder.clone(), spec, deliver);
        host.store()?;
        let mut polls = interval(POLL_TIME);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::pin!(terminated);
        while host.state.phase != Phase::Ended {
            tokio::select! {
                () = &mut terminated => {
                    host.over(QuestionEnd::Gone("the agent took the question back"));
                }
                Some(connection) = connections.recv() => host.connect(connection),
                Some((client, message)) = host.events.1.recv() => match message {
                    Some(message) => host.take(client, message, &mut poll),
                    None => drop(host.clients.remove(&client)),
                },
                _ = polls.tick() => if let Some(end) = poll() {
                    host.over(end);
                },
            }
            host.publish();
        }
        host.farewell().await;
        Ok(())
    }
    .await;
    // Whatever happened: a question that nobody waits for is shown nowhere.
    let _ = folder.remove();
    result
}

type ClientEvent = (u64, Option<ClientMessage>);

struct QuestionHost<D> {
    folder: ChatFolder,
    state: ChatState,
    published: Map<String, Value>,
    clients: BTreeMap<u64, mpsc::Sender<HostMessage>>,
    next_client: u64,
    events: (mpsc::Sender<ClientEvent>, mpsc::Receiver<ClientEvent>),
    deliver: D,
}

impl<D: FnMut(&ClientAnswer<'_>) -> io::Result<()>> QuestionHost<D> {
    fn new(folder: ChatFolder, spec: Wait, deliver: D) -> QuestionHost<D> {
        let state = ChatState {
            phase: Phase::Running,
            answers_only: true,
            agent: spec.agent.to_owned(),
            folder: spec.project,
            session: Some(spec.question.session.clone()),
            questions: vec![spec.question],
            ..ChatState::default()
        };
        let published = state.fields();
        let (clients, events) = (BTreeMap::new(), mpsc::channel(CLIENT_QUEUE));
        QuestionHost { folder, state, published, clients, next_client: 0, events, deliver }
    }

    fn store(&self) -> io::Result<()> {
        // Without the agent: whoever cleans up ends what the files name.
        self.folder.write(&StoredChat {
            state: self.state.clone(),
            host: Some(std::process::id()),
            ..StoredChat::default()
        })
    }

    fn connect(&mut self, connection: Connection) {
        let Connection { to_client, mut from_client } = connection;
        let id = self.next_client;
        self.next_client += 1;
        let hello = HostMessage::Hello {
            version: SOCKET_VERSION,
            chat: self.folder.id.clone(),
            process: std::process::id(),
            state: self.state.fields(),
        };
        if to_client.try_send(hello).is_err() {
            return;
        }
        self.clients.insert(id, to_client);
        let events = self.events.0.clone();
        tokio::spawn(async move {
            while let Some(message) = from_client.recv().await {
                if events.send((id, Some(message))).await.is_err() {
                    return;
                }
            }
            let _ = events.send((id, None)).await;
        });
    }

    fn take(
        &mut self,
        client: u64,
        message: ClientMessage,
        poll: &mut impl FnMut() -> Option<QuestionEnd>,
    ) {
        let ClientMessage { number, by, command } = message;
        let outcome = match command {
            Command::Answer { question, answer } => {
                // The dialog may have been answered since the last look.
                if let Some(end) = poll() {
                    self.over(end);
                }
                self.answer(&question, &answer, &by)
            }
            Command::Draft { question: Some(question), text } => self.draft(question, text),
            Command::End => Outcome::Refused(
                "this agent runs in its own terminal; end it there, or answer its question"
                    .to_owned(),
            ),
            Command::Prompt { .. }
            | Command::Cancel
            | Command::Edit { .. }
            | Command::Remove { .. }
            | Command::Move { .. }
            | Command::Release
            | Command::Set { .. }
            | Command::Draft { question: None, .. }
            | Command::Clear => Outcome::Refused(ONLY_ANSWERS.to_owned()),
        };
        self.publish();
        if let Some(messages) = self.clients.get(&client)
            && messages.try_send(HostMessage::Done { number, outcome }).is_err()
        {
            self.clients.remove(&client);
        }
    }

    fn draft(&mut self, question: String, text: String) -> Outcome {
        if text.len() > MAX_DRAFT_BYTES {
            return Outcome::Refused("the draft is too long to be kept".to_owned());
        }
        if self.state.questions.iter().all(|open| open.id != question) {
            return Outcome::Refused("the question is gone".to_owned());
        }
        self.state.answer_drafts.insert(question, text);
        Outcome::Accepted
    }

    fn answer(&mut self, question: &str, answer: &UserAnswer, by: &str) -> Outcome {
        let Some(open) = self.state.questions.iter().find(|open| open.id == question) else {
            let given = self.state.answers.iter().find(|given| given.question == question);
            return match given {
                Some(given) => {
                    Outcome::Already { by: given.by.clone(), answer: given.answer.clone() }
                }
                None => Outcome::Refused("the question is gone".to_owned()),
            };
        };
        let valid = match validate(open, answer, now()) {
            Ok(valid) => valid,
            Err(why) => return Outcome::Refused(why),
        };
        // What was written beside the question is said to the agent with a refusal.
        let words = self.state.answer_drafts.get(question).map(String::as_str);
        let label = valid.label();
        if let Err(error) = (self.deliver)(&ClientAnswer { answer: &valid, words, by }) {
            return Outcome::Refused(format!("the agent does not take the answer: {error}"));
        }
        self.close(by, &label, format!("answered by the {by}"));
        Outcome::Accepted
    }

    /// The question is over without an answer of a client.
    fn over(&mut self, end: QuestionEnd) {
        match end {
            QuestionEnd::Answered(how) => {
                self.close(AGENT_TERMINAL, how, format!("answered in the {AGENT_TERMINAL}"));
            }
            QuestionEnd::Gone(why) => {
                self.state.questions.clear();
                (self.state.phase, self.state.reason) = (Phase::Ended, Some(why.to_owned()));
            }
        }
    }

    fn close(&mut self, by: &str, answer: &str, reason: String) {
        for (number, open) in (1..).zip(std::mem::take(&mut self.state.questions)) {
            let (question, text) = (open.id, open.text);
            let (by, answer) = (by.to_owned(), answer.to_owned());
            self.state.answers.push(GivenAnswer { number, question, text, by, answer });
        }
        self.state.answer_drafts.clear();
        (self.state.phase, self.state.reason) = (Phase::Ended, Some(reason));
    }

    fn publish(&mut self) {
        let fields = self.state.fields();
        let differing = changed(&self.published, &fields);
        if differing.is_empty() {
            return;
        }
        self.published = fields;
        // A client that does not read is not waited for: it finds the question gone.
        self.clients.retain(|_, messages| {
            messages.try_send(HostMessage::Changed(differing.clone())).is_ok()
        });
        let _ = self.store();
    }

    /// Lets clients read how it ended, and answers those who were late.
    async fn farewell(&mut self) {
        while let Ok((client, Some(message))) = self.events.1.try_recv() {
            let ClientMessage { number, command, .. } = message;
            let outcome = if let Command::Answer { question, answer } = command {
                self.answer(&question, &answer, "")
            } else {
                Outcome::Refused("the question is gone".to_owned())
            };
            if let Some(messages) = self.clients.get(&client) {
                let _ = messages.try_send(HostMessage::Done { number, outcome });
            }
        }
        let deadline = Instant::now() + FAREWELL_TIME;
        let pending = |messages: &mpsc::Sender<HostMessage>| {
            messages.capacity() < messages.max_capacity() && !messages.is_closed()
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

/// Now, in milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
