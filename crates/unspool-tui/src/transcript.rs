//! One open session: the loaded window of its entries, the scroll position and cursor, fold states
//! and the find. The window is bounded, however long the session is (C-19). `apply` puts loaded
//! data into it, `navigation` moves in it.

mod apply;
mod edges;
mod find;
pub mod navigation;
mod question_box;
pub mod seek;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::{PartId, SessionId};
use unspool_model::note::NoteTarget;
use unspool_model::part::{Kind, Place};
use unspool_query::reader::{Query, SessionRow};
use unspool_query::window::{Anchor, Position, Size};
use unspool_view::lines::{Highlighter, Line};
use unspool_view::present::tools::Tasks;

use crate::entry::{Entry, EntryKey, FoldState, Inlines, LayoutContext};
use crate::scroll::{EntryHeights, Scroll};

pub use edges::edges;
use edges::{first_place, last_place};
pub use find::Find;
use navigation::Direction;
pub use question_box::{PlacedQuestion, QuestionBox};

/// The next window is loaded when fewer screens than this are left.
const PREFETCH_SCREENS: usize = 3;
/// The sizes of the first window and of those loaded while scrolling.
const FIRST_WINDOW: Size = Size { parts: 80, block: 40, long: 200 };
const NEXT_WINDOW: Size = Size { parts: 120, block: 40, long: 240 };
/// The most sub-agents of one entry shown inline.
const MAX_INLINE_AGENTS: usize = 8;
const SESSION_END: Position = Position { turn: u32::MAX, place: Place(i64::MAX) };

/// Why a window is loaded, hence what to do with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoadReason {
    /// Replaces everything. Scrolls to this place, or to the end.
    Replace(Option<Position>),
    Before,
    After,
    /// Reloads what is here: it may have changed.
    Refresh,
    /// Loads the omitted parts of a reasoning block.
    Inside(EntryKey),
    /// Loads a sub-agent's transcript, shown inline.
    Inline(SessionId),
    /// Finds the next error or edit; the window around it is loaded next.
    Seek(Direction),
}

/// Display options of all transcripts.
#[derive(Clone)]
pub struct ViewOptions {
    /// Syntax highlighting, if it is available.
    pub colours: Option<Rc<dyn Highlighter>>,
    /// Above this many entries, those far from the screen are dropped (C-19).
    pub window: usize,
}

impl Default for ViewOptions {
    fn default() -> ViewOptions {
        ViewOptions { colours: None, window: 700 }
    }
}

/// A query for a window, and its reason.
pub type LoadRequest = (LoadReason, Query);

pub struct TranscriptPane {
    pub session: SessionId,
    pub session_row: Option<SessionRow>,
    pub entries: Vec<Entry>,
    pub scroll: Scroll,
    /// The entry that keys act on.
    pub cursor: Option<EntryKey>,
    /// The part of a reasoning block that the last seek stopped at, and its entry. It counts only
    /// while the cursor is on that entry.
    stopped_at: Option<(EntryKey, PartId)>,
    /// What to say about a seek that found nothing.
    pub seek_end: Option<String>,
    pub find: Option<Find>,
    /// A note that was typed and is not saved yet.
    pub unsaved_note: Option<(NoteTarget, String)>,
    /// How many entries arrived while the user was scrolled away; `mark` is the first of them.
    pub unseen: usize,
    pub mark: Option<EntryKey>,
    /// During a replay: entries after this place are not shown yet.
    pub until: Option<Position>,
    /// What the agent plans now.
    pub tasks: Tasks,
    /// The chat with the agent, below the last entry.
    pub tail: Option<Rc<QuestionBox>>,
    /// Open questions of the agent, below the entries that they are about.
    pub boxes: FxHashMap<EntryKey, QuestionBox>,
    pub width: usize,
    pub view: usize,
    view_options: ViewOptions,
    inlines: Inlines,
    size: Size,
    folds: FxHashMap<EntryKey, FoldState>,
    kinds: FxHashMap<Kind, FoldState>,
    /// Where the part before the window ends, and where the part after it begins. `None` at the
    /// session's own edge.
    earlier: Option<Position>,
    later: Option<Position>,
    loading: FxHashSet<LoadReason>,
    /// A write arrived while a window was loading.
    stale: bool,
}

impl EntryHeights for TranscriptPane {
    fn count(&self) -> usize {
        match self.until {
            None => self.entries.len() + usize::from(self.has_tail()),
            Some(until) => self.entries.partition_point(|entry| entry.position <= until),
        }
    }

    fn height(&self, entry: usize) -> usize {
        match self.entries.get(entry) {
            Some(entry) => self.lines(entry).len(),
            None if self.has_tail() => self.tail.as_ref().map_or(0, |tail| tail.lines.len()),
            None => 0,
        }
    }
}

impl TranscriptPane {
    pub fn new(
        session: SessionId,
        session_row: Option<SessionRow>,
        view_options: ViewOptions,
    ) -> TranscriptPane {
        TranscriptPane {
            session,
            session_row,
            entries: Vec::new(),
            scroll: Scroll::at_end(),
            cursor: None,
            stopped_at: None,
            seek_end: None,
            find: None,
            unsaved_note: None,
            unseen: 0,
            mark: None,
            until: None,
            tasks: Tasks::default(),
            tail: None,
            boxes: FxHashMap::default(),
            width: 80,
            view: 20,
            view_options,
            inlines: Inlines::default(),
            size: FIRST_WINDOW,
            folds: FxHashMap::default(),
            kinds: FxHashMap::default(),
            earlier: None,
            later: None,
            loading: FxHashSet::default(),
            stale: false,
        }
    }

    /// A small window at the end of the session.
    pub fn preview(session_row: &SessionRow, view_options: ViewOptions) -> TranscriptPane {
        let size = Size { parts: 16, block: 8, long: 32 };
        TranscriptPane {
            size,
            ..TranscriptPane::new(session_row.id, Some(session_row.clone()), view_options)
        }
    }

    pub fn is_loaded(&self) -> bool {
        !self.entries.is_empty()
    }

    /// True if the end of the session is loaded.
    pub fn has_end(&self) -> bool {
        self.later.is_none()
    }

    /// True if the chat is visible below the last entry.
    fn has_tail(&self) -> bool {
        self.tail.is_some() && self.has_end() && self.until.is_none()
    }

    pub fn lines(&self, entry: &Entry) -> Rc<Vec<Line>> {
        let (colours, inlines) = (self.view_options.colours.as_deref(), &self.inlines);
        let (fold, context) = (self.fold_of(entry), LayoutContext { colours, inlines });
        match self.boxes.get(&entry.key) {
            None => entry.lines(self.width, fold, &context),
            Some(shown) => {
                // The question shows what the call is about, unless that is too long.
                let fold = if shown.omits { fold } else { FoldState::Closed };
                let lay_out = || {
                    let mut lines = entry.lines_without_question(self.width, fold, &context);
                    lines.extend(shown.lines.iter().cloned());
                    (self.width, fold, Rc::new(lines))
                };
                let (width, laid_out, lines) = shown.all.get_or_init(lay_out);
                match (*width, *laid_out) == (self.width, fold) {
                    true => Rc::clone(lines),
                    false => lay_out().2,
                }
            }
        }
    }

    pub fn fold_of(&self, entry: &Entry) -> FoldState {
        let chosen = self.folds.get(&entry.key);
        let by_kind = || entry.kind().and_then(|kind| self.kinds.get(&kind));
        chosen.or_else(by_kind).copied().unwrap_or_else(|| entry.default_fold())
    }

    /// Sets the size available to it.
    pub fn resize(&mut self, width: usize, view: usize) {
        if (self.width, self.view) != (width, view) {
            (self.width, self.view) = (width, view);
            self.settle();
        }
    }

    pub fn settle(&mut self) {
        let mut scroll = self.scroll;
        scroll.settle(self, self.view);
        self.scroll = scroll;
        if self.scroll.following && self.has_end() && self.until.is_none() {
            self.unseen = 0;
        }
    }

    // ---- queries ----

    fn window(&self, anchor: Anchor, size: Size) -> Query {
        Query::Window { session: self.session, anchor, filter: None, size }
    }

    pub fn request_window(&mut self, anchor: Anchor) -> LoadRequest {
        let place = match anchor {
            Anchor::Around(place) => Some(place),
            // Whole turns, with their heads.
            Anchor::From(place) => Some(Position { place: Place(-2), ..place }),
            Anchor::End
            | Anchor::Before(_)
            | Anchor::After(_)
            | Anchor::Inside(_)
            | Anchor::Between(_, _) => None,
        };
        self.loading.clear();
        let reason = LoadReason::Replace(place);
        self.loading.insert(reason);
        (reason, self.window(anchor, self.size))
    }

    /// Reloads the loaded range. If a query is pending, marks the transcript stale instead.
    pub fn request_refresh(&mut self) -> Option<LoadRequest> {
        if !self.loading.is_empty() {
            self.stale = true;
            return None;
        }
        self.loading.insert(LoadReason::Refresh);
        let first = self.entries.iter().find(|entry| entry.key != EntryKey::Head);
        let anchor = match first {
            None => Anchor::End,
            Some(first) => {
                let last = self.entries.iter().rev().find_map(last_place);
                let to = if self.has_end() { SESSION_END } else { last.unwrap_or(SESSION_END) };
                Anchor::Between(first.position, to)
            }
        };
        Some((LoadReason::Refresh, self.window(anchor, self.size)))
    }

    /// Loads the next window if the screen is near an edge of the loaded range.
    pub fn request_more(&mut self) -> Option<LoadRequest> {
        if !self.loading.is_empty() || !self.is_loaded() {
            return None;
        }
        let near = self.view * PREFETCH_SCREENS;
        if let Some(earlier) = self.earlier {
            let above: usize = self.lines_before(self.scroll.top.entry, near);
            if above < near {
                self.loading.insert(LoadReason::Before);
                return Some((
                    LoadReason::Before,
                    self.window(Anchor::Before(earlier), NEXT_WINDOW),
                ));
            }
        }
        if let Some(later) = self.later {
            let below: usize = self.lines_behind(self.scroll.top.entry, near + self.view);
            if below < near + self.view {
                self.loading.insert(LoadReason::After);
                return Some((LoadReason::After, self.window(Anchor::After(later), NEXT_WINDOW)));
            }
        }
        None
    }

    fn lines_before(&self, entry: usize, enough: usize) -> usize {
        let mut sum = 0;
        for at in (0..entry).rev() {
            sum += self.height(at);
            if sum >= enough {
                break;
            }
        }
        sum
    }

    fn lines_behind(&self, entry: usize, enough: usize) -> usize {
        let mut sum = 0;
        // During a replay, entries that are not shown yet count as well.
        for at in entry..self.entries.len() {
            sum += self.height(at);
            if sum >= enough {
                break;
            }
        }
        sum
    }

    /// Queries for the sub-agents of an opened entry, to show them inline.
    pub fn request_inlines(&self, at: usize) -> Vec<LoadRequest> {
        let Some(entry) = self.entries.get(at) else { return Vec::new() };
        if self.fold_of(entry) != FoldState::Open {
            return Vec::new();
        }
        entry
            .agents()
            .into_iter()
            .take(MAX_INLINE_AGENTS)
            .map(|(_, id)| self.request_inline(id))
            .collect()
    }

    pub fn request_inline(&self, session: SessionId) -> LoadRequest {
        let query =
            Query::Window { session, anchor: Anchor::End, filter: None, size: FIRST_WINDOW };
        (LoadReason::Inline(session), query)
    }

    /// True if this sub-agent's transcript is shown inline.
    pub fn has_inline(&self, session: SessionId) -> bool {
        self.inlines.contains_key(&session)
    }

    /// The loaded calls outside reasoning blocks, and whether they are open by default.
    pub fn calls(&self) -> Vec<(PartId, bool)> {
        let calls = self.entries.iter().filter(|entry| entry.kind() == Some(Kind::Tool));
        let is_open = |entry: &Entry| entry.default_fold() != FoldState::Closed;
        calls.flat_map(|entry| entry.parts().iter().map(|part| (part.id, is_open(entry)))).collect()
    }

    /// The part that keys act on, if they act on a part.
    pub fn selected_part(&self) -> Option<PartId> {
        let key = self.cursor?;
        let stop = self.stopped_at.filter(|(stopped_in, _)| *stopped_in == key);
        let of_entry = if let EntryKey::Item(id) = key { Some(id) } else { None };
        stop.map(|(_, part)| part).or(of_entry)
    }

    /// The connection was lost: no pending query will get a response.
    pub fn forget_pending(&mut self) {
        self.loading.clear();
    }
}
