//! Encodes a session as message frames (R-000-12): `message.start`, `message.delta`,
//! `message.tool_call`, `message.tool_result`, `message.end`, each with an increasing `seq`.
//! Frames have no positions: later frames come later in the message (R-000-13). A second
//! `message.start` with the same id replaces the message. A message is restarted when it cannot be
//! updated by appending (a part was inserted or rewritten); when that is not enough,
//! `channel.start` restarts the whole channel.
//!
//! A turn is two messages, as under `/api/sessions/{id}/messages`: the user's and the reply.

pub mod frame_parts;
mod frame_writer;

use frame_writer::FrameWriter;
use rustc_hash::FxHashSet;
use serde_json::Value;
use unspool_model::change::{Delta, Touched};
use unspool_model::id::TurnId;
use unspool_model::session::{Session, Turn, TurnState};
use unspool_model::transcript::TranscriptBuilder;

/// One channel: a session, and what of it was sent.
pub struct FramesEncoder {
    builder: TranscriptBuilder,
    writer: FrameWriter,
    /// Turns that were sent and are not in memory any more.
    released: FxHashSet<TurnId>,
}

/// So many turns stay in memory at the end of a session: late results may still change them.
const RETAINED_TURNS: usize = 2;

impl FramesEncoder {
    /// Takes a stored session with complete turns, hidden parts included: all turns, or only the
    /// last ones; earlier turns are then never sent. Encodes nothing yet.
    pub fn new(session: Session, turns: Vec<Turn>) -> FramesEncoder {
        let writer = FrameWriter::new(&session.agent);
        let mut builder = TranscriptBuilder::resume(session);
        turns.into_iter().for_each(|turn| builder.adopt_turn(turn));
        FramesEncoder { builder, writer, released: FxHashSet::default() }
    }

    /// Starts the channel over with a session that is loaded again. Its seqs go on.
    pub fn restart(&mut self, session: Session) -> Vec<Value> {
        self.builder = TranscriptBuilder::resume(session);
        self.released.clear();
        let mut frames = Vec::new();
        self.writer.begin_channel(self.builder.session(), &mut frames);
        frames
    }

    /// Encodes the next turns of a channel that was started over. A turn that is complete leaves
    /// memory when others follow it: a session may have any size.
    pub fn add_turns(&mut self, turns: Vec<Turn>) -> Vec<Value> {
        let mut frames = Vec::new();
        let added = turns.len();
        for turn in turns {
            let sent = self.writer.turn(&turn, None, true, &Touched::default(), &mut frames);
            self.writer.sent.extend(sent);
            self.builder.adopt_turn(turn);
        }
        self.release_turns(added);
        frames
    }

    /// Releases what is complete of the turns that were just added and of those before them that
    /// stayed.
    fn release_turns(&mut self, added: usize) {
        let complete = |turn: &&Turn| {
            turn.state != TurnState::Running && turn.parts.iter().all(|part| !part.body.is_open())
        };
        let turns = order(&self.builder);
        let before = turns.len().saturating_sub(RETAINED_TURNS);
        let ended: Vec<TurnId> =
            turns.into_iter().take(before).filter(complete).map(|turn| turn.id).collect();
        for id in ended {
            self.builder.take_turn(id);
            self.released.insert(id);
        }
        self.writer.forget_parts(&self.released, added + RETAINED_TURNS);
    }

    /// Encodes the whole session. It replaces everything sent on this channel before.
    pub fn snapshot(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        self.writer.begin_channel(self.builder.session(), &mut frames);
        let touched = Touched::default();
        for turn in order(&self.builder) {
            // Cannot fail: nothing of the turn was sent yet.
            let sent = self.writer.turn(turn, None, true, &touched, &mut frames);
            self.writer.sent.extend(sent);
        }
        frames
    }

    /// The frames that bring a client with all previous frames up to date with these changes.
    pub fn frames(&mut self, delta: &Delta) -> Vec<Value> {
        self.frames_in_memory(delta).unwrap_or_else(|| self.snapshot())
    }

    /// The same, or None if the session must be loaded again: the changes need a full snapshot or a
    /// turn that is not in memory.
    pub fn frames_in_memory(&mut self, delta: &Delta) -> Option<Vec<Value>> {
        let Touched { turns, renumbered, renamed, .. } = &delta.touched;
        let renamed = renamed.iter().flat_map(|(turn, to)| [turn, to]);
        let mut touched = turns.iter().chain(renumbered).chain(renamed);
        if touched.any(|turn| self.released.contains(turn)) {
            return None;
        }
        self.builder.apply_all(delta.changes.iter().cloned());
        let mut frames = Vec::new();
        let before = self.writer.seq;
        if self.encode(&delta.touched, &mut frames).is_none() {
            self.writer.seq = before;
            return None;
        }
        Some(frames)
    }

    /// Encodes what was touched. None if only a full snapshot will do.
    fn encode(&mut self, touched: &Touched, frames: &mut Vec<Value>) -> Option<()> {
        if touched.is_reordered() {
            return self.encode_in_order(touched, frames);
        }
        // Almost always one turn, and the last.
        let mut at: Vec<usize> = Vec::new();
        for id in &touched.turns {
            // Turns that were never sent (before the window) are skipped.
            at.extend(self.writer.sent.iter().rposition(|sent| sent.id == *id));
        }
        at.sort_unstable();
        for at in at {
            let turn = self.builder.find_turn(self.writer.sent.get(at)?.id)?;
            self.writer.turn_at(at, turn, touched, frames)?;
        }
        Some(())
    }

    fn encode_in_order(&mut self, touched: &Touched, frames: &mut Vec<Value>) -> Option<()> {
        self.writer.rename(&touched.renamed)?;
        let order = order(&self.builder);
        // Released turns keep their places: none of them was renumbered.
        let sent = self.writer.sent.iter().enumerate();
        let sent = sent.filter(|(_, sent)| !self.released.contains(&sent.id));
        let places: Vec<(usize, TurnId)> = sent.map(|(at, sent)| (at, sent.id)).collect();
        // The other turns that were sent must be the first of the current order.
        let mut held = places.iter().enumerate();
        held.all(|(nth, (_, id))| order.get(nth).is_some_and(|turn| turn.id == *id))
            .then_some(())?;
        for (nth, turn) in order.into_iter().enumerate() {
            let place = places.get(nth).map(|(at, _)| *at);
            if place.is_none() || touched.turns.contains(&turn.id) {
                let at = place.unwrap_or(self.writer.sent.len());
                self.writer.turn_at(at, turn, touched, frames)?;
            }
        }
        Some(())
    }
}

/// The turns in order.
fn order(builder: &TranscriptBuilder) -> Vec<&Turn> {
    let mut turns: Vec<&Turn> = builder.turns().collect();
    // Stable: turns with the same number keep the order in which they were opened.
    turns.sort_by_key(|turn| turn.number);
    turns
}
