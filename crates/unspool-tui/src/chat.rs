//! A chat with an agent in an open session: what its host reports, the composer, and the open
//! questions. What can be answered comes from the host; what happened comes from the archive, like
//! every transcript.

pub mod composer;
mod drafts;
pub mod layout;
#[cfg(unix)]
pub mod link;
pub mod question;
pub mod question_layout;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
pub use unspool_live::open::ChatRequest;
use unspool_live::protocol::{
    AgentOption, ChatState, ClientMessage, Command, GivenAnswer, HostMessage, OpenQuestion,
    Outcome, Phase, other_surface,
};
use unspool_model::id::SessionId;

use composer::Composer;
use question::QuestionPane;

/// The name of this surface, in answers and captures.
pub const SURFACE: &str = "terminal";
/// A draft is kept by the host this long after the last key.
const DRAFT_DELAY: Duration = Duration::from_millis(400);

/// How long keys are ignored after the question that they were pressed for is gone.
const GONE_DELAY: Duration = Duration::from_secs(1);

/// The number of a connection to a host. Events of an older connection are ignored.
pub type LinkId = u64;

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
    /// The chat that drives the agent, if one does, and the state of the session.
    Attached {
        chat: Option<String>,
        state: Box<ChatState>,
    },
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
    /// To a queued message, by its id.
    Queue(u64),
}

pub struct ChatPane {
    pub link: LinkId,
    /// The id of the chat that was opened. None if only the session was.
    pub chat: Option<String>,
    /// There is a connection.
    attached: bool,
    /// The archive's id of the session. Before the agent has one, the id of an empty transcript.
    pub session: SessionId,
    pub state: ChatState,
    fields: Map<String, Value>,
    /// Nobody wanted a chat: it is shown only if one runs, or the agent asks something.
    pub tentative: bool,
    /// Why there is no connection.
    pub lost: Option<String>,
    pub composer: Composer,
    pub focus: Focus,
    pub questions: BTreeMap<String, QuestionPane>,
    /// The queued message that is in the composer, and what was there before.
    pub editing: Option<(u64, String)>,
    /// Enter is ignored until then: it was meant for something that is gone.
    quiet_until: Option<Instant>,
    /// The composer got the focus because a question is gone: the next Enter may be meant for that.
    is_unsure: bool,
    /// The question with the focus is gone since this time.
    gone_since: Option<Instant>,
    /// Files of the agent's folder, listed when a word begins to name one.
    pub files: Vec<String>,
    /// The word at the cursor names a file, for which they were listed.
    pub names_file: bool,
    /// Since when the agent does what it does.
    pub since: Instant,
    /// A message to send as soon as the agent is there again.
    pub resend: Option<String>,
    /// The host has closed the connection.
    pub closed: bool,
    next_command: u64,
    /// What was sent and is not confirmed, for what to do if it is refused.
    unconfirmed: BTreeMap<u64, Command>,
    answers_seen: u64,
    /// The questions that were answered from here, unless somebody else was first.
    own_answers: BTreeSet<String>,
    /// The draft that the host has.
    stored_draft: String,
    draft_due: Option<Instant>,
    /// Text of an answer that the host does not have yet, by question.
    answer_draft: Option<(String, String)>,
}

impl ChatPane {
    pub fn new(link: LinkId, session: SessionId, now: Instant) -> ChatPane {
        ChatPane {
            link,
            chat: None,
            attached: false,
            session,
            state: ChatState::default(),
            fields: Map::new(),
            tentative: false,
            lost: None,
            composer: Composer::default(),
            focus: Focus::Composer,
            questions: BTreeMap::new(),
            editing: None,
            quiet_until: None,
            is_unsure: false,
            gone_since: None,
            closed: false,
            files: Vec::new(),
            names_file: false,
            since: now,
            resend: None,
            next_command: 0,
            unconfirmed: BTreeMap::new(),
            answers_seen: 0,
            own_answers: BTreeSet::new(),
            stored_draft: String::new(),
            draft_due: None,
            answer_draft: None,
        }
    }

    pub fn is_attached(&self) -> bool {
        self.attached && self.lost.is_none() && !self.closed
    }

    /// True if only a new start helps.
    pub fn is_over(&self) -> bool {
        self.lost.is_some() || self.closed || self.state.phase == Phase::Ended
    }

    pub fn attach(&mut self, chat: Option<String>, mut state: ChatState, now: Instant) {
        (self.chat, self.lost, self.attached) = (chat, None, true);
        self.fields = state.fields();
        // What was answered before is in the transcript.
        self.answers_seen = state.answers.last().map_or(0, |answer| answer.number);
        // What is sent again is no draft any more.
        if self.resend.as_ref() == Some(&state.draft) {
            state.draft.clear();
        }
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
        self.follow_draft(&state.draft);
        let (questions, composer) = (&mut self.questions, &mut self.composer);
        questions.retain(|id, pane| {
            let open = state.questions.iter().any(|open| open.id == *id);
            // The words of an answer that came too late are not lost.
            if !open && !pane.answered {
                composer.remember(pane.draft());
            }
            open
        });
        for open in &state.questions {
            let draft = state.answer_drafts.get(&open.id).map(String::as_str);
            let new = || QuestionPane::new(open, draft, state.answers_only);
            let pane = self.questions.entry(open.id.clone()).or_insert_with(new);
            pane.came_at.get_or_insert(now);
        }
        let was_open = !self.state.questions.is_empty();
        self.state = state;
        let answers = self.note_answers();
        let sent = self.settle_editing(now);
        let gone = self.settle_focus(now).filter(|_| was_open);
        self.settle_visibility();
        answers.or(sent).or(gone)
    }

    /// An agent in its own terminal is shown while it asks something.
    fn settle_visibility(&mut self) {
        let asks = !self.state.questions.is_empty() || matches!(self.focus, Focus::Question(_));
        self.tentative = self.state.answers_only && !asks;
    }

    /// Leaves a message that is gone. A question that is gone keeps the keys for a moment: they were
    /// meant for it, and must not be typed into the composer.
    fn settle_focus(&mut self, now: Instant) -> Option<String> {
        match &self.focus {
            Focus::Question(id) if !self.questions.contains_key(id) => {
                if self.gone_since.is_none() {
                    self.gone_since = Some(now);
                    return Some("the question is gone".to_owned());
                }
            }
            Focus::Queue(id) => {
                if self.state.queue.iter().all(|message| message.id != *id) {
                    self.leave_question(now);
                }
            }
            Focus::Question(_) | Focus::Transcript | Focus::Composer => self.gone_since = None,
        }
        None
    }

    /// Goes to the composer, where Enter means nothing for a moment.
    pub fn leave_question(&mut self, now: Instant) {
        self.gone_since = None;
        self.focus = self.rest();
        self.quiet_until = Some(now + question::GUARD_TIME);
        self.settle_visibility();
    }

    /// Where keys go that are for nothing else. An agent in its own terminal takes no messages.
    fn rest(&self) -> Focus {
        if self.state.answers_only { Focus::Transcript } else { Focus::Composer }
    }

    /// Advances the clock.
    pub fn tick(&mut self, now: Instant) {
        if self.gone_since.is_some_and(|since| now >= since + GONE_DELAY) {
            self.leave_question(now);
            self.is_unsure = true;
        }
    }

    /// True if a key in the composer is an Enter for something that is gone. Whoever types means the
    /// composer, and so does who presses Enter again.
    pub fn is_meant_elsewhere(&mut self, is_enter: bool, pressed: Instant) -> bool {
        let was_unsure = std::mem::take(&mut self.is_unsure);
        if !is_enter {
            self.quiet_until = None;
        } else if was_unsure {
            self.quiet_until = Some(pressed + question::GUARD_TIME);
        }
        self.quiet_until.is_some_and(|until| pressed < until)
    }

    /// The last answer that somebody else gave: everybody learns who answered (C-24).
    fn note_answers(&mut self) -> Option<String> {
        let seen = self.answers_seen;
        let mut new = self.state.answers.iter().filter(|answer| answer.number > seen);
        let other = |answer: &&GivenAnswer| !self.own_answers.contains(&answer.question);
        let notice = new.rfind(other).map(|answer| answer.sentence(SURFACE));
        self.answers_seen = self.state.answers.last().map_or(seen, |answer| answer.number);
        notice
    }

    fn done(&mut self, number: u64, outcome: Outcome) -> Option<String> {
        let command = self.unconfirmed.remove(&number)?;
        if let (Command::Answer { question, .. }, true) = (&command, outcome != Outcome::Accepted) {
            self.own_answers.remove(question);
        }
        match outcome {
            Outcome::Accepted => None,
            Outcome::Already { by, answer } => {
                Some(format!("{} was first: {answer}", other_surface(&by, SURFACE)))
            }
            Outcome::Refused(why) => {
                // No message vanishes: it is back where it was typed.
                match command {
                    Command::Prompt { text, .. } | Command::Edit { text, .. } => {
                        self.put_back(&text)
                    }
                    Command::Answer { question, .. } if self.questions.contains_key(&question) => {
                        self.focus = Focus::Question(question);
                    }
                    Command::Answer { .. }
                    | Command::Cancel
                    | Command::Remove { .. }
                    | Command::Move { .. }
                    | Command::Release
                    | Command::Set { .. }
                    | Command::Draft { .. }
                    | Command::Clear
                    | Command::End => {}
                }
                Some(format!("✕ {why}"))
            }
        }
    }

    /// A command for the host.
    pub fn command(&mut self, command: Command) -> ChatEffect {
        self.next_command += 1;
        let number = self.next_command;
        if let Command::Answer { question, .. } = &command {
            self.own_answers.insert(question.clone());
        }
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

    /// The focus after this one: the open questions, the queue, the composer.
    pub fn next_focus(&self) -> Focus {
        let ids: Vec<&String> = self.state.questions.iter().map(|open| &open.id).collect();
        let queue = || match self.state.queue.first() {
            Some(message) => Focus::Queue(message.id),
            None => self.rest(),
        };
        match &self.focus {
            Focus::Transcript | Focus::Composer => {
                ids.first().map_or_else(queue, |id| Focus::Question((*id).clone()))
            }
            Focus::Question(id) => {
                let at = ids.iter().position(|other| *other == id).map_or(0, |at| at + 1);
                ids.get(at).map_or_else(queue, |id| Focus::Question((*id).clone()))
            }
            Focus::Queue(_) => self.rest(),
        }
    }
}
