//! The JSON of one part.

use rustc_hash::FxHashMap;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{body, time};
use crate::id::StepId;
use crate::part::Part;
use crate::session::Turn;

/// A part of a turn.
pub struct PartDocument<'a> {
    pub agent: &'a str,
    pub part: &'a Part,
    /// The number of its step in the turn.
    step: Option<usize>,
}

impl<'a> PartDocument<'a> {
    pub fn new(agent: &'a str, turn: &Turn, part: &'a Part) -> PartDocument<'a> {
        let step = part.step.and_then(|step| turn.step_number(step));
        PartDocument { agent, part, step }
    }

    /// Many parts of a turn. To look for the step of each would take a search of all steps.
    pub fn all(
        agent: &'a str,
        turn: &Turn,
        parts: &'a [Part],
    ) -> impl Iterator<Item = PartDocument<'a>> + use<'a> {
        let numbers: FxHashMap<StepId, usize> =
            turn.steps.iter().zip(1..).map(|(step, number)| (step.id, number)).collect();
        parts.iter().map(move |part| {
            let step = part.step.and_then(|step| numbers.get(&step).copied());
            PartDocument { agent, part, step }
        })
    }
}

impl Serialize for PartDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.part;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &part.id)?;
        map.serialize_entry("kind", part.body.kind().name())?;
        map.serialize_entry("step", &self.step)?;
        map.serialize_entry("started_at", &time(part.started))?;
        map.serialize_entry("ended_at", &time(part.ended))?;
        body(&mut map, self.agent, &part.body)?;
        if !part.is_end_observed() {
            map.serialize_entry("observed", &false)?;
        }
        map.end()
    }
}
