//! A sync of history and agents that write meanwhile.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use unspool_ingest::recorder::Recorder;
use unspool_ingest::report::Progress;
use unspool_ingest::sync::{FileCandidate, FileStates, LiveFiles, sync, sync_beside};
use unspool_model::change::ChangeSet;
use unspool_model::id::SessionId;
use unspool_store::database::Database;

/// Enough for several batches, which are small beside live files.
const TURNS: usize = 3_000;
/// Too long to be read in between.
const MANY_TURNS: usize = 8_000;

fn log(session: &str, turns: usize) -> String {
    let turn = |n: usize| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{session}-{n}\",\"sessionId\":\"{session}\",\
             \"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{{\"role\":\"user\",\
             \"content\":\"question {n} of {session}\"}}}}\n"
        )
    };
    (0..turns).map(turn).collect()
}

fn write(folder: &TempDir, session: &str, turns: usize, age: u64) -> PathBuf {
    let path = folder.path().join(format!("{session}.jsonl"));
    fs::write(&path, log(session, turns)).unwrap();
    let then = SystemTime::now() - Duration::from_secs(3600 + age);
    fs::File::options().append(true).open(&path).unwrap().set_modified(then).unwrap();
    path
}

fn candidates(paths: &[&Path]) -> Vec<FileCandidate> {
    let found = paths.iter().map(|path| FileCandidate::of(path));
    found.map(|file| FileCandidate { named: false, ..file }).collect()
}

fn recorder(folder: &TempDir) -> Recorder<Database> {
    Recorder::new(Database::open(&folder.path().join("archive.db")).unwrap()).unwrap()
}

/// The sessions of the published changes, in order, with the seq of each.
fn published(changes: &mut tokio::sync::broadcast::Receiver<ChangeSet>) -> Vec<(SessionId, u64)> {
    let mut found = Vec::new();
    while let Ok(change) = changes.try_recv() {
        found.push((change.session, change.seq));
    }
    found
}

/// Reports one file, after so many looks.
struct Appears {
    file: FileCandidate,
    /// Written to the file before it is reported.
    appended: String,
    looks: Mutex<usize>,
    postponed: Mutex<bool>,
}

impl Appears {
    fn after(looks: usize, path: &Path) -> Appears {
        let [file] = <[FileCandidate; 1]>::try_from(candidates(&[path])).unwrap();
        let appended = String::new();
        Appears { file, appended, looks: Mutex::new(looks), postponed: Mutex::new(false) }
    }
}

impl LiveFiles for Appears {
    fn next(&self) -> Option<FileCandidate> {
        let mut looks = self.looks.lock().unwrap();
        *looks = looks.checked_sub(1)?;
        (*looks == 0).then(|| {
            let mut file = fs::File::options().append(true).open(&self.file.path).unwrap();
            file.write_all(self.appended.as_bytes()).unwrap();
            candidates(&[&self.file.path]).remove(0)
        })
    }

    fn retry(&self, _: FileCandidate) {
        // What was appended is there already.
        *self.looks.lock().unwrap() = usize::MAX;
    }

    fn postpone(&self) {
        *self.postponed.lock().unwrap() = true;
    }
}

#[test]
fn a_live_session_is_published_while_a_long_log_is_read() {
    let folder = TempDir::new().unwrap();
    let long = write(&folder, "long", TURNS, 0);
    let live = write(&folder, "live", 1, 0);
    let recorder = recorder(&folder);
    let mut changes = recorder.subscribe();
    let mut states = FileStates::load(&recorder).unwrap();
    let appears = Appears::after(3, &live);
    let files = candidates(&[&long]);
    let report =
        sync_beside(&recorder, &mut states, files, &Progress::default(), Some(&appears)).unwrap();
    assert_eq!((report.sessions, report.turns), (2, TURNS as u64 + 1));
    let (long_id, live_id) =
        (SessionId::of("claude-code", "long"), SessionId::of("claude-code", "live"));
    let published = published(&mut changes);
    let at = published.iter().position(|(id, _)| *id == live_id).expect("published");
    assert!(at + 1 < published.len(), "the live session was published last");
    assert!(published[at + 1..].iter().all(|(id, _)| *id == long_id));
    // Its state is known: nothing is read twice.
    let again = candidates(&[&long, &live]);
    let report = sync(&recorder, &mut states, again, &Progress::default()).unwrap();
    assert_eq!((report.unchanged_files, report.records), (2, 0));
}

#[test]
fn a_live_log_that_waits_in_the_queue_is_read_once() {
    let folder = TempDir::new().unwrap();
    let long = write(&folder, "long", TURNS, 0);
    let live = write(&folder, "live", 3, 10);
    let recorder = recorder(&folder);
    let mut states = FileStates::load(&recorder).unwrap();
    let appears = Appears::after(1, &live);
    let files = candidates(&[&long, &live]);
    let report =
        sync_beside(&recorder, &mut states, files, &Progress::default(), Some(&appears)).unwrap();
    assert_eq!((report.sessions, report.turns), (2, TURNS as u64 + 3));
    assert_eq!(report.warnings, Vec::new());
}

#[test]
fn a_long_log_that_appears_is_left_to_the_next_sync() {
    let folder = TempDir::new().unwrap();
    let long = write(&folder, "long", TURNS, 0);
    let other = write(&folder, "other", MANY_TURNS, 0);
    let recorder = recorder(&folder);
    let mut states = FileStates::load(&recorder).unwrap();
    let appears = Appears::after(1, &other);
    let files = candidates(&[&long]);
    let report =
        sync_beside(&recorder, &mut states, files, &Progress::default(), Some(&appears)).unwrap();
    assert_eq!(report.sessions, 1);
    assert!(*appears.postponed.lock().unwrap());
}

#[test]
fn the_newest_sessions_are_read_first_and_found_first() {
    let folder = TempDir::new().unwrap();
    // Each is a batch of its own.
    let paths: Vec<PathBuf> =
        (0..4).map(|age| write(&folder, &format!("age-{age}"), 18_000, 1000 * age)).collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let recorder = recorder(&folder);
    let mut changes = recorder.subscribe();
    let mut states = FileStates::load(&recorder).unwrap();
    let files = candidates(&paths);
    let nothing = Appears { looks: Mutex::new(0), ..Appears::after(1, paths[0]) };
    sync_beside(&recorder, &mut states, files, &Progress::default(), Some(&nothing)).unwrap();
    let published = published(&mut changes);
    let first = |age: usize| {
        let id = SessionId::of("claude-code", &format!("age-{age}"));
        published.iter().position(|(found, _)| *found == id).unwrap()
    };
    // Two workers read side by side.
    assert!(first(0).max(first(1)) < first(2).min(first(3)), "{published:?}");
    drop(recorder);
    let connection = rusqlite::Connection::open(folder.path().join("archive.db")).unwrap();
    let sql = "SELECT min(part.row), max(part.row) FROM part JOIN turn ON turn.row = part.turn
               JOIN session ON session.row = turn.session WHERE agent_session_id = ?1";
    let rows = |age: usize| -> (i64, i64) {
        connection
            .query_row(sql, [format!("age-{age}")], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
    };
    for age in 1..4 {
        assert!(rows(age).1 < rows(age - 1).0, "age {age}");
    }
}

#[test]
fn a_row_of_a_file_is_not_overwritten_by_an_older_one() {
    for looks in 1..12 {
        let folder = TempDir::new().unwrap();
        let whole = log("live", 3);
        // Half a line: it says nothing yet, so no session is claimed for it.
        let live = folder.path().join("live.jsonl");
        fs::write(&live, &whole[..40]).unwrap();
        let long: Vec<PathBuf> =
            ["a", "b"].map(|name| write(&folder, name, 400, 10)).into_iter().collect();
        let recorder = recorder(&folder);
        let mut states = FileStates::load(&recorder).unwrap();
        let appears = Appears { appended: whole[40..].to_owned(), ..Appears::after(looks, &live) };
        let files = candidates(&[&live, &long[0], &long[1]]);
        sync_beside(&recorder, &mut states, files, &Progress::default(), Some(&appears)).unwrap();
        if fs::metadata(&live).unwrap().len() == 40 {
            fs::write(&live, &whole).unwrap();
        }
        // As after a restart.
        let mut states = FileStates::load(&recorder).unwrap();
        let again = candidates(&[&live]);
        sync(&recorder, &mut states, again, &Progress::default()).unwrap();
        drop(recorder);
        let connection = rusqlite::Connection::open(folder.path().join("archive.db")).unwrap();
        let sql =
            "SELECT count(*), sum(read) FROM source JOIN session ON session.row = source.session
                   WHERE agent_session_id = 'live'";
        let found: (i64, i64) =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(found, (1, 3), "after {looks} looks");
    }
}
