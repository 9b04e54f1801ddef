//! The items of a turn in order: which parts form each of them, and what else its view depends on.
//! Full, partial and incremental views all come from the one loop in `item_contexts`.

use std::hash::{Hash, Hasher};
use std::iter::Peekable;
use std::slice::Iter;

use rustc_hash::{FxHashMap, FxHasher};
use unspool_model::id::{PartId, StepId};
use unspool_model::part::{Body, Kind, Part};
use unspool_model::session::Turn;
use unspool_model::skeleton::PartSkeleton;

use super::turn::{
    GroupMember, Item, PartView, ReasoningView, StepFooter, reasoning_summary_of, view,
};
use super::{body, format};
use crate::call_groups::{CallGroup, call_groups};
use crate::segment::{SegmentRange, SegmentRule, segment_ranges};

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
    item_contexts(turn, part_skeletons, rule).filter_map(ItemContext::layout).collect()
}

/// What the view of an item depends on beside the content of its parts. `layout` hashes all of it
/// and `item` sees nothing else, so an item whose view changed has another hash.
pub(super) struct ItemContext<'a> {
    stretch: SegmentRange,
    pub(super) part_skeletons: &'a [PartSkeleton],
    /// Directly after a text.
    after_text: bool,
    thinking: bool,
    /// The calls that the item's reasoning led to: those in the item, and the rest of a group that
    /// began in it.
    calls: usize,
    /// Footers of the steps that end in the item, by index of the part.
    step_footers: Vec<(usize, StepFooter)>,
    /// The parts of the item that belong to groups of parallel calls, by index of the part.
    members: Vec<(usize, GroupMember)>,
}

pub(super) type Loaded<'a> = Peekable<Iter<'a, Part>>;

/// The items of a turn, in order.
pub(super) fn item_contexts<'a>(
    turn: &Turn,
    part_skeletons: &'a [PartSkeleton],
    rule: SegmentRule,
) -> impl Iterator<Item = ItemContext<'a>> {
    let kinds: Vec<Kind> = part_skeletons.iter().map(|part_skeleton| part_skeleton.kind).collect();
    let mut step_footers = step_footers(turn, part_skeletons);
    let thinking = turn.thinking_mode;
    let mut after_text = false;
    let mut groups = call_groups(part_skeletons).into_iter().peekable();
    // The group that the last item began inside a reasoning block.
    let mut begun_in_block: Option<usize> = None;
    segment_ranges(&kinds, thinking, rule).into_iter().map(move |stretch| {
        let range = stretch.range();
        let is_text =
            matches!(stretch, SegmentRange::Part(at) if kinds.get(at) == Some(&Kind::Text));
        let footers = range.clone().enumerate();
        let is_block = matches!(stretch, SegmentRange::Block(_));
        let mut members = Vec::new();
        let is_call = |at: &usize| kinds.get(*at) == Some(&Kind::Tool);
        let mut calls = range.clone().filter(is_call).count();
        for (nth, at) in range.clone().enumerate() {
            while groups.next_if(|group| group.range.end <= at).is_some() {}
            let Some(group) = groups.peek().filter(|group| group.range.contains(&at)) else {
                continue;
            };
            if is_block {
                begun_in_block = Some(group.range.start);
            }
            let after_block = !is_block && begun_in_block == Some(group.range.start);
            members.push((nth, member(group, at, after_block)));
            if group.range.start == at && group.range.end > range.end {
                calls += (range.end..group.range.end).filter(is_call).count();
            }
        }
        ItemContext {
            part_skeletons: part_skeletons.get(range).unwrap_or_default(),
            after_text: std::mem::replace(&mut after_text, is_text),
            thinking,
            calls,
            step_footers: footers
                .filter_map(|(nth, at)| Some((nth, step_footers.remove(&at)?)))
                .collect(),
            members,
            stretch,
        }
    })
}

fn member(group: &CallGroup, at: usize, after_block: bool) -> GroupMember {
    GroupMember { title: (group.range.start == at).then(|| group.title()), after_block }
}

impl ItemContext<'_> {
    fn layout(self) -> Option<ItemLayout> {
        let first = self.part_skeletons.first()?.id;
        let mut hasher = FxHasher::default();
        (self.after_text, self.thinking, self.calls).hash(&mut hasher);
        for part_skeleton in self.part_skeletons {
            part_skeleton.id.hash(&mut hasher);
        }
        for (nth, footer) in &self.step_footers {
            (nth, footer.number, &footer.model, footer.usage).hash(&mut hasher);
        }
        self.members.hash(&mut hasher);
        Some(ItemLayout { stretch: self.stretch, first, context_hash: hasher.finish() })
    }

    /// The view of the item and the number of unloaded parts at its end, if any part is loaded.
    pub(super) fn item(mut self, loaded: &mut Loaded<'_>) -> Option<(Item, usize)> {
        match self.stretch {
            SegmentRange::Part(_) => Some((Item::Part(self.part(loaded)?), 0)),
            SegmentRange::Block(_) => {
                self.block(loaded).map(|(view, missing)| (Item::Reasoning(view), missing))
            }
        }
    }

    fn step_footer(&mut self, nth: usize) -> Option<StepFooter> {
        let at = self.step_footers.iter().position(|(part, _)| *part == nth)?;
        Some(self.step_footers.swap_remove(at).1)
    }

    fn member(&self, nth: usize) -> Option<Box<GroupMember>> {
        let at = self.members.binary_search_by_key(&nth, |(part, _)| *part).ok()?;
        self.members.get(at).map(|(_, member)| Box::new(member.clone()))
    }

    fn part(&mut self, loaded: &mut Loaded<'_>) -> Option<PartView> {
        let wanted = self.part_skeletons.first()?.id;
        let part = loaded.next_if(|part| part.id == wanted)?;
        let mut view = view(part, self.after_text);
        // Outside thinking mode reasoning is an ordinary dim part, never a panel (C-10).
        if let Body::Reasoning(reasoning) = &part.body
            && !self.thinking
        {
            view.blocks = body::plain_reasoning(reasoning);
        }
        view.step_end = self.step_footer(0);
        view.group = self.member(0);
        Some(view)
    }

    fn block(&mut self, loaded: &mut Loaded<'_>) -> Option<(ReasoningView, usize)> {
        let part_skeletons = self.part_skeletons;
        let tool_calls =
            part_skeletons.iter().filter(|part_skeleton| part_skeleton.kind == Kind::Tool).count();
        let is_going = |part_skeleton: &PartSkeleton| {
            part_skeleton.state.is_some_and(|state| !state.is_terminal())
        };
        let mut open = part_skeletons.iter().any(is_going);
        let (mut parts, mut summary, mut missing) = (Vec::new(), None, 0);
        for (nth, part_skeleton) in part_skeletons.iter().enumerate() {
            let Some(part) = loaded.next_if(|part| part.id == part_skeleton.id) else {
                missing += 1;
                continue;
            };
            let mut view = view(part, false);
            summary = summary.or_else(|| reasoning_summary_of(part));
            open |= view.open;
            view.step_end = self.step_footer(nth);
            view.group = self.member(nth);
            view.before = std::mem::take(&mut missing);
            parts.push(view);
        }
        if parts.is_empty() {
            return None;
        }
        let view = ReasoningView {
            id: part_skeletons.first()?.id,
            before: 0,
            title: match self.calls {
                0 => "Reasoning".to_owned(),
                calls => format!("Reasoning ({})", format::count(calls, "tool call")),
            },
            tool_calls,
            folds_calls: false,
            summary: summary.unwrap_or_default(),
            open,
            parts,
        };
        Some((view, missing))
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
        Some((
            *ends.get(&step.id)?,
            StepFooter { number: nth + 1, model, usage: step.usage, window: None },
        ))
    })
    .collect()
}

#[cfg(test)]
#[path = "items_tests.rs"]
mod tests;
