//! Applies loaded windows to the transcript, and drops entries far from the screen. The scroll
//! position stays on the same entry and line.

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::SessionId;
use unspool_query::reader::WindowData;
use unspool_query::window::{Anchor, Position, WindowView};
use unspool_view::block::Block;
use unspool_view::present::Item;

use super::navigation::Direction;
use super::{LoadReason, LoadRequest, TranscriptPane, edges, first_place, last_place};
use crate::entry::{Entry, EntryContent, EntryKey, Inline};
use crate::scroll::{Scroll, ScrollPosition};

impl TranscriptPane {
    /// Applies a loaded window. Returns the next query, if there is one.
    pub fn take(&mut self, reason: LoadReason, loaded: WindowData) -> Option<LoadRequest> {
        if let LoadReason::Inline(session) = reason {
            self.apply_inline(session, loaded.view);
            return None;
        }
        // Ignore windows requested before the user jumped elsewhere.
        if !self.loading.remove(&reason) {
            return None;
        }
        let WindowData { session_row, head, view, tasks } = loaded;
        if let LoadReason::Seek(direction) = reason {
            let place = nearest_place(&view, direction)?;
            return Some(self.request_window(Anchor::Around(place)));
        }
        self.session_row = Some(session_row);
        self.tasks = tasks;
        match reason {
            LoadReason::Replace(place) => self.apply_replace(head, view, place),
            LoadReason::Refresh => self.apply_refresh(head, view),
            LoadReason::Before => self.apply_before(view),
            LoadReason::After => self.apply_after(view),
            LoadReason::Inside(key) => self.fill_block(key, view),
            LoadReason::Seek(_) | LoadReason::Inline(_) => {}
        }
        if std::mem::take(&mut self.stale) { self.request_refresh() } else { None }
    }

    /// Shows another window, at a place or at its end.
    fn apply_replace(&mut self, head: Vec<Block>, view: WindowView, place: Option<Position>) {
        let (earlier, later) = edges(&view);
        self.entries.clear();
        self.replace_entries(head, view, Vec::new());
        (self.earlier, self.later) = (earlier, later);
        self.scroll = Scroll::at_end();
        (self.unseen, self.mark) = (0, None);
        match place {
            // A replay reveals entries one by one.
            Some(_) if self.until.is_some() => self.settle(),
            Some(place) => self.go_to(place),
            None => self.settle(),
        }
    }

    /// Shows the same window with newer contents.
    fn apply_refresh(&mut self, head: Vec<Block>, view: WindowView) {
        let (_, later) = edges(&view);
        let old = std::mem::take(&mut self.entries);
        let had_end = self.has_end();
        let place = self.place(&old);
        let old_keys: FxHashSet<EntryKey> = old.iter().map(|entry| entry.key).collect();
        self.replace_entries(head, view, old);
        // The edges are unchanged, except for a session end that moved on.
        if had_end {
            self.later = later;
        }
        self.return_to(place);
        self.count_unseen(&old_keys);
        self.settle();
    }

    /// Adds earlier entries, below the session's head.
    fn apply_before(&mut self, view: WindowView) {
        let (earlier, _) = edges(&view);
        let place = self.place(&self.entries);
        let new: Vec<Entry> = view.turns.into_iter().flat_map(Entry::of_turn).collect();
        let keys: FxHashSet<EntryKey> = new.iter().map(|entry| entry.key).collect();
        let head = self.entries.first().is_some_and(|entry| entry.key == EntryKey::Head);
        let rest = self.entries.split_off(usize::from(head));
        self.entries.extend(new);
        self.entries.extend(rest.into_iter().filter(|entry| !keys.contains(&entry.key)));
        self.earlier = earlier;
        self.return_to(place);
        self.trim_end();
        self.settle();
    }

    /// Adds later entries.
    fn apply_after(&mut self, view: WindowView) {
        let (_, later) = edges(&view);
        let keys: FxHashSet<EntryKey> = self.entries.iter().map(|entry| entry.key).collect();
        let new = view.turns.into_iter().flat_map(Entry::of_turn);
        self.entries.extend(new.filter(|entry| !keys.contains(&entry.key)));
        self.later = later;
        self.trim_start();
        self.settle();
    }

    /// Replaces the entries. Unchanged ones keep their cached layout.
    fn replace_entries(&mut self, head: Vec<Block>, view: WindowView, old: Vec<Entry>) {
        let mut old: FxHashMap<EntryKey, Entry> =
            old.into_iter().map(|entry| (entry.key, entry)).collect();
        let turns = view.turns.into_iter().flat_map(Entry::of_turn);
        let entries = std::iter::once(Entry::head(head)).chain(turns).map(|mut entry| {
            if let Some(old) = old.remove(&entry.key) {
                entry.inherit(old);
            }
            entry
        });
        self.entries = entries.collect();
    }

    /// The entry and line at the top of the screen. The chat below the entries has no key.
    fn place(&self, entries: &[Entry]) -> (Option<EntryKey>, usize) {
        let entry = entries.get(self.scroll.top.entry);
        (entry.map(|entry| entry.key), self.scroll.top.line)
    }

    fn return_to(&mut self, (key, line): (Option<EntryKey>, usize)) {
        let at = match key {
            Some(key) => self.at(key),
            None => self.tail.as_ref().map(|_| self.entries.len()),
        };
        if let Some(entry) = at {
            self.scroll.top = ScrollPosition { entry, line };
        }
    }

    /// The current index of an entry.
    pub fn at(&self, key: EntryKey) -> Option<usize> {
        self.entries.iter().position(|entry| entry.key == key)
    }

    fn count_unseen(&mut self, old_keys: &FxHashSet<EntryKey>) {
        if self.scroll.following && self.until.is_none() {
            return;
        }
        let is_new = |entry: &&Entry| {
            matches!(entry.key, EntryKey::Item(_)) && !old_keys.contains(&entry.key)
        };
        let mut fresh = self.entries.iter().filter(is_new).map(|entry| entry.key);
        if let Some(first) = fresh.next() {
            self.unseen += 1 + fresh.count();
            if self.mark.is_none() {
                self.mark = Some(first);
            }
        }
    }

    /// How many entries remain after trimming.
    fn trimmed_size(&self) -> usize {
        self.view_options.window * 2 / 3
    }

    /// Drops entries far below the screen.
    fn trim_end(&mut self) {
        if self.entries.len() <= self.view_options.window {
            return;
        }
        let screen = self.scroll.top.entry + self.view;
        self.entries.truncate(self.trimmed_size().max(screen + self.view));
        while self.entries.last().is_some_and(|entry| last_place(entry).is_none()) {
            self.entries.pop();
        }
        self.later = self.entries.last().and_then(last_place);
        self.scroll.following = false;
    }

    /// Drops entries far above the screen.
    fn trim_start(&mut self) {
        if self.entries.len() <= self.view_options.window {
            return;
        }
        let place = self.place(&self.entries);
        let far = self.scroll.top.entry.saturating_sub(self.view);
        let gone = (self.entries.len() - self.trimmed_size()).min(far);
        if gone <= 1 {
            return;
        }
        let gone = (0..=gone).rev().find(|at| {
            self.entries
                .get(*at)
                .is_some_and(|entry| matches!(entry.key, EntryKey::Turn(_) | EntryKey::Item(_)))
        });
        let Some(gone) = gone else { return };
        // Keep the session's head at index 0.
        self.earlier = self.entries.get(gone).map(|entry| entry.position);
        self.entries.drain(1..gone.max(1));
        self.return_to(place);
    }

    /// Inserts the omitted parts of a reasoning block.
    fn fill_block(&mut self, key: EntryKey, view: WindowView) {
        let mut found = view.turns.into_iter().flat_map(|turn| turn.items).filter_map(|item| {
            if let Item::Reasoning(block) = item { Some(block.parts) } else { None }
        });
        let Some(parts) = found.next() else { return };
        let Some(at) = self.at(key) else { return };
        let Some(EntryContent::Item(Item::Reasoning(block))) =
            self.entries.get_mut(at).map(|entry| &mut entry.content)
        else {
            return;
        };
        let held: FxHashSet<_> = block.parts.iter().map(|part| part.id).collect();
        let Some(gap) = block.parts.iter().position(|part| part.before > 0) else { return };
        if let Some(part) = block.parts.get_mut(gap) {
            part.before = 0;
        }
        let new = parts.into_iter().filter(|part| !held.contains(&part.id));
        block.parts.splice(gap..gap, new);
        self.entries.iter().filter(|entry| entry.key == key).for_each(Entry::invalidate);
        self.settle();
    }

    fn apply_inline(&mut self, session: SessionId, view: WindowView) {
        let truncated = edges(&view).0.is_some();
        self.inlines.insert(session, Inline { turns: view.turns, truncated });
        for entry in &self.entries {
            if entry.agents().iter().any(|(_, id)| *id == session) {
                entry.invalidate();
            }
        }
        self.keep_scroll_position();
    }
}

/// The place of the match that is nearest in a direction.
fn nearest_place(view: &WindowView, direction: Direction) -> Option<Position> {
    let found =
        view.turns.iter().flat_map(|turn| turn.items.iter().map(|item| (turn.header.number, item)));
    let mut place =
        found.filter_map(|(turn, item)| Some(Position { turn, place: first_place(item)? }));
    match direction {
        Direction::Forward => place.next(),
        Direction::Backward => place.next_back(),
    }
}
