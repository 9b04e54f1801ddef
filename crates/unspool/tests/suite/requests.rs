//! Write commands beside a running recorder: they forward their request to it, and print the same
//! as if they had done the work themselves.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Machine, WatchProcess, recorded, until};
use crate::test_server::{Server, Socket};

const LOG: &str = ".claude/projects/-home-dev-weather-app/log.jsonl";
const LOOP: &str = "claude-code/discovery-loop/log.jsonl";
const LOOP_ID: &str = "112b2623-935f-4249-9e9a-c45c61ba0d98";

/// A machine with a running recorder.
struct RecordedMachine {
    machine: Machine,
    watcher: WatchProcess,
}

impl RecordedMachine {
    fn new() -> RecordedMachine {
        let machine = Machine::new();
        machine.put(LOOP, LOG);
        let watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch", "--json"]));
        until("a recorder", || match machine.sessions("d") {
            Some(held) if held.len() == 1 => Ok(()),
            held => Err(held),
        });
        RecordedMachine { machine, watcher }
    }

    /// Asserts that the same process still records.
    #[track_caller]
    fn assert_still_recording(&mut self) {
        assert!(self.watcher.is_running());
        assert_eq!(self.machine.json("d", &["doctor"])["archive"]["recording"], true);
        self.machine.ok("d", &["db", "check"]);
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.machine.run("d", arguments, "");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn tags_and_names_are_handed_over() {
    let mut recorded = RecordedMachine::new();
    let machine = &recorded.machine;
    assert_eq!(machine.ok("d", &["tag", LOOP_ID, "cache", "bug"]), "bug\ncache\n");
    assert_eq!(machine.ok("d", &["tag", LOOP_ID, "--remove", "bug"]), "cache\n");
    assert_eq!(machine.ok("d", &["rename", LOOP_ID, "The cache"]), "The cache\n");
    let listed = machine.json("d", &["list"]);
    assert_eq!(listed[0]["title"], "The cache");
    assert!(recorded.fails(&["tag", "no-such-session", "x"]).contains("there is no session"));
    recorded.assert_still_recording();
}

#[test]
fn a_session_is_deleted_and_brought_back_while_its_log_grows() {
    let mut recorded = RecordedMachine::new();
    let machine = &recorded.machine;
    let before = machine.sessions("d").unwrap();
    let said = machine.ok("d", &["delete", LOOP_ID, "--yes"]);
    assert!(said.starts_with("deleted session"), "{said}");
    assert_eq!(machine.sessions("d").unwrap(), Vec::<Value>::new());
    // It stays deleted although its log grows.
    let text = recorded_lines();
    machine.append(LOG, text.last().unwrap().as_bytes());
    machine.put("claude-code/question-answered/log.jsonl", ".claude/projects/-p/other.jsonl");
    until("another session", || match machine.sessions("d") {
        Some(held) if held.len() == 1 => Ok(()),
        held => Err(held),
    });
    let path = machine.home().join(LOG);
    let report = machine.json("d", &["import", "--restore", path.to_str().unwrap()]);
    assert_eq!(report["sessions"], 1);
    let held = machine.sessions("d").unwrap();
    let back = held.iter().find(|it| it["session"]["agent_session_id"] == LOOP_ID).unwrap();
    assert_eq!(back["turns"], before[0]["turns"]);
    recorded.assert_still_recording();
}

fn recorded_lines() -> Vec<String> {
    let text = String::from_utf8(recorded(LOOP)).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn imports_are_handed_over_with_their_reports() {
    let mut recorded = RecordedMachine::new();
    let machine = &recorded.machine;
    let folder = crate::case::root().join("fixtures/claude-code/permission-allowed");
    let path = folder.to_str().unwrap();
    // Without another recorder.
    machine.put(LOOP, LOG);
    let alone = machine.json("alone", &["import", path]);
    let handed_over = machine.json("d", &["import", path]);
    assert_eq!(handed_over, alone);
    assert!(handed_over["parts"].as_u64().unwrap() > 0);
    assert_eq!(machine.json("d", &["import", path])["records"], 0);
    // From standard input.
    let stream = fs::read_to_string(
        crate::case::root().join("fixtures/claude-code/web-search/stream.jsonl"),
    );
    let output = machine.run("d", &["import", "-", "--json"], &stream.unwrap());
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["sessions"], 1);
    // Lines need no copy for the recorder; a document does, until it is read.
    assert!(!machine.data("d").join("texts").exists());
    // An unrecognised file is reported by the command that named it.
    let odd = machine.home().join("odd.jsonl");
    fs::write(&odd, "{\"a\":1}\n").unwrap();
    let said = recorded.fails(&["import", odd.to_str().unwrap()]);
    assert!(said.contains("odd.jsonl: unrecognised file format"), "{said}");
    // An export.
    let machine = &recorded.machine;
    machine.ok("alone", &["import", machine.home().join(LOG).to_str().unwrap()]);
    let export = machine.data("export.jsonl");
    machine.ok("alone", &["export", "--all", "--to", "jsonl", "-o", export.to_str().unwrap()]);
    machine.ok("d", &["import", export.to_str().unwrap()]);
    assert_eq!(machine.sessions("d").unwrap().len(), 3);
    recorded.assert_still_recording();
}

#[test]
fn a_sync_beside_a_recorder_ends_when_everything_is_imported() {
    let mut recorded = RecordedMachine::new();
    let machine = &recorded.machine;
    machine.put("claude-code/question-answered/log.jsonl", ".claude/projects/-p/other.jsonl");
    machine.ok("d", &["sync"]);
    assert_eq!(machine.sessions("d").unwrap().len(), 2);
    assert_eq!(machine.json("d", &["sync"])["records"], 0);
    recorded.assert_still_recording();
}

#[test]
fn work_on_the_whole_archive_says_who_records() {
    let mut recorded = RecordedMachine::new();
    let process = format!("process {}", recorded.watcher.id());
    for arguments in [["db", "vacuum", ""], ["db", "rebuild", ""], ["db", "rebuild", "--from-logs"]]
    {
        let arguments: Vec<&str> = arguments.into_iter().filter(|it| !it.is_empty()).collect();
        let begun = Instant::now();
        let said = recorded.fails(&arguments);
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert!(said.contains(&process) && said.contains("stop that process"), "{said}");
    }
    recorded.assert_still_recording();
    // After the recorder has ended it works.
    let RecordedMachine { machine, watcher } = recorded;
    drop(watcher);
    machine.ok("d", &["db", "vacuum"]);
    machine.ok("d", &["tag", LOOP_ID, "later"]);
}

#[test]
fn many_requests_at_once_while_a_log_grows() {
    let mut recorded = RecordedMachine::new();
    let machine = &recorded.machine;
    let fixture = "claude-code/question-answered/log.jsonl";
    let text = String::from_utf8(crate::harness::recorded(fixture)).unwrap();
    std::thread::scope(|scope| {
        for nth in 0..8 {
            scope.spawn(move || {
                machine.ok("d", &["tag", LOOP_ID, &format!("tag-{nth}")]);
                machine.ok("d", &["rename", LOOP_ID, &format!("name {nth}")]);
            });
        }
        for line in text.split_inclusive('\n') {
            machine.append(".claude/projects/-p/other.jsonl", line.as_bytes());
        }
    });
    assert_eq!(machine.ok("d", &["tag", LOOP_ID]).lines().count(), 8);
    machine.ok("fresh", &["sync"]);
    let expected = machine.sessions("fresh").unwrap().len();
    until("everything", || match machine.sessions("d") {
        Some(held) if held.len() == expected => Ok(()),
        held => Err(held.map(|held| held.len())),
    });
    recorded.assert_still_recording();
}

/// A page of a deleted session says so, and lists drop its row.
#[test]
fn open_pages_learn_that_a_session_was_deleted() {
    let machine = Machine::new();
    machine.put(LOOP, LOG);
    machine.ok("d", &["sync"]);
    let server = Server::begin(&machine, "d", &[]);
    until("a recorder", || match machine.json("d", &["doctor"])["archive"]["recording"] {
        Value::Bool(true) => Ok(()),
        ref other => Err(other.clone()),
    });
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let (mut page, mut list) = (Socket::open(&server), Socket::open(&server));
    page.send_text(format!(r#"{{"subscribe":"{id}","form":"html"}}"#).as_bytes());
    list.send_text(br#"{"subscribe":"sessions"}"#);
    for socket in [&mut page, &mut list] {
        assert!(socket.receive_text().unwrap().contains("ready"));
    }
    machine.ok("d", &["delete", LOOP_ID, "--yes"]);
    for (socket, named) in [(&mut page, id.clone()), (&mut list, format!("s-{id}"))] {
        let told = std::iter::from_fn(|| socket.receive_text());
        let told = told.into_iter().find(|told| told.contains(r#""type":"deleted""#)).unwrap();
        assert!(told.contains(&named), "{told}");
    }
}
