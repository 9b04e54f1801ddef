//! Navigation within a session by lines and entries, and folding. A move beyond the loaded window
//! returns the query that loads its target.

use unspool_query::window::{Anchor, Position};
use unspool_view::present::{Item, PartView};

use super::{LoadReason, LoadRequest, TranscriptPane};
use crate::entry::{Entry, EntryContent, EntryKey, FoldState};
use crate::scroll::{EntryHeights, ScrollPosition, end_top};

/// The direction of a move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    Backward,
    Forward,
}

impl TranscriptPane {
    pub(super) fn update_scroll(
        &mut self,
        edit: impl FnOnce(&mut crate::scroll::Scroll, &TranscriptPane),
    ) {
        let mut scroll = self.scroll;
        edit(&mut scroll, self);
        self.scroll = scroll;
        self.settle();
    }

    pub fn move_by(&mut self, lines: isize) {
        self.update_scroll(|scroll, me| scroll.move_by(me, me.view, lines));
        self.keep_cursor_visible();
    }

    pub fn go_to_start(&mut self) -> Option<LoadRequest> {
        if self.earlier.is_some() {
            return Some(self.request_window(Anchor::From(Position::start_of(0))));
        }
        self.update_scroll(|scroll, me| scroll.go_to_start(me, me.view));
        self.cursor =
            self.entries.iter().find(|entry| entry.key != EntryKey::Head).map(|entry| entry.key);
        None
    }

    pub fn go_to_end(&mut self) -> Option<LoadRequest> {
        if self.later.is_some() {
            return Some(self.request_window(Anchor::End));
        }
        self.update_scroll(|scroll, me| scroll.go_to_end(me, me.view));
        let last = (0..self.count()).rev().find(|at| self.is_selectable(*at));
        self.cursor = last.and_then(|at| self.entries.get(at)).map(|entry| entry.key);
        None
    }

    /// The entry that keys act on: the cursor's, or a visible one if there is no cursor.
    pub fn chosen(&self) -> Option<usize> {
        let chosen = self.cursor.and_then(|key| self.at(key)).filter(|at| *at < self.count());
        let visible_entries = || {
            let mut seen = self.visible_entries().into_iter().filter(|at| self.is_selectable(*at));
            // A user who follows the end looks at the last entry.
            if self.scroll.following { seen.next_back() } else { seen.next() }
        };
        chosen.or_else(visible_entries)
    }

    fn is_selectable(&self, at: usize) -> bool {
        let kept = |entry: &Entry| !matches!(entry.key, EntryKey::Head | EntryKey::Foot(_));
        self.entries.get(at).is_some_and(kept) && self.height(at) > 0
    }

    /// The entries that are at least partly visible.
    pub fn visible_entries(&self) -> Vec<usize> {
        let top = self.scroll.top;
        let mut room = self.view + top.line;
        let mut found = Vec::new();
        for at in top.entry..self.count() {
            if room == 0 {
                break;
            }
            found.push(at);
            room = room.saturating_sub(self.height(at));
        }
        found
    }

    /// Moves a cursor that was scrolled out of view to the nearest visible entry.
    fn keep_cursor_visible(&mut self) {
        let Some(at) = self.cursor.and_then(|key| self.at(key)) else { return };
        let seen = self.visible_entries();
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return };
        if at < *first || at > *last {
            let mut near: Box<dyn Iterator<Item = &usize>> =
                if at < *first { Box::new(seen.iter()) } else { Box::new(seen.iter().rev()) };
            let next = near.find(|at| self.is_selectable(**at)).copied();
            self.cursor = next.and_then(|at| self.entries.get(at)).map(|entry| entry.key);
        }
    }

    pub fn choose(&mut self, at: usize) {
        self.stopped_at = None;
        self.cursor = self.entries.get(at).map(|entry| entry.key);
        self.update_scroll(|scroll, me| scroll.show(me, me.view, at));
    }

    /// Scrolls so that a line is in the upper two thirds of the screen, unless it is already.
    pub(super) fn show_with_context(&mut self, target: ScrollPosition) {
        let low = crate::scroll::forward(self, self.scroll.top, self.view * 2 / 3);
        if target >= self.scroll.top && target <= low {
            return;
        }
        self.update_scroll(|scroll, me| {
            let end = end_top(me, me.view);
            scroll.top = crate::scroll::back(me, target, me.view / 3).min(end);
            scroll.following = false;
        });
    }

    /// Goes to the next entry. Scrolls through one that is taller than the screen by half screens.
    pub fn step(&mut self, direction: Direction) {
        let Some(from) = self.chosen() else { return };
        if self.cursor.is_none() {
            self.choose(from);
            return;
        }
        if self.height(from) > self.view && self.extends_beyond(from, direction) {
            let half = (self.view / 2).max(1) as isize;
            self.move_by(if direction == Direction::Backward { -half } else { half });
            return;
        }
        let next = match direction {
            Direction::Backward => (0..from).rev().find(|at| self.is_selectable(*at)),
            Direction::Forward => (from + 1..self.count()).find(|at| self.is_selectable(*at)),
        };
        match (next, direction) {
            (Some(at), _) => self.choose(at),
            (None, Direction::Backward) => self.move_by(-1),
            (None, Direction::Forward) => self.move_by(isize::MAX),
        }
    }

    /// True if the entry continues beyond the edge of the screen.
    fn extends_beyond(&self, at: usize, direction: Direction) -> bool {
        let top = self.scroll.top;
        match direction {
            Direction::Backward => top.entry == at && top.line > 0,
            Direction::Forward => {
                let bottom = crate::scroll::forward(self, top, self.view);
                bottom.entry == at && bottom.line < self.height(at).saturating_sub(1)
            }
        }
    }

    /// Goes to a loaded position and opens the entry that contains it.
    pub fn go_to(&mut self, place: Position) {
        let holds = |entry: &&Entry| {
            entry.position.turn == place.turn
                && entry.position <= place
                && !matches!(entry.key, EntryKey::Head | EntryKey::Foot(_))
        };
        let held = self.entries.iter().rev().find(holds);
        // A call that is shown as its agents has no lines of its own.
        let has_lines = |entry: &&Entry| {
            entry.parts().is_empty() || entry.parts().iter().any(|part| !part.blocks.is_empty())
        };
        let held = held.filter(has_lines);
        let next = || self.entries.iter().find(|entry| entry.position >= place && has_lines(entry));
        let Some(key) = held.or_else(next).map(|entry| entry.key) else {
            self.settle();
            return;
        };
        let first =
            self.entries.iter().find(|entry| entry.key != EntryKey::Head).map(|entry| entry.key);
        if Some(key) == first && self.earlier.is_none() {
            self.cursor = first;
            self.update_scroll(|scroll, me| scroll.go_to_start(me, me.view));
            return;
        }
        if matches!(key, EntryKey::Item(_)) {
            self.folds.insert(key, FoldState::Open);
        }
        self.cursor = Some(key);
        if let Some(at) = self.at(key) {
            self.scroll.following = false;
            let line = self.enter_block(at, place);
            self.update_scroll(|scroll, me| {
                let end = end_top(me, me.view);
                let above = me.view / 4;
                let target = ScrollPosition { entry: at, line };
                scroll.top = crate::scroll::back(me, target, above).min(end);
                if matches!(key, EntryKey::Turn(_)) {
                    scroll.top = target.min(end);
                }
                scroll.following = false;
            });
        }
    }

    /// Selects the part at a place in a reasoning block. Returns its line.
    fn enter_block(&mut self, at: usize, place: Position) -> usize {
        self.stopped_at = None;
        let Some(entry) = self.entries.get(at) else { return 0 };
        let EntryContent::Item(Item::Reasoning(block)) = &entry.content else { return 0 };
        // A call that is shown as its agents has no lines of its own.
        let is_shown = |part: &PartView| part.place >= place.place && !part.blocks.is_empty();
        let nth = block.parts.iter().position(is_shown);
        let Some((nth, part)) = nth.and_then(|nth| Some((nth, block.parts.get(nth)?))) else {
            return 0;
        };
        self.stopped_at = Some((entry.key, part.id));
        // The head of the block belongs to its first part.
        if nth == 0 { 0 } else { entry.line_of_part(nth, self.width) }
    }

    pub fn covers(&self, place: Position) -> bool {
        let mut held = self.entries.iter().filter(|entry| entry.key != EntryKey::Head);
        let first = held.next().map(|entry| entry.position);
        let last = self.entries.iter().rev().find_map(super::last_place);
        first.zip(last).is_some_and(|(first, last)| first <= place && place <= last)
    }

    // ---- folding ----

    /// Opens or closes an entry without moving the visible text.
    pub fn toggle(&mut self, at: usize) -> Option<LoadRequest> {
        let entry = self.entries.get(at)?;
        let (key, position) = (entry.key, entry.position);
        let EntryContent::Item(item) = &entry.content else { return None };
        let next = match self.fold_of(entry) {
            FoldState::Open => match entry.default_fold() {
                FoldState::Open | FoldState::Closed => FoldState::Closed,
                FoldState::Short => FoldState::Short,
            },
            FoldState::Closed | FoldState::Short => FoldState::Open,
        };
        let gap = if let Item::Reasoning(block) = item {
            block.parts.iter().find(|part| part.before > 0).map(|part| part.place)
        } else {
            None
        };
        self.folds.insert(key, next);
        self.cursor = Some(key);
        self.keep_scroll_position();
        if next == FoldState::Open {
            self.show_with_context(ScrollPosition { entry: at, line: 0 });
        }
        let place = gap.filter(|_| next == FoldState::Open)?;
        let reason = LoadReason::Inside(key);
        if !self.loading.is_empty() {
            return None;
        }
        self.loading.insert(reason);
        let anchor = Anchor::Inside(Position { turn: position.turn, place });
        Some((reason, self.window(anchor, self.size)))
    }

    /// Opens or closes all entries of the same kind as this one.
    pub fn fold_kind(&mut self, at: usize) {
        let Some(entry) = self.entries.get(at) else { return };
        let Some(kind) = entry.kind() else { return };
        let next = match self.fold_of(entry) {
            FoldState::Open => FoldState::Closed,
            FoldState::Closed | FoldState::Short => FoldState::Open,
        };
        self.kinds.insert(kind, next);
        let folds = std::mem::take(&mut self.folds);
        let kept = |key: &EntryKey| {
            self.at(*key).and_then(|at| self.entries.get(at)?.kind()) != Some(kind)
        };
        self.folds = folds.into_iter().filter(|(key, _)| kept(key)).collect();
        self.keep_scroll_position();
    }

    /// Sets all foldable kinds to one state; `Short` restores the defaults.
    pub fn fold_all(&mut self, fold: FoldState) {
        self.folds.clear();
        self.kinds.clear();
        if fold != FoldState::Short {
            let foldable = [
                unspool_model::part::Kind::Tool,
                unspool_model::part::Kind::Reasoning,
                unspool_model::part::Kind::Agent,
                unspool_model::part::Kind::Compaction,
                unspool_model::part::Kind::SkillLoad,
                unspool_model::part::Kind::McpSnapshot,
                unspool_model::part::Kind::ContextInfo,
                unspool_model::part::Kind::Data,
            ];
            self.kinds.extend(foldable.map(|kind| (kind, fold)));
        }
        self.keep_scroll_position();
    }

    /// Keeps the scroll position after a fold changed. Follows the end only if that is still
    /// visible.
    pub(super) fn keep_scroll_position(&mut self) {
        let end = end_top(self, self.view);
        self.scroll.following = self.scroll.following && self.scroll.top >= end;
        self.settle();
    }
}
