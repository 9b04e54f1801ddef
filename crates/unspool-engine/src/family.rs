//! The sub-agents that some turns speak of, from their own sessions in the archive: joined when a
//! session is shown.

use rustc_hash::FxHashSet;
use unspool_core::id::SessionId;
use unspool_core::part::Body;
use unspool_core::present::agents::Family;
use unspool_core::session::{Transcript, Turn};
use unspool_store::contract::{Store, StoreError, Window};

/// So many agents are looked up for one look at a session.
const MOST: usize = 200;
/// An agent with more parts than this is known by its last turns.
const LONG: u64 = 2000;

/// What the archive knows of the sub-agents in these turns, nested ones included.
pub async fn family<S: Store>(
    store: &S,
    agent: &str,
    turns: &[Turn],
) -> Result<Family, StoreError> {
    let mut family = Family::default();
    let mut seen: FxHashSet<String> = FxHashSet::default();
    let mut waiting = agents_in(turns);
    while let Some(id) = waiting.pop() {
        if seen.len() >= MOST || !seen.insert(id.clone()) {
            continue;
        }
        let wanted = SessionId::of(agent, &id);
        let Some(stored) = store.find(wanted.to_string()).await?.pop() else { continue };
        if stored.summary.session.id != wanted {
            continue;
        }
        let last = u32::try_from(stored.summary.turns).unwrap_or(u32::MAX);
        let window = match stored.summary.parts > LONG {
            true => Window::From { number: last.saturating_sub(2), count: 3 },
            false => Window::All,
        };
        let turns = store.turns(stored.row, window).await?;
        waiting.extend(agents_in(&turns));
        family.add(&Transcript { session: stored.summary.session, turns });
    }
    Ok(family)
}

/// Those that have ids of their own.
fn agents_in(turns: &[Turn]) -> Vec<String> {
    let bodies = turns.iter().flat_map(|turn| &turn.parts).map(|part| &part.body);
    let agents =
        bodies.filter_map(
            |body| {
                if let Body::Agent(agents) = body { Some(&agents.agents) } else { None }
            },
        );
    agents.flatten().map(|agent| agent.id.clone()).filter(|id| !id.starts_with("temp_")).collect()
}
