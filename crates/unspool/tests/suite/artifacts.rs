//! Whatever records writes the ThoughtFlow and D2 files of a session once it is at rest, and replaces
//! them as a whole.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Machine, WatchProcess, until};
use crate::show_follow::{begin, end, said};
use crate::test_server::{Server, Socket};

const ID: &str = "01a0e8a3-0000-7000-8000-000000000003";

/// The path of a Codex log in the home folder.
fn log(id: &str) -> String {
    format!(".codex/sessions/2026/11/16/rollout-2026-11-16T10-00-00-{id}.jsonl")
}

// R-002-28
#[test]
fn artifacts_of_a_session_at_rest_do_not_wait_for_a_busy_one() {
    let machine = Machine::new();
    let [busy, quiet] = [1, 2].map(|nth| format!("01a0e8a3-0000-7000-8000-00000000000{nth}"));
    machine.write(&log(&busy), begin(&busy).as_bytes());
    let _server = Server::begin(&machine, "d", &[]);
    machine.write(&log(&quiet), (begin(&quiet) + &end()).as_bytes());
    let folder = machine.data("d").join("thoughtflow");
    let written = || folder.read_dir().is_ok_and(|entries| entries.count() >= 2);
    let begun = Instant::now();
    // More often than the quiet period of the files.
    while !written() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no files in {}", folder.display());
        machine.append(&log(&busy), said("More.").as_bytes());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The only artifact with this extension, as soon as it contains the text.
fn until_written(folder: &Path, extension: &str, wanted: &str) -> (u64, String) {
    let mut found = (0, String::new());
    until(wanted, || {
        let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
        let paths = entries.map(|entry| entry.unwrap().path());
        let of = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == extension);
        let path = paths.into_iter().find(of).ok_or("no file")?;
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        found = (path.metadata().unwrap().ino(), text.clone());
        if text.contains(wanted) { Ok(()) } else { Err(text) }
    });
    found
}

// R-002-28
#[test]
fn every_process_that_records_writes_them() {
    for command in [&["sync", "--watch"][..], &["show", ID, "--follow"]] {
        let machine = Machine::new();
        machine.write(&log(ID), begin(ID).as_bytes());
        machine.ok("d", &["sync"]);
        let folder = machine.data("d").join("thoughtflow");
        assert!(!folder.exists(), "nothing was observed live yet");
        let _process = WatchProcess::begin(machine.command("d", command));
        until("a recorder", || match machine.json("d", &["doctor"])["archive"]["recording"] {
            Value::Bool(true) => Ok(()),
            ref other => Err(other.clone()),
        });
        machine.append(&log(ID), (said("At rest.") + &end()).as_bytes());
        until_written(&folder, "json", "At rest.");
        until_written(&folder, "d2", "");
        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{command:?}");
    }
}

/// A server that follows announces what the recorder has written.
#[test]
fn a_server_announces_files_that_another_process_wrote() {
    let machine = Machine::new();
    machine.write(&log(ID), begin(ID).as_bytes());
    machine.ok("d", &["sync"]);
    let _recorder = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    until("a recorder", || match machine.json("d", &["doctor"])["archive"]["recording"] {
        Value::Bool(true) => Ok(()),
        ref other => Err(other.clone()),
    });
    let server = Server::begin(&machine, "d", &[]);
    let mut socket = Socket::open(&server);
    socket.send_text(format!(r#"{{"subscribe":"{ID}","form":"json"}}"#).as_bytes());
    machine.append(&log(ID), (said("At rest.") + &end()).as_bytes());
    while !socket.receive_text().unwrap().contains("thoughtflow.artifacts") {}
}

// R-002-28
#[test]
fn a_reader_never_sees_half_a_file() {
    let machine = Machine::new();
    let text = "A line of a long answer. ".repeat(20_000);
    machine.write(&log(ID), begin(ID).as_bytes());
    let _server = Server::begin(&machine, "d", &[]);
    let folder = machine.data("d").join("thoughtflow");
    let (over, reads) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for path in fs::read_dir(&folder).into_iter().flatten() {
                    let path = path.unwrap().path();
                    // A file that is being written has another name.
                    let is = |extension| path.extension().is_some_and(|found| found == extension);
                    let Ok(content) = fs::read_to_string(&path) else { continue };
                    if is("json") {
                        let document = serde_json::from_str::<Value>(&content);
                        assert!(document.is_ok(), "half a document: {} bytes", content.len());
                        reads.store(true, Ordering::Relaxed);
                    } else if is("d2") {
                        assert!(content.ends_with("}\n"), "{} bytes", content.len());
                    }
                }
            }
        });
        let mut files = Vec::new();
        for nth in 0..4 {
            let turn = format!("{text} Answer {nth}.");
            machine.append(&log(ID), (said(&turn) + &end()).as_bytes());
            files.push(until_written(&folder, "json", &format!("Answer {nth}.")).0);
        }
        over.store(true, Ordering::Relaxed);
        files.dedup();
        assert_eq!(files.len(), 4, "each is a new file under the old name");
    });
    assert!(reads.load(Ordering::Relaxed));
    until("the end of the temporary files", || match fs::read_dir(&folder).unwrap().count() {
        2 => Ok(()),
        other => Err(other),
    });
}
