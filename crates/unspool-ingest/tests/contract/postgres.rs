//! What only an archive in PostgreSQL has: other writers, an address with a password, a copy from a
//! file. And that it holds the same as one in SQLite.

use std::net::TcpListener;

use unspool_export::archive_lines;
use unspool_ingest::recorder::Recorder;
use unspool_ingest::report::Progress;
use unspool_ingest::sync::{FileCandidate, FileStates, sync};
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::postgres::{Address, copy};
use unspool_store::search::SearchRequest;
use unspool_store::store::{SessionFilter, Store, StoreError, StoreErrorKind, View, Viewer};

use crate::batches::busy_turn;
use crate::fixtures::fixture_paths;
use crate::harness::Harness;
use crate::postgres_server;
use crate::test_archive::{PostgresTestArchive, SqliteTestArchive, TestArchive};

/// Every file of the fixtures.
fn fixture_files() -> Vec<FileCandidate> {
    let mut files = fixture_paths();
    files.sort();
    assert!(files.len() > 100, "{} fixtures", files.len());
    files.into_iter().map(|path| FileCandidate { path, stamp: None, named: true }).collect()
}

fn read_fixtures(store: Database) {
    let recorder = Recorder::new(store).unwrap();
    let mut states = FileStates::load(&recorder).unwrap();
    // One after the other: which of two logs of one session is read first decides their numbers.
    for file in fixture_files() {
        sync(&recorder, &mut states, vec![file], &Progress::default()).unwrap();
    }
}

/// The lossless export of every session, with the figures that lists show of it.
fn exports(store: &Database) -> Vec<String> {
    let view = store.view(Viewer::Sole);
    let filter = SessionFilter { with_empty: true, ..SessionFilter::default() };
    let sessions = block_on(view.sessions(filter)).unwrap();
    let export = sessions.iter().map(|stored| {
        let mut lines = Vec::new();
        archive_lines::write(&view, stored, true, &mut lines).unwrap();
        format!("{:?}\n{}", stored.summary, String::from_utf8(lines).unwrap())
    });
    export.collect()
}

fn assert_same(sqlite: &Database, postgres: &Database) {
    let (one, other) = (exports(sqlite), exports(postgres));
    assert!(one.len() > 50, "{} sessions", one.len());
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    for query in ["error", "fix the test", "\"cargo test\"", "ls -", "xqzw"] {
        let found = |store: &Database| {
            let request = SearchRequest { limit: 1000, ..SearchRequest::new(query) };
            let results = block_on(store.view(Viewer::Sole).search(request)).unwrap();
            let mut hits: Vec<String> = results
                .hits
                .iter()
                .map(|hit| format!("{:?} {:?}", hit.session, hit.part))
                .collect();
            hits.sort();
            hits
        };
        assert_eq!(found(sqlite), found(postgres), "{query}");
    }
}

#[test]
fn both_databases_hold_the_same() {
    if !postgres_server::is_there() {
        return;
    }
    let (sqlite, postgres) = (SqliteTestArchive::new(), PostgresTestArchive::new());
    read_fixtures(sqlite.open());
    read_fixtures(postgres.open());
    assert_same(&sqlite.open(), &postgres.open());
    let report = block_on(postgres.open_to_read().check()).unwrap();
    assert_eq!((report.count, report.problems), (0, Vec::new()));
    assert!(report.parts > 1000, "{} parts", report.parts);
}

#[test]
fn a_copy_holds_the_same_and_is_recorded_into() {
    if !postgres_server::is_there() {
        return;
    }
    let (sqlite, postgres) = (SqliteTestArchive::new(), PostgresTestArchive::new());
    read_fixtures(sqlite.open());
    let address = postgres.address();
    let mut rows = 0;
    let report = copy(&sqlite.path(), &address, &mut |count| rows = count).unwrap();
    assert_eq!(report.rows, rows);
    assert_same(&sqlite.open(), &postgres.open());
    // What is there is not mixed with anything.
    let refused = copy(&sqlite.path(), &address, &mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::NotEmpty);
    let harness = Harness::at(postgres);
    harness.record("new", busy_turn("one"));
    assert_eq!(harness.turns(harness.session("new").row).len(), 1);
    harness.is_clean();
}

#[test]
fn whoever_was_overtaken_writes_nothing() {
    if !postgres_server::is_there() {
        return;
    }
    let archive = PostgresTestArchive::new();
    let (first, second) = (archive.open(), archive.open());
    let (first, second) = (Recorder::new(first).unwrap(), Recorder::new(second).unwrap());
    let harness = Harness::with(archive, first);
    let batch_of_second = Harness::with(PostgresTestArchive::new(), second);
    let batch = batch_of_second.batch("s", busy_turn("two"));
    harness.record("s", busy_turn("one"));
    let refused = block_on(batch_of_second.store().write(batch)).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Overtaken);
    assert!(refused.to_string().contains("nothing was mixed up"), "{refused}");
    let report = harness.check();
    assert_eq!((report.count, report.sessions, report.turns), (0, 1, 1), "{:?}", report.problems);
    // A new recorder knows what is there.
    let harness = harness.reopened();
    harness.record("t", busy_turn("two"));
    harness.is_clean();
}

#[test]
fn an_unusable_address_says_what_to_do_and_no_password() {
    let error = |text: &str| -> String {
        let opened = text.parse::<Address>().and_then(|address| Database::open_on_server(&address));
        opened.err().unwrap().to_string()
    };
    let away = error("postgres://ann:hunter2@127.0.0.1:1/team");
    assert!(away.contains("cannot be reached") && away.contains("ann@127.0.0.1:1/team"), "{away}");
    assert!(!away.contains("hunter2"), "{away}");
    if !postgres_server::is_there() {
        return;
    }
    let archive = PostgresTestArchive::new();
    let missing = Database::open_on_server_to_read(&archive.address()).err().unwrap();
    assert_eq!(missing.kind(), StoreErrorKind::Missing);
    assert!(missing.to_string().contains("unspool db migrate"), "{missing}");
    drop(archive.open());
    archive.execute("UPDATE unspool.archive SET version = version + 1");
    let newer = Database::open_on_server(&archive.address()).err().unwrap();
    assert!(newer.to_string().contains("newer Unspool"), "{newer}");
    archive.execute("DROP TABLE unspool.archive");
    let foreign = Database::open_on_server(&archive.address()).err().unwrap();
    assert_eq!(foreign.kind(), StoreErrorKind::Foreign);
    let nowhere = error(&format!("{}_nowhere", archive.url()));
    assert!(nowhere.contains("does not exist") && nowhere.contains("--store"), "{nowhere}");
}

#[test]
fn a_connection_is_encrypted_and_the_server_is_who_it_says() {
    if !postgres_server::is_there() || std::env::var("UNSPOOL_TEST_POSTGRES").is_ok() {
        return;
    }
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let (pem, key) = (certificate.cert.pem(), certificate.signing_key.serialize_pem());
    let port = format!("port={free}");
    let settings = [
        port.as_str(),
        "listen_addresses=127.0.0.1",
        "ssl=on",
        "ssl_cert_file=../server.crt",
        "ssl_key_file=../server.key",
    ];
    let files = [("server.crt", pem.as_str()), ("server.key", key.as_str())];
    let server = postgres_server::start_with(&settings, &files).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots of the team.pem");
    std::fs::write(&roots, &pem).unwrap();
    let roots = roots.display().to_string().replace(' ', "%20");
    let open = |host: &str, query: &str| -> Result<Database, StoreError> {
        let address = format!("postgres://postgres@{host}:{free}/postgres?{query}");
        address.parse().and_then(|address: Address| Database::open_on_server(&address))
    };
    let trusted = format!("sslmode=require&sslrootcert={roots}");
    let recorder = Recorder::new(open("localhost", &trusted).unwrap()).unwrap();
    let harness = Harness::with(PostgresTestArchive::new(), recorder);
    harness.record("s", busy_turn("one"));
    assert_eq!(harness.turns(harness.session("s").row).len(), 1);
    let socket = format!("{}:{free}", server.address);
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name = 'unspool'";
    assert!(postgres_server::count(&socket, encrypted) > 0);
    // The certificate is of another name, or of nobody that is trusted.
    for (host, query) in [("127.0.0.1", trusted.as_str()), ("localhost", "sslmode=verify-full")] {
        let error = open(host, query).err().unwrap();
        assert_eq!(error.kind(), StoreErrorKind::NotEncrypted, "{error}");
        let error = error.to_string();
        assert!(error.contains("certificate") && error.contains("sslrootcert=FILE"), "{error}");
    }
}
