//! What the things of a message are called. Parts have no ids, and their index is not to be relied
//! on: a stream that goes on after an approval does not say how many parts came before it, and
//! applications leave kinds out when they store. So a part is named by its message, by the last
//! tool call before it, and by how many of its kind came since.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_core::id::digest;
use unspool_core::telling::Name;

/// Where the reading of a message stands.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Places {
    message: Arc<str>,
    /// The last call, or nothing before the first.
    call: Option<Arc<str>>,
    /// How many of each kind came since.
    counts: BTreeMap<String, u32>,
}

impl Places {
    pub fn of(message: &Arc<str>) -> Places {
        Places { message: message.clone(), ..Places::default() }
    }

    fn count(&mut self, kind: &str) -> u32 {
        let count = self.counts.entry(kind.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count - 1
    }

    fn here(&self) -> String {
        match &self.call {
            Some(call) => format!("{} {call}", self.message),
            None => self.message.to_string(),
        }
    }

    /// The name of the next part of this kind. Kinds are apart, so that an attempt that was thrown
    /// away can never lend its name to something else.
    pub fn part(&mut self, kind: &str) -> Name {
        let nth = self.count(kind);
        Name::Block(format!("{} {kind}", self.here()).into(), nth)
    }

    /// The name of a part that has an id in its message: told again, it is replaced.
    pub fn own(&self, kind: &str, id: &str) -> Name {
        Name::Block(format!("{} {kind} {id}", self.message).into(), 0)
    }

    pub fn step(&mut self) -> Name {
        let nth = self.count("step");
        Name::Message(format!("{} step {nth}", self.here()).into())
    }

    /// A call stands here: what follows is counted from it.
    pub fn pass(&mut self, call: &str) {
        self.call = Some(call.into());
        self.counts.clear();
    }

    pub fn is_at_start(&self) -> bool {
        self.call.is_none() && self.counts.is_empty()
    }
}

/// The calls of a chat. Some models count their calls from 0 in every reply: an id that another
/// message has used already is told apart by its message.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Calls(BTreeMap<u64, u64>);

impl Calls {
    pub fn id(&mut self, message: &str, call: &str) -> Arc<str> {
        let own = digest(message.as_bytes());
        let held = *self.0.entry(digest(call.as_bytes())).or_insert(own);
        if held == own { call.into() } else { format!("{message}/{call}").into() }
    }
}
