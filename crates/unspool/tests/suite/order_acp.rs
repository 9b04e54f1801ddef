//! Captures of the Agent Client Protocol against a reader of the raw wire that shares no code with
//! the product, alone and beside the agent's own log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use unspool_model::part::{Body, Kind};
use unspool_model::session::Transcript;

use crate::case::{all_cases, captures, fold_in, main_session, name};
use crate::harness::Machine;

type Block = (Kind, String);

fn acp_cases() -> Vec<PathBuf> {
    let cases: Vec<PathBuf> =
        all_cases().into_iter().filter(|case| name(case).starts_with("acp-")).collect();
    assert!(cases.len() >= 25, "{} cases", cases.len());
    cases
}

/// `agent/case`.
fn label(case: &Path) -> String {
    format!("{}/{}", name(case.parent().unwrap()), name(case))
}

/// Prose without its white space, and calls by their ids.
fn blocks(transcript: &Transcript) -> Vec<Block> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    let block = |body: &Body| match body {
        Body::Text(text) => Some((Kind::Text, squeezed(&text.text))),
        Body::Reasoning(reasoning) => Some((Kind::Reasoning, squeezed(&reasoning.text))),
        // The database of OpenCode names calls by message and id.
        Body::Tool(tool) => {
            Some((Kind::Tool, tool.call_id.rsplit('/').next().unwrap_or_default().to_owned()))
        }
        _ => None,
    };
    parts.filter_map(|part| block(&part.body)).collect()
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

/// What the wire says, message by message.
#[derive(Default)]
struct Wire {
    blocks: Vec<Block>,
    /// The message that the last block of prose is of; nothing else came since.
    open: Option<(Kind, Option<String>)>,
    calls: BTreeMap<String, &'static str>,
    repeats: bool,
    prompted: bool,
}

impl Wire {
    fn read(agent: &str, file: &Path) -> Vec<Block> {
        let mut wire = Wire::default();
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            wire.message(agent, &record["msg"]);
        }
        wire.blocks.retain(|(_, words)| !words.is_empty());
        wire.blocks
    }

    fn message(&mut self, agent: &str, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str() {
            Some("session/load") => self.repeats = true,
            Some("session/prompt") => {
                self.repeats &= agent == "gemini";
                self.prompted = true;
                self.open = None;
            }
            Some("session/request_permission") => self.call(&params["toolCall"], true),
            Some("session/update") => self.update(agent, &params["update"]),
            _ => {}
        }
        // Droid says the error of a prompt as the model's words first.
        if let Some(error) = message["error"]["data"].as_str().filter(|_| agent == "droid") {
            let words = squeezed(&format!("Error: {error}"));
            self.blocks.pop_if(|(_, said)| *said == words);
        }
    }

    fn update(&mut self, agent: &str, update: &Value) {
        let kind = match update["sessionUpdate"].as_str().unwrap() {
            "agent_message_chunk" => Kind::Text,
            "agent_thought_chunk" => Kind::Reasoning,
            "tool_call" | "tool_call_update" if !self.repeats => return self.call(update, false),
            "available_commands_update" if self.prompted => {
                self.repeats = false;
                return;
            }
            _ => return,
        };
        // Copilot does not say which prose is a sub-agent's.
        let agents = self.calls.values().any(|state| *state == "agent");
        if self.repeats || (agent == "copilot" && agents) {
            return;
        }
        let words = squeezed(update["content"]["text"].as_str().unwrap());
        let message = update["messageId"].as_str().map(str::to_owned);
        let open = Some((kind, message));
        if self.open == open {
            self.blocks.last_mut().unwrap().1 += &words;
        } else {
            self.blocks.push((kind, words));
            self.open = open;
        }
    }

    /// `asked`: a person is asked about the call, which is then shown whoever made it.
    fn call(&mut self, call: &Value, asked: bool) {
        let meta = &call["_meta"];
        let id = call["toolCallId"].as_str().unwrap().to_owned();
        let of_agent = meta["claudeCode"]["parentToolUseId"].is_string()
            || meta["github.com/copilot"]["agentId"].is_string();
        if meta["claudeCode"]["toolName"] == "compact" {
            return;
        }
        let state = self.calls.get(&id).copied();
        let shown = match state {
            None => asked || !of_agent,
            Some("foreign") => asked,
            Some(_) => false,
        };
        if shown {
            self.blocks.push((Kind::Tool, id.clone()));
            self.open = None;
        }
        let ended = matches!(call["status"].as_str(), Some("completed" | "failed"));
        let next = match (state, shown) {
            (None, false) | (Some("foreign"), false) => "foreign",
            (Some("over"), _) => "over",
            _ if ended => {
                self.open = None;
                "over"
            }
            (Some("agent"), _) => "agent",
            _ if call["rawInput"]["agent_type"].is_string() => "agent",
            _ => "open",
        };
        self.calls.insert(id, next);
    }
}

#[test]
fn law_1_order_is_kept_by_captures_of_acp_alone() {
    for case in acp_cases() {
        let agent = name(case.parent().unwrap());
        let captures = captures(&case);
        let stream = captures.iter().position(|file| file.file == "stream.jsonl").unwrap();
        let session_set = fold_in(&captures, &[stream]);
        let mut found = blocks(&main_session(&session_set).transcript());
        found.retain(|(_, words)| !words.is_empty());
        let mut expected = Wire::read(&agent, &case.join("stream.jsonl"));
        if agent == "opencode" || agent == "kilo" {
            // Without its log a call has no id there.
            expected.retain(|(kind, _)| *kind != Kind::Tool);
        }
        assert_eq!(found, expected, "{}", label(&case));
    }
}

/// What only the capture has, by its first words: notes of the program, aborted text, attempts that
/// were repeated, calls that the log lacks. The calls of sub-agents are here because a person was
/// asked about them.
const ONLY_IN_CAPTURE: &[(&str, &[&str])] = &[
    ("claude-code/acp-plan-approved", &["**Warning:**We'rechangingautomode"]),
    ("claude-code/acp-subagents", &["toolu_01Mock0090"]),
    ("copilot/acp-discovery-loop", &["Info:/home/dev4/weather-app/NOTES.md"]),
    ("copilot/acp-error", &["Error:", "AlonganswerthathitsthelimitAlonganswerthathitsthelimit"]),
    ("copilot/acp-interrupted", &["Longthought.", "Thisisthestartofalonganswerthat"]),
    ("copilot/acp-subagents", &["toolu_01Mock0059"]),
    ("droid/acp-stopped-while-it-writes", &["Thisisthebeginningof"]),
    ("gemini/acp-permission-cancelled", &["run_shell_command__run_shell_command_1794703085292_0"]),
];

#[test]
fn chat_law_2_nothing_is_said_twice_and_nothing_dropped() {
    // R-003-11: in the order of the log, what only the capture has between.
    let expected: BTreeMap<&str, &[&str]> = ONLY_IN_CAPTURE.iter().copied().collect();
    let mut differences = BTreeSet::new();
    for case in acp_cases() {
        let captures = captures(&case);
        let log = fold_in(&captures, &[0]);
        let log = blocks(&main_session(&log).transcript());
        let both = fold_in(&captures, &(0..captures.len()).collect::<Vec<_>>());
        let both = blocks(&main_session(&both).transcript());
        let mut rest = log.iter().peekable();
        let extra: Vec<&str> = both
            .iter()
            .filter(|block| rest.next_if(|next| next == block).is_none())
            .map(|(_, words)| words.as_str())
            .collect();
        let label = label(&case);
        assert_eq!(rest.next(), None, "{label}: missing or in another place\n{both:#?}");
        let known = expected.get(&*label).copied().unwrap_or_default();
        let alike = extra.iter().zip(known).all(|(found, known)| found.starts_with(known));
        if extra.len() != known.len() || !alike {
            differences.insert(format!("{label}: {extra:?}"));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn a_capture_with_a_head_names_its_agent_and_counts_prompts_from_there() {
    // A resumed session: the same words stood there once before this connection.
    let hash = unspool_model::id::digest(b"prompt\ngo");
    let head = r#"{"acp":1,"agent":"gemini","cwd":"/p","connection":3,"prompts":{"HASH":1}}"#;
    let lines = [
        &head.replace("HASH", &hash.to_string()),
        r#"{"t":1794702908539,"s":"s1","dir":"c2a","msg":{"id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"go"}]}}}"#,
        r#"{"t":1794702908540,"s":"s1","dir":"us","msg":{"what":"exit","code":1,"stderr":"no key"}}"#,
    ];
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stream.jsonl"), lines.join("\n") + "\n").unwrap();
    let session_set = fold_in(&captures(folder.path()), &[0]);
    let session = main_session(&session_set);
    assert_eq!((session.agent, &*session.agent_session_id), ("gemini", "s1"));
    let turn = &session.transcript().turns[0];
    assert_eq!(turn.origin.names, [unspool_model::provenance::Name::ByContent(hash, 1)]);
    assert_eq!(turn.state.name(), "failed");
    let shown = format!("{:?}", turn.parts);
    assert!(shown.contains("ended with code 1 during the turn.\\nno key"), "{shown}");
}

/// R-003-38: what a process that outlived its connection still writes changes nothing, and what comes
/// behind the reply to a prompt in the same connection counts.
#[test]
fn lines_behind_the_end_of_a_connection_change_nothing() {
    const HEAD: &str = r#"{"acp":1,"agent":"gemini","cwd":"/p","connection":3,"prompts":{}}"#;
    const PROMPT: &str = r#"{"t":1794702908539,"s":"s1","dir":"c2a","msg":{"id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"go"}]}}}"#;
    const REPLY: &str = r#"{"t":1794702908550,"s":"s1","dir":"a2c","msg":{"id":2,"result":{"stopReason":"end_turn"}}}"#;
    const LOST: &str = r#"{"t":1794702908560,"s":"s1","dir":"us","msg":{"what":"lost"}}"#;
    let update = |update: &str| {
        r#"{"t":1794702908545,"s":"s1","dir":"a2c","msg":{"method":"session/update","params":{"sessionId":"s1","update":UPDATE}}}"#
            .replace("UPDATE", update)
    };
    let text = |text: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    };
    let call = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"c9","title":"ls","kind":"execute","status":"pending"}"#,
    );
    let folded = |lines: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("stream.jsonl"), lines.join("\n") + "\n").unwrap();
        let session_set = fold_in(&captures(folder.path()), &[0]);
        let transcript = main_session(&session_set).transcript();
        format!("{:?}", blocks(&transcript))
    };
    let (one, two, behind) = (text("One."), text(" Two."), text(" Late."));
    let current = [HEAD, PROMPT, &one, REPLY, &two];
    let shown = folded(&current);
    assert!(shown.contains("One.") && shown.contains("Two."), "{shown}");
    let over = [&current[..], &[LOST]].concat();
    assert_eq!(folded(&over), shown);
    let late = [&over[..], &[&behind, &call, REPLY]].concat();
    assert_eq!(folded(&late), shown);
}

/// A program that only the protocol tells about has the name that it gives itself. What an earlier
/// version recorded, with one name for all of them, stays where it is.
#[test]
fn programs_without_a_log_have_their_own_names() {
    let machine = Machine::new();
    let lines = |name: &str, session: &str, head: &str| {
        let info = json!({"name": name, "version": "1"});
        let messages = [
            json!({"t": 1, "dir": "a2c", "msg": {"id": 0, "result":
                {"protocolVersion": 1, "agentInfo": info}}}),
            json!({"t": 2, "dir": "c2a", "msg": {"id": 1, "method": "session/prompt", "params":
                {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}}}),
        ];
        let lines: Vec<String> = messages.iter().map(|message| format!("{message}\n")).collect();
        format!("{head}{}", lines.concat())
    };
    let head = |agent: &str| {
        let head = json!({"acp": 1, "agent": agent, "cwd": "/p", "connection": 3, "prompts": {}});
        format!("{head}\n")
    };
    for (file, text) in [
        ("foreign", lines("My Agent", "s-1", "")),
        ("ours", lines("other", "s-2", &head("acp:house"))),
        ("old", lines("house", "s-3", &head("acp"))),
        ("known", lines("gemini-cli", "s-4", "")),
    ] {
        machine.write(file, text.as_bytes());
        machine.ok("d", &["import", machine.home().join(file).to_str().unwrap()]);
    }
    let listed = machine.json("d", &["list"]);
    let mut agents: Vec<(&str, &str)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["agent_session_id"].as_str().unwrap(), row["agent"].as_str().unwrap()))
        .collect();
    agents.sort_unstable();
    let expected =
        [("s-1", "acp:my-agent"), ("s-2", "acp:house"), ("s-3", "acp"), ("s-4", "gemini")];
    assert_eq!(agents, expected);
    // A file that grows stays with its agent, in another process too.
    let chunk = json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "Hello."}});
    let more = json!({"t": 3, "dir": "a2c", "msg": {"method": "session/update", "params":
        {"sessionId": "s-1", "update": chunk}}});
    machine.append("foreign", format!("{more}\n").as_bytes());
    machine.ok("d", &["import", machine.home().join("foreign").to_str().unwrap()]);
    assert_eq!(machine.json("d", &["list"]).as_array().unwrap().len(), 4);
    assert!(machine.ok("d", &["show", "s-1"]).contains("Hello."));
    assert_eq!(
        machine.json("d", &["list", "--agent", "acp:my-agent"]).as_array().unwrap().len(),
        1
    );
}
