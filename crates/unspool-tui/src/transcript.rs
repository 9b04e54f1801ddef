//! One open session: the loaded window of its entries, the scroll position and cursor, fold states
//! and the find. The window is bounded, however long the session is (C-19). `apply` puts loaded
//! data into it, `navigation` moves in it.

mod find;
pub mod moving;
mod taking;

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::id::SessionId;
use unspool_core::lines::{Highlighter, Line};
use unspool_core::part::{Kind, Place};
use unspool_core::present::{Item, TurnView};
use unspool_engine::reader::{Query, SessionRow};
use unspool_engine::window::{Anchor, Position, Size, WindowView};

use crate::piece::{Content, Fold, Inlines, Key, Piece, Surroundings};
use crate::scroll::{Pieces, Scroll};

pub use find::Find;
use moving::Way;

/// The next window is loaded when fewer screens than this are left.
const NEAR: usize = 3;
/// The sizes of the first window and of those loaded while scrolling.
const FIRST: Size = Size { parts: 80, block: 40, long: 200 };
const MORE: Size = Size { parts: 120, block: 40, long: 240 };
/// The most sub-agents of one entry shown inline.
const INLINES: usize = 8;
const END: Position = Position { turn: u32::MAX, place: Place(i64::MAX) };

/// Why a window is loaded, hence what to do with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Why {
    /// Replaces everything. Scrolls to this place, or to the end.
    Anew(Option<Position>),
    Before,
    After,
    /// Reloads what is here: it may have changed.
    Refresh,
    /// Loads the omitted parts of a reasoning block.
    Inside(Key),
    /// Loads a sub-agent's transcript, shown inline.
    Inline(SessionId),
    /// Finds the next error or edit; the window around it is loaded next.
    Seek(Way),
}

/// Display options of all transcripts.
#[derive(Clone)]
pub struct Manner {
    /// Syntax highlighting, if it is available.
    pub colours: Option<Rc<dyn Highlighter>>,
    /// Above this many entries, those far from the screen are dropped (C-19).
    pub window: usize,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner { colours: None, window: 700 }
    }
}

/// A query for a window, and its reason.
pub type Asked = (Why, Query);

pub struct Transcript {
    pub session: SessionId,
    pub session_row: Option<SessionRow>,
    pub pieces: Vec<Piece>,
    pub scroll: Scroll,
    /// The entry that keys act on.
    pub cursor: Option<Key>,
    pub find: Option<Find>,
    /// How many entries arrived while the user was scrolled away; `mark` is the first of them.
    pub unseen: usize,
    pub mark: Option<Key>,
    /// During a replay: entries after this place are not shown yet.
    pub until: Option<Position>,
    pub width: usize,
    pub view: usize,
    manner: Manner,
    inlines: Inlines,
    size: Size,
    folds: FxHashMap<Key, Fold>,
    kinds: FxHashMap<Kind, Fold>,
    /// Where the part before the window ends, and where the part after it begins. `None` at the
    /// session's own edge.
    earlier: Option<Position>,
    later: Option<Position>,
    asking: FxHashSet<Why>,
    /// A write arrived while a window was loading.
    stale: bool,
}

impl Pieces for Transcript {
    fn count(&self) -> usize {
        match self.until {
            None => self.pieces.len(),
            Some(until) => self.pieces.partition_point(|piece| piece.position <= until),
        }
    }

    fn height(&self, piece: usize) -> usize {
        self.pieces.get(piece).map_or(0, |piece| self.lines(piece).len())
    }
}

impl Transcript {
    pub fn new(session: SessionId, session_row: Option<SessionRow>, manner: Manner) -> Transcript {
        Transcript {
            session,
            session_row,
            pieces: Vec::new(),
            scroll: Scroll::at_end(),
            cursor: None,
            find: None,
            unseen: 0,
            mark: None,
            until: None,
            width: 80,
            view: 20,
            manner,
            inlines: Inlines::default(),
            size: FIRST,
            folds: FxHashMap::default(),
            kinds: FxHashMap::default(),
            earlier: None,
            later: None,
            asking: FxHashSet::default(),
            stale: false,
        }
    }

    /// A small window at the end of the session.
    pub fn preview(session_row: &SessionRow, manner: Manner) -> Transcript {
        let size = Size { parts: 16, block: 8, long: 32 };
        Transcript { size, ..Transcript::new(session_row.id, Some(session_row.clone()), manner) }
    }

    pub fn is_loaded(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// True if the end of the session is loaded.
    pub fn has_end(&self) -> bool {
        self.later.is_none()
    }

    pub fn lines(&self, piece: &Piece) -> Rc<Vec<Line>> {
        let (colours, inlines) = (self.manner.colours.as_deref(), &self.inlines);
        piece.lines(self.width, self.fold_of(piece), &Surroundings { colours, inlines })
    }

    pub fn fold_of(&self, piece: &Piece) -> Fold {
        let chosen = self.folds.get(&piece.key);
        let by_kind = || piece.kind().and_then(|kind| self.kinds.get(&kind));
        chosen.or_else(by_kind).copied().unwrap_or_else(|| piece.usual_fold())
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

    pub fn ask_anew(&mut self, anchor: Anchor) -> Asked {
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
        self.asking.clear();
        let why = Why::Anew(place);
        self.asking.insert(why);
        (why, self.window(anchor, self.size))
    }

    /// Reloads the loaded range. If a query is pending, marks the transcript stale instead.
    pub fn ask_refresh(&mut self) -> Option<Asked> {
        if !self.asking.is_empty() {
            self.stale = true;
            return None;
        }
        self.asking.insert(Why::Refresh);
        let first = self.pieces.iter().find(|piece| piece.key != Key::Head);
        let anchor = match first {
            None => Anchor::End,
            Some(first) => {
                let last = self.pieces.iter().rev().find_map(last_place);
                let to = if self.has_end() { END } else { last.unwrap_or(END) };
                Anchor::Between(first.position, to)
            }
        };
        Some((Why::Refresh, self.window(anchor, self.size)))
    }

    /// Loads the next window if the screen is near an edge of the loaded range.
    pub fn ask_more(&mut self) -> Option<Asked> {
        if !self.asking.is_empty() || !self.is_loaded() {
            return None;
        }
        let near = self.view * NEAR;
        if let Some(earlier) = self.earlier {
            let above: usize = self.lines_before(self.scroll.top.piece, near);
            if above < near {
                self.asking.insert(Why::Before);
                return Some((Why::Before, self.window(Anchor::Before(earlier), MORE)));
            }
        }
        if let Some(later) = self.later {
            let below: usize = self.lines_behind(self.scroll.top.piece, near + self.view);
            if below < near + self.view {
                self.asking.insert(Why::After);
                return Some((Why::After, self.window(Anchor::After(later), MORE)));
            }
        }
        None
    }

    fn lines_before(&self, piece: usize, enough: usize) -> usize {
        let mut sum = 0;
        for at in (0..piece).rev() {
            sum += self.height(at);
            if sum >= enough {
                break;
            }
        }
        sum
    }

    fn lines_behind(&self, piece: usize, enough: usize) -> usize {
        let mut sum = 0;
        // During a replay, entries that are not shown yet count as well.
        for at in piece..self.pieces.len() {
            sum += self.height(at);
            if sum >= enough {
                break;
            }
        }
        sum
    }

    /// Queries for the sub-agents of an opened entry, to show them inline.
    pub fn ask_inlines(&self, at: usize) -> Vec<Asked> {
        let Some(piece) = self.pieces.get(at) else { return Vec::new() };
        if self.fold_of(piece) != Fold::Open {
            return Vec::new();
        }
        piece.agents().into_iter().take(INLINES).map(|(_, id)| self.ask_inline(id)).collect()
    }

    pub fn ask_inline(&self, session: SessionId) -> Asked {
        let wish = Query::Window { session, anchor: Anchor::End, filter: None, size: FIRST };
        (Why::Inline(session), wish)
    }

    /// True if this sub-agent's transcript is shown inline.
    pub fn has_inline(&self, session: SessionId) -> bool {
        self.inlines.contains_key(&session)
    }

    /// The connection was lost: no pending query will get a response.
    pub fn forget_asked(&mut self) {
        self.asking.clear();
    }
}

fn first_place(item: &Item) -> Option<Place> {
    match item {
        Item::Part(part) => Some(part.place),
        Item::Reasoning(block) => block.parts.first().map(|part| part.place),
    }
}

/// The position after which the next entry begins.
fn last_place(piece: &Piece) -> Option<Position> {
    match &piece.content {
        Content::Item(_) => {
            let place = piece.parts().last()?.place;
            Some(Position { turn: piece.position.turn, place })
        }
        Content::Foot(_) => Some(piece.position),
        Content::Head(_) | Content::Turn(_) | Content::User(_) => None,
    }
}

/// Where the omitted parts begin, before and after a window.
pub fn edges(shown: &WindowView) -> (Option<Position>, Option<Position>) {
    let cut_before = |turn: &TurnView| {
        let first = turn.items.first()?;
        let missing = match first {
            Item::Part(part) => part.before,
            Item::Reasoning(block) => block.before,
        };
        let place = first_place(first)?;
        (missing > 0).then_some(Position { turn: turn.header.number, place })
    };
    let cut_behind = |turn: &TurnView| {
        let last = match turn.items.last()? {
            Item::Part(part) => part.place,
            Item::Reasoning(block) => block.parts.last()?.place,
        };
        (turn.after > 0).then_some(Position { turn: turn.header.number, place: last })
    };
    let earlier = shown.turns.first().and_then(cut_before).or(shown.earlier);
    let later = shown.turns.last().and_then(cut_behind).or(shown.later);
    (earlier, later)
}
