//! The live socket for programs (`"form": "json"`), as docs/web.md describes it.

use serde_json::{Value, json};

use crate::harness::{Machine, WatchProcess, lines, recorded, until};
use crate::test_server::{Server, Socket};

const LOG: &str = ".claude/projects/-home-dev-weather-app/growing.jsonl";

fn subscribe(server: &Server, session: &str, since: Option<u64>) -> Socket {
    let mut socket = Socket::open(server);
    let request = json!({"subscribe": session, "form": "json", "since": since});
    socket.send_text(request.to_string().as_bytes());
    socket
}

fn next(socket: &mut Socket) -> Value {
    let text = socket.receive_text().unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The end of the recording.
const LAST_WORDS: &str = "unit fix";

/// Reads a snapshot. Returns its turns and its seq.
fn snapshot(socket: &mut Socket) -> (Vec<Value>, u64) {
    let mut turns: Vec<Value> = Vec::new();
    for nth in 0.. {
        let message = next(socket);
        assert_eq!(message["type"], "snapshot", "{message}");
        assert_eq!(message["first"], nth == 0, "{message}");
        assert_eq!(message["document"]["session"].is_null(), nth > 0, "{message}");
        turns.extend(message["document"]["turns"].as_array().unwrap().iter().cloned());
        if message["more"] == false {
            return (turns, message["seq"].as_u64().unwrap());
        }
    }
    unreachable!()
}

/// Reads changes without a gap from `seq` until they name this text. Returns their last seq.
fn changes(socket: &mut Socket, mut seq: u64, wanted: &str) -> u64 {
    loop {
        let message = next(socket);
        assert_eq!(message["type"], "changes", "{message}");
        assert_eq!(message["from_seq"], seq, "without a gap: {message}");
        let last = message["seq"].as_u64().unwrap();
        assert!(last > seq, "{message}");
        seq = last;
        if message["changes"].to_string().contains(wanted) {
            return seq;
        }
    }
}

// R-000-13
#[test]
fn changes_follow_a_snapshot_without_a_gap() {
    let machine = Machine::new();
    machine.keep_turns_open();
    let log = recorded("claude-code/discovery-loop/log.jsonl");
    let all = lines(&log);
    let (half, rest) = all.split_at(all.len() / 2);
    machine.append(LOG, &half.concat());
    machine.ok("d", &["sync"]);
    let server = Server::begin(&machine, "d", &[]);
    let session = server.json("/api/sessions")[0]["id"].as_str().unwrap().to_owned();

    let mut socket = subscribe(&server, &session, None);
    let (turns, seq) = snapshot(&mut socket);
    assert_eq!(turns.len(), 1);
    assert!(seq > 0);
    // Everything from here on, in order, up to the last words of the log.
    machine.append(LOG, &rest.concat());
    let last = changes(&mut socket, seq, LAST_WORDS);

    // Who lacks something gets a snapshot, and who has everything gets none.
    let (whole, current) = snapshot(&mut subscribe(&server, &session, Some(seq)));
    assert!(current >= last, "{current} {last}");
    assert_eq!(whole.len(), 1);
    assert!(whole[0].to_string().contains(LAST_WORDS));
    let mut again = subscribe(&server, &session, Some(current));
    machine.append(LOG, &prompt(&all, "And now?"));
    changes(&mut again, current, "And now?");
    assert!(socket.receive_text().is_some(), "the first one goes on too");
}

/// A prompt like the first of a log, with other words.
fn prompt(log: &[&[u8]], words: &str) -> Vec<u8> {
    let mut records = log.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap());
    let mut record = records.find(|record| record["type"] == "user").unwrap();
    for name in ["uuid", "promptId"] {
        record[name] = json!("99999999-0000-4000-8000-000000000001");
    }
    record["message"]["content"] = json!(words);
    format!("{record}\n").into_bytes()
}

/// The process that records is killed: the server may have missed changes, and says so.
#[test]
fn missed_changes_are_reported_and_a_snapshot_follows() {
    let machine = Machine::new();
    machine.keep_turns_open();
    let log = recorded("claude-code/discovery-loop/log.jsonl");
    machine.append(LOG, &log);
    machine.ok("d", &["sync"]);
    let watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    until("a recorder", || {
        let recording = machine.json("d", &["doctor"])["archive"]["recording"].clone();
        if recording == true { Ok(()) } else { Err(recording) }
    });
    let server = Server::begin(&machine, "d", &[]);
    let session = server.json("/api/sessions")[0]["id"].as_str().unwrap().to_owned();
    let mut socket = subscribe(&server, &session, None);
    let (_, seq) = snapshot(&mut socket);
    drop(watcher);
    let message = next(&mut socket);
    assert_eq!((&message["type"], &message["session"]), (&json!("behind"), &json!(session)));
    assert_eq!(message["seq"], seq);
    snapshot(&mut socket);
}
