//! Compactions of agents without a log. Each has an id, under which its summary comes in pieces or
//! whole, once or several times.

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::part::{Body, Compaction, Notice};
use unspool_model::provenance::Name;

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::AcpDecoder;

/// The latest compaction of the session.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LatestCompaction {
    id: String,
    summary: String,
    /// Its end was reported.
    ended: bool,
}

impl AcpDecoder {
    pub(super) fn compaction(
        &mut self,
        emit: &mut Emitter<'_>,
        update: &Fields<'_>,
    ) -> RecordOutcome {
        let id = update.string("compactionId").unwrap_or_default();
        if self.compaction.as_ref().is_none_or(|held| held.id != id) {
            let (id, summary) = (id.clone(), String::new());
            self.compaction = Some(LatestCompaction { id, summary, ended: false });
            self.end_block(emit);
        }
        let Some(held) = &mut self.compaction else { return RecordOutcome::Metadata };
        if let Some(piece) = update.fields("content").string("text") {
            held.summary.push_str(&piece);
        }
        if update.has("summary") {
            let texts = update.list("summary").filter_map(|block| block.string("text"));
            held.summary = texts.collect::<Vec<_>>().join("\n\n");
        }
        let status = update.text("status");
        let body = match status.as_deref() {
            Some("completed") if !held.ended => {
                let summary = held.summary.clone();
                Body::Compaction(Compaction { summary, ..Compaction::default() })
            }
            Some(status @ ("failed" | "cancelled")) if !held.ended => {
                let error = update.string("error").map(|error| format!(": {error}"));
                let text = format!("The compaction {}{}", ended(status), error.unwrap_or_default());
                Body::Notice(Notice { code: "compaction".to_owned(), text })
            }
            _ => return RecordOutcome::Metadata,
        };
        held.ended = true;
        emit.push(EventKind::Part(Some(Name::Record(id.into())), body));
        RecordOutcome::InParts
    }
}

fn ended(status: &str) -> &'static str {
    if status == "failed" { "failed" } else { "was cancelled" }
}
