//! Presents a turn: its header, the user's message, and its parts in order as items.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::context::ContextUse;
use unspool_model::id::{PartId, TurnId};
use unspool_model::landmark::Landmark;
use unspool_model::note::NoteTarget;
use unspool_model::part::{Body, Kind, Part, Place};
use unspool_model::session::{Turn, Usage};
use unspool_model::skeleton::{PartSkeleton, Skeleton};

use super::agents::SubagentSessions;
use super::context::context_text;
use super::header::{INFERRED_INTERRUPTION, TurnHeader};
use super::items::item_contexts;
use super::notes::NoteView;
use super::outline::TurnOutline;
use super::{Folding, PresentOptions, body};
use crate::block::{Block, text_of};

/// The view of a turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TurnView {
    pub id: TurnId,
    pub header: TurnHeader,
    /// The user's note on the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<NoteView>,
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

impl Item {
    fn parts_mut(&mut self) -> &mut [PartView] {
        match self {
            Item::Part(view) => std::slice::from_mut(view),
            Item::Reasoning(block) => block.parts.as_mut_slice(),
        }
    }
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
    /// The id of a call that runs: an open question about it is shown here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<String>>,
    /// A call that is shown as its agents has none: they are on the agents.
    pub landmarks: Vec<Landmark>,
    /// Set on the last part of a step.
    pub step_end: Option<StepFooter>,
    /// Set on the parts of a group of parallel calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Box<GroupMember>>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub blocks: Vec<Block>,
    /// The user's note on the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<NoteView>,
}

/// A part of a group of parallel calls. Its neighbours may not be loaded, so it does not depend on
/// them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct GroupMember {
    /// `3 calls at once · 1.2 s`. Set on the first part of the group, which is shown below it.
    pub title: Option<String>,
    /// The group began inside a reasoning block, and this part follows the block.
    pub after_block: bool,
}

/// Usage of a model call, shown at its end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StepFooter {
    /// Number of the step in its turn.
    pub number: usize,
    pub model: Option<String>,
    pub usage: Usage,
    /// The size of the model's context window, if the agent reports it.
    #[serde(default)]
    pub window: Option<u64>,
}

impl StepFooter {
    /// How full the context was: `context 88.0k of 200k (44 %)`.
    pub fn context_text(&self) -> Option<String> {
        let tokens = Some(self.usage.prompt()).filter(|tokens| *tokens > 0);
        context_text(&ContextUse { tokens, window: self.window, ..ContextUse::default() })
    }
}

/// A reasoning block: closed by default (R-004-13), with its parts in order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ReasoningView {
    /// The first part of the block, loaded or not.
    pub id: PartId,
    /// Number of parts directly before the block that are not loaded.
    pub before: usize,
    /// `Reasoning (2 tool calls)`, or `Reasoning · Edit src/cache.ts +1 −2 · 1 more`.
    pub title: String,
    /// The calls inside the block.
    pub tool_calls: usize,
    /// When closed it hides its calls and agents too, and the title names them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folds_calls: bool,
    /// The first words, for the closed state.
    pub summary: String,
    /// Still growing or running.
    pub open: bool,
    pub parts: Vec<PartView>,
}

impl Item {
    /// Lets a closed reasoning block hide its calls too. Its title then names the first of them.
    fn fold_calls(&mut self) {
        let Item::Reasoning(view) = self else { return };
        let Some(first) = view.parts.iter().find_map(call_name) else { return };
        view.folds_calls = true;
        view.title = format!("Reasoning · {first}");
        if view.tool_calls > 1 {
            view.title.push_str(&format!(" · {} more", view.tool_calls - 1));
        }
    }
}

/// The head line of a call, or the name of its first agent.
fn call_name(view: &PartView) -> Option<String> {
    view.blocks.iter().find_map(|block| {
        if let Block::Card(card) = block {
            Some(format!("{} {}", card.title, text_of(&card.summary)).trim().to_owned())
        } else if let Block::Tree(tree) = block {
            tree.nodes.first().map(|node| text_of(&node.label))
        } else {
            None
        }
    })
}

/// Presents a complete turn.
pub fn turn(turn: &Turn, options: &PresentOptions) -> TurnView {
    partial_turn(turn, &Skeleton::of(turn), options)
}

/// Presents a turn of which only some parts are loaded, in order; `part_skeletons` lists all parts.
/// The view of a part does not depend on which other parts are loaded, with two exceptions: an
/// agent tree needs its call, and the summary of a reasoning block needs the block's first part.
pub fn partial_turn(
    turn: &Turn,
    part_skeletons: &[PartSkeleton],
    options: &PresentOptions,
) -> TurnView {
    let mut loaded = turn.parts.iter().peekable();
    let mut items = Vec::new();
    let mut missing = 0;
    for context in item_contexts(turn, part_skeletons, options.rule) {
        let length = context.part_skeletons.len();
        match context.item(&mut loaded) {
            None => missing += length,
            Some((mut item, after)) => {
                match &mut item {
                    Item::Part(view) => view.before = missing,
                    Item::Reasoning(view) => view.before = missing,
                }
                missing = after;
                items.push(item);
            }
        }
    }
    join_agents(&mut items, &options.subagents);
    for view in items.iter_mut().flat_map(Item::parts_mut) {
        view.note = options.notes.at(NoteTarget::Part(view.id));
        if let Some(footer) = &mut view.step_end {
            let model = footer.model.as_ref();
            footer.window = model.and_then(|model| options.context_windows.get(model).copied());
        }
    }
    let mut user = user(&turn.user);
    if let Some(project) = &options.project {
        let folder = format!("{}/", project.trim_end_matches('/'));
        shorten_paths(&mut user, &folder);
        for view in items.iter_mut().flat_map(Item::parts_mut) {
            shorten_paths(&mut view.blocks, &folder);
        }
    }
    if options.folding == Folding::All {
        items.iter_mut().for_each(Item::fold_calls);
    }
    let outline = TurnOutline::of(turn.number, &user, part_skeletons);
    let note = options.notes.at(NoteTarget::Turn(turn.id));
    let header = TurnHeader::of(turn);
    TurnView { id: turn.id, header, note, user, items, after: missing, outline }
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
    let mut blocks = body::body(&part.body);
    if !part.is_end_observed() {
        for block in &mut blocks {
            if let Block::Card(card) = block {
                card.badge.state = Some(INFERRED_INTERRUPTION.into());
            }
        }
    }
    blocks
}

pub(super) fn view(part: &Part, after_text: bool) -> PartView {
    let kind = part.body.kind();
    let bullet = kind == Kind::Text && !after_text;
    let open = part.body.is_open();
    let call = part.body.tool().filter(|_| open).map(|tool| Arc::new(tool.call_id.clone()));
    PartView {
        id: part.id,
        kind,
        place: part.place,
        open,
        bullet,
        before: 0,
        tool: PartSkeleton::of(part).tool,
        call,
        landmarks: part.landmarks(),
        step_end: None,
        group: None,
        started: part.started,
        ended: part.ended,
        blocks: self::part(part),
        note: None,
    }
}

pub(super) fn reasoning_summary_of(part: &Part) -> Option<String> {
    part.body.reasoning().map(body::reasoning_summary)
}

/// The user's message. Its text is shown as typed and is not parsed as Markdown.
fn user(bodies: &[Body]) -> Vec<Block> {
    bodies
        .iter()
        .flat_map(|own| match own.prose() {
            Some(text) => body::literal(text),
            None => body::body(own),
        })
        .collect()
}
