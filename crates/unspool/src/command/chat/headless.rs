//! `unspool chat -p`: one message, one reply. The host runs in a thread of this process, unless it
//! is to go on in the background.

mod events;

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Sender;
use unspool_live::chat::{ChatSpec, MIN_READING_TIME};
use unspool_live::host::folder::{ChatFolder, ChatFolders};
use unspool_live::host::{self, HostSpec};
use unspool_live::protocol::{
    ChatState, ClientMessage, Command, HostMessage, Outcome, Phase, UserAnswer,
};
use unspool_model::session::TurnState;
use unspool_view::lines::make_visible;

use super::transcript::{ChatEnd, ChatTranscript};
use super::{Chat, Permissions, folders};
use crate::archive::Archive;
use crate::config::Config;
use crate::terminal_writer;
use events::{Event, Events};

/// How often what came is read, at most.
const READ_INTERVAL: Duration = Duration::from_millis(100);
pub(super) const BY: &str = "command line";
/// The number of the command that sends the message. Other commands have 0.
const PROMPT: u64 = 1;

pub(super) fn run(chat: Chat, archive: &Archive) -> Result<()> {
    let text = match chat.prompt.as_deref() {
        Some("-") => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("cannot read the message")?;
            text
        }
        text => text.unwrap_or_default().to_owned(),
    };
    if text.trim().is_empty() {
        bail!("the message is empty");
    }
    let spec = chat.launch(chat.permissions.policy())?.spec(archive)?;
    let data = archive.folder()?;
    data.create().with_context(|| format!("cannot use {}", data.path().display()))?;
    let folders = folders(&data);
    if chat.detach {
        return super::detach::detach(archive, spec, text, chat.json);
    }
    let folder = folders.create()?;
    let resumes = spec.resume.is_some();
    let (messages, commands) = start(folders, folder.clone(), spec)?;
    let events = Events::start(messages, chat.permissions == Permissions::Ask);
    let deadline =
        chat.timeout.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let mut headless = Headless {
        archive,
        json: chat.json,
        commands,
        fields: Map::new(),
        state: ChatState::default(),
        transcript: None,
        read: Instant::now(),
        warned: false,
        answers: 0,
        questions: Vec::new(),
        answers_closed: false,
        declined: Vec::new(),
        resumes,
        refused: None,
        closed: false,
        interrupted: 0,
        ending: false,
        timed_out: false,
    };
    headless.send_numbered(PROMPT, Command::prompt(text));
    let outcome = headless.run(&events.receiver, deadline);
    if outcome.is_err() && !headless.closed {
        // Whatever went wrong here, the agent must not outlive us.
        headless.end();
        while !matches!(events.receiver.recv(), Ok(Event::Closed) | Err(_)) {}
    }
    // Nobody comes back for a message that was not sent: it is in the shell.
    let _ = folder.remove();
    outcome
}

type Messages = tokio::sync::mpsc::Receiver<HostMessage>;

/// Starts the host in a thread of this process.
fn start(
    folders: ChatFolders,
    folder: ChatFolder,
    spec: ChatSpec,
) -> Result<(Messages, Sender<ClientMessage>)> {
    let (connection, commands, messages) = host::connection();
    let (sender, connections) = tokio::sync::mpsc::channel(1);
    sender.try_send(connection).map_err(|_| anyhow!("the chat takes no connection"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mcp = Config::load()?.chat.servers()?;
    std::thread::spawn(move || {
        let spec = HostSpec { chat: spec, kept: None, folders, folder, mcp };
        // An error shows as a chat that ends without a word; its messages end here.
        let outcome = runtime.block_on(async {
            let lock = host::lock(&spec.folder).await?;
            host::run(spec, lock, connections).await
        });
        if let Err(error) = outcome {
            stderr_line!("unspool: {error}");
        }
    });
    Ok((messages, commands))
}

struct Headless<'a> {
    archive: &'a Archive,
    json: bool,
    commands: Sender<ClientMessage>,
    fields: Map<String, Value>,
    state: ChatState,
    /// Set as soon as the session is known.
    transcript: Option<ChatTranscript>,
    read: Instant,
    /// It was said that the archive cannot be written.
    warned: bool,
    /// The last answer that was printed.
    answers: u64,
    /// Open questions that were printed.
    questions: Vec<String>,
    /// No answers come any more.
    answers_closed: bool,
    /// Questions that were declined for that.
    declined: Vec<String>,
    /// The session existed before.
    resumes: bool,
    /// Why the message was refused.
    refused: Option<String>,
    /// The host has ended.
    closed: bool,
    interrupted: u32,
    ending: bool,
    timed_out: bool,
}

impl Headless<'_> {
    fn run(&mut self, events: &Receiver<Event>, deadline: Option<Instant>) -> Result<()> {
        loop {
            match events.recv_timeout(READ_INTERVAL) {
                Ok(Event::Host(message)) => self.host(message)?,
                Ok(Event::Interrupt) => self.interrupt(),
                Ok(Event::Terminate) => self.end(),
                Ok(Event::Command(line)) => self.input(&line)?,
                Ok(Event::InputEnd) => {
                    self.answers_closed = true;
                    self.decline();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Event::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    self.closed = true;
                    break;
                }
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) && !self.timed_out {
                self.timed_out = true;
                self.interrupt();
            }
            if self.read.elapsed() >= READ_INTERVAL {
                self.print_parts()?;
                self.read = Instant::now();
            }
            let idle = self.state.phase == Phase::Idle && self.state.queue.is_empty();
            if idle && self.state.last_turn.is_some() {
                self.end();
            }
        }
        self.print_parts()?;
        self.print_end()
    }

    fn send(&self, command: Command) {
        self.send_numbered(0, command);
    }

    fn send_numbered(&self, number: u64, command: Command) {
        // A host that is gone has said why.
        let message = ClientMessage { number, by: BY.to_owned(), command };
        let _ = self.commands.blocking_send(message);
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.ending, true) {
            self.send(Command::End);
        }
    }

    /// Ctrl-C: the agent stops, and what came is kept. Twice: it is ended.
    fn interrupt(&mut self) {
        self.interrupted += 1;
        if self.interrupted == 1 && self.state.phase == Phase::Running {
            self.send(Command::Cancel);
        } else {
            self.end();
        }
    }

    fn host(&mut self, message: HostMessage) -> Result<()> {
        match message {
            HostMessage::Hello { chat, state, .. } => {
                self.fields = state;
                self.line("chat", || json!({"chat": chat}))?;
            }
            HostMessage::Changed(changed) => self.fields.extend(changed),
            HostMessage::Done { number, outcome: Outcome::Refused(why) } => {
                self.line("refused", || json!({"reason": why}))?;
                if number == PROMPT {
                    // Why the agent ended says more than that the message came too late for it.
                    self.refused = Some(why).filter(|_| self.state.phase != Phase::Ended);
                    self.end();
                }
            }
            HostMessage::Done { outcome: Outcome::Already { by, answer }, .. } => {
                self.line("already", || json!({"by": by, "answer": answer}))?;
            }
            HostMessage::Done { outcome: Outcome::Accepted, .. } => {}
        }
        if let Some(state) = ChatState::of_fields(self.fields.clone()) {
            self.state = state;
        }
        self.announce()?;
        if self.state.stuck && self.interrupted > 0 {
            self.end();
        }
        Ok(())
    }

    /// Prints what is new beside the transcript: session, questions, answers.
    fn announce(&mut self) -> Result<()> {
        if self.transcript.is_none()
            && !self.warned
            && let Some(session) = self.state.session.clone()
            && self.state.phase != Phase::Starting
        {
            let state = &self.state;
            let start = json!({"agent": state.agent, "program": state.program,
                "agent_session_id": session, "project": state.folder});
            self.line("start", || start)?;
            let agent = &self.state.agent;
            // The agent goes on if the archive cannot be used.
            match ChatTranscript::new(self.archive, agent, &session, self.resumes) {
                Ok(transcript) => self.transcript = Some(transcript),
                Err(error) => self.warn(&error),
            }
        }
        let open: Vec<_> = self.state.questions.clone();
        for question in open.iter().filter(|open| !self.questions.contains(&open.id)) {
            self.line("question", || json!(question))?;
        }
        self.questions = open.into_iter().map(|open| open.id).collect();
        if self.answers_closed {
            self.decline();
        }
        let given: Vec<_> = self
            .state
            .answers
            .iter()
            .filter(|given| given.number > self.answers)
            .cloned()
            .collect();
        for given in given {
            self.answers = given.number;
            if !self.json && given.by == "rule" {
                stderr_line!(
                    "unspool: {} {}",
                    make_visible(&given.text),
                    make_visible(&given.answer)
                );
            }
            self.line("answered", || json!(given))?;
        }
        Ok(())
    }

    /// A line of JSON, if that is what the user wants.
    fn line(&self, name: &str, value: impl FnOnce() -> Value) -> Result<()> {
        match self.json {
            true => super::super::write_json_line(&json!({name: value()})),
            false => Ok(()),
        }
    }

    /// A command on standard input, as clients of the socket send it.
    fn input(&mut self, line: &str) -> Result<()> {
        match serde_json::from_str::<Command>(line) {
            Ok(command) => {
                if matches!(command, Command::Answer { .. }) {
                    // A program reads faster than a person.
                    std::thread::sleep(Duration::from_millis(MIN_READING_TIME + 10));
                }
                self.send(command);
                Ok(())
            }
            Err(error) => self.line("refused", || json!({"reason": error.to_string()})),
        }
    }

    fn decline(&mut self) {
        for open in std::mem::take(&mut self.state.questions) {
            if !self.declined.contains(&open.id) {
                self.declined.push(open.id.clone());
                let (question, answer) = (open.id, UserAnswer::Decline);
                self.send(Command::Answer { question, answer });
            }
        }
    }

    /// Says once that the archive cannot be used.
    fn warn(&mut self, error: &anyhow::Error) {
        if !std::mem::replace(&mut self.warned, true) {
            stderr_line!("unspool: the chat is not in the archive yet: {error:#}");
        }
    }

    /// Has the archive read what came, and prints the parts that are complete.
    fn print_parts(&mut self) -> Result<()> {
        let Some(capture) = self.state.capture.clone() else { return Ok(()) };
        let Some(transcript) = &mut self.transcript else { return Ok(()) };
        // The agent goes on if the archive fails; the capture is read later.
        let parts = transcript.read(&capture).and_then(|()| match self.json {
            true => transcript.new_parts(),
            false => Ok(Vec::new()),
        });
        match parts {
            Ok(parts) => {
                for part in parts {
                    self.line("part", || part)?;
                }
            }
            Err(error) => self.warn(&error),
        }
        Ok(())
    }

    fn print_end(&mut self) -> Result<()> {
        let end = match &mut self.transcript {
            Some(transcript) => transcript.end().unwrap_or_default(),
            None => None,
        };
        let turn = self.state.last_turn.clone();
        let completed = turn.as_ref().is_some_and(|turn| {
            turn.error.is_none() && turn.stop_reason.as_deref() != Some("cancelled")
        });
        let error = turn.as_ref().and_then(|turn| turn.error.clone());
        let error = error.or_else(|| self.refused.clone());
        let error = error.or_else(|| self.state.reason.clone().filter(|_| turn.is_none()));
        let line = json!({
            "state": end.as_ref().and_then(|end| end.state).map(TurnState::name),
            "stop_reason": turn.as_ref().and_then(|turn| turn.stop_reason.clone()),
            "error": error,
            "session": end.as_ref().map(|end| end.session.clone()),
            "agent_session_id": self.state.session,
            "turn": end.as_ref().and_then(|end| end.turn),
            "usage": end.as_ref().map(|end| end.usage.clone()),
        });
        self.line("end", || line)?;
        if let Some(why) = &self.state.unrecorded {
            stderr_line!("unspool: {}", make_visible(why));
        }
        if let (false, Some(ChatEnd { text: Some(text), .. })) = (self.json, &end) {
            let mut out = terminal_writer::stdout();
            writeln!(out, "{}", text.trim_end())?;
            out.flush()?;
        }
        match (completed, error) {
            (true, _) => Ok(()),
            (false, _) if self.timed_out => Err(anyhow!("the agent was interrupted: time is up")),
            (false, Some(error)) => Err(anyhow!("{error}")),
            (false, None) => Err(anyhow!("the turn was interrupted")),
        }
    }
}
