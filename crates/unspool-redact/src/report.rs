//! The report of one export: every replacement with its location, so that it can be reviewed, and
//! nothing that reveals a secret.

use serde::Serialize;
use unspool_model::id::{PartId, StepId};

/// Maximum number of locations per secret. The first hundred are enough for a review.
const MAX_PLACES: usize = 100;

/// All replaced secrets, in order of first replacement.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct RedactionReport {
    pub secrets: Vec<RedactedSecret>,
}

impl RedactionReport {
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Total number of replacements.
    pub fn count(&self) -> u64 {
        self.secrets.iter().map(|secret| secret.count).sum()
    }
}

/// One secret; every occurrence is replaced by `[redacted:kind:number]`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RedactedSecret {
    pub kind: String,
    pub number: u32,
    /// Number of replacements.
    pub count: u64,
    /// The first hundred locations.
    pub places: Vec<Location>,
    /// `ghp_… (40 characters)`: the public prefix of its kind, and its length.
    pub hint: String,
}

impl RedactedSecret {
    pub(super) fn record_at(&mut self, location: &Location) {
        self.count += 1;
        if self.places.len() < MAX_PLACES && self.places.last() != Some(location) {
            self.places.push(location.clone());
        }
    }
}

/// The location of a replacement.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Location {
    /// The turn number; `None` for fields of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    pub owner: Owner,
    /// `output`, `input.env.TOKEN`, `text`.
    pub field: String,
}

/// The owner of the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// A text without context.
    #[default]
    Text,
    Session,
    /// The user's message.
    User,
    /// The turn itself: its end reason.
    Turn,
    Step(StepId),
    Part(PartId),
}
