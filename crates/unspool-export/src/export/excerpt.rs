//! The head of some turns of a session. It says nothing of the others: the title of the session may
//! be a prompt that is not passed on.

use unspool_model::session::{Transcript, Turn};
use unspool_model::summary::Summary;
use unspool_redact::Redacted;
use unspool_store::store::StoredSession;

use crate::project::{ProjectError, TurnRange};

/// The title and the figures of these turns, of redacted turns from the first of them on: a title is
/// cut, and no rule recognises a secret that was cut. `None` if there are none.
pub fn summary(
    stored: &StoredSession,
    range: TurnRange,
    turns: impl Iterator<Item = Result<Redacted<Turn>, ProjectError>>,
) -> Result<Option<Summary>, ProjectError> {
    let mut session = stored.summary.session.clone();
    let facts = &mut session.facts;
    (facts.title, facts.cost_usd, facts.cost_tokens) = (None, None, None);
    let mut sum: Option<Summary> = None;
    for turn in turns {
        let turn = turn?.into_inner();
        if turn.number > range.last {
            break;
        }
        if turn.is_blank() {
            continue;
        }
        let transcript = Transcript { session: session.clone(), turns: vec![turn] };
        let own = transcript.summary(stored.summary.completeness, &[]);
        match &mut sum {
            Some(sum) => add(sum, own),
            None => sum = Some(own),
        }
    }
    Ok(sum.map(|sum| {
        let title = match &sum.title {
            Some(title) => format!("{title} ({range})"),
            None => range.to_string(),
        };
        Summary { title: Some(title), ..sum }
    }))
}

/// Adds a later turn.
fn add(sum: &mut Summary, turn: Summary) {
    sum.title = sum.title.take().or(turn.title);
    for model in turn.models {
        if !sum.models.contains(&model) {
            sum.models.push(model);
        }
    }
    sum.started = sum.started.into_iter().chain(turn.started).min();
    sum.ended = sum.ended.into_iter().chain(turn.ended).max();
    sum.turns += turn.turns;
    sum.parts += turn.parts;
    sum.tools = sum.tools.saturating_add(turn.tools);
    sum.errors += turn.errors;
    sum.last_turn = turn.last_turn.or(sum.last_turn);
    sum.usage.add(turn.usage);
    sum.usage_with_agents.add(turn.usage_with_agents);
    sum.spending.add(&turn.spending);
    sum.spending_with_agents.add(&turn.spending_with_agents);
}
