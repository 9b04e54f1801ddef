//! The session that a fork came from, if its log names it. 2.1.325 copies records without naming
//! the origin, but the summary of a compaction names the log that it summarises, and a fork copies
//! that too. Other versions of 2.1 write `forkedFrom` on copied records.

use std::path::Path;

use serde::{Deserialize, Serialize};
use unspool_core::event::What;
use unspool_core::id::SessionId;
use unspool_core::session::ForkedFrom;

use super::super::{Emit, Fields};

/// The program's text before the path of a log, after everything that the model wrote.
const TRANSCRIPT: &str = "read the full transcript at: ";

#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Forked {
    told: bool,
}

impl Forked {
    pub fn tell(&mut self, emit: &mut Emit<'_>, fields: &Fields<'_>) {
        if let Some(from) = fields.fields("forkedFrom").text("sessionId") {
            self.branched_off(emit, fields, &from);
        }
    }

    /// Reads the origin from a copied summary.
    pub fn tell_summary(&mut self, emit: &mut Emit<'_>, fields: &Fields<'_>, summary: &str) {
        let path = summary.rsplit_once(TRANSCRIPT).and_then(|(_, rest)| rest.lines().next());
        let log = path.map(Path::new).filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
        if let Some(from) = log.and_then(Path::file_stem).and_then(|stem| stem.to_str()) {
            self.branched_off(emit, fields, from);
        }
    }

    fn branched_off(&mut self, emit: &mut Emit<'_>, fields: &Fields<'_>, from: &str) {
        let own = fields.is("sessionId", from);
        if !own && !from.is_empty() && !std::mem::replace(&mut self.told, true) {
            let session = SessionId::of(super::AGENT, from);
            emit.push(What::BranchedOff(ForkedFrom { session, turn: None }));
        }
    }
}
