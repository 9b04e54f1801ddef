//! A scripted agent that speaks the Agent Client Protocol: for tests of `unspool chat`, with the
//! habits that real agents have. It needs no model and no network.
//!
//! `puppet SCRIPT LOG`: the script is a JSON object. `prompts` maps a prompt to what the puppet does;
//! `*` stands for any other. `initialize`, `new`, `start` (actions before the first request) change
//! how it starts. Every line that the puppet gets is appended to LOG.
//!
//! Actions: `{"say":T}`, `{"think":T}`, `{"update":U}` (a `session/update`), `{"call":{…}}`,
//! `{"permission":P}` and `{"form":F}` (asks and waits), `{"ask":P}` (asks and does not wait),
//! `{"answers":N}` (waits for N answers), `{"sleep":MS}`, `{"raw":LINE}`, `{"long":BYTES}`,
//! `{"flood":N}`, `{"stderr":T}`, `{"start":[PROGRAM,…]}` (a process that outlives it),
//! `{"wait":"cancel"}`, `{"wait":"steering"}` (a message into the turn), `{"exit":CODE}`, `{"kill":true}`, `{"result":R}`, `{"error":E}`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

struct Puppet {
    script: Value,
    lines: Receiver<Value>,
    session: String,
    next: u64,
    asked: u64,
    /// Answers that came, by the id of the question.
    answers: BTreeMap<u64, Value>,
    cancelled: bool,
    /// Messages into the turn that came.
    steered: usize,
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    // `cargo test` runs every test target.
    if arguments.peek().is_none_or(|first| first.starts_with('-')) {
        return;
    }
    let script = std::fs::read_to_string(arguments.next().unwrap_or_default()).unwrap_or_default();
    let script: Value = serde_json::from_str(&script).unwrap_or_else(|_| json!({}));
    let log = arguments.next().unwrap_or_else(|| "/dev/null".to_owned());
    let (sender, lines) = channel();
    thread::spawn(move || {
        let mut log = OpenOptions::new().append(true).create(true).open(log).ok();
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if let Some(log) = &mut log {
                let _ = log.write_all(format!("{line}\n").as_bytes());
            }
            if let Ok(message) = serde_json::from_str(&line)
                && sender.send(message).is_err()
            {
                return;
            }
        }
    });
    let mut puppet = Puppet {
        session: match script["session"].as_str() {
            Some(session) => session.to_owned(),
            None => format!("puppet-{}", std::process::id()),
        },
        script,
        lines,
        next: 0,
        asked: 0,
        answers: BTreeMap::new(),
        cancelled: false,
        steered: 0,
    };
    puppet.run();
}

impl Puppet {
    fn run(&mut self) {
        let start = self.script["start"].clone();
        self.act_all(&start, &Value::Null);
        while let Ok(message) = self.lines.recv() {
            self.take(&message);
        }
        // The end of input: a rude agent stays.
        if self.script["stays"] == true {
            thread::sleep(Duration::from_secs(3600));
        }
    }

    fn take(&mut self, message: &Value) {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => {
                let reply = self.script.get("initialize").cloned().unwrap_or_else(|| {
                    json!({"protocolVersion": 1, "agentInfo": {"name": "puppet", "version": "1"},
                        "agentCapabilities": {"loadSession": true,
                            "sessionCapabilities": {"resume": {}}}})
                });
                if !reply.is_null() {
                    self.reply(id, &reply);
                }
            }
            Some("session/new" | "session/load" | "session/resume") => {
                if let Some(error) = self.script.get("refuse") {
                    return write(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                }
                let mut reply = self.script.get("new").cloned().unwrap_or_else(|| json!({}));
                let named = message["params"]["sessionId"].as_str().map(str::to_owned);
                if named.is_none() && self.script["sessions"] == true {
                    self.session = format!("{}-{}", self.session, self.next);
                    self.next += 1;
                }
                let session = named.unwrap_or_else(|| self.session.clone());
                self.session.clone_from(&session);
                reply["sessionId"] = json!(session);
                self.reply(id, &reply);
            }
            Some("session/prompt") => {
                self.cancelled = false;
                let text = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
                let prompts = &self.script["prompts"];
                let actions = prompts.get(text).or_else(|| prompts.get("*")).cloned();
                self.act_all(&actions.unwrap_or_else(|| json!([])), id);
            }
            Some("session/cancel") => self.cancelled = true,
            Some("_session/steering") => {
                self.steered += 1;
                let outcome = self.script["steering"].as_str().unwrap_or("injected");
                self.reply(id, &json!({"outcome": outcome}));
            }
            Some("authenticate") if self.script.get("refuse").is_some() => {
                // From now on it opens sessions.
                if let Some(script) = self.script.as_object_mut() {
                    script.remove("refuse");
                }
                self.reply(id, &json!({}));
            }
            Some(_) => self.reply(id, &json!({})),
            None => {
                if let Some(id) = id.as_u64() {
                    self.answers.insert(id, message.clone());
                }
            }
        }
    }

    fn act_all(&mut self, actions: &Value, prompt: &Value) {
        let mut replied = false;
        for action in actions.as_array().into_iter().flatten() {
            let Some((name, value)) = action.as_object().and_then(|action| action.iter().next())
            else {
                continue;
            };
            match name.as_str() {
                "result" | "error" => {
                    replied = true;
                    write(&json!({"jsonrpc": "2.0", "id": prompt, name.as_str(): value}));
                }
                _ => self.act(name, value),
            }
            if self.cancelled && !replied && self.script["deaf"] != true {
                self.reply(prompt, &json!({"stopReason": "cancelled"}));
                return;
            }
        }
        if !replied && !prompt.is_null() {
            self.reply(prompt, &json!({"stopReason": "end_turn"}));
        }
    }

    fn act(&mut self, name: &str, value: &Value) {
        let chunk =
            |kind: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": value}});
        match name {
            "say" => self.update(&chunk("agent_message_chunk")),
            "think" => self.update(&chunk("agent_thought_chunk")),
            "update" => self.update(value),
            "call" => {
                let mut call = value.clone();
                call["sessionUpdate"] = json!("tool_call");
                self.update(&call);
            }
            "permission" | "form" => {
                let id = self.ask(name, value);
                self.wait_for(|puppet| puppet.answers.contains_key(&id));
            }
            "ask" => drop(self.ask("permission", value)),
            "answers" => {
                let count = value.as_u64().unwrap_or_default() as usize;
                self.wait_for(|puppet| puppet.answers.len() >= count);
            }
            "wait" if value == "steering" => self.wait_for(|puppet| puppet.steered > 0),
            "wait" => self.wait_for(|puppet| puppet.cancelled),
            "sleep" => thread::sleep(Duration::from_millis(value.as_u64().unwrap_or_default())),
            "raw" => write_line(value.as_str().unwrap_or_default()),
            "long" => {
                write_line(&"x".repeat(value.as_u64().unwrap_or_default() as usize));
            }
            "flood" => {
                for nth in 0..value.as_u64().unwrap_or_default() {
                    let text = format!("{nth} ");
                    self.update(&json!({"sessionUpdate": "agent_message_chunk",
                        "content": {"type": "text", "text": text}}));
                }
            }
            "stderr" => {
                let _ = writeln!(io::stderr(), "{}", value.as_str().unwrap_or_default());
            }
            "start" => {
                let words: Vec<&str> =
                    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let mut command = Command::new(words[0]);
                command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
                let _ = command.stderr(Stdio::null()).spawn();
            }
            "exit" => std::process::exit(value.as_i64().unwrap_or_default() as i32),
            "kill" => {
                let id = std::process::id().to_string();
                let _ = Command::new("kill").args(["-9", &id]).status();
                thread::sleep(Duration::from_secs(10));
            }
            _ => {}
        }
    }

    fn ask(&mut self, kind: &str, params: &Value) -> u64 {
        let id = self.asked;
        self.asked += 1;
        let mut params = params.clone();
        if params.get("sessionId").is_none() {
            params["sessionId"] = json!(self.session);
        }
        let method =
            if kind == "form" { "elicitation/create" } else { "session/request_permission" };
        write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Reads on until something has come. A cancellation ends every wait, unless the puppet is deaf.
    fn wait_for(&mut self, done: impl Fn(&Puppet) -> bool) {
        let deaf = self.script["deaf"] == true;
        while !done(self) && (deaf || !self.cancelled) {
            match self.lines.recv() {
                Ok(message) => self.take(&message),
                Err(_) => return,
            }
        }
    }

    fn update(&self, update: &Value) {
        let params = json!({"sessionId": self.session, "update": update});
        write(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn reply(&self, id: &Value, result: &Value) {
        write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
}

fn write(message: &Value) {
    write_line(&message.to_string());
}

fn write_line(line: &str) {
    let mut out = io::stdout().lock();
    if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}
