//! `unspool hook --answer`: questions of an agent in its own terminal, answered through the socket, in
//! the terminal application, or in the agent's own dialog.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command as Process};
use std::thread;
use std::time::Duration;

use portable_pty::CommandBuilder;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use unspool_live::client::{Attached, attach, list};
use unspool_live::follow::follow_session;
use unspool_live::host::folder::ChatFolders;
use unspool_live::protocol::{
    ChatState, ClientMessage, Command, FieldValue, HostMessage, OpenQuestion, Outcome, Phase,
    UserAnswer,
};

use crate::chat::signal;
use crate::harness::{Machine, until};
use crate::terminal::Terminal;

const SESSION: &str = "22dd88e4-454a-41e5-ae9a-096c1bf92030";
/// Longer than an answer is refused because the question has just come.
const READING: Duration = Duration::from_millis(200);

struct Stage {
    machine: Machine,
    runtime: Runtime,
}

/// A hook that waits, below a process that stands for the agent.
struct WaitingHook {
    agent: Child,
}

fn payload(event: &str, more: Value) -> Value {
    let mut payload = json!({"session_id": SESSION, "cwd": "/home/dev/weather-app",
        "prompt_id": "p-1", "permission_mode": "default", "hook_event_name": event});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    payload
}

fn bash(event: &str, call: Option<&str>, command: &str) -> Value {
    let mut more = json!({"tool_name": "Bash", "tool_input": {"command": command}});
    if let Some(call) = call {
        more["tool_use_id"] = call.into();
    }
    payload(event, more)
}

impl Stage {
    fn new() -> Stage {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Stage { machine: Machine::new(), runtime: runtime.unwrap() }
    }

    /// Reports an event through the plain hook.
    fn report(&self, mut payload: Value) {
        payload["transcript_path"] = self.log().into();
        let arguments = ["hook", "--agent", "claude-code"];
        let output = self.machine.run("data", &arguments, &payload.to_string());
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    }

    fn log(&self) -> String {
        let path = format!(".claude/projects/-home-dev-weather-app/{SESSION}.jsonl");
        self.machine.home().join(path).to_str().unwrap().to_owned()
    }

    /// Asks, in a process of the agent's that is no shell.
    fn ask(&self, mut payload: Value, environment: &[(&str, &str)]) -> WaitingHook {
        payload["transcript_path"] = self.log().into();
        let mut agent = Process::new("timeout");
        self.machine.set_environment(&mut agent);
        agent.args(["--foreground", "60", env!("CARGO_BIN_EXE_unspool"), "--data"]);
        agent.arg(self.machine.data("data"));
        agent.args(["hook", "--agent", "claude-code", "--answer"]);
        agent.envs(environment.iter().copied());
        let mut agent = agent.spawn().unwrap();
        agent.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        WaitingHook { agent }
    }

    /// Asks whether a command may run.
    fn ask_for(&self, call: &str, command: &str) -> WaitingHook {
        let waiting = self.chats();
        self.report(bash("PreToolUse", Some(call), command));
        let hook = self.ask(bash("PermissionRequest", None, command), &[]);
        self.waits(waiting + 1);
        hook
    }

    fn folders(&self) -> ChatFolders {
        let data = self.machine.data("data");
        let (chats, captures) = (data.join("chats"), data.join("streams"));
        ChatFolders { chats, captures, processes: data.join("processes") }
    }

    fn chats(&self) -> usize {
        list(&self.folders()).len()
    }

    #[track_caller]
    fn waits(&self, count: usize) {
        until("the waiting hooks", || match list(&self.folders()) {
            chats if chats.len() == count => Ok(()),
            chats => Err(chats),
        });
    }

    /// Connects to the only hook.
    fn attach(&self) -> Client<'_> {
        let folder = self.folders().all().pop().unwrap();
        Client::new(self, self.runtime.block_on(attach(&folder)).unwrap())
    }

    fn follow(&self) -> Client<'_> {
        let (agent, session) = ("claude-code".to_owned(), SESSION.to_owned());
        let attached = self.runtime.block_on(follow_session(self.folders(), agent, session));
        Client::new(self, attached)
    }

    fn turns(&self) -> Value {
        self.machine.ok("data", &["sync"]);
        self.machine.json("data", &["show", SESSION])["turns"].clone()
    }
}

/// A client of a hook, or of a session.
struct Client<'a> {
    stage: &'a Stage,
    attached: Attached,
    fields: serde_json::Map<String, Value>,
}

impl Client<'_> {
    fn new(stage: &Stage, attached: Attached) -> Client<'_> {
        let fields = attached.state.fields();
        Client { stage, attached, fields }
    }

    fn state(&self) -> ChatState {
        ChatState::of_fields(self.fields.clone()).unwrap()
    }

    /// Takes the next message. None if the connection is closed.
    fn next(&mut self) -> Option<Option<Outcome>> {
        let messages = &mut self.attached.messages;
        let wait = async { tokio::time::timeout(Duration::from_secs(20), messages.recv()).await };
        let message = self.stage.runtime.block_on(wait).unwrap()?;
        match message {
            HostMessage::Hello { state, .. } => self.fields = state,
            HostMessage::Changed(changed) => self.fields.extend(changed),
            HostMessage::Done { outcome, .. } => return Some(Some(outcome)),
        }
        Some(None)
    }

    fn until(&mut self, is: impl Fn(&ChatState) -> bool) -> ChatState {
        while !is(&self.state()) {
            assert!(self.next().is_some(), "closed: {:?}", self.state());
        }
        self.state()
    }

    fn send(&mut self, command: Command) -> Outcome {
        let message = ClientMessage { number: 7, by: "browser".to_owned(), command };
        let sent = self.attached.commands.blocking_send(message);
        sent.unwrap();
        loop {
            if let Some(outcome) = self.next().unwrap() {
                return outcome;
            }
        }
    }

    fn question(&self) -> OpenQuestion {
        self.state().questions[0].clone()
    }

    fn answer(&mut self, answer: UserAnswer) -> Outcome {
        let question = self.question().id;
        self.send(Command::Answer { question, answer })
    }
}

impl WaitingHook {
    /// Waits for the end of the hook, and returns what it printed.
    #[track_caller]
    fn output(mut self) -> Option<Value> {
        let mut text = String::new();
        self.agent.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let mut errors = String::new();
        self.agent.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(self.agent.wait().unwrap().success(), "{errors}");
        assert_eq!(errors, "");
        if text.is_empty() { None } else { Some(serde_json::from_str(&text).unwrap()) }
    }

    fn process(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.agent.id());
        fs::read_to_string(children).unwrap().trim().parse().unwrap()
    }
}

impl Drop for WaitingHook {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn decision(output: Option<Value>) -> Value {
    let output = output.unwrap();
    assert_eq!(output["hookSpecificOutput"]["hookEventName"], "PermissionRequest");
    output["hookSpecificOutput"]["decision"].clone()
}

fn option(id: &str) -> UserAnswer {
    UserAnswer::Option(id.to_owned())
}

#[track_caller]
fn is_gone(process: u32) {
    until("the end of the hook", || {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") { Ok(()) } else { Err(stat) }
    });
}

#[test]
fn a_permission_is_allowed_through_the_socket() {
    let stage = Stage::new();
    stage.report(payload("UserPromptSubmit", json!({"prompt": "Clean up."})));
    let hook = stage.ask_for("t1", "rm -rf build");
    let mut client = stage.attach();
    let state = client.state();
    assert_eq!((state.answers_only, state.phase), (true, Phase::Running));
    let question = client.question();
    assert_eq!(question.call.as_deref(), Some("t1"));
    assert_eq!(question.text, "Allow `rm -rf build`?");
    // Nothing but answers is possible.
    let refused = client.send(Command::prompt("go".to_owned()));
    assert!(matches!(refused, Outcome::Refused(why) if why.contains("its own terminal")));
    assert!(matches!(client.send(Command::End), Outcome::Refused(_)));
    let listed = stage.machine.json("data", &["chat", "--list"]);
    let chat = listed[0]["id"].as_str().unwrap().to_owned();
    let output = stage.machine.run("data", &["chat", "--end", &chat], "");
    assert!(!output.status.success(), "{output:?}");
    assert!(matches!(client.answer(option("always")), Outcome::Refused(_)));
    thread::sleep(READING);
    assert_eq!(client.answer(option("allow")), Outcome::Accepted);
    assert_eq!(decision(hook.output()), json!({"behavior": "allow"}));
    assert_eq!(stage.chats(), 0);
    assert_eq!(fs::read_dir(stage.machine.data("data").join("chats")).unwrap().count(), 0);
    stage.report(bash("PostToolUse", Some("t1"), "rm -rf build"));
    let turns = stage.turns();
    let answer = &turns[0]["parts"][0]["answer"];
    assert_eq!(answer["decision"], "allowed", "{turns}");
    assert_eq!(
        (&answer["text"], &answer["by"]),
        (&json!("allowed once"), &json!("browser")),
        "{turns}"
    );
    assert_eq!(answer["observed"], true);
}

#[test]
fn a_refusal_takes_a_message_along() {
    let stage = Stage::new();
    let hook = stage.ask_for("t1", "rm -rf build");
    let mut client = stage.attach();
    let question = Some(client.question().id);
    let text = "Use the trash.".to_owned();
    assert_eq!(client.send(Command::Draft { question, text }), Outcome::Accepted);
    thread::sleep(READING);
    assert_eq!(client.answer(option("deny")), Outcome::Accepted);
    let denied = json!({"behavior": "deny", "message": "Use the trash."});
    assert_eq!(decision(hook.output()), denied);
}

#[test]
fn an_answer_that_comes_at_once_is_refused() {
    let stage = Stage::new();
    let hook = stage.ask(bash("PermissionRequest", None, "ls"), &[]);
    let folders = stage.folders();
    // Faster than anybody reads.
    let mut client = loop {
        let found = folders.all().into_iter().find(|folder| folder.read().is_some());
        if let Some(folder) = found {
            break Client::new(&stage, stage.runtime.block_on(attach(&folder)).unwrap());
        }
    };
    let outcome = client.answer(option("allow"));
    assert!(matches!(&outcome, Outcome::Refused(why) if why.contains("just come")), "{outcome:?}");
    thread::sleep(READING);
    assert_eq!(client.answer(option("deny")), Outcome::Accepted);
    assert_eq!(decision(hook.output())["behavior"], "deny");
}

// R-003-49
#[test]
fn questions_to_a_person_are_answered() {
    let stage = Stage::new();
    let questions = json!({"questions": [
        {"question": "Unit?", "header": "Unit", "multiSelect": false,
            "options": [{"label": "Celsius", "description": "Metric"}, {"label": "Fahrenheit"}]},
        {"question": "Outputs?", "header": "Outputs", "multiSelect": true,
            "options": [{"label": "JSON"}, {"label": "Table"}]},
        {"question": "Name?", "header": "Name", "multiSelect": false,
            "options": [{"label": "a"}, {"label": "b"}]}]});
    let ask = |event: &str, call: &[(&str, &str)]| {
        let mut more = json!({"tool_name": "AskUserQuestion", "tool_input": questions});
        call.iter().for_each(|(name, value)| more[*name] = (*value).into());
        payload(event, more)
    };
    stage.report(ask("PreToolUse", &[("tool_use_id", "t1")]));
    let hook = stage.ask(ask("PermissionRequest", &[]), &[]);
    stage.waits(1);
    let mut client = stage.follow();
    thread::sleep(READING);
    let value = |chosen: &[&str], own: Option<&str>| FieldValue {
        chosen: chosen.iter().map(|one| (*one).to_owned()).collect(),
        own_words: own.map(str::to_owned),
    };
    let values = BTreeMap::from([
        ("0".to_owned(), value(&["Fahrenheit"], None)),
        ("1".to_owned(), value(&["JSON", "Table"], None)),
        ("2".to_owned(), value(&[], Some("weather"))),
    ]);
    assert_eq!(client.answer(UserAnswer::Form(values)), Outcome::Accepted);
    let decision = decision(hook.output());
    assert_eq!(decision["behavior"], "allow");
    assert_eq!(decision["updatedInput"]["questions"], questions["questions"]);
    let answers = json!({"Unit?": "Fahrenheit", "Outputs?": "JSON, Table", "Name?": "weather"});
    assert_eq!(decision["updatedInput"]["answers"], answers);
}

#[test]
fn an_answer_in_the_agents_terminal_ends_the_hook() {
    let stage = Stage::new();
    // The hook of the call that ran.
    let hook = stage.ask_for("t1", "ls");
    let mut client = stage.attach();
    stage.report(bash("PostToolUse", Some("t2"), "ls"));
    stage.report(bash("PostToolUse", Some("t1"), "ls"));
    let state = client.until(|state| state.phase == Phase::Ended);
    assert_eq!(state.reason.as_deref(), Some("answered in the agent's terminal"));
    assert_eq!(hook.output(), None);
    // The log, which has what was refused.
    let hook = stage.ask_for("t3", "rm -rf build");
    let mut client = stage.follow();
    let question = client.question().id;
    let refused = json!({"type": "user", "sessionId": SESSION, "toolUseResult": "User rejected tool use",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3",
            "is_error": true, "content": "The user doesn't want to proceed with this tool use."}]}});
    let path = stage.log();
    let path = path.strip_prefix(stage.machine.home().to_str().unwrap()).unwrap();
    stage.machine.append(path.trim_start_matches('/'), format!("{refused}\n").as_bytes());
    let state = client.until(|state| state.questions.is_empty());
    assert_eq!(state.answers[0].sentence("terminal"), "answered in the agent's terminal: refused");
    assert_eq!(hook.output(), None);
    // Who answers now is told.
    let answer = option("allow");
    let late = client.send(Command::Answer { question, answer });
    let (by, answer) = ("agent's terminal".to_owned(), "refused".to_owned());
    assert_eq!(late, Outcome::Already { by, answer });
}

#[test]
fn a_hook_never_outlives_its_agent() {
    let stage = Stage::new();
    let mut hook = stage.ask_for("t1", "ls");
    let process = hook.process();
    hook.agent.kill().unwrap();
    is_gone(process);
    assert_eq!(stage.chats(), 0);
    // The agent ends its hooks when it ends.
    let hook = stage.ask_for("t2", "ls");
    signal(hook.process(), "-TERM");
    assert_eq!(hook.output(), None);
    assert_eq!(stage.chats(), 0);
    // A hook that was killed leaves no question.
    let hook = stage.ask_for("t3", "ls");
    let process = hook.process();
    signal(process, "-KILL");
    is_gone(process);
    stage.machine.ok("data", &["chat", "--list"]);
    assert_eq!(fs::read_dir(stage.machine.data("data").join("chats")).unwrap().count(), 0);
}

#[test]
fn all_questions_of_a_session_are_one_list() {
    let stage = Stage::new();
    let mut client = stage.follow();
    let state = client.state();
    assert_eq!((state.answers_only, state.phase), (true, Phase::Idle));
    // Two equal calls at once.
    let first = stage.ask_for("t1", "ls");
    stage.report(bash("PreToolUse", Some("t2"), "ls"));
    let second = stage.ask(bash("PermissionRequest", None, "ls"), &[]);
    let state = client.until(|state| state.questions.len() == 2);
    assert_eq!(state.phase, Phase::Running);
    let calls: Vec<_> = state.questions.iter().map(|open| open.call.clone().unwrap()).collect();
    assert_eq!(calls, ["t1", "t2"]);
    assert!(matches!(client.send(Command::Cancel), Outcome::Refused(_)));
    thread::sleep(READING);
    let mut other = stage.follow();
    let question = |call: &str| {
        let found = state.questions.iter().find(|open| open.call.as_deref() == Some(call));
        found.unwrap().id.clone()
    };
    let answer = |question: String, id: &str| Command::Answer { question, answer: option(id) };
    assert_eq!(client.send(answer(question("t2"), "deny")), Outcome::Accepted);
    assert_eq!(decision(second.output())["behavior"], "deny");
    assert_eq!(
        client.until(|state| state.questions.len() == 1).questions[0].call,
        state.questions[0].call
    );
    // The other surface comes too late for this one, and knows who was first.
    other.until(|state| state.questions.len() == 1);
    let (by, text) = ("browser".to_owned(), "refuse (No)".to_owned());
    let late = other.send(answer(question("t2"), "allow"));
    assert_eq!(late, Outcome::Already { by, answer: text });
    assert_eq!(other.send(answer(question("t1"), "allow")), Outcome::Accepted);
    assert_eq!(decision(first.output())["behavior"], "allow");
    let state = client.until(|state| state.questions.is_empty());
    assert_eq!(state.answers.len(), 2);
}

#[test]
fn an_agent_without_a_dialog_is_not_kept_waiting() {
    let stage = Stage::new();
    let asked = || bash("PermissionRequest", None, "ls");
    assert_eq!(stage.ask(asked(), &[("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")]).output(), None);
    assert_eq!(stage.ask(asked(), &[("UNSPOOL_CHAT", "00000000")]).output(), None);
    assert_eq!(stage.ask(bash("PreToolUse", None, "ls"), &[]).output(), None);
    assert_eq!(stage.ask(json!({"odd": true}), &[]).output(), None);
}

fn application(stage: &Stage) -> Terminal {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_unspool"));
    command.arg("--data");
    command.arg(stage.machine.data("data"));
    Terminal::with(&stage.machine, (100, 36), command, &[])
}

#[test]
fn a_question_is_answered_in_the_terminal_application() {
    let stage = Stage::new();
    stage.report(payload("UserPromptSubmit", json!({"prompt": "Clean up."})));
    let hook = stage.ask_for("t1", "rm -rf build");
    let mut terminal = application(&stage);
    terminal.shows("Waiting for you");
    terminal.press("\r");
    let screen = terminal.until("the question below its call", |text| {
        let (_, below) = text.split_once("rm -rf build").unwrap_or_default();
        below.contains("╭─ ? permission") && below.contains("tab answers")
    });
    assert!(screen.contains("the agent runs in its own terminal"), "{screen}");
    assert!(!screen.contains("message"), "no composer: {screen}");
    thread::sleep(Duration::from_millis(400));
    terminal.press("\t");
    terminal.shows("ctrl-c declines");
    terminal.press("1");
    terminal.shows("▸ 1 allow once");
    terminal.press("\r");
    assert_eq!(decision(hook.output()), json!({"behavior": "allow"}));
    terminal.hides("? permission");
    stage.report(bash("PostToolUse", Some("t1"), "rm -rf build"));
    // The next one comes while the session is open, and is answered elsewhere.
    let hook = stage.ask_for("t2", "ls -l");
    terminal.shows("? permission");
    stage.report(bash("PostToolUse", Some("t2"), "ls -l"));
    terminal.shows("answered in the agent's terminal: allowed");
    terminal.hides("? permission");
    assert_eq!(hook.output(), None);
    // A refusal with words.
    let hook = stage.ask_for("t3", "make");
    terminal.shows("? permission");
    thread::sleep(Duration::from_millis(400));
    terminal.press("\t");
    terminal.shows("ctrl-c declines");
    terminal.press("3");
    terminal.shows("▸ 3 no, and say:");
    terminal.press("Use ninja.\r");
    let denied = json!({"behavior": "deny", "message": "Use ninja."});
    assert_eq!(decision(hook.output()), denied);
    terminal.hides("? permission");
    terminal.press("qq");
    terminal.ends();
}

#[test]
fn answering_is_installed_in_the_settings() {
    let machine = Machine::new();
    let path = machine.home().join(".claude/settings.json");
    let install = ["hooks", "install", "--agent", "claude-code", "--answer"];
    let shown = machine.ok("data", &install);
    assert!(shown.contains("hook --agent claude-code --answer"), "{shown}");
    assert!(!path.exists());
    machine.ok("data", &[&install[..], &["--yes"]].concat());
    let status = || machine.ok("data", &["hooks", "status", "--agent", "claude-code"]);
    assert!(status().contains("questions can be answered from here"), "{}", status());
    machine.ok("data", &["hooks", "install", "--agent", "claude-code", "--yes"]);
    assert!(!fs::read_to_string(&path).unwrap().contains("--answer"));
    assert!(!status().contains("answered"), "{}", status());
    machine.ok("data", &[&install[..], &["--yes"]].concat());
    machine.ok("data", &["hooks", "remove", "--agent", "claude-code", "--yes"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
    let arguments = ["hooks", "install", "--agent", "codex", "--answer"];
    let refused = machine.run("data", &arguments, "");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("its dialog would wait"), "{why}");
}
