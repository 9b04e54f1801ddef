//! What a batch of changes touched, computed once by the recorder. Subscribers read this instead of
//! classifying the changes again, each in its own way.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::{Change, PartPatch, TurnPatch};
use crate::id::{PartId, TurnId};
use crate::part::{Body, Part, ToolState};
use crate::skeleton::PartSkeleton;
use crate::transcript::TranscriptBuilder;

/// How soon a view must show a write. Orders by urgency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Urgency {
    /// Only text grew: the refresh may be delayed (C-20).
    #[default]
    Text,
    /// A state changed, or something started or ended: refresh at once.
    State,
}

/// Consecutive changes and what they touched.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Delta {
    pub changes: Vec<Change>,
    pub touched: Touched,
}

impl Delta {
    /// Appends a change that is about to be applied to `before`.
    pub fn push(&mut self, change: Change, before: &TranscriptBuilder) {
        self.touched.note(&change, before);
        self.changes.push(change);
    }
}

/// What a batch of changes touched. Turn ids are those after the batch.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Touched {
    pub urgency: Urgency,
    /// Turns that appeared.
    pub opened: FxHashSet<TurnId>,
    /// Turns of which anything visible changed, in the turn itself or in a part.
    pub turns: FxHashSet<TurnId>,
    /// Turns whose own fields or steps changed.
    pub heads: FxHashSet<TurnId>,
    /// Turns that got a number, new ones included.
    pub renumbered: FxHashSet<TurnId>,
    /// Renamed and merged turns in order: the id that is gone and the one that replaced it.
    pub renamed: Vec<(TurnId, TurnId)>,
    /// Turns whose list of parts changed, other than by parts that were opened.
    pub restructured: FxHashSet<TurnId>,
    /// Turns in which something was replaced or removed that views may have shown.
    pub rewritten: FxHashSet<TurnId>,
    /// Parts whose content changed, new ones included.
    pub parts: FxHashSet<PartId>,
    /// Visible parts that appeared, with the turn of each.
    pub opened_parts: Vec<(TurnId, PartSkeleton)>,
    /// Ids of parts that are gone from where they were: removed, renamed, merged or in another turn.
    pub removed: Vec<PartId>,
    /// New states and times of tool calls.
    pub tool_updates: Vec<(PartId, ToolUpdate)>,
}

/// What changed of a tool call that its skeleton has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ToolUpdate {
    pub state: Option<ToolState>,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
}

impl Touched {
    /// True if the order or the names of turns changed.
    pub fn is_reordered(&self) -> bool {
        !(self.opened.is_empty() && self.renumbered.is_empty() && self.renamed.is_empty())
    }

    /// Marks what a change touches. `before` is the transcript that it will be applied to.
    pub fn note(&mut self, change: &Change, before: &TranscriptBuilder) {
        if !matches!(change, Change::PartDelta { .. }) {
            self.urgency = Urgency::State;
        }
        match change {
            Change::TurnOpened { turn } => {
                self.opened.insert(*turn);
                self.head(*turn);
            }
            Change::TurnUpdated { turn, patch } => {
                if patch.number.is_some() {
                    self.renumbered.insert(*turn);
                }
                if is_visible(patch) {
                    self.head(*turn);
                }
            }
            Change::StepUpdated { turn, .. } => self.head(*turn),
            Change::TurnRenamed { turn, to } => {
                if self.opened.remove(turn) {
                    self.opened.insert(*to);
                }
                self.rename_turn(*turn, *to);
            }
            Change::TurnMerged { turn, into, .. } => {
                self.opened.remove(turn);
                self.rename_turn(*turn, *into);
            }
            Change::PartOpened { turn, part } => {
                // A hidden part that becomes visible later restructures its turn.
                if !part.origin.is_hidden() {
                    self.turns.insert(*turn);
                    self.parts.insert(part.id);
                    self.opened_parts.push((*turn, PartSkeleton::of(part)));
                }
            }
            Change::PartDelta { part, .. } => self.part(*part, before),
            Change::PartUpdated { part, patch } => self.part_updated(*part, patch, before),
            Change::PartRenamed { part, .. } | Change::PartRemoved { part } => {
                self.part_removed(*part, before);
            }
            Change::StepRemoved { turn, parts, .. } => {
                self.head(*turn);
                self.restructured.insert(*turn);
                self.parts.extend(parts);
            }
            Change::PartMoved { part, to } => {
                self.part_removed(*part, before);
                self.parts.insert(*part);
                for (turn, opened) in &mut self.opened_parts {
                    if opened.id == *part {
                        *turn = *to;
                    }
                }
                self.turns.insert(*to);
                self.restructured.insert(*to);
                self.rewritten.insert(*to);
            }
            Change::PartMerged { part, into, .. } => {
                self.part(*into, before);
                self.part_removed(*part, before);
            }
            Change::SessionUpdated { .. }
            | Change::PromptRecorded(_)
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => {}
        }
    }

    fn head(&mut self, turn: TurnId) {
        self.turns.insert(turn);
        self.heads.insert(turn);
    }

    fn rename_turn(&mut self, turn: TurnId, to: TurnId) {
        let sets = [
            &mut self.turns,
            &mut self.heads,
            &mut self.renumbered,
            &mut self.restructured,
            &mut self.rewritten,
        ];
        for set in sets {
            if set.remove(&turn) {
                set.insert(to);
            }
        }
        for (opened, _) in self.opened_parts.iter_mut().filter(|(opened, _)| *opened == turn) {
            *opened = to;
        }
        self.head(to);
        self.rewritten.insert(to);
        self.renamed.push((turn, to));
    }

    fn part(&mut self, part: PartId, before: &TranscriptBuilder) {
        self.parts.insert(part);
        self.turns.extend(before.turn_of(part));
    }

    fn part_updated(&mut self, id: PartId, patch: &PartPatch, before: &TranscriptBuilder) {
        self.part(id, before);
        let moves = patch.place.is_some() || patch.origin.is_some() || patch.step.is_some();
        if moves || patch.body.is_some() {
            self.restructured.extend(before.turn_of(id));
        }
        if before.find_part(id).is_some_and(|part| rewrites(part, patch)) {
            self.rewritten.extend(before.turn_of(id));
        }
        let update = ToolUpdate {
            state: patch.tool.as_ref().and_then(|tool| tool.state),
            started_ms: patch.started.map(|at| at.as_millisecond()),
            ended_ms: patch.ended.map(|at| at.as_millisecond()),
        };
        let is_tool = || before.find_part(id).is_some_and(|part| part.body.tool().is_some());
        if update != ToolUpdate::default() && is_tool() {
            self.tool_updates.push((id, update));
        }
    }

    fn part_removed(&mut self, part: PartId, before: &TranscriptBuilder) {
        self.turns.extend(before.turn_of(part));
        self.restructured.extend(before.turn_of(part));
        self.rewritten.extend(before.turn_of(part));
        self.removed.push(part);
    }
}

/// True if the patch changes anything but positions in the feeds, which are not shown.
fn is_visible(patch: &TurnPatch) -> bool {
    let TurnPatch {
        number,
        trigger,
        user,
        user_replayed,
        user_added,
        thinking_mode,
        state,
        abandoned,
        inherited,
        started,
        ended,
        origin: _,
    } = patch;
    number.is_some()
        || trigger.is_some()
        || user.is_some()
        || user_replayed.is_some()
        || !user_added.is_empty()
        || thinking_mode.is_some()
        || state.is_some()
        || abandoned.is_some()
        || inherited.is_some()
        || started.is_some()
        || ended.is_some()
}

/// True if the patch replaces text of the part instead of appending to it.
fn rewrites(part: &Part, patch: &PartPatch) -> bool {
    let held = part.body.streamed_text();
    let differs = |new: Option<&str>| new.zip(held).is_some_and(|(new, old)| !new.starts_with(old));
    if let Some(body) = &patch.body {
        return body.kind() != part.body.kind() || differs(body.streamed_text());
    }
    // The output of a finished call is shown as a whole, so replacing it is fine.
    let output = match (&part.body, &patch.tool) {
        (Body::Tool(tool), Some(patch)) if !patch.state.unwrap_or(tool.state).is_terminal() => {
            let shown = patch.output.as_deref().zip(tool.output.as_deref());
            shown.is_some_and(|(new, old)| !new.starts_with(old))
        }
        (_, _) => false,
    };
    output || differs(patch.text.as_deref())
}

#[cfg(test)]
#[path = "touched_tests.rs"]
mod tests;
