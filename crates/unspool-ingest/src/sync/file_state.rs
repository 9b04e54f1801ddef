//! Compares stored file rows with the files on disk: fingerprints, copies, idle files, refusals.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use unspool_model::source::{FileStamp, Fingerprint};
use unspool_sources::decode::Warning;
use unspool_sources::file_decoder::Verdict;
use unspool_sources::fingerprint;
use unspool_sources::read::lines::ReadPosition;
use unspool_sources::read::source::{self, Source};
use unspool_sources::unsupported;
use unspool_store::rows::{FileRow, RowId, forgotten_path, is_forgotten};
use unspool_store::store::Store;

use crate::sync::open_file::Origin;
use crate::sync::worker::Worker;

/// After this long without a write, the last line is read even without a line end.
const IDLE_AFTER: Duration = Duration::from_secs(60);

pub(crate) fn file_row(
    position: ReadPosition,
    print: Option<Fingerprint>,
    verdict: Verdict,
) -> FileRow {
    FileRow {
        print: print.unwrap_or_default(),
        line: position.number,
        refused: refusal(verdict),
        ..FileRow::default()
    }
}

/// Why a file was refused. Stored with the file and shown as a warning.
fn refusal(verdict: Verdict) -> Option<String> {
    let reason = match verdict {
        Verdict::HasSessions => return None,
        Verdict::Empty => "empty".to_owned(),
        Verdict::PromptHistory { .. } => "a list of typed prompts, not a session".to_owned(),
        Verdict::Unsupported { what } => unsupported::reason(what),
        Verdict::Unknown => "unrecognised file format".to_owned(),
    };
    Some(reason)
}

pub(crate) fn warning(name: &str, what: String) -> Warning {
    Warning { file: name.to_owned(), line: 0, what, bytes: Vec::new() }
}

pub(crate) fn is_idle(stamp: FileStamp) -> bool {
    since_write(stamp) > IDLE_AFTER
}

/// The time since the last write. None has passed since one in the future.
pub(crate) fn since_write(stamp: FileStamp) -> Duration {
    let modified = UNIX_EPOCH + Duration::from_nanos(u64::try_from(stamp.modified).unwrap_or(0));
    SystemTime::now().duration_since(modified).unwrap_or_default()
}

/// Looks up a file by its row id.
pub(crate) fn file_by_row(stored: &FxHashMap<String, FileRow>, row: RowId) -> Option<&FileRow> {
    stored.values().find(|file| file.row == row)
}

impl<S: Store> Worker<'_, S> {
    /// True if an input starts with everything that was read from `of`, or is the file that the
    /// archive was to forget.
    pub(crate) fn is_copy(&self, origin: &Origin, of: &FileRow) -> bool {
        if is_forgotten(&of.path) {
            let Origin::File(path) = origin else { return false };
            return forgotten_path(&path.to_string_lossy()) == of.path;
        }
        let source = self.open_origin(origin);
        source.is_some_and(|mut source| {
            fingerprint::matches(of.print, source.text()).unwrap_or(false)
        })
    }

    /// The text of an open file, from its start. None if it cannot be read again.
    pub(crate) fn open_origin(&self, origin: &Origin) -> Option<Source> {
        match origin {
            Origin::File(path) => source::open(path).ok(),
            Origin::Received(file) => self.open_received(file).ok(),
            Origin::Stream => None,
        }
    }
}
