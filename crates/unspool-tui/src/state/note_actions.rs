//! Notes and bookmarks of the open session. What a key does depends on the notes that are there, so
//! each asks for them first and goes on when the response arrives.

use unspool_model::id::SessionId;
use unspool_model::note::{NoteTarget, PlacedNote};
use unspool_model::part::Place;
use unspool_query::reader::Query;
use unspool_query::request::Request;
use unspool_query::window::{Anchor, Position};
use unspool_view::present::Item;

use super::{Effect, InputPurpose, PendingQuery, State};
use crate::entry::{EntryContent, EntryKey};
use crate::keys::Action;
use crate::transcript::TranscriptPane;
use crate::transcript::navigation::Direction;

/// Why the notes of a session are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteIntent {
    /// Set or remove a bookmark.
    Toggle(NoteTarget),
    /// Write a note, or edit the one that is there.
    Edit(NoteTarget),
    Seek(Direction),
}

impl State {
    pub(super) fn act_on_notes(&mut self, action: Action) -> Vec<Effect> {
        let Some(transcript) = self.transcript() else { return Vec::new() };
        let (session, target) = (transcript.session, transcript.note_target());
        let intent = if action == Action::Bookmark {
            NoteIntent::Toggle(target)
        } else if action == Action::Note {
            NoteIntent::Edit(target)
        } else if action == Action::NextNote {
            NoteIntent::Seek(Direction::Forward)
        } else {
            NoteIntent::Seek(Direction::Backward)
        };
        vec![self.send_query(PendingQuery::Notes(session, intent), Query::Notes { session })]
    }

    pub(super) fn take_notes(
        &mut self,
        session: SessionId,
        intent: NoteIntent,
        notes: &[PlacedNote],
    ) -> Vec<Effect> {
        let held = |target: NoteTarget| notes.iter().find(|placed| placed.note.target == target);
        match intent {
            NoteIntent::Toggle(target) => {
                let text = match held(target).map(|placed| placed.note.is_bookmark()) {
                    Some(false) => {
                        self.set_status("there is a note here: M edits it");
                        return Vec::new();
                    }
                    Some(true) => None,
                    None => Some(String::new()),
                };
                self.change(session, Request::Note { session, target, text })
            }
            NoteIntent::Edit(target) => {
                let unsaved = self.session_mut(session).and_then(|held| held.unsaved_note.clone());
                let unsaved = unsaved.filter(|(at, _)| *at == target).map(|(_, text)| text);
                let stored = held(target).map(|placed| placed.note.text.clone());
                let text = unsaved.or(stored).unwrap_or_default();
                self.begin_input(InputPurpose::Note(session, target), &text);
                Vec::new()
            }
            NoteIntent::Seek(direction) => self.seek_note(session, direction, notes),
        }
    }

    fn seek_note(
        &mut self,
        session: SessionId,
        direction: Direction,
        notes: &[PlacedNote],
    ) -> Vec<Effect> {
        let Some(transcript) = self.session_mut(session) else { return Vec::new() };
        let here = transcript.chosen().and_then(|at| transcript.entries.get(at));
        let here = here.map_or(Position::start_of(0), |entry| entry.position);
        // A turn's own note is at its header, before all parts.
        let place = |placed: &PlacedNote| {
            Some(Position { turn: placed.turn?, place: placed.place.unwrap_or(Place(-2)) })
        };
        let mut places: Vec<Position> = notes.iter().filter_map(place).collect();
        places.sort_unstable();
        let found = match direction {
            Direction::Forward => places.iter().find(|place| **place > here),
            Direction::Backward => places.iter().rev().find(|place| **place < here),
        };
        let Some(place) = found.copied() else {
            let (at, other) = match direction {
                Direction::Forward => ("below", "above"),
                Direction::Backward => ("above", "below"),
            };
            let others = places.iter().filter(|place| **place != here).count();
            self.set_status(match others {
                0 => format!("no note {at}"),
                count => format!("no note {at}; {count} {other}"),
            });
            return Vec::new();
        };
        if transcript.covers(place) {
            transcript.go_to(place);
            return Vec::new();
        }
        let (reason, query) = transcript.request_window(Anchor::Around(place));
        vec![self.send_query(PendingQuery::Window(session, reason), query)]
    }

    /// Saves a typed note. Without text it is removed. The text is kept until it is saved.
    pub(super) fn submit_note(
        &mut self,
        session: SessionId,
        target: NoteTarget,
        text: String,
    ) -> Vec<Effect> {
        if let Some(transcript) = self.session_mut(session) {
            transcript.unsaved_note = Some((target, text.clone()));
        }
        let text = (!text.is_empty()).then_some(text);
        self.change(session, Request::Note { session, target, text })
    }
}

impl TranscriptPane {
    /// What a note at the cursor is about.
    fn note_target(&self) -> NoteTarget {
        let Some(entry) = self.chosen().and_then(|at| self.entries.get(at)) else {
            return NoteTarget::Session;
        };
        match (&entry.key, &entry.content) {
            (EntryKey::Turn(turn) | EntryKey::User(turn) | EntryKey::Foot(turn), _) => {
                NoteTarget::Turn(*turn)
            }
            (EntryKey::Item(_), EntryContent::Item(Item::Reasoning(block))) => {
                // Inside a block the part that a seek stopped at is meant, or else the first.
                let stopped = self.stopped_part(entry.key);
                NoteTarget::Part(stopped.unwrap_or(block.id))
            }
            (EntryKey::Item(part), _) => NoteTarget::Part(*part),
            (EntryKey::Head, _) => NoteTarget::Session,
        }
    }
}
