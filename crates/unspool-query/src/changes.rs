//! What a session or one of its turns changed, sub-agents included. The skeleton of a turn says
//! which parts edit files, so only those are loaded.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use unspool_model::id::SessionId;
use unspool_model::part::{Kind, Place};
use unspool_model::skeleton::PartSkeleton;
use unspool_model::tools::Family;
use unspool_store::store::{StoreError, StoredSession, SubagentRef, View};
use unspool_view::present::changes::{Basis, Changes, ChangesBuilder, EditRef};

/// Parts loaded at once: inputs and outputs may be large.
const PARTS_PER_LOAD: usize = 64;

/// The files that a session changed, or those of one turn.
pub async fn changes<V: View>(
    view: &V,
    stored: &StoredSession,
    turn: Option<u32>,
) -> Result<Changes, StoreError> {
    let found = collect(view, stored, turn, false).await?;
    // Only a text that was read shows what an overwritten file contained. Reads are large and
    // rarely needed.
    let needs_text = |basis| matches!(basis, Basis::BeforeUnknown | Basis::NoPositions);
    match found.files.iter().any(|file| needs_text(file.basis)) {
        true => collect(view, stored, turn, true).await,
        false => Ok(found),
    }
}

/// A position up to which a session is read before one of its sub-agents is.
struct Frame {
    stored: StoredSession,
    /// The turns that are left, without their parts.
    turns: VecDeque<u32>,
    /// The parts that are left of the current turn.
    parts: VecDeque<Place>,
    turn: u32,
    subagents: Vec<SubagentRef>,
}

async fn collect<V: View>(
    view: &V,
    stored: &StoredSession,
    turn: Option<u32>,
    reads: bool,
) -> Result<Changes, StoreError> {
    let mut builder = ChangesBuilder::new(stored.summary.session.facts.project.as_deref());
    let mut seen: FxHashSet<SessionId> = FxHashSet::default();
    seen.insert(stored.summary.session.id);
    let mut frames = vec![Frame::new(view, stored.clone(), turn).await?];
    while let Some(frame) = frames.last_mut() {
        if frame.parts.is_empty() {
            let Some(next) = frame.turns.pop_front() else {
                frames.pop();
                continue;
            };
            frame.turn = next;
            if let Some(skeleton) = view.skeleton(frame.stored.row, next).await? {
                let wanted = skeleton.parts.iter().filter(|part| is_wanted(part, reads));
                frame.parts = wanted.map(|part| part.place).collect();
            }
            continue;
        }
        let (number, row) = (frame.turn, frame.stored.row);
        let agents: Vec<&SubagentRef> =
            frame.subagents.iter().filter(|agent| agent.turn == number).collect();
        let stop = |place: &Place| agents.iter().any(|agent| agent.place == *place);
        // Reads up to the next sub-agent, whose edits come before the parts behind it.
        let mut places = Vec::new();
        let mut child = None;
        while let Some(place) = frame.parts.pop_front() {
            if stop(&place) {
                child = Some(place);
                break;
            }
            places.push(place);
            if places.len() == PARTS_PER_LOAD {
                break;
            }
        }
        let children: Vec<SessionId> = agents
            .iter()
            .filter(|agent| Some(agent.place) == child)
            .map(|agent| agent.session)
            .filter(|id| seen.insert(*id))
            .collect();
        let session = frame.stored.summary.session.id;
        for part in view.parts(row, number, places).await? {
            builder.add(&part, EditRef { session, turn: number, place: part.place, part: part.id });
        }
        for stored in view.sessions_by_id(children).await?.into_iter().rev() {
            frames.push(Frame::new(view, stored, None).await?);
        }
    }
    Ok(builder.finish())
}

impl Frame {
    async fn new<V: View>(
        view: &V,
        stored: StoredSession,
        turn: Option<u32>,
    ) -> Result<Frame, StoreError> {
        let sizes = view.sizes(stored.row).await?;
        let numbers = sizes.iter().map(|size| size.number);
        let turns = numbers.filter(|number| turn.is_none_or(|turn| turn == *number)).collect();
        let subagents = view.subagents(stored.row).await?;
        Ok(Frame { stored, turns, parts: VecDeque::new(), turn: 0, subagents })
    }
}

fn is_wanted(part: &PartSkeleton, reads: bool) -> bool {
    if matches!(part.kind, Kind::Agent | Kind::Patch) {
        return true;
    }
    let family = part.tool.as_deref().and_then(Family::of);
    family.is_some_and(|family| {
        ChangesBuilder::wants(family) && (reads || family != Family::ReadFile)
    })
}
