//! The steps of a turn: the prompt, one agent step per model call, and user or system steps for
//! other parts, in order. If such a step interrupts a call, the call continues in another agent
//! step marked `continues`.

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};
use unspool_model::agent::own_call_id;
use unspool_model::document::{AnswerDocument, QuestionDocument, earlier_questions};
use unspool_model::id::SessionId;
use unspool_model::json::Json;
use unspool_model::part::{Agents, Body, Part, Reasoning, Text, Tool, ToolState};
use unspool_model::price::{Prices, Spending};
use unspool_model::session::{Session, Turn};

use super::schema::{Extra, Metrics, Reference, Step, ToolCall, ToolResult};
use crate::project::calls::{self, ModelCall, calls, document, prompt_role, start_time};

/// Separates the texts, or the reasoning parts, of one step.
const SEPARATOR: &str = "\n\n";

/// The ids of the sub-agents in a turn.
pub fn agent_ids(turn: &Turn) -> impl Iterator<Item = &str> {
    let recorded = turn.parts.iter().filter_map(|part| {
        if let Body::Agent(agents) = &part.body { Some(&agents.agents) } else { None }
    });
    recorded.flatten().map(|agent| agent.id.as_str())
}

/// The steps of a turn, not yet numbered. `held` are the sub-agents whose trajectories can be
/// referenced.
pub fn of_turn(
    session: &Session,
    turn: &Turn,
    held: &FxHashSet<String>,
    prices: &Prices,
) -> Vec<Step> {
    let mut builder = StepBuilder { session, turn, held, prices, steps: Vec::new(), open: None };
    builder.push_prompt();
    for call in calls(turn) {
        builder.call(&call);
    }
    builder.close();
    let mut steps = builder.steps;
    if let Some(first) = steps.first_mut() {
        first.extra.unspool.trigger = Some(turn.trigger.name());
        first.extra.unspool.turn_state = Some(turn.state.name());
    }
    steps
}

struct StepBuilder<'a> {
    session: &'a Session,
    turn: &'a Turn,
    held: &'a FxHashSet<String>,
    prices: &'a Prices,
    steps: Vec<Step>,
    /// The agent step that collects parts.
    open: Option<Step>,
}

impl StepBuilder<'_> {
    fn step(&self, source: &'static str, at: Option<Timestamp>) -> Step {
        let turn = self.turn;
        let extra =
            Extra { turn: Some(turn.number), abandoned: turn.abandoned, ..Extra::default() };
        let mut step = Step::new(source, String::new(), extra);
        step.timestamp = at.and_then(format_time);
        step.is_copied_context = turn.inherited.then_some(true);
        step
    }

    fn push_prompt(&mut self) {
        if self.turn.user.is_empty() {
            return;
        }
        let mut step = self.step(prompt_role(self.session, self.turn), self.turn.started);
        step.extra.unspool.prompt = true;
        for body in &self.turn.user {
            // A turn started by a background report has only that notice as its prompt.
            let report = if let Body::Notice(notice) = body { Some(&*notice.text) } else { None };
            match body.prose().or(report) {
                Some(text) => {
                    join(&mut step.message, text);
                    step.extra.unspool.parts.push(entry(body, text));
                }
                None => step.extra.unspool.parts.push(document(self.session, body)),
            }
        }
        self.steps.push(step);
    }

    fn close(&mut self) {
        self.steps.extend(self.open.take());
    }

    fn call(&mut self, call: &ModelCall<'_>) {
        self.close();
        let mut begun = call.continues;
        let used = call.step.is_some_and(|step| step.usage != Default::default());
        if used && !begun {
            self.agent_step(call, &mut begun, call.parts.first().copied());
        }
        for part in &call.parts {
            match &part.body {
                Body::Text(text) => {
                    self.agent_step(call, &mut begun, Some(part)).push_text(&part.body, text)
                }
                Body::Reasoning(thought) => {
                    self.agent_step(call, &mut begun, Some(part)).push_reasoning(thought)
                }
                Body::Tool(tool) => {
                    let result = calls::model_output(self.session, tool);
                    let id = calls::call_id(self.session, part.id, tool);
                    let parent = calls::call_reference(self.session, &tool.parent_call_id);
                    let step = self.agent_step(call, &mut begun, Some(part));
                    step.push_tool_call(&id, parent, tool, result);
                }
                Body::Agent(agents) => self.delegate(part, agents),
                Body::Interjection(said) => self.push_event("user", part, &said.text),
                Body::Compaction(compaction) => {
                    self.push_event("system", part, &compaction.summary)
                }
                Body::ContextInfo(info) => self.push_event("system", part, &info.text),
                Body::SkillLoad(skill) => self.push_event("system", part, &skill.text),
                Body::Notice(notice) => self.push_event("system", part, &notice.text),
                Body::Error(failure) => self.push_event("system", part, &failure.text),
                Body::TaskList(_)
                | Body::McpSnapshot(_)
                | Body::File(_)
                | Body::Source(_)
                | Body::Patch(_)
                | Body::Data(_) => self.push_unsupported(part),
            }
        }
    }

    /// The agent step of a call: the open one, or a new one.
    fn agent_step(
        &mut self,
        call: &ModelCall<'_>,
        begun: &mut bool,
        part: Option<&Part>,
    ) -> &mut Step {
        let open = self.open.take();
        let step =
            open.unwrap_or_else(|| self.new_step(call, std::mem::replace(begun, true), part));
        self.open.insert(step)
    }

    fn new_step(&self, call: &ModelCall<'_>, continues: bool, part: Option<&Part>) -> Step {
        let mut step = self.step("agent", part.and_then(start_time));
        let Some(recorded) = call.step else { return step };
        step.model_name = recorded.model.as_deref().map(str::to_owned);
        step.extra.unspool.continues = continues;
        if !continues {
            let spent = Spending::of_session([(recorded.model.as_deref(), recorded.usage)], None);
            step.metrics = Metrics::of(recorded.usage, spent.estimated_usd(self.prices));
            step.usage = recorded.usage;
            step.llm_call_count = Some(1);
            step.extra.unspool.stop_reason = recorded.stop_reason.as_deref().map(str::to_owned);
        }
        step
    }

    /// A part that becomes a step of its own.
    fn push_event(&mut self, source: &'static str, part: &Part, text: &str) {
        self.close();
        let mut step = self.step(source, start_time(part));
        step.message = text.to_owned();
        step.extra.unspool.parts.push(entry(&part.body, text));
        self.steps.push(step);
    }

    /// A part that the format does not have: kept whole in `extra` of the current step.
    fn push_unsupported(&mut self, part: &Part) {
        let whole = document(self.session, &part.body);
        if let Some(step) = &mut self.open {
            step.extra.unspool.parts.push(whole);
            return;
        }
        let mut step = self.step("system", start_time(part));
        step.message = format!("[{}]", part.body.kind().name());
        step.extra.unspool.parts.push(whole);
        self.steps.push(step);
    }

    /// References the sub-agents from the result of the call that started them.
    fn delegate(&mut self, part: &Part, agents: &Agents) {
        self.push_unsupported(part);
        let references: Vec<Reference> = agents
            .agents
            .iter()
            .filter(|agent| self.held.contains(&agent.id))
            .map(|agent| Reference {
                trajectory_id: SessionId::of(&self.session.agent, &agent.id).to_string(),
                session_id: agent.id.clone(),
                extra: json!({ "unspool": { "name": agent.name, "state": agent.state.name() } }),
            })
            .collect();
        if references.is_empty() {
            return;
        }
        let call = own_call_id(&self.session.agent, &agents.call_id);
        let calls = |step: &&mut Step| step.tool_calls.iter().any(|own| own.tool_call_id == call);
        let all = self.open.iter_mut().chain(self.steps.iter_mut().rev());
        let (step, source) = match { all }.find(calls) {
            Some(step) => (Some(step), Some(call)),
            // The call was not recorded: put the reference where the agents are.
            None => (self.open.as_mut().or(self.steps.last_mut()), None),
        };
        let Some(step) = step else { return };
        let results = &mut step.observation.get_or_insert_default().results;
        let result_of_call =
            results.iter_mut().find(|result| result.source_call_id.as_deref() == source);
        match result_of_call {
            Some(result) => result.subagent_trajectory_ref.extend(references),
            None => results.push(ToolResult {
                source_call_id: source.map(str::to_owned),
                subagent_trajectory_ref: references,
                ..ToolResult::default()
            }),
        }
    }
}

impl Step {
    fn push_text(&mut self, body: &Body, text: &Text) {
        join(&mut self.message, &text.text);
        self.extra.unspool.parts.push(entry(body, &text.text));
    }

    fn push_reasoning(&mut self, reasoning: &Reasoning) {
        if !reasoning.text.is_empty() {
            join(self.reasoning_content.get_or_insert_default(), &reasoning.text);
        }
        let mut own = json!({ "kind": "reasoning", "chars": reasoning.text.chars().count() });
        if reasoning.redacted {
            own["redacted"] = json!(true);
        }
        if let Some(signature) = &reasoning.signature {
            own["signature"] = json!(signature);
        }
        if let Some(duration) = reasoning.duration_ms {
            own["duration_ms"] = json!(duration);
        }
        self.extra.unspool.parts.push(Json::from(own));
    }

    fn push_tool_call(
        &mut self,
        call_id: &str,
        parent_call_id: Option<&str>,
        tool: &Tool,
        result: Option<String>,
    ) {
        let entry = json!({ "kind": "tool", "call_id": call_id });
        self.extra.unspool.parts.push(Json::from(entry));
        let mut own = json!({ "state": tool.state.name() });
        let (arguments, input_note) = arguments(tool);
        if let Some(input_note) = input_note {
            own["input"] = json!(input_note);
        }
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                own[name] = value;
            }
        };
        put("title", tool.title.as_ref().map(|title| json!(title)));
        put("parent_call_id", parent_call_id.map(|parent| json!(parent)));
        put("exit_code", tool.exit_code.map(|code| json!(code)));
        put("duration_ms", tool.duration_ms.map(|duration| json!(duration)));
        put("provider_executed", tool.provider_executed.then_some(json!(true)));
        put("earlier", earlier_questions(tool).map(|earlier| json!(earlier)));
        let question = tool.question.as_ref().map(QuestionDocument);
        put("question", question.and_then(|question| serde_json::to_value(question).ok()));
        let answer = tool.answer.as_ref().map(AnswerDocument);
        put("answer", answer.and_then(|answer| serde_json::to_value(answer).ok()));
        self.tool_calls.push(ToolCall {
            tool_call_id: call_id.to_owned(),
            function_name: tool.name.clone(),
            arguments,
            extra: Some(json!({ "unspool": own })),
        });
        let completed = tool.state == ToolState::Completed;
        let content = result.or_else(|| completed.then(String::new));
        if content.is_some() {
            let state = json!({ "unspool": { "state": tool.state.name() } });
            self.observation.get_or_insert_default().results.push(ToolResult {
                source_call_id: Some(call_id.to_owned()),
                content,
                extra: (!completed).then_some(state),
                ..ToolResult::default()
            });
        }
    }
}

/// The input as the object that the format requires, and what was done to make it one.
fn arguments(tool: &Tool) -> (Json, Option<&'static str>) {
    let Some(input) = calls::input(tool) else {
        return (Json::checked("{}"), Some("not told"));
    };
    if input.text().trim_start().starts_with('{') {
        return (input, None);
    }
    (Json::checked(&format!("{{\"input\":{}}}", input.text())), Some("wrapped"))
}

/// The `extra` entry of a part whose text is in the step: its kind and length.
fn entry(body: &Body, text: &str) -> Json {
    let mut own = json!({ "kind": body.kind().name(), "chars": text.chars().count() });
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            own[name] = value;
        }
    };
    match body {
        Body::Text(text) if !text.citations.is_empty() => {
            put("citations", text.citations.iter().map(Json::value).collect());
        }
        Body::Compaction(recorded) => {
            put("trigger", json!(recorded.trigger));
            put("tokens_before", json!(recorded.tokens_before));
            put("tokens_after", json!(recorded.tokens_after));
            put("duration_ms", json!(recorded.duration_ms));
        }
        Body::ContextInfo(info) => put("title", json!(info.title)),
        Body::SkillLoad(skill) => {
            put("name", json!(skill.name));
            put("call_id", json!(skill.call_id));
        }
        Body::Notice(notice) => put("code", json!(notice.code)),
        Body::Error(failure) => {
            put("code", json!(failure.code));
            put("status", json!(failure.status));
        }
        Body::Text(_)
        | Body::Interjection(_)
        | Body::Reasoning(_)
        | Body::Tool(_)
        | Body::Agent(_)
        | Body::TaskList(_)
        | Body::McpSnapshot(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Data(_) => {}
    }
    Json::from(own)
}

fn join(all: &mut String, text: &str) {
    if !all.is_empty() && !text.is_empty() {
        all.push_str(SEPARATOR);
    }
    all.push_str(text);
}

/// A time in the format's notation. None before the year 1, which its readers reject.
fn format_time(at: Timestamp) -> Option<String> {
    const YEAR_1: i64 = -62_135_596_800;
    (at.as_second() >= YEAR_1).then(|| format!("{at:.3}"))
}
