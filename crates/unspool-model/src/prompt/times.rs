//! When model calls were made and answered. Decoders report it apart from the calls: a log and a
//! trace of the same call each have a part of it.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// When one model call was made and answered, as far as its source says it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PromptTimes {
    pub request: Arc<str>,
    #[serde(flatten)]
    pub times: CallTimes,
}

/// The times of a model call. Each is absent if no source says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CallTimes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Timestamp>,
    /// The reply was complete, or the call had failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
}

impl CallTimes {
    /// Adds what another source says, or the same one later. The order does not matter.
    pub fn join(&mut self, other: CallTimes) {
        let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.sent = earlier(self.sent, other.sent);
        self.first_token = earlier(self.first_token, other.first_token);
        self.ended = self.ended.max(other.ended);
    }

    pub fn joined(mut self, other: CallTimes) -> CallTimes {
        self.join(other);
        self
    }

    /// How long it was until then, in milliseconds. Clocks may run back.
    pub fn after_sent(&self, then: Option<Timestamp>) -> Option<u64> {
        let elapsed = then?.duration_since(self.sent?);
        u64::try_from(elapsed.as_millis()).ok()
    }
}
