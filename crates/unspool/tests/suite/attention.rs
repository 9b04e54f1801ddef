//! An agent that waits for permission: what is shown, and who is told. The agent is a process of its
//! name with a log and hooks; what it runs is a real command below it.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use portable_pty::CommandBuilder;
use serde_json::{Value, json};

use crate::harness::{Machine, WatchProcess, until};
use crate::pty::Pty;

pub const SESSION: &str = "5a3f7c1e-0000-4000-8000-00000000a77e";
const LOG: &str = ".claude/projects/-p/session.jsonl";

/// A shell named `claude` in the project, which runs the commands that it reads.
pub struct Agent<'a> {
    machine: &'a Machine,
    child: Child,
    records: u32,
}

impl Agent<'_> {
    pub fn start(machine: &Machine) -> Agent<'_> {
        let program = machine.home().join("claude");
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut command = Command::new(program);
        command.current_dir(machine.home()).stdin(Stdio::piped()).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        let mut agent = Agent { machine, child, records: 0 };
        agent.prompt("Clean up");
        agent
    }

    pub fn prompt(&mut self, text: &str) {
        self.write("user", json!({ "role": "user", "content": text }));
    }

    fn write(&mut self, kind: &str, message: Value) {
        self.records += 1;
        let record = json!({
            "type": kind,
            "message": message,
            "uuid": format!("00000000-0000-4000-8000-{:012}", self.records),
            "parentUuid": null,
            "sessionId": SESSION,
            "cwd": self.machine.home().canonicalize().unwrap(),
            "version": "2.1.325",
            "isSidechain": false,
            "timestamp": jiff::Timestamp::now().to_string(),
        });
        self.machine.append(LOG, format!("{record}\n").as_bytes());
    }

    pub fn answer(&mut self, content: Value, stop_reason: &str) {
        self.write(
            "assistant",
            json!({
                "id": format!("msg_{}", self.records),
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": [content],
                "stop_reason": stop_reason,
                "usage": { "input_tokens": 1, "output_tokens": 1 },
            }),
        );
    }

    /// Writes the call to the log.
    pub fn call(&mut self, id: &str, command: &str) {
        let input = json!({ "command": command });
        self.answer(
            json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input }),
            "tool_use",
        );
    }

    /// Reports through hooks that the call begins and needs permission, before or after the log has
    /// the call.
    pub fn ask(&mut self, data: &str, id: &str, command: &str) {
        for event in ["PreToolUse", "PermissionRequest"] {
            let mut payload = json!({
                "session_id": SESSION,
                "transcript_path": self.machine.home().join(LOG),
                "cwd": self.machine.home(),
                "hook_event_name": event,
                "tool_name": "Bash",
                "tool_input": { "command": command },
            });
            if event == "PreToolUse" {
                payload["tool_use_id"] = id.into();
            }
            let file = self.machine.home().join(format!("{id}-{event}.json"));
            fs::write(&file, payload.to_string()).unwrap();
            let (program, data) = (env!("CARGO_BIN_EXE_unspool"), self.machine.data(data));
            // The agent runs its hooks: they register its process.
            self.run(&format!(
                "'{program}' --data '{}' hook --agent claude-code < '{}'",
                data.display(),
                file.display(),
            ));
        }
    }

    fn run(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        stdin.flush().unwrap();
    }

    pub fn result(&mut self, id: &str, text: &str) {
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": text });
        self.write("user", json!({ "role": "user", "content": [result] }));
    }

    fn finish(&mut self, id: &str) {
        self.result(id, "done");
        self.answer(json!({ "type": "text", "text": "Done." }), "end_turn");
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The state of the session, and what it does.
fn shown(machine: &Machine) -> (String, Value) {
    // The archive is made by the watcher, which has just been started.
    let listed = machine.run("d", &["list", "--json"], "");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
    (listed[0]["state"].as_str().unwrap_or_default().to_owned(), listed[0]["activity"].clone())
}

#[track_caller]
fn until_shown(machine: &Machine, state: &str, activity: Option<(&str, Option<&str>)>) {
    until(&format!("{state} {activity:?}"), || {
        let (found, now) = shown(machine);
        let doing = now["state"].as_str().map(|doing| (doing, now["what"].as_str()));
        if found == state && doing == activity { Ok(()) } else { Err((found, now)) }
    });
}

#[test]
fn a_session_waits_works_rests_and_ends_with_its_process() {
    let machine = Machine::new();
    let _watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    let mut agent = Agent::start(&machine);
    until_shown(&machine, "live", Some(("working", Some("working"))));
    let command = "sleep 30";
    agent.call("toolu_1", command);
    until_shown(&machine, "live", Some(("working", Some("Bash: sleep 30"))));
    agent.ask("d", "toolu_1", command);
    until_shown(&machine, "live", Some(("waiting", Some(command))));
    let listed = machine.ok("d", &["list", "--width", "200"]);
    assert!(listed.contains("[Waiting for you: sleep 30] Clean up"), "{listed}");
    // No source says that it was granted, but the command runs below the agent.
    agent.run(&format!("sh -c '{command}; true' &"));
    until_shown(&machine, "live", Some(("working", Some("Bash: sleep 30"))));
    agent.finish("toolu_1");
    until_shown(&machine, "idle", None);
    std::thread::sleep(Duration::from_secs(7));
    until_shown(&machine, "idle", None);
    agent.kill();
    until_shown(&machine, "ended", None);
}

#[test]
fn a_session_waits_if_its_hooks_are_read_before_its_log() {
    // Hooks that were installed in the middle of a turn have no prompt.
    let machine = Machine::new();
    let mut agent = Agent::start(&machine);
    let log = machine.home().join(LOG);
    let kept = fs::read(&log).unwrap();
    fs::remove_file(&log).unwrap();
    let _watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    agent.ask("d", "toolu_1", "git push");
    until("the hooks", || {
        let listed = machine.run("d", &["list", "--json"], "");
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
        if listed[0].is_object() { Ok(()) } else { Err(listed) }
    });
    fs::write(&log, kept).unwrap();
    agent.call("toolu_1", "git push");
    until_shown(&machine, "live", Some(("waiting", Some("git push"))));
}

#[test]
fn a_call_that_stands_without_hooks_is_only_maybe_waiting() {
    let machine = Machine::new();
    let _watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    let mut agent = Agent::start(&machine);
    agent.call("toolu_1", "npm publish");
    until_shown(&machine, "live", Some(("working", Some("Bash: npm publish"))));
    until_shown(&machine, "live", Some(("maybe-waiting", Some("npm publish"))));
}

#[test]
fn a_command_runs_once_for_each_wait() {
    let machine = Machine::new();
    let alerts = machine.home().join("alerts");
    let notify = format!("cat >> '{0}'; echo >> '{0}'", alerts.display());
    let _watcher =
        WatchProcess::begin(machine.command("d", &["sync", "--watch", "--notify", &notify]));
    let mut agent = Agent::start(&machine);
    until_shown(&machine, "live", Some(("working", Some("working"))));
    let raised = || fs::read_to_string(&alerts).unwrap_or_default();
    // The first look raises nothing: it may have begun long ago.
    std::thread::sleep(Duration::from_secs(2));
    agent.call("toolu_1", "rm -rf build/");
    agent.ask("d", "toolu_1", "rm -rf build/");
    until("an alert", || if raised().is_empty() { Err(shown(&machine)) } else { Ok(()) });
    std::thread::sleep(Duration::from_secs(3));
    let text = raised();
    assert_eq!(text.lines().count(), 1, "{text}");
    let alert: Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(alert["kind"], "waiting");
    assert_eq!(alert["agent"], "claude-code");
    assert_eq!(alert["what"], "rm -rf build/");
    assert_eq!(alert["title"], "Clean up");
}

#[test]
fn notifications_come_from_a_process_that_does_not_record() {
    let machine = Machine::new();
    let alerts = machine.home().join("alerts");
    let notify = format!("cat >> '{0}'; echo >> '{0}'", alerts.display());
    let _recorder = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    let mut agent = Agent::start(&machine);
    until_shown(&machine, "live", Some(("working", Some("working"))));
    let _notifier =
        WatchProcess::begin(machine.command("d", &["sync", "--watch", "--notify", &notify]));
    std::thread::sleep(Duration::from_secs(3));
    agent.call("toolu_1", "rm -rf build/");
    agent.ask("d", "toolu_1", "rm -rf build/");
    let raised = || fs::read_to_string(&alerts).unwrap_or_default();
    until("an alert", || if raised().is_empty() { Err(shown(&machine)) } else { Ok(()) });
}

#[test]
fn two_processes_may_start_on_a_new_folder_at_once() {
    for round in 0..5 {
        let machine = Machine::new();
        let data = format!("d{round}");
        let begin = || WatchProcess::begin(machine.command(&data, &["serve", "--port", "0"]));
        let mut both = [begin(), begin()];
        let listed = || machine.run(&data, &["list", "--json"], "");
        until("an archive", || {
            let output = listed();
            if output.status.success() { Ok(()) } else { Err(output) }
        });
        std::thread::sleep(Duration::from_secs(1));
        assert!(both.iter_mut().all(WatchProcess::is_running), "round {round}");
    }
}

#[test]
fn the_terminal_rings_once_and_not_for_the_open_session() {
    let machine = Machine::new();
    let mut agent = Agent::start(&machine);
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_unspool"));
    command.arg("--data");
    command.arg(machine.data("d"));
    command.env_clear();
    command.env("HOME", machine.home());
    command.env("TERM", "xterm-256color");
    command.env("PATH", std::env::var("PATH").unwrap());
    let mut pty = Pty::open(command, (100, 20));
    let wait = |pty: &mut Pty, what: &str, seen: &dyn Fn(&Pty) -> bool| {
        let begun = std::time::Instant::now();
        while !seen(pty) {
            let text = pty.screen.screen().contents();
            assert!(begun.elapsed() < Duration::from_secs(20), "{what} never came:\n{text}");
            let _ = pty.take(Duration::from_millis(100));
        }
    };
    let screen =
        |text: &'static str| move |pty: &Pty| pty.screen.screen().contents().contains(text);
    wait(&mut pty, "the session", &screen("Clean up"));
    agent.call("toolu_1", "rm -rf build/;\u{1b}]0;x\u{7}");
    agent.ask("d", "toolu_1", "rm -rf build/;\u{1b}]0;x\u{7}");
    wait(&mut pty, "the wait", &screen("Waiting for you: rm -rf build/"));
    let rings = |pty: &Pty| {
        let text = String::from_utf8_lossy(&pty.raw).into_owned();
        text.matches("\u{7}\u{1b}]9;claude-code waits for you: rm -rf build/,").count()
    };
    wait(&mut pty, "the bell", &|pty| rings(pty) == 1);
    // Escapes of the agent do not reach the terminal.
    assert!(!String::from_utf8_lossy(&pty.raw).contains("\u{1b}]0;x"));
    agent.finish("toolu_1");
    wait(&mut pty, "its end", &|pty| !screen("Waiting for you")(pty));
    pty.press("\r");
    wait(&mut pty, "the session", &screen("Done."));
    agent.write("user", json!({ "role": "user", "content": "Again" }));
    agent.call("toolu_2", "git push");
    agent.ask("d", "toolu_2", "git push");
    wait(&mut pty, "the wait", &screen("[WAITING]"));
    for _ in 0..15 {
        let _ = pty.take(Duration::from_millis(200));
    }
    assert_eq!(rings(&pty), 1);
    let text = String::from_utf8_lossy(&pty.raw).into_owned();
    assert!(!text.contains("waits for you: git push"));
    pty.press("qq");
}
