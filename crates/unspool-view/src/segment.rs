//! Reasoning blocks: computed for display from the ordered parts of a turn and never stored. Live
//! and stored turns use the same function (R-004-14). The result is an ordered list of segments
//! whose concatenation is the input, so nothing moves and nothing is lost (R-004-05 to R-004-12,
//! C-06 to C-10).
//!
//! Only reasoning, text and tools open or close a block. Every other kind is transparent: it is
//! inside the block if a member of the block follows it, outside otherwise. The agents of a call
//! always stay with their call.

use std::ops::Range;

use unspool_model::part::{Kind, Part};

/// When a tool call closes the block that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SegmentRule {
    /// A tool call closes the block unless reasoning follows it (R-004-07).
    #[default]
    Default,
    /// Tool calls stay in the block until a text comes: for models that call several tools at
    /// once (C-08).
    UntilText,
}

/// A reasoning block or a single part.
#[derive(Clone, PartialEq, Debug)]
pub enum TurnSegment<'a> {
    /// A reasoning block. Begins with reasoning, ends with reasoning, a tool or a tool's agents.
    Block(Vec<&'a Part>),
    /// A part outside of any block.
    Part(&'a Part),
}

impl<'a> TurnSegment<'a> {
    /// The parts of the segment, in order.
    pub fn parts(&self) -> impl Iterator<Item = &'a Part> {
        let parts = match self {
            TurnSegment::Block(parts) => parts.as_slice(),
            TurnSegment::Part(part) => std::slice::from_ref(part),
        };
        parts.iter().copied()
    }

    /// The number of tool calls in the segment (R-004-13).
    pub fn tool_count(&self) -> usize {
        self.parts().filter(|part| part.body.kind() == Kind::Tool).count()
    }
}

/// How a part affects a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextRole {
    Reasoning,
    Text,
    Tool,
    Transparent,
}

fn role(kind: Kind) -> TextRole {
    match kind {
        Kind::Reasoning => TextRole::Reasoning,
        Kind::Text => TextRole::Text,
        Kind::Tool => TextRole::Tool,
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
        | Kind::Data => TextRole::Transparent,
    }
}

/// A segment as indices into the turn's list of parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SegmentRange {
    Block(Range<usize>),
    Part(usize),
}

impl SegmentRange {
    pub fn range(&self) -> Range<usize> {
        match self {
            SegmentRange::Block(range) => range.clone(),
            SegmentRange::Part(at) => *at..*at + 1,
        }
    }
}

/// Splits a turn's parts, which are in order, into reasoning blocks and single parts.
/// Without `thinking_mode` there are no blocks (R-004-11).
pub fn segment<'a>(
    parts: &'a [Part],
    thinking_mode: bool,
    rule: SegmentRule,
) -> Vec<TurnSegment<'a>> {
    let kinds: Vec<Kind> = parts.iter().map(|part| part.body.kind()).collect();
    let cut = segment_ranges(&kinds, thinking_mode, rule);
    let piece = |stretch| match stretch {
        SegmentRange::Block(range) => Some(TurnSegment::Block(parts.get(range)?.iter().collect())),
        SegmentRange::Part(at) => parts.get(at).map(TurnSegment::Part),
    };
    cut.into_iter().filter_map(piece).collect()
}

/// Segments by kinds alone. The content of the parts is irrelevant, so this also works for turns
/// that are not loaded.
pub fn segment_ranges(kinds: &[Kind], thinking_mode: bool, rule: SegmentRule) -> Vec<SegmentRange> {
    let mut found = Vec::with_capacity(kinds.len());
    let mut at = 0;
    while let Some(rest) = kinds.get(at..).filter(|rest| !rest.is_empty()) {
        if thinking_mode && rest.first() == Some(&Kind::Reasoning) {
            let length = block_length(rest, rule);
            found.push(SegmentRange::Block(at..at + length));
            at += length;
        } else {
            found.push(SegmentRange::Part(at));
            at += 1;
        }
    }
    found
}

/// The length of the block that begins at the first part, which must be reasoning. Transparent
/// parts count only if a member follows them, so none trails the block.
fn block_length(kinds: &[Kind], rule: SegmentRule) -> usize {
    let mut length = 0;
    let mut after_tool = false;
    for (at, kind) in kinds.iter().enumerate() {
        match role(*kind) {
            // The agents of a call stay with it.
            TextRole::Transparent if after_tool && length == at && *kind == Kind::Agent => {
                length = at + 1;
            }
            TextRole::Transparent => {}
            TextRole::Text => break,
            TextRole::Reasoning => {
                length = at + 1;
                after_tool = false;
            }
            // Two tools in a row: the first one closed the block.
            TextRole::Tool if after_tool && rule == SegmentRule::Default => break,
            TextRole::Tool => {
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
