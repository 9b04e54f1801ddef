//! Names of parts, steps and calls. Parts have no ids, and their index is unreliable: a stream that
//! resumes after an approval does not say how many parts came before it, and applications drop some
//! kinds when they store a message. So a part is named by its message, the last tool call before
//! it, and its number among the parts of its kind since that call.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::id::digest;
use unspool_model::provenance::Name;

/// The position in a message, from which the next names are made.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartNames {
    message: Arc<str>,
    /// The last call, if any.
    call: Option<Arc<str>>,
    /// Parts since the last call, by kind.
    counts: BTreeMap<String, u32>,
}

impl PartNames {
    pub fn of(message: &Arc<str>) -> PartNames {
        PartNames { message: message.clone(), ..PartNames::default() }
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

    /// The name of the next part of this kind. Kinds are numbered apart, so that a part of a
    /// discarded attempt never shares its name with a part of another kind.
    pub fn part(&mut self, kind: &str) -> Name {
        let nth = self.count(kind);
        Name::Block(format!("{} {kind}", self.here()).into(), nth)
    }

    /// The name of a part with an id of its own: a later part with the same id replaces it.
    pub fn own(&self, kind: &str, id: &str) -> Name {
        Name::Block(format!("{} {kind} {id}", self.message).into(), 0)
    }

    pub fn step(&mut self) -> Name {
        let nth = self.count("step");
        Name::Message(format!("{} step {nth}", self.here()).into())
    }

    /// Passes a call: later parts are numbered from it.
    pub fn pass(&mut self, call: &str) {
        self.call = Some(call.into());
        self.counts.clear();
    }

    pub fn is_at_start(&self) -> bool {
        self.call.is_none() && self.counts.is_empty()
    }
}

/// The calls of a chat. Some models number their calls from 0 in every reply: a call id that
/// another message has used is prefixed with its message id.
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
