//! The user stopped a turn and asked anew at once. Why is not guessed: the two prompts say it.

use jiff::SignedDuration;
use unspool_model::session::{Trigger, TurnState};

use super::super::history::TurnFacts;
use super::{Cost, Evidence, Finding, Found, History, Rule, cut, times};

/// A later prompt is another matter.
const AT_ONCE: SignedDuration = SignedDuration::from_mins(2);

pub fn find(history: &History) -> Found {
    let turns: Vec<&TurnFacts> =
        history.turns.iter().filter(|turn| turn.number > 0 && is_by_user(turn)).collect();
    let stopped = turns.windows(2).filter_map(|pair| match pair {
        [stopped, next] if is_stopped(stopped, next) => Some((*stopped, *next)),
        _ => None,
    });
    let stopped: Vec<(&TurnFacts, &TurnFacts)> = stopped.collect();
    let opportunities = turns.len() as u64;
    if stopped.is_empty() {
        return Found { opportunities, findings: Vec::new() };
    }
    let mut cost = Cost::default();
    let mut evidence = Vec::new();
    for (turn, next) in &stopped {
        let ran = turn.ended.zip(turn.started).map(|(end, start)| end.duration_since(start));
        let ran = ran.and_then(|ran| u64::try_from(ran.as_millis()).ok());
        let tokens = Some(turn.tokens).filter(|tokens| *tokens > 0);
        let may_include_waiting = ran.is_some();
        cost.add(Cost { duration_ms: ran, may_include_waiting, tokens, ..Cost::default() });
        let what = format!("“{}”, then “{}”", turn.prompt, next.prompt);
        evidence.push(Evidence { turn: turn.number, step: None, part: turn.last_part, what });
    }
    let finding = Finding {
        rule: Rule::Interrupted,
        signature: "interrupted".to_owned(),
        title: format!(
            "The user stopped a turn and asked anew within two minutes {}",
            times(stopped.len())
        ),
        count: stopped.len() as u64,
        opportunities,
        cost,
        evidence: cut(evidence),
    };
    Found { opportunities, findings: vec![finding] }
}

fn is_by_user(turn: &TurnFacts) -> bool {
    matches!(turn.trigger, Trigger::User | Trigger::Command)
}

fn is_stopped(turn: &TurnFacts, next: &TurnFacts) -> bool {
    let (Some(ended), Some(asked)) = (turn.ended, next.started) else { return false };
    let between = asked.duration_since(ended);
    turn.state == TurnState::Interrupted
        && next.trigger == Trigger::User
        && !next.prompt.is_empty()
        && between >= SignedDuration::ZERO
        && between <= AT_ONCE
}

#[cfg(test)]
#[path = "interrupted_tests.rs"]
mod tests;
