//! Opening a database: a current one, one of another program, one of a newer version, and one left
//! by a crash.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Waker};

use rusqlite::Connection;
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::store::{SessionFilter, Store, StoreErrorKind, View, Viewer};

use crate::batches::busy_turn;
use crate::harness::Harness;
use crate::test_archive::{SqliteTestArchive, TestArchive};

fn number(connection: &Connection, pragma: &str) -> i64 {
    connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
}

/// Asserts that both ways of opening reject the file and leave it unchanged.
fn is_refused(path: &Path, says: &str) {
    let before = fs::read(path).unwrap();
    for opened in [Database::open(path).err(), Database::open_to_read(path).err()] {
        let error = opened.unwrap_or_else(|| panic!("{says}: it was opened")).to_string();
        assert!(error.contains(says), "{error}");
        assert!(error.contains(&path.display().to_string()), "{error} does not say which file");
    }
    assert_eq!(fs::read(path).unwrap(), before, "{says}: it was changed");
}

#[test]
fn a_database_of_version_0_is_made() {
    // R-001-37
    let archive = SqliteTestArchive::new();
    let missing = Database::open_to_read(&archive.path()).err().unwrap();
    assert_eq!(missing.kind(), StoreErrorKind::Missing);
    assert!(!archive.path().exists(), "reading makes nothing");
    for empty in [false, true] {
        if empty {
            fs::write(archive.path(), "").unwrap();
            let missing = Database::open_to_read(&archive.path()).err().unwrap();
            assert_eq!(missing.kind(), StoreErrorKind::Missing, "an empty file is no archive");
        }
        let store = archive.open();
        assert!(
            block_on(store.view(Viewer::Sole).sessions(SessionFilter::default()))
                .unwrap()
                .is_empty()
        );
        let connection = archive.raw();
        assert!(number(&connection, "user_version") > 0);
        assert_eq!(number(&connection, "application_id"), 0x556e_7370, "Unsp");
        let mode: String =
            connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        drop((store, connection));
        fs::remove_file(archive.path()).unwrap();
    }
}

#[test]
fn a_newer_database_is_refused_clearly() {
    // R-001-37
    let archive = SqliteTestArchive::new();
    drop(archive.open());
    let connection = archive.raw();
    let version = number(&connection, "user_version");
    connection.pragma_update(None, "user_version", version + 1).unwrap();
    drop(connection);
    is_refused(&archive.path(), "newer Unspool");
    let error = Database::open(&archive.path()).err().unwrap().to_string();
    assert!(error.contains(&format!("its version is {}", version + 1)), "{error}");
    assert!(error.contains(&format!("supports {version}")), "{error}");
    assert!(error.contains("install the newer one"), "{error}");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    // R-001-37, law 7
    let archive = SqliteTestArchive::new();
    let prepare: [fn(&Connection); 3] = [
        |it| it.execute_batch("CREATE TABLE session (id TEXT)").unwrap(),
        |it| it.execute_batch("CREATE TABLE a (b); PRAGMA user_version = 1").unwrap(),
        |it| it.execute_batch("PRAGMA application_id = 7; PRAGMA user_version = 1").unwrap(),
    ];
    for prepare in prepare {
        let connection = archive.raw();
        prepare(&connection);
        drop(connection);
        is_refused(&archive.path(), "another program");
        fs::remove_file(archive.path()).unwrap();
    }
    let mut names: Vec<String> = fs::read_dir(archive.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| !name.ends_with("-shm") && !name.ends_with("-wal"));
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn what_is_no_database_is_left_alone() {
    let archive = SqliteTestArchive::new();
    fs::write(archive.path(), "{\"type\":\"user\"}\n".repeat(1000)).unwrap();
    is_refused(&archive.path(), "damaged");
    fs::remove_file(archive.path()).unwrap();
    fs::create_dir(archive.path()).unwrap();
    let error = Database::open(&archive.path()).err().unwrap().to_string();
    assert!(error.contains("cannot be opened"), "{error}");
}

#[test]
fn everything_is_there_after_a_clean_end_and_after_a_crash() {
    // C-21
    let harness = Harness::<SqliteTestArchive>::new();
    harness.record("s", busy_turn("one"));
    let turns = harness.turns(harness.session("s").row);
    // Simulate a power failure: copy the file and its WAL while the process has them open.
    let crashed = SqliteTestArchive::new();
    for end in ["", "-wal"] {
        let from = format!("{}{end}", harness.archive.path().display());
        fs::copy(from, format!("{}{end}", crashed.path().display())).unwrap();
    }
    let harness = harness.reopened();
    assert_eq!(harness.turns(harness.session("s").row), turns);
    let harness = Harness::at(crashed);
    assert_eq!(harness.turns(harness.session("s").row), turns);
    assert_eq!(harness.found("output"), ["s.1 tool"]);
    harness.is_clean();
}

#[test]
fn what_was_sent_is_written_before_the_end() {
    // C-21: the future is dropped before it completes.
    let harness = Harness::<SqliteTestArchive>::new();
    let batch = harness.batch("s", busy_turn("one"));
    let store = harness.store().clone();
    {
        let sent = store.write(batch);
        let _ = pin!(sent).poll(&mut Context::from_waker(Waker::noop()));
    }
    drop(store);
    let harness = harness.reopened();
    assert_eq!(harness.turns(harness.session("s").row).len(), 1);
    harness.is_clean();
}

#[test]
fn an_archive_may_be_open_many_times() {
    let harness = Harness::<SqliteTestArchive>::new();
    let readers: Vec<Database> = (0..20).map(|_| harness.archive.open_to_read()).collect();
    harness.record("s", busy_turn("one"));
    for reader in &readers {
        assert_eq!(
            block_on(reader.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap().len(),
            1
        );
    }
    let clones: Vec<Database> = readers.iter().flat_map(|reader| [reader.clone(); 1]).collect();
    drop(readers);
    for reader in clones {
        assert_eq!(
            block_on(reader.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap().len(),
            1
        );
    }
}
