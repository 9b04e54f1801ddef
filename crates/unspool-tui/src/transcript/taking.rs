//! Applies loaded windows to the transcript, and drops entries far from the screen. The scroll
//! position stays on the same entry and line.

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::block::Block;
use unspool_core::id::SessionId;
use unspool_core::present::Item;
use unspool_engine::reader::WindowData;
use unspool_engine::window::{Anchor, Position, WindowView};

use super::moving::Way;
use super::{Asked, Transcript, Why, edges, first_place, last_place};
use crate::piece::{Content, Inline, Key, Piece};
use crate::scroll::{Scroll, Spot};

impl Transcript {
    /// Applies a loaded window. Returns the next query, if there is one.
    pub fn take(&mut self, why: Why, loaded: WindowData) -> Option<Asked> {
        if let Why::Inline(session) = why {
            self.take_inline(session, loaded.view);
            return None;
        }
        // Ignore windows requested before the user jumped elsewhere.
        if !self.asking.remove(&why) {
            return None;
        }
        let WindowData { session_row, head, view } = loaded;
        if let Why::Seek(way) = why {
            let found = view
                .turns
                .iter()
                .flat_map(|turn| turn.items.iter().map(|item| (turn.header.number, item)));
            let mut place =
                found.filter_map(|(turn, item)| Some(Position { turn, place: first_place(item)? }));
            // The nearest match.
            let place = match way {
                Way::Forth => place.next(),
                Way::Back => place.next_back(),
            }?;
            return Some(self.ask_anew(Anchor::Around(place)));
        }
        self.session_row = Some(session_row);
        let (earlier, later) = edges(&view);
        match why {
            Why::Anew(place) => {
                self.pieces.clear();
                self.adopt(head, view, Vec::new());
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
            Why::Refresh => {
                let old = std::mem::take(&mut self.pieces);
                let had_end = self.has_end();
                let place = self.place(&old);
                let known: FxHashSet<Key> = old.iter().map(|piece| piece.key).collect();
                self.adopt(head, view, old);
                // The edges are unchanged, except for a session end that moved on.
                if had_end {
                    self.later = later;
                }
                self.return_to(place);
                self.count_unseen(&known);
                self.settle();
            }
            Why::Before => {
                let place = self.place(&self.pieces);
                let new: Vec<Piece> = view.turns.into_iter().flat_map(Piece::of_turn).collect();
                let keys: FxHashSet<Key> = new.iter().map(|piece| piece.key).collect();
                let head = self.pieces.first().is_some_and(|piece| piece.key == Key::Head);
                let rest = self.pieces.split_off(usize::from(head));
                self.pieces.extend(new);
                self.pieces.extend(rest.into_iter().filter(|piece| !keys.contains(&piece.key)));
                self.earlier = earlier;
                self.return_to(place);
                self.trim_end();
                self.settle();
            }
            Why::After => {
                let keys: FxHashSet<Key> = self.pieces.iter().map(|piece| piece.key).collect();
                let new = view.turns.into_iter().flat_map(Piece::of_turn);
                self.pieces.extend(new.filter(|piece| !keys.contains(&piece.key)));
                self.later = later;
                self.trim_start();
                self.settle();
            }
            Why::Inside(key) => self.fill(key, view),
            Why::Seek(_) | Why::Inline(_) => {}
        }
        if std::mem::take(&mut self.stale) { self.ask_refresh() } else { None }
    }

    /// Replaces the entries. Unchanged ones keep their cached layout.
    fn adopt(&mut self, head: Vec<Block>, view: WindowView, old: Vec<Piece>) {
        let mut old: FxHashMap<Key, Piece> =
            old.into_iter().map(|piece| (piece.key, piece)).collect();
        let turns = view.turns.into_iter().flat_map(Piece::of_turn);
        let pieces = std::iter::once(Piece::head(head)).chain(turns).map(|mut piece| {
            if let Some(old) = old.remove(&piece.key) {
                piece.inherit(old);
            }
            piece
        });
        self.pieces = pieces.collect();
    }

    /// The entry and line at the top of the screen.
    fn place(&self, pieces: &[Piece]) -> Option<(Key, usize)> {
        let piece = pieces.get(self.scroll.top.piece)?;
        Some((piece.key, self.scroll.top.line))
    }

    fn return_to(&mut self, place: Option<(Key, usize)>) {
        let Some((key, line)) = place else { return };
        if let Some(at) = self.at(key) {
            self.scroll.top = Spot { piece: at, line };
        }
    }

    /// The current index of an entry.
    pub fn at(&self, key: Key) -> Option<usize> {
        self.pieces.iter().position(|piece| piece.key == key)
    }

    fn count_unseen(&mut self, known: &FxHashSet<Key>) {
        if self.scroll.following && self.until.is_none() {
            return;
        }
        let is_new =
            |piece: &&Piece| matches!(piece.key, Key::Item(_)) && !known.contains(&piece.key);
        let mut fresh = self.pieces.iter().filter(is_new).map(|piece| piece.key);
        if let Some(first) = fresh.next() {
            self.unseen += 1 + fresh.count();
            if self.mark.is_none() {
                self.mark = Some(first);
            }
        }
    }

    /// How many entries remain after trimming.
    fn kept(&self) -> usize {
        self.manner.window * 2 / 3
    }

    /// Drops entries far below the screen.
    fn trim_end(&mut self) {
        if self.pieces.len() <= self.manner.window {
            return;
        }
        let screen = self.scroll.top.piece + self.view;
        self.pieces.truncate(self.kept().max(screen + self.view));
        while self.pieces.last().is_some_and(|piece| last_place(piece).is_none()) {
            self.pieces.pop();
        }
        self.later = self.pieces.last().and_then(last_place);
        self.scroll.following = false;
    }

    /// Drops entries far above the screen.
    fn trim_start(&mut self) {
        if self.pieces.len() <= self.manner.window {
            return;
        }
        let place = self.place(&self.pieces);
        let far = self.scroll.top.piece.saturating_sub(self.view);
        let gone = (self.pieces.len() - self.kept()).min(far);
        if gone <= 1 {
            return;
        }
        let gone = (0..=gone).rev().find(|at| {
            self.pieces
                .get(*at)
                .is_some_and(|piece| matches!(piece.key, Key::Turn(_) | Key::Item(_)))
        });
        let Some(gone) = gone else { return };
        // Keep the session's head at index 0.
        self.earlier = self.pieces.get(gone).map(|piece| piece.position);
        self.pieces.drain(1..gone.max(1));
        self.return_to(place);
    }

    /// Inserts the omitted parts of a reasoning block.
    fn fill(&mut self, key: Key, view: WindowView) {
        let mut found = view.turns.into_iter().flat_map(|turn| turn.items).filter_map(|item| {
            if let Item::Reasoning(block) = item { Some(block.parts) } else { None }
        });
        let Some(parts) = found.next() else { return };
        let Some(at) = self.at(key) else { return };
        let Some(Content::Item(Item::Reasoning(block))) =
            self.pieces.get_mut(at).map(|piece| &mut piece.content)
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
        self.pieces.iter().filter(|piece| piece.key == key).for_each(Piece::forget);
        self.settle();
    }

    fn take_inline(&mut self, session: SessionId, view: WindowView) {
        let cut = edges(&view).0.is_some();
        self.inlines.insert(session, Inline { turns: view.turns, cut });
        for piece in &self.pieces {
            if piece.agents().iter().any(|(_, id)| *id == session) {
                piece.forget();
            }
        }
        self.stay();
    }
}
