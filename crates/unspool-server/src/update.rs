//! Live updates: what the recorder wrote, on its way to all subscribers.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use unspool_store::recorder::ChangeSet;

/// One message of the broadcast channel that every live view subscribes to.
#[derive(Clone, Debug)]
pub enum Update {
    Written(Arc<Written>),
    /// Updates were dropped, or another process wrote without publishing: reload.
    Lagged,
}

impl Update {
    pub fn written(published: ChangeSet) -> Update {
        Update::Written(Arc::new(Written { published, changes: OnceLock::new() }))
    }
}

/// A published batch and its changes as JSON, serialised once for all subscribers.
#[derive(Debug)]
pub struct Written {
    published: ChangeSet,
    changes: OnceLock<Option<String>>,
}

impl Written {
    /// The changes as JSON array elements without the brackets, so that batches can be joined.
    pub fn changes_json(&self) -> Option<&str> {
        let write = || {
            let delta = self.published.delta.as_ref()?;
            let text = serde_json::to_string(&delta.changes).ok()?;
            text.strip_prefix('[')?.strip_suffix(']').map(str::to_owned)
        };
        self.changes.get_or_init(write).as_deref()
    }
}

impl Deref for Written {
    type Target = ChangeSet;

    fn deref(&self) -> &ChangeSet {
        &self.published
    }
}
