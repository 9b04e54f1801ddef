//! The rules of a chat, without I/O: `Chat::take` gets one input and the time, and returns effects.
//!
//! - One prompt is in flight at a time; further messages wait in the queue.
//! - A message that was accepted is in the queue, was sent, or is back in the draft.
//! - A question has one answer, the first. Only a person or a rule of theirs says yes: no default, no
//!   time-out and no reconnection does.

mod config;
mod exit;
mod input;
mod question;
mod start;
mod steering;
mod turn;
pub(crate) mod update;
mod valid_answer;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::mcp::McpServer;
use crate::outgoing::{self, Outgoing};
use crate::protocol::{ChatState, Phase};
use crate::wire::{METHOD_NOT_FOUND, Message, RequestId, RpcError};

pub use exit::Exit;
pub use input::{ChatSpec, Effect, Input, LinkFinder};
pub use question::{MAX_OPTIONS, MAX_QUESTION_BYTES, MAX_SUBJECT_BYTES, Policy};
pub use valid_answer::{MIN_READING_TIME, ValidAnswer, validate};

/// No reply to `initialize` in this time: it is no agent. `npx` may download one first.
const INITIALIZE_TIMEOUT: u64 = 120_000;
const SESSION_TIMEOUT: u64 = 60_000;
/// An agent that does not stop in this time is offered to be ended.
const CANCEL_TIMEOUT: u64 = 10_000;
/// An agent that writes nothing for this long, though it works, is said to be silent.
const SILENCE: u64 = 5 * 60_000;
/// A chat that nobody has connected to yet is kept this long at least.
const FIRST_CLIENT_TIME: u64 = 60_000;
/// Output before the reply to `initialize` that is not of the protocol.
const MAX_JUNK_LINES: u64 = 100;
const MAX_JUNK_BYTES: u64 = 1_000_000;

/// A request that we sent.
#[derive(Clone, PartialEq, Debug)]
enum Sent {
    Initialize,
    Session,
    Prompt,
    /// This message of the queue, into the turn that runs.
    Steering {
        message: u64,
    },
    LogIn,
    Set {
        option: String,
        before: Value,
        required: bool,
    },
}

/// One connection to one agent.
pub struct Chat {
    spec: ChatSpec,
    pub state: ChatState,
    next_request: u64,
    next_message: u64,
    requests: BTreeMap<RequestId, Sent>,
    answer_count: u64,
    question_count: u64,
    /// The kinds of calls of this turn, as the agent names them.
    call_kinds: BTreeMap<String, String>,
    /// The request of the prompt in flight.
    prompt: Option<RequestId>,
    /// The message that is being written to the agent.
    sending: Option<u64>,
    /// When the present phase times out.
    deadline: Option<u64>,
    last_line: u64,
    junk_bytes: u64,
    clients: usize,
    /// Somebody was connected.
    had_clients: bool,
    /// Since when there is nothing to do and nobody is connected.
    alone_since: Option<u64>,
    resumes: bool,
    loads: bool,
    /// A new session was asked for in the same chat.
    clears: bool,
    /// It takes messages in the middle of a turn.
    steers: bool,
    /// The message that was sent into the turn, while the agent has not confirmed it.
    steering: Option<u64>,
    servers: Vec<McpServer>,
    find_links: LinkFinder,
    auth: String,
    stopping: bool,
    effects: Vec<Effect>,
}

impl Chat {
    /// A chat with a queue and drafts of before, if there are any.
    pub fn new(spec: ChatSpec, kept: Option<ChatState>) -> Chat {
        let kept = kept.unwrap_or_default();
        let mut kept = kept;
        for message in &mut kept.queue {
            message.at_once = false;
        }
        let held = (!kept.queue.is_empty()).then(|| "the chat was started again".to_owned());
        let state = ChatState {
            agent: spec.agent.clone().unwrap_or_else(|| "acp".to_owned()),
            folder: spec.folder.clone(),
            draft: kept.draft,
            queue: kept.queue,
            held,
            ..ChatState::default()
        };
        Chat {
            next_message: state.queue.iter().map(|message| message.id + 1).max().unwrap_or(0),
            spec,
            state,
            next_request: 0,
            requests: BTreeMap::new(),
            answer_count: 0,
            question_count: 0,
            call_kinds: BTreeMap::new(),
            prompt: None,
            sending: None,
            deadline: None,
            last_line: 0,
            junk_bytes: 0,
            clients: 0,
            had_clients: false,
            alone_since: None,
            clears: false,
            resumes: false,
            loads: false,
            steers: false,
            steering: None,
            servers: Vec::new(),
            find_links: |_, _| Vec::new(),
            auth: String::new(),
            stopping: false,
            effects: Vec::new(),
        }
    }

    /// Lets messages mention files.
    pub fn with_links(mut self, find: LinkFinder) -> Chat {
        self.find_links = find;
        self
    }

    /// Gives the agent these MCP servers, with the values of variables in place.
    pub fn with_servers(mut self, servers: Vec<McpServer>) -> Chat {
        self.servers = servers;
        self
    }

    /// The spec that this chat was started with.
    pub fn spec(&self) -> &ChatSpec {
        &self.spec
    }

    /// Takes an input. `now` is in milliseconds and never goes back.
    pub fn take(&mut self, input: Input, now: u64) -> Vec<Effect> {
        match input {
            Input::Started => self.initialize(now),
            Input::Failed(why) => self.end(why),
            Input::Message(message) => {
                self.last_line = now;
                self.state.silent_since = None;
                self.message(message, now);
            }
            Input::Junk { bytes } => self.junk(bytes),
            Input::Written { prompt } => self.written(prompt),
            Input::Exited(exit) => self.exited(&exit),
            Input::Client { client, number, by, command } => {
                let outcome = self.command(command, &by, now);
                self.effects.push(Effect::Reply { client, number, outcome });
            }
            Input::Clients(clients) => {
                self.clients = clients;
                self.had_clients |= clients > 0;
            }
            Input::Capture(Ok(path)) => {
                (self.state.capture, self.state.unrecorded) = (Some(path), None);
            }
            Input::Capture(Err(why)) => self.state.unrecorded = Some(why),
            Input::Tick => self.tick(now),
        }
        self.hurry(now);
        self.note_rest(now);
        std::mem::take(&mut self.effects)
    }

    /// When the next tick is due at the latest.
    pub fn next_tick(&self) -> Option<u64> {
        let silence =
            (self.works() && self.state.silent_since.is_none()).then_some(self.last_line + SILENCE);
        [self.deadline, silence, self.linger_end()].into_iter().flatten().min()
    }

    /// When a chat that nobody needs ends.
    fn linger_end(&self) -> Option<u64> {
        let linger = self.spec.linger?;
        let linger = if self.had_clients { linger } else { linger.max(FIRST_CLIENT_TIME) };
        self.alone_since.map(|since| since.saturating_add(linger))
    }

    fn message(&mut self, message: Message, now: u64) {
        match message {
            Message::Response { id, result } => match self.requests.remove(&id) {
                Some(sent) => self.replied(sent, result, now),
                // A reply to nothing, or a second one.
                None => self.state.junk += 1,
            },
            Message::Request { id, method, params } => match method.as_str() {
                "session/request_permission" => self.permission(id, &params, now),
                "elicitation/create" => self.form(id, &params, now),
                _ => self.send(&outgoing::error(
                    &id,
                    METHOD_NOT_FOUND,
                    &format!("this client does not offer {}", update::label(&method)),
                )),
            },
            Message::Notification { method, params } => match method.as_str() {
                "session/update" => self.update(&params),
                "$/cancel_request" => self.withdraw(&params),
                _ => {}
            },
            Message::Invalid => self.junk(0),
        }
    }

    fn replied(&mut self, sent: Sent, result: Result<String, RpcError>, now: u64) {
        match sent {
            Sent::Initialize => self.initialized(result, now),
            Sent::Session => self.session_ready(result, now),
            Sent::Prompt => self.prompt_ended(result, now),
            Sent::Steering { message } => self.steered(message, result, now),
            Sent::LogIn => self.logged_in(result, now),
            Sent::Set { option, before, required } => {
                self.option_set(&option, before, required, result, now);
            }
        }
    }

    /// Output that is not of the protocol. Banners are common; a program that writes nothing else
    /// is no agent.
    fn junk(&mut self, bytes: u64) {
        self.state.junk += 1;
        self.junk_bytes = self.junk_bytes.saturating_add(bytes);
        let too_much = self.state.junk > MAX_JUNK_LINES || self.junk_bytes > MAX_JUNK_BYTES;
        if self.state.phase == Phase::Starting && self.state.program.is_none() && too_much {
            self.end(format!(
                "{} does not speak the Agent Client Protocol: it writes other text; check the \
                 command and its arguments",
                self.program_name()
            ));
        }
    }

    fn program_name(&self) -> String {
        self.spec.command.first().cloned().unwrap_or_else(|| "the agent".to_owned())
    }

    /// Ends the chat because somebody wants it.
    fn end_by(&mut self, by: &str) {
        self.effects.push(Effect::Note(json!({"what": "end", "by": by})));
        self.end(format!("ended by the {by}"));
    }

    /// Ends the chat for a reason that the user sees.
    fn end(&mut self, why: String) {
        if self.state.phase == Phase::Ended {
            return;
        }
        self.give_back();
        self.state.phase = Phase::Ended;
        self.state.reason = Some(why);
        self.state.questions.clear();
        self.deadline = None;
        if !std::mem::replace(&mut self.stopping, true) {
            self.effects.push(Effect::Stop);
        }
    }

    fn tick(&mut self, now: u64) {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.deadline = None;
            self.timed_out();
        }
        if self.works() && now >= self.last_line + SILENCE && self.state.silent_since.is_none() {
            self.state.silent_since = Some(self.last_line);
        }
        if self.linger_end().is_some_and(|end| now >= end) {
            self.end(
                "it ended by itself: nobody was connected and there was nothing to do".to_owned(),
            );
        }
    }

    /// True while the agent has a prompt and asks nobody.
    fn works(&self) -> bool {
        self.state.phase == Phase::Running && self.state.questions.is_empty()
    }

    fn timed_out(&mut self) {
        match self.state.phase {
            Phase::Starting if self.state.program.is_none() => self.end(format!(
                "{} did not answer in 2 minutes; does it speak the Agent Client Protocol?",
                self.program_name()
            )),
            Phase::Starting => {
                self.end("the agent did not open a session in 1 minute".to_owned());
            }
            Phase::Cancelling => {
                if let Some(request) = &self.prompt {
                    let message = outgoing::cancel_request(request);
                    self.send(&message);
                }
                self.state.stuck = true;
            }
            Phase::Idle if self.steering.is_some() => self.steering_timed_out(),
            Phase::Idle if self.waits_for_setting() => {
                self.end("the agent did not set its mode or model in 1 minute".to_owned());
            }
            Phase::Idle | Phase::Running | Phase::Ended => {}
        }
    }

    /// Notes since when nobody needs the chat.
    fn note_rest(&mut self, now: u64) {
        let rests = self.state.phase == Phase::Idle
            && self.clients == 0
            && self.state.queue.is_empty()
            && self.state.questions.is_empty();
        if !rests {
            self.alone_since = None;
        } else if self.alone_since.is_none_or(|since| since < self.last_line) {
            // Agents that work in the background write without a turn.
            self.alone_since = Some(now);
        }
    }

    fn send(&mut self, message: &Value) {
        self.effects.push(Effect::Send(Outgoing::line(message)));
    }

    fn request(&mut self, sent: Sent) -> RequestId {
        let id = RequestId::number(self.next_request);
        self.next_request += 1;
        self.requests.insert(id.clone(), sent);
        id
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
