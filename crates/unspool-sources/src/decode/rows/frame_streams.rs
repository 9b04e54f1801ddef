//! The streams of a channel of frames, and which of their frames are stale (R-003-38).
//!
//! A reply that starts is a new stream, and so is a channel that starts again. A reply that is
//! started once more, because something in it changed, belongs to the stream that is current then.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A reply that is being sent.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reply {
    pub name: String,
    pub turn: Option<String>,
    /// The texts of a message that is sent again, by part: its deltas start from the beginning.
    pub again: Option<BTreeMap<String, String>>,
    /// The part to which deltas are added.
    pub open: Option<String>,
    /// The call of each part.
    pub calls: BTreeMap<String, String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FrameStreams {
    /// The number of streams so far.
    generation: u32,
    /// The generation of each reply, by its name.
    generations: BTreeMap<String, u32>,
    /// Replies of the current generation that are not being sent, by name.
    waiting: BTreeMap<String, Reply>,
}

impl FrameStreams {
    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub fn start_channel(&mut self) {
        self.generation += 1;
        self.waiting.clear();
    }

    /// Starts a reply in place of the one that is being sent.
    pub fn start_reply(&mut self, reply: Reply, sent: &mut Reply) {
        let known = self.generations.contains_key(&reply.name);
        if !known {
            self.start_channel();
        }
        self.generations.insert(reply.name.clone(), self.generation);
        self.waiting.remove(&reply.name);
        let before = std::mem::replace(sent, reply);
        if known && self.is_current(&before.name) {
            self.waiting.insert(before.name.clone(), before);
        }
    }

    fn is_current(&self, reply: &str) -> bool {
        self.generations.get(reply) == Some(&self.generation)
    }

    pub fn is_reply(&self, name: &str) -> bool {
        self.generations.contains_key(name)
    }

    /// True if another stream has followed this reply: its sender was cut off and has not noticed.
    /// Its text would be added to the wrong reply.
    pub fn is_stale(&self, name: &str) -> bool {
        self.is_reply(name) && !self.is_current(name)
    }

    /// Goes on with a reply that waits.
    pub fn go_on(&mut self, name: &str, sent: &mut Reply) {
        if sent.name != name
            && let Some(reply) = self.waiting.remove(name)
        {
            let before = std::mem::replace(sent, reply);
            self.waiting.insert(before.name.clone(), before);
        }
    }
}
