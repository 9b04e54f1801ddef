//! Sub-agents: their starts and ends in the session that starts them, and the parent of a
//! sub-agent's own session. Extends `EventsDecoder`.

use std::borrow::Cow;
use std::sync::Arc;

use unspool_model::event::{AgentEnd, AgentRef, EventKind};
use unspool_model::id::SessionId;
use unspool_model::session::Parent;

use super::EventsDecoder;
use crate::decode::copilot::NAME;
use crate::decode::{Emitter, Fields, RecordOutcome};

impl EventsDecoder {
    pub(super) fn agent_starts(
        &mut self,
        emit: &mut Emitter<'_>,
        whole: &Fields<'_>,
        data: &Fields<'_>,
    ) -> RecordOutcome {
        let Some(agent) = self.agent(whole, data) else {
            return RecordOutcome::left_out("start of a sub-agent's sub-agent");
        };
        emit.push(EventKind::AgentStarted {
            agent,
            name: data.string("agentName").unwrap_or_default(),
            task: data.string("agentDescription").unwrap_or_default(),
            background: data.is("executionMode", "background"),
        });
        RecordOutcome::InParts
    }

    pub(super) fn agent_ends(
        &mut self,
        emit: &mut Emitter<'_>,
        whole: &Fields<'_>,
        data: &Fields<'_>,
        end: AgentEnd,
    ) -> RecordOutcome {
        let Some(agent) = self.agent(whole, data) else {
            return RecordOutcome::left_out("end of a sub-agent's sub-agent");
        };
        emit.push(EventKind::AgentEnded { agent, end });
        RecordOutcome::InParts
    }

    /// The agent that an event refers to, if a call of this session started it.
    fn agent(&self, whole: &Fields<'_>, data: &Fields<'_>) -> Option<AgentRef> {
        let call: Arc<str> = data.text("toolCallId")?.into();
        let id = whole.text("agentId").map(|id| id.into());
        self.calls.contains_key(&call).then_some(AgentRef { call: Some(call), id })
    }

    /// Emits the parent of a sub-agent. Its task names the session, its steps name the call.
    pub(super) fn emit_parent(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) {
        let call = data.text("parentToolCallId");
        let parent = match (&self.parent, started_by(data)) {
            (None, Some(session)) => Some((session.to_owned(), call.map(Cow::into_owned))),
            (Some((session, None)), _) if call.is_some() => {
                Some((session.clone(), call.map(Cow::into_owned)))
            }
            (Some(_), _) | (None, None) => None,
        };
        if let Some((session, call_id)) = parent {
            self.parent = Some((session.clone(), call_id.clone()));
            let session = SessionId::of(NAME, &session);
            emit.push(EventKind::StartedBy(Parent { session, call_id, kind: None }));
        }
    }
}

/// The session that sent a sub-agent its task.
pub(in crate::decode::copilot) fn started_by<'a>(data: &Fields<'a>) -> Option<&'a str> {
    let Cow::Borrowed(source) = data.text("source")? else { return None };
    source.strip_prefix("agent-").filter(|_| data.has("delivery"))
}
