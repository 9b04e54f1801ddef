//! Continue's index, `sessions.json`: the only place that says when a session began.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{Event, EventKind};
use unspool_model::provenance::Feed;

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexDecoder {}

impl Decoder for IndexDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        // Milliseconds, as a string.
        let created = fields.text("dateCreated").and_then(|text| text.parse().ok());
        emit.at = created.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let project = fields.text("workspaceDirectory").map(|path| super::project(&path));
        let (branch, version, cost) = (None, None, None);
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        RecordOutcome::Metadata
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}
