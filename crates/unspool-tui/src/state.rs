//! Everything that is on the screen, and what happens to it. Folds events into itself and says what
//! is to be done about them; it draws nothing and asks nobody itself.

mod acting;
mod asking;
mod export;
mod typing;

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use unspool_core::id::SessionId;
use unspool_engine::reader::{Found, Wish};
use unspool_engine::request::Request;

use crate::event::Event;
use crate::keys::Keys;
use crate::link::{Growth, Number, Told};
use crate::list::List;
use crate::replay::Replay;
use crate::transcript::{Manner, Transcript, Why};

/// Text that grows is looked at so often (C-20), states at once but for what one screen can show.
const TEXT: Duration = Duration::from_millis(100);
const STATE: Duration = Duration::from_millis(33);
/// A session of the list that changes is looked at so often.
const ROW: Duration = Duration::from_millis(500);
/// A glimpse is loaded when somebody stays so long on a row.
const LINGER: Duration = Duration::from_millis(90);
/// How long something is said.
const SAID: Duration = Duration::from_secs(5);

/// Something to be done outside.
#[derive(Debug)]
pub enum Deed {
    Ask(Number, Wish),
    Change(Request),
    /// Into the clipboard of who sits at the terminal.
    Copy(String),
    /// Into a file in the folder that we stand in.
    Save {
        name: String,
        text: String,
    },
    Mouse(bool),
    Redraw,
    Suspend,
    Quit,
}

/// What stands on top of the list, the last one in sight.
pub enum Screen {
    Session(Box<Transcript>),
    Search(Search),
}

/// Hits in all sessions.
pub struct Search {
    pub query: String,
    /// None while it is looked for.
    pub hits: Option<Vec<Found>>,
    pub at: usize,
    pub top: usize,
}

/// What lies over everything.
pub enum Overlay {
    Help {
        top: usize,
    },
    Input(Input),
    /// Whether to delete this session, by its title.
    Delete(SessionId, String),
    /// Which of these sub-agents to open.
    Agents {
        of: Vec<(String, SessionId)>,
        at: usize,
    },
}

/// A line that is typed.
pub struct Input {
    pub what: Purpose,
    pub text: String,
    /// Where the cursor is: a byte at the start of a character.
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

/// Whom an answer is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asker {
    List,
    /// The first of the list again.
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
    /// What is said in the status line for a while.
    pub said: Option<(String, Instant)>,
    /// Why the connection is lost.
    pub lost: Option<String>,
    /// Where it is connected to.
    pub name: Option<String>,
    pub mouse: bool,
    /// Glyphs of what runs may move (C-18).
    pub motion: bool,
    pub keys: Keys,
    pub manner: Manner,
    pub(crate) asked: FxHashMap<Number, Asker>,
    next: Number,
    /// Sessions that changed, and when they are to be looked at.
    rows_due: FxHashMap<SessionId, Instant>,
    /// When the session on the screen is to be looked at again.
    refresh_due: Option<Instant>,
    refreshed: Instant,
    /// When sub-agents that are shown in their places are.
    inlines_due: FxHashMap<SessionId, Instant>,
    preview_due: Option<Instant>,
    export: Option<export::Export>,
    /// The sessions that were to be changed.
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

    /// Opens the session that was named, once it is found.
    pub fn open_named(&mut self, id: &str, replay: bool) -> Deed {
        self.ask(Asker::Named { replay }, Wish::Session { id: id.to_owned() })
    }

    pub(crate) fn ask(&mut self, asker: Asker, wish: Wish) -> Deed {
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

    /// The session on the screen, if it is one.
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

    /// Something happened.
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

    /// Time went by.
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

    /// Whether something on the screen moves by itself.
    fn moves(&self) -> bool {
        use unspool_core::session::SessionState;
        let live = |state: SessionState| state == SessionState::Live;
        let open = self.transcript().and_then(|transcript| transcript.glance.as_ref());
        let here = open.is_some_and(|glance| live(glance.state));
        let list = self.screens.is_empty() && self.list.all.iter().any(|glance| live(glance.state));
        self.motion && (here || list)
    }

    /// The n-th picture of what runs.
    pub fn beat(&self) -> usize {
        if !self.motion {
            return 0;
        }
        (self.now.duration_since(self.began).as_millis() / 400) as usize
    }

    fn hear(&mut self, told: Told) -> Vec<Deed> {
        match told {
            Told::Answered(number, answer) => self.answered(number, answer),
            Told::Written { session, growth } => {
                self.written(session, growth);
                Vec::new()
            }
            Told::Missed => self.look_again(),
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
                    deeds.push(self.ask(Asker::Row(id), Wish::Session { id: id.to_string() }));
                }
                deeds
            }
        }
    }

    fn written(&mut self, session: SessionId, growth: Growth) {
        let now = self.now;
        self.rows_due.entry(session).or_insert(now + ROW);
        if self.transcript().is_some_and(|transcript| transcript.has_inline(session)) {
            self.inlines_due.entry(session).or_insert(now + TEXT);
        }
        if self.transcript().is_some_and(|transcript| transcript.session == session) {
            let pace = match growth {
                Growth::Text => TEXT,
                Growth::State => STATE,
            };
            let due = (self.refreshed + pace).max(now);
            self.refresh_due = Some(self.refresh_due.map_or(due, |held| held.min(due)));
        }
    }

    /// Sub-agents that are shown in the session on the screen, and were written to.
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

    /// What is to be asked now because its time has come.
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
            deeds.push(self.ask(Asker::Row(id), Wish::Session { id: id.to_string() }));
        }
        if self.preview_due.is_some_and(|due| due <= now) {
            self.preview_due = None;
            deeds.extend(self.ask_preview());
        }
        deeds.extend(self.ask_inlines());
        deeds.extend(self.of_transcript(Transcript::ask_more));
        deeds
    }

    /// Lets the session on the screen ask for something.
    pub(crate) fn of_transcript(
        &mut self,
        asks: impl FnOnce(&mut Transcript) -> Option<(Why, Wish)>,
    ) -> Option<Deed> {
        let transcript = self.transcript_mut()?;
        let session = transcript.session;
        let (why, wish) = asks(transcript)?;
        Some(self.ask(Asker::Window(session, why), wish))
    }

    /// Everything has the room that the screen gives it.
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
        let wanted = self.list.chosen().map(|glance| glance.id);
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
