//! The presenter (law 6): turns sessions, turns and parts, live or stored, into blocks. It is the
//! only code that decides what is visible. Painters draw the blocks it returns and never read
//! parts.

pub mod activity;
pub mod agents;
mod alignment;
pub mod ansi;
pub mod blame;
mod body;
pub mod budget;
pub mod burn_rate;
pub mod changes;
pub mod compare;
pub mod context;
pub mod diff;
pub mod ending;
pub mod findings;
pub mod format;
mod header;
mod items;
pub mod json;
pub mod markdown;
pub mod notes;
pub mod outline;
pub mod prompt;
pub mod question_subject;
pub mod tools;

mod turn;

use std::collections::BTreeMap;

use agents::SubagentSessions;
use jiff::Timestamp;
use notes::NoteViews;
use serde::{Deserialize, Serialize};
use unspool_model::agent::AgentTraits;
use unspool_model::part::Body;
use unspool_model::price::{Cost, Prices, Spending};
use unspool_model::session::{Parent, Session, Usage};
use unspool_model::summary::{Completeness, Summary};

pub use body::body;
pub use header::{HeaderFact, HeaderFactKind, TurnHeader};
pub use items::{ItemLayout, layout};
pub use turn::{
    GroupMember, Item, PartView, ReasoningView, StepFooter, TurnView, part, partial_turn, turn,
};

use crate::block::{Block, Field, Span, text_of};
use crate::segment::SegmentRule;

/// The title of a session without a prompt.
pub const UNTITLED: &str = "New session";

/// Options of the presenter.
#[derive(Clone, Default, Debug)]
pub struct PresentOptions {
    /// How parts are grouped into reasoning blocks.
    pub rule: SegmentRule,
    /// The project folder. Paths inside it are shown relative to it.
    pub project: Option<String>,
    /// Statistics of the sub-agents' own sessions, as far as they were found.
    pub subagents: SubagentSessions,
    pub folding: Folding,
    /// The user's notes on turns and parts.
    pub notes: NoteViews,
    /// The sizes of the context windows of models, as far as the agent reports them.
    pub context_windows: BTreeMap<String, u64>,
}

/// What a closed reasoning block hides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Folding {
    /// Its words. Calls and agents stay visible as lines (C-23).
    #[default]
    Words,
    /// Its calls and agents too.
    All,
}

impl PresentOptions {
    /// The default options for a session.
    pub fn of(session: &Session) -> PresentOptions {
        PresentOptions {
            project: session.facts.project.clone(),
            context_windows: session.facts.context_windows.clone(),
            ..PresentOptions::default()
        }
    }
}

/// The head line of a call's card, in plain text. None for parts that have no card.
pub fn card_summary(body: &Body) -> Option<String> {
    self::body(body).iter().find_map(|block| {
        if let Block::Card(card) = block { Some(text_of(&card.summary)) } else { None }
    })
}

/// Milliseconds between two timestamps; `None` if they run backwards (clocks lie).
pub(crate) fn elapsed(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<u64> {
    u64::try_from(to?.as_millisecond() - from?.as_millisecond()).ok()
}

/// The head of a session.
pub fn session(summary: &Summary, prices: &Prices) -> Vec<Block> {
    let (session, usage) = (&summary.session, summary.usage);
    let facts = &session.facts;
    let title = summary.title.clone().unwrap_or_else(|| session.agent_session_id.clone());
    let title = format::first_line(&title, 200);
    let mut fields = Vec::new();
    let mut field = |name: &str, text: Option<String>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            fields.push(Field::new(name, vec![Span::plain(text)]));
        }
    };
    let version = facts.version.as_ref().map(|version| format!(" {version}"));
    field("agent", Some(format!("{}{}", session.agent, version.unwrap_or_default())));
    field("session", Some(format!("{}  {}", session.id, session.agent_session_id)));
    field("project", facts.project.clone());
    field("branch", facts.branch.clone());
    field("models", Some(summary.models.join(", ")));
    field("state", Some(session.state.name().to_owned()));
    field("record", record_text(summary));
    let (started, ended) = (summary.started, summary.ended);
    field("started", started.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()));
    field("duration", elapsed(started, ended).map(format::duration));
    field("tokens", Some(usage_text(usage)));
    let all = Some(summary.usage_with_agents).filter(|all| *all != usage);
    field("with sub-agents", all.map(usage_text));
    field("tags", Some(summary.tags.join(", ")));
    let cost = cost_text(&summary.spending_with_agents, prices);
    // An agent may report one sum for the session and its sub-agents.
    let usd = |spending: &Spending| spending.cost(prices).map(|cost| format!("{:.4}", cost.usd()));
    let all_usd = usd(&summary.spending_with_agents);
    let repeats = all_usd.is_some() && usd(&summary.spending) == all_usd;
    let own =
        cost_text(&summary.spending, prices).filter(|own| !repeats && Some(own) != cost.as_ref());
    field("cost", cost);
    field("without sub-agents", own);
    field("started by", session.parent.as_ref().map(started_by));
    field("forked from", session.forked_from.as_ref().map(|from| from.session.to_string()));
    vec![Block::Heading { level: 1, spans: vec![Span::plain(title)] }, Block::Fields { fields }]
}

/// How complete the record of a session is, and why. None if nothing is missing.
fn record_text(summary: &Summary) -> Option<String> {
    let grade = summary.completeness;
    let reason = match grade {
        Completeness::Full => return None,
        Completeness::Partial => AgentTraits::of(&summary.session.agent)
            .log_detail
            .loss()
            .unwrap_or("only hooks report it, or some of its records are unreadable"),
        Completeness::FinalOnly => "prompts and results, and nothing in between",
        Completeness::Failed => "none of its records could be read",
    };
    Some(format!("{}: {reason}", grade.name()))
}

/// A session's cost for lists: the reported cost, else the estimate marked with `~`.
pub fn short_cost(spending: &Spending, prices: &Prices) -> String {
    let cost = spending.cost(prices);
    cost.map(|cost| format::cost(cost.usd(), cost.is_estimated())).unwrap_or_default()
}

/// The reported cost (`$0.1054`) and the estimate by list price (`$0.1061 estimated`). If the
/// estimate takes the place of a reported cost, the text says why.
fn cost_text(spending: &Spending, prices: &Prices) -> Option<String> {
    let dollars = |cost: f64| format!("${cost:.4}");
    match spending.cost(prices) {
        Some(Cost::Reported(reported)) => {
            let reported = dollars(reported);
            match spending.estimated_usd(prices).map(dollars) {
                Some(estimated) if estimated != reported => {
                    Some(format!("{reported} · {estimated} estimated"))
                }
                Some(_) | None => Some(reported),
            }
        }
        Some(Cost::Estimated(cost)) => Some(format!("{} estimated", dollars(cost))),
        Some(Cost::EstimatedInstead(cost)) => {
            let partial = spending.partial_usd().map(dollars).unwrap_or_default();
            Some(format!("~{} estimated: {PARTIAL_SUM} ({partial})", dollars(cost)))
        }
        // No price is known: what the agent reports is all there is.
        None => {
            spending.partial_usd().map(|cost| format!("{} at least: {PARTIAL_SUM}", dollars(cost)))
        }
    }
}

/// Why an estimate takes the place of the cost that the agent reports.
pub const PARTIAL_SUM: &str = "the agent's own sum covers only a part of the session";

/// `kgh9ahenqqr61s4kbqq1 as general-purpose`
fn started_by(parent: &Parent) -> String {
    match &parent.kind {
        Some(kind) => format!("{} as {kind}", parent.session),
        None => parent.session.to_string(),
    }
}

/// `1,729 · 12 in · 417 out · 1,200 cached · 100 written to the cache`; empty when nothing was
/// counted.
pub fn usage_text(usage: Usage) -> String {
    let total = usage.total();
    let parts = [
        (usage.input, "in"),
        (usage.output, "out"),
        (usage.reasoning, "reasoning"),
        (usage.cache_read, "cached"),
        (usage.cache_write, "written to the cache"),
    ];
    let mut text = if total == 0 { String::new() } else { format::number(total) };
    for (count, noun) in parts {
        if count > 0 {
            text.push_str(&format!(" · {} {noun}", format::number(count)));
        }
    }
    text
}

#[cfg(test)]
#[path = "present/present_tests.rs"]
mod tests;
