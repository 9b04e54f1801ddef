//! The one presenter (law 6): what is shown of a session, a turn and a part, as blocks. It reads
//! parts, live or stored alike, and everything that a person ever sees comes through here;
//! painters draw what it returns and never look at a part themselves.

pub mod agents;
pub mod ansi;
mod body;
pub mod diff;
pub mod format;
pub mod json;
pub mod markdown;
pub mod outline;
pub mod tools;

use jiff::Timestamp;
use serde::Serialize;

pub use body::body;

use agents::Family;

use crate::block::{Block, Field, Span, Tone};
use crate::id::{PartId, TurnId};
use crate::part::{Body, Kind, Part, Place, ToolState};
use crate::price::{Prices, Spending};
use crate::segment::{Piece, Rule, segment};
use crate::session::{Parent, Session, Trigger, Turn, TurnState, Usage};
use crate::summary::Summary;

/// What a reader chose.
#[derive(Clone, Default, Debug)]
pub struct Options {
    /// How reasoning blocks are cut.
    pub rule: Rule,
    /// The project's folder. Paths inside it are shown from there.
    pub project: Option<String>,
    /// The sub-agents' own sessions, as far as they are known.
    pub family: Family,
}

impl Options {
    /// What suits a session, where its reader chose nothing.
    pub fn of(session: &Session) -> Options {
        Options { project: session.facts.project.clone(), ..Options::default() }
    }
}

/// A turn as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TurnView {
    pub id: TurnId,
    pub header: TurnHeader,
    /// The user's own words and attachments.
    pub user: Vec<Block>,
    /// In their order: joined, they hold every part of the turn once.
    pub items: Vec<Item>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TurnHeader {
    pub number: u32,
    pub trigger: Trigger,
    pub state: TurnState,
    pub tone: Tone,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub duration_ms: Option<u64>,
    pub usage: Usage,
    /// Models in the order in which they were first used.
    pub models: Vec<String>,
    pub abandoned: bool,
    /// It happened in the session that this one branched off.
    pub inherited: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "item", rename_all = "kebab-case")]
pub enum Item {
    Part(PartView),
    Reasoning(ReasoningView),
}

/// One part as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PartView {
    pub id: PartId,
    pub kind: Kind,
    pub place: Place,
    /// Still growing or running.
    pub open: bool,
    /// Begins a stretch of text and carries the bullet (R-003-26).
    pub bullet: bool,
    pub blocks: Vec<Block>,
}

/// A reasoning block: closed by default (R-004-13), with its parts in order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReasoningView {
    /// `Reasoning (2 tool calls)`.
    pub title: String,
    pub tool_calls: usize,
    /// The first words, for the closed state.
    pub summary: String,
    /// Still growing or running.
    pub open: bool,
    pub parts: Vec<PartView>,
}

/// What is shown of a turn.
pub fn turn(turn: &Turn, options: &Options) -> TurnView {
    let pieces = segment(&turn.parts, turn.thinking_mode, options.rule);
    let mut after_text = false;
    let mut items = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        match piece {
            Piece::Block(parts) => {
                let tool_calls = piece.tool_count();
                let views: Vec<PartView> = parts.iter().map(|part| view(part, false)).collect();
                after_text = false;
                items.push(Item::Reasoning(ReasoningView {
                    title: format!("Reasoning ({})", format::count(tool_calls, "tool call")),
                    tool_calls,
                    summary: parts.iter().find_map(|part| first_thought(part)).unwrap_or_default(),
                    open: views.iter().any(|view| view.open),
                    parts: views,
                }));
            }
            Piece::Part(part) => {
                let mut view = view(part, after_text);
                // Outside thinking mode reasoning is an ordinary dim part, never a panel (C-10).
                if let Body::Reasoning(reasoning) = &part.body
                    && !turn.thinking_mode
                {
                    view.blocks = body::plain_reasoning(reasoning);
                }
                after_text = view.kind == Kind::Text;
                items.push(Item::Part(view));
            }
        }
    }
    join_agents(&mut items, &options.family);
    let mut user = user(&turn.user);
    if let Some(project) = &options.project {
        let folder = format!("{}/", project.trim_end_matches('/'));
        shorten_paths(&mut user, &folder);
        for item in &mut items {
            let views = match item {
                Item::Part(view) => std::slice::from_mut(view),
                Item::Reasoning(block) => block.parts.as_mut_slice(),
            };
            views.iter_mut().for_each(|view| shorten_paths(&mut view.blocks, &folder));
        }
    }
    TurnView { id: turn.id, header: header(turn), user, items }
}

/// Each tree of agents with the call that stands before it.
fn join_agents(items: &mut [Item], family: &Family) {
    let mut before: Option<&mut PartView> = None;
    for item in items {
        match item {
            Item::Reasoning(block) => {
                before = None;
                let mut before = None;
                for view in &mut block.parts {
                    join_view(&mut before, view, family);
                }
            }
            Item::Part(view) => join_view(&mut before, view, family),
        }
    }
}

fn join_view<'a>(before: &mut Option<&'a mut PartView>, view: &'a mut PartView, family: &Family) {
    if view.kind == Kind::Agent {
        family.join(before.take(), view);
    }
    *before = Some(view);
}

/// Takes the project's folder off the paths in heads of cards and in names of files.
fn shorten_paths(blocks: &mut [Block], folder: &str) {
    for block in blocks {
        if let Block::Card(card) = block {
            for span in card.summary.iter_mut().filter(|span| span.look.path) {
                span.text = span.text.replacen(folder, "", 1);
            }
            shorten_paths(&mut card.body, folder);
        } else if let Block::File(file) = block
            && let Some(name) = &mut file.name
            && let Some(inside) = name.strip_prefix(folder)
        {
            *name = inside.to_owned();
        }
    }
}

/// What is shown of one part, wherever it stands.
pub fn part(part: &Part) -> Vec<Block> {
    body(&part.body)
}

fn view(part: &Part, after_text: bool) -> PartView {
    let open = match &part.body {
        Body::Text(text) => text.open,
        Body::Reasoning(reasoning) => reasoning.open,
        Body::Tool(tool) => match tool.state {
            ToolState::Pending | ToolState::Running => true,
            ToolState::Completed
            | ToolState::Failed
            | ToolState::Denied
            | ToolState::Interrupted => false,
        },
        Body::Agent(agents) => agents.agents.iter().any(|agent| !agent.state.is_terminal()),
        Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => false,
    };
    let kind = part.body.kind();
    let bullet = kind == Kind::Text && !after_text;
    PartView { id: part.id, kind, place: part.place, open, bullet, blocks: self::part(part) }
}

fn first_thought(part: &Part) -> Option<String> {
    match &part.body {
        Body::Reasoning(reasoning) => Some(body::thought(reasoning)),
        Body::Text(_)
        | Body::Tool(_)
        | Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => None,
    }
}

fn header(turn: &Turn) -> TurnHeader {
    let models = turn.models().into_iter().map(str::to_owned).collect();
    TurnHeader {
        number: turn.number,
        trigger: turn.trigger,
        state: turn.state,
        tone: match turn.state {
            TurnState::Running => Tone::Running,
            TurnState::Completed => Tone::Ok,
            TurnState::Failed => Tone::Failed,
            TurnState::Interrupted => Tone::Interrupted,
            TurnState::Unknown => Tone::Muted,
        },
        started: turn.started,
        ended: turn.ended,
        duration_ms: elapsed(turn.started, turn.ended),
        usage: turn.usage(),
        models,
        abandoned: turn.abandoned,
        inherited: turn.inherited,
    }
}

/// Time between two clocks' readings; nothing where they run backward (clocks lie).
fn elapsed(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<u64> {
    u64::try_from(to?.as_millisecond() - from?.as_millisecond()).ok()
}

/// The user's own parts. Their words stand as they were typed: no Markdown is read into them.
fn user(bodies: &[Body]) -> Vec<Block> {
    bodies
        .iter()
        .flat_map(|own| match own {
            Body::Text(text) => body::literal(&text.text),
            Body::Reasoning(_)
            | Body::Tool(_)
            | Body::Agent(_)
            | Body::Interjection(_)
            | Body::TaskList(_)
            | Body::SkillLoad(_)
            | Body::McpSnapshot(_)
            | Body::ContextInfo(_)
            | Body::Compaction(_)
            | Body::File(_)
            | Body::Source(_)
            | Body::Patch(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => body(own),
        })
        .collect()
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
    let (started, ended) = (summary.started, summary.ended);
    field("started", started.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()));
    field("duration", elapsed(started, ended).map(format::duration));
    field("tokens", Some(usage_text(usage)));
    let all = Some(summary.usage_with_agents).filter(|all| *all != usage);
    field("with agents", all.map(usage_text));
    field("tags", Some(summary.tags.join(", ")));
    field("cost", cost_text(&summary.spending_with_agents, prices));
    field("started by", session.parent.as_ref().map(started_by));
    field("forked from", session.forked_from.as_ref().map(|from| from.session.to_string()));
    vec![Block::Heading { level: 1, spans: vec![Span::plain(title)] }, Block::Fields { fields }]
}

/// A session's cost for a list: what the agent says, else what the prices say, with a mark.
pub fn short_cost(spending: &Spending, prices: &Prices) -> String {
    let reported = spending.reported_usd.map(|cost| format!("${cost:.2}"));
    let estimated = || spending.estimated_usd(prices).map(|cost| format!("~${cost:.2}"));
    reported.or_else(estimated).unwrap_or_default()
}

/// `$0.1054`, as the agent says it, and `$0.1061 estimated` by the list of prices.
fn cost_text(spending: &Spending, prices: &Prices) -> Option<String> {
    let dollars = |cost: f64| format!("${cost:.4}");
    let reported = spending.reported_usd.map(dollars);
    let estimated = spending.estimated_usd(prices).map(dollars);
    match (reported, estimated) {
        (Some(reported), Some(estimated)) if reported != estimated => {
            Some(format!("{reported} · {estimated} estimated"))
        }
        (Some(reported), _) => Some(reported),
        (None, estimated) => estimated.map(|cost| format!("{cost} estimated")),
    }
}

/// `kgh9ahenqqr61s4kbqq1 as general-purpose`
fn started_by(parent: &Parent) -> String {
    match &parent.kind {
        Some(kind) => format!("{} as {kind}", parent.session),
        None => parent.session.to_string(),
    }
}

/// `1,729 · 12 in · 417 out · 1,300 cached`; empty when nothing was counted.
fn usage_text(usage: Usage) -> String {
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    let total = usage.total();
    let parts = [
        (usage.input, "in"),
        (usage.output, "out"),
        (usage.reasoning, "reasoning"),
        (cached, "cached"),
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
#[path = "present_tests.rs"]
mod tests;
