//! Logs that grow between syncs: after each write the archive equals a fresh import of the same
//! bytes, and no byte was read twice.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use tempfile::TempDir;
use unspool_ingest::recorder::Recorder;
use unspool_ingest::report::{Progress, SyncReport};
use unspool_ingest::sync::{FileCandidate, FileStates, sync};
use unspool_model::session::Turn;
use unspool_model::source::RecordCounts;
use unspool_model::summary::Summary;
use unspool_sources::discover::find_files;
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::store::{SessionFilter, Store, StoredWarning, TurnWindow, View, Viewer};

use crate::case::{all_cases, name, root};

/// The steps of a log whose recorded writes are unknown. `UNSPOOL_GROWTH=all` steps through every
/// line of every log.
const GROWTH_STEPS: usize = 4;

/// A write: the file, and its size afterwards.
type FileWrite = (PathBuf, usize);

/// Everything that an archive stores of a session.
#[derive(PartialEq, Debug)]
pub struct ArchivedSession {
    pub summary: Summary,
    pub turns: Vec<Turn>,
    records: RecordCounts,
    warnings: Vec<StoredWarning>,
}

pub struct Archive {
    recorder: Recorder<Database>,
    file_states: FileStates,
    _folder: TempDir,
}

impl Archive {
    pub fn new() -> Archive {
        let folder = TempDir::new().unwrap();
        let store = Database::open(&folder.path().join("archive.db")).unwrap();
        let recorder = Recorder::new(store).unwrap();
        let file_states = FileStates::load(&recorder).unwrap();
        Archive { recorder, file_states, _folder: folder }
    }

    pub fn sync(&mut self, tree: &Path) -> SyncReport {
        let (files, _) = find_files(tree);
        let found =
            files.iter().map(|path| FileCandidate { named: false, ..FileCandidate::of(path) });
        let candidates = found.collect();
        sync(&self.recorder, &mut self.file_states, candidates, &Progress::default()).unwrap()
    }

    pub fn contents(&self) -> Vec<ArchivedSession> {
        let store = self.recorder.store();
        let all = SessionFilter { with_empty: true, ..SessionFilter::default() };
        let mut sessions = block_on(store.view(Viewer::Sole).sessions(all)).unwrap();
        sessions.sort_by_key(|session| session.summary.session.id.to_string());
        let contents = sessions.into_iter().map(|session| ArchivedSession {
            turns: unnumbered(
                block_on(store.view(Viewer::Sole).turns(session.row, TurnWindow::All)).unwrap(),
            ),
            records: block_on(store.view(Viewer::Sole).records(session.row)).unwrap(),
            warnings: block_on(store.view(Viewer::Sole).warnings(session.row)).unwrap(),
            summary: session.summary,
        });
        contents.collect()
    }
}

/// Grows the files of a case step by step, and compares each step with a fresh import.
fn grow(case: &Path, steps: &[FileWrite]) {
    let tree = TempDir::new().unwrap();
    // The folder `subagents` is in one named after the session.
    let tree = tree.path().join(session_of(case));
    // Metadata files are written once, so they exist from the start.
    for beside in beside(case) {
        let to = tree.join(beside.strip_prefix(case).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&beside, to).unwrap();
    }
    let mut grown = Archive::new();
    let (mut read, mut sizes) = (0, BTreeMap::new());
    for (at, (file, size)) in steps.iter().enumerate() {
        let bytes = fs::read(case.join(file)).unwrap();
        let path = tree.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let had = sizes.insert(file, *size).unwrap_or(0);
        let mut log = fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        log.write_all(&bytes[had..*size]).unwrap();
        drop(log);
        // A log without a session id so far is read again from the start.
        read = if grown.contents().is_empty() { 0 } else { read } + grown.sync(&tree).bytes;
        let mut fresh = Archive::new();
        let whole = fresh.sync(&tree).bytes;
        let (found, expected) = (grown.contents(), fresh.contents());
        let place = || format!("{} step {at}: {} of {size} bytes", name(case), file.display());
        assert_eq!(found.len(), expected.len(), "{}", place());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.summary, expected.summary, "{}", place());
            assert_eq!(found, expected, "{}", place());
        }
        assert_eq!(read, whole, "{}: something was read twice, or not at all", place());
    }
}

/// Clears source numbers: they depend on the order in which files were found.
fn unnumbered(mut turns: Vec<Turn>) -> Vec<Turn> {
    let parts = turns.iter_mut().flat_map(|turn| &mut turn.parts);
    for evidence in parts.flat_map(|part| &mut part.evidence) {
        evidence.source = 0;
    }
    turns
}

fn session_of(case: &Path) -> String {
    let log = fs::read_to_string(case.join("log.jsonl")).unwrap_or_default();
    let contents = log.lines().find_map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(record["sessionId"].as_str()?.to_owned())
    });
    contents.unwrap_or_else(|| name(case))
}

/// The metadata files of sub-agents; they do not grow.
fn beside(case: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(case.join("subagents")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(".meta.json")).collect()
}

/// The end offset of each line.
fn line_ends(path: &Path) -> Vec<usize> {
    let bytes = fs::read(path).unwrap();
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let mut ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
    ends.extend(Some(bytes.len()).filter(|size| ends.last() != Some(size)));
    ends
}

/// Runs `work` on each element, on two threads.
fn each<T: Sync>(list: &[T], work: impl Fn(&T) + Sync) {
    thread::scope(|scope| {
        for half in list.chunks(list.len().div_ceil(2).max(1)) {
            scope.spawn(|| half.iter().for_each(&work));
        }
    });
}

#[test]
fn logs_that_grow_as_agents_wrote_them_are_at_every_step_what_a_fresh_import_gives() {
    // R-001-28: with the recorded sizes of every write, including sub-agents' logs.
    let mut cases: BTreeMap<PathBuf, Vec<FileWrite>> = BTreeMap::new();
    for agent in ["claude-code", "codex", "droid", "pi", "qwen"] {
        for (case, file, lines) in recorded_writes(agent) {
            let path = case.join(&file);
            // A write may end within a line.
            let is_cut = lines.ends_with('+');
            let lines: usize = lines.trim_end_matches('+').parse().unwrap();
            let ends = line_ends(&path);
            // The recording of the writes was one record shorter than the fixture.
            assert!(lines <= ends.len(), "{} has no line {lines}", path.display());
            let mut size = lines.checked_sub(1).map_or(0, |last| ends[last]);
            if is_cut {
                size = size.midpoint(ends[lines]);
            }
            cases.entry(case).or_default().push((file.into(), size));
        }
    }
    let steps: usize = cases.values().map(Vec::len).sum();
    assert!(cases.len() >= 18 && steps > 420, "{} cases, {steps} steps", cases.len());
    let cases: Vec<_> = cases.into_iter().collect();
    each(&cases, |(case, steps)| grow(case, steps));
}

/// The recorded writes of an agent: the case, the file, and how long the file was afterwards.
pub fn recorded_writes(agent: &str) -> Vec<(PathBuf, String, String)> {
    let folder = root().join("fixtures").join(agent);
    let contents = fs::read_to_string(folder.join("growth.tsv")).unwrap();
    let writes = contents.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (path, length) = line.split_once('\t').unwrap();
        let (case, file) = path.split_once('/').unwrap();
        (folder.join(case), file.to_owned(), length.to_owned())
    });
    writes.collect()
}

#[test]
fn a_database_that_grows_as_kilo_wrote_it_is_at_every_step_what_a_fresh_import_gives() {
    // R-001-28, laws 2 and 5: with the events that the session had at each recorded moment. Nearly
    // all of them are of texts that Kilo shows while it waits, and removes.
    let mut steps = 0;
    let tree = TempDir::new().unwrap();
    let path = tree.path().join("kilo.db");
    let mut grown = Archive::new();
    let mut read = 0;
    for (case, file, events) in recorded_writes("kilo") {
        let events: i64 = events.parse().unwrap();
        let whole = case.join(file);
        if !path.exists() {
            fs::copy(&whole, &path).unwrap();
            let begun = rusqlite::Connection::open(&path).unwrap();
            begun.execute("DELETE FROM event", ()).unwrap();
        }
        let database = rusqlite::Connection::open(&path).unwrap();
        database.execute("ATTACH ?1 AS whole", [whole.to_str().unwrap()]).unwrap();
        let added = "INSERT INTO event SELECT * FROM whole.event AS e \
             WHERE e.seq < ?1 AND e.id NOT IN (SELECT id FROM event)";
        assert!(database.execute(added, [events]).unwrap() > 0);
        database.execute("UPDATE event_sequence SET seq = ?1", [events - 1]).unwrap();
        database.execute("UPDATE session SET time_updated = ?1", [events]).unwrap();
        drop(database);
        read += grown.sync(tree.path()).bytes;
        let mut fresh = Archive::new();
        let whole = fresh.sync(tree.path()).bytes;
        assert_eq!(grown.contents(), fresh.contents(), "{events} events");
        assert_eq!(read, whole, "{events} events: something was read twice, or not at all");
        steps += 1;
    }
    assert!(steps > 60, "{steps}");
    let parts: usize = grown.contents()[0].turns.iter().map(|turn| turn.parts.len()).sum();
    assert!(parts >= 20, "{parts}");
}

#[test]
fn every_log_may_be_read_while_it_grows() {
    // Laws 2 and 5, for every agent, cut between lines and within them.
    let all = std::env::var_os("UNSPOOL_GROWTH").is_some_and(|said| said == "all");
    let mut cases: Vec<PathBuf> = all_cases();
    cases.retain(|case| case.join("log.jsonl").exists());
    assert!(cases.len() > 100);
    // Shuffle, to spread long cases over both threads.
    cases.sort_by_key(|case| unspool_model::id::digest(name(case).as_bytes()));
    each(&cases, |case| {
        let ends = line_ends(&case.join("log.jsonl"));
        let stride = if all { 1 } else { ends.len().div_ceil(GROWTH_STEPS) };
        let mut sizes: Vec<usize> = ends.iter().copied().step_by(stride).collect();
        // Half a line, possibly half a character.
        let halves = ends.windows(2).step_by(stride * 2).map(|pair| (pair[0] + pair[1]) / 2);
        sizes.extend(halves.collect::<Vec<_>>());
        sizes.extend(ends.last());
        sizes.sort_unstable();
        sizes.dedup();
        let steps: Vec<FileWrite> =
            sizes.into_iter().map(|size| ("log.jsonl".into(), size)).collect();
        grow(case, &steps);
    });
}
