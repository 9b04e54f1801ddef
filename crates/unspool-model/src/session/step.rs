//! Steps: the model calls of a turn, with their token usage and the composition of their prompts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::StepId;
use crate::provenance::{Name, Positions};

/// One model call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    pub id: StepId,
    pub name: Name,
    pub at: Positions,
    pub model: Option<Arc<str>>,
    pub usage: Usage,
    pub stop_reason: Option<Arc<str>>,
    /// The request that it answers: its prompt has this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Arc<str>>,
    /// The snapshots and spans of the prompt, if the source records them.
    pub provenance: Option<Provenance>,
}

/// Tokens by kind. `input` excludes cached tokens; `output` includes reasoning, of which
/// `reasoning` is the sub-count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Hash)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub reasoning: u64,
    /// The part of `cache_write` with a lifetime of one hour, which costs more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Merges two reports of the same call by taking the larger figures. Sources repeat a call's
    /// usage while it grows, and some never write the last figure.
    pub fn join(&mut self, other: Usage) {
        self.input = self.input.max(other.input);
        self.output = self.output.max(other.output);
        self.cache_read = self.cache_read.max(other.cache_read);
        self.cache_write = self.cache_write.max(other.cache_write);
        self.reasoning = self.reasoning.max(other.reasoning);
        self.cache_write_1h = self.cache_write_1h.max(other.cache_write_1h);
    }

    /// Tokens of all kinds.
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Tokens of the prompt, from a cache or not: what the model had in its context.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Tokens of all kinds but those read from a cache, which cost a tenth or less.
    pub fn fresh(&self) -> u64 {
        self.total().saturating_sub(self.cache_read)
    }

    /// Adds another call's usage.
    pub fn add(&mut self, other: Usage) {
        // Counts are external input; absurd ones must not overflow.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
    }
}

/// The composition of a step's prompt: ordered pieces, the final string, and the character span of
/// each piece in it. Large content is referenced by its SHA-256.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Provenance {
    pub pieces: Vec<PromptPiece>,
    pub final_prompt: Option<String>,
    /// Digests of the snapshots in use: system policy, tool schemas, context.
    pub snapshots: Vec<SnapshotUse>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PromptPiece {
    pub kind: String,
    pub value: String,
    /// Start and end in `final_prompt`, in characters.
    pub span: Option<(u32, u32)>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SnapshotUse {
    pub kind: String,
    pub sha256: String,
}

/// The models of steps, in the order of their first use.
pub(super) fn models<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<&'a str> {
    let mut models: Vec<&str> = Vec::new();
    for model in steps.into_iter().filter_map(|step| step.model.as_deref()) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models
}
