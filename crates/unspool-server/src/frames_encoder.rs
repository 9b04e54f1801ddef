//! Encodes a session as message frames (R-000-12): `message.start`, `message.delta`,
//! `message.tool_call`, `message.tool_result`, `message.end`, each with an increasing `seq`.
//! Frames have no positions: later frames come later in the message (R-000-13). A second
//! `message.start` with the same id replaces the message. A message is restarted when it cannot be
//! updated by appending (a part was inserted or rewritten); when that is not enough,
//! `channel.start` restarts the whole channel.
//!
//! A turn is two messages, as under `/api/sessions/{id}/messages`: the user's and the reply.

mod frame_writer;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use unspool_core::change::{Change, PartPatch};
use unspool_core::id::{PartId, TurnId};
use unspool_core::part::Body;
use unspool_core::session::{Session, Turn};
use unspool_core::transcript::TranscriptBuilder;

use frame_writer::{FrameWriter, prose};

/// One channel: a session, and what of it was sent.
pub struct FramesEncoder {
    builder: TranscriptBuilder,
    writer: FrameWriter,
}

/// What a batch of changes affected.
#[derive(Default)]
struct Touched {
    turns: FxHashSet<TurnId>,
    parts: FxHashSet<PartId>,
    /// Turns of which anything but a part changed.
    heads: FxHashSet<TurnId>,
    /// Turns whose reply must be restarted.
    restart: FxHashSet<TurnId>,
    /// Renamed and merged turns: old id to new id.
    renames: FxHashMap<TurnId, TurnId>,
    /// A turn was added or moved.
    order: bool,
}

impl FramesEncoder {
    /// Takes a stored session with complete turns, hidden parts included: all turns, or only the
    /// last ones; earlier turns are then never sent. Encodes nothing yet.
    pub fn new(session: Session, turns: Vec<Turn>) -> FramesEncoder {
        let writer = FrameWriter::new(&session.agent);
        let mut builder = TranscriptBuilder::resume(session);
        turns.into_iter().for_each(|turn| builder.adopt_turn(turn));
        FramesEncoder { builder, writer }
    }

    /// Continues the channel, and its seqs, with a freshly loaded session.
    pub fn restart(&mut self, loaded: FramesEncoder) -> Vec<Value> {
        self.builder = loaded.builder;
        self.snapshot()
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
    pub fn frames(&mut self, changes: &[Change]) -> Vec<Value> {
        let mut touched = Touched::default();
        for change in changes {
            self.apply_change(change, &mut touched);
        }
        let mut frames = Vec::new();
        let before = self.writer.seq;
        if self.encode(&touched, &mut frames).is_none() {
            self.writer.seq = before;
            return self.snapshot();
        }
        frames
    }

    /// Applies a change and marks what it affects.
    fn apply_change(&mut self, change: &Change, touched: &mut Touched) {
        match change {
            Change::TurnOpened { turn } => {
                touched.turns.insert(*turn);
                touched.heads.insert(*turn);
                touched.order = true;
            }
            Change::TurnUpdated { turn, patch } => {
                touched.turns.insert(*turn);
                touched.heads.insert(*turn);
                touched.order |= patch.number.is_some();
            }
            Change::PartOpened { turn, part } => {
                touched.turns.insert(*turn);
                touched.parts.insert(part.id);
            }
            Change::TurnRenamed { turn, to } | Change::TurnMerged { turn, into: to } => {
                touched.renames.insert(*turn, *to);
                touched.turns.insert(*to);
                touched.heads.insert(*to);
                touched.restart.insert(*to);
                touched.order = true;
            }
            Change::PartDelta { part, .. } => self.touch(*part, touched),
            Change::PartUpdated { part, patch } => {
                self.touch(*part, touched);
                if self.rewrites(*part, patch) {
                    touched.restart.extend(self.builder.turn_of(*part));
                }
            }
            Change::PartRenamed { part, .. }
            | Change::PartMerged { part, .. }
            | Change::PartRemoved { part } => {
                self.touch(*part, touched);
                touched.restart.extend(self.builder.turn_of(*part));
            }
            Change::StepUpdated { .. }
            | Change::SessionUpdated { .. }
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => {}
        }
        self.builder.apply(change.clone());
    }

    fn touch(&self, part: PartId, touched: &mut Touched) {
        touched.parts.insert(part);
        touched.turns.extend(self.builder.turn_of(part));
    }

    /// True if the patch rewrites the part's text instead of appending to it.
    fn rewrites(&self, id: PartId, patch: &PartPatch) -> bool {
        let Some(part) = self.builder.find_part(id) else { return false };
        let held = prose(&part.body);
        let differs =
            |new: Option<&str>| new.zip(held).is_some_and(|(new, old)| !new.starts_with(old));
        if let Some(body) = &patch.body {
            return body.kind() != part.body.kind() || differs(prose(body));
        }
        // The output of a finished call is sent as a whole, so rewriting it is fine.
        let output = match (&part.body, &patch.tool) {
            (Body::Tool(tool), Some(patch)) if !patch.state.unwrap_or(tool.state).is_terminal() => {
                let sent = patch.output.as_deref().zip(tool.output.as_deref());
                sent.is_some_and(|(new, old)| !new.starts_with(old))
            }
            (_, _) => false,
        };
        output || differs(patch.text.as_deref())
    }

    /// Encodes what was touched. None if only a full snapshot will do.
    fn encode(&mut self, touched: &Touched, frames: &mut Vec<Value>) -> Option<()> {
        if touched.order {
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
        self.writer.rename(&touched.renames)?;
        let order = order(&self.builder);
        let sent = &self.writer.sent;
        // The sent turns must be a prefix of the current order.
        let same = sent
            .iter()
            .enumerate()
            .all(|(at, sent)| order.get(at).is_some_and(|turn| turn.id == sent.id));
        same.then_some(())?;
        for (at, turn) in order.into_iter().enumerate() {
            if at >= self.writer.sent.len() || touched.turns.contains(&turn.id) {
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
