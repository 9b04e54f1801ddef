//! Sub-agents: trajectories inside a trajectory (since 1.7), or in files of their own. The result of a
//! call refers to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use unspool_model::event::{AgentRef, EventKind};
use unspool_model::part::{Body, Data};
use unspool_model::provenance::Name;

use super::super::{Emitter, Fields, SideChain};
use super::calls::{call_name, place_of};
use super::content;

/// The deepest nesting of trajectories that is read.
pub(super) const MAX_DEPTH: usize = 32;

/// The calls that started sub-agents, by the ids of their trajectories.
pub(super) type Starts = BTreeMap<String, Arc<str>>;

/// The session id of a trajectory inside another one. Its own id is unique only there.
pub(super) fn session_id(parent: &str, trajectory: &str) -> Arc<str> {
    format!("{parent}/{trajectory}").into()
}

/// The trajectories directly inside another one, with their ids.
pub(super) fn children<'a>(fields: &Fields<'a>) -> Vec<(String, Fields<'a>)> {
    let mut children: Vec<(String, Fields<'a>)> = Vec::new();
    for (nth, child) in fields.list("subagent_trajectories").enumerate() {
        let id = child.string("trajectory_id").filter(|id| !id.is_empty());
        let is_new = |id: &String| children.iter().all(|(held, _)| held != id);
        let id = id.filter(is_new).unwrap_or_else(|| format!("#{nth}"));
        children.push((id, child));
    }
    children
}

/// All trajectories inside another one, each after the one that holds it.
pub(super) fn collect<'a>(
    session: &str,
    fields: &Fields<'a>,
    starts: &Starts,
    depth: usize,
    out: &mut Vec<(SideChain, Fields<'a>)>,
) {
    if depth >= MAX_DEPTH {
        return;
    }
    for (trajectory, child) in children(fields) {
        let id = session_id(session, &trajectory);
        let agent = child.fields("agent");
        let kind = agent.fields("extra").fields("unspool").string("kind");
        let chain = SideChain {
            id: id.clone(),
            parent: session.into(),
            call: starts.get(&trajectory).cloned(),
            kind: kind.or_else(|| agent.string("name")),
            title: None,
        };
        out.push((chain, child));
        let mut own = Starts::new();
        for (step, fields) in (1..).zip(child.list("steps")) {
            own.extend(
                references(step, &fields)
                    .into_iter()
                    .filter_map(|reference| Some((reference.trajectory?, reference.call?))),
            );
        }
        collect(&id, &child, &own, depth + 1, out);
    }
}

/// A reference to a sub-agent, in the result of a call or of none.
pub(super) struct Reference<'a> {
    /// The id of a trajectory inside the document.
    pub trajectory: Option<String>,
    pub call: Option<Arc<str>>,
    pub fields: Fields<'a>,
}

/// The references of a step.
pub(super) fn references<'a>(step: u32, fields: &Fields<'a>) -> Vec<Reference<'a>> {
    let calls: Vec<Fields<'a>> = fields.list("tool_calls").collect();
    let mut references = Vec::new();
    for result in fields.fields("observation").list("results") {
        let call = place_of(&calls, fields, &result).map(|place| {
            let id = calls[place].text("tool_call_id").unwrap_or_default();
            call_name(step, place, &id)
        });
        for reference in result.list("subagent_trajectory_ref") {
            let is_inside = !reference.has("trajectory_path");
            let trajectory = reference.string("trajectory_id").filter(|_| is_inside);
            references.push(Reference { trajectory, call: call.clone(), fields: reference });
        }
    }
    references
}

/// Emits the sub-agents that a step refers to.
pub(super) fn emit_references(
    emit: &mut Emitter<'_>,
    session: &str,
    step: u32,
    fields: &Fields<'_>,
    starts: &mut Starts,
) {
    for (nth, reference) in references(step, fields).into_iter().enumerate() {
        let Reference { trajectory, call, fields } = reference;
        let Some(call) = call else {
            let data = Data { kind: "subagent-trajectory".to_owned(), payload: fields.whole() };
            let name = Name::Record(format!("{step}/reference-{nth}").into());
            emit.push(EventKind::Part(Some(name), Body::Data(data)));
            continue;
        };
        let id = match &trajectory {
            Some(trajectory) => Some(session_id(session, trajectory)),
            // The session of the other file.
            None => ["trajectory_id", "session_id", "trajectory_path"]
                .into_iter()
                .find_map(|name| fields.text(name))
                .map(Arc::from),
        };
        let own = fields.fields("extra").fields("unspool");
        let name = own.string("name").unwrap_or_default();
        let agent = AgentRef { call: Some(call.clone()), id };
        let (task, background) = (String::new(), false);
        emit.push(EventKind::AgentStarted { agent, name, task, background });
        if let Some(trajectory) = trajectory {
            starts.insert(trajectory, call);
        }
    }
}

/// Emits what trajectories inside this one say about their agents: the steps come before them.
pub(super) fn emit_names(
    emit: &mut Emitter<'_>,
    session: &str,
    fields: &Fields<'_>,
    starts: &Starts,
) {
    for (trajectory, child) in children(fields) {
        // Our exports have these in the part of the call.
        if child.fields("extra").fields("unspool").is_object() {
            continue;
        }
        let Some(call) = starts.get(&trajectory) else { continue };
        let prompt = child.list("steps").find(|step| step.is("source", "user"));
        let task = prompt.and_then(|step| content::text(&step, "message")).unwrap_or_default();
        let name = child.fields("agent").string("name").unwrap_or_default();
        let id = Some(session_id(session, &trajectory));
        let agent = AgentRef { call: Some(call.clone()), id };
        emit.push(EventKind::AgentStarted { agent, name, task, background: false });
    }
}
