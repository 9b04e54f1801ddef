//! A killed agent reports no end. The recorder notices that it is gone, every surface says that its
//! turn was interrupted, and a turn that goes on after all runs again.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use unspool_store::database::Database;
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;

use crate::harness::{Machine, WatchProcess, lines, recorded, until};
use crate::test_server::Server;

const LOG: &str = ".claude/projects/-home-dev-weather-app/log.jsonl";
const FIXTURE: &str = "claude-code/killed-mid-tool/log.jsonl";
const CONFIG: &str = ".config/unspool/config.toml";

/// The log up to and including its last call, in a project of this machine.
fn log(machine: &Machine) -> Vec<String> {
    let project = machine.home().canonicalize().unwrap();
    let text = String::from_utf8(recorded(FIXTURE)).unwrap();
    let text = text.replace("/home/dev/weather-app", project.to_str().unwrap());
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// A process that looks like an agent: a program of its name, started in the project.
struct FakeAgent(Child);

impl FakeAgent {
    fn start(machine: &Machine) -> FakeAgent {
        FakeAgent::start_program(machine, "claude")
    }

    fn start_program(machine: &Machine, name: &str) -> FakeAgent {
        let program = machine.home().join(name);
        if !program.exists() {
            std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        }
        let mut command = Command::new(program);
        command.arg("600").current_dir(machine.home()).stdin(Stdio::null());
        FakeAgent(command.spawn().unwrap())
    }

    /// SIGKILL.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The states of the last turn and of its last call.
fn states(machine: &Machine, data: &str) -> Option<(String, String)> {
    let session = machine.sessions(data)?.pop()?;
    let turn = session["turns"].as_array()?.last()?.clone();
    let parts = turn["parts"].as_array()?;
    let tool = parts.iter().rfind(|part| part["kind"] == "tool")?;
    Some((turn["state"].as_str()?.to_owned(), tool["state"].as_str()?.to_owned()))
}

#[track_caller]
fn until_states(machine: &Machine, wanted: (&str, &str)) {
    until("these states", || match states(machine, "d") {
        Some((turn, tool)) if (&*turn, &*tool) == wanted => Ok(()),
        other => Err(other),
    });
}

/// Sets the times of all records to now: a session whose records are old counts as idle anyway.
fn now(line: &str) -> String {
    let mut record: Value = serde_json::from_str(line).unwrap();
    if record.get("timestamp").is_some() {
        record["timestamp"] = jiff::Timestamp::now().to_string().into();
    }
    format!("{record}\n")
}

// R-X-13, R-X-18
#[cfg(target_os = "linux")]
#[test]
fn a_killed_agent_is_noticed_and_may_come_back() {
    let machine = Machine::new();
    machine.write(CONFIG, b"idle_after = 2\n");
    let mut agent = FakeAgent::start(&machine);
    let text: String = log(&machine).iter().map(|line| now(line)).collect();
    machine.write(LOG, text.as_bytes());
    let watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    until_states(&machine, ("running", "running"));
    // Silent, but there: it may wait for its user.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(states(&machine, "d").unwrap().0, "running");
    agent.kill();
    until_states(&machine, ("interrupted", "interrupted"));
    assert_eq!(machine.json("d", &["list"])[0]["state"], "idle");
    machine.ok("d", &["db", "check"]);

    // The same after a restart, and after another read of the same log.
    drop(watcher);
    machine.ok("d", &["sync"]);
    let path = machine.home().join(LOG);
    machine.ok("d", &["import", path.to_str().unwrap()]);
    assert_eq!(states(&machine, "d").unwrap().0, "interrupted");
    assert_not_observed(&machine);

    // The agent is resumed and writes the result of the call.
    let _agent = FakeAgent::start(&machine);
    let _watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    let last: Value = text
        .lines()
        .rev()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|record| record["type"] == "assistant")
        .unwrap();
    let content = last["message"]["content"].as_array().unwrap();
    let call = &content.iter().find(|block| block["type"] == "tool_use").unwrap()["id"];
    let mut result = last.clone();
    result["type"] = "user".into();
    result["uuid"] = "00000000-0000-4000-8000-000000000001".into();
    result["parentUuid"] = last["uuid"].clone();
    result["timestamp"] = jiff::Timestamp::now().to_string().into();
    result["message"] = serde_json::json!({
        "role": "user",
        "content": [{ "type": "tool_result", "tool_use_id": call, "content": "done" }],
    });
    machine.append(LOG, format!("{result}\n").as_bytes());
    until_states(&machine, ("running", "completed"));
    let turn = machine.sessions("d").unwrap()[0]["turns"][0].clone();
    assert!(turn.get("observed").is_none(), "{turn}");
    machine.ok("d", &["db", "check"]);
}

/// That the end was inferred is in the JSON and on every screen.
fn assert_not_observed(machine: &Machine) {
    let session = machine.sessions("d").unwrap().remove(0);
    let turn = &session["turns"][0];
    assert_eq!(turn["observed"], false, "{turn}");
    let parts = turn["parts"].as_array().unwrap();
    let mut tools = parts.iter().filter(|part| part["kind"] == "tool");
    assert!(tools.all(|tool| tool["observed"] == false), "{turn}");
    let said = "interrupted (inferred: no end recorded)";
    let id = session["session"]["id"].as_str().unwrap();
    let shown = machine.ok("d", &["show", id]);
    assert!(shown.contains(&format!("· {said}")), "{shown}");
    assert!(shown.contains(&format!("[FAILED] {said}")), "{shown}");
    let server = Server::begin(machine, "d", &[]);
    let page = String::from_utf8(server.get(&format!("/s/{id}")).body).unwrap();
    assert!(page.matches(said).count() >= 3, "the turn and two calls: {page}");
    drop(server);
    let store = Database::open_to_read(&machine.data("d").join("unspool.db")).unwrap();
    let mut terminal = TestHarness::new(store, (120, 30), Theme::named("mocha").unwrap()).unwrap();
    terminal.open(id);
    let screen = terminal.text();
    assert!(screen.contains(said), "{screen}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_nobody_writes_any_more_is_not_running() {
    let machine = Machine::new();
    let text: String = log(&machine).iter().map(|line| now(line)).collect();
    machine.write(LOG, text.as_bytes());
    let file = fs::OpenOptions::new().append(true).open(machine.home().join(LOG)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    machine.ok("d", &["sync"]);
    assert_eq!(states(&machine, "d").unwrap(), ("interrupted".into(), "interrupted".into()));
    assert!(lines(text.as_bytes()).len() > 2);
}

/// Another session of the same agent in the same project says nothing about the one that was killed.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_copilot_is_noticed_while_another_runs_in_its_project() {
    const SESSION: &str = "fb8a447d-e0fd-4981-b1e1-38fd57316018";
    let machine = Machine::new();
    machine.write(CONFIG, b"idle_after = 2\n");
    let project = machine.home().canonicalize().unwrap();
    let text = String::from_utf8(recorded("copilot/discovery-loop/log.jsonl")).unwrap();
    let text = text.replace("/home/dev4/weather-app", project.to_str().unwrap());
    let begun =
        text.lines().position(|line| line.contains("toolu_01Mock0005\",\"toolName")).unwrap();
    let text: String = text.lines().take(begun + 1).map(now).collect();
    let mut agent = FakeAgent::start_program(&machine, "copilot");
    let other = FakeAgent::start_program(&machine, "copilot");
    let folder = ".copilot/session-state";
    for (session, process) in [(SESSION, &agent), ("another", &other)] {
        machine.write(&format!("{folder}/{session}/inuse.{}.lock", process.0.id()), b"");
    }
    machine.write(&format!("{folder}/{SESSION}/events.jsonl"), text.as_bytes());
    let _watcher = WatchProcess::begin(machine.command("d", &["sync", "--watch"]));
    until_states(&machine, ("running", "running"));
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(states(&machine, "d").unwrap().0, "running");
    agent.kill();
    until_states(&machine, ("interrupted", "interrupted"));
}
