//! Splits a turn into its model calls, for formats that are organised by calls: ATIF and
//! OpenTelemetry. A part without a step belongs to the call before it.

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use unspool_model::agent::{AgentTraits, ModelInput, StepNames, own_call_id};
use unspool_model::document::BodyDocument;
use unspool_model::id::{PartId, StepId};
use unspool_model::json::{Json, replace_lone_surrogates};
use unspool_model::part::{Body, Part, Tool};
use unspool_model::provenance::Name;
use unspool_model::session::{Session, Step, Trigger, Turn, Usage};

/// One model call, or one segment of a call that other parts interrupted.
pub struct ModelCall<'a> {
    /// None if the source does not separate calls.
    pub step: Option<&'a Step>,
    /// A later segment: usage is counted in the first one.
    pub continues: bool,
    pub parts: Vec<&'a Part>,
}

/// The calls of a turn in the order of their parts. A call without parts but with usage keeps its
/// position in the source.
pub fn calls(turn: &Turn) -> Vec<ModelCall<'_>> {
    let mut calls: Vec<ModelCall<'_>> = Vec::with_capacity(turn.steps.len() + 1);
    let with_parts: FxHashSet<StepId> = turn.parts.iter().filter_map(|part| part.step).collect();
    let mut silent = turn
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| !with_parts.contains(&step.id) && step.usage != Usage::default())
        .peekable();
    let places: FxHashMap<StepId, usize> =
        turn.steps.iter().enumerate().map(|(at, step)| (step.id, at)).collect();
    let mut begun: FxHashSet<StepId> = FxHashSet::default();
    let mut current = None;
    for part in &turn.parts {
        if calls.is_empty() || (part.step.is_some() && part.step != current) {
            let at = part.step.and_then(|id| places.get(&id).copied());
            while let Some((_, step)) = silent.next_if(|(before, _)| Some(*before) < at) {
                calls.push(ModelCall { step: Some(step), continues: false, parts: Vec::new() });
            }
            let continues = part.step.is_some_and(|id| !begun.insert(id));
            let step = at.and_then(|at| turn.steps.get(at));
            calls.push(ModelCall { step, continues, parts: Vec::new() });
        }
        current = part.step.or(current);
        if let Some(call) = calls.last_mut() {
            call.parts.push(part);
        }
    }
    let rest = silent.map(|(_, step)| step);
    calls.extend(rest.map(|step| ModelCall {
        step: Some(step),
        continues: false,
        parts: Vec::new(),
    }));
    calls
}

/// The role of a turn's prompt. For a sub-agent, its parent is the user.
pub fn prompt_role(session: &Session, turn: &Turn) -> &'static str {
    match turn.trigger {
        Trigger::User | Trigger::Command => "user",
        Trigger::Agent if session.parent.is_some() => "user",
        Trigger::Hook | Trigger::Schedule | Trigger::Agent | Trigger::Continuation => "system",
    }
}

/// All prompt tokens, cached ones included.
pub fn prompt_tokens(usage: Usage) -> u64 {
    usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write)
}

/// The tool output that the model saw, as text. AI SDK applications pass `result` to the model;
/// coding agents keep more in `result` than they pass on, so `output` is used for them.
pub fn model_output(session: &Session, tool: &Tool) -> Option<String> {
    let own = tool.result.as_ref().filter(|_| reads_result(session) || tool.output.is_none());
    match own {
        Some(result) => Some(match result.value() {
            Value::String(text) => text,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => replace_lone_surrogates(result.text()).into_owned(),
        }),
        None => tool.output.clone(),
    }
}

/// True if the model read the structured results of calls.
pub fn reads_result(session: &Session) -> bool {
    AgentTraits::of(&session.agent).model_input == ModelInput::Result
}

/// The input of a call, or its partial text if it never completed.
pub fn input(tool: &Tool) -> Option<Json> {
    match &tool.input {
        Some(input) => Some(bounded(input)),
        None if tool.input_text.is_empty() => None,
        None => Some(Json::string(&tool.input_text)),
    }
}

/// JSON that every reader accepts: no lone surrogates, and no nesting beyond the limit of recursive
/// parsers. Deeper values are kept as a string.
pub fn bounded(json: &Json) -> Json {
    let text = replace_lone_surrogates(json.text());
    match serde_json::from_str::<Value>(&text) {
        Ok(_) => Json::checked(&text),
        Err(_) => Json::string(&text),
    }
}

/// A whole part in our own JSON format.
pub fn document(session: &Session, body: &Body) -> Json {
    let text = serde_json::to_string(&BodyDocument { agent: &session.agent, body });
    text.map_or_else(|_| Json::from(Value::Null), |text| bounded(&Json::checked(&text)))
}

/// The id that links a call and its result: the agent's own call id, or the part's id if there is
/// none.
pub fn call_id(session: &Session, part: PartId, tool: &Tool) -> String {
    match own_call_id(&session.agent, &tool.call_id) {
        "" => part.to_string(),
        own => own.to_owned(),
    }
}

/// A reference to another call, as the agent wrote it.
pub fn call_reference<'a>(session: &Session, call_id: &'a Option<String>) -> Option<&'a str> {
    call_id.as_deref().map(|id| own_call_id(&session.agent, id))
}

/// The provider's response id, where it is known: Claude Code names calls by it, and ThoughtFlow
/// documents contain it.
pub fn response_id<'s>(session: &Session, step: &'s Step) -> Option<&'s str> {
    let Name::Message(id) = &step.name else { return None };
    // A message that Claude Code wrote itself has the UUID of its record; a name with a space was
    // composed by a decoder.
    let made = id.contains([' ', '/']) || id.len() == 36 && id.split('-').count() == 5;
    let is_response_id =
        !made && AgentTraits::of(&session.agent).step_names == StepNames::ResponseIds;
    Some(&**id).filter(|_| is_response_id)
}

/// The start of a part, or its end if the start is not recorded.
pub fn start_time(part: &Part) -> Option<Timestamp> {
    part.started.or(part.ended)
}
