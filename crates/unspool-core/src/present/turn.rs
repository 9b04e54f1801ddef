//! Presents a turn: its header, the user's message, and its parts in order as items.

use std::hash::{Hash, Hasher};
use std::iter::Peekable;
use std::ops::Range;
use std::slice::Iter;
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};

use super::agents::SubagentSessions;
use super::header::TurnHeader;
use super::landmark::Landmark;
use super::outline::TurnOutline;
use super::{PresentOptions, body, format};
use crate::block::Block;
use crate::id::{PartId, StepId, TurnId};
use crate::part::{Body, Kind, Part, Place, ToolState};
use crate::segment::{SegmentRange, SegmentRule, segment_ranges};
use crate::session::{Turn, Usage};
use crate::skeleton::{PartSkeleton, Skeleton};

/// The view of a turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TurnView {
    pub id: TurnId,
    pub header: TurnHeader,
    /// The user's message and attachments.
    pub user: Vec<Block>,
    /// In order. Together they hold every loaded part exactly once.
    pub items: Vec<Item>,
    /// Number of parts after the last loaded one that are not loaded.
    pub after: usize,
    pub outline: TurnOutline,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "kebab-case")]
pub enum Item {
    Part(PartView),
    Reasoning(ReasoningView),
}

/// The view of a part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PartView {
    pub id: PartId,
    pub kind: Kind,
    pub place: Place,
    /// Still growing or running.
    pub open: bool,
    /// First part of a run of text; drawn with a bullet (R-003-26).
    pub bullet: bool,
    /// Number of parts directly before it that are not loaded (inside its reasoning block, if any).
    pub before: usize,
    /// The tool that was called.
    pub tool: Option<Arc<str>>,
    /// A call that is shown as its agents has none: they are on the agents.
    pub landmarks: Vec<Landmark>,
    /// Set on the last part of a step.
    pub step_end: Option<StepFooter>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub blocks: Vec<Block>,
}

/// Usage of a model call, shown at its end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepFooter {
    /// Number of the step in its turn.
    pub number: usize,
    pub model: Option<String>,
    pub usage: Usage,
}

/// A reasoning block: closed by default (R-004-13), with its parts in order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReasoningView {
    /// The first part of the block, loaded or not.
    pub id: PartId,
    /// Number of parts directly before the block that are not loaded.
    pub before: usize,
    /// `Reasoning (2 tool calls)`.
    pub title: String,
    pub tool_calls: usize,
    /// The first words, for the closed state.
    pub summary: String,
    /// Still growing or running.
    pub open: bool,
    pub parts: Vec<PartView>,
}

/// Presents a complete turn.
pub fn turn(turn: &Turn, options: &PresentOptions) -> TurnView {
    partial_turn(turn, &Skeleton::of(turn), options)
}

/// Presents a turn of which only some parts are loaded, in order; `part_skeletons` lists all parts. The view
/// of a part does not depend on which other parts are loaded, with two exceptions: an agent tree
/// needs its call, and the summary of a reasoning block needs the block's first part.
pub fn partial_turn(
    turn: &Turn,
    part_skeletons: &[PartSkeleton],
    options: &PresentOptions,
) -> TurnView {
    let kinds: Vec<Kind> = part_skeletons.iter().map(|part_skeleton| part_skeleton.kind).collect();
    let mut loaded_parts = LoadedParts {
        turn,
        part_skeletons,
        loaded: turn.parts.iter().peekable(),
        step_footers: step_footers(turn, part_skeletons),
        missing: 0,
    };
    let mut items = Vec::new();
    let mut missing = 0;
    let mut after_text = false;
    for stretch in segment_ranges(&kinds, turn.thinking_mode, options.rule) {
        let item = match &stretch {
            SegmentRange::Part(at) => loaded_parts.part(*at, after_text).map(Item::Part),
            SegmentRange::Block(range) => loaded_parts.block(range.clone()).map(Item::Reasoning),
        };
        after_text = match stretch {
            SegmentRange::Part(at) => kinds.get(at) == Some(&Kind::Text),
            SegmentRange::Block(_) => false,
        };
        let length = stretch.range().len();
        match item {
            None => missing += length,
            Some(mut item) => {
                match &mut item {
                    Item::Part(view) => view.before = missing,
                    Item::Reasoning(view) => view.before = missing,
                }
                missing = loaded_parts.missing;
                items.push(item);
            }
        }
    }
    join_agents(&mut items, &options.subagents);
    let mut user = user(&turn.user);
    if let Some(project) = &options.project {
        let folder = format!("{}/", project.trim_end_matches('/'));
        shorten_paths(&mut user, &folder);
        for item in &mut items {
            let views = match item {
                Item::Part(view) => std::slice::from_mut(view),
                Item::Reasoning(block) => block.parts.as_mut_slice(),
            };
            views.iter_mut().for_each(|view| shorten_paths(&mut view.blocks, &folder));
        }
    }
    let outline = TurnOutline::of(turn.number, &user, part_skeletons);
    TurnView { id: turn.id, header: TurnHeader::of(turn), user, items, after: missing, outline }
}

/// The layout of one item of a turn: its parts, and a hash of the context that affects its view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemLayout {
    pub stretch: SegmentRange,
    /// The first part of the item.
    pub first: PartId,
    /// Two items with equal parts and an equal context hash have equal views.
    pub context_hash: u64,
}

/// The items of a turn without their content, for incremental painting.
pub fn layout(turn: &Turn, part_skeletons: &[PartSkeleton], rule: SegmentRule) -> Vec<ItemLayout> {
    let kinds: Vec<Kind> = part_skeletons.iter().map(|part_skeleton| part_skeleton.kind).collect();
    let step_footers = step_footers(turn, part_skeletons);
    let mut after_text = false;
    let mut layouts = Vec::new();
    for stretch in segment_ranges(&kinds, turn.thinking_mode, rule) {
        let mut hasher = FxHasher::default();
        (after_text, turn.thinking_mode).hash(&mut hasher);
        for at in stretch.range() {
            part_skeletons.get(at).map(|part_skeleton| part_skeleton.id).hash(&mut hasher);
            if let Some(footer) = step_footers.get(&at) {
                (footer.number, &footer.model, footer.usage).hash(&mut hasher);
            }
        }
        after_text =
            matches!(stretch, SegmentRange::Part(at) if kinds.get(at) == Some(&Kind::Text));
        let first = part_skeletons.get(stretch.range().start).map(|part_skeleton| part_skeleton.id);
        let context_hash = hasher.finish();
        layouts.extend(first.map(|first| ItemLayout { stretch, first, context_hash }));
    }
    layouts
}

/// Iterates over the loaded parts.
struct LoadedParts<'a> {
    turn: &'a Turn,
    part_skeletons: &'a [PartSkeleton],
    loaded: Peekable<Iter<'a, Part>>,
    /// Step footers by index of the last part of each step.
    step_footers: FxHashMap<usize, StepFooter>,
    /// Number of unloaded parts at the end of the item visited last.
    missing: usize,
}

impl<'a> LoadedParts<'a> {
    fn next(&mut self, at: usize) -> Option<&'a Part> {
        let wanted = self.part_skeletons.get(at)?.id;
        self.loaded.next_if(|part| part.id == wanted)
    }

    /// The part at this index, if it is loaded.
    fn part(&mut self, at: usize, after_text: bool) -> Option<PartView> {
        let thinking = self.turn.thinking_mode;
        let footer = self.step_footers.remove(&at);
        let part = self.next(at)?;
        let mut view = view(part, after_text);
        // Outside thinking mode reasoning is an ordinary dim part, never a panel (C-10).
        if let Body::Reasoning(reasoning) = &part.body
            && !thinking
        {
            view.blocks = body::plain_reasoning(reasoning);
        }
        view.step_end = footer;
        self.missing = 0;
        Some(view)
    }

    /// The reasoning block of these parts, if any of them is loaded.
    fn block(&mut self, range: Range<usize>) -> Option<ReasoningView> {
        let part_skeletons = self.part_skeletons.get(range.clone())?;
        let tool_calls =
            part_skeletons.iter().filter(|part_skeleton| part_skeleton.kind == Kind::Tool).count();
        let is_going = |part_skeleton: &PartSkeleton| {
            part_skeleton.state.is_some_and(|state| !state.is_terminal())
        };
        let mut open = part_skeletons.iter().any(is_going);
        let (mut parts, mut summary, mut missing) = (Vec::new(), None, 0);
        for at in range {
            let footer = self.step_footers.remove(&at);
            let Some(part) = self.next(at) else {
                missing += 1;
                continue;
            };
            let mut view = view(part, false);
            summary = summary.or_else(|| reasoning_summary_of(part));
            open |= view.open;
            view.step_end = footer;
            view.before = std::mem::take(&mut missing);
            parts.push(view);
        }
        if parts.is_empty() {
            return None;
        }
        self.missing = missing;
        Some(ReasoningView {
            id: part_skeletons.first()?.id,
            before: 0,
            title: format!("Reasoning ({})", format::count(tool_calls, "tool call")),
            tool_calls,
            summary: summary.unwrap_or_default(),
            open,
            parts,
        })
    }
}

/// Usage of each step, by index of its last part.
fn step_footers(turn: &Turn, part_skeletons: &[PartSkeleton]) -> FxHashMap<usize, StepFooter> {
    let mut ends: FxHashMap<StepId, usize> = FxHashMap::default();
    for (at, part_skeleton) in part_skeletons.iter().enumerate() {
        ends.extend(part_skeleton.step.map(|step| (step, at)));
    }
    let used = turn.steps.iter().enumerate().filter(|(_, step)| step.usage.total() > 0);
    used.filter_map(|(nth, step)| {
        let model = step.model.as_deref().map(str::to_owned);
        Some((*ends.get(&step.id)?, StepFooter { number: nth + 1, model, usage: step.usage }))
    })
    .collect()
}

/// Merges each agent tree with the call directly before it.
fn join_agents(items: &mut [Item], subagents: &SubagentSessions) {
    let mut before: Option<&mut PartView> = None;
    for item in items {
        match item {
            Item::Reasoning(block) => {
                before = None;
                let mut before = None;
                for view in &mut block.parts {
                    join_view(&mut before, view, subagents);
                }
            }
            Item::Part(view) => join_view(&mut before, view, subagents),
        }
    }
}

fn join_view<'a>(
    before: &mut Option<&'a mut PartView>,
    view: &'a mut PartView,
    subagents: &SubagentSessions,
) {
    if view.kind == Kind::Agent {
        subagents.join(before.take(), view);
    }
    *before = Some(view);
}

/// Makes paths in card heads and file names relative to the project folder.
fn shorten_paths(blocks: &mut [Block], folder: &str) {
    for block in blocks {
        if let Block::Card(card) = block {
            for span in card.summary.iter_mut().filter(|span| span.style.path) {
                span.text = span.text.replacen(folder, "", 1);
            }
            shorten_paths(&mut card.body, folder);
        } else if let Block::File(file) = block
            && let Some(name) = &mut file.name
            && let Some(inside) = name.strip_prefix(folder)
        {
            *name = inside.to_owned();
        }
    }
}

/// The blocks of one part, independent of its context.
pub fn part(part: &Part) -> Vec<Block> {
    body::body(&part.body)
}

fn view(part: &Part, after_text: bool) -> PartView {
    let open = match &part.body {
        Body::Text(text) => text.open,
        Body::Reasoning(reasoning) => reasoning.open,
        Body::Tool(tool) => match tool.state {
            ToolState::Pending | ToolState::Running => true,
            ToolState::Completed
            | ToolState::Failed
            | ToolState::Denied
            | ToolState::Interrupted => false,
        },
        Body::Agent(agents) => agents.agents.iter().any(|agent| !agent.state.is_terminal()),
        Body::Interjection(_)
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
        | Body::Data(_) => false,
    };
    let kind = part.body.kind();
    let bullet = kind == Kind::Text && !after_text;
    PartView {
        id: part.id,
        kind,
        place: part.place,
        open,
        bullet,
        before: 0,
        tool: PartSkeleton::of(part).tool,
        landmarks: part.landmarks(),
        step_end: None,
        started: part.started,
        ended: part.ended,
        blocks: self::part(part),
    }
}

fn reasoning_summary_of(part: &Part) -> Option<String> {
    match &part.body {
        Body::Reasoning(reasoning) => Some(body::reasoning_summary(reasoning)),
        Body::Text(_)
        | Body::Tool(_)
        | Body::Agent(_)
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
        | Body::Data(_) => None,
    }
}

/// The user's message. Its text is shown as typed and is not parsed as Markdown.
fn user(bodies: &[Body]) -> Vec<Block> {
    bodies
        .iter()
        .flat_map(|own| match own {
            Body::Text(text) => body::literal(&text.text),
            Body::Reasoning(_)
            | Body::Tool(_)
            | Body::Agent(_)
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
            | Body::Data(_) => body::body(own),
        })
        .collect()
}
