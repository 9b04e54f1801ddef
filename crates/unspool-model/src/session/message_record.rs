//! The records of a source that the messages of a turn begin with.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The records that the two messages of a turn begin with, where a source names its records
/// (R-001-24). The parts of a message have their own records as evidence.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MessageRecords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<MessageRecord>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Box<MessageRecord>>,
}

/// A record of a source, with the source's own ids. The order is that of time, so that the first
/// record of a message is the least, whichever file is read first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct MessageRecord {
    pub at: Option<Timestamp>,
    pub id: String,
    pub parent: Option<String>,
}

impl MessageRecords {
    pub fn is_empty(&self) -> bool {
        self.user.is_none() && self.reply.is_none()
    }

    /// Keeps the earlier record of a message. True if that is this one.
    pub fn keep_first(&mut self, is_reply: bool, record: MessageRecord) -> bool {
        let kept = if is_reply { &mut self.reply } else { &mut self.user };
        let first = kept.as_ref().is_none_or(|kept| record < **kept);
        if first {
            *kept = Some(Box::new(record));
        }
        first
    }

    pub fn join(&mut self, other: MessageRecords) {
        for (is_reply, record) in [(false, other.user), (true, other.reply)] {
            if let Some(record) = record {
                self.keep_first(is_reply, *record);
            }
        }
    }
}
