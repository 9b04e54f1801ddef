//! The outline of a turn: prompt, counts of errors, edits and sub-agents, and a minimap with one
//! mark per part or per group of adjacent parts.

use serde::{Deserialize, Serialize};
use unspool_model::id::PartId;
use unspool_model::landmark::Landmark;
use unspool_model::part::Kind;
use unspool_model::skeleton::PartSkeleton;

use super::format;
use crate::block::{Block, text_of};

/// Maximum number of marks on a map.
const MAX_MARKS: usize = 160;

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TurnOutline {
    pub number: u32,
    /// The first line of the prompt.
    pub said: String,
    pub errors: usize,
    pub edits: usize,
    pub agents: usize,
    pub map: Vec<Mark>,
}

/// A mark on the map: the most important part of its group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    pub part: PartId,
    pub kind: MarkKind,
    pub parts: usize,
}

/// Kinds of marks, least important first: a group takes the maximum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    Other,
    Reasoning,
    Tool,
    Text,
    Edit,
    Agent,
    Failure,
}

impl MarkKind {
    pub fn name(self) -> &'static str {
        match self {
            MarkKind::Other => "other",
            MarkKind::Reasoning => "reasoning",
            MarkKind::Tool => "tool call",
            MarkKind::Text => "text",
            MarkKind::Edit => "edit",
            MarkKind::Agent => "sub-agent",
            MarkKind::Failure => "error",
        }
    }

    fn of(part_skeleton: &PartSkeleton) -> MarkKind {
        match part_skeleton.kind {
            _ if part_skeleton.is_landmark(Landmark::Error) => MarkKind::Failure,
            _ if part_skeleton.is_landmark(Landmark::Edit) => MarkKind::Edit,
            Kind::Agent => MarkKind::Agent,
            Kind::Text => MarkKind::Text,
            Kind::Tool => MarkKind::Tool,
            Kind::Reasoning => MarkKind::Reasoning,
            Kind::Interjection
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
            | Kind::Data => MarkKind::Other,
        }
    }
}

impl TurnOutline {
    pub fn of(number: u32, user: &[Block], part_skeletons: &[PartSkeleton]) -> TurnOutline {
        let count = |is: fn(&PartSkeleton) -> bool| {
            part_skeletons.iter().filter(|part_skeleton| is(part_skeleton)).count()
        };
        TurnOutline {
            number,
            said: user.iter().find_map(first_words).unwrap_or_default(),
            errors: count(|part_skeleton| part_skeleton.is_landmark(Landmark::Error)),
            edits: count(|part_skeleton| part_skeleton.is_landmark(Landmark::Edit)),
            agents: count(|part_skeleton| part_skeleton.kind == Kind::Agent),
            map: map(part_skeletons),
        }
    }
}

fn map(part_skeletons: &[PartSkeleton]) -> Vec<Mark> {
    let parts_per_mark = part_skeletons.len().div_ceil(MAX_MARKS).max(1);
    let mark = |part_skeletons: &[PartSkeleton]| {
        let landmark = |part_skeleton: &&PartSkeleton| MarkKind::of(part_skeleton);
        // `max_by_key` returns the last maximum; `rev` makes it the first.
        let part_skeleton = part_skeletons.iter().rev().max_by_key(landmark)?;
        Some(Mark {
            part: part_skeleton.id,
            kind: MarkKind::of(part_skeleton),
            parts: part_skeletons.len(),
        })
    };
    part_skeletons.chunks(parts_per_mark).filter_map(mark).collect()
}

fn first_words(block: &Block) -> Option<String> {
    let Block::Paragraph { spans } = block else { return None };
    Some(format::first_line(&text_of(spans), 80)).filter(|said| !said.is_empty())
}
