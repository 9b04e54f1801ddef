//! What was written, on its way to everybody who is connected.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use unspool_store::recorder::Published;

/// What is told to those who are connected.
#[derive(Clone, Debug)]
pub enum News {
    Written(Arc<Written>),
    /// Something was left out, or written by somebody who does not tell: look again.
    Missed,
}

impl News {
    pub fn written(published: Published) -> News {
        News::Written(Arc::new(Written { published, changes: OnceLock::new() }))
    }
}

/// What was published, and its changes as JSON: written out once, however many they are told to.
#[derive(Debug)]
pub struct Written {
    published: Published,
    changes: OnceLock<Option<String>>,
}

impl Written {
    /// The changes as elements of an array, without its brackets, so that several can be joined.
    pub fn changes_json(&self) -> Option<&str> {
        let write = || {
            let changes = self.published.changes.as_ref()?;
            let text = serde_json::to_string(&**changes).ok()?;
            text.strip_prefix('[')?.strip_suffix(']').map(str::to_owned)
        };
        self.changes.get_or_init(write).as_deref()
    }
}

impl Deref for Written {
    type Target = Published;

    fn deref(&self) -> &Published {
        &self.published
    }
}
