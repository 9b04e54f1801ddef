//! `unspool delete` removes the bytes of a session, not only its rows: from the database, its
//! write-ahead log and the chunks that it shared with other sessions. `db vacuum` removes its words
//! from the search index as well.

use std::fs;

use rusqlite::{Connection, OpenFlags};

use crate::harness::{Machine, until};
use crate::show_follow::{begin, end, record, said};
use crate::test_server::Server;

const GONE: &str = "01a0e8a3-0000-7000-8000-00000000000a";
const KEPT: &str = "01a0e8a3-0000-7000-8000-00000000000b";

/// Several words, so that the index does not have them as one.
fn prose(id: &str, nth: usize) -> String {
    format!("Quartz, {id} vows ({nth}): a glyph!")
}

/// A word that no other session has.
fn word(id: &str) -> String {
    format!("zq{}xv", id.replace('-', ""))
}

fn log(id: &str) -> String {
    format!(".codex/sessions/2026/11/16/rollout-2026-11-16T10-00-00-{id}.jsonl")
}

/// A call with an output that is stored once, in a chunk that sessions share.
fn call(id: &str) -> String {
    let output = format!("{} {}", prose(id, 99), "filler ".repeat(120));
    record(
        "response_item",
        r#"{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}"#,
    ) + &record(
        "response_item",
        &format!(r#"{{"type":"function_call_output","call_id":"c1","output":"{output}"}}"#),
    )
}

fn session(id: &str) -> String {
    begin(id) + &said(&format!("{} {}", prose(id, 1), word(id))) + &call(id) + &end()
}

/// Everything that the archive's files hold, with payloads decompressed.
fn content(machine: &Machine) -> String {
    let path = machine.data("d").join("unspool.db");
    let mut all = fs::read(&path).unwrap();
    all.extend(fs::read(machine.data("d").join("unspool.db-wal")).unwrap_or_default());
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    for column in ["data FROM chunk", "saved FROM file WHERE saved IS NOT NULL"] {
        let mut statement = connection.prepare(&format!("SELECT {column}")).unwrap();
        let frames = statement.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
        frames.for_each(|frame| all.extend(zstd::stream::decode_all(&*frame.unwrap()).unwrap()));
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn a_deleted_session_leaves_no_bytes() {
    let machine = Machine::new();
    for id in [GONE, KEPT] {
        machine.write(&log(id), session(id).as_bytes());
    }
    machine.ok("d", &["sync"]);
    for id in [GONE, KEPT] {
        machine.ok("d", &["note", id, &prose(id, 77)]);
    }
    // Puts the words into a segment of the index.
    machine.ok("d", &["db", "vacuum"]);
    let before = content(&machine);
    for id in [GONE, KEPT] {
        assert!(before.contains(&prose(id, 1)) && before.contains(&prose(id, 99)), "{id}");
        assert!(before.contains(&word(id)) && before.contains(&prose(id, 77)), "{id}");
    }
    machine.ok("d", &["delete", GONE, "--yes"]);
    let after = content(&machine);
    assert!(!after.contains(&prose(GONE, 1)) && !after.contains(&prose(GONE, 99)));
    assert!(after.contains(&prose(KEPT, 1)) && after.contains(&prose(KEPT, 99)));
    assert!(!after.contains(&prose(GONE, 77)) && after.contains(&prose(KEPT, 77)), "notes");
    machine.ok("d", &["db", "vacuum"]);
    let after = content(&machine);
    assert!(!after.contains(&word(GONE)) && after.contains(&word(KEPT)));
    machine.ok("d", &["db", "check"]);
    assert!(machine.ok("d", &["show", KEPT, "--full"]).contains(&prose(KEPT, 99)));
    let help = machine.ok("d", &["delete", "--help"]);
    assert!(help.contains("unspool db vacuum"), "{help}");
}

/// While a turn runs, its parts are written again and again: each copy leaves free space behind.
#[test]
fn earlier_copies_of_a_session_that_ran_are_removed_too() {
    let machine = Machine::new();
    machine.write(&log(KEPT), session(KEPT).as_bytes());
    machine.write(&log(GONE), begin(GONE).as_bytes());
    let server = Server::begin(&machine, "d", &[]);
    for nth in 0..40 {
        let text = format!("{} {}", prose(GONE, nth), "filler ".repeat(40 * nth));
        machine.append(&log(GONE), said(&text).as_bytes());
        until("the text", || {
            let found = server.get(&format!("/api/sessions/{GONE}"));
            let text = String::from_utf8(found.body).unwrap();
            if text.contains(&prose(GONE, nth)) { Ok(()) } else { Err(text.len()) }
        });
    }
    assert!(content(&machine).contains(&prose(GONE, 39)));
    // The server records, so it also deletes.
    machine.ok("d", &["delete", GONE, "--yes"]);
    let after = content(&machine);
    let left: Vec<usize> = (0..40).filter(|nth| after.contains(&prose(GONE, *nth))).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(after.contains(&prose(KEPT, 1)));
}
