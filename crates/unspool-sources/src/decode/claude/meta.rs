//! The metadata of a sub-agent (`read/agent_meta.rs`): the call that started it, its agent type and
//! its description.

use unspool_model::event::EventKind;
use unspool_model::id::SessionId;
use unspool_model::session::{Parent, Title, TitleOrigin};

use super::super::{Emitter, Fields, RecordOutcome};

pub(super) fn meta(emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
    let meta = fields.fields("meta");
    // A nested agent is in the same folder, under the same session.
    if let Some(parent) = meta.text("parentAgentId").or_else(|| fields.text("sessionId")) {
        let session = SessionId::of(super::NAME, &parent);
        let (call_id, kind) = (meta.string("toolUseId"), meta.string("agentType"));
        emit.push(EventKind::StartedBy(Parent { session, call_id, kind }));
    }
    if let Some(text) = meta.string("description").filter(|text| !text.trim().is_empty()) {
        emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
    }
    RecordOutcome::Metadata
}
