//! The application state. `State` folds events and timers into itself and returns effects for the
//! main loop to run. It does no I/O and draws nothing; `view` reads it.

mod actions;
mod changes_actions;
mod chat_actions;
mod chat_keys;
mod chat_options;
mod finding_actions;
mod input;
mod note_actions;
mod overlay;
mod prompt_actions;
mod refresh;
mod replay;
mod responses;
mod search;
mod session_actions;
mod unread;

use std::time::{Duration, Instant};

use note_actions::NoteIntent;
use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_query::attention::{Alert, Attention};
use unspool_query::reader::Query;
use unspool_query::request::Request;
use unspool_view::present::budget::BudgetUse;

use crate::backend::{BackendEvent, QueryId};
use crate::changes::ChangesPane;
use crate::chat::{ChatEffect, ChatPane, LinkId};
use crate::event::AppEvent;
use crate::keys::Keys;
use crate::list::List;
use crate::prompt::PromptPane;
use crate::prompt_calls::PromptCallsPane;
use crate::replay::{Replay, ReplayRange};
use crate::transcript::{LoadReason, TranscriptPane, ViewOptions};
pub use overlay::{Input, InputPurpose, Overlay};
pub use search::Search;

/// How long a row must stay selected before its preview is loaded.
const PREVIEW_DELAY: Duration = Duration::from_millis(90);
/// How long a status message stays.
const STATUS_DURATION: Duration = Duration::from_secs(5);

/// An effect for the main loop to run.
#[derive(Debug)]
pub enum Effect {
    Query(QueryId, Query),
    Change(Request),
    /// Copies to the clipboard of the terminal's user (OSC 52).
    Copy(String),
    /// Writes a file to the working directory.
    Save {
        name: String,
        text: String,
    },
    Mouse(bool),
    /// Rings the bell and asks the terminal to show a notification.
    Alert(Alert),
    /// Opens a file of this machine in the user's editor.
    Edit {
        path: String,
        line: u64,
    },
    /// For the connection to the host of a chat.
    Chat(LinkId, ChatEffect),
    Redraw,
    Suspend,
    /// Ends the application, to begin again with the demo.
    Demo,
    Quit,
}

/// A screen above the list. The last one is visible.
pub enum Screen {
    Session(Box<TranscriptPane>),
    Search(Search),
    Changes(Box<ChangesPane>),
    Prompt(Box<PromptPane>),
    PromptCalls(PromptCallsPane),
}

/// What a pending query is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PendingQuery {
    List,
    /// The first page of the list, reloaded.
    Newest,
    Row(SessionId),
    Preview(SessionId),
    Window(SessionId, LoadReason),
    Find(SessionId, String),
    Search(String),
    Changes(SessionId),
    Prompt(SessionId),
    Notes(SessionId, NoteIntent),
    Findings(SessionId),
    Budgets,
    /// The session that was named on the command line.
    Named {
        replay: Option<ReplayRange>,
    },
    /// Markdown for a file.
    Export(SessionId),
    /// Markdown for the clipboard.
    Copy,
}

pub struct State {
    pub list: List,
    pub screens: Vec<Screen>,
    pub overlay: Option<Overlay>,
    pub preview: Option<TranscriptPane>,
    pub with_preview: bool,
    /// The list is drawn beside an open session, if there is room.
    pub with_side: bool,
    /// The seq of each session when it was last open.
    read: FxHashMap<SessionId, u64>,
    pub replay: Option<Replay>,
    /// The chat that is connected, shown with its session.
    pub chat: Option<ChatPane>,
    next_link: LinkId,
    /// Agents can be driven from here.
    pub can_chat: bool,
    /// The demo can be opened from an empty list.
    pub can_open_demo: bool,
    /// What is on this machine is still being read for the first time.
    pub reading: bool,
    /// The session that was visible after the last event.
    shown_session: Option<SessionId>,
    pub size: (u16, u16),
    pub now: Instant,
    /// The message in the status line, and when it disappears.
    pub status_text: Option<(String, Instant)>,
    /// Why the connection is lost.
    pub lost: Option<String>,
    /// The server's name. `None` for the local archive.
    pub name: Option<String>,
    pub mouse: bool,
    /// Running parts may be animated (C-18).
    pub motion: bool,
    pub keys: Keys,
    pub view_options: ViewOptions,
    pub(crate) pending: FxHashMap<QueryId, PendingQuery>,
    next: QueryId,
    /// Changed sessions of the list, and when to reload them.
    rows_due: FxHashMap<SessionId, Instant>,
    /// When to reload the open session.
    refresh_due: Option<Instant>,
    /// Budgets that are nearly spent, and when to ask for them again.
    pub budgets: Vec<BudgetUse>,
    budgets_due: Instant,
    /// When to reload what a session changed.
    changes_due: Option<Instant>,
    refreshed: Instant,
    /// When to reload each sub-agent that is shown inline.
    inlines_due: FxHashMap<SessionId, Instant>,
    preview_due: Option<Instant>,
    attention: Attention,
    /// The search screen was opened by typing, and closes when that is cancelled.
    typed_search: bool,
    /// Whether the terminal has the focus, if it says so.
    pub focused: Option<bool>,
    /// Sessions with a requested change, to be reloaded when it is done.
    changing: Vec<SessionId>,
    began: Instant,
}

impl State {
    pub fn new(keys: Keys, size: (u16, u16), now: Instant) -> (State, Vec<Effect>) {
        let (list, query) = List::new();
        let mut state = State {
            list,
            screens: Vec::new(),
            overlay: None,
            preview: None,
            with_preview: true,
            with_side: true,
            read: FxHashMap::default(),
            replay: None,
            chat: None,
            next_link: 0,
            can_chat: false,
            can_open_demo: false,
            reading: false,
            shown_session: None,
            size,
            now,
            status_text: None,
            lost: None,
            name: None,
            mouse: true,
            motion: true,
            keys,
            view_options: ViewOptions::default(),
            pending: FxHashMap::default(),
            next: 0,
            rows_due: FxHashMap::default(),
            refresh_due: None,
            budgets: Vec::new(),
            budgets_due: now,
            changes_due: None,
            refreshed: now,
            inlines_due: FxHashMap::default(),
            preview_due: None,
            attention: Attention::default(),
            typed_search: false,
            focused: None,
            changing: Vec::new(),
            began: now,
        };
        let effects = vec![state.send_query(PendingQuery::List, query)];
        (state, effects)
    }

    /// Opens the session named on the command line once its row arrives.
    pub fn open_named(&mut self, id: &str, replay: Option<ReplayRange>) -> Effect {
        self.send_query(PendingQuery::Named { replay }, Query::Session { id: id.to_owned() })
    }

    pub(crate) fn send_query(&mut self, pending_query: PendingQuery, query: Query) -> Effect {
        self.next += 1;
        self.pending.insert(self.next, pending_query);
        Effect::Query(self.next, query)
    }

    fn change(&mut self, session: SessionId, request: Request) -> Vec<Effect> {
        self.changing.push(session);
        vec![Effect::Change(request)]
    }

    pub fn set_status(&mut self, what: impl Into<String>) {
        self.status_text = Some((what.into(), self.now + STATUS_DURATION));
    }

    /// The open session, if a session is visible.
    pub fn transcript(&self) -> Option<&TranscriptPane> {
        match self.screens.last()? {
            Screen::Session(transcript) => Some(transcript),
            Screen::Search(_) | Screen::Changes(_) | Screen::Prompt(_) | Screen::PromptCalls(_) => {
                None
            }
        }
    }

    pub fn transcript_mut(&mut self) -> Option<&mut TranscriptPane> {
        match self.screens.last_mut()? {
            Screen::Session(transcript) => Some(transcript),
            Screen::Search(_) | Screen::Changes(_) | Screen::Prompt(_) | Screen::PromptCalls(_) => {
                None
            }
        }
    }

    /// Handles an event.
    pub fn take(&mut self, event: AppEvent, now: Instant) -> Vec<Effect> {
        self.now = now;
        // A notice of a write changes nothing that is shown before its query is answered.
        let is_notice = matches!(event, AppEvent::Backend(BackendEvent::Update(_)));
        let mut effects = match event {
            AppEvent::Key(key, read) => self.press(key, read),
            AppEvent::Mouse(mouse) => self.handle_mouse(mouse),
            AppEvent::Paste(text) => self.paste(&text),
            AppEvent::Resize(width, height) => {
                self.size = (width, height);
                Vec::new()
            }
            AppEvent::Focus(focused) => {
                self.focused = Some(focused);
                Vec::new()
            }
            AppEvent::Backend(event) => self.handle_backend_event(event),
            AppEvent::Chat(link, event) => self.handle_chat_event(link, event),
            AppEvent::Highlighted => {
                self.apply_highlights();
                Vec::new()
            }
            AppEvent::End => self.quit(),
        };
        effects.extend(self.find_visible_chat());
        self.resize_screens();
        if !is_notice {
            self.lay_out_chat();
        }
        effects.extend(self.due());
        effects
    }

    /// Advances the clock.
    pub fn tick(&mut self, now: Instant) -> Vec<Effect> {
        self.now = now;
        if self.status_text.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.status_text = None;
        }
        self.play();
        if let Some(chat) = &mut self.chat {
            chat.tick(now);
        }
        self.resize_screens();
        self.lay_out_chat();
        self.due()
    }

    /// When it has to be woken, whatever happens.
    pub fn wake(&self) -> Option<Instant> {
        let rows = self.rows_due.values().min().copied();
        let inlines = self.inlines_due.values().min().copied();
        let status_text = self.status_text.as_ref().map(|(_, until)| *until);
        let replay = self.replay.as_ref().and_then(|replay| replay.next_frame_at(self.now));
        let motion = self.is_animating().then(|| self.now + Duration::from_millis(120));
        [
            rows,
            inlines,
            status_text,
            self.refresh_due,
            self.changes_due,
            self.preview_due,
            replay,
            motion,
            self.chat.as_ref().and_then(ChatPane::draft_due),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// True if something visible is animated.
    fn is_animating(&self) -> bool {
        use unspool_model::session::SessionState;
        let live = |state: SessionState| state == SessionState::Live;
        let open = self.transcript().and_then(|transcript| transcript.session_row.as_ref());
        let here = open.is_some_and(|session_row| live(session_row.state));
        let list = self.screens.is_empty()
            && self.list.all.iter().any(|session_row| live(session_row.state));
        self.motion && (here || list)
    }

    /// The current animation frame.
    pub fn animation_frame(&self) -> usize {
        if !self.motion {
            return 0;
        }
        (self.now.duration_since(self.began).as_millis() / 400) as usize
    }

    /// Fits all screens to the terminal's size, and schedules the preview of the selected row.
    pub(crate) fn resize_screens(&mut self) {
        let (width, height) = (usize::from(self.size.0), usize::from(self.size.1));
        let screen_layout = crate::view::screen_layout(self);
        for screen in &mut self.screens {
            match screen {
                Screen::Session(transcript) => {
                    let width = width.saturating_sub(3 + screen_layout.side).max(1);
                    transcript.resize(width, screen_layout.body);
                }
                Screen::Changes(pane) => {
                    pane.resize(width.saturating_sub(3).max(1), screen_layout.body);
                }
                Screen::Prompt(pane) => {
                    pane.resize(width.saturating_sub(3).max(1), screen_layout.body);
                }
                Screen::PromptCalls(pane) => {
                    pane.settle(crate::view::call_rows(screen_layout.body));
                }
                Screen::Search(search) => {
                    search.settle(crate::view::hits_per_page(screen_layout.body))
                }
            }
        }
        self.list.settle(screen_layout.body);
        self.mark_read();
        if let (Some(preview), Some(columns)) = (&mut self.preview, screen_layout.preview) {
            preview.resize(columns.saturating_sub(3).max(1), height.saturating_sub(3));
        }
        let selected = self.list.chosen().map(|session_row| session_row.id);
        let held = self.preview.as_ref().map(|preview| preview.session);
        if self.screens.is_empty() && screen_layout.preview.is_some() && selected != held {
            self.preview = None;
            if selected.is_some() && self.preview_due.is_none() {
                self.preview_due = Some(self.now + PREVIEW_DELAY);
            }
        }
    }

    fn apply_highlights(&mut self) {
        let transcripts = self.screens.iter().filter_map(|screen| match screen {
            Screen::Session(transcript) => Some(&**transcript),
            Screen::Search(_) | Screen::Changes(_) | Screen::Prompt(_) | Screen::PromptCalls(_) => {
                None
            }
        });
        for transcript in transcripts.chain(&self.preview) {
            transcript.entries.iter().for_each(crate::entry::Entry::invalidate);
        }
    }
}
