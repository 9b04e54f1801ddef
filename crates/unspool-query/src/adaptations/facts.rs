//! What is known of an adaptation: that it is enabled, where our hook delivered it, and where it was
//! seen in prompts. One does not follow from another.

use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use unspool_model::document::time;
use unspool_model::id::SessionId;

use super::delivery::Delivery;
use super::history::Change;
use crate::findings::SessionFindings;

/// Sessions that are named; the numbers count all.
const MAX_SESSIONS: usize = 50;

/// Where an adaptation was delivered and seen.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Facts {
    /// Sessions in which our hook printed it.
    pub delivered_sessions: usize,
    pub delivered_last_at: Option<String>,
    /// Sessions in whose prompts it is.
    pub seen_sessions: usize,
    pub seen_calls: u64,
    /// Sessions that were given it and whose prompts, which are known, do not have it.
    pub delivered_not_seen: usize,
    /// Newest first; at most 50.
    pub sessions: Vec<SessionFacts>,
}

/// One session.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionFacts {
    pub session: SessionId,
    pub agent: String,
    pub title: String,
    pub started_at: Option<String>,
    pub delivered: bool,
    /// `null`: its prompts are not known.
    pub seen: Option<bool>,
    /// Model calls that were sent it, of those whose prompts are known.
    pub calls: u64,
    pub of_calls: u64,
    /// The versions of the item that were seen.
    pub versions: Vec<u64>,
    /// The text is not the one that its frame's digest says.
    pub altered: bool,
    pub first_turn: Option<u32>,
}

/// The version that an item had in a state.
fn version_in(changes: &[Change], state: u64) -> Option<u64> {
    let before = changes.iter().rev().find(|change| change.state <= state);
    before.map(|change| change.version)
}

/// Puts together what is known. `changes` are those of the item.
pub fn facts(
    id: &str,
    changes: &[Change],
    deliveries: &[Delivery],
    sessions: &[Arc<SessionFindings>],
) -> Facts {
    let mut given: FxHashMap<&str, FxHashSet<&str>> = FxHashMap::default();
    let mut last: Option<Timestamp> = None;
    for delivery in deliveries.iter().filter(|delivery| delivery.ids.iter().any(|one| one == id)) {
        let session = delivery.session.as_deref().unwrap_or_default();
        given.entry(session).or_default().insert(&delivery.agent);
        last = last.max(Some(delivery.at));
    }
    let mut facts = Facts {
        delivered_sessions: given.len(),
        delivered_last_at: time(last),
        ..Facts::default()
    };
    for session in sessions {
        let is_given = given.contains_key(session.agent_session.as_str());
        let known = &session.adaptations;
        let seen = known.items.get(id);
        if !is_given && seen.is_none() {
            continue;
        }
        let is_known = seen.is_some() || known.shows_all;
        facts.seen_sessions += usize::from(seen.is_some());
        facts.seen_calls += seen.map_or(0, |seen| seen.calls);
        facts.delivered_not_seen += usize::from(is_given && is_known && seen.is_none());
        if facts.sessions.len() >= MAX_SESSIONS {
            continue;
        }
        let states = seen.map(|seen| seen.versions.as_slice()).unwrap_or_default();
        let mut versions: Vec<u64> =
            states.iter().filter_map(|state| version_in(changes, *state)).collect();
        versions.dedup();
        facts.sessions.push(SessionFacts {
            session: session.session,
            agent: session.agent.clone(),
            title: session.title.clone(),
            started_at: time(session.started),
            delivered: is_given,
            seen: is_known.then_some(seen.is_some()),
            calls: seen.map_or(0, |seen| seen.calls),
            of_calls: known.calls,
            versions,
            altered: seen.is_some_and(|seen| seen.is_altered),
            first_turn: seen.and_then(|seen| seen.turn),
        });
    }
    facts
}
