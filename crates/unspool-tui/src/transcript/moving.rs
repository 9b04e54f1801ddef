//! Navigation within a session: by lines, entries, prompts, errors and edits; and folding. A move
//! beyond the loaded window returns the query that loads its target.

use unspool_core::present::Item;
use unspool_engine::reader::Query;
use unspool_engine::window::{Anchor, PartFilter, Position, Size};

use super::{Asked, Transcript, Why};
use crate::piece::{Content, Fold, Key, Piece};
use crate::scroll::{Pieces, Spot, end_top};

/// The direction of a move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Way {
    Back,
    Forth,
}

/// What a seek stops at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Landmark {
    Prompt,
    Error,
    Edit,
}

impl Landmark {
    fn is(self, piece: &Piece) -> bool {
        match self {
            Landmark::Prompt => matches!(piece.key, Key::Turn(_)),
            Landmark::Error => piece.is_error(),
            Landmark::Edit => piece.is_edit(),
        }
    }
}

impl Transcript {
    fn scrolled(&mut self, deed: impl FnOnce(&mut crate::scroll::Scroll, &Transcript)) {
        let mut scroll = self.scroll;
        deed(&mut scroll, self);
        self.scroll = scroll;
        self.settle();
    }

    pub fn by(&mut self, lines: isize) {
        self.scrolled(|scroll, me| scroll.by(me, me.view, lines));
        self.cursor_in_sight();
    }

    pub fn go_to_start(&mut self) -> Option<Asked> {
        if self.earlier.is_some() {
            return Some(self.ask_anew(Anchor::From(Position::start_of(0))));
        }
        self.scrolled(|scroll, me| scroll.go_to_start(me, me.view));
        self.cursor =
            self.pieces.iter().find(|piece| piece.key != Key::Head).map(|piece| piece.key);
        None
    }

    pub fn go_to_end(&mut self) -> Option<Asked> {
        if self.later.is_some() {
            return Some(self.ask_anew(Anchor::End));
        }
        self.scrolled(|scroll, me| scroll.go_to_end(me, me.view));
        let last = (0..self.count()).rev().find(|at| self.can_choose(*at));
        self.cursor = last.and_then(|at| self.pieces.get(at)).map(|piece| piece.key);
        None
    }

    /// The entry that keys act on: the cursor's, or a visible one if there is no cursor.
    pub fn chosen(&self) -> Option<usize> {
        let chosen = self.cursor.and_then(|key| self.at(key)).filter(|at| *at < self.count());
        let in_sight = || {
            let mut seen = self.in_sight().into_iter().filter(|at| self.can_choose(*at));
            // A user who follows the end looks at the last entry.
            if self.scroll.following { seen.next_back() } else { seen.next() }
        };
        chosen.or_else(in_sight)
    }

    fn can_choose(&self, at: usize) -> bool {
        let kept = |piece: &Piece| !matches!(piece.key, Key::Head | Key::Foot(_));
        self.pieces.get(at).is_some_and(kept) && self.height(at) > 0
    }

    /// The entries that are at least partly visible.
    pub fn in_sight(&self) -> Vec<usize> {
        let top = self.scroll.top;
        let mut room = self.view + top.line;
        let mut found = Vec::new();
        for at in top.piece..self.count() {
            if room == 0 {
                break;
            }
            found.push(at);
            room = room.saturating_sub(self.height(at));
        }
        found
    }

    /// Moves a cursor that was scrolled out of view to the nearest visible entry.
    fn cursor_in_sight(&mut self) {
        let Some(at) = self.cursor.and_then(|key| self.at(key)) else { return };
        let seen = self.in_sight();
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return };
        if at < *first || at > *last {
            let mut near: Box<dyn Iterator<Item = &usize>> =
                if at < *first { Box::new(seen.iter()) } else { Box::new(seen.iter().rev()) };
            let next = near.find(|at| self.can_choose(**at)).copied();
            self.cursor = next.and_then(|at| self.pieces.get(at)).map(|piece| piece.key);
        }
    }

    pub fn choose(&mut self, at: usize) {
        self.cursor = self.pieces.get(at).map(|piece| piece.key);
        self.scrolled(|scroll, me| scroll.show(me, me.view, at));
    }

    /// Scrolls so that an entry is in the upper two thirds of the screen, unless it is already.
    fn show_well(&mut self, at: usize) {
        let low = crate::scroll::forward(self, self.scroll.top, self.view * 2 / 3);
        let target = Spot { piece: at, line: 0 };
        if target >= self.scroll.top && target <= low {
            return;
        }
        self.scrolled(|scroll, me| {
            let end = end_top(me, me.view);
            scroll.top = crate::scroll::back(me, target, me.view / 3).min(end);
            scroll.following = false;
        });
    }

    /// Goes to the next entry. Scrolls through one that is taller than the screen by half screens.
    pub fn step(&mut self, way: Way) {
        let Some(from) = self.chosen() else { return };
        if self.cursor.is_none() {
            self.choose(from);
            return;
        }
        if self.height(from) > self.view && self.is_more_of(from, way) {
            let half = (self.view / 2).max(1) as isize;
            self.by(if way == Way::Back { -half } else { half });
            return;
        }
        let next = match way {
            Way::Back => (0..from).rev().find(|at| self.can_choose(*at)),
            Way::Forth => (from + 1..self.count()).find(|at| self.can_choose(*at)),
        };
        match (next, way) {
            (Some(at), _) => self.choose(at),
            (None, Way::Back) => self.by(-1),
            (None, Way::Forth) => self.by(isize::MAX),
        }
    }

    /// True if the entry continues beyond the edge of the screen.
    fn is_more_of(&self, at: usize, way: Way) -> bool {
        let top = self.scroll.top;
        match way {
            Way::Back => top.piece == at && top.line > 0,
            Way::Forth => {
                let bottom = crate::scroll::forward(self, top, self.view);
                bottom.piece == at && bottom.line < self.height(at).saturating_sub(1)
            }
        }
    }

    /// Goes to the next prompt, error or edit, loading beyond the window if needed.
    pub fn seek(&mut self, what: Landmark, way: Way) -> Option<Asked> {
        let from = match what {
            // Start at the top of the screen, wherever in the turn that is.
            Landmark::Prompt => self.scroll.top.piece,
            Landmark::Error | Landmark::Edit => self.chosen()?,
        };
        let is = |at: &usize| self.pieces.get(*at).is_some_and(|piece| what.is(piece));
        let here = |at: &usize| what == Landmark::Prompt && *at == from && self.scroll.top.line > 1;
        let found = match way {
            Way::Back => (0..=from).rev().find(|at| is(at) && (*at < from || here(at))),
            Way::Forth => (from + 1..self.count()).find(is),
        };
        if let Some(at) = found {
            self.cursor = self.pieces.get(at).map(|piece| piece.key);
            match what {
                Landmark::Prompt => {
                    self.scrolled(|scroll, me| scroll.show_at_top(me, me.view, at));
                }
                Landmark::Error | Landmark::Edit => self.show_well(at),
            }
            return None;
        }
        let edge = match way {
            Way::Back => self.earlier?,
            Way::Forth => self.later?,
        };
        match (what, way) {
            (Landmark::Prompt, Way::Back) => {
                let turn = if edge.place.0 <= 0 { edge.turn.saturating_sub(1) } else { edge.turn };
                Some(self.ask_anew(Anchor::From(Position::start_of(turn))))
            }
            (Landmark::Prompt, Way::Forth) => {
                Some(self.ask_anew(Anchor::From(Position::start_of(edge.turn.saturating_add(1)))))
            }
            (Landmark::Error, _) => Some(self.ask_seek(PartFilter::Errors, edge, way)),
            (Landmark::Edit, _) => Some(self.ask_seek(PartFilter::Edits, edge, way)),
        }
    }

    fn ask_seek(&mut self, filter: PartFilter, edge: Position, way: Way) -> Asked {
        let anchor = match way {
            Way::Back => Anchor::Before(edge),
            Way::Forth => Anchor::After(edge),
        };
        self.asking.clear();
        self.asking.insert(Why::Seek(way));
        let size = Size { parts: 1, block: 1, long: 0 };
        (
            Why::Seek(way),
            Query::Window { session: self.session, anchor, filter: Some(filter), size },
        )
    }

    /// Goes to a loaded position and opens the entry that contains it.
    pub fn go_to(&mut self, place: Position) {
        let holds = |piece: &&Piece| {
            piece.position.turn == place.turn
                && piece.position <= place
                && !matches!(piece.key, Key::Head | Key::Foot(_))
        };
        let held = self.pieces.iter().rev().find(holds);
        let next = || self.pieces.iter().find(|piece| piece.position >= place);
        let Some(key) = held.or_else(next).map(|piece| piece.key) else {
            self.settle();
            return;
        };
        let first = self.pieces.iter().find(|piece| piece.key != Key::Head).map(|piece| piece.key);
        if Some(key) == first && self.earlier.is_none() {
            self.cursor = first;
            self.scrolled(|scroll, me| scroll.go_to_start(me, me.view));
            return;
        }
        if matches!(key, Key::Item(_)) {
            self.folds.insert(key, Fold::Open);
        }
        self.cursor = Some(key);
        if let Some(at) = self.at(key) {
            self.scroll.following = false;
            self.scrolled(|scroll, me| {
                let end = end_top(me, me.view);
                let above = me.view / 4;
                let target = Spot { piece: at, line: 0 };
                scroll.top = crate::scroll::back(me, target, above).min(end);
                if matches!(key, Key::Turn(_)) {
                    scroll.top = target.min(end);
                }
                scroll.following = false;
            });
        }
    }

    pub fn is_held(&self, place: Position) -> bool {
        let mut held = self.pieces.iter().filter(|piece| piece.key != Key::Head);
        let first = held.next().map(|piece| piece.position);
        let last = self.pieces.iter().rev().find_map(super::last_place);
        first.zip(last).is_some_and(|(first, last)| first <= place && place <= last)
    }

    // ---- folding ----

    /// Opens or closes an entry without moving the visible text.
    pub fn toggle(&mut self, at: usize) -> Option<Asked> {
        let piece = self.pieces.get(at)?;
        let (key, position) = (piece.key, piece.position);
        let Content::Item(item) = &piece.content else { return None };
        let next = match self.fold_of(piece) {
            Fold::Open => match piece.usual_fold() {
                Fold::Open | Fold::Closed => Fold::Closed,
                Fold::Short => Fold::Short,
            },
            Fold::Closed | Fold::Short => Fold::Open,
        };
        let gap = if let Item::Reasoning(block) = item {
            block.parts.iter().find(|part| part.before > 0).map(|part| part.place)
        } else {
            None
        };
        self.folds.insert(key, next);
        self.cursor = Some(key);
        self.stay();
        if next == Fold::Open {
            self.show_well(at);
        }
        let place = gap.filter(|_| next == Fold::Open)?;
        let why = Why::Inside(key);
        if !self.asking.is_empty() {
            return None;
        }
        self.asking.insert(why);
        let anchor = Anchor::Inside(Position { turn: position.turn, place });
        Some((why, self.window(anchor, self.size)))
    }

    /// Opens or closes all entries of the same kind as this one.
    pub fn fold_kind(&mut self, at: usize) {
        let Some(piece) = self.pieces.get(at) else { return };
        let Some(kind) = piece.kind() else { return };
        let next = match self.fold_of(piece) {
            Fold::Open => Fold::Closed,
            Fold::Closed | Fold::Short => Fold::Open,
        };
        self.kinds.insert(kind, next);
        let folds = std::mem::take(&mut self.folds);
        let kept =
            |key: &Key| self.at(*key).and_then(|at| self.pieces.get(at)?.kind()) != Some(kind);
        self.folds = folds.into_iter().filter(|(key, _)| kept(key)).collect();
        self.stay();
    }

    /// Sets all foldable kinds to one state; `Short` restores the defaults.
    pub fn fold_all(&mut self, fold: Fold) {
        self.folds.clear();
        self.kinds.clear();
        if fold != Fold::Short {
            let foldable = [
                unspool_core::part::Kind::Tool,
                unspool_core::part::Kind::Reasoning,
                unspool_core::part::Kind::Agent,
                unspool_core::part::Kind::Compaction,
                unspool_core::part::Kind::SkillLoad,
                unspool_core::part::Kind::McpSnapshot,
                unspool_core::part::Kind::ContextInfo,
                unspool_core::part::Kind::Data,
            ];
            self.kinds.extend(foldable.map(|kind| (kind, fold)));
        }
        self.stay();
    }

    /// Keeps the scroll position after a fold changed. Follows the end only if that is still
    /// visible.
    pub(super) fn stay(&mut self) {
        let end = end_top(self, self.view);
        self.scroll.following = self.scroll.following && self.scroll.top >= end;
        self.settle();
    }
}
