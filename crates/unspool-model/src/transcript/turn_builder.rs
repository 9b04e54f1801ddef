//! One turn while a transcript is built: its steps and parts, each at its place.

use rustc_hash::FxHashMap;

use crate::id::{PartId, StepId, TurnId};
use crate::part::{Part, Place};
use crate::session::{Step, Trigger, Turn, TurnOrigin, TurnState};

#[derive(Clone, Debug)]
pub(super) struct TurnBuilder {
    pub turn: Turn,
    /// The places of `turn.steps`, index by index.
    pub step_places: Vec<Place>,
    /// The place of each step, by which it is found.
    pub places: FxHashMap<StepId, Place>,
}

impl TurnBuilder {
    pub fn new(id: TurnId) -> TurnBuilder {
        TurnBuilder {
            turn: Turn {
                id,
                number: 0,
                trigger: Trigger::default(),
                user: Vec::new(),
                thinking_mode: false,
                state: TurnState::default(),
                abandoned: false,
                inherited: false,
                started: None,
                ended: None,
                steps: Vec::new(),
                parts: Vec::new(),
                origin: TurnOrigin::default(),
            },
            step_places: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    pub fn insert(&mut self, part: Part) {
        let at = self.turn.parts.partition_point(|other| other.place <= part.place);
        self.turn.parts.insert(at, part);
    }

    /// The index of a part at this place.
    pub fn find_part(&self, id: PartId, place: Place) -> Option<usize> {
        let parts = &self.turn.parts;
        // Almost always the newest.
        if parts.last().is_some_and(|part| part.id == id) {
            return Some(parts.len() - 1);
        }
        // Two parts may share a place while the changes of one event are applied.
        let end = parts.partition_point(|other| other.place <= place);
        parts[..end].iter().rposition(|part| part.id == id)
    }

    /// Moves a part to the index that its place demands.
    pub fn put_back(&mut self, at: usize) {
        let part = self.turn.parts.remove(at);
        self.insert(part);
    }

    /// The index of a step at this place, and the index after all steps up to this place.
    pub fn find_step(&self, id: StepId, place: Place) -> Option<(usize, usize)> {
        let end = self.step_places.partition_point(|other| *other <= place);
        // Two steps may share a place while the changes of one event are applied.
        let at = self.turn.steps[..end].iter().rposition(|step| step.id == id)?;
        Some((at, end))
    }

    pub fn remove_step(&mut self, id: StepId) {
        let place = self.places.remove(&id);
        if let Some((at, _)) = place.and_then(|place| self.find_step(id, place)) {
            self.turn.steps.remove(at);
            self.step_places.remove(at);
        }
    }

    pub fn upsert_step(&mut self, place: Place, step: Step) {
        let held = self.places.insert(step.id, place);
        if let Some((at, end)) = held.and_then(|held| self.find_step(step.id, held)) {
            if held == Some(place) && at + 1 == end {
                self.turn.steps[at] = step;
                return;
            }
            self.turn.steps.remove(at);
            self.step_places.remove(at);
        }
        let at = self.step_places.partition_point(|other| *other <= place);
        self.step_places.insert(at, place);
        self.turn.steps.insert(at, step);
    }
}
