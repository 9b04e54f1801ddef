//! The records of a session log outside its tree: titles, costs, the input queue and the requests
//! to the model. Extends `LogDecoder`.

use unspool_model::event::EventKind;
use unspool_model::id::{digest, sha256};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data};
use unspool_model::session::{Title, TitleOrigin};

use super::super::message::reported_cost;
use super::LogDecoder;
use crate::decode::{Emitter, Fields, Record, RecordOutcome};

impl LogDecoder {
    /// Records outside the tree: state that is written repeatedly.
    pub(super) fn flat(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        fields: &Fields<'_>,
        record: &Record<'_>,
    ) -> RecordOutcome {
        let title = |field: &str, origin| {
            fields.string(field).map(|text| EventKind::TitleSet(Title { text, origin }))
        };
        match kind {
            "custom-title" => title("customTitle", TitleOrigin::Custom).map(|kind| emit.push(kind)),
            "ai-title" => title("aiTitle", TitleOrigin::Generated)
                .or_else(|| title("title", TitleOrigin::Generated))
                .map(|kind| emit.push(kind)),
            // A summary may be of another session: it applies once its leaf occurs here.
            "summary" => {
                let leaf = fields.text("leafUuid").map(|leaf| digest(leaf.as_bytes()));
                if let (Some(leaf), Some(kind)) = (leaf, title("summary", TitleOrigin::Summary)) {
                    if self.tree.contains(leaf) {
                        emit.push(kind);
                    } else {
                        self.summaries.insert(leaf, kind);
                    }
                }
                Some(())
            }
            "cost-state" => {
                let cost = reported_cost(fields, "totalCostUSD");
                let (project, branch, version) = (None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                Some(())
            }
            "queue-operation" => {
                if fields.text("operation").as_deref() == Some("enqueue") {
                    self.queued = fields.string("content");
                }
                Some(())
            }
            "api-request" => {
                let id = fields.string("id").unwrap_or_default();
                let thinking = fields.fields("params").fields("thinking");
                let on = thinking.text("type").is_some_and(|kind| kind != "disabled");
                self.requests.push_front((id, on));
                self.requests.truncate(16);
                self.prompts.request(emit, fields);
                Some(())
            }
            "api-request-shape" => {
                self.prompts.shape(emit, fields);
                Some(())
            }
            "api-request-blob" => {
                self.prompts.blob(emit, fields);
                Some(())
            }
            "last-prompt" | "mode" | "permission-mode" | "agent-name" => Some(()),
            "atis-latch"
            | "tools-used"
            | "file-history-snapshot"
            | "file-history-delta"
            | "progress" => return RecordOutcome::left_out(kind),
            _ => {
                let payload = Json::parse(record.text).unwrap_or_else(|| Json::string(record.text));
                emit.push(EventKind::Part(
                    None,
                    Body::Data(Data { kind: kind.to_owned(), payload }),
                ));
                return RecordOutcome::InParts;
            }
        };
        RecordOutcome::Metadata
    }

    pub(in crate::decode::claude) fn snapshot(
        &self,
        emit: &mut Emitter<'_>,
        kind: &str,
        content: Option<Json>,
    ) {
        if let Some(content) = content {
            let sha256 = sha256(content.text().as_bytes());
            emit.push(EventKind::SnapshotTaken { kind: kind.to_owned(), sha256, content });
        }
    }
}
