//! Loads two sessions for a comparison, and finds sessions that one may be compared with. Turns come
//! without the content of their parts, so that a long session costs little.

use jiff::Timestamp;
use unspool_model::price::Prices;
use unspool_model::session::Session;
use unspool_store::store::{SessionFilter, StoreError, StoredSession, View};
use unspool_view::present::changes::Changes;
use unspool_view::present::compare::{ComparedSession, ComparedTurn, Comparison, compare};

use crate::changes::changes;

/// Two sessions side by side.
pub async fn comparison<V: View>(
    view: &V,
    left: &StoredSession,
    right: &StoredSession,
    prices: &Prices,
) -> Result<Comparison, StoreError> {
    let (left, right) = (load(view, left).await?, load(view, right).await?);
    Ok(compare(&left, &right, prices))
}

async fn load<V: View>(view: &V, stored: &StoredSession) -> Result<ComparedSession, StoreError> {
    let mut turns = Vec::new();
    for size in view.sizes(stored.row).await? {
        let Some(mut skeleton) = view.skeleton(stored.row, size.number).await? else { continue };
        if skeleton.parts.is_empty() && skeleton.turn.is_blank() {
            continue;
        }
        let turn = std::slice::from_mut(&mut skeleton.turn);
        stored.summary.settle(turn, Timestamp::now());
        turns.push(ComparedTurn::of(&skeleton));
    }
    let changes: Changes = changes(view, stored, None).await?.unwrap_or_default();
    Ok(ComparedSession { summary: stored.summary.clone(), turns, changes })
}

/// A session that another one may be compared with.
pub struct Candidate {
    pub stored: StoredSession,
    /// What it has in common with the other one.
    pub reason: Option<&'static str>,
}

/// So many sessions are offered.
const MAX_CANDIDATES: usize = 60;
/// So many sessions are looked at, the newest ones.
const MAX_LISTED: u64 = 2000;

/// The sessions to offer, the most alike first: branches, the same first prompt, the same project.
pub async fn candidates<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<Vec<Candidate>, StoreError> {
    let filter =
        SessionFilter { without_agents: true, limit: Some(MAX_LISTED), ..SessionFilter::default() };
    let own = &stored.summary.session;
    let project = own.facts.project.as_deref();
    let rank = |other: &StoredSession| {
        let other = &other.summary.session;
        if is_branch(other, own) || is_branch(own, other) {
            0
        } else if project.is_some() && other.facts.project.as_deref() == project {
            1
        } else {
            2
        }
    };
    let mut listed = view.sessions(filter).await?;
    listed.retain(|other| other.summary.session.id != own.id);
    // The list has the newest first, and a stable sort keeps that.
    listed.sort_by_key(rank);
    listed.truncate(MAX_CANDIDATES);
    let asked = first_prompt(view, stored).await?;
    let mut ranked = Vec::new();
    for other in listed {
        let is_asked = match &asked {
            Some(asked) => first_prompt(view, &other).await?.as_ref() == Some(asked),
            None => false,
        };
        let (place, reason) = match rank(&other) {
            0 if is_branch(&other.summary.session, own) => (0, Some("branch of this session")),
            0 => (0, Some("this session is a branch of it")),
            _ if is_asked => (1, Some("same first prompt")),
            1 => (2, Some("same project")),
            _ => (3, None),
        };
        ranked.push((place, Candidate { stored: other, reason }));
    }
    ranked.sort_by_key(|(place, _)| *place);
    Ok(ranked.into_iter().map(|(_, candidate)| candidate).collect())
}

fn is_branch(one: &Session, other: &Session) -> bool {
    one.forked_from.as_ref().is_some_and(|from| from.session == other.id)
}

/// The words of the first prompt, as far as lists have them.
async fn first_prompt<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<Option<String>, StoreError> {
    let prompts = view.prompts(stored.row).await?;
    let first = prompts.iter().find(|prompt| prompt.number > 0);
    let words = first.map(|prompt| prompt.said.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(words.filter(|words| !words.is_empty()))
}
