//! The JSON contract: the serialisation of sessions, turns and parts for `show --json`, `list
//! --json` and the REST API. Times are RFC 3339 in UTC with milliseconds; absent values are `null`.
//! Scripts rely on these names.

mod part_document;
mod question_document;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::agent::own_call_id;
use crate::id::SessionId;
use crate::part::{Agents, Body, Reasoning, TaskItem, TaskState, Text, Tool};
use crate::price::{Prices, Spending};
use crate::session::{Session, Transcript, Turn, TurnState, Usage};
use crate::summary::Summary;

pub use part_document::PartDocument;
pub use question_document::{
    AnswerDocument, EarlierQuestionDocument, QuestionDocument, earlier_questions,
};

/// A session head with totals over its turns.
pub struct SessionDocument<'a> {
    pub summary: &'a Summary,
    pub prices: &'a Prices,
}

impl Serialize for SessionDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SessionDocument { summary, prices } = *self;
        let session = &summary.session;
        let used = |usage: Usage, spending: &Spending| UsageDocument {
            usage,
            cost_usd: spending.reported_usd(),
            partial_cost_usd: spending.partial_usd(),
            estimated_cost_usd: spending.estimated_usd(prices),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &session.id)?;
        map.serialize_entry("agent", &session.agent)?;
        map.serialize_entry("agent_session_id", &session.agent_session_id)?;
        map.serialize_entry("project", &session.facts.project)?;
        map.serialize_entry("branch", &session.facts.branch)?;
        map.serialize_entry("version", &session.facts.version)?;
        map.serialize_entry("title", &summary.title)?;
        map.serialize_entry("tags", &summary.tags)?;
        map.serialize_entry("models", &summary.models)?;
        map.serialize_entry("state", session.state.name())?;
        map.serialize_entry("completeness", summary.completeness.name())?;
        map.serialize_entry("started_at", &time(summary.started))?;
        map.serialize_entry("ended_at", &time(summary.ended))?;
        map.serialize_entry("parent", &parent(session))?;
        map.serialize_entry("forked_from", &forked_from(session))?;
        map.serialize_entry("turns", &summary.turns)?;
        map.serialize_entry("parts", &summary.parts)?;
        map.serialize_entry("tools", &summary.tools)?;
        map.serialize_entry("errors", &summary.errors)?;
        map.serialize_entry("usage", &used(summary.usage, &summary.spending))?;
        let with_agents = used(summary.usage_with_agents, &summary.spending_with_agents);
        map.serialize_entry("usage_with_agents", &with_agents)?;
        map.end()
    }
}

/// Formats a time.
pub fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| format!("{at:.3}"))
}

fn parent(session: &Session) -> Option<BTreeMap<&str, Option<String>>> {
    session.parent.as_ref().map(|parent| {
        // A sub-agent and its parent are sessions of one agent.
        let call_id = parent.call_id.as_deref().map(|id| own_call_id(&session.agent, id));
        BTreeMap::from([
            ("session", Some(parent.session.to_string())),
            ("call_id", call_id.map(str::to_owned)),
            ("kind", parent.kind.clone()),
        ])
    })
}

fn forked_from(session: &Session) -> Option<BTreeMap<&str, Option<String>>> {
    session.forked_from.as_ref().map(|from| {
        BTreeMap::from([
            ("session", Some(from.session.to_string())),
            ("turn", from.turn.map(|turn| turn.to_string())),
        ])
    })
}

/// Tokens by kind, the cost that the agent reports for all of them or for a part of them, and the
/// cost estimated from a price list.
pub struct UsageDocument {
    pub usage: Usage,
    pub cost_usd: Option<f64>,
    pub partial_cost_usd: Option<f64>,
    pub estimated_cost_usd: Option<f64>,
}

impl Serialize for UsageDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(9))?;
        map.serialize_entry("input", &self.usage.input)?;
        map.serialize_entry("output", &self.usage.output)?;
        map.serialize_entry("cache_read", &self.usage.cache_read)?;
        map.serialize_entry("cache_write", &self.usage.cache_write)?;
        map.serialize_entry("cache_write_1h", &self.usage.cache_write_1h)?;
        map.serialize_entry("reasoning", &self.usage.reasoning)?;
        map.serialize_entry("cost_usd", &self.cost_usd)?;
        map.serialize_entry("partial_cost_usd", &self.partial_cost_usd)?;
        map.serialize_entry("estimated_cost_usd", &self.estimated_cost_usd)?;
        map.end()
    }
}

/// A turn with its parts. `content` is derived from the parts, for search and model history.
pub struct TurnDocument<'a> {
    /// The agent of the session.
    pub agent: &'a str,
    pub turn: &'a Turn,
    pub prices: &'a Prices,
}

impl Serialize for TurnDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let TurnDocument { agent, turn, prices } = self;
        let user: Vec<BodyDocument<'_>> =
            turn.user.iter().map(|body| BodyDocument { agent, body }).collect();
        let parts: Vec<PartDocument<'_>> = PartDocument::all(agent, turn, &turn.parts).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &turn.id)?;
        map.serialize_entry("number", &turn.number)?;
        map.serialize_entry("trigger", turn.trigger.name())?;
        map.serialize_entry("thinking_mode", &turn.thinking_mode)?;
        map.serialize_entry("state", turn.state.name())?;
        if !turn.is_end_observed() {
            map.serialize_entry("observed", &false)?;
        }
        map.serialize_entry("abandoned", &turn.abandoned)?;
        map.serialize_entry("inherited", &turn.inherited)?;
        map.serialize_entry("started_at", &time(turn.started))?;
        map.serialize_entry("ended_at", &time(turn.ended))?;
        let used = UsageDocument {
            usage: turn.usage(),
            // Agents report a cost only for sessions.
            cost_usd: None,
            partial_cost_usd: None,
            estimated_cost_usd: turn.spending().estimated_usd(prices),
        };
        map.serialize_entry("usage", &used)?;
        map.serialize_entry("user", &user)?;
        map.serialize_entry("parts", &parts)?;
        map.serialize_entry("content", &turn.content())?;
        map.end()
    }
}

/// A part of the user's message.
pub struct BodyDocument<'a> {
    pub agent: &'a str,
    pub body: &'a Body,
}

impl Serialize for BodyDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.body.kind().name())?;
        body(&mut map, self.agent, self.body)?;
        map.end()
    }
}

fn body<M: SerializeMap>(map: &mut M, agent: &str, body: &Body) -> Result<(), M::Error> {
    let own = |id: &Option<String>| id.as_deref().map(|id| own_call_id(agent, id).to_owned());
    match body {
        Body::Text(text) => write_text(map, text)?,
        Body::Reasoning(reasoning) => write_reasoning(map, reasoning)?,
        Body::Tool(tool) => write_tool(map, agent, tool)?,
        Body::Agent(agents) => write_agents(map, agent, agents)?,
        Body::Interjection(said) => map.serialize_entry("text", &said.text)?,
        Body::TaskList(list) => {
            let items: Vec<TaskDocument<'_>> = list.items.iter().map(TaskDocument).collect();
            map.serialize_entry("items", &items)?;
        }
        Body::SkillLoad(skill) => {
            map.serialize_entry("name", &skill.name)?;
            map.serialize_entry("call_id", &own(&skill.call_id))?;
            map.serialize_entry("text", &skill.text)?;
        }
        Body::McpSnapshot(snapshot) => map.serialize_entry("servers", &snapshot.servers)?,
        Body::ContextInfo(info) => {
            map.serialize_entry("title", &info.title)?;
            map.serialize_entry("text", &info.text)?;
        }
        Body::Compaction(compaction) => {
            map.serialize_entry("trigger", &compaction.trigger)?;
            map.serialize_entry("tokens_before", &compaction.tokens_before)?;
            map.serialize_entry("tokens_after", &compaction.tokens_after)?;
            map.serialize_entry("duration_ms", &compaction.duration_ms)?;
            map.serialize_entry("summary", &compaction.summary)?;
        }
        Body::File(file) => {
            map.serialize_entry("name", &file.name)?;
            map.serialize_entry("media_type", &file.media_type)?;
            map.serialize_entry("url", &file.url)?;
            map.serialize_entry("text", &file.text)?;
        }
        Body::Source(source) => {
            map.serialize_entry("url", &source.url)?;
            map.serialize_entry("title", &source.title)?;
            map.serialize_entry("quote", &source.quote)?;
        }
        Body::Patch(patch) => {
            map.serialize_entry("path", &patch.path)?;
            map.serialize_entry("diff", &patch.diff)?;
            map.serialize_entry("call_id", &own(&patch.call_id))?;
        }
        Body::Notice(notice) => {
            map.serialize_entry("code", &notice.code)?;
            map.serialize_entry("text", &notice.text)?;
        }
        Body::Error(failure) => {
            map.serialize_entry("code", &failure.code)?;
            map.serialize_entry("status", &failure.status)?;
            map.serialize_entry("text", &failure.text)?;
        }
        Body::Data(data) => {
            map.serialize_entry("data_kind", &data.kind)?;
            map.serialize_entry("payload", &data.payload)?;
        }
    }
    Ok(())
}

fn write_text<M: SerializeMap>(map: &mut M, text: &Text) -> Result<(), M::Error> {
    map.serialize_entry("text", &text.text)?;
    if !text.citations.is_empty() {
        map.serialize_entry("citations", &text.citations)?;
    }
    Ok(())
}

fn write_reasoning<M: SerializeMap>(map: &mut M, reasoning: &Reasoning) -> Result<(), M::Error> {
    map.serialize_entry("text", &reasoning.text)?;
    map.serialize_entry("duration_ms", &reasoning.duration_ms)?;
    map.serialize_entry("redacted", &reasoning.redacted)?;
    map.serialize_entry("signature", &reasoning.signature)?;
    if let Some(signer) = &reasoning.signer {
        map.serialize_entry("signer", signer)?;
    }
    Ok(())
}

fn write_tool<M: SerializeMap>(map: &mut M, agent: &str, tool: &Tool) -> Result<(), M::Error> {
    let own = |id| own_call_id(agent, id);
    map.serialize_entry("call_id", own(&tool.call_id))?;
    map.serialize_entry("parent_call_id", &tool.parent_call_id.as_deref().map(own))?;
    map.serialize_entry("name", &tool.name)?;
    map.serialize_entry("title", &tool.title)?;
    map.serialize_entry("input", &tool.input)?;
    map.serialize_entry("state", tool.state.name())?;
    if let Some(reported) = tool.reported_state.filter(|reported| *reported != tool.state) {
        map.serialize_entry("reported_state", reported.name())?;
    }
    map.serialize_entry("output", &tool.output)?;
    map.serialize_entry("result", &tool.result)?;
    map.serialize_entry("exit_code", &tool.exit_code)?;
    map.serialize_entry("duration_ms", &tool.duration_ms)?;
    map.serialize_entry("question", &tool.question.as_ref().map(QuestionDocument))?;
    map.serialize_entry("answer", &tool.answer.as_ref().map(AnswerDocument))?;
    if let Some(earlier) = earlier_questions(tool) {
        map.serialize_entry("earlier", &earlier)?;
    }
    map.serialize_entry("provider_executed", &tool.provider_executed)
}

fn write_agents<M: SerializeMap>(
    map: &mut M,
    agent: &str,
    agents: &Agents,
) -> Result<(), M::Error> {
    map.serialize_entry("call_id", own_call_id(agent, &agents.call_id))?;
    let agents: Vec<AgentDocument<'_>> =
        agents.agents.iter().map(|sub_agent| AgentDocument { agent, sub_agent }).collect();
    map.serialize_entry("agents", &agents)
}

struct AgentDocument<'a> {
    agent: &'a str,
    sub_agent: &'a crate::part::Agent,
}

impl Serialize for AgentDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let agent = self.sub_agent;
        // An agent with a temporary id, which has its call's id in it, has no session to refer to.
        let call_id = agent.id.strip_prefix("temp_").map(|id| own_call_id(self.agent, id));
        let session = call_id.is_none().then(|| SessionId::of(self.agent, &agent.id));
        let mut map = serializer.serialize_map(None)?;
        match call_id {
            Some(call_id) => map.serialize_entry("id", &format!("temp_{call_id}"))?,
            None => map.serialize_entry("id", &agent.id)?,
        }
        map.serialize_entry("name", &agent.name)?;
        map.serialize_entry("task", &agent.task)?;
        map.serialize_entry("state", agent.state.name())?;
        map.serialize_entry("background", &agent.background)?;
        map.serialize_entry("activity", &agent.activity)?;
        map.serialize_entry("session", &session)?;
        map.end()
    }
}

struct TaskDocument<'a>(&'a TaskItem);

impl Serialize for TaskDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let state = match self.0.state {
            TaskState::Pending => "pending",
            TaskState::Running => "running",
            TaskState::Completed => "completed",
            TaskState::Cancelled => "cancelled",
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("text", &self.0.text)?;
        map.serialize_entry("state", state)?;
        map.end()
    }
}

/// Sets the state of turns read from a file without an end: it is unknown whether they still run.
/// Drops a preamble with nothing in it; one that has only model calls is kept for their tokens.
pub fn settle_as_file(transcript: &mut Transcript) {
    transcript.turns.retain(|turn| !turn.is_blank() || !turn.steps.is_empty());
    for turn in &mut transcript.turns {
        if turn.state == TurnState::Running {
            let silent = turn.number == 0;
            turn.state = if silent { TurnState::Completed } else { TurnState::Unknown };
        }
    }
}
