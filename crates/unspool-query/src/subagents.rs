//! Loads the sub-agents that turns refer to from their own sessions in the archive. `present` joins
//! them to the session that started them.

use unspool_model::id::SessionId;
use unspool_model::session::{Transcript, Turn};
use unspool_store::store::{StoreError, TurnWindow, View};
use unspool_view::present::agents::{SubagentLookup, SubagentSessions};

/// Of an agent with more parts than this only the last three turns are loaded.
const MAX_WHOLE_PARTS: u64 = 2000;

/// Finds the stored sessions of the sub-agents in these turns, nested ones included.
pub async fn subagents<V: View>(
    view: &V,
    agent: &str,
    turns: &[Turn],
) -> Result<SubagentSessions, StoreError> {
    let mut lookup = SubagentLookup::among(turns);
    while let Some(id) = lookup.next_id() {
        let wanted = SessionId::of(agent, &id);
        let Some(stored) = view.session(wanted).await? else { continue };
        let last = u32::try_from(stored.summary.turns).unwrap_or(u32::MAX);
        let window = match stored.summary.parts > MAX_WHOLE_PARTS {
            true => TurnWindow::From { number: last.saturating_sub(2), count: 3 },
            false => TurnWindow::All,
        };
        let turns = view.turns(stored.row, window).await?;
        lookup.add(&Transcript { session: stored.summary.session, turns });
    }
    Ok(lookup.subagents())
}
