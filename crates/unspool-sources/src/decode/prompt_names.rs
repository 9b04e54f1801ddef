//! Names of turns by the text of their prompts. Every source of a session has the user's words, and
//! some share nothing else: hooks, and captures of the Agent Client Protocol, have no prompt ids.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspool_model::id::digest;
use unspool_model::part::Body;
use unspool_model::provenance::Name;

/// How often each prompt was seen in the session.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptNames(BTreeMap<u64, u32>);

impl PromptNames {
    /// The name of the next turn with this prompt.
    pub fn next(&mut self, text: &str) -> Name {
        let hash = prompt_hash(text);
        let count = self.0.entry(hash).or_default();
        *count += 1;
        Name::ByContent(hash, *count - 1)
    }

    /// The same for a message of several parts: its first text has the user's own words, and texts
    /// after it are what the agent added (files, links).
    pub fn next_of(&mut self, user: &[Body]) -> Option<Name> {
        user.iter().find_map(Body::prose).map(|text| self.next(text))
    }
}

/// The content hash of a prompt. Agents trim prompts in different places.
pub fn prompt_hash(text: &str) -> u64 {
    digest(format!("prompt\n{}", text.trim()).as_bytes())
}
