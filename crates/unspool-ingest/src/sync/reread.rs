//! Decodes stored sessions again from the agents' logs, so that they profit from newer decoders.
//! Only sessions whose logs still contain everything that was read from them are touched; sessions
//! without a log stay as they are.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_sources::fingerprint::matches;
use unspool_sources::read::source;
use unspool_store::blocking::block_on;
use unspool_store::rows::RowId;
use unspool_store::store::{SessionFilter, Store, View, Viewer};

use crate::recorder::Recorder;
use crate::report::{Progress, SyncReport};
use crate::sync::{FileCandidate, FileStates, SyncError, sync};

/// The result of a reread.
#[derive(Debug)]
pub struct RereadReport {
    pub report: SyncReport,
    /// Sessions left unchanged because one of their logs is missing or was replaced.
    pub skipped: u64,
}

/// Decodes every session again whose logs are intact. Names and tags stay.
pub fn reread<S: Store>(
    recorder: &Recorder<S>,
    progress: &Progress,
) -> Result<RereadReport, SyncError> {
    let store = recorder.store();
    let view = store.view(Viewer::Sole);
    let files: FxHashMap<RowId, (PathBuf, bool)> = block_on(store.files())?
        .into_iter()
        .map(|file| {
            let there = source::open(Path::new(&file.path))
                .is_ok_and(|mut open| matches(file.print, open.text()).unwrap_or(false));
            (file.row, (PathBuf::from(file.path), there))
        })
        .collect();
    let mut skipped = 0;
    let mut paths: FxHashSet<PathBuf> = FxHashSet::default();
    let mut again = Vec::new();
    for stored in
        block_on(view.sessions(SessionFilter { with_empty: true, ..SessionFilter::default() }))?
    {
        let sources = block_on(view.session_export(stored.row))?.sources;
        let logs: Vec<&(PathBuf, bool)> =
            sources.iter().filter_map(|source| files.get(&source.file)).collect();
        let all = !logs.is_empty() && logs.len() == sources.len();
        if !all || logs.iter().any(|(_, there)| !there) {
            skipped += 1;
            continue;
        }
        paths.extend(logs.into_iter().map(|(path, _)| path.clone()));
        again.push(stored.row);
    }
    for session in again {
        block_on(store.forget(session))?;
    }
    let candidates =
        paths.into_iter().map(|path| FileCandidate { path, stamp: None, named: true }).collect();
    let report = sync(recorder, &mut FileStates::load(recorder)?, candidates, progress)?;
    Ok(RereadReport { report, skipped })
}
