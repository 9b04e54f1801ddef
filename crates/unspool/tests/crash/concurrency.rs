//! A second process beside the recorder: readers are not blocked; a second recorder waits for the
//! lock and takes over when the first one ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::contents::Contents;
use crate::follow::FollowingClient;
use crate::live::GrowingFile;
use crate::sandbox::{DEADLINE, Sandbox, Unspool, Watcher};

const SESSION: &str = "df9d2d26-6556-4129-8f3b-818045f8e0d5";

/// The question of the one tool call, and the answer to it.
fn question(unspool: &Unspool) -> (String, Value, Value) {
    let shown = unspool.shown(SESSION);
    let parts = shown["turns"][0]["parts"].as_array().unwrap().iter();
    let tool = parts.clone().find(|part| part["kind"] == "tool").unwrap();
    let state = tool["state"].as_str().unwrap().to_owned();
    (state, tool["question"].clone(), tool["answer"].clone())
}

#[test]
fn a_second_watcher_waits_and_takes_over() {
    // R-X-11: a tool call waits for permission; the recorder is killed and another process takes
    // over. The question is still pending, and is resolved when its turn ends.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let mut hooks = GrowingFile::recording(&sandbox, "permission-allowed", "hooks");
    let mut log = GrowingFile::recording(&sandbox, "permission-allowed", "log");
    let records = hooks.append_lines(6) + log.append_lines(26);
    let first = unspool.watch();
    assert_eq!(first.report()["records"], records);
    let second = unspool.watch();
    wait_until_blocked_on_lock(&second);
    let (state, pending_question, answer) = question(&unspool);
    assert_eq!((state.as_str(), &answer), ("running", &Value::Null));
    assert_eq!(pending_question["items"][0]["question"], "Allow Bash?");

    // Readers do not wait.
    assert_eq!(unspool.json(&["list", "--json"]).as_array().unwrap().len(), 1);
    assert_eq!(unspool.json(&["search", "build", "--json"])[0]["turn"], 1);
    unspool.print(&["db", "check"]);
    unspool.print(&["stats"]);
    let client = FollowingClient::open(&unspool, SESSION, Duration::ZERO);
    client.catch_up();

    first.kill();
    assert_eq!(second.report()["records"], 0, "all is there already");
    assert_eq!(second.errors(), "", "it says that it waits only where a person reads it");
    assert_eq!(question(&unspool), (state, pending_question.clone(), answer), "it survives");
    client.catch_up();
    let left = hooks.append(usize::MAX) + log.append(usize::MAX);
    second.take(left);
    let (state, still, answer) = question(&unspool);
    assert_eq!((state.as_str(), still), ("completed", pending_question));
    assert_eq!(answer["decision"], "allowed");
    assert_eq!(unspool.shown(SESSION)["turns"][0]["state"], "completed");
    client.catch_up();
    second.kill();
    client.close();
    let undisturbed = sandbox.unspool("undisturbed");
    undisturbed.sync();
    Contents::of(&unspool).assert_same_as(&Contents::of(&undisturbed), "after both");
}

/// Waits until /proc/locks shows the process blocked on a lock.
fn wait_until_blocked_on_lock(watcher: &Watcher) {
    let waits = format!(" {} ", watcher.id());
    let begun = Instant::now();
    while let Ok(locks) = fs::read_to_string("/proc/locks") {
        if locks.lines().any(|line| line.contains("->") && line.contains(&waits)) {
            assert!(!watcher.has_reported(), "it records beside the first");
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "it does not wait");
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("skipped: this system does not say who waits for a lock");
}

#[test]
fn a_waiting_process_says_so_on_a_terminal() {
    let sandbox = Sandbox::new();
    GrowingFile::recording(&sandbox, "permission-allowed", "log").append(usize::MAX);
    let unspool = sandbox.unspool("archive");
    let first = unspool.watch();
    first.report();
    // `script` runs a command in a pseudo-terminal.
    let program = format!("exec '{}' sync --watch", env!("CARGO_BIN_EXE_unspool"));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &program, "/dev/null"]);
    unspool.set_environment(&mut command);
    let Ok(mut second) = command.stdout(Stdio::piped()).spawn() else {
        println!("skipped: there is no `script` here");
        return;
    };
    let mut lines = BufReader::new(second.stdout.take().unwrap()).lines();
    let said = lines.next().unwrap().unwrap();
    assert!(said.contains("another unspool is recording; waiting for it to finish"), "{said}");
    first.kill();
    let next = lines.next().unwrap().unwrap();
    assert!(next.contains("nothing new"), "{next}");
    // `script` ends what it runs.
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn several_imports_at_once_are_one() {
    // Law 5: the processes that come later find everything imported.
    let sandbox = Sandbox::filled();
    let undisturbed = sandbox.unspool("undisturbed");
    let report = undisturbed.sync();
    let unspool = sandbox.unspool("archive");
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = unspool.command(&["sync", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut records = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        records += report["records"].as_u64().unwrap();
    }
    assert_eq!(records, report["records"]);
    Contents::of(&unspool).assert_same_as(&Contents::of(&undisturbed), "four at once");
}
