//! Parts of other kinds in `extra.unspool.parts`: whole, in the format of `show --json`, or without
//! their text, which is the message of the step.

use serde_json::Value;
use unspool_model::event::{AgentEnd, AgentRef, EventKind};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Patch, SkillLoad};
use unspool_model::provenance::Name;

use super::super::thoughtflow::{document_agents, document_body};
use super::super::{Emitter, Fields, JsonOutline};
use super::calls::CallIndex;
use super::subagents::session_id;

/// The part of an entry. One of an unknown kind is kept as data.
pub(super) fn body(entry: &Fields<'_>, text: Option<String>, calls: &CallIndex) -> Body {
    let json = with_text(entry, text);
    let mut outline = JsonOutline::default();
    let fields = outline.read(json.text()).unwrap_or_default();
    let kind = || entry.string("kind").unwrap_or_else(|| "part".to_owned());
    let body = document_body(&fields)
        .unwrap_or_else(|| Body::Data(Data { kind: kind(), payload: json.clone() }));
    with_call_name(body, calls)
}

/// The entry with its text where our JSON has it.
fn with_text(entry: &Fields<'_>, text: Option<String>) -> Json {
    let mut value = entry.whole().value();
    if let (Value::Object(fields), Some(text)) = (&mut value, text) {
        fields.remove("chars");
        let name = if entry.is("kind", "compaction") { "summary" } else { "text" };
        fields.insert(name.to_owned(), Value::String(text));
    }
    Json::from(value)
}

fn with_call_name(mut body: Body, calls: &CallIndex) -> Body {
    if let Body::SkillLoad(SkillLoad { call_id: Some(id), .. })
    | Body::Patch(Patch { call_id: Some(id), .. }) = &mut body
    {
        *id = calls.name(id).to_string();
    }
    body
}

/// Emits a part of a step.
pub(super) fn emit_part(
    emit: &mut Emitter<'_>,
    name: Name,
    entry: &Fields<'_>,
    text: Option<String>,
    (session, calls): (&str, &CallIndex),
) {
    if entry.is("kind", "agent") && document_agents(entry).is_some() {
        return emit_agents(emit, session, entry, calls);
    }
    emit.push(EventKind::Part(Some(name), body(entry, text, calls)));
}

/// The sub-agents of a call. The session of one is that of its trajectory in this document.
fn emit_agents(emit: &mut Emitter<'_>, session: &str, entry: &Fields<'_>, calls: &CallIndex) {
    let call = calls.name(&entry.text("call_id").unwrap_or_default());
    for reported in entry.list("agents") {
        let trajectory = reported.text("session").map(|id| session_id(session, &id));
        let agent = AgentRef { call: Some(call.clone()), id: trajectory };
        let text = |name: &str| reported.string(name).unwrap_or_default();
        let (name, task, background) = (text("name"), text("task"), reported.flag("background"));
        emit.push(EventKind::AgentStarted { agent: agent.clone(), name, task, background });
        if let Some(activity) = reported.string("activity") {
            let (agent, activity) = (agent.clone(), Some(activity));
            emit.push(EventKind::AgentProgressed { agent, activity, background });
        }
        let end = match reported.text("state").as_deref() {
            Some("completed") => AgentEnd::Completed,
            Some("failed") => AgentEnd::Failed,
            Some("interrupted") => AgentEnd::Interrupted,
            Some(_) | None => continue,
        };
        emit.push(EventKind::AgentEnded { agent, end });
    }
}
