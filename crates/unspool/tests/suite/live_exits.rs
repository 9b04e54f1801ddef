//! Law 12 while a turn runs: secrets that arrive in two deltas. At each cut, what leaves for others
//! has neither half of them; the owner's own views have both.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, Stdio};
use std::thread;

use serde_json::Value;
use unspool_export::project::NAMES;
use unspool_store::database::Database;
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;

use crate::harness::{Machine, lines, recorded, until};
use crate::test_server::{Server, Socket};

/// The halves of three secrets, so that no complete secret is in this file.
const HEAD: &str = "a1B2c3D4e5F6g7H8i9";
const TAIL: &str = "J0k1L2m3N4o5P6q7R8";

/// The lines of the stream: before each number, the first half of a secret has arrived, and after
/// it the second. The last is the end.
const CUTS: [usize; 3] = [8, 16, 27];

/// A stream with a secret in its reasoning, its text and the input of a call.
fn stream() -> Vec<u8> {
    let mut text =
        String::from_utf8(recorded("claude-code/question-answered/stream.jsonl")).unwrap();
    for (from, to) in [
        ("I need the user's prefer\"", format!("I need gho_{HEAD}\"")),
        ("\"ence.\"", format!("\"{TAIL}.\"")),
        ("Two quick question\"", format!("Two ghp_{HEAD}\"")),
        ("\"s before I change ", format!("\"{TAIL} ")),
        ("Celsius (R\"", format!("ghu_{HEAD}\"")),
        ("\"ecommended)", format!("\"{TAIL}")),
        // The same, whole, after their deltas.
        ("I need the user's preference.", format!("I need gho_{HEAD}{TAIL}.")),
        ("Two quick questions before I change ", format!("Two ghp_{HEAD}{TAIL} ")),
        ("Celsius (Recommended)", format!("ghu_{HEAD}{TAIL}")),
    ] {
        text = text.replace(from, &to);
    }
    text.into_bytes()
}

/// The beginning of the session's log, written now: the stream has no times, and only a recent
/// session runs.
fn log() -> Vec<u8> {
    let recorded = recorded("claude-code/question-answered/log.jsonl");
    let text = String::from_utf8(lines(&recorded)[..3].concat()).unwrap();
    let day = jiff::Timestamp::now().to_string();
    let time = |at: &str| format!("\"timestamp\":\"2026-11-15T00:24:37.{at}Z\"");
    let now = format!("\"timestamp\":\"{day}\"");
    ["580", "582", "622"].iter().fold(text, |text, at| text.replace(&time(at), &now)).into_bytes()
}

fn has_half(text: &str) -> bool {
    text.contains(HEAD) || text.contains(TAIL)
}

/// Everything that leaves for others when somebody asks for it now.
fn exits(machine: &Machine, server: &Server, id: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for form in NAMES.iter().filter(|form| **form != "jsonl") {
        found.push((form.to_string(), machine.ok("d", &["export", id, "--to", form])));
        let path = format!("/api/sessions/{id}/export?to={form}");
        found.push((path.clone(), String::from_utf8(server.get(&path).body).unwrap()));
    }
    for path in [
        format!("/s/{id}/markdown"),
        format!("/s/{id}/markdown?turn=1"),
        format!("/thoughtflow/{id}.json"),
        format!("/thoughtflow/{id}.d2"),
    ] {
        let response = server.get(&path);
        assert_eq!(response.status, 200, "{path}");
        found.push((path, String::from_utf8(response.body).unwrap()));
    }
    let store = Database::open_to_read(&machine.data("d").join("unspool.db")).unwrap();
    let mut terminal = TestHarness::new(store, (100, 40), Theme::named("mocha").unwrap()).unwrap();
    terminal.open(id);
    terminal.press("xGykykyky");
    found.extend(terminal.take_outputs().into_iter().map(|text| ("x or y".to_owned(), text)));
    found
}

/// Collects what a socket of this form receives.
fn listen(server: &Server, request: &str) -> thread::JoinHandle<String> {
    let mut socket = Socket::open(server);
    socket.send_text(request.as_bytes());
    thread::spawn(move || {
        let mut all = String::new();
        // The last message has the end of the turn.
        while let Some(text) = socket.receive_text() {
            all.push_str(&text);
            if all.contains("completed") && all.contains(TAIL) {
                break;
            }
        }
        all
    })
}

/// Collects an AI SDK stream to its end.
fn listen_to_chat(server: &Server, path: String) -> thread::JoinHandle<String> {
    let mut stream = server.connect();
    let (port, token) = (server.port, &server.token);
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    // The head of the response: the server has looked at the session while its turn runs.
    let mut all = vec![0];
    std::io::Read::read_exact(&mut stream, &mut all).unwrap();
    thread::spawn(move || {
        let _ = std::io::Read::read_to_end(&mut stream, &mut all);
        String::from_utf8(all).unwrap()
    })
}

/// Collects the lines of the change socket.
fn follow(machine: &Machine) -> thread::JoinHandle<String> {
    let path = machine.data("d").join("changes.sock");
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only the owner may follow");
    let mut stream = UnixStream::connect(path).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    stream.write_all(b"\"follow\"\n").unwrap();
    thread::spawn(move || {
        let mut all = String::new();
        while !all.contains(TAIL) && reader.read_line(&mut all).is_ok_and(|length| length > 0) {}
        all
    })
}

/// The id of the session, once its last part contains the text.
fn until_stored(server: &Server, wanted: usize) -> String {
    let mut id = String::new();
    until("the half of a secret", || {
        let listed = server.json("/api/sessions");
        let Some(found) = listed[0]["id"].as_str() else { return Err(Value::Null) };
        id = found.to_owned();
        let session = server.json(&format!("/api/sessions/{id}"));
        if session.to_string().matches(HEAD).count() >= wanted { Ok(()) } else { Err(session) }
    });
    id
}

fn send(input: &mut ChildStdin, lines: &[&[u8]]) {
    input.write_all(&lines.concat()).unwrap();
    input.flush().unwrap();
}

#[test]
fn law_12_a_secret_in_two_deltas_leaves_by_no_live_exit() {
    let machine = Machine::new();
    machine.keep_turns_open();
    machine.write(".claude/projects/p/f4496061-e4e6-43c7-b5ac-7ed918555f12.jsonl", &log());
    let server = Server::begin(&machine, "d", &[]);
    let mut import = machine.command("d", &["import", "-"]);
    let mut import = import.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = import.stdin.take().unwrap();
    let text = stream();
    let lines = lines(&text);
    let (mut sent, mut chat, mut views, mut shown) = (0, Vec::new(), Vec::new(), None);
    for (nth, cut) in CUTS.into_iter().enumerate() {
        send(&mut input, &lines[sent..cut]);
        sent = cut;
        let id = until_stored(&server, nth + 1);
        for (exit, text) in exits(&machine, &server, &id) {
            assert!(!has_half(&text), "{exit} at line {cut}: {text}");
        }
        chat.push(listen_to_chat(&server, format!("/api/chat/{id}/stream")));
        if nth == 0 {
            views.push(listen_to_chat(&server, format!("/api/chat/{id}/stream?redact=0")));
            for form in ["json", "frames", "html"] {
                let request = format!(r#"{{"subscribe":"{id}","form":"{form}"}}"#);
                views.push(listen(&server, &request));
            }
            views.push(follow(&machine));
            let mut command = machine.command("d", &["show", &id, "--follow"]);
            shown = Some(command.stderr(Stdio::null()).spawn().unwrap());
        }
    }
    send(&mut input, &lines[sent..]);
    drop(input);
    assert!(import.wait().unwrap().success());
    for chat in chat {
        let text = chat.join().unwrap();
        assert!(text.contains("[redacted:github-token:") && text.contains("[DONE]"), "{text}");
        assert!(!has_half(&text), "{text}");
    }
    // The owner's views are raw, and the documentation says so.
    for view in views {
        let text = view.join().unwrap();
        assert!(text.contains(HEAD) && text.contains(TAIL), "{text}");
    }
    let mut shown = shown.unwrap();
    let mut printed = String::new();
    let mut output = BufReader::new(shown.stdout.take().unwrap());
    while !printed.contains(&format!("ghp_{HEAD}{TAIL}")) {
        assert!(output.read_line(&mut printed).unwrap() > 0, "{printed}");
    }
    shown.kill().unwrap();
    shown.wait().unwrap();
}
