//! Hooks together with logs, through the real `unspool hook`: whether payloads arrive before,
//! during or after the log, the session is the same. And a hook never blocks its agent.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::case::{cases, name, root};
use crate::harness::{Machine, WatchProcess, lines, until};

/// The path of an agent's log.
fn log_path(agent: &str, session: &str) -> String {
    match agent {
        "claude-code" => format!(".claude/projects/-home-dev-weather-app/{session}.jsonl"),
        "codex" => {
            format!(".codex/sessions/2026/11/15/rollout-2026-11-15T00-42-09-{session}.jsonl")
        }
        "copilot" => format!(".copilot/session-state/{session}/events.jsonl"),
        _ => format!(".gemini/tmp/weather-app/chats/session-2026-11-15T00-47-{session}.jsonl"),
    }
}

/// A case with hooks: payloads with the events they are about, and the log.
struct HookCase {
    agent: &'static str,
    case: String,
    payloads: Vec<(String, String)>,
    log: Vec<u8>,
    path: String,
    /// When its first hook ran.
    begun: String,
}

fn hook_case(agent: &'static str, wanted: impl Fn(&str) -> bool) -> Vec<HookCase> {
    let with_hooks = |path: &std::path::PathBuf| path.join("hooks.jsonl").exists();
    let found: Vec<HookCase> = cases(agent)
        .into_iter()
        .filter(|path| with_hooks(path) && wanted(&name(path)))
        .map(|path| {
            let read = |file: &str| fs::read(path.join(file)).unwrap();
            let text = String::from_utf8(read("hooks.jsonl")).unwrap();
            let payloads: Vec<(String, String)> = text.lines().map(unwrapped).collect();
            let first: Value = serde_json::from_str(&payloads[0].1).unwrap();
            let session = ["session_id", "sessionId"].iter().find_map(|key| first[key].as_str());
            let (case, log) = (format!("{agent}/{}", name(&path)), read("log.jsonl"));
            let path = log_path(agent, session.unwrap());
            HookCase { agent, case, payloads, log, path, begun: String::new() }
        })
        .collect();
    assert!(!found.is_empty(), "{agent}");
    found
}

/// Unwraps a payload from the envelope that recorders add.
fn unwrapped(line: &str) -> (String, String) {
    let record: Value = serde_json::from_str(line).unwrap();
    match record.get("payload") {
        Some(payload) => {
            (record["event"].as_str().unwrap_or_default().to_owned(), payload.to_string())
        }
        None => (String::new(), line.to_owned()),
    }
}

impl HookCase {
    fn hook(&self, machine: &Machine, data: &str, nth: usize) {
        let (event, payload) = &self.payloads[nth];
        let mut arguments = vec!["hook", "--agent", self.agent];
        if self.agent == "copilot" {
            arguments.extend(["--event", event]);
        }
        let output = machine.run(data, &arguments, payload);
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }

    fn hook_all(&self, machine: &Machine, data: &str) {
        (0..self.payloads.len()).for_each(|nth| self.hook(machine, data, nth));
    }

    fn before(&self) -> Vec<Value> {
        let machine = Machine::new();
        self.hook_all(&machine, "d");
        machine.ok("d", &["sync"]);
        machine.write(&self.path, &self.log);
        machine.ok("d", &["sync"]);
        sessions(&machine, &self.begun).unwrap()
    }

    fn after(&self) -> Vec<Value> {
        let machine = Machine::new();
        machine.write(&self.path, &self.log);
        machine.ok("d", &["sync"]);
        self.hook_all(&machine, "d");
        machine.ok("d", &["sync"]);
        sessions(&machine, &self.begun).unwrap()
    }

    /// The sessions of the recorded captures, imported as files instead of through the spool.
    fn recorded(&self) -> Vec<Value> {
        let machine = Machine::new();
        let case = root().join("fixtures").join(&self.case);
        for file in ["log.jsonl", "hooks.jsonl"] {
            machine.ok("d", &["import", case.join(file).to_str().unwrap()]);
        }
        machine.sessions("d").unwrap()
    }

    /// Payloads and log lines interleaved while a watcher runs; the payloads come first.
    fn while_watching(&self, expected: &[Value]) {
        let machine = Machine::new();
        let mut watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch", "--json"]));
        let lines = lines(&self.log);
        let mut hook_case = 0;
        for (number, line) in lines.iter().enumerate() {
            while hook_case < self.payloads.len() * (number + 1) / lines.len() {
                self.hook(&machine, "d", hook_case);
                hook_case += 1;
            }
            machine.append(&self.path, line);
        }
        until(&self.case, || match sessions(&machine, &self.begun) {
            Some(held) if held == expected => Ok(()),
            held => Err(held.map(|held| difference(&held, expected))),
        });
        assert!(watcher.is_running());
        machine.ok("d", &["db", "check"]);
    }
}

fn difference(held: &[Value], expected: &[Value]) -> Vec<String> {
    let text = |of| serde_json::to_string_pretty(of).unwrap();
    let (held, expected) = (text(held), text(expected));
    let pairs = held.lines().zip(expected.lines());
    let other = pairs.filter(|(a, b)| a != b).map(|(a, b)| format!("{a} instead of {b}"));
    other.take(4).collect()
}

/// Masks times since the test started: facts known only from hooks have the time of the hook run.
fn without_times_since(begun: &str, value: &mut Value) {
    match value {
        Value::String(time) if is_time(time) && &**time >= begun => *time = "now".to_owned(),
        Value::Array(values) => values.iter_mut().for_each(|it| without_times_since(begun, it)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|it| without_times_since(begun, it));
            // The duration derives from the masked times.
            let now = Value::from("now");
            if [fields.get("started_at"), fields.get("ended_at")].contains(&Some(&now)) {
                fields.remove("duration_ms");
            }
        }
        _ => {}
    }
}

fn without_times(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_times),
        Value::Object(fields) => {
            fields.retain(|name, _| !["started_at", "ended_at", "duration_ms"].contains(&&**name));
            fields.values_mut().for_each(without_times);
        }
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    text.len() == 24 && text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()
}

/// The sessions of an archive with hook times masked.
fn sessions(machine: &Machine, begun: &str) -> Option<Vec<Value>> {
    let mut sessions = machine.sessions("d")?;
    sessions.iter_mut().for_each(|session| without_times_since(begun, session));
    Some(sessions)
}

#[track_caller]
fn same_whenever_they_come(cases: Vec<HookCase>) {
    for mut hook_case in cases {
        hook_case.begun = format!("{:.3}", jiff::Timestamp::now());
        let before = hook_case.before();
        let after = hook_case.after();
        assert!(before == after, "{}: {:#?}", hook_case.case, difference(&before, &after));
        hook_case.while_watching(&before);
        // They equal the recorded payloads except for times.
        let mut both = [before, hook_case.recorded()];
        both.iter_mut().flatten().for_each(without_times);
        let [before, files] = both;
        assert!(before == files, "{}: {:#?}", hook_case.case, difference(&before, &files));
    }
}

// R-X-03: hooks add to the log without duplicating anything.
#[test]
fn hooks_of_claude_code_may_come_at_any_time() {
    let some = ["discovery-loop", "terminal-permissions-and-questions"];
    same_whenever_they_come(hook_case("claude-code", |case| some.contains(&case)));
}

#[test]
fn hooks_of_codex_may_come_at_any_time() {
    same_whenever_they_come(hook_case("codex", |_| true));
}

#[test]
fn hooks_of_copilot_may_come_at_any_time() {
    same_whenever_they_come(hook_case("copilot", |_| true));
}

#[test]
fn hooks_of_gemini_may_come_at_any_time() {
    same_whenever_they_come(hook_case("gemini", |_| true));
}

/// Far longer than a hook takes on a busy machine, and far shorter than a blocked one.
const STUCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the quickest of several runs may take: other tests run at the same time.
const LATENCY_LIMIT: Duration = Duration::from_millis(500);
const RUNS: usize = 5;

/// Runs a hook until it was quick enough, and returns its duration.
fn timed(hook: impl Fn() -> Command, input: &str, what: &str) -> Duration {
    let mut took = Duration::MAX;
    for _ in 0..RUNS {
        took = took.min(timed_once(hook(), input, what));
        if took <= LATENCY_LIMIT {
            return took;
        }
    }
    panic!("{what}: {took:?}, the quickest of {RUNS}");
}

fn timed_once(mut command: Command, input: &str, what: &str) -> Duration {
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.as_mut().unwrap().write_all(input.as_bytes());
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    let took = begun.elapsed();
    assert_eq!(output.status.code(), Some(0), "{what}: {output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{what}: {output:?}");
    assert!(took < STUCK_TIMEOUT, "{what}: {took:?}");
    println!("{what}: {took:?}");
    took
}

#[test]
fn a_hook_is_over_at_once_whatever_happens() {
    // Law 7. Durations are printed (--nocapture): nothing blocks, and nothing is slow.
    let machine = Machine::new();
    let payload =
        fs::read_to_string(root().join("fixtures/claude-code/discovery-loop/hooks.jsonl"));
    let payload = payload.unwrap().lines().next().unwrap().to_owned();
    let hook = |data: &str| machine.command(data, &["hook", "--agent", "claude-code"]);
    timed(|| hook("new"), &payload, "a folder that is not there yet");
    assert_eq!(fs::read_dir(machine.data("new").join("hooks")).unwrap().count(), 1);
    timed(|| hook("new"), &payload, "a folder that is there");
    // A read-only folder. (Root may write anyway.)
    fs::create_dir(machine.data("closed")).unwrap();
    fs::set_permissions(machine.data("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    timed(|| hook("closed"), &payload, "a folder that is read-only");
    fs::set_permissions(machine.data("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    // A file where the folder should be; a full disk where the file should be.
    fs::write(machine.data("file"), "in the way").unwrap();
    timed(|| hook("file"), &payload, "a file in the way");
    fs::create_dir_all(machine.data("full").join("hooks")).unwrap();
    let today = fs::read_dir(machine.data("new").join("hooks")).unwrap().next().unwrap().unwrap();
    let full = machine.data("full").join("hooks").join(today.file_name());
    std::os::unix::fs::symlink("/dev/full", full).unwrap();
    timed(|| hook("full"), &payload, "a full disk");
    // A pipe without a reader where the file should be: opening it would block forever.
    fs::create_dir_all(machine.data("pipe").join("hooks")).unwrap();
    let pipe = machine.data("pipe").join("hooks").join(today.file_name());
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // It is given up after a second.
    timed_once(hook("pipe"), &payload, "a file that cannot be opened");
    // A stopped recorder that holds the lock.
    let watcher = WatchProcess::begin(machine.command("stuck", &["sync", "--watch", "--json"]));
    until("a recorder", || {
        let recording = machine.json("stuck", &["doctor"])["archive"]["recording"].clone();
        if recording == true { Ok(()) } else { Err(recording) }
    });
    let stop = |signal: &str| {
        let id = watcher.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    };
    stop("-STOP");
    timed(|| hook("stuck"), &payload, "a recorder that is stuck");
    stop("-CONT");
    until("what was told meanwhile", || match machine.sessions("stuck") {
        Some(held) if held.len() == 1 => Ok(()),
        held => Err(held),
    });
    // An agent that never closes the hook's stdin.
    let mut command = hook("open");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let open = child.stdin.take().unwrap();
    let begun = Instant::now();
    assert!(child.wait().unwrap().success());
    assert!(begun.elapsed() < STUCK_TIMEOUT);
    drop(open);
}
