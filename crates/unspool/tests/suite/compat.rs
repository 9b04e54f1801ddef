//! Archives and exports of earlier builds: they open, migrate, export to the same content, and
//! take what their agents wrote since. `tests/compat/README.md` says how the files were made.

use std::fs;

use rusqlite::Connection;
use serde_json::Value;

use crate::case::root;
use crate::harness::Machine;

fn stored(file: &str) -> Vec<u8> {
    let path = root().join("crates/unspool/tests/compat").join(file);
    zstd::decode_all(fs::File::open(path).unwrap()).unwrap()
}

fn lines(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A machine with the stored archive.
fn machine() -> Machine {
    let machine = Machine::new();
    fs::create_dir_all(machine.data("old")).unwrap();
    fs::write(machine.data("old").join("unspool.db"), stored("archive.db.zst")).unwrap();
    machine
}

/// Compares each session with what the earlier build said of it.
fn assert_sessions(machine: &Machine, data: &str) {
    let sessions = lines(&stored("sessions.jsonl.zst"));
    assert_eq!(sessions.len(), 24);
    for mut expected in sessions {
        write_own_call_ids(&mut expected);
        let id = expected["session"]["id"].as_str().unwrap();
        let mut found = machine.json(data, &["show", id]);
        drop_new_fields(&mut found);
        assert_eq!(found, expected, "{id}");
    }
}

/// Drops the fields that the JSON has got since: whether an end was observed, what a reported cost
/// leaves out, and the context.
fn drop_new_fields(session: &mut Value) {
    session.as_object_mut().unwrap().remove("context");
    drop_everywhere(session, "partial_cost_usd");
    for turn in session["turns"].as_array_mut().unwrap() {
        turn.as_object_mut().unwrap().remove("observed");
        for part in turn["parts"].as_array_mut().unwrap() {
            part.as_object_mut().unwrap().remove("observed");
        }
    }
}

fn drop_everywhere(value: &mut Value, name: &str) {
    match value {
        Value::Object(fields) => {
            fields.remove(name);
            fields.values_mut().for_each(|field| drop_everywhere(field, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_everywhere(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Earlier builds wrote OpenCode's call ids with the id of their message: `msg_…/call_…`.
fn write_own_call_ids(session: &mut Value) {
    if session["session"]["agent"] != "opencode" {
        return;
    }
    let own = |holder: &mut Value| {
        if let Some((_, own)) = holder["call_id"].as_str().and_then(|id| id.split_once('/')) {
            holder["call_id"] = own.into();
        }
    };
    own(&mut session["session"]["parent"]);
    for turn in session["turns"].as_array_mut().unwrap() {
        turn["parts"].as_array_mut().unwrap().iter_mut().for_each(own);
    }
}

fn assert_export(machine: &Machine, data: &str) {
    let found = machine.ok(data, &["export", "--all", "--to", "jsonl"]);
    let expected = stored("export.jsonl.zst");
    for (found, expected) in lines(found.as_bytes()).iter().zip(lines(&expected)) {
        assert_eq!(*found, expected);
    }
    assert!(found.as_bytes() == expected, "the export differs in its bytes only");
}

#[test]
fn an_archive_of_an_earlier_build_has_the_same_content() {
    // R-000-19 R-001-37
    let machine = machine();
    assert_sessions(&machine, "old");
    assert_export(&machine, "old");
    machine.ok("old", &["db", "check"]);
    // Written to, it is migrated.
    let note = machine.home().join("empty");
    fs::create_dir_all(&note).unwrap();
    machine.ok("old", &["import", note.to_str().unwrap()]);
    assert_sessions(&machine, "old");
    assert_export(&machine, "old");
}

#[test]
fn an_export_of_an_earlier_build_comes_back() {
    let machine = machine();
    machine.write("export.jsonl", &stored("export.jsonl.zst"));
    machine.ok("new", &["import", machine.home().join("export.jsonl").to_str().unwrap()]);
    assert_sessions(&machine, "new");
    assert_export(&machine, "new");
    // Law 5: the archive has them already.
    machine.ok("old", &["import", machine.home().join("export.jsonl").to_str().unwrap()]);
    assert_export(&machine, "old");
}

#[test]
fn sessions_of_an_earlier_build_go_on() {
    // The decoders' own state was saved with them.
    let cases = [
        ("claude-code/question-answered", "claude-code/question-open"),
        ("codex/steered", "codex/turn-open"),
    ];
    let machine = machine();
    let archive = Connection::open(machine.data("old").join("unspool.db")).unwrap();
    for (case, cut) in cases {
        // As if they had been recorded on this machine.
        let (from, to) = (format!("/home/dev/recordings/{cut}"), machine.home().join(case));
        let moved = archive.execute(
            "UPDATE file SET path = replace(path, ?1, ?2) WHERE instr(path, ?1)",
            [&from, to.to_str().unwrap()],
        );
        assert!(moved.unwrap() > 0, "{cut}");
        for file in ["log.jsonl", "hooks.jsonl"] {
            let fixture = root().join("fixtures").join(case).join(file);
            if fixture.exists() {
                machine.write(&format!("{case}/{file}"), &fs::read(fixture).unwrap());
            }
        }
    }
    drop(archive);
    let home = machine.home();
    let before = machine.json("old", &["list"]).as_array().unwrap().len();
    let report = machine.json("old", &["import", home.to_str().unwrap()]);
    machine.ok("new", &["import", home.to_str().unwrap()]);
    let sessions = machine.json("new", &["list"]);
    assert_eq!(machine.json("old", &["list"]).as_array().unwrap().len(), before);
    assert_eq!(sessions.as_array().unwrap().len(), 2);
    for session in sessions.as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let (old, new) = (machine.json("old", &["show", id]), machine.json("new", &["show", id]));
        assert_eq!(old["turns"], new["turns"], "{id}");
        assert_eq!(old["session"], new["session"], "{id}");
    }
    // The logs were taken up where the earlier build left them, not read again from their start.
    let (read, whole) = (report["records"].as_u64().unwrap(), 35 + 11 + 23);
    assert!(read < whole - 20, "{report}");
}
