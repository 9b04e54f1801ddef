//! A session as frames of messages (R-000-12): `message.start`, `message.delta`,
//! `message.tool_call`, `message.tool_result`, `message.end`, each with a `seq` that counts up.
//! Frames have no positions: what comes later stands later (R-000-13). What is told a second time
//! replaces what was told before; a message that cannot be brought up to date by adding to it
//! (something stands in its middle now, or says something else) is begun again, and where even that
//! does not do, `channel.start` begins everything again.
//!
//! A turn is two messages, as under `/api/sessions/{id}/messages`: what the user said, and the reply.

mod tell;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use unspool_core::change::{Change, PartPatch};
use unspool_core::id::{PartId, TurnId};
use unspool_core::part::Body;
use unspool_core::session::{Session, Turn};
use unspool_core::transcript::Mirror;

use tell::{Teller, prose};

/// One channel: a session, and what of it was told.
pub struct Dialect {
    mirror: Mirror,
    teller: Teller,
}

/// What a batch of changes touched.
#[derive(Default)]
struct Touched {
    turns: FxHashSet<TurnId>,
    parts: FxHashSet<PartId>,
    /// Turns of which something else than a part was told.
    heads: FxHashSet<TurnId>,
    /// Turns whose reply must be told from its beginning.
    anew: FxHashSet<TurnId>,
    /// Turns that are another now, by what they were.
    became: FxHashMap<TurnId, TurnId>,
    /// A turn came, or stands elsewhere.
    order: bool,
}

impl Dialect {
    /// A session as it is stored, its turns with everything in them, also what is not shown: all of
    /// them, or only the last ones, and then nothing is told of those before. Nothing is told yet.
    pub fn new(session: Session, turns: Vec<Turn>) -> Dialect {
        let teller = Teller::new(&session.agent);
        let mut mirror = Mirror::resume(session);
        turns.into_iter().for_each(|turn| mirror.adopt_turn(turn));
        Dialect { mirror, teller }
    }

    /// Goes on with a session that was loaded anew: the channel is the same, so its seqs go on.
    pub fn restart(&mut self, loaded: Dialect) -> Vec<Value> {
        self.mirror = loaded.mirror;
        self.snapshot()
    }

    /// All of it, from its beginning: whatever was told on this channel before counts no more.
    pub fn snapshot(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        self.teller.begin_channel(self.mirror.session(), &mut frames);
        let touched = Touched::default();
        for turn in order(&self.mirror) {
            // A turn of which nothing was told can always be told.
            let told = self.teller.turn(turn, None, true, &touched, &mut frames);
            self.teller.told.extend(told);
        }
        frames
    }

    /// What brings who has all frames up to now to where these changes lead.
    pub fn frames(&mut self, changes: &[Change]) -> Vec<Value> {
        let mut touched = Touched::default();
        for change in changes {
            self.take(change, &mut touched);
        }
        let mut frames = Vec::new();
        let before = self.teller.seq;
        if self.tell(&touched, &mut frames).is_none() {
            self.teller.seq = before;
            return self.snapshot();
        }
        frames
    }

    /// Applies a change, and marks what it touches.
    fn take(&mut self, change: &Change, touched: &mut Touched) {
        match change {
            Change::TurnOpened { turn } => {
                touched.turns.insert(*turn);
                touched.heads.insert(*turn);
                touched.order = true;
            }
            Change::TurnTold { turn, patch } => {
                touched.turns.insert(*turn);
                touched.heads.insert(*turn);
                touched.order |= patch.number.is_some();
            }
            Change::PartOpened { turn, part } => {
                touched.turns.insert(*turn);
                touched.parts.insert(part.id);
            }
            Change::TurnRenamed { turn, to } | Change::TurnMerged { turn, into: to } => {
                touched.became.insert(*turn, *to);
                touched.turns.insert(*to);
                touched.heads.insert(*to);
                touched.anew.insert(*to);
                touched.order = true;
            }
            Change::PartGrew { part, .. } => self.touch(*part, touched),
            Change::PartTold { part, patch } => {
                self.touch(*part, touched);
                if self.is_other(*part, patch) {
                    touched.anew.extend(self.mirror.turn_of(*part));
                }
            }
            Change::PartRenamed { part, .. }
            | Change::PartMerged { part, .. }
            | Change::PartRemoved { part } => {
                self.touch(*part, touched);
                touched.anew.extend(self.mirror.turn_of(*part));
            }
            Change::StepTold { .. }
            | Change::SessionTold { .. }
            | Change::SnapshotTaken { .. }
            | Change::Counted { .. } => {}
        }
        self.mirror.apply(change.clone());
    }

    fn touch(&self, part: PartId, touched: &mut Touched) {
        touched.parts.insert(part);
        touched.turns.extend(self.mirror.turn_of(part));
    }

    /// Whether a part will say something else than more of what it says.
    fn is_other(&self, id: PartId, patch: &PartPatch) -> bool {
        let Some(part) = self.mirror.find_part(id) else { return false };
        let held = prose(&part.body);
        let differs =
            |new: Option<&str>| new.zip(held).is_some_and(|(new, old)| !new.starts_with(old));
        if let Some(body) = &patch.body {
            return body.kind() != part.body.kind() || differs(prose(body));
        }
        // What a tool gave is told as a whole when it is over.
        let output = match (&part.body, &patch.tool) {
            (Body::Tool(tool), Some(patch)) if !patch.state.unwrap_or(tool.state).is_terminal() => {
                let told = patch.output.as_deref().zip(tool.output.as_deref());
                told.is_some_and(|(new, old)| !new.starts_with(old))
            }
            (_, _) => false,
        };
        output || differs(patch.text.as_deref())
    }

    /// Tells what was touched. None where only everything from the beginning will do.
    fn tell(&mut self, touched: &Touched, frames: &mut Vec<Value>) -> Option<()> {
        if touched.order {
            return self.tell_in_order(touched, frames);
        }
        // Almost always one turn, and the last.
        let mut at: Vec<usize> = Vec::new();
        for id in &touched.turns {
            // Others are not ours to tell.
            at.extend(self.teller.told.iter().rposition(|told| told.id == *id));
        }
        at.sort_unstable();
        for at in at {
            let turn = self.mirror.find_turn(self.teller.told.get(at)?.id)?;
            self.teller.turn_at(at, turn, touched, frames)?;
        }
        Some(())
    }

    fn tell_in_order(&mut self, touched: &Touched, frames: &mut Vec<Value>) -> Option<()> {
        self.teller.rename(&touched.became)?;
        let order = order(&self.mirror);
        let told = &self.teller.told;
        // Nothing has come before what was told, and nothing of it is gone.
        let same = told
            .iter()
            .enumerate()
            .all(|(at, told)| order.get(at).is_some_and(|turn| turn.id == told.id));
        same.then_some(())?;
        for (at, turn) in order.into_iter().enumerate() {
            if at >= self.teller.told.len() || touched.turns.contains(&turn.id) {
                self.teller.turn_at(at, turn, touched, frames)?;
            }
        }
        Some(())
    }
}

/// The turns in their order.
fn order(mirror: &Mirror) -> Vec<&Turn> {
    let mut turns: Vec<&Turn> = mirror.turns().collect();
    // Those of one number stay as they were opened.
    turns.sort_by_key(|turn| turn.number);
    turns
}
