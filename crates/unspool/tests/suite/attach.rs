//! Attaching to an OpenCode server: a scripted server on loopback plays recorded events in chunks
//! and drops its connections at arbitrary points.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Machine, WatchProcess, recorded, until};

const CASES: [&str; 3] =
    ["discovery-loop", "question-answered-and-dismissed", "subagents-parallel-and-resumed"];
const DATABASE: &str = ".local/share/opencode/opencode.db";

/// A server that plays one text per connection, and ends after the last.
struct ScriptedServer {
    url: String,
    /// Drops the connection that has been played.
    drop: Sender<()>,
    playing: JoinHandle<()>,
}

/// When a connection is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DropMode {
    Immediately,
    OnSignal,
}

impl ScriptedServer {
    fn play(case: &str, texts: Vec<Vec<u8>>, drop: DropMode) -> ScriptedServer {
        ScriptedServer::on(TcpListener::bind("127.0.0.1:0").unwrap(), case, texts, drop)
    }

    fn on(
        listener: TcpListener,
        case: &str,
        texts: Vec<Vec<u8>>,
        dropped: DropMode,
    ) -> ScriptedServer {
        let url = format!("http://{}", listener.local_addr().unwrap());
        listener.set_nonblocking(true).unwrap();
        let (drop, received) = channel();
        let (infos, mut texts) = (infos(case), VecDeque::from(texts));
        let playing = thread::spawn(move || {
            let (played_sender, played) = channel();
            let (mut open, mut held): (usize, Vec<TcpStream>) = (0, Vec::new());
            while open > 0 || !texts.is_empty() {
                let Ok((mut stream, _)) = listener.accept() else {
                    held.extend(played.try_iter());
                    if !held.is_empty()
                        && (dropped == DropMode::Immediately || received.try_recv().is_ok())
                    {
                        held.pop();
                        open -= 1;
                    }
                    thread::sleep(Duration::from_millis(2));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                let request = request(&mut stream);
                if !request.starts_with("GET /event ") {
                    answer(&mut stream, &request, &infos);
                } else if let Some(text) = texts.pop_front() {
                    open += 1;
                    let played = played_sender.clone();
                    thread::spawn(move || {
                        play(&mut stream, &text);
                        let _ = played.send(stream);
                    });
                }
            }
        });
        ScriptedServer { url, drop, playing }
    }
}

fn request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        request.push(byte[0]);
    }
    String::from_utf8(request).unwrap()
}

fn play(stream: &mut TcpStream, text: &[u8]) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    // Chunks do not align with events.
    for piece in text.chunks(777) {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        stream.write_all(&chunk).unwrap();
    }
}

/// Responds to `GET /session/…/message/ID` with the recorded message.
fn answer(stream: &mut TcpStream, request: &str, infos: &BTreeMap<String, Value>) {
    let path = request.split(' ').nth(1).unwrap();
    let id = path.rsplit('/').next().unwrap();
    let said = match infos.get(id).filter(|_| path.starts_with("/session/ses_")) {
        Some(info) => {
            let body = serde_json::json!({ "info": info, "parts": [] }).to_string();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        }
        None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    };
    stream.write_all(said.as_bytes()).unwrap();
}

/// The messages of a recorded stream.
fn infos(case: &str) -> BTreeMap<String, Value> {
    let text = String::from_utf8(recorded(&format!("opencode/{case}/stream.sse"))).unwrap();
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.map(|event| serde_json::from_str::<Value>(event).unwrap());
    let received = events.filter(|event| event["type"] == "message.updated");
    received
        .map(|mut event| {
            let info = event["properties"]["info"].take();
            (info["id"].as_str().unwrap().to_owned(), info)
        })
        .collect()
}

const CONNECTED: &[u8] =
    b"data: {\"id\":\"evt_0\",\"type\":\"server.connected\",\"properties\":{}}\n\n";

/// A recorded stream as two connections. The first ends in the middle of an event; from that event
/// on, `missed` events are lost.
fn in_two(case: &str, missed: usize) -> Vec<Vec<u8>> {
    let text = String::from_utf8(recorded(&format!("opencode/{case}/stream.sse"))).unwrap();
    let events: Vec<&str> = text.split_inclusive("\n\n").collect();
    let half = events.len() / 2;
    let first = events[..half].concat() + &events[half][..events[half].len() / 2];
    let second = [CONNECTED, events[half + missed..].concat().as_bytes()].concat();
    vec![first.into_bytes(), second]
}

fn import(machine: &Machine, data: &str, url: &str) -> Child {
    machine.command(data, &["import", "--attach", url, "--json"]).spawn().unwrap()
}

/// The sessions of an archive with the capture imported as a file, and optionally the database.
fn expected(case: &str, database: bool) -> Vec<Value> {
    let machine = Machine::new();
    if database {
        machine.put(&format!("opencode/{case}/log.db"), DATABASE);
        machine.ok("d", &["sync"]);
    }
    let path = crate::case::root().join(format!("fixtures/opencode/{case}/stream.sse"));
    machine.ok("d", &["import", path.to_str().unwrap()]);
    machine.sessions("d").unwrap()
}

fn difference(held: &[Value], expected: &[Value]) -> Vec<String> {
    let text = |of| serde_json::to_string_pretty(of).unwrap();
    let (held, expected) = (text(held), text(expected));
    let pairs = held.lines().zip(expected.lines());
    let other = pairs.filter(|(a, b)| a != b).map(|(a, b)| format!("{a} instead of {b}"));
    other.take(4).collect()
}

#[test]
fn a_server_is_followed_until_it_ends_though_its_connection_drops() {
    // R-X-03: a live stream is one more feed of its sessions.
    for case in CASES {
        let machine = Machine::new();
        let server = ScriptedServer::play(case, in_two(case, 0), DropMode::Immediately);
        let output = import(&machine, "d", &server.url).wait_with_output().unwrap();
        server.playing.join().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("has ended; "), "{case}: {said}");
        let held = machine.sessions("d").unwrap();
        let alone = expected(case, false);
        assert!(held == alone, "{case}: {:#?}", difference(&held, &alone));
        // The database is imported later.
        machine.put(&format!("opencode/{case}/log.db"), DATABASE);
        machine.ok("d", &["sync"]);
        let (held, both) = (machine.sessions("d").unwrap(), expected(case, true));
        assert!(held == both, "{case}: {:#?}", difference(&held, &both));
        machine.ok("d", &["db", "check"]);
        // A second sync imports nothing.
        assert_eq!(machine.json("d", &["sync"])["records"], 0);
    }
}

#[test]
fn the_database_fills_gaps_between_connections() {
    for case in CASES {
        let machine = Machine::new();
        machine.put(&format!("opencode/{case}/log.db"), DATABASE);
        let server = ScriptedServer::play(case, in_two(case, 3), DropMode::Immediately);
        let arguments = ["sync", "--watch", "--json", "--attach", &server.url];
        let mut watcher = WatchProcess::begin(machine.command("d", &arguments));
        let expected = expected(case, true);
        let questions = case == "question-answered-and-dismissed";
        until(case, || match machine.sessions("d") {
            // A question asked between the two connections is lost.
            Some(held) if questions && held.len() == expected.len() => Ok(()),
            Some(held) if held == expected => Ok(()),
            held => Err(held.map(|held| difference(&held, &expected))),
        });
        server.playing.join().unwrap();
        assert!(watcher.is_running());
        machine.ok("d", &["db", "check"]);
    }
}

#[test]
fn a_server_may_be_joined_in_the_middle_of_a_turn() {
    // The importer fetches the message that is growing; the rest is in the database.
    let case = "discovery-loop";
    let machine = Machine::new();
    let second = in_two(case, 0).pop().unwrap();
    let server = ScriptedServer::play(case, vec![second], DropMode::OnSignal);
    let importing = import(&machine, "d", &server.url);
    // While the server can still be queried.
    until("the end of the turn", || match machine.sessions("d").unwrap_or_default().first() {
        Some(held) if held["turns"][0]["state"] == "completed" => Ok(()),
        held => Err(held.map(|held| held["turns"][0]["state"].clone())),
    });
    server.drop.send(()).unwrap();
    let output = importing.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let held = machine.sessions("d").unwrap();
    assert_eq!(held[0]["turns"].as_array().unwrap().len(), 1);
    machine.put(&format!("opencode/{case}/log.db"), DATABASE);
    machine.ok("d", &["sync"]);
    let (held, both) = (machine.sessions("d").unwrap(), expected(case, true));
    assert!(held == both, "{:#?}", difference(&held, &both));
}

#[test]
fn a_server_may_start_later_and_is_recorded_live() {
    let machine = Machine::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}");
    let arguments = ["sync", "--watch", "--json", "--attach", &url];
    let mut watcher = WatchProcess::begin(machine.command("d", &arguments));
    until("a recorder", || match machine.sessions("d") {
        Some(_) => Ok(()),
        None => Err("no archive"),
    });
    let case = "discovery-loop";
    let text = recorded(&format!("opencode/{case}/stream.sse"));
    let listener = TcpListener::bind(address).unwrap();
    let server = ScriptedServer::on(listener, case, vec![text], DropMode::OnSignal);
    // While the connection is open.
    let expected = expected(case, false);
    until("what the server told", || match machine.sessions("d") {
        Some(held) if held == expected => Ok(()),
        held => Err(held.map(|held| difference(&held, &expected))),
    });
    server.drop.send(()).unwrap();
    server.playing.join().unwrap();
    assert!(watcher.is_running());
}

#[test]
fn another_process_may_record_what_is_followed() {
    let machine = Machine::new();
    let mut watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch", "--json"]));
    let case = "discovery-loop";
    let text = recorded(&format!("opencode/{case}/stream.sse"));
    let server = ScriptedServer::play(case, vec![text], DropMode::OnSignal);
    let importing = import(&machine, "d", &server.url);
    let expected = expected(case, false);
    until("what the server told", || match machine.sessions("d") {
        Some(held) if held == expected => Ok(()),
        held => Err(held.map(|held| difference(&held, &expected))),
    });
    server.drop.send(()).unwrap();
    let output = importing.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(watcher.is_running());
    machine.ok("d", &["db", "check"]);
}

#[test]
fn an_address_without_a_server_is_an_error_that_says_what_to_do() {
    let machine = Machine::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let fails = |url: &str, says: &str| {
        let output = machine.run("d", &["import", "--attach", url], "");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(says), "{said}");
    };
    fails(&format!("http://{address}"), "opencode serve --port");
    fails("https://127.0.0.1:4096", "only http is supported");
    fails("opencode", "expected something like http://127.0.0.1:4096");
    assert!(!machine.data("d").exists());
    let listener = TcpListener::bind(address).unwrap();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    fails(&format!("http://{address}"), "is it an OpenCode server?");
    answering.join().unwrap();
}
