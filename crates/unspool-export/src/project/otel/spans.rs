//! The spans of a session, turn by turn. This file owns the builder and the spans of turns; those
//! of model calls and tool calls are in `spans/`.

mod model_call;
mod tool_call;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::{Value, json};
use unspool_model::id::Id;
use unspool_model::part::{Agents, Body, Part};
use unspool_model::session::{Session, Turn, TurnState, Usage};

use super::clock::{TimeRange, nanos};
use super::value::{Attributes, int, list, of_json};
use super::{message, provider};
use crate::project::calls::{calls, document, prompt_tokens, start_time};

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

/// The parent span of a sub-agent's turns.
pub struct ParentSpan {
    span: String,
    name: String,
    id: String,
    /// The start of the sub-agent.
    pub begin: u64,
}

/// A sub-agent that a turn started, by its own id.
pub struct Delegation {
    pub agent: String,
    pub parent_span: ParentSpan,
}

#[derive(Default)]
pub struct TurnSpans {
    pub spans: Vec<Span>,
    pub delegations: Vec<Delegation>,
}

/// Builds the spans of a session; keeps state between turns.
pub struct SpanBuilder {
    session: Session,
    trace: String,
    parent_span: Option<ParentSpan>,
    /// The last known time, used where a time is missing.
    now: u64,
    /// Input messages that are new for the next model call.
    incoming: Vec<Value>,
}

/// The turn being built.
struct TurnProgress<'a> {
    turn: &'a Turn,
    span: String,
    turn_spans: TurnSpans,
    events: Vec<Value>,
    /// Parts so far.
    parts: u64,
    /// The end of the parts so far, and the end of the turn.
    over: u64,
    end: u64,
    /// Span and start of the calls so far, by call id. A nested call finds only earlier calls, so
    /// there are no cycles.
    tools: FxHashMap<&'a str, (String, u64)>,
}

impl SpanBuilder {
    pub fn new(
        session: &Session,
        trace: String,
        parent_span: Option<ParentSpan>,
        now: u64,
    ) -> SpanBuilder {
        SpanBuilder { session: session.clone(), trace, parent_span, now, incoming: Vec::new() }
    }

    pub fn turn(&mut self, turn: &Turn) -> TurnSpans {
        let range = TimeRange::of_turn(turn, self.now);
        self.now = range.start;
        let prompt = message::prompt_message(&self.session, turn);
        self.incoming.extend(prompt.clone());
        let mut progress = TurnProgress {
            turn,
            span: self.span_id(&["turn", &turn.id.to_string()]),
            turn_spans: TurnSpans::default(),
            events: Vec::new(),
            parts: 0,
            over: 0,
            end: range.end,
            tools: FxHashMap::default(),
        };
        for (nth, call) in calls(turn).iter().enumerate() {
            self.call(&mut progress, call, nth);
        }
        let TurnProgress { span, mut turn_spans, events, .. } = progress;
        let own = self.invocation(turn, range, span, prompt, events);
        turn_spans.spans.insert(0, own);
        self.now = self.now.max(range.end);
        if turn.abandoned {
            self.incoming.clear();
        }
        turn_spans
    }

    fn span_id(&self, fields: &[&str]) -> String {
        let session = self.session.id.to_string();
        let all = ["span", &session].into_iter().chain(fields.iter().copied());
        let id = Id::derive(all.map(str::as_bytes)).bytes();
        id.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    fn span(
        &self,
        (span_id, parent): (String, Option<String>),
        kind: u8,
        (operation, subject): (&str, &str),
        range: TimeRange,
    ) -> Span {
        let name = if subject.is_empty() { "" } else { " " };
        Span {
            trace_id: self.trace.clone(),
            span_id,
            parent_span_id: parent,
            name: format!("{operation}{name}{subject}"),
            kind,
            start_time_unix_nano: range.start.to_string(),
            end_time_unix_nano: range.end.to_string(),
            attributes: Vec::new(),
            events: Vec::new(),
            status: None,
        }
    }

    /// The attributes common to all spans of an operation.
    fn attributes(&self, operation: &str, range: TimeRange) -> Attributes {
        let mut all = Attributes::default();
        all.text("gen_ai.operation.name", operation);
        all.text("gen_ai.conversation.id", &self.session.agent_session_id);
        all.text("gen_ai.agent.name", self.agent_name());
        all.maybe_text(
            "gen_ai.agent.id",
            self.parent_span.as_ref().map(|parent_span| parent_span.id.as_str()),
        );
        all.mark("unspool.time.estimated", range.estimated);
        all
    }

    fn agent_name(&self) -> &str {
        let own = self.parent_span.as_ref().map(|parent_span| parent_span.name.as_str());
        let kind = self.session.parent.as_ref().and_then(|parent| parent.kind.as_deref());
        own.filter(|name| !name.is_empty()).or(kind).unwrap_or(&self.session.agent)
    }

    fn invocation(
        &self,
        turn: &Turn,
        range: TimeRange,
        span_id: String,
        prompt: Option<Value>,
        events: Vec<Value>,
    ) -> Span {
        let parent_span = self.parent_span.as_ref().map(|parent_span| parent_span.span.clone());
        // Parts before the first prompt are not an agent invocation.
        let preamble = turn.number == 0 && turn.steps.is_empty() && prompt.is_none();
        let (operation, subject) =
            if preamble { ("preamble", "") } else { ("invoke_agent", self.agent_name()) };
        let mut span = self.span((span_id, parent_span), INTERNAL, (operation, subject), range);
        let mut all = self.attributes(operation, range);
        if preamble {
            all = Attributes::default();
            all.text("gen_ai.conversation.id", &self.session.agent_session_id);
            all.mark("unspool.time.estimated", range.estimated);
        } else {
            let model = turn.models().first().copied();
            all.text("gen_ai.provider.name", provider::of(model, &self.session.agent));
            all.maybe_text("gen_ai.request.model", model);
            usage(&mut all, turn.usage());
            if let Some(prompt) = prompt {
                all.put("gen_ai.input.messages", list([prompt]));
            }
        }
        all.text("unspool.turn.id", &turn.id.to_string());
        all.put("unspool.turn.number", int(u64::from(turn.number)));
        all.text("unspool.turn.trigger", turn.trigger.name());
        all.text("unspool.turn.state", turn.state.name());
        all.mark("unspool.turn.abandoned", turn.abandoned);
        all.mark("unspool.turn.inherited", turn.inherited);
        let failure = turn.parts.iter().rev().find_map(|part| {
            if let Body::Error(failure) = &part.body { Some(failure) } else { None }
        });
        span.status = match turn.state {
            TurnState::Running | TurnState::Unknown => None,
            TurnState::Completed => Some(json!({ "code": 1 })),
            TurnState::Failed | TurnState::Interrupted => {
                let code = failure.and_then(|failure| failure.code.as_deref());
                all.text("error.type", code.unwrap_or(turn.state.name()));
                let text = failure.map_or(turn.state.name(), |failure| failure.text.as_str());
                Some(json!({ "code": 2, "message": text }))
            }
        };
        span.attributes = all.into_values();
        span.events = events;
        span
    }

    /// A part that is in no message, as an event at its time; without a time, at the end of the
    /// part before it.
    fn event(&self, progress: &mut TurnProgress<'_>, part: &Part) {
        let turn_spans = start_time(part).and_then(nanos);
        let mut all = Attributes::default();
        all.put("unspool.part.number", int(progress.parts));
        all.put("unspool.part", of_json(&document(&self.session, &part.body)));
        all.mark("unspool.time.estimated", turn_spans.is_none());
        progress.events.push(json!({
            "timeUnixNano": turn_spans.unwrap_or(self.now.max(progress.over)).to_string(),
            "name": format!("unspool.{}", part.body.kind().name()),
            "attributes": all.into_values(),
        }));
    }
}

impl TurnProgress<'_> {
    /// Queues the sub-agents of a call as children of its span.
    fn delegate(&mut self, agents: &Agents, now: u64) {
        let started = self.tools.get(agents.call_id.as_str()).cloned();
        let (span, begin) = started.unwrap_or_else(|| (self.span.clone(), now));
        for agent in &agents.agents {
            let (name, id) = (agent.name.clone(), agent.id.clone());
            let parent_span = ParentSpan { span: span.clone(), name, id, begin };
            self.turn_spans.delegations.push(Delegation { agent: agent.id.clone(), parent_span });
        }
    }
}

fn usage(all: &mut Attributes, usage: Usage) {
    if usage == Usage::default() {
        return;
    }
    all.put("gen_ai.usage.input_tokens", int(prompt_tokens(usage)));
    all.put("gen_ai.usage.output_tokens", int(usage.output));
    all.count("gen_ai.usage.cache_read.input_tokens", usage.cache_read);
    all.count("gen_ai.usage.cache_creation.input_tokens", usage.cache_write);
    all.count("gen_ai.usage.reasoning.output_tokens", usage.reasoning);
}
