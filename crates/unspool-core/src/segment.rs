//! Reasoning blocks: computed for display from the ordered parts of a turn, never stored, by the
//! same function for a live list and a stored one (R-004-14). The result is an ordered list of
//! pieces that, joined, give the input again, so nothing moves and nothing is lost
//! (R-004-05 to R-004-12, C-06 to C-10).
//!
//! Only reasoning, text and tools decide. Every other kind is transparent: it stays where it
//! stands, inside the block when the block goes on behind it, outside otherwise. Only the agents
//! of a call never leave it.

use crate::part::{Body, Part};

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
        self.parts().filter(|part| role(part) == Role::Tool).count()
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

fn role(part: &Part) -> Role {
    match part.body {
        Body::Reasoning(_) => Role::Reasoning,
        Body::Text(_) => Role::Text,
        Body::Tool(_) => Role::Tool,
        Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => Role::Transparent,
    }
}

fn is_agents(part: &Part) -> bool {
    matches!(part.body, Body::Agent(_))
}

/// Splits a turn's parts, which are in order, into reasoning blocks and single parts.
/// Without `thinking_mode` there are no blocks (R-004-11).
pub fn segment<'a>(parts: &'a [Part], thinking_mode: bool, rule: Rule) -> Vec<Piece<'a>> {
    if !thinking_mode {
        return parts.iter().map(Piece::Part).collect();
    }
    let mut pieces = Vec::new();
    let mut rest = parts;
    while let Some((part, behind)) = rest.split_first() {
        if role(part) == Role::Reasoning {
            let (block, behind) = rest.split_at(block_length(rest, rule));
            pieces.push(Piece::Block(block.iter().collect()));
            rest = behind;
        } else {
            pieces.push(Piece::Part(part));
            rest = behind;
        }
    }
    pieces
}

/// How many parts the block has that begins with the first of these, which is reasoning.
/// Transparent parts count once a member follows them, so none hangs over the block's end.
fn block_length(parts: &[Part], rule: Rule) -> usize {
    let mut length = 0;
    let mut after_tool = false;
    for (at, part) in parts.iter().enumerate() {
        match role(part) {
            // The agents that a call started stay with their call.
            Role::Transparent if after_tool && length == at && is_agents(part) => length = at + 1,
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
