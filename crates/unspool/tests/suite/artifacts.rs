//! `serve` writes the ThoughtFlow and D2 files of a session once it is at rest.

use std::time::{Duration, Instant};

use crate::harness::Machine;
use crate::show_follow::{begin, end, said};
use crate::test_server::Server;

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
