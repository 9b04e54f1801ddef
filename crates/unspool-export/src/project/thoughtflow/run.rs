//! A turn as a run: each part becomes one or more steps, and each model call a step before its
//! parts.
//!
//! Steps are in part order, never in clock order: clocks can be wrong. A tool result follows its
//! call and has no start time of its own.

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;
use unspool_model::document::time;
use unspool_model::id::StepId;
use unspool_model::json::Json;
use unspool_model::part::{Body, Part, Tool, ToolState};
use unspool_model::session::{Session, Step, Trigger, Turn, TurnState};

use super::document::{Conversation, Depends, FlowStep, Label, Status};
use super::payload::{self, PayloadFields};
use super::prompt::{self, PromptContent, Scope};
use super::recorded::{PromptLog, RecordedPrompt};
use super::recorded_steps;

/// Where the prompts of calls are looked up.
pub struct PromptSources<'s> {
    /// Snapshots of imported calls.
    pub content: &'s mut PromptContent<'s>,
    /// The prompts that the agent recorded.
    pub log: Option<&'s mut PromptLog>,
}

pub fn conversation(
    session: &Session,
    channel: String,
    turn: &Turn,
    sources: &mut PromptSources<'_>,
) -> Conversation {
    let mut run = RunBuilder::new(session, channel, turn);
    run.prompt_steps();
    let mut next = 0;
    let places: FxHashMap<StepId, usize> =
        turn.steps.iter().enumerate().map(|(at, step)| (step.id, at)).collect();
    for part in &turn.parts {
        if let Some(at) = part.step.and_then(|id| places.get(&id).copied()) {
            // Calls without parts come before it as well.
            while next <= at {
                run.call(next, sources);
                next += 1;
            }
        }
        run.part(part);
    }
    while next < turn.steps.len() {
        run.call(next, sources);
        next += 1;
    }
    Conversation {
        conversation_id: turn.id.to_string(),
        channel: run.channel,
        status: status(turn.state),
        started_at: time(turn.started),
        ended_at: time(turn.ended),
        duration_ms: duration(turn.started, turn.ended),
        steps: run.steps,
        ..Conversation::default()
    }
}

fn status(state: TurnState) -> Status {
    match state {
        TurnState::Completed => Status::Completed,
        TurnState::Interrupted => Status::Aborted,
        TurnState::Failed => Status::Error,
        TurnState::Running | TurnState::Unknown => Status::Unknown,
    }
}

/// Milliseconds between two times as written, never negative (R-002-06).
fn duration(started: Option<Timestamp>, ended: Option<Timestamp>) -> Option<u64> {
    let (started, ended) = started.zip(ended)?;
    Some(u64::try_from(ended.as_millisecond() - started.as_millisecond()).unwrap_or(0))
}

/// Builds the steps of a run.
struct RunBuilder<'a> {
    session: &'a Session,
    channel: String,
    turn: &'a Turn,
    steps: Vec<FlowStep>,
    /// The steps of the prompt.
    prompt_steps: Vec<String>,
    /// Snapshots that have a step already: one each (R-002-11).
    snapshots: FxHashSet<String>,
    model_calls: FxHashMap<StepId, String>,
    tool_calls: FxHashMap<&'a str, String>,
    /// Tool results and interjections since the last model call: inputs of the next one.
    results: Vec<String>,
}

impl<'a> RunBuilder<'a> {
    fn new(session: &'a Session, channel: String, turn: &'a Turn) -> RunBuilder<'a> {
        RunBuilder {
            session,
            channel,
            turn,
            steps: Vec::new(),
            prompt_steps: Vec::new(),
            snapshots: FxHashSet::default(),
            model_calls: FxHashMap::default(),
            tool_calls: FxHashMap::default(),
            results: Vec::new(),
        }
    }

    /// The steps of the prompt, or of another trigger (R-002-01).
    fn prompt_steps(&mut self) {
        let turn = self.turn;
        let trigger = (turn.trigger != Trigger::User).then(|| turn.trigger.name());
        for (nth, body) in turn.user.iter().enumerate() {
            let (label, payload) = match body.prose() {
                Some(text) => {
                    let said = PayloadFields::default().put("text", text);
                    (Label::UserMessage, said.put_some("trigger", trigger).json())
                }
                None => (Label::Generic, payload::body(self.session, body)),
            };
            self.push_prompt(format!("{}-user-{nth}", turn.id), label, payload);
        }
        if let (true, Some(trigger)) = (turn.user.is_empty(), trigger) {
            let payload =
                PayloadFields::default().put("kind", "trigger").put("trigger", trigger).json();
            self.push_prompt(format!("{}-trigger", turn.id), Label::Generic, payload);
        }
    }

    fn push_prompt(&mut self, step_id: String, label: Label, payload: Json) {
        self.prompt_steps.push(step_id.clone());
        self.steps.push(FlowStep {
            step_id,
            label: label.name().to_owned(),
            started_at: time(self.turn.started),
            payload_started: Some(payload),
            ..FlowStep::default()
        });
    }

    /// A model call, preceded by the snapshots of its prompt.
    fn call(&mut self, at: usize, sources: &mut PromptSources<'_>) {
        let Some(step) = self.turn.steps.get(at) else { return };
        let mut depends_on = Depends(self.prompt_steps.clone());
        let scope = Scope { agent: &self.session.agent, channel: &self.channel };
        let recorded = sources.recorded(step);
        let used = match (&step.provenance, &recorded, &mut sources.log) {
            (Some(provenance), ..) => prompt::prompt_steps(provenance, &scope, sources.content),
            (None, Some(recorded), Some(log)) => recorded_steps::steps(recorded, &scope, log),
            (None, _, _) => Vec::new(),
        };
        for used in used {
            depends_on.add(&used.step_id);
            if self.snapshots.insert(used.step_id.clone()) {
                self.steps.push(used);
            }
        }
        // A later call depends on the results of the one before it.
        let results = std::mem::take(&mut self.results);
        results.iter().for_each(|id| depends_on.add(id));
        if results.is_empty()
            && let Some(last) = self.steps.last().filter(|_| !self.model_calls.is_empty())
            && !self.snapshots.contains(&last.step_id)
        {
            depends_on.add(&last.step_id);
        }
        let id = step.id.to_string();
        self.model_calls.insert(step.id, id.clone());
        let last = at + 1 == self.turn.steps.len();
        let cancelled = last && self.turn.state == TurnState::Interrupted && self.is_open(step);
        let times = recorded.as_ref().map(|recorded| recorded.times).unwrap_or_default();
        self.steps.push(FlowStep {
            step_id: id,
            label: Label::AssistantCall.name().to_owned(),
            depends_on,
            started_at: time(times.sent),
            ended_at: time(times.ended),
            duration_ms: duration(times.sent, times.ended),
            payload_started: Some(match &recorded {
                Some(recorded) => recorded_request(self.session, step, recorded),
                None => request(self.session, step, sources.content),
            }),
            payload_completed: payload::response(self.session, step, cancelled),
        });
    }

    /// True if a model call has no observed end: no stop reason, and no tool ran for it.
    fn is_open(&self, step: &Step) -> bool {
        let ran =
            self.turn.parts.iter().filter(|part| part.step == Some(step.id)).any(
                |part| matches!(&part.body, Body::Tool(tool) if tool.state != ToolState::Pending),
            );
        step.stop_reason.is_none() && !ran
    }

    fn part(&mut self, part: &'a Part) {
        let depends_on = self.dependencies(part);
        let id = part.id.to_string();
        let (label, payload) = match &part.body {
            Body::Text(text) => (Label::AssistantMessage, payload::text(text)),
            Body::Tool(tool) => return self.tool(part, tool, id, depends_on),
            Body::Interjection(said) => {
                let said =
                    PayloadFields::default().put("text", &said.text).put("kind", "interjection");
                (Label::UserMessage, said.json())
            }
            Body::Reasoning(_)
            | Body::Agent(_)
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
            | Body::Data(_) => (Label::Generic, payload::body(self.session, &part.body)),
        };
        // User text exists from its start; a model's part when it is complete.
        let (mut payload_started, mut payload_completed) = (None, Some(payload));
        if label == Label::UserMessage {
            self.results.push(id.clone());
            std::mem::swap(&mut payload_started, &mut payload_completed);
        }
        self.steps.push(FlowStep {
            step_id: id,
            label: label.name().to_owned(),
            depends_on,
            started_at: time(part.started),
            ended_at: time(part.ended),
            duration_ms: duration(part.started, part.ended),
            payload_started,
            payload_completed,
        });
    }

    /// A tool call, and a separate step for its outcome (R-002-09, R-002-44).
    fn tool(&mut self, part: &Part, tool: &'a Tool, id: String, depends_on: Depends) {
        let gave = tool.output.is_some() || tool.result.is_some();
        let outcome = match tool.state {
            ToolState::Pending | ToolState::Running | ToolState::Completed => {
                gave.then_some((Label::ToolOutput, "output"))
            }
            // The failure is a fact even without output.
            ToolState::Failed | ToolState::Denied => Some((Label::ToolError, "error")),
            ToolState::Interrupted => gave.then_some((Label::ToolError, "error")),
        };
        self.tool_calls.insert(&tool.call_id, id.clone());
        self.steps.push(FlowStep {
            step_id: id.clone(),
            label: Label::ToolCall.name().to_owned(),
            depends_on,
            started_at: time(part.started),
            ended_at: time(part.ended),
            duration_ms: duration(part.started, part.ended),
            payload_started: Some(payload::call(self.session, tool)),
            payload_completed: Some(payload::outcome(tool)),
        });
        let Some((label, suffix)) = outcome else {
            self.results.push(id);
            return;
        };
        let step_id = format!("{id}-{suffix}");
        self.results.push(step_id.clone());
        self.steps.push(FlowStep {
            step_id,
            label: label.name().to_owned(),
            depends_on: Depends(vec![id]),
            ended_at: time(part.ended),
            payload_completed: Some(payload::result(self.session, tool)),
            ..FlowStep::default()
        });
    }

    /// What a part depends on: its tool call, the model call that made it, or the previous step.
    fn dependencies(&self, part: &Part) -> Depends {
        let call = match &part.body {
            Body::Tool(tool) => tool.parent_call_id.as_deref(),
            Body::Agent(agents) => Some(agents.call_id.as_str()),
            Body::SkillLoad(skill) => skill.call_id.as_deref(),
            Body::Patch(patch) => patch.call_id.as_deref(),
            Body::Text(_)
            | Body::Reasoning(_)
            | Body::Interjection(_)
            | Body::TaskList(_)
            | Body::McpSnapshot(_)
            | Body::ContextInfo(_)
            | Body::Compaction(_)
            | Body::File(_)
            | Body::Source(_)
            | Body::Notice(_)
            | Body::Error(_)
            | Body::Data(_) => None,
        };
        let call = call.and_then(|id| self.tool_calls.get(id));
        // Interjections are the user's, not the model's.
        let own = part.step.filter(|_| !matches!(part.body, Body::Interjection(_)));
        let made = own.and_then(|step| self.model_calls.get(&step));
        let before = self.steps.last().map(|step| &step.step_id);
        Depends(call.or(made).or(before).cloned().into_iter().collect())
    }
}

impl PromptSources<'_> {
    /// What the agent recorded of a call. An imported call has its own provenance.
    fn recorded(&mut self, step: &Step) -> Option<RecordedPrompt> {
        let log = self.log.as_mut().filter(|_| step.provenance.is_none())?;
        log.prompt(step.request.as_deref(), &step.name)
    }
}

/// The request payload of a call whose prompt the agent recorded.
fn recorded_request(session: &Session, step: &Step, recorded: &RecordedPrompt) -> Json {
    PayloadFields::default()
        .put("name", &session.agent)
        .put("model", &step.model)
        .put("arguments", &recorded_steps::arguments(recorded))
        .put("prompt_provenance", &recorded_steps::provenance(recorded).json())
        .json()
}

/// The request payload of a model call.
fn request(session: &Session, step: &Step, content: &mut PromptContent<'_>) -> Json {
    let provenance = step.provenance.as_ref();
    let instructions = provenance.and_then(|provenance| provenance.final_prompt.as_deref());
    let schemas = provenance.and_then(|provenance| {
        provenance
            .snapshots
            .iter()
            .find(|used| matches!(used.kind.as_str(), "tools" | "tool-schemas"))
    });
    let tools = schemas.and_then(|used| content(&used.sha256));
    let tools = tools.map(|says| prompt::tool_names(&says.value()).len());
    let arguments = json!({
        "instructions_preview": instructions.map(prompt::preview),
        "tools_count": tools,
    });
    PayloadFields::default()
        .put("name", &session.agent)
        .put("model", &step.model)
        .put("arguments", &arguments)
        .put_some("prompt_provenance", provenance.map(prompt::provenance_payload).as_ref())
        .json()
}
