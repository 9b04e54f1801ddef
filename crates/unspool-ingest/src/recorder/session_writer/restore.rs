//! Turns and parts that enter a session without a change: from the store, because an event or a
//! change needs them, or from an export.

use std::collections::BTreeMap;

use unspool_model::assemble::Assembler;
use unspool_model::event::Event;
use unspool_model::id::TurnId;
use unspool_model::part::Part;
use unspool_model::session::{Session, Turn};
use unspool_model::transcript::TranscriptBuilder;
use unspool_store::store::StoredTurn;

use super::{SessionWriter, TrackedPart, TrackedTurn};

impl SessionWriter {
    /// The turns that must be loaded before this event.
    pub fn needs(&mut self, event: &Event) -> Vec<TurnId> {
        let mut needed = self.assembler.needs(event);
        // Some are in memory already, though not in the assembler.
        needed.retain(|turn| match self.transcript.find_turn(*turn) {
            Some(tracked) => {
                self.assembler.restore(tracked);
                false
            }
            None => true,
        });
        needed
    }

    /// Restores a turn from the store, before an event that needs it.
    pub fn take_turn(&mut self, stored: StoredTurn) {
        self.assembler.restore(&stored.turn);
        self.take_rows(stored);
    }

    /// Loads the rows of a turn for a change that is about to modify them. The assembler has newer
    /// state already and must not be restored from them.
    pub(crate) fn take_rows(&mut self, stored: StoredTurn) {
        let StoredTurn { row: turn_row, turn, parts, user, open } = stored;
        for (part, row) in turn.parts.iter().zip(parts) {
            let open = open.contains(&row);
            let tracked = TrackedPart {
                row,
                turn: turn_row,
                dirty: false,
                stored: true,
                open,
                evicted: false,
                moved_from: None,
            };
            self.parts.insert(part.id, tracked);
        }
        let row = turn_row;
        let tracked = TrackedTurn {
            row,
            stored: true,
            dirty: false,
            user,
            user_dirty: false,
            partial: false,
            unsettled: false,
            steps_from: turn.steps.len(),
            forgotten_names: Vec::new(),
        };
        self.turns.insert(turn.id, tracked);
        self.revisit.push(turn.id);
        self.transcript.adopt_turn(turn);
    }

    /// Restores a turn that is marked as unsettled in the store.
    pub(crate) fn take_unsettled(&mut self, stored: StoredTurn) {
        let id = stored.turn.id;
        self.take_turn(stored);
        if let Some(tracked) = self.turns.get_mut(&id) {
            tracked.unsettled = true;
        }
    }

    /// Imports a whole turn from an export, without events.
    pub fn adopt(&mut self, turn: Turn) {
        let row = self.row_ids.turn();
        for part in &turn.parts {
            let tracked = TrackedPart {
                row: self.row_ids.part(),
                turn: row,
                dirty: true,
                stored: false,
                open: false,
                evicted: false,
                moved_from: None,
            };
            self.parts.insert(part.id, tracked);
            self.dirty_parts.push(part.id);
        }
        let tracked = TrackedTurn {
            row,
            stored: false,
            dirty: true,
            user: Vec::new(),
            user_dirty: true,
            partial: false,
            unsettled: false,
            steps_from: 0,
            forgotten_names: Vec::new(),
        };
        self.dirty_turns.push(turn.id);
        self.turns.insert(turn.id, tracked);
        self.assembler.restore(&turn);
        self.transcript.adopt_turn(turn);
    }

    /// Imports the head of a session from an export.
    pub fn set_head(&mut self, session: Session, seq: u64, skip_counts: BTreeMap<String, u64>) {
        self.assembler = Assembler::resume_from_stubs(&session, []);
        self.transcript = TranscriptBuilder::resume(session);
        self.head_dirty = true;
        self.seq = seq;
        self.skip_counts = skip_counts;
    }

    /// Restores an evicted part from the store.
    pub fn take_part(&mut self, part: Part) {
        let Some(tracked) = self.parts.get_mut(&part.id) else { return };
        tracked.evicted = false;
        let turn = self.turns.iter().find(|(_, turn)| turn.row == tracked.turn);
        if let Some((turn, _)) = turn {
            self.transcript.adopt_part(*turn, part);
        }
    }
}
