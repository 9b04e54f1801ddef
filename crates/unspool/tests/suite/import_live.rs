//! `… | unspool import -`: standard input is recorded while it arrives, and what is stored in the
//! end is what a file with the same lines gives.

use std::io::Write;
use std::process::{Child, ChildStdin, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Machine, WatchProcess, lines, recorded, until};

const STREAM: &str = "claude-code/discovery-loop/stream.jsonl";

/// A running `unspool import -`.
struct LiveImport {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl LiveImport {
    fn begin(machine: &Machine) -> LiveImport {
        let mut child = machine.command("d", &["import", "-", "--json"]).spawn().unwrap();
        LiveImport { stdin: child.stdin.take(), child }
    }

    fn send(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Ends the input and waits for the report.
    fn end(mut self) -> Output {
        drop(self.stdin.take());
        self.child.wait_with_output().unwrap()
    }
}

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The text of all parts of the only session; empty while there is none.
fn texts(machine: &Machine) -> String {
    let sessions = machine.sessions("d").unwrap_or_default();
    let parts = sessions.iter().flat_map(|session| {
        let turns = session["turns"].as_array().unwrap().iter();
        turns.flat_map(|turn| turn["parts"].as_array().unwrap())
    });
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[track_caller]
fn until_stored(machine: &Machine, wanted: &str) {
    until(wanted, || {
        let stored = texts(machine);
        if stored.ends_with(wanted) { Ok(()) } else { Err(stored) }
    });
}

/// Sends a stream in pieces and looks at the archive in between.
fn feed(machine: &Machine) {
    let text = recorded(STREAM);
    let lines = lines(&text);
    let mut import = LiveImport::begin(machine);
    // Line 8 is the first delta of a thought, line 10 the second.
    import.send(&lines[..8].concat());
    until_stored(machine, "The user reports cache m");
    import.send(&lines[8..10].concat());
    until_stored(machine, "The user reports cache misses. I should look at ");
    // Half a line changes nothing, and its other half completes it.
    import.send(&lines[10..11].concat());
    let (half, other) = lines[11].split_at(40);
    import.send(half);
    import.send(other);
    until_stored(machine, "the layout first, then t");
    import.send(&lines[12..].concat());
    let live = report(&import.end());
    let path = crate::case::root().join("fixtures").join(STREAM);
    let whole = machine.json("whole", &["import", path.to_str().unwrap()]);
    for count in ["sessions", "turns", "parts", "records", "bytes", "warnings"] {
        assert_eq!(live[count], whole[count], "{count}");
    }
    assert_eq!(machine.sessions("d"), machine.sessions("whole"));
    machine.ok("d", &["db", "check"]);
}

// Laws 2 and 5.
#[test]
fn a_piped_stream_is_recorded_while_it_arrives() {
    let machine = Machine::new();
    feed(&machine);
    let before = machine.sessions("d");
    let text = String::from_utf8(recorded(STREAM)).unwrap();
    let again = report(&machine.run("d", &["import", "-", "--json"], &text));
    assert_eq!((&again["records"], &again["sessions"]), (&Value::from(0), &Value::from(0)));
    assert_eq!(machine.sessions("d"), before);
}

#[test]
fn a_piped_stream_is_recorded_by_the_process_that_records() {
    let machine = Machine::new();
    let mut watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    until("a recorder", || match machine.json("d", &["doctor"])["archive"]["recording"] {
        Value::Bool(true) => Ok(()),
        ref other => Err(other.clone()),
    });
    feed(&machine);
    assert!(watcher.is_running());
}

#[test]
fn a_pause_in_the_input_lets_another_process_record() {
    let machine = Machine::new();
    let text = recorded(STREAM);
    let lines = lines(&text);
    let mut import = LiveImport::begin(&machine);
    import.send(&lines[..8].concat());
    until_stored(&machine, "The user reports cache m");
    // Waits for the lock, which the import does not keep.
    let _watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    machine.put("claude-code/web-search/log.jsonl", ".claude/projects/-p/log.jsonl");
    until("the other session", || match machine.sessions("d") {
        Some(held) if held.len() == 2 => Ok(()),
        held => Err(held.map(|held| held.len())),
    });
    import.send(&lines[8..10].concat());
    until("the rest of the stream", || {
        let stored = texts(&machine);
        if stored.contains("misses. I should look at ") { Ok(()) } else { Err(stored) }
    });
    assert_eq!(report(&import.end())["records"], 10);
}

// Law 4.
#[test]
fn a_last_line_that_is_cut_off_is_reported_and_can_be_completed() {
    let machine = Machine::new();
    let text = recorded(STREAM);
    let lines = lines(&text);
    let whole = String::from_utf8(lines[..10].concat()).unwrap();
    let cut = report(&machine.run("d", &["import", "-", "--json"], &whole[..whole.len() - 20]));
    assert_eq!(cut["records"], 9);
    let warning = &cut["warnings"][0];
    assert_eq!((&warning["file"], &warning["line"]), (&"standard input".into(), &10.into()));
    until_stored(&machine, "The user reports cache m");
    let rest = report(&machine.run("d", &["import", "-", "--json"], &whole));
    assert_eq!((&rest["records"], &rest["warnings"]), (&1.into(), &Value::Array(Vec::new())));
    until_stored(&machine, "I should look at ");
    // A whole last line needs no line end.
    let more = lines[..11].concat();
    let more = std::str::from_utf8(&more).unwrap().trim_end();
    assert_eq!(report(&machine.run("d", &["import", "-", "--json"], more))["records"], 1);
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_arrived() {
    let machine = Machine::new();
    let text = recorded(STREAM);
    let mut import = LiveImport::begin(&machine);
    import.send(&lines(&text)[..8].concat());
    until_stored(&machine, "The user reports cache m");
    let id = import.child.id().to_string();
    let begun = Instant::now();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    // The last lines of a producer that ends by the same interrupt.
    import.send(&lines(&text)[8..10].concat());
    let LiveImport { child, stdin } = import;
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(report(&output)["records"], 10);
    assert!(texts(&machine).ends_with("I should look at "));
}

#[test]
fn input_that_is_not_lines_is_read_at_its_end() {
    let machine = Machine::new();
    // A document.
    let chat = r#"{"id":"chat-1","messages":[
        {"id":"m1","role":"user","parts":[{"type":"text","text":"Hi"}]},
        {"id":"m2","role":"assistant","parts":[{"type":"text","text":"Hello"}]}]}"#;
    let read = report(&machine.run("d", &["import", "-", "--json"], chat));
    assert_eq!(read["sessions"], 1);
    assert_eq!(texts(&machine), "Hello");
    // A compressed log.
    let packed = zstd::encode_all(&*recorded(STREAM), 3).unwrap();
    let mut import = LiveImport::begin(&machine);
    import.send(&packed);
    assert_eq!(report(&import.end())["records"], 328);
    // Nothing, and something unknown.
    for (text, said) in
        [("", "standard input: empty"), ("{\"a\":1}\n{\"b\":2}\n", "unrecognised file format")]
    {
        let output = machine.run("d", &["import", "-"], text);
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(said), "{stderr}");
    }
}
