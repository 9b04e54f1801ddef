//! Decodes stored sessions again from the agents' logs, so that they profit from newer decoders.
//! Only sessions whose logs still contain everything that was read from them are touched; sessions
//! without a log stay as they are. A reread that was interrupted is completed by the next one: the
//! files of a session are marked in the transaction that removes it.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::SessionId;
use unspool_sources::agents::Agent;
use unspool_sources::fingerprint::matches;
use unspool_sources::read::source;
use unspool_store::blocking::block_on;
use unspool_store::rows::{FileRow, RowId};
use unspool_store::store::{SessionFilter, Store, StoredSession, View, Viewer};

use crate::recorder::Recorder;
use crate::report::{Progress, SyncReport};
use crate::sync::{FileCandidate, FileStates, SyncError, sync};

/// The sessions to decode again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RereadScope {
    All,
    /// Those that have no prompts although their agent writes them down.
    WithoutPrompts,
}

/// The result of a reread.
#[derive(Debug)]
pub struct RereadReport {
    pub report: SyncReport,
    /// Sessions left unchanged because one of their logs is missing or was replaced.
    pub skipped: Vec<SkippedSession>,
    /// Sessions that have prompts now and had none before.
    pub with_prompts: u64,
}

/// A session whose logs are not there as they were read.
#[derive(Debug)]
pub struct SkippedSession {
    pub session: SessionId,
    /// The files that are gone or were replaced; none if it was not read from files.
    pub files: Vec<PathBuf>,
}

/// A file that was read, and whether all of that is still in it.
struct ReadFile {
    path: PathBuf,
    is_intact: bool,
}

/// Decodes sessions again whose logs are intact. Names and tags stay.
pub fn reread<S: Store>(
    recorder: &Recorder<S>,
    scope: RereadScope,
    progress: &Progress,
) -> Result<RereadReport, SyncError> {
    let store = recorder.store();
    let view = store.view(Viewer::Sole);
    let stored = block_on(store.files())?;
    // What an interrupted reread has left: removed sessions whose files are still to be read.
    let left: Vec<RowId> =
        stored.iter().filter(|file| is_marked(file)).map(|file| file.row).collect();
    let files: FxHashMap<RowId, ReadFile> =
        stored.into_iter().map(|file| (file.row, ReadFile::new(file))).collect();
    let prompts_before = block_on(view.sessions_with_prompts())?;
    let mut skipped = Vec::new();
    let mut again = Vec::new();
    let of_left = left.iter().filter_map(|row| files.get(row)).filter(|file| file.is_intact);
    let mut paths: FxHashSet<PathBuf> = of_left.map(|file| file.path.clone()).collect();
    let filter = SessionFilter { with_empty: true, ..SessionFilter::default() };
    for stored in block_on(view.sessions(filter))? {
        if scope == RereadScope::WithoutPrompts
            && (prompts_before.contains(&stored.row) || !writes_prompts(&stored))
        {
            continue;
        }
        let sources = block_on(view.session_export(stored.row))?.sources;
        let logs: Vec<&ReadFile> =
            sources.iter().filter_map(|source| files.get(&source.file)).collect();
        let all = !logs.is_empty() && logs.len() == sources.len();
        let gone = logs.iter().filter(|file| !file.is_intact).map(|file| file.path.clone());
        let gone: Vec<PathBuf> = gone.collect();
        if !all || !gone.is_empty() {
            let session = stored.summary.session.id;
            skipped.push(SkippedSession { session, files: gone });
            continue;
        }
        paths.extend(logs.into_iter().map(|file| file.path.clone()));
        again.push(stored.row);
    }
    for session in again {
        block_on(store.forget(session))?;
    }
    let candidates =
        paths.into_iter().map(|path| FileCandidate { path, stamp: None, named: true }).collect();
    let report = sync(recorder, &mut FileStates::load(recorder)?, candidates, progress)?;
    let prompts_after = block_on(view.sessions_with_prompts())?.len() as u64;
    // In a reread of all, sessions lose their rows and get new ones.
    let with_prompts = prompts_after.saturating_sub(prompts_before.len() as u64);
    Ok(RereadReport { report, skipped, with_prompts })
}

impl ReadFile {
    fn new(file: FileRow) -> ReadFile {
        let is_intact = source::open(Path::new(&file.path))
            .is_ok_and(|mut open| matches(file.print, open.text()).unwrap_or(false));
        ReadFile { path: PathBuf::from(file.path), is_intact }
    }
}

/// True for a file whose session was removed to be read again.
fn is_marked(file: &FileRow) -> bool {
    let stamp = &file.stamp;
    stamp.size == 0 && stamp.modified == 0 && stamp.changed == 0 && file.line > 0
}

fn writes_prompts(stored: &StoredSession) -> bool {
    Agent::named(&stored.summary.session.agent).is_some_and(|agent| agent.prompts.is_some())
}
