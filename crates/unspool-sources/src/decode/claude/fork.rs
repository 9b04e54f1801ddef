//! The session that a fork came from, if its log names it. 2.1.325 copies records without naming
//! the origin, but the summary of a compaction names the log that it summarises, and a fork copies
//! that too. Other versions of 2.1 write `forkedFrom` on copied records.

use std::path::Path;

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::id::SessionId;
use unspool_model::session::ForkedFrom;

use super::super::{Emitter, Fields};

/// The program's text before the path of a log, after everything that the model wrote.
const TRANSCRIPT_PREFIX: &str = "read the full transcript at: ";

#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ForkOrigin {
    is_reported: bool,
}

impl ForkOrigin {
    pub fn report(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        if let Some(from) = fields.fields("forkedFrom").text("sessionId") {
            self.report_fork(emit, fields, &from);
        }
    }

    /// Reads the origin from a copied summary.
    pub fn report_summary(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, summary: &str) {
        let path = summary.rsplit_once(TRANSCRIPT_PREFIX).and_then(|(_, rest)| rest.lines().next());
        let log = path.map(Path::new).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
        if let Some(from) = log.and_then(Path::file_stem).and_then(|stem| stem.to_str()) {
            self.report_fork(emit, fields, from);
        }
    }

    fn report_fork(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, from: &str) {
        let own = fields.is("sessionId", from);
        if !own && !from.is_empty() && !std::mem::replace(&mut self.is_reported, true) {
            let session = SessionId::of(super::NAME, from);
            emit.push(EventKind::BranchedOff(ForkedFrom { session, turn: None }));
        }
    }
}
