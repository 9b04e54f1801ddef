//! A turn as it was last painted: its skeleton, its layout and digests of the HTML that was sent.
//! Decides which pieces must be repainted after a change.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_export::html::dom;
use unspool_export::html::turn::fragments;
use unspool_model::change::ToolUpdate;
use unspool_model::id::{PartId, TurnId, digest};
use unspool_model::part::{Kind, Place};
use unspool_model::skeleton::{PartSkeleton, Skeleton};
use unspool_query::window::block_parts;
use unspool_view::present::{self, ItemLayout, TurnView};
use unspool_view::segment::{SegmentRange, SegmentRule};

use super::dom_op::DomOp;
use crate::pages::session::template;

/// If more pieces than this changed, pages reload instead.
const MAX_PAINTED_PIECES: usize = 300;

pub struct PaintedTurn {
    /// Without part bodies.
    pub skeleton: Skeleton,
    laid: Vec<ItemLayout>,
    /// The skeleton changed since `laid` was computed.
    pub stale: bool,
    /// Digests of the HTML that was sent, by DOM id.
    sent: FxHashMap<String, u64>,
}

/// What must be repainted of a turn.
pub struct RepaintPlan {
    pub places: Vec<Place>,
    /// DOM ids to remove.
    pub gone: Vec<String>,
}

impl PaintedTurn {
    pub fn new(skeleton: Skeleton) -> PaintedTurn {
        let laid = lay_out(&skeleton);
        PaintedTurn { skeleton, laid, stale: false, sent: FxHashMap::default() }
    }

    pub fn id(&self) -> TurnId {
        self.skeleton.turn.id
    }

    pub fn number(&self) -> u32 {
        self.skeleton.turn.number
    }

    /// Appends a newly opened part. False if it is not the last one.
    pub fn append(&mut self, part: &PartSkeleton) -> bool {
        let part_skeletons = &mut self.skeleton.parts;
        let last = part_skeletons.last().map(|last| last.place);
        if self.position(part.id).is_some() {
            return true;
        }
        if last.is_some_and(|last| last >= part.place) {
            return false;
        }
        self.skeleton.parts.push(part.clone());
        self.stale = true;
        true
    }

    /// Updates the state and the times of a tool call. The line above a group of parallel calls
    /// depends on them, so the layout is compared again.
    pub fn update_tool(&mut self, part: PartId, update: ToolUpdate) {
        if let Some(at) = self.position(part)
            && let Some(part_skeleton) = self.skeleton.parts.get_mut(at)
        {
            part_skeleton.state = update.state.or(part_skeleton.state);
            part_skeleton.started_ms = update.started_ms.or(part_skeleton.started_ms);
            part_skeleton.ended_ms = update.ended_ms.or(part_skeleton.ended_ms);
            self.stale = true;
        }
    }

    pub fn part_at(&self, place: Place) -> Option<PartId> {
        let part_skeletons = &self.skeleton.parts;
        let at = part_skeletons
            .binary_search_by_key(&place, |part_skeleton| part_skeleton.place)
            .ok()?;
        part_skeletons.get(at).map(|part_skeleton| part_skeleton.id)
    }

    /// The places of all parts that a page shows of the turn. None above the limit.
    pub fn all_places(&self) -> Option<Vec<Place>> {
        let ranges = self.laid.iter().flat_map(|laid| block_parts(laid.stretch.range()));
        let part_skeletons = ranges.filter_map(|range| self.skeleton.parts.get(range)).flatten();
        let places: Vec<Place> = part_skeletons.map(|part_skeleton| part_skeleton.place).collect();
        (places.len() <= MAX_PAINTED_PIECES).then_some(places)
    }

    pub fn position(&self, part: PartId) -> Option<usize> {
        self.skeleton.parts.iter().rposition(|part_skeleton| part_skeleton.id == part)
    }

    /// True if any of these parts may change the task list.
    pub fn plans(&self, parts: &FxHashSet<PartId>) -> bool {
        let part_skeletons = parts.iter().filter_map(|part| self.position(*part));
        let tools = part_skeletons.filter_map(|at| self.skeleton.parts.get(at)?.tool.as_deref());
        tools.into_iter().any(unspool_model::tools::is_plan)
    }

    /// Replaces the skeleton with a newer one of the same turn.
    pub fn replace(&mut self, skeleton: Skeleton) {
        self.skeleton = skeleton;
        self.stale = true;
    }

    /// What must be repainted because these parts changed, or because pieces were added, removed,
    /// moved or got another context. None above the limit.
    pub fn due(&mut self, touched: &FxHashSet<PartId>) -> Option<RepaintPlan> {
        let mut gone = Vec::new();
        let mut wanted: FxHashSet<usize> = FxHashSet::default();
        if self.stale {
            let laid = lay_out(&self.skeleton);
            let (old, new) = changed_ranges(&self.laid, &laid);
            let kept: FxHashSet<String> =
                laid.get(new.clone())?.iter().filter_map(|laid| self.element(laid)).collect();
            let before = self.laid.get(old)?;
            gone = before.iter().filter_map(|laid| self.element(laid)).collect();
            gone.retain(|id| !kept.contains(id));
            gone.iter().for_each(|id| {
                self.sent.remove(id);
            });
            wanted.extend(new);
            self.laid = laid;
            self.stale = false;
        }
        let piece_of = |at: usize| self.laid.partition_point(|laid| laid.stretch.range().end <= at);
        wanted.extend(touched.iter().filter_map(|part| self.position(*part)).map(piece_of));
        // A tree of agents is painted together with its call.
        let is_agent_tree = |at: usize| {
            let stretch = self.laid.get(at).map(|laid| &laid.stretch);
            let part_skeleton = match stretch {
                Some(SegmentRange::Part(part_skeleton)) => self.skeleton.parts.get(*part_skeleton),
                Some(SegmentRange::Block(_)) | None => None,
            };
            part_skeleton.is_some_and(|part_skeleton| part_skeleton.kind == Kind::Agent)
        };
        for at in wanted.clone() {
            if is_agent_tree(at) {
                wanted.extend(at.checked_sub(1));
            }
            if is_agent_tree(at + 1) {
                wanted.insert(at + 1);
            }
        }
        if wanted.len() > MAX_PAINTED_PIECES {
            return None;
        }
        let mut wanted: Vec<usize> = wanted.into_iter().collect();
        wanted.sort_unstable();
        let ranges = wanted.iter().filter_map(|at| self.laid.get(*at));
        let ranges = ranges.flat_map(|laid| block_parts(laid.stretch.range()));
        let part_skeletons = ranges.filter_map(|range| self.skeleton.parts.get(range));
        let places = part_skeletons.flatten().map(|part_skeleton| part_skeleton.place).collect();
        Some(RepaintPlan { places, gone })
    }

    /// The DOM id of a piece: that of its first part at the time of layout.
    fn element(&self, laid: &ItemLayout) -> Option<String> {
        Some(match &laid.stretch {
            SegmentRange::Part(_) => dom::part(laid.first),
            SegmentRange::Block(_) => dom::reasoning(laid.first),
        })
    }

    /// Appends operations for the pieces whose HTML or position changed.
    pub fn paint(&mut self, view: &TurnView, ops: &mut Vec<DomOp>) {
        let turn = dom::turn(view.id);
        let mut last_inside: Option<String> = None;
        for piece in fragments(view) {
            let after = match &piece.within {
                Some(_) => last_inside.take(),
                None => self.before(view, &piece.id),
            };
            last_inside = piece.within.as_ref().map(|_| piece.id.clone());
            // A piece that moved is sent again even if its HTML is the same.
            let place = [piece.within.as_deref(), after.as_deref()].map(Option::unwrap_or_default);
            let hash = digest(piece.html.as_bytes()) ^ digest(place.join(" ").as_bytes());
            if self.sent.insert(piece.id, hash) == Some(hash) {
                continue;
            }
            let (turn, html) = (turn.clone(), piece.html);
            ops.push(match piece.within {
                Some(within) => DomOp::Inner { within, html, after },
                None if piece.is_shell => DomOp::Shell { turn, html, after },
                None => DomOp::Piece { turn, html, after },
            });
        }
        let entry = template::outline_entry(view).into_string();
        let hash = digest(entry.as_bytes());
        if self.sent.insert("outline".to_owned(), hash) != Some(hash) {
            ops.push(DomOp::Outline { html: entry });
        }
    }

    /// The DOM id of the preceding element in the turn.
    fn before(&self, view: &TurnView, id: &str) -> Option<String> {
        let (head, user) = (dom::turn_head(view.id), dom::user(view.id));
        let lead = if view.user.is_empty() { &head } else { &user };
        if id == head {
            return None;
        }
        if id == user {
            return Some(head);
        }
        let at = self.laid.iter().rposition(|laid| self.element(laid).as_deref() == Some(id));
        let before = at.and_then(|at| at.checked_sub(1)).and_then(|at| self.laid.get(at));
        before.and_then(|laid| self.element(laid)).or_else(|| Some(lead.clone()))
    }
}

fn lay_out(skeleton: &Skeleton) -> Vec<ItemLayout> {
    present::layout(&skeleton.turn, &skeleton.parts, SegmentRule::default())
}

/// The differing middle of two layouts, without their common prefix and suffix.
fn changed_ranges(old: &[ItemLayout], new: &[ItemLayout]) -> (Range<usize>, Range<usize>) {
    let same =
        |a: &ItemLayout, b: &ItemLayout| a.first == b.first && a.context_hash == b.context_hash;
    let start = old.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
    let rest = old.len().min(new.len()) - start;
    let ends = old.iter().rev().zip(new.iter().rev()).take(rest);
    let end = ends.take_while(|(a, b)| same(a, b)).count();
    (start..old.len() - end, start..new.len() - end)
}
