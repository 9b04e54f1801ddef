//! Reasoning blocks: computed for display from the ordered parts of a turn, never stored, by the
//! same function for a live list and a stored one (R-004-14). The result is an ordered list of
//! pieces that, joined, give the input again, so nothing moves and nothing is lost
//! (R-004-05 to R-004-12, C-06 to C-10).
//!
//! Only reasoning, text and tools decide. Every other kind is transparent: it stays where it
//! stands, inside the block when the block goes on behind it, outside otherwise. Only the agents
//! of a call never leave it.

use std::ops::Range;

use crate::part::{Kind, Part};

/// When a tool call closes the block that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rule {
    /// A tool call closes the block unless reasoning follows it (R-004-07).
    #[default]
    Default,
    /// Tool calls stay in the block until a text comes: for models that call several tools at
    /// once (C-08).
    UntilText,
}

/// A stretch of a turn's parts.
#[derive(Clone, PartialEq, Debug)]
pub enum Piece<'a> {
    /// A reasoning block. Begins with reasoning, ends with reasoning, a tool or a tool's agents.
    Block(Vec<&'a Part>),
    /// A part outside of any block.
    Part(&'a Part),
}

impl<'a> Piece<'a> {
    /// The parts of the piece, in order.
    pub fn parts(&self) -> impl Iterator<Item = &'a Part> {
        let parts = match self {
            Piece::Block(parts) => parts.as_slice(),
            Piece::Part(part) => std::slice::from_ref(part),
        };
        parts.iter().copied()
    }

    /// How many tool calls stand in the piece (R-004-13).
    pub fn tool_count(&self) -> usize {
        self.parts().filter(|part| part.body.kind() == Kind::Tool).count()
    }
}

/// What a part means to the rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Reasoning,
    Text,
    Tool,
    Transparent,
}

fn role(kind: Kind) -> Role {
    match kind {
        Kind::Reasoning => Role::Reasoning,
        Kind::Text => Role::Text,
        Kind::Tool => Role::Tool,
        Kind::Agent
        | Kind::Interjection
        | Kind::TaskList
        | Kind::SkillLoad
        | Kind::McpSnapshot
        | Kind::ContextInfo
        | Kind::Compaction
        | Kind::File
        | Kind::Source
        | Kind::Patch
        | Kind::Notice
        | Kind::Error
        | Kind::Data => Role::Transparent,
    }
}

/// A piece by the places of its parts in the turn's list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stretch {
    Block(Range<usize>),
    Part(usize),
}

impl Stretch {
    pub fn range(&self) -> Range<usize> {
        match self {
            Stretch::Block(range) => range.clone(),
            Stretch::Part(at) => *at..*at + 1,
        }
    }
}

/// Splits a turn's parts, which are in order, into reasoning blocks and single parts.
/// Without `thinking_mode` there are no blocks (R-004-11).
pub fn segment<'a>(parts: &'a [Part], thinking_mode: bool, rule: Rule) -> Vec<Piece<'a>> {
    let kinds: Vec<Kind> = parts.iter().map(|part| part.body.kind()).collect();
    let cut = stretches(&kinds, thinking_mode, rule);
    let piece = |stretch| match stretch {
        Stretch::Block(range) => Some(Piece::Block(parts.get(range)?.iter().collect())),
        Stretch::Part(at) => parts.get(at).map(Piece::Part),
    };
    cut.into_iter().filter_map(piece).collect()
}

/// The same by kinds alone: what the parts hold decides nothing, so a turn can be cut where it is
/// not loaded.
pub fn stretches(kinds: &[Kind], thinking_mode: bool, rule: Rule) -> Vec<Stretch> {
    let mut found = Vec::with_capacity(kinds.len());
    let mut at = 0;
    while let Some(rest) = kinds.get(at..).filter(|rest| !rest.is_empty()) {
        if thinking_mode && rest.first() == Some(&Kind::Reasoning) {
            let length = block_length(rest, rule);
            found.push(Stretch::Block(at..at + length));
            at += length;
        } else {
            found.push(Stretch::Part(at));
            at += 1;
        }
    }
    found
}

/// How many parts the block has that begins with the first of these, which is reasoning.
/// Transparent parts count once a member follows them, so none hangs over the block's end.
fn block_length(kinds: &[Kind], rule: Rule) -> usize {
    let mut length = 0;
    let mut after_tool = false;
    for (at, kind) in kinds.iter().enumerate() {
        match role(*kind) {
            // The agents that a call started stay with their call.
            Role::Transparent if after_tool && length == at && *kind == Kind::Agent => {
                length = at + 1;
            }
            Role::Transparent => {}
            Role::Text => break,
            Role::Reasoning => {
                length = at + 1;
                after_tool = false;
            }
            // A tool that follows a tool shows that the first one had closed the block.
            Role::Tool if after_tool && rule == Rule::Default => break,
            Role::Tool => {
                length = at + 1;
                after_tool = true;
            }
        }
    }
    length
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
