//! Steps with the label `generic`: parts of our own kinds, and the end of a turn. Extends
//! `ConversationDecoder`.

use std::borrow::Cow;
use std::sync::Arc;

use unspool_model::event::{AgentEnd, AgentRef, EventKind, ProseDetail, ProseKind};
use unspool_model::part::{Body, Patch, SkillLoad};

use super::super::{Emitter, Fields};
use super::conversation::{ConversationDecoder, Prose};
use super::kinds;
use super::steps::{Step, name};

impl ConversationDecoder<'_, '_> {
    pub(super) fn generic(
        &mut self,
        emit: &mut Emitter<'_>,
        step: &Step<'_>,
        payload: &Fields<'_>,
    ) -> bool {
        match payload.text("kind").as_deref() {
            Some("reasoning") => self.thought(emit, step, payload),
            Some("agent") => self.agents(emit, step, payload),
            Some(_) | None => {
                let Some(mut body) = kinds::body(payload) else { return false };
                if let Body::SkillLoad(SkillLoad { call_id: Some(id), .. })
                | Body::Patch(Patch { call_id: Some(id), .. }) = &mut body
                {
                    *id = self.steps.id_of_call(step, id).to_string();
                }
                let given = kinds::given(name(self.id, step), body);
                given.map(|what| emit.push(what)).is_some()
            }
        }
    }

    fn thought(&mut self, emit: &mut Emitter<'_>, step: &Step<'_>, payload: &Fields<'_>) -> bool {
        let mapped = ["text", "duration_ms", "redacted", "signature", "signer", "open"];
        let text = payload.string("text").unwrap_or_default();
        let redacted = payload.flag("redacted");
        if !kinds::has_only(payload, &mapped) || (text.trim().is_empty() && !redacted) {
            return false;
        }
        let open = payload.flag("open");
        // Open reasoning cannot hold these fields yet.
        let read = |name: &&str| {
            let readable = match *name {
                "text" | "signature" | "signer" => payload.is_text(name),
                "open" | "redacted" => payload.truth(name).is_some(),
                _ => payload.number(name).is_some(),
            };
            let reported =
                !open || ["text", "open"].contains(name) || payload.truth(name) == Some(false);
            !payload.has(name) || readable && reported
        };
        let mut read: Vec<&str> = mapped.into_iter().filter(read).collect();
        read.push("kind");
        self.rest.keep_except(step.index, "payload", payload, &read);
        let detail = ProseDetail {
            signature: payload.string("signature"),
            signer: payload.string("signer"),
            duration_ms: payload.number("duration_ms"),
            redacted,
            citations: Vec::new(),
        };
        self.prose(emit, step, open, Prose { prose_kind: ProseKind::Reasoning, text, detail });
        true
    }

    fn agents(&mut self, emit: &mut Emitter<'_>, step: &Step<'_>, payload: &Fields<'_>) -> bool {
        let Some((call, all)) = document_agents(payload) else { return false };
        let call = self.steps.id_of_call(step, &call);
        emit_agents(emit, &call, all);
        true
    }

    /// The index of the last step, if it is a notice or error that the assembler derives from the
    /// end of the turn anyway.
    pub(super) fn ending(&self, fields: &Fields<'_>) -> Option<usize> {
        let last = self.steps.all.last().filter(|_| !self.early && self.steps.own)?;
        if last.label != "generic" || last.began().is_some() || last.ended().is_some() {
            return None;
        }
        let others = || self.steps.all.iter().filter(|step| step.index != last.index);
        let alone = !others().any(|step| self.steps.is_part(step));
        let explained = others().any(|step| {
            step.completed.is("kind", "error") || step.completed.is("code", "interrupted")
        });
        let made = !self.steps.is_of_model(last)
            || others().next_back().is_some_and(|step| step.label == "assistant_call");
        let status = fields.text("status").unwrap_or_default();
        let body = kinds::body(&last.completed)?;
        let rule = if let Body::Notice(notice) = &body {
            let is = |code: &str, text: &str| notice.code == code && notice.text == text;
            let stopped = status == "aborted" && !explained && is("interrupted", "Interrupted");
            stopped || status == "completed" && alone && is("no-reply", "No reply")
        } else if let Body::Error(error) = &body {
            let bare = error.code.is_none() && error.status.is_none();
            status == "error" && !explained && bare
        } else {
            false
        };
        (rule && made).then_some(last.index)
    }
}

/// The call and the agents of a payload that holds one of our agent parts.
pub(in super::super) fn document_agents<'a>(
    payload: &Fields<'a>,
) -> Option<(Cow<'a, str>, Vec<Fields<'a>>)> {
    let mapped = ["id", "name", "task", "state", "background", "activity", "session"];
    let call = payload.text("call_id").filter(|id| !id.is_empty())?;
    let all: Vec<Fields<'a>> = payload.list("agents").collect();
    let ours = !all.is_empty() && all.iter().all(|agent| kinds::has_only(agent, &mapped));
    (ours && kinds::has_only(payload, &["call_id", "agents"])).then_some((call, all))
}

/// Emits the agents of a call.
pub(in super::super) fn emit_agents(emit: &mut Emitter<'_>, call: &Arc<str>, all: Vec<Fields<'_>>) {
    for reported in all {
        let id = reported.text("id").filter(|id| !id.is_empty() && !id.starts_with("temp_"));
        let agent = AgentRef { call: Some(call.clone()), id: id.map(Arc::from) };
        let text = |name: &str| reported.string(name).unwrap_or_default();
        let background = reported.flag("background");
        let (name, task) = (text("name"), text("task"));
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
