//! The application state. `State` folds events and timers into itself and returns effects for the
//! main loop to run. It does no I/O and draws nothing; `view` reads it.

mod acting;
mod asking;
mod export;
mod typing;

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use unspool_core::id::SessionId;
use unspool_engine::reader::{Query, SearchHit};
use unspool_engine::request::Request;

use crate::event::Event;
use crate::keys::Keys;
use crate::link::{Number, Told, Urgency};
use crate::list::List;
use crate::replay::Replay;
use crate::transcript::{Manner, Transcript, Why};

/// The shortest interval between two refreshes of the open session: for growing text (C-20), and
/// for changes of state, which should show at once but never more than once a frame.
const TEXT: Duration = Duration::from_millis(100);
const STATE: Duration = Duration::from_millis(33);
/// The delay before a changed row of the list is reloaded.
const ROW: Duration = Duration::from_millis(500);
/// How long a row must stay selected before its preview is loaded.
const LINGER: Duration = Duration::from_millis(90);
/// How long a status message stays.
const SAID: Duration = Duration::from_secs(5);

/// An effect for the main loop to run.
#[derive(Debug)]
pub enum Deed {
    Ask(Number, Query),
    Change(Request),
    /// Copies to the clipboard of the terminal's user (OSC 52).
    Copy(String),
    /// Writes a file to the working directory.
    Save {
        name: String,
        text: String,
    },
    Mouse(bool),
    Redraw,
    Suspend,
    Quit,
}

/// A screen above the list. The last one is visible.
pub enum Screen {
    Session(Box<Transcript>),
    Search(Search),
}

/// Hits in all sessions.
pub struct Search {
    pub query: String,
    /// `None` while the search runs.
    pub hits: Option<Vec<SearchHit>>,
    pub at: usize,
    pub top: usize,
}

/// What is drawn above all screens.
pub enum Overlay {
    Help {
        top: usize,
    },
    Input(Input),
    /// Asks whether to delete this session; its title.
    Delete(SessionId, String),
    /// A choice of sub-agents to open.
    Agents {
        of: Vec<(String, SessionId)>,
        at: usize,
    },
}

/// The input line.
pub struct Input {
    pub what: Purpose,
    pub text: String,
    /// The cursor: a byte offset on a character boundary.
    pub at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    Filter,
    Find,
    Search,
    Tag(SessionId),
    Rename(SessionId),
}

/// What a pending query is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asker {
    List,
    /// The first page of the list, reloaded.
    Newest,
    Row(SessionId),
    Preview(SessionId),
    Window(SessionId, Why),
    Find(SessionId, String),
    Search(String),
    /// The session that was named on the command line.
    Named {
        replay: bool,
    },
    Export(SessionId),
}

pub struct State {
    pub list: List,
    pub screens: Vec<Screen>,
    pub overlay: Option<Overlay>,
    pub preview: Option<Transcript>,
    pub with_preview: bool,
    pub replay: Option<Replay>,
    pub size: (u16, u16),
    pub now: Instant,
    /// The message in the status line, and when it disappears.
    pub said: Option<(String, Instant)>,
    /// Why the connection is lost.
    pub lost: Option<String>,
    /// The server's name. `None` for the local archive.
    pub name: Option<String>,
    pub mouse: bool,
    /// Running parts may be animated (C-18).
    pub motion: bool,
    pub keys: Keys,
    pub manner: Manner,
    pub(crate) asked: FxHashMap<Number, Asker>,
    next: Number,
    /// Changed sessions of the list, and when to reload them.
    rows_due: FxHashMap<SessionId, Instant>,
    /// When to reload the open session.
    refresh_due: Option<Instant>,
    refreshed: Instant,
    /// When to reload each sub-agent that is shown inline.
    inlines_due: FxHashMap<SessionId, Instant>,
    preview_due: Option<Instant>,
    export: Option<export::Export>,
    /// Sessions with a requested change, to be reloaded when it is done.
    changing: Vec<SessionId>,
    began: Instant,
}

impl State {
    pub fn new(keys: Keys, size: (u16, u16), now: Instant) -> (State, Vec<Deed>) {
        let (list, wish) = List::new();
        let mut state = State {
            list,
            screens: Vec::new(),
            overlay: None,
            preview: None,
            with_preview: true,
            replay: None,
            size,
            now,
            said: None,
            lost: None,
            name: None,
            mouse: true,
            motion: true,
            keys,
            manner: Manner::default(),
            asked: FxHashMap::default(),
            next: 0,
            rows_due: FxHashMap::default(),
            refresh_due: None,
            refreshed: now,
            inlines_due: FxHashMap::default(),
            preview_due: None,
            export: None,
            changing: Vec::new(),
            began: now,
        };
        let deeds = vec![state.ask(Asker::List, wish)];
        (state, deeds)
    }

    /// Opens the session named on the command line once its row arrives.
    pub fn open_named(&mut self, id: &str, replay: bool) -> Deed {
        self.ask(Asker::Named { replay }, Query::Session { id: id.to_owned() })
    }

    pub(crate) fn ask(&mut self, asker: Asker, wish: Query) -> Deed {
        self.next += 1;
        self.asked.insert(self.next, asker);
        Deed::Ask(self.next, wish)
    }

    fn change(&mut self, session: SessionId, request: Request) -> Vec<Deed> {
        self.changing.push(session);
        vec![Deed::Change(request)]
    }

    pub fn say(&mut self, what: impl Into<String>) {
        self.said = Some((what.into(), self.now + SAID));
    }

    /// The open session, if a session is visible.
    pub fn transcript(&self) -> Option<&Transcript> {
        match self.screens.last()? {
            Screen::Session(transcript) => Some(transcript),
            Screen::Search(_) => None,
        }
    }

    pub fn transcript_mut(&mut self) -> Option<&mut Transcript> {
        match self.screens.last_mut()? {
            Screen::Session(transcript) => Some(transcript),
            Screen::Search(_) => None,
        }
    }

    /// Handles an event.
    pub fn take(&mut self, event: Event, now: Instant) -> Vec<Deed> {
        self.now = now;
        let mut deeds = match event {
            Event::Key(key) => self.press(key),
            Event::Mouse(mouse) => self.point(mouse),
            Event::Paste(text) => self.paste(&text),
            Event::Resize(width, height) => {
                self.size = (width, height);
                Vec::new()
            }
            Event::Told(told) => self.hear(told),
            Event::Coloured => {
                self.recolour();
                Vec::new()
            }
            Event::End => vec![Deed::Quit],
        };
        self.fit();
        deeds.extend(self.due());
        deeds
    }

    /// Advances the clock.
    pub fn tick(&mut self, now: Instant) -> Vec<Deed> {
        self.now = now;
        if self.said.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.said = None;
        }
        self.play();
        self.fit();
        self.due()
    }

    /// When it has to be woken, whatever happens.
    pub fn wake(&self) -> Option<Instant> {
        let rows = self.rows_due.values().min().copied();
        let inlines = self.inlines_due.values().min().copied();
        let said = self.said.as_ref().map(|(_, until)| *until);
        let replay = self.replay.as_ref().and_then(|replay| replay.next_at(self.now));
        let motion = self.moves().then(|| self.now + Duration::from_millis(120));
        [rows, inlines, said, self.refresh_due, self.preview_due, replay, motion]
            .into_iter()
            .flatten()
            .min()
    }

    /// True if something visible is animated.
    fn moves(&self) -> bool {
        use unspool_core::session::SessionState;
        let live = |state: SessionState| state == SessionState::Live;
        let open = self.transcript().and_then(|transcript| transcript.session_row.as_ref());
        let here = open.is_some_and(|session_row| live(session_row.state));
        let list = self.screens.is_empty()
            && self.list.all.iter().any(|session_row| live(session_row.state));
        self.motion && (here || list)
    }

    /// The current animation frame.
    pub fn beat(&self) -> usize {
        if !self.motion {
            return 0;
        }
        (self.now.duration_since(self.began).as_millis() / 400) as usize
    }

    fn hear(&mut self, told: Told) -> Vec<Deed> {
        match told {
            Told::Answered(number, answer) => self.answered(number, answer),
            Told::Written { session, urgency } => {
                self.written(session, urgency);
                Vec::new()
            }
            Told::Lagged => self.look_again(),
            Told::Connected => {
                self.lost = None;
                self.look_again()
            }
            Told::Lost(why) => {
                self.lost = Some(why);
                self.asked.clear();
                for screen in &mut self.screens {
                    if let Screen::Session(transcript) = screen {
                        transcript.forget_asked();
                    }
                }
                Vec::new()
            }
            Told::Done(done) => {
                self.say(match done {
                    Ok(what) => what,
                    Err(what) => format!("✕ {what}"),
                });
                let mut deeds = self.look_again();
                for id in std::mem::take(&mut self.changing) {
                    deeds.push(self.ask(Asker::Row(id), Query::Session { id: id.to_string() }));
                }
                deeds
            }
        }
    }

    fn written(&mut self, session: SessionId, urgency: Urgency) {
        let now = self.now;
        self.rows_due.entry(session).or_insert(now + ROW);
        if self.transcript().is_some_and(|transcript| transcript.has_inline(session)) {
            self.inlines_due.entry(session).or_insert(now + TEXT);
        }
        if self.transcript().is_some_and(|transcript| transcript.session == session) {
            let pace = match urgency {
                Urgency::Text => TEXT,
                Urgency::State => STATE,
            };
            let due = (self.refreshed + pace).max(now);
            self.refresh_due = Some(self.refresh_due.map_or(due, |held| held.min(due)));
        }
    }

    /// Queries for inline sub-agents that were written to.
    fn ask_inlines(&mut self) -> Vec<Deed> {
        let now = self.now;
        let due = self.inlines_due.iter().filter(|(_, due)| **due <= now).map(|(id, _)| *id);
        let due: Vec<SessionId> = due.collect();
        let mut deeds = Vec::new();
        for id in due {
            self.inlines_due.remove(&id);
            let Some(transcript) = self.transcript().filter(|held| held.has_inline(id)) else {
                continue;
            };
            let (session, (why, wish)) = (transcript.session, transcript.ask_inline(id));
            deeds.push(self.ask(Asker::Window(session, why), wish));
        }
        deeds
    }

    /// Queries whose time has come.
    fn due(&mut self) -> Vec<Deed> {
        let now = self.now;
        let mut deeds = Vec::new();
        if self.refresh_due.is_some_and(|due| due <= now) {
            self.refresh_due = None;
            self.refreshed = now;
            deeds.extend(self.of_transcript(Transcript::ask_refresh));
        }
        let due: Vec<SessionId> =
            self.rows_due.iter().filter(|(_, due)| **due <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.rows_due.remove(&id);
            deeds.push(self.ask(Asker::Row(id), Query::Session { id: id.to_string() }));
        }
        if self.preview_due.is_some_and(|due| due <= now) {
            self.preview_due = None;
            deeds.extend(self.ask_preview());
        }
        deeds.extend(self.ask_inlines());
        deeds.extend(self.of_transcript(Transcript::ask_more));
        deeds
    }

    /// Sends the query that the open session builds, if it builds one.
    pub(crate) fn of_transcript(
        &mut self,
        asks: impl FnOnce(&mut Transcript) -> Option<(Why, Query)>,
    ) -> Option<Deed> {
        let transcript = self.transcript_mut()?;
        let session = transcript.session;
        let (why, wish) = asks(transcript)?;
        Some(self.ask(Asker::Window(session, why), wish))
    }

    /// Fits all screens to the terminal's size, and schedules the preview of the selected row.
    pub(crate) fn fit(&mut self) {
        let (width, height) = (usize::from(self.size.0), usize::from(self.size.1));
        let places = crate::view::places(self);
        for screen in &mut self.screens {
            match screen {
                Screen::Session(transcript) => {
                    transcript.resize(width.saturating_sub(3).max(1), places.body);
                }
                Screen::Search(search) => search.settle(places.body / 2),
            }
        }
        self.list.settle(places.body);
        if let (Some(preview), Some(columns)) = (&mut self.preview, places.preview) {
            preview.resize(columns.saturating_sub(3).max(1), height.saturating_sub(3));
        }
        let wanted = self.list.chosen().map(|session_row| session_row.id);
        let held = self.preview.as_ref().map(|preview| preview.session);
        if self.screens.is_empty() && places.preview.is_some() && wanted != held {
            self.preview = None;
            if wanted.is_some() && self.preview_due.is_none() {
                self.preview_due = Some(self.now + LINGER);
            }
        }
    }

    fn recolour(&mut self) {
        let transcripts = self.screens.iter().filter_map(|screen| match screen {
            Screen::Session(transcript) => Some(&**transcript),
            Screen::Search(_) => None,
        });
        for transcript in transcripts.chain(&self.preview) {
            transcript.pieces.iter().for_each(crate::piece::Piece::forget);
        }
    }
}

impl Search {
    pub fn by(&mut self, rows: isize) {
        let last = self.hits.as_ref().map_or(0, |hits| hits.len().saturating_sub(1));
        self.at = self.at.saturating_add_signed(rows).min(last);
    }

    fn settle(&mut self, view: usize) {
        let view = view.max(1);
        self.top = self.top.min(self.at);
        if self.at >= self.top + view {
            self.top = self.at + 1 - view;
        }
    }
}
