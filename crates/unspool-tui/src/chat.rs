//! A chat with an agent in an open session: what its host reports, the composer, and the open
//! questions. What can be answered comes from the host; what happened comes from the archive, like
//! every transcript.

pub mod composer;
pub mod layout;
#[cfg(unix)]
pub mod link;
pub mod question;
pub mod question_layout;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use unspool_live::protocol::{
    AgentOption, ChatState, ClientMessage, Command, GivenAnswer, HostMessage, OpenQuestion,
    Outcome, Phase,
};
use unspool_model::id::SessionId;

use composer::Composer;
use question::QuestionPane;

/// The name of this surface, in answers and captures.
pub const SURFACE: &str = "terminal";
/// A draft is kept by the host this long after the last key.
const DRAFT_DELAY: Duration = Duration::from_millis(400);

/// The number of a connection to a host. Events of an older connection are ignored.
pub type LinkId = u64;

/// The chat to open.
#[derive(Clone, PartialEq, Debug)]
pub enum ChatRequest {
    /// A chat that runs.
    Attach(String),
    /// The chat that runs for a session, if one does.
    Find(SessionId),
    /// Goes on with a session: in its chat, if one runs.
    Resume(SessionId),
    /// Starts the agent of a chat again that has ended.
    Restart { chat: String, session: Option<String> },
}

/// What the main loop does for a chat.
#[derive(Clone, PartialEq, Debug)]
pub enum ChatEffect {
    Open(ChatRequest),
    Send(ClientMessage),
    /// Lists the files of the agent's folder, for the composer.
    ListFiles(PathBuf),
    Close,
}

/// What comes from a connection.
#[derive(Debug)]
pub enum ChatEvent {
    Attached { chat: String, state: Box<ChatState> },
    Host(HostMessage),
    Failed(String),
    Closed,
    Files(Vec<String>),
}

/// Where keys go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Focus {
    /// To the transcript: letters are commands.
    Transcript,
    Composer,
    /// To a question, by its id.
    Question(String),
    /// To a queued message, by its position.
    Queue(usize),
}

pub struct ChatPane {
    pub link: LinkId,
    /// The id of the chat, once it is attached.
    pub chat: Option<String>,
    /// The archive's id of the session. Before the agent has one, the id of an empty transcript.
    pub session: SessionId,
    pub state: ChatState,
    fields: Map<String, Value>,
    /// Nobody wanted a chat: it is shown only if one runs.
    pub tentative: bool,
    /// Why there is no connection.
    pub lost: Option<String>,
    pub composer: Composer,
    pub focus: Focus,
    pub questions: BTreeMap<String, QuestionPane>,
    /// The queued message that is in the composer.
    pub editing: Option<u64>,
    /// Files of the agent's folder; None before they were listed.
    pub files: Option<Vec<String>>,
    /// Since when the agent does what it does.
    pub since: Instant,
    /// A message to send as soon as the agent is there again.
    pub resend: Option<String>,
    next_command: u64,
    /// What was sent and is not confirmed, for what to do if it is refused.
    unconfirmed: BTreeMap<u64, Command>,
    answers_seen: u64,
    /// The draft that the host has.
    stored_draft: String,
    draft_due: Option<Instant>,
}

impl ChatPane {
    pub fn new(link: LinkId, session: SessionId, now: Instant) -> ChatPane {
        ChatPane {
            link,
            chat: None,
            session,
            state: ChatState::default(),
            fields: Map::new(),
            tentative: false,
            lost: None,
            composer: Composer::default(),
            focus: Focus::Composer,
            questions: BTreeMap::new(),
            editing: None,
            files: None,
            since: now,
            resend: None,
            next_command: 0,
            unconfirmed: BTreeMap::new(),
            answers_seen: 0,
            stored_draft: String::new(),
            draft_due: None,
        }
    }

    pub fn is_attached(&self) -> bool {
        self.chat.is_some() && self.lost.is_none()
    }

    /// True if only a new start helps.
    pub fn is_over(&self) -> bool {
        self.lost.is_some() || self.state.phase == Phase::Ended
    }

    pub fn attach(&mut self, chat: String, state: ChatState, now: Instant) {
        (self.chat, self.lost, self.tentative) = (Some(chat), None, false);
        self.fields = state.fields();
        // What was answered before is in the transcript.
        self.answers_seen = state.answers.last().map_or(0, |answer| answer.number);
        self.stored_draft.clear();
        self.set_state(state, now);
    }

    /// Takes a message of the host. Returns what to say about it.
    pub fn take(&mut self, message: HostMessage, now: Instant) -> Option<String> {
        match message {
            HostMessage::Hello { state, .. } => self.fields = state,
            HostMessage::Changed(changed) => self.fields.extend(changed),
            HostMessage::Done { number, outcome } => return self.done(number, outcome),
        }
        let state = ChatState::of_fields(self.fields.clone())?;
        let notice = self.set_state(state, now);
        self.state.notice.clone().or(notice)
    }

    fn set_state(&mut self, state: ChatState, now: Instant) -> Option<String> {
        if state.phase != self.state.phase {
            self.since = now;
        }
        let is_own = state.draft == self.stored_draft || state.draft == self.composer.field.text();
        if !is_own && self.composer.field.is_empty() && self.editing.is_none() {
            self.composer.set(&state.draft);
        }
        self.stored_draft.clone_from(&state.draft);
        self.questions.retain(|id, _| state.questions.iter().any(|open| open.id == *id));
        for open in &state.questions {
            let draft = state.answer_drafts.get(&open.id).map(String::as_str);
            let new = || QuestionPane::new(open, draft);
            self.questions.entry(open.id.clone()).or_insert_with(new);
        }
        let editing = self.editing;
        if editing.is_some_and(|id| state.queue.iter().all(|message| message.id != id)) {
            self.editing = None;
        }
        self.state = state;
        self.settle_focus();
        self.note_answers()
    }

    /// Leaves a question or message that is gone.
    pub fn settle_focus(&mut self) {
        let gone = match &self.focus {
            Focus::Question(id) => !self.questions.contains_key(id),
            Focus::Queue(at) => *at >= self.state.queue.len(),
            Focus::Transcript | Focus::Composer => false,
        };
        if gone {
            self.focus = Focus::Composer;
        }
    }

    /// The last answer that another surface gave: everybody learns who answered (C-24).
    fn note_answers(&mut self) -> Option<String> {
        let seen = self.answers_seen;
        let mut new = self.state.answers.iter().filter(|answer| answer.number > seen);
        let other = |answer: &&GivenAnswer| answer.by != SURFACE;
        let notice = new
            .rfind(other)
            .map(|answer| format!("answered by the {}: {}", answer.by, answer.answer));
        self.answers_seen = self.state.answers.last().map_or(seen, |answer| answer.number);
        notice
    }

    fn done(&mut self, number: u64, outcome: Outcome) -> Option<String> {
        let command = self.unconfirmed.remove(&number)?;
        match outcome {
            Outcome::Accepted => None,
            Outcome::Already { by, answer } => Some(format!("the {by} was first: {answer}")),
            Outcome::Refused(why) => {
                // No message vanishes: it is back where it was typed.
                if let Command::Prompt { text } | Command::Edit { text, .. } = command
                    && self.composer.field.is_empty()
                {
                    self.composer.set(&text);
                }
                Some(format!("✕ {why}"))
            }
        }
    }

    /// A command for the host.
    pub fn command(&mut self, command: Command) -> ChatEffect {
        self.next_command += 1;
        let number = self.next_command;
        self.unconfirmed.insert(number, command.clone());
        ChatEffect::Send(ClientMessage { number, by: SURFACE.to_owned(), command })
    }

    pub fn question(&self, id: &str) -> Option<&OpenQuestion> {
        self.state.questions.iter().find(|open| open.id == id)
    }

    /// The question about a call, by the archive's id of the call.
    pub fn question_about(&self, call: &str) -> Option<&OpenQuestion> {
        self.state.questions.iter().find(|open| open.is_about(&self.state.agent, call))
    }

    /// The option of a category: `mode` or `model`.
    pub fn option(&self, category: &str) -> Option<&AgentOption> {
        self.state.options.iter().find(|option| option.category == category)
    }

    /// Completes the word at the cursor.
    pub fn complete(&mut self) {
        let files = self.files.as_deref().unwrap_or_default();
        self.composer.complete(&self.state.commands, files);
    }

    /// The text of the composer changed.
    pub fn edited(&mut self, now: Instant) {
        self.complete();
        self.draft_due = Some(now + DRAFT_DELAY);
    }

    /// Messages that the host did not confirm go back to the composer.
    pub fn give_back(&mut self) {
        let unconfirmed = std::mem::take(&mut self.unconfirmed);
        for command in unconfirmed.into_values() {
            if let Command::Prompt { text } = command {
                let typed = self.composer.field.clear();
                let text = if typed.is_empty() { text } else { format!("{text}\n{typed}") };
                self.composer.set(&text);
            }
        }
        if let Some(text) = self.resend.take() {
            self.composer.set(&text);
        }
    }

    pub fn draft_due(&self) -> Option<Instant> {
        self.draft_due
    }

    /// Has the host keep the draft, if it changed. A message of the queue is kept there already.
    pub fn keep_draft(&mut self) -> Option<ChatEffect> {
        self.draft_due = None;
        let text = if self.editing.is_some() { "" } else { self.composer.field.text() };
        if !self.is_attached() || text == self.stored_draft {
            return None;
        }
        let text = text.to_owned();
        self.stored_draft.clone_from(&text);
        Some(self.command(Command::Draft { question: None, text }))
    }

    /// The focus after this one: the open questions, the queue, the composer.
    pub fn next_focus(&self) -> Focus {
        let ids: Vec<&String> = self.state.questions.iter().map(|open| &open.id).collect();
        let queue = || match self.state.queue.is_empty() {
            true => Focus::Composer,
            false => Focus::Queue(0),
        };
        match &self.focus {
            Focus::Transcript | Focus::Composer => {
                ids.first().map_or_else(queue, |id| Focus::Question((*id).clone()))
            }
            Focus::Question(id) => {
                let at = ids.iter().position(|other| *other == id).map_or(0, |at| at + 1);
                ids.get(at).map_or_else(queue, |id| Focus::Question((*id).clone()))
            }
            Focus::Queue(_) => Focus::Composer,
        }
    }
}
