//! What a session or one of its turns changed, sub-agents included. The skeleton of a turn says
//! which parts edit files, so only those are loaded.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::SessionId;
use unspool_model::part::{Kind, Place};
use unspool_model::skeleton::PartSkeleton;
use unspool_model::tools::Family;
use unspool_store::store::{StoreError, StoredSession, View};
use unspool_view::present::changes::{Basis, Changes, ChangesBuilder, EditRef};

/// Parts loaded at once: inputs and outputs may be large.
const PARTS_PER_LOAD: usize = 64;

/// The files that a session changed, or those of one turn. None if there is no such turn.
pub async fn changes<V: View>(
    view: &V,
    stored: &StoredSession,
    turn: Option<u32>,
) -> Result<Option<Changes>, StoreError> {
    if let Some(turn) = turn
        && view.head(stored.row, turn).await?.is_none()
    {
        return Ok(None);
    }
    let found = collect(view, stored, turn, false).await?;
    // Only a text that was read shows what an overwritten file contained. Reads are large and
    // rarely needed.
    let needs_text = |basis| matches!(basis, Basis::BeforeUnknown | Basis::NoPositions);
    match found.files.iter().any(|file| needs_text(file.basis)) {
        true => Ok(Some(collect(view, stored, turn, true).await?)),
        false => Ok(Some(found)),
    }
}

/// A session that is being read. The one on top of the stack is a sub-agent of the one below it.
struct Frame {
    stored: StoredSession,
    /// The turns that are left.
    turns: VecDeque<u32>,
    turn: u32,
    /// The parts that are left of this turn.
    parts: VecDeque<Place>,
    /// The sub-agents of each agent part, nested ones included.
    subagents: FxHashMap<(u32, Place), Vec<SessionId>>,
}

async fn collect<V: View>(
    view: &V,
    stored: &StoredSession,
    turn: Option<u32>,
    reads: bool,
) -> Result<Changes, StoreError> {
    let mut builder = ChangesBuilder::new(stored.summary.session.facts.project.as_deref());
    let mut frames = vec![Frame::new(view, stored.clone(), turn).await?];
    // A damaged log may name a session as its own sub-agent.
    let mut seen: FxHashSet<SessionId> = FxHashSet::default();
    seen.insert(stored.summary.session.id);
    while let Some(frame) = frames.last_mut() {
        if frame.parts.is_empty() && !frame.next_turn(view, reads).await? {
            frames.pop();
            continue;
        }
        let (places, agents) = frame.next_places();
        let (session, turn) = (frame.stored.summary.session.id, frame.turn);
        for part in view.parts(frame.stored.row, turn, places).await? {
            builder.add(&part, EditRef { session, turn, place: part.place, part: part.id });
        }
        // Those of a sub-agent are read when it comes to them.
        let is_own = |agent: &StoredSession| {
            agent.summary.session.parent.as_ref().is_none_or(|parent| parent.session == session)
        };
        for agent in view.sessions_by_id(agents).await?.into_iter().rev().filter(is_own) {
            if seen.insert(agent.summary.session.id) {
                frames.push(Frame::new(view, agent, None).await?);
            }
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
        let mut subagents: FxHashMap<(u32, Place), Vec<SessionId>> = FxHashMap::default();
        for agent in view.subagents(stored.row).await? {
            subagents.entry((agent.turn, agent.place)).or_default().push(agent.session);
        }
        Ok(Frame { stored, turns, turn: 0, parts: VecDeque::new(), subagents })
    }

    /// Goes to the next turn. False if there is none.
    async fn next_turn<V: View>(&mut self, view: &V, reads: bool) -> Result<bool, StoreError> {
        let Some(next) = self.turns.pop_front() else { return Ok(false) };
        self.turn = next;
        if let Some(skeleton) = view.skeleton(self.stored.row, next).await? {
            let wanted = skeleton.parts.iter().filter(|part| is_wanted(part, reads));
            self.parts = wanted.map(|part| part.place).collect();
        }
        Ok(true)
    }

    /// The next parts, up to those whose sub-agents have to be read before the parts behind them.
    fn next_places(&mut self) -> (Vec<Place>, Vec<SessionId>) {
        let mut places = Vec::new();
        while let Some(place) = self.parts.pop_front() {
            if let Some(agents) = self.subagents.remove(&(self.turn, place)) {
                return (places, agents);
            }
            places.push(place);
            if places.len() == PARTS_PER_LOAD {
                break;
            }
        }
        (places, Vec::new())
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
