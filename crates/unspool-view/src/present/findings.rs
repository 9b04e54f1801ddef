//! Findings as words and blocks: grouped by rule, each with its rate, its cost, the first part that
//! shows it and what to do next. The terminal and the page show the same words.

use unspool_model::id::SessionId;

use super::format;
use crate::block::{Block, Span, Tone};
use crate::finding::{Cost, Evidence, Finding, Rule};

/// How many findings of a rule are shown, unless all are wanted.
pub const MAX_OF_RULE: usize = 5;

/// A finding with the place that shows it.
#[derive(Clone, Debug)]
pub struct PlacedFinding<'a> {
    pub finding: &'a Finding,
    /// In how many sessions.
    pub sessions: u64,
    /// The session, its title if others are shown too, and the place there.
    pub place: Option<(SessionId, Option<&'a str>, &'a Evidence)>,
}

/// `3 of 20 calls`.
pub fn rate(finding: &Finding) -> String {
    let Finding { rule, count, opportunities, .. } = finding;
    format!("{} of {} {}", format::number(*count), format::number(*opportunities), rule.unit())
}

/// `4 calls, 1 m 3 s, about 2,300 tokens`; empty if no cost is known.
pub fn cost(cost: &Cost) -> String {
    let Cost { calls, duration_ms, may_include_waiting, tokens, tokens_are_estimated, chars } =
        *cost;
    let mut words = Vec::new();
    words.extend(
        calls.map(|calls| format::count(usize::try_from(calls).unwrap_or(usize::MAX), "call")),
    );
    // Nobody knows how much of it was a person's time.
    let up_to = if may_include_waiting { "up to " } else { "" };
    let took = duration_ms.filter(|ms| *ms > 0).map(format::duration);
    words.extend(took.map(|took| format!("{up_to}{took}")));
    let about = if tokens_are_estimated { "about " } else { "" };
    let tokens = tokens.filter(|tokens| *tokens > 0);
    words.extend(tokens.map(|tokens| format!("{about}{} tokens", format::compact(tokens))));
    // Characters are what estimated tokens are made of.
    let chars = chars.filter(|chars| *chars > 0 && tokens.is_none());
    words.extend(chars.map(|chars| format!("{} characters", format::compact(chars))));
    words.join(", ")
}

/// Where a finding is: `turn 3`, `call 3.1`.
pub fn place(evidence: &Evidence) -> String {
    match evidence.step {
        Some(step) => format!("call {}.{step}", evidence.turn),
        None => format!("turn {}", evidence.turn),
    }
}

/// The command that shows a place.
pub fn command(session: SessionId, evidence: &Evidence) -> String {
    let session: String = session.to_string().chars().take(8).collect();
    match (evidence.step, evidence.part) {
        (Some(step), _) => format!("unspool prompt {session}:{}.{step}", evidence.turn),
        (None, Some(part)) => format!("unspool show {session} --part {part}"),
        (None, None) => format!("unspool show {session} --turn {}", evidence.turn),
    }
}

/// Findings by rule. `all`: however many there are.
pub fn blocks(findings: &[PlacedFinding<'_>], all: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    for rule in Rule::ALL {
        let of_rule: Vec<&PlacedFinding<'_>> =
            findings.iter().filter(|placed| placed.finding.rule == *rule).collect();
        if of_rule.is_empty() {
            continue;
        }
        let count = Span::plain(format!("  {}", of_rule.len())).dim();
        blocks.push(Block::Heading { level: 3, spans: vec![Span::plain(rule.label()), count] });
        let shown = if all { of_rule.len() } else { MAX_OF_RULE };
        blocks.extend(of_rule.iter().take(shown).map(|placed| paragraph(placed)));
        let more = of_rule.len().saturating_sub(shown);
        if more > 0 {
            let text = format!("and {more} more: add `--rule {}`", rule.name());
            blocks.push(Block::Paragraph { spans: vec![Span::plain(text).dim()] });
        }
        let hint = Span::plain(format!("What may help: {}.", rule.hint()));
        blocks.push(Block::Paragraph { spans: vec![hint.dim()] });
    }
    blocks
}

fn paragraph(placed: &PlacedFinding<'_>) -> Block {
    let PlacedFinding { finding, sessions, place: at } = placed;
    let mut figures = rate(finding);
    if *sessions > 1 {
        figures.push_str(&format!(" in {sessions} sessions"));
    }
    let cost = cost(&finding.cost);
    if !cost.is_empty() {
        figures.push_str(" · ");
        figures.push_str(&cost);
    }
    let mut spans = vec![Span::plain(format!("● {}", finding.title)).toned(Tone::Warning)];
    spans.push(Span::plain(format!("\n{figures}")).dim());
    if let Some((session, title, evidence)) = at {
        let title = title.map(|title| format!("{}, ", format::first_line(title, 60)));
        let place = place(evidence);
        let what = format::first_line(&evidence.what, 100);
        spans.push(Span::plain(format!("\n{}{place}: {what}", title.unwrap_or_default())));
        spans.push(Span::plain(format!("\n{}", command(*session, evidence))).code());
    }
    Block::Paragraph { spans }
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
