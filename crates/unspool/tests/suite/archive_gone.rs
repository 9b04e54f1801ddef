//! The data folder is deleted, moved or replaced under a running program. It must not go on with a
//! file that nobody else can see: it says what happened and how to continue, and ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use crate::harness::{Machine, copy, until};
use crate::pty::Pty;
use crate::show_follow::{begin, said};
use crate::test_server::Server;

const ID: &str = "01a0e8a3-0000-7000-8000-000000000001";
const LOG: &str = ".codex/sessions/2026/11/16/rollout-2026-11-16T10-00-00-01a0e8a3-0000-7000-8000-000000000001.jsonl";
/// The longest wait for the end of a program.
const DEADLINE: Duration = Duration::from_secs(60);

/// A machine with a session that runs.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.write(LOG, begin(ID).as_bytes());
    machine.ok("d", &["sync"]);
    machine
}

#[track_caller]
fn assert_explains(text: &str) {
    for words in ["unspool.db", "deleted, moved or replaced", "start Unspool again", "agents' logs"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// What an ended server wrote to stderr. It is collected by a thread, which may lag behind the end.
#[track_caller]
fn assert_reason(stderr: &Mutex<String>) {
    until("the reason", || {
        let text = stderr.lock().unwrap().clone();
        if text.contains("has stopped") { Ok(()) } else { Err(text) }
    });
    assert_explains(&stderr.lock().unwrap());
}

#[track_caller]
fn wait(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("it still runs");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn serve(machine: &Machine) -> (Server, Arc<Mutex<String>>) {
    let mut command = machine.command("d", &["serve", "--port", "0"]);
    command.stderr(Stdio::piped());
    Server::begin_with(command)
}

#[test]
fn a_server_ends_when_its_data_folder_is_deleted() {
    let machine = machine();
    let (mut server, stderr) = serve(&machine);
    assert_eq!(server.json("/api/sessions").as_array().unwrap().len(), 1);
    // The server may create a file in it at the same moment.
    until("the end of the folder", || match fs::remove_dir_all(machine.data("d")) {
        Err(error) if machine.data("d").exists() => Err(error),
        Ok(()) | Err(_) => Ok(()),
    });
    // Nobody writes: it notices by itself.
    assert_eq!(server.exit_code(DEADLINE), Some(1));
    assert_reason(&stderr);
    assert!(!machine.data("d").join("unspool.db").exists(), "no archive appears by itself");
    // The next start reads everything again.
    let server = Server::begin(&machine, "d", &[]);
    until("the session", || match server.json("/api/sessions").as_array().unwrap().len() {
        1 => Ok(()),
        other => Err(other),
    });
}

#[test]
fn a_server_does_not_answer_from_an_archive_that_was_replaced() {
    let machine = machine();
    copy(&machine.data("d"), &machine.data("copy"));
    let (mut server, stderr) = serve(&machine);
    assert_eq!(server.get("/api/sessions").status, 200);
    // As a backup is restored: another file under the same name.
    fs::rename(machine.data("copy").join("unspool.db"), machine.data("d").join("unspool.db"))
        .unwrap();
    // The recorder may notice first and end the server, which then answers nothing.
    if let Some(response) = server.get_unless_ended("/api/sessions") {
        assert_explains(&response.problem(503));
    }
    assert_eq!(server.exit_code(DEADLINE), Some(1));
    assert_reason(&stderr);
}

#[test]
fn a_watcher_ends_when_its_data_folder_is_moved() {
    let machine = machine();
    let mut command = machine.command("d", &["sync", "--watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The report of the first sync.
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    assert_ne!(first, "");
    fs::rename(machine.data("d"), machine.data("moved")).unwrap();
    machine.append(LOG, said("More.").as_bytes());
    assert_eq!(wait(&mut child), Some(1));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut text).unwrap();
    assert_explains(&text);
    // What was moved away is whole, and the log has the rest.
    machine.ok("moved", &["db", "check"]);
    machine.ok("moved", &["sync"]);
    assert!(machine.ok("moved", &["show", ID]).contains("More."));
}

#[test]
fn show_follow_ends_when_the_archive_is_deleted() {
    let machine = machine();
    let mut command = machine.command("d", &["show", ID, "--follow"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It has opened the archive when it prints.
    let mut shown = BufReader::new(child.stdout.take().unwrap());
    shown.read_line(&mut String::new()).unwrap();
    until("a recorder", || {
        match machine.json("d", &["doctor"])["archive"]["recording"].as_bool() {
            Some(true) => Ok(()),
            other => Err(other),
        }
    });
    fs::remove_file(machine.data("d").join("unspool.db")).unwrap();
    assert_eq!(wait(&mut child), Some(1));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut text).unwrap();
    assert_explains(&text);
}

#[test]
fn the_terminal_application_ends_when_the_archive_is_deleted() {
    let machine = machine();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_unspool"));
    command.arg("--data");
    command.arg(machine.data("d"));
    command.env_clear();
    command.env("HOME", machine.home());
    command.env("TERM", "xterm-256color");
    command.cwd(machine.home());
    // Wide, so that no line of the message is broken.
    let mut terminal = Pty::open(command, (500, 20));
    let shows = |terminal: &mut Pty, text: &str| {
        until(text, || {
            let _ = terminal.take(Duration::from_millis(50));
            let screen = terminal.screen.screen().contents();
            if screen.contains(text) { Ok(()) } else { Err(screen) }
        });
    };
    shows(&mut terminal, "1 session");
    fs::remove_dir_all(machine.data("d")).unwrap();
    shows(&mut terminal, "deleted, moved or replaced");
    assert_explains(&terminal.screen.screen().contents());
    assert_eq!(terminal.child.wait().unwrap().exit_code(), 1);
}
