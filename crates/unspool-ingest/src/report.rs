//! The report of a sync and its progress counters.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use unspool_model::id::SessionId;
use unspool_sources::decode::Warning;

/// What a sync read and stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SyncReport {
    /// New or changed sessions.
    pub sessions: u64,
    pub turns: u64,
    pub parts: u64,
    pub records: u64,
    pub bytes: u64,
    pub unchanged_files: u64,
    pub warnings: Vec<Warning>,
    /// The sessions behind `sessions`, so that reports of one input in several pieces add up. Not
    /// for people: `for_output` drops them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) changed: BTreeSet<SessionId>,
}

impl SyncReport {
    /// The report as commands print it.
    pub fn for_output(mut self) -> SyncReport {
        self.changed.clear();
        self
    }

    /// Logs the counts. Warnings quote records, so the log has only their number.
    pub fn log(&self) {
        let SyncReport { sessions, turns, parts, records, bytes, unchanged_files, .. } = self;
        let warnings = self.warnings.len();
        tracing::info!(sessions, turns, parts, records, bytes, unchanged_files, warnings, "synced");
    }

    pub fn add(&mut self, more: SyncReport) {
        let known = more.changed.intersection(&self.changed).count() as u64;
        self.sessions += more.sessions.saturating_sub(known);
        self.changed.extend(more.changed);
        self.turns += more.turns;
        self.parts += more.parts;
        self.records += more.records;
        self.bytes += more.bytes;
        self.unchanged_files += more.unchanged_files;
        self.warnings.extend(more.warnings);
    }
}

/// Progress of a running sync, read by the progress bar.
#[derive(Debug, Default)]
pub struct Progress {
    pub files: AtomicU64,
    pub files_done: AtomicU64,
    pub bytes: AtomicU64,
    pub bytes_done: AtomicU64,
}

/// Counters shared by the workers.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub sessions: Mutex<FxHashSet<SessionId>>,
    pub turns: AtomicI64,
    pub parts: AtomicI64,
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub unchanged: AtomicU64,
    pub warnings: Mutex<Vec<Warning>>,
}

/// More warnings than anybody reads. The archive has all of them.
const MAX_WARNINGS: usize = 10_000;

impl Tally {
    pub fn add(count: &AtomicU64, more: u64) {
        count.fetch_add(more, Ordering::Relaxed);
    }

    pub fn changed(&self, session: SessionId) {
        if let Ok(mut sessions) = self.sessions.lock() {
            sessions.insert(session);
        }
    }

    pub fn warn(&self, warning: Warning) {
        if let Ok(mut warnings) = self.warnings.lock()
            && warnings.len() < MAX_WARNINGS
        {
            // Its bytes are in the archive.
            warnings.push(Warning { bytes: Vec::new(), ..warning });
        }
    }

    pub fn into_report(self) -> SyncReport {
        let mut warnings = self.warnings.into_inner().unwrap_or_default();
        warnings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        let changed: BTreeSet<SessionId> =
            self.sessions.into_inner().unwrap_or_default().into_iter().collect();
        SyncReport {
            sessions: changed.len() as u64,
            // Merging two turns or parts into one can make the count negative.
            turns: self.turns.into_inner().max(0) as u64,
            parts: self.parts.into_inner().max(0) as u64,
            records: self.records.into_inner(),
            bytes: self.bytes.into_inner(),
            unchanged_files: self.unchanged.into_inner(),
            warnings,
            changed,
        }
    }
}
