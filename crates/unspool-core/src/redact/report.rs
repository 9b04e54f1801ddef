//! What one export replaced, without saying it: enough to look at every place and to decide
//! whether it was a secret, and nothing that gives one away.

use serde::Serialize;

use crate::id::{PartId, StepId};

/// A secret that stands in thousands of places is found as well by the first hundred.
const PLACES_KEPT: usize = 100;

/// All that was replaced, in the order in which it first was.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    pub secrets: Vec<Replaced>,
}

impl Report {
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// How many times something was replaced.
    pub fn count(&self) -> u64 {
        self.secrets.iter().map(|secret| secret.count).sum()
    }
}

/// One secret, which is `[redacted:kind:number]` wherever it stood.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Replaced {
    pub kind: String,
    pub number: u32,
    /// How often it was replaced.
    pub count: u64,
    /// Where, up to a hundred of them.
    pub places: Vec<Spot>,
    /// `ghp_… (40 characters)`: what everybody knows of secrets of its kind, and how long it is.
    pub hint: String,
}

impl Replaced {
    pub(super) fn replaced_at(&mut self, spot: &Spot) {
        self.count += 1;
        if self.places.len() < PLACES_KEPT && self.places.last() != Some(spot) {
            self.places.push(spot.clone());
        }
    }
}

/// A place where something was replaced.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Spot {
    /// The number of the turn; none for what is said of the session as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    pub owner: Owner,
    /// `output`, `input.env.TOKEN`, `text`.
    pub field: String,
}

/// Whose field it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// A text that stands alone.
    #[default]
    Text,
    Session,
    /// What the user said.
    User,
    /// The turn itself: how it ended.
    Turn,
    Step(StepId),
    Part(PartId),
}
