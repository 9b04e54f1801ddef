//! The host of a chat: one task that reads the agent, writes the agent, and executes the effects of
//! `Chat`. One task, so that the capture has one order: a message to the agent is recorded when its
//! last byte is written, before anything that the agent could answer is read.
//!
//! The agent's output is read only as fast as it is recorded, so a flood fills the pipe and not the
//! memory.

pub(crate) mod capture;
mod clients;
mod files;
pub mod folder;
mod lines;
mod patches;
mod pipes;
pub mod process;
pub mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::agents::install_hint;
use crate::chat::{Chat, ChatSpec, Effect, Exit, Input};
use crate::mcp::McpServer;
use crate::outgoing::Outgoing;
use crate::project_files::mentioned;
use crate::protocol::{ChatState, ClientMessage, HostMessage, Phase};

use capture::Capture;
use clients::{Client, ClientEvent};
use folder::{ChatFolder, ChatFolders, StoredProcess};
use lines::Lines;
use pipes::{EarlyLine, next_line, write_some};
use process::{AgentPipes, AgentProcess};

/// How many messages may wait for a client before it is behind.
pub const CLIENT_QUEUE: usize = 256;
/// How long output is read after the last process of the agent ended.
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// A chat that could not start waits this long for a client to tell.
const FIRST_CLIENT_TIME: Duration = Duration::from_secs(10);
/// How long the last messages to clients may take.
const FAREWELL_TIME: Duration = Duration::from_secs(1);
/// How often what waits for the capture is tried again.
const RETRY_TIME: Duration = Duration::from_millis(200);

/// A client's end of a connection.
pub struct Connection {
    pub to_client: mpsc::Sender<HostMessage>,
    pub from_client: mpsc::Receiver<ClientMessage>,
}

/// A connection inside this process: for the host, and for the client.
pub fn connection() -> (Connection, mpsc::Sender<ClientMessage>, mpsc::Receiver<HostMessage>) {
    let (to_client, messages) = mpsc::channel(CLIENT_QUEUE);
    let (commands, from_client) = mpsc::channel(CLIENT_QUEUE);
    (Connection { to_client, from_client }, commands, messages)
}

/// A chat to run.
pub struct HostSpec {
    pub chat: ChatSpec,
    /// Queue and drafts of before.
    pub kept: Option<ChatState>,
    pub folders: ChatFolders,
    pub folder: ChatFolder,
    /// MCP servers of the configuration. Not in the files of the chat: they may hold secrets.
    pub mcp: Vec<McpServer>,
}

/// Takes the lock of a chat. Others look at it for a moment.
pub async fn lock(folder: &ChatFolder) -> io::Result<File> {
    for _ in 0..50 {
        if let Some(lock) = folder.lock()? {
            return Ok(lock);
        }
        sleep(Duration::from_millis(20)).await;
    }
    Err(io::Error::other("this chat runs already"))
}

/// Runs a chat until it has ended. Returns its last state.
pub async fn run(
    spec: HostSpec,
    lock: File,
    connections: mpsc::Receiver<Connection>,
) -> io::Result<ChatState> {
    process::adopt_orphans();
    let mut host = Host::new(spec, lock);
    host.run(connections).await;
    host.farewell().await;
    Ok(host.finish())
}

/// The agent, while it runs and while it ends.
enum Agent {
    None,
    Running(AgentProcess),
    Ending(JoinHandle<Exit>),
    /// All its processes are gone; the rest of its output is read until this time.
    Drained(Exit, Instant),
}

struct Host {
    chat: Chat,
    folders: ChatFolders,
    folder: ChatFolder,
    /// When the host started; requests are numbered anew with each connection, so it names this one.
    clock: (u64, Instant),
    agent: Agent,
    stored_agent: Option<StoredProcess>,
    stdin: Option<ChildStdin>,
    stdout: Option<Lines<ChildStdout>>,
    /// Messages to the agent, and how many bytes of the first are written.
    outbox: VecDeque<(Outgoing, Vec<u8>)>,
    written: usize,
    capture: Option<Capture>,
    /// Lines from before the agent said who it is.
    early: Vec<(EarlyLine, u64)>,
    early_bytes: usize,
    clients: BTreeMap<u64, Client>,
    next_client: u64,
    events: (mpsc::Sender<ClientEvent>, mpsc::Receiver<ClientEvent>),
    published: (ChatState, Map<String, Value>),
    session_lock: Option<File>,
    /// When what waits for the capture was last tried.
    retried: Instant,
    _lock: File,
}

impl Host {
    fn new(spec: HostSpec, lock: File) -> Host {
        let HostSpec { chat, kept, folders, folder, mcp } = spec;
        let (servers, missing) = servers(&mcp);
        let mut chat = Chat::new(chat, kept).with_links(mentioned).with_servers(servers);
        chat.state.notice = missing;
        let state = ChatState { phase: Phase::Ended, ..ChatState::default() };
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Host {
            chat,
            folders,
            folder,
            clock: (u64::try_from(epoch).unwrap_or_default(), Instant::now()),
            agent: Agent::None,
            stored_agent: None,
            stdin: None,
            stdout: None,
            outbox: VecDeque::new(),
            written: 0,
            capture: None,
            early: Vec::new(),
            early_bytes: 0,
            clients: BTreeMap::new(),
            next_client: 0,
            events: mpsc::channel(CLIENT_QUEUE),
            published: (state, Map::new()),
            session_lock: None,
            retried: Instant::now(),
            _lock: lock,
        }
    }

    /// Milliseconds since 1970 that never go back.
    fn now(&self) -> u64 {
        self.clock.0 + u64::try_from(self.clock.1.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn run(&mut self, mut connections: mpsc::Receiver<Connection>) {
        self.start();
        let mut accepting = true;
        while !self.is_over() {
            let tick = self.next_tick();
            // Clients first, so that a flood of the agent cannot lock them out; writing before
            // reading, so that a message is recorded before its reply.
            tokio::select! {
                biased;
                event = self.events.1.recv() => {
                    if let Some(event) = event { self.client_event(event); }
                }
                connection = connections.recv(), if accepting => match connection {
                    Some(connection) => self.connect(connection),
                    None => accepting = false,
                },
                written = write_some(&mut self.stdin, &self.outbox, self.written) => {
                    self.wrote(written);
                }
                line = next_line(&mut self.stdout, &self.outbox) => self.line(line),
                exit = wait_agent(&mut self.agent) => match exit {
                    // What it started may still run.
                    None => self.stop_agent(),
                    Some(exit) => {
                        self.agent = Agent::Drained(exit, Instant::now() + DRAIN_TIME);
                    }
                },
                // Last: a deadline that has passed must not keep anything else from happening.
                () = sleep_until(tick) => {}
            }
            if Instant::now() >= tick {
                self.tick();
            }
            self.drained();
        }
    }

    fn is_over(&self) -> bool {
        let heard = self.next_client > 0 || self.clock.1.elapsed() > FIRST_CLIENT_TIME;
        self.chat.state.phase == Phase::Ended && matches!(self.agent, Agent::None) && heard
    }

    fn next_tick(&self) -> Instant {
        let far = Instant::now() + Duration::from_secs(3600);
        let chat = self
            .chat
            .next_tick()
            .map(|at| self.clock.1 + Duration::from_millis(at.saturating_sub(self.clock.0)));
        let drain = match &self.agent {
            Agent::Drained(_, until) => Some(*until),
            Agent::None | Agent::Running(_) | Agent::Ending(_) => None,
        };
        let retries = self.chat.state.unrecorded.is_some()
            || self.capture.as_ref().is_some_and(Capture::has_patches);
        let retry = retries.then(|| self.retried + RETRY_TIME);
        let waits = matches!(self.agent, Agent::None) && self.next_client == 0;
        let first = waits.then(|| self.clock.1 + FIRST_CLIENT_TIME);
        [chat, drain, retry, first].into_iter().flatten().min().unwrap_or(far)
    }

    fn start(&mut self) {
        let spec = self.chat.spec().clone();
        match AgentProcess::start(&spec.command, &spec.folder, &self.folder.id) {
            Ok((process, AgentPipes { stdin, stdout })) => {
                self.stored_agent = Some(process.stored());
                self.agent = Agent::Running(process);
                (self.stdin, self.stdout) = (Some(stdin), Some(Lines::new(stdout)));
                self.take(Input::Started);
            }
            Err(error) => {
                let program = spec.command.first().map_or("", String::as_str);
                self.take(Input::Failed(start_error(program, &spec.folder, &error)));
            }
        }
    }

    fn take(&mut self, input: Input) {
        let now = self.now();
        let effects = self.chat.take(input, now);
        self.execute(effects, now);
        self.publish();
    }

    fn execute(&mut self, effects: Vec<Effect>, now: u64) {
        for effect in effects {
            match effect {
                Effect::Send(outgoing) => {
                    if self.stdin.is_some() {
                        let mut bytes = outgoing.lines.join("\n").into_bytes();
                        bytes.push(b'\n');
                        self.outbox.push_back((outgoing, bytes));
                    }
                }
                Effect::OpenCapture { agent } => self.open_capture(&agent, now),
                Effect::Note(note) => {
                    if let Some(capture) = &mut self.capture {
                        capture.set_session(self.chat.state.session.as_deref());
                        capture.note(&note, now);
                    }
                    self.flush();
                }
                Effect::Reply { client, number, outcome } => {
                    let reply = HostMessage::Done { number, outcome };
                    let held = self.clients.get(&client);
                    if held.is_some_and(|client| client.messages.try_send(reply).is_err()) {
                        self.clients.remove(&client);
                    }
                }
                Effect::Stop => self.stop_agent(),
            }
        }
    }

    fn tick(&mut self) {
        self.retried = Instant::now();
        let now = self.now();
        if let Some(capture) = &mut self.capture {
            capture.release_patches(now);
        }
        self.flush();
        self.take(Input::Tick);
    }

    /// Ends the agent's processes in a task of its own: clients are served meanwhile.
    fn stop_agent(&mut self) {
        self.stdin = None;
        self.outbox.clear();
        self.written = 0;
        match std::mem::replace(&mut self.agent, Agent::None) {
            Agent::Running(mut process) => {
                self.agent = Agent::Ending(tokio::spawn(async move { process.stop().await }));
            }
            other @ (Agent::None | Agent::Ending(_) | Agent::Drained(..)) => self.agent = other,
        }
    }

    /// Reports the end of the agent when all of its output was read.
    fn drained(&mut self) {
        let done = match &self.agent {
            Agent::Drained(_, until) => self.stdout.is_none() || Instant::now() >= *until,
            Agent::None | Agent::Running(_) | Agent::Ending(_) => false,
        };
        if done && let Agent::Drained(exit, _) = std::mem::replace(&mut self.agent, Agent::None) {
            self.stdout = None;
            self.take(Input::Exited(exit));
        }
    }
}

/// Waits until the agent ends: first its own process, then all of its group.
async fn wait_agent(agent: &mut Agent) -> Option<Exit> {
    match agent {
        Agent::Running(process) => {
            let _ = process.wait().await;
            None
        }
        Agent::Ending(task) => Some(task.await.unwrap_or_default()),
        Agent::None | Agent::Drained(..) => std::future::pending().await,
    }
}

/// The MCP servers with the values of variables, and a sentence about those that lack one.
fn servers(configured: &[McpServer]) -> (Vec<McpServer>, Option<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for server in configured {
        match server.resolve(|name| std::env::var(name).ok()) {
            Ok(server) => found.push(server),
            Err(name) => missing.push(format!("{} ({name} is not set)", server.name)),
        }
    }
    let left_out = (!missing.is_empty())
        .then(|| format!("MCP servers that are left out: {}", missing.join(", ")));
    (found, left_out)
}

fn start_error(program: &str, folder: &std::path::Path, error: &io::Error) -> String {
    if !folder.is_dir() {
        return format!("{} is not a folder; give one with --project", folder.display());
    }
    let hint = match (error.kind(), install_hint(program)) {
        (io::ErrorKind::NotFound, Some(install)) => format!("; install it: {install}"),
        (io::ErrorKind::NotFound, None) => "; is it installed and on the PATH?".to_owned(),
        (_, _) => String::new(),
    };
    format!("cannot start {program}: {error}{hint}")
}
