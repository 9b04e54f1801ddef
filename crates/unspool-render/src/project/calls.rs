//! A turn cut into its model calls, for forms that tell of calls rather than of parts: the parts of
//! each, in order. What names no call belongs to the one that it stands in.

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use unspool_core::document::BodyDocument;
use unspool_core::id::StepId;
use unspool_core::json::{Json, mended};
use unspool_core::part::{Body, Part, Tool};
use unspool_core::session::{Session, Step, Trigger, Turn, Usage};
use unspool_core::telling::Name;

/// One model call, or a stretch of one that something else interrupted.
pub struct Call<'a> {
    /// Not every source tells calls apart.
    pub step: Option<&'a Step>,
    /// A later stretch: what the call used is counted at its first one.
    pub continues: bool,
    pub parts: Vec<&'a Part>,
}

/// The calls of a turn in the order of their parts. One of which nothing is left but what it used
/// stands where the source had it.
pub fn calls(turn: &Turn) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::with_capacity(turn.steps.len() + 1);
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
                calls.push(Call { step: Some(step), continues: false, parts: Vec::new() });
            }
            let continues = part.step.is_some_and(|id| !begun.insert(id));
            let step = at.and_then(|at| turn.steps.get(at));
            calls.push(Call { step, continues, parts: Vec::new() });
        }
        current = part.step.or(current);
        if let Some(call) = calls.last_mut() {
            call.parts.push(part);
        }
    }
    let rest = silent.map(|(_, step)| step);
    calls.extend(rest.map(|step| Call { step: Some(step), continues: false, parts: Vec::new() }));
    calls
}

/// Who speaks at the beginning of a turn. An agent that starts another is that one's user.
pub fn asker(session: &Session, turn: &Turn) -> &'static str {
    match turn.trigger {
        Trigger::User | Trigger::Command => "user",
        Trigger::Agent if session.parent.is_some() => "user",
        Trigger::Hook | Trigger::Schedule | Trigger::Agent | Trigger::Continuation => "system",
    }
}

/// All tokens of a prompt, those from a cache too.
pub fn prompt_tokens(usage: Usage) -> u64 {
    usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write)
}

/// What the model was told of a call, as text. An application's own results are that; agents keep
/// for themselves more than they tell.
pub fn told(session: &Session, tool: &Tool) -> Option<String> {
    let own = tool.result.as_ref().filter(|_| session.agent == "ai-sdk" || tool.output.is_none());
    match own {
        Some(result) => Some(match result.value() {
            Value::String(text) => text,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => mended(result.text()).into_owned(),
        }),
        None => tool.output.clone(),
    }
}

/// The input of a call: as it is, or the text that came of it before it ended.
pub fn input(tool: &Tool) -> Option<Json> {
    match &tool.input {
        Some(input) => Some(bounded(input)),
        None if tool.input_text.is_empty() => None,
        None => Some(Json::string(&tool.input_text)),
    }
}

/// JSON that every reader takes: no half surrogate pairs, and nothing so deep that a reader which
/// calls itself would give up. What is deeper is kept as the text that it was.
pub fn bounded(json: &Json) -> Json {
    let text = mended(json.text());
    match serde_json::from_str::<Value>(&text) {
        Ok(_) => Json::checked(&text),
        Err(_) => Json::string(&text),
    }
}

/// A part whole, as our own JSON has it.
pub fn document(session: &Session, body: &Body) -> Json {
    let text = serde_json::to_string(&BodyDocument { agent: &session.agent, body });
    text.map_or_else(|_| Json::from(Value::Null), |text| bounded(&Json::checked(&text)))
}

/// By what a call and its result find each other: one that has no id goes by its part's.
pub fn call_id(part: &Part, tool: &Tool) -> String {
    if tool.call_id.is_empty() { part.id.to_string() } else { tool.call_id.clone() }
}

/// Agents that have names of their own for model calls, or none: those of the provider are not known.
const NAME_CALLS: [&str; 6] = ["codex", "opencode", "copilot", "gemini", "ai-sdk", "rows"];

/// What the provider calls a model call, where that is known: Claude Code names calls as the provider
/// does, and documents of ThoughtFlow say it.
pub fn response_id<'s>(session: &Session, step: &'s Step) -> Option<&'s str> {
    let Name::Message(id) = &step.name else { return None };
    // A message that Claude Code wrote itself goes by the id of its record, and what has a space in
    // it was put together by a decoder.
    let made = id.contains([' ', '/']) || id.len() == 36 && id.split('-').count() == 5;
    Some(&**id).filter(|_| !made && !NAME_CALLS.contains(&session.agent.as_str()))
}

/// When a part began, or at least when it was told.
pub fn began(part: &Part) -> Option<Timestamp> {
    part.started.or(part.ended)
}
