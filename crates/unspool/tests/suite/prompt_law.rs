//! Law 10 over random differences: a log of Claude Code is written as its program would, for a
//! conversation that grows, is compacted, edited, forked and tried again, and every prompt must be the
//! request that was sent, or say what of it is not known.

use std::collections::{HashMap, HashSet};
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use unspool_model::id::sha256;
use unspool_query::prompts::prompts;
use unspool_store::blocking::block_on;
use unspool_store::store::{SessionFilter, Store, View, Viewer};

use crate::harness::archive_of;
use crate::prompts::{Request, compare};

#[derive(Clone, Debug)]
enum Block {
    Text(String),
    Thinking(String),
    /// A call, and its output.
    Call(String, String),
}

#[derive(Clone, Debug)]
enum Action {
    Prompt(String),
    /// A model call that begins with an earlier request (the n-th last), of which it keeps at most so
    /// many messages more than it must, after attempts without a reply.
    Call {
        reply: Vec<Block>,
        base: usize,
        less: usize,
        attempts: usize,
    },
    /// The conversation gives way to a summary.
    Compact(String),
    /// A message is sent in other words from now on. It may be missing in the log.
    Edit {
        at: usize,
        text: String,
        is_lost: bool,
    },
    /// The user goes back to an earlier state of the conversation.
    Rewind(usize),
    /// The program adds a message of its own.
    Remind(String),
    Instructions(String),
}

/// Never empty: the interface of the model refuses empty texts.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zäß€𝕏 \n\"\\\\]{1,40}",
        Just("<system-reminder>\nrule 7\n</system-reminder>".to_owned()),
        Just("the same words".to_owned()),
        Just(" ".to_owned()),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        text().prop_map(Block::Text),
        text().prop_map(Block::Thinking),
        (text(), text()).prop_map(|(input, output)| Block::Call(input, output)),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let call = (vec(block(), 1..4), 0..4_usize, 0..4_usize, 0..3_usize);
    prop_oneof![
        2 => text().prop_map(Action::Prompt),
        5 => call.prop_map(|(reply, base, less, attempts)| Action::Call { reply, base, less, attempts }),
        1 => text().prop_map(Action::Compact),
        1 => (0..9_usize, text(), any::<bool>())
            .prop_map(|(at, text, is_lost)| Action::Edit { at, text, is_lost }),
        1 => (0..9_usize).prop_map(Action::Rewind),
        1 => text().prop_map(Action::Remind),
        1 => text().prop_map(Action::Instructions),
    ]
}

/// Writes a log, and keeps what was really sent.
struct Program {
    log: Vec<Value>,
    /// What the next request sends.
    conversation: Vec<Value>,
    shape: Value,
    sent: Vec<(String, Vec<String>)>,
    /// The name, the instructions and tools, and the messages of each request.
    bodies: Vec<(String, Value, Vec<Value>)>,
    /// Hashes of messages that the log has in some form.
    written: HashSet<String>,
    /// Hashes of messages that the program fails to write.
    lost: HashSet<String>,
    records: usize,
    /// The last record of the tree.
    parent: Value,
}

fn hash(value: &Value) -> String {
    sha256(value.to_string().as_bytes())
}

fn words(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn user(content: Vec<Value>) -> Value {
    json!({ "role": "user", "content": content })
}

impl Program {
    fn new() -> Program {
        Program {
            log: Vec::new(),
            conversation: Vec::new(),
            shape: json!({ "system": [words("Be kind.")], "tools": [{ "name": "Bash" }] }),
            sent: Vec::new(),
            bodies: Vec::new(),
            written: HashSet::new(),
            lost: HashSet::new(),
            records: 0,
            parent: Value::Null,
        }
    }

    fn next(&mut self) -> usize {
        self.records += 1;
        self.records
    }

    fn flat(&mut self, kind: &str, mut fields: Value) {
        let second = self.next();
        fields["type"] = kind.into();
        fields["sessionId"] = "s".into();
        fields["version"] = "2.1.325".into();
        let (minute, second) = (second / 60, second % 60);
        fields["timestamp"] = format!("2026-11-15T00:{minute:02}:{second:02}.000Z").into();
        self.log.push(fields);
    }

    /// A record of the tree.
    fn tree(&mut self, kind: &str, mut fields: Value) {
        let uuid = Value::from(format!("u{}", self.records));
        fields["uuid"] = uuid.clone();
        fields["parentUuid"] = std::mem::replace(&mut self.parent, uuid);
        self.flat(kind, fields);
    }

    fn say(&mut self, text: &str) {
        let id = format!("p{}", self.records);
        self.tree(
            "user",
            json!({ "promptId": id, "message": { "role": "user", "content": text } }),
        );
        self.send(user(vec![words(text)]), true);
    }

    /// Adds a message to the conversation.
    fn send(&mut self, message: Value, is_written: bool) {
        if is_written {
            self.written.insert(hash(&message));
        }
        self.conversation.push(message);
    }

    fn request(&mut self, base: usize, less: usize) -> String {
        let id = format!("r{}", self.next());
        let shape = hash(&self.shape);
        if self.written.insert(shape.clone()) {
            let fields = json!({ "shapeHash": shape, "shape": self.shape });
            self.flat("api-request-shape", fields);
        }
        for message in self.conversation.clone() {
            let hash = hash(&message);
            if !self.lost.contains(&hash) && self.written.insert(hash.clone()) {
                self.flat("api-request-blob", json!({ "hash": hash, "message": message }));
            }
        }
        let hashes: Vec<String> = self.conversation.iter().map(hash).collect();
        let base = self.sent.iter().rev().nth(base);
        let equal = base.map_or(0, |(_, held)| {
            held.iter().zip(&hashes).take_while(|(one, other)| one == other).count()
        });
        let keep = equal.saturating_sub(less);
        let mut fields = json!({
            "id": id, "shapeHash": shape, "params": { "model": "m" }, "keep": keep,
            "tail": hashes[keep..],
        });
        if let Some((base, _)) = base {
            fields["base"] = base.as_str().into();
        }
        self.flat("api-request", fields);
        let (shape, messages) = (self.shape.clone(), self.conversation.clone());
        self.bodies.push((id.clone(), shape, messages));
        self.sent.push((id.clone(), hashes));
        id
    }

    fn call(&mut self, reply: &[Block], base: usize, less: usize, attempts: usize) {
        if self.conversation.last().is_none_or(|last| last["role"] == "assistant") {
            self.say("Go on.");
        }
        for nth in 0..attempts {
            self.request(if nth == 0 { base } else { 0 }, 0);
            if nth == 1 {
                self.tree(
                    "system",
                    json!({ "subtype": "api_error", "error": { "message": "529" } }),
                );
            }
        }
        let request = self.request(if attempts == 0 { base } else { 0 }, less);
        let message = format!("m{}", self.records);
        let (mut content, mut results) = (Vec::new(), Vec::new());
        for (nth, block) in reply.iter().enumerate() {
            content.push(match block {
                Block::Text(text) => words(text),
                Block::Thinking(text) => {
                    json!({ "type": "thinking", "thinking": text, "signature": "x" })
                }
                Block::Call(input, output) => {
                    let id = format!("{message}-{nth}");
                    results.push(json!({ "type": "tool_result", "tool_use_id": id, "content": output }));
                    json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": input } })
                }
            });
        }
        let stop = if results.is_empty() { "end_turn" } else { "tool_use" };
        for block in &content {
            let reply = json!({
                "id": message, "role": "assistant", "model": "m", "content": [block],
                "stop_reason": stop,
            });
            self.tree("assistant", json!({ "requestRef": request, "message": reply }));
        }
        self.send(json!({ "role": "assistant", "content": content }), true);
        for result in &results {
            let fields = json!({ "message": user(vec![result.clone()]) });
            self.tree("user", fields);
        }
        if !results.is_empty() {
            self.send(user(results), true);
        }
    }

    /// What was sent. A message is known if the log has it in some form, before the request or after.
    fn requests(&self) -> HashMap<String, Request> {
        let request = |(id, shape, messages): &(String, Value, Vec<Value>)| {
            let is_known = |message: &&Value| self.written.contains(&hash(message));
            let known = messages.iter().map(|message| Some(message).filter(is_known));
            let sent: Vec<Value> =
                known.map(|message| message.cloned().unwrap_or_default()).collect();
            let unknown = sent.iter().filter(|message| message.is_null()).count();
            let mut system = vec![Value::Null];
            system.extend(shape["system"].as_array().unwrap().clone());
            let body = json!({ "system": system, "tools": shape["tools"], "messages": sent });
            (id.clone(), Request { body, unknown })
        };
        self.bodies.iter().map(request).collect()
    }

    fn act(&mut self, action: &Action) {
        let count = self.conversation.len();
        match action {
            Action::Prompt(text) => self.say(&format!("{text}?")),
            Action::Call { reply, base, less, attempts } => {
                self.call(reply, *base, *less, *attempts)
            }
            Action::Compact(text) => self.conversation = vec![user(vec![words(text)])],
            Action::Edit { at, text, is_lost } => {
                if let Some(message) = self.conversation.get_mut(at % count.max(1)) {
                    *message = json!({ "role": message["role"], "content": [words(text)] });
                    let hash = hash(message);
                    if *is_lost && !self.written.contains(&hash) {
                        self.lost.insert(hash);
                    }
                }
            }
            Action::Rewind(to) => self.conversation.truncate(to % (count + 1)),
            Action::Remind(text) => {
                self.send(json!({ "role": "system", "content": [words(text)] }), false);
            }
            Action::Instructions(text) => {
                self.shape["system"] = json!([words(text), words("Be kind.")])
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn law_10_any_differences_give_what_was_sent(actions in vec(action(), 1..40)) {
        let mut program = Program::new();
        program.say("Begin.");
        actions.iter().for_each(|action| program.act(action));
        program.call(&[Block::Text("Done.".to_owned())], 0, 0, 0);
        let requests = program.requests();
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.jsonl");
        let lines: Vec<String> = program.log.iter().map(Value::to_string).collect();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let (archive, _kept) = archive_of(&[path]);
        let view = archive.view(Viewer::Sole);
        let stored = block_on(view.sessions(SessionFilter::default())).unwrap().remove(0);
        let prompts = block_on(prompts(&view, &stored)).unwrap();
        let mut found = 0;
        for call in prompts.calls() {
            let request = &call.prompt.call().request;
            compare(&view, &prompts, &call, &requests[&**request]);
            // An attempt is a step, and is not said to be answered.
            let is_answered = program.log.iter().any(|record| record["requestRef"] == **request);
            prop_assert!(call.step.is_some(), "{request}");
            prop_assert_eq!(call.no_reply, !is_answered, "{}", request);
            found += 1;
        }
        prop_assert_eq!(found, requests.len());
    }
}
