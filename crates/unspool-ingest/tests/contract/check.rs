//! `check`: reports no problem in a good archive, and finds each kind of damage.

use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::EventKind;
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::ToolEnd;
use unspool_model::session::Usage;
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::search::SearchRequest;
use unspool_store::store::{CheckReport, SessionFilter, Store, TurnWindow, View, Viewer};

use crate::batches::busy_turn;
use crate::harness::{AGENT, Harness, ask, in_project};
use crate::script::*;
use crate::test_archive::{SqliteTestArchive, TestArchive};

/// A closed archive with a row in every table.
fn sample_archive() -> SqliteTestArchive {
    let harness = Harness::<SqliteTestArchive>::new();
    let used = Usage { input: 7, output: 3, ..Usage::default() };
    let script = [
        busy_turn("one"),
        vec![
            in_project("/home/ada"),
            ask("p2", "more of it"),
            step("m2"),
            EventKind::UsageUpdated { step: message("m2"), usage: used }.into(),
            said_in(Reasoning, block("m2", 0), "hmm"),
            called("t2", "Task"),
            agent_started("t2", "child"),
            ended("t2", ToolEnd::Failed, "no"),
            called_with(
                "t3",
                "Edit",
                r#"{"file_path":"a/b.rs","old_string":"x","new_string":"y"}"#,
            ),
            ended("t3", ToolEnd::Completed, "done"),
            failed(Some("e"), "broken"),
            over(Completed),
        ],
    ];
    harness.record("s", script.concat());
    harness.record_as(AGENT, "live", IngestMode::Live, [ask("p", "running"), grew(Text, "on and")]);
    harness.is_clean();
    let report = harness.check();
    assert_eq!((report.sessions, report.turns, report.parts), (2, 3, 13));
    let Harness { archive, recorder, .. } = harness;
    drop(recorder);
    archive
}

/// A copy of the archive, damaged by `sql`.
fn damaged(from: &SqliteTestArchive, sql: &str) -> SqliteTestArchive {
    let archive = SqliteTestArchive::new();
    std::fs::copy(from.path(), archive.path()).unwrap();
    let connection = archive.raw();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert!(connection.changes() > 0, "{sql} did nothing");
    archive
}

fn check(archive: &SqliteTestArchive) -> CheckReport {
    block_on(archive.open().check()).unwrap()
}

/// Damage to derived data: `check` finds it and `rebuild` repairs it.
const DERIVED_DAMAGE: &[&str] = &[
    // Sums over turns.
    "UPDATE turn SET parts = parts + 1",
    "UPDATE turn SET tools = 0 WHERE number = 1",
    "UPDATE turn SET errors = 9",
    "UPDATE turn SET input = 8 WHERE number = 2",
    "UPDATE turn SET reasoning = 1",
    "UPDATE turn SET first = 1",
    "UPDATE turn SET last = NULL WHERE number = 1",
    // Sums over sessions.
    "UPDATE session SET turns = 0",
    "UPDATE session SET parts = parts - 1",
    "UPDATE session SET output = 99",
    "UPDATE session SET started = 5",
    "UPDATE session SET ended = started",
    "UPDATE session SET models = '[\"gpt\"]'",
    "UPDATE session SET prompt = 'not this'",
    // Derived columns of parts (R-001-09, R-001-11).
    "UPDATE part SET kind = 'text' WHERE kind = 'reasoning'",
    "UPDATE part SET state = 'completed' WHERE state = 'failed'",
    "UPDATE part SET tool = 'Read' WHERE tool = 'Bash'",
    "UPDATE part SET call_id = NULL WHERE kind = 'tool'",
    "UPDATE part SET started = 1 WHERE kind = 'reasoning'",
    "UPDATE part SET ended = 1 WHERE kind = 'tool'",
    "UPDATE part SET duration = 1 WHERE kind = 'tool'",
    "UPDATE part SET counted_calls = 3 WHERE kind = 'error'",
    "UPDATE part SET hidden = 1 WHERE kind = 'error'",
    "UPDATE part SET source = 9 WHERE kind = 'error'",
    "UPDATE part SET offset = NULL WHERE kind = 'tool'",
    // Derived columns of turns and sessions.
    "UPDATE turn SET state = 'failed' WHERE number = 1",
    "UPDATE turn SET number = 7 WHERE number = 2",
    "UPDATE turn SET trigger = 'hook'",
    "UPDATE turn SET abandoned = 1",
    "UPDATE turn SET started = 1",
    "UPDATE session SET project = '/elsewhere'",
    "UPDATE session SET title = 'not told'",
    "UPDATE session SET state = 'live'",
    // The sub-agents of parts, and the name digests of turns.
    "DELETE FROM agent",
    "UPDATE agent SET agent_id = 'other'",
    "UPDATE turn SET names = x'' WHERE number = 1",
    // The files that calls changed.
    "DELETE FROM edited_file",
    "UPDATE edited_file SET path = 'c.rs'",
    "UPDATE edited_file SET name = 'c.rs'",
    // The index.
    "DELETE FROM unindexed",
    "DELETE FROM segment; DELETE FROM word_block",
    "DELETE FROM word_runs",
    "UPDATE word_runs SET bits = zeroblob(length(bits))",
    "UPDATE word_runs SET bits = x''",
    "UPDATE word_runs SET slice = slice + 1",
    "UPDATE word_runs SET sheet = sheet + 1",
    "INSERT INTO word_runs SELECT segment, sheet + 1, slice, bits FROM word_runs",
];

/// Damage to source data: `check` finds it; it cannot be repaired.
const SOURCE_DAMAGE: &[&str] = &[
    "DELETE FROM chunk WHERE session IS NOT NULL",
    "DELETE FROM chunk WHERE session IS NULL",
    "UPDATE chunk SET data = x'00'",
    "UPDATE chunk SET data = substr(data, 1, length(data) - 4)",
    "UPDATE part SET at = at + 1 WHERE at IS NOT NULL",
    "UPDATE part SET size = 1 << 40 WHERE size IS NOT NULL",
    "UPDATE part SET size = -1 WHERE size IS NOT NULL",
    "UPDATE part SET chunk = NULL",
    "UPDATE journal SET payload = x'7b'",
    "DELETE FROM journal",
    "DELETE FROM content",
    "UPDATE content SET at = at + 1",
    "UPDATE content SET size = size - 1",
    "UPDATE content SET digest = x'00'",
    "UPDATE part SET id = 'no id' WHERE kind = 'error'",
    "UPDATE part SET step = 'no id' WHERE kind = 'reasoning'",
    "UPDATE part SET turn = 99 WHERE kind = 'error'",
    "UPDATE part SET role = 'user' WHERE kind = 'error'",
    "DROP INDEX part_turn;
     INSERT INTO part SELECT row + 100, turn, place, id, role, kind, state, tool, call_id, step,
         started, ended, duration, hidden, source, offset, length, text, chunk, at, size, content,
         counted_calls
     FROM part WHERE kind = 'error'",
    "DROP INDEX part_turn; UPDATE part SET place = 1000000 WHERE role = 'assistant'",
    "UPDATE turn SET head = '{}' WHERE number = 1",
    "DROP INDEX turn_session; UPDATE turn SET session = 99 WHERE number = 1",
    "DELETE FROM session WHERE agent_session_id = 's'",
    "DELETE FROM turn WHERE number = 1",
    "UPDATE session SET head = 'null'",
    "UPDATE step SET origin = ''",
];

#[test]
fn every_kind_of_damage_is_found() {
    // R-001-09 R-001-11 C-02
    let good = sample_archive();
    let mut missed = Vec::new();
    for sql in DERIVED_DAMAGE.iter().chain(SOURCE_DAMAGE) {
        let archive = damaged(&good, sql);
        let report = check(&archive);
        if report.count == 0 {
            missed.push(*sql);
        }
        assert_eq!(report.problems.len() as u64, report.count.min(100), "{sql}");
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn rebuilding_mends_what_is_derived() {
    // R-001-09
    let good = sample_archive();
    let mut left = Vec::new();
    for sql in DERIVED_DAMAGE {
        let archive = damaged(&good, sql);
        let store = archive.open();
        block_on(store.rebuild()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let problems = block_on(store.check()).unwrap().problems;
        if !problems.is_empty() {
            left.push((*sql, problems));
        }
        for word in ["output", "running"] {
            let found =
                block_on(store.view(Viewer::Sole).search(SearchRequest::new(word))).unwrap();
            assert_eq!(found.hits.len(), 1, "{sql}");
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn what_is_damaged_does_not_hide_the_rest() {
    // Law 4: an unreadable part breaks neither search nor lists nor rebuild.
    let good = sample_archive();
    for sql in [
        "UPDATE part SET size = 1 WHERE kind = 'error'",
        "UPDATE content SET at = at + 1",
        "UPDATE journal SET payload = x'7b'",
    ] {
        let archive = damaged(&good, sql);
        let store = archive.open();
        let find = |store: &Database| {
            let hits =
                block_on(store.view(Viewer::Sole).search(SearchRequest::new("more"))).unwrap().hits;
            hits.len()
        };
        assert_eq!(find(&store), 1, "{sql}");
        // Words of the damaged part.
        for word in ["broken", "output", "on", "*"] {
            block_on(store.view(Viewer::Sole).search(SearchRequest::new(word))).unwrap();
        }
        block_on(store.rebuild()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        block_on(store.maintain(unspool_store::store::Maintenance::Full)).unwrap();
        assert_eq!(find(&store), 1, "{sql}");
        assert_eq!(
            block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap().len(),
            2
        );
        assert!(check(&archive).count > 0, "{sql}");
        // Loading the damaged session reports an error.
        let sessions =
            block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap();
        let outcomes = sessions
            .iter()
            .map(|s| block_on(store.view(Viewer::Sole).turns(s.row, TurnWindow::All)));
        let errors: Vec<String> =
            outcomes.filter_map(|turns| turns.err()).map(|error| error.to_string()).collect();
        assert_eq!(errors.len(), 1, "{sql}");
        assert!(errors[0].contains("cannot be read"), "{sql}: {errors:?}");
    }
}

#[test]
fn a_file_with_torn_pages_is_damaged_and_says_what_to_do() {
    let good = sample_archive();
    let archive = SqliteTestArchive::new();
    let mut bytes = std::fs::read(good.path()).unwrap();
    for page in 2..bytes.len() / 8192 {
        bytes[page * 8192..page * 8192 + 64].fill(0xff);
    }
    std::fs::write(archive.path(), &bytes).unwrap();
    let outcome = Database::open(&archive.path()).and_then(|store| block_on(store.check()));
    match outcome {
        Ok(report) => assert!(report.count > 0),
        Err(error) => assert!(error.to_string().contains("is damaged"), "{error}"),
    }
}

#[test]
fn payloads_lie_where_they_should() {
    // C-21: open parts are in the journal, settled parts in chunks, large payloads in `content`.
    let good = sample_archive();
    let connection = good.raw();
    let count = |sql: &str| -> i64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(count("SELECT count(*) FROM journal"), 1, "the text that grows");
    assert_eq!(count("SELECT count(*) FROM part WHERE chunk IS NULL"), 1);
    assert_eq!(count("SELECT count(*) FROM content"), 1, "the long output");
    assert_eq!(count("SELECT count(*) FROM unindexed"), 2, "what is live");
}
