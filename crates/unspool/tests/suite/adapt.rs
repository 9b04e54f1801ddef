//! Adaptations from end to end: the command line, REST and MCP change them without losing anything,
//! the hook delivers them, and the loop of reflecting, applying and verifying runs over a scripted
//! agent that does what its prompt says. `scripts/adapt-judge` does the same with real agents.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout};
use std::thread;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use unspool_model::prompt::adaptation_frames;

use crate::harness::Machine;
use crate::test_server::{HttpResponse, Server};

const ID: &str = "adn.tools.edit-reread";
const FILE: &str = "/home/dev/app/src/lib.rs";

fn array(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

/// What the hook prints for a session of Codex.
fn hook(machine: &Machine, session: &str) -> Option<String> {
    let payload = json!({
        "session_id": session, "cwd": "/home/dev/app", "hook_event_name": "SessionStart",
        "source": "startup",
    });
    let arguments = ["hook", "--adapt", "--agent", "codex"];
    let output = machine.run("d", &arguments, &payload.to_string());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    if output.stdout.is_empty() {
        return None;
    }
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["hookSpecificOutput"]["hookEventName"], "SessionStart");
    Some(printed["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned())
}

/// A rollout of Codex, line by line.
struct Rollout {
    session: String,
    lines: Vec<String>,
    at: Timestamp,
}

impl Rollout {
    fn add(&mut self, kind: &str, payload: Value) {
        self.at += SignedDuration::from_millis(50);
        let line = json!({
            "timestamp": format!("{:.3}", self.at), "ordinal": self.lines.len(),
            "type": kind, "payload": payload,
        });
        self.lines.push(line.to_string());
    }

    fn item(&mut self, mut item: Value, kinds: &[&str]) {
        item["internal_chat_message_metadata_passthrough"] =
            json!({ "turn_id": format!("turn-{}", self.session), "content_item_kinds": kinds });
        self.add("response_item", item);
    }

    fn message(&mut self, role: &str, kind: &str, text: &str) {
        let id = format!("msg_{}_{}", self.session, self.lines.len());
        let input = if role == "assistant" { "output_text" } else { "input_text" };
        let content = json!([{ "type": input, "text": text }]);
        let item = json!({ "type": "message", "id": id, "role": role, "content": content });
        self.item(item, &[kind]);
    }

    /// The call before was answered by the model.
    fn answered(&mut self) {
        let session = self.session.clone();
        let response = format!("resp_{session}_{}", self.lines.len());
        let usage = json!({ "input_tokens": 100, "output_tokens": 10, "total_tokens": 110 });
        self.add(
            "token_usage_record",
            json!({
                "thread_id": session, "session_id": session, "turn_id": format!("turn-{session}"),
                "response_id": response, "usage": usage,
            }),
        );
    }
}

/// A session in which the agent edits four times: it misses the text unless its prompt says how.
fn session(machine: &Machine, nth: usize, at: Timestamp) -> Option<String> {
    let id = format!("01a1dca7-8783-7e12-90f3-{nth:012}");
    let frame = hook(machine, &id);
    let turn = format!("turn-{id}");
    let mut rollout = Rollout { session: id.clone(), lines: Vec::new(), at };
    let cwd = "/home/dev/app";
    rollout.add(
        "session_meta",
        json!({
            "session_id": id, "id": id, "timestamp": format!("{at:.3}"), "cwd": cwd,
            "originator": "codex_exec", "cli_version": "0.166.0", "source": "exec",
            "base_instructions": { "text": "You are an agent." },
        }),
    );
    rollout.add("event_msg", json!({ "type": "task_started", "turn_id": turn }));
    rollout.add("turn_context", json!({ "turn_id": turn, "cwd": cwd, "model": "demo-large" }));
    if let Some(frame) = &frame {
        rollout.message("developer", "hooks.additional_context", frame);
    }
    rollout.message("user", "user.text", "Edit the file.");
    for call in 0..4 {
        let call = format!("call_{id}_{call}");
        let patch = format!("*** Begin Patch\n*** Update File: {FILE}\n@@\n-a\n+b\n*** End Patch");
        let made = json!({
            "type": "custom_tool_call", "id": format!("c{call}"), "status": "completed",
            "call_id": call, "name": "apply_patch", "input": patch,
        });
        rollout.item(made, &[]);
        rollout.answered();
        let output = match frame {
            Some(_) => {
                format!("Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM {FILE}\n")
            }
            None => format!(
                "apply_patch verification failed: Failed to find expected lines in {FILE}:\na"
            ),
        };
        let done = json!({ "type": "custom_tool_call_output", "id": format!("o{call}"),
            "call_id": call, "output": output });
        rollout.item(done, &[]);
    }
    rollout.message("assistant", "", "Done.");
    rollout.answered();
    rollout.add("event_msg", json!({ "type": "task_complete", "turn_id": turn }));
    let path = format!(".codex/sessions/2026/11/15/rollout-2026-11-15T00-00-00-{id}.jsonl");
    machine.write(&path, (rollout.lines.join("\n") + "\n").as_bytes());
    frame
}

/// What the exported document says of a session's prompts: the ids of each call, and the values of the
/// parts that are adaptations.
fn provenance(machine: &Machine, session: &str) -> (Vec<Value>, Vec<String>) {
    let document = machine.ok("d", &["export", session, "--to", "thoughtflow"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let (mut ids, mut parts) = (Vec::new(), Vec::new());
    for run in array(&document["conversations"]) {
        for step in array(&run["steps"]) {
            for payload in [&step["payload_started"], &step["payload_completed"]] {
                if step["label"] == "prompt.adaptations" && payload.get("included_ids").is_some() {
                    ids.push(payload["included_ids"].clone());
                }
                let all = payload["prompt_provenance"]["parts"].as_array();
                let ours =
                    all.into_iter().flatten().filter(|part| part["type"] == "prompt_adaptations");
                parts.extend(ours.map(|part| part["value"].as_str().unwrap().to_owned()));
            }
        }
    }
    assert!(!ids.is_empty(), "{document}");
    (ids, parts)
}

// R-002-13, R-002-37, R-002-39
#[test]
fn what_is_learned_is_applied_and_verified() {
    let machine = Machine::new();
    let before = Timestamp::now() - SignedDuration::from_hours(48);
    for nth in 0..5 {
        assert_eq!(session(&machine, nth, before), None);
    }
    machine.ok("d", &["sync"]);
    let found = machine.json("d", &["reflect", "--rule", "edit-missed"]);
    let counts = array(&found["findings"]).iter().map(|finding| finding["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 20, "{found}");

    machine.ok("d", &["adapt", "propose"]);
    let proposals = machine.json("d", &["adapt", "proposals"]);
    let proposed = array(&proposals).iter().find(|one| one["id"] == ID).unwrap();
    assert_eq!(proposed["why"], "edit-missed: 20 of 20 edits in 5 sessions");
    // A proposal changes nothing.
    assert_eq!(hook(&machine, "s"), None);
    let verified = machine.json("d", &["reflect", "verify", ID]);
    assert_eq!(verified["verdict"], "too little to say");
    machine.ok("d", &["adapt", "apply", &proposed["number"].to_string()]);

    for nth in 5..10 {
        let frame = session(&machine, nth, Timestamp::now()).unwrap();
        let [framed] = adaptation_frames(&frame).try_into().unwrap();
        assert_eq!(framed.ids, Some(vec![ID]));
        assert!(!framed.is_altered());
    }
    // Delivered is not seen.
    let shown = machine.json("d", &["adapt", "show", ID]);
    let facts = &shown["facts"];
    assert_eq!((&facts["delivered_sessions"], &facts["seen_sessions"]), (&json!(5), &json!(0)));
    machine.ok("d", &["sync"]);
    let shown = machine.json("d", &["adapt", "show", ID]);
    let facts = &shown["facts"];
    assert_eq!((&facts["delivered_sessions"], &facts["seen_sessions"]), (&json!(5), &json!(5)));
    for session in array(&facts["sessions"]) {
        assert_eq!((&session["seen"], &session["delivered"]), (&json!(true), &json!(true)));
        assert_eq!((&session["calls"], &session["of_calls"]), (&json!(5), &json!(5)));
        assert_eq!((&session["altered"], &session["versions"]), (&json!(false), &json!([2])));
        let (ids, parts) = provenance(&machine, session["session"].as_str().unwrap());
        assert!(ids.iter().all(|ids| *ids == json!([ID])), "{ids:?}");
        assert!(parts.iter().any(|part| part.contains("read the lines around the edit")));
    }
    let verified = machine.json("d", &["reflect", "verify", ID]);
    assert_eq!(verified["verdict"], "fewer", "{verified}");
    assert_eq!(
        (&verified["without"]["events"], &verified["with"]["events"]),
        (&json!(20), &json!(0))
    );
    assert_eq!(verified["with"]["sessions"], 5);
    assert!(machine.ok("d", &["reflect", "verify", ID]).contains(": fewer ("));
    // The page has the same, as a picture with a bar for each session.
    let server = Server::begin(&machine, "d", &[]);
    assert_eq!(server.json(&format!("/api/adaptations/{ID}/effect")), verified);
    for path in ["effect", "effect?panel=1"] {
        let page = server.get(&format!("/adaptations/{ID}/{path}"));
        let page = String::from_utf8_lossy(&page.body).into_owned();
        assert_eq!(
            (page.matches("<rect class=\"slot\"").count(), page.contains("<html")),
            (10, path == "effect")
        );
        assert!(
            page.contains("fewer</strong>") && page.contains("0 of 20 edits in 5 sessions"),
            "{page}"
        );
    }
    drop(server);

    // What is disabled is in no prompt and in no list of what is.
    machine.ok("d", &["adapt", "disable", ID]);
    assert_eq!(session(&machine, 10, Timestamp::now()), None);
    machine.ok("d", &["sync"]);
    let (ids, parts) = provenance(&machine, "01a1dca7-8783-7e12-90f3-000000000010");
    // Without a frame a log of Codex says nothing about what was included.
    assert!(ids.iter().all(|ids| ids.is_null() || *ids == json!([])), "{ids:?}");
    assert_eq!(parts, [""; 0]);
    let history = machine.json("d", &["adapt", "history", ID]);
    let made = array(&history["versions"]);
    assert_eq!(made.len(), 2);
    assert!(made[0]["why"].as_str().unwrap().contains(": edit-missed: 20 of 20"), "{history}");
}

#[test]
fn the_hook_prints_nothing_when_anything_is_wrong() {
    let machine = Machine::new();
    let prints = |payload: &str| {
        let output = machine.run("d", &["hook", "--adapt", "--agent", "claude-code"], payload);
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let good = json!({ "session_id": "s", "hook_event_name": "SessionStart" }).to_string();
    assert_eq!(prints(&good), "", "no state");
    machine.ok("d", &["adapt", "enable", ID]);
    assert!(prints(&good).contains(ID));
    for bad in ["", "{", "[]", "\u{0}", "{\"session_id\": 3}", "{}"] {
        assert_eq!(prints(bad), "", "{bad:?}");
    }
    let state = machine.data("d").join("adaptations/now.json");
    let whole = fs::read_to_string(&state).unwrap();
    let other_format = whole.replacen("\"format\":1", "\"format\":999", 1);
    for broken in ["", "{", &whole[..whole.len() / 2], &other_format] {
        fs::write(&state, broken).unwrap();
        assert_eq!(prints(&good), "", "{broken:.40}");
    }
    fs::write(&state, whole).unwrap();
    // What was not printed was not delivered.
    let delivered = machine.data("d").join("adaptations/delivered.jsonl");
    assert_eq!(fs::read_to_string(delivered).unwrap().lines().count(), 1);
}

// R-002-35
#[test]
fn adaptations_are_listed_filtered_and_previewed_everywhere() {
    let machine = Machine::new();
    let own = "[[items]]\nid = \"me.codex\"\ntitle = \"Mine\"\ncontent = \"Only you.\"\ntags = [\"mine\"]\n\
        [items.scope]\nagents = [\"codex\"]\nchannels = [\"text\"]\n";
    machine.write(".config/unspool/adaptations.toml", own.as_bytes());
    machine.ok("d", &["adapt", "enable", "me.codex", ID]);
    let server = Server::begin(&machine, "d", &[]);
    let ids = |list: &Value| -> Vec<String> {
        array(&list["items"]).iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    for (query, arguments) in [
        ("", vec![]),
        ("?agent=gemini", vec!["--agent", "gemini"]),
        ("?channel=voice", vec!["--channel", "voice"]),
        ("?tag=mine", vec!["--tag", "mine"]),
        ("?enabled=1", vec!["--enabled"]),
        ("?enabled=0", vec!["--disabled"]),
    ] {
        let listed = machine.json("d", &[&["adapt", "list"], arguments.as_slice()].concat());
        assert_eq!(server.json(&format!("/api/adaptations{query}")), listed);
    }
    let listed = |query: &str| ids(&server.json(&format!("/api/adaptations{query}")));
    assert!(!listed("?agent=gemini").contains(&"me.codex".to_owned()));
    assert!(!listed("?channel=voice").contains(&"me.codex".to_owned()));
    assert_eq!(listed("?tag=mine"), ["me.codex"]);
    assert_eq!(listed("?enabled=1"), [ID, "me.codex"]);
    let preview = server.json("/api/adaptations/preview?agent=codex");
    let mut local = machine.json("d", &["adapt", "preview", "--agent", "codex"]);
    // The command line is in a folder.
    local["project"] = Value::Null;
    assert_eq!(preview, local);
    assert_eq!(preview["included_ids"], json!([ID, "me.codex"]));
    assert_eq!(hook(&machine, "s").as_deref(), preview["frame"].as_str());
    let preview = server.json("/api/adaptations/preview?agent=gemini");
    assert_eq!(preview["included_ids"], json!([ID]));
    let history = server.json(&format!("/api/adaptations/{ID}/history"));
    assert_eq!(history, machine.json("d", &["adapt", "history", ID]));
    let seen = server.json(&format!("/api/adaptations/{ID}/seen"));
    assert_eq!((&seen["enabled"], &seen["delivered_sessions"]), (&json!(true), &json!(1)));
    assert_eq!(seen["seen_sessions"], 0);
    for page in ["/adaptations".to_owned(), format!("/adaptations/{ID}")] {
        let page = server.get(&page);
        assert_eq!(page.status, 200);
        assert!(
            String::from_utf8_lossy(&page.body).contains("Read a file again before editing it")
        );
    }
    assert_eq!(server.get("/api/adaptations/adn.nothing").status, 404);
    assert_eq!(server.get("/adaptations/adn.nothing").status, 404);
}

/// Changes an adaptation over REST.
fn patch(
    server: &Server,
    method: &str,
    id: &str,
    version: Option<u64>,
    body: &Value,
) -> HttpResponse {
    let body = body.to_string();
    let mut lines = vec![
        format!("{method} /api/adaptations/{id} HTTP/1.1"),
        format!("Host: 127.0.0.1:{}", server.port),
        format!("Authorization: Bearer {}", server.token),
        "Content-Type: application/json".to_owned(),
        format!("Content-Length: {}", body.len()),
        "Connection: close".to_owned(),
    ];
    lines.extend(version.map(|version| format!("If-Match: \"{version}\"")));
    server.send(&lines, body.as_bytes())
}

// R-002-33, R-002-34
#[test]
fn a_change_over_rest_names_its_version() {
    let machine = Machine::new();
    let server = Server::begin(&machine, "d", &[]);
    let path = format!("/api/adaptations/{ID}");
    let first = server.get(&path);
    assert_eq!(first.header("etag"), Some("\"1\""));
    let on = json!({ "enabled": true });
    patch(&server, "PATCH", ID, None, &on).problem(428);
    let changed = patch(&server, "PATCH", ID, Some(1), &on);
    assert_eq!((changed.status, changed.header("etag")), (200, Some("\"2\"")));
    let (before, after) = (first.json(), changed.json());
    assert_eq!((&before["content"], &before["title"]), (&after["content"], &after["title"]));
    let refused = patch(&server, "PUT", ID, Some(1), &json!({ "enabled": false })).problem(412);
    assert!(refused.contains("has version 2, not 1"), "{refused}");
    assert_eq!(server.json(&path)["enabled"], true);
    assert_eq!(patch(&server, "PUT", ID, Some(2), &json!({ "content": "Mine." })).status, 200);
    assert_eq!(server.json(&path)["enabled"], true);
    patch(&server, "PATCH", "adn.nothing", Some(1), &on).problem(404);
    patch(&server, "PATCH", ID, Some(3), &json!({ "id": "x" }));
    assert!(
        patch(&server, "PATCH", ID, Some(3), &json!({ "content": "\u{202e}" }))
            .problem(400)
            .contains("U+202E")
    );
    assert_eq!(server.json(&path)["version"], 3);

    // A file that is broken by hand keeps what counts, and says where.
    let edits = machine.data("d").join("adaptations/edits.json");
    fs::write(&edits, "{\n  \"adn.tools.search\": 3\n}\n").unwrap();
    let listed = server.json("/api/adaptations");
    assert!(listed["problems"][0].as_str().unwrap().contains("edits.json:2: "), "{listed}");
    assert_eq!(server.json(&path)["content"], "Mine.");
    let refused = patch(&server, "PATCH", ID, Some(3), &on).problem(409);
    assert!(refused.contains("edits.json:2: "), "{refused}");
    assert!(hook(&machine, "s").unwrap().contains("Mine."));
}

#[test]
fn a_person_decides_proposals_over_rest() {
    let machine = Machine::new();
    let server = Server::begin(&machine, "d", &[]);
    for id in [ID, "adn.tools.search", "adn.tools.long-output"] {
        machine.ok("d", &["adapt", "propose", id, "--why", "because"]);
    }
    let proposals = server.json("/api/proposals");
    assert_eq!(proposals, machine.json("d", &["adapt", "proposals"]));
    assert_eq!(array(&proposals).len(), 3);
    let decide = |body: Value| {
        let body = body.to_string();
        let lines = [
            "POST /api/proposals HTTP/1.1".to_owned(),
            format!("Host: 127.0.0.1:{}", server.port),
            format!("Authorization: Bearer {}", server.token),
            "Content-Type: application/json".to_owned(),
            format!("Content-Length: {}", body.len()),
            "Connection: close".to_owned(),
        ];
        server.send(&lines, body.as_bytes())
    };
    let applied = decide(json!({ "number": 1, "decision": "apply", "trial": "half" })).json();
    assert_eq!((&applied["number"], &applied["state"]), (&json!(1), &json!("applied")));
    let shown = machine.json("d", &["adapt", "show", ID]);
    assert_eq!((&shown["enabled"], &shown["trial"]), (&json!(true), &json!("half")));
    let dismissed = decide(json!({ "number": 2, "decision": "dismiss" })).json();
    assert_eq!(dismissed["state"], "dismissed");
    assert_eq!(machine.json("d", &["adapt", "show", "adn.tools.search"])["enabled"], false);
    let again = decide(json!({ "number": 1, "decision": "dismiss" })).problem(400);
    assert!(again.contains("decided already"), "{again}");
    let unknown = decide(json!({ "number": 9, "decision": "apply" })).problem(400);
    assert!(unknown.contains("there is no proposal 9"), "{unknown}");
    let wrong = decide(json!({ "number": 3, "decision": "perhaps" })).problem(400);
    assert!(wrong.contains("/api/openapi.json"), "{wrong}");
    let page = String::from_utf8_lossy(&server.get("/adaptations").body).into_owned();
    assert!(page.contains("data-number=\"3\"") && !page.contains("data-number=\"1\""), "{page}");
    // An adaptation that is against no rule cannot be compared without one.
    let own = "[[items]]\nid = \"me.own\"\ntitle = \"Mine\"\ncontent = \"Be brief.\"\n";
    machine.write(".config/unspool/adaptations.toml", own.as_bytes());
    let effect = server.get("/api/adaptations/me.own/effect").problem(400);
    assert!(effect.contains("name one with rule="), "{effect}");
    let effect = server.json("/api/adaptations/me.own/effect?rule=denied");
    assert_eq!(
        (&effect["verdict"], &effect["rule"]),
        (&json!("too little to say"), &json!("denied"))
    );
}

/// An MCP server and its client.
struct Mcp {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    calls: u64,
}

impl Mcp {
    fn begin(machine: &Machine, options: &[&str]) -> Mcp {
        let mut command = machine.command("d", &[&["mcp", "--all"], options].concat());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut mcp = Mcp { child, lines, calls: 0 };
        let client = json!({ "name": "test", "version": "1" });
        let parameters =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        mcp.request("initialize", &parameters);
        mcp.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        mcp
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        loop {
            let answer: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// The answer of a tool, or what its error says.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        if let Some(error) = answer["error"]["message"].as_str() {
            return Err(error.to_owned());
        }
        let result = &answer["result"];
        match result["isError"] == true {
            true => Err(result["content"][0]["text"].as_str().unwrap().to_owned()),
            false => Ok(result["structuredContent"].clone()),
        }
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn changes_of_several_processes_lose_nothing() {
    let machine = Machine::new();
    machine.ok("d", &["sync"]);
    let server = Server::begin(&machine, "d", &[]);
    let listed = server.json("/api/adaptations");
    let ids: Vec<String> = array(&listed["items"])
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect();
    let commands: Vec<Child> = ids
        .iter()
        .map(|id| {
            let arguments = ["adapt", "update", id, "--content", &format!("cli {id}")];
            machine.command("d", &arguments).spawn().unwrap()
        })
        .collect();
    // The same items, at the same time: their titles, and whether they are on.
    let mut mcp = Mcp::begin(&machine, &["--allow-edits"]);
    let titled = ids.clone();
    let agent = thread::spawn(move || {
        let change = |id: &String| {
            let change = json!({ "id": id, "version": 1, "title": "By an agent" });
            mcp.call("update_adaptation", change)
        };
        titled.iter().map(change).collect::<Vec<_>>()
    });
    for id in &ids {
        loop {
            let version = server.json(&format!("/api/adaptations/{id}"))["version"].as_u64();
            let answer = patch(&server, "PATCH", id, version, &json!({ "enabled": true }));
            match answer.status {
                200 => break,
                412 => {}
                other => panic!("{other}"),
            }
        }
    }
    for command in commands {
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let said = agent.join().unwrap();
    for (id, said) in ids.iter().zip(said) {
        let item = server.json(&format!("/api/adaptations/{id}"));
        let written = (&item["content"], &item["enabled"]);
        assert_eq!(written, (&json!(format!("cli {id}")), &json!(true)));
        let history = server.json(&format!("/api/adaptations/{id}/history"));
        let made = array(&history["versions"]).len() as u64;
        assert_eq!(made + 1, item["version"].as_u64().unwrap(), "each change is a version");
        // An agent that read another version is refused, and knows it; else its title is there.
        match said {
            Ok(_) => assert_eq!(item["title"], "By an agent"),
            Err(said) => {
                assert!(said.contains("somebody changed it meanwhile"), "{said}");
                assert_ne!(item["title"], "By an agent");
            }
        }
    }
}

// R-002-35
#[test]
fn agents_propose_and_change_only_what_they_may() {
    let machine = Machine::new();
    machine.ok("d", &["sync"]);
    let mut mcp = Mcp::begin(&machine, &[]);
    let listed = mcp.call("list_adaptations", json!({ "tag": "edits" })).unwrap();
    assert_eq!(array(&listed["adaptations"]).len(), 2, "{listed}");
    let proposal = json!({ "id": ID, "why": "3 sessions \u{1b}[31m" });
    let proposed = mcp.call("propose_adaptation", proposal).unwrap();
    assert_eq!(proposed["proposals"][0]["number"], 1);
    let preview = mcp.call("preview_adaptations", json!({ "agent": "codex" })).unwrap();
    assert_eq!(preview["included_ids"], json!([]));
    let update = json!({ "id": ID, "version": 1, "enabled": true });
    for (tool, arguments) in
        [("update_adaptation", update.clone()), ("reload_adaptations", json!({}))]
    {
        let refused = mcp.call(tool, arguments).unwrap_err();
        assert!(refused.contains("no tool"), "{refused}");
    }
    let read = mcp.call("get_adaptation", json!({ "id": ID })).unwrap();
    assert_eq!(read["adaptations"][0]["enabled"], "no");
    let mut editor = Mcp::begin(&machine, &["--allow-edits"]);
    let updated = editor.call("update_adaptation", update).unwrap();
    assert_eq!(updated["adaptations"][0]["version"], 2);
    assert!(editor.call("reload_adaptations", json!({})).is_ok());
    // It waits for a person, and its reason is safe to show.
    let proposals = machine.ok("d", &["adapt", "proposals"]);
    assert!(proposals.contains("3 sessions [31m (agent;"), "{proposals}");
    machine.ok("d", &["adapt", "apply", "1", "--trial", "half"]);
    let shown = machine.json("d", &["adapt", "show", ID]);
    assert_eq!((&shown["enabled"], &shown["trial"]), (&json!(true), &json!("half")));
    let again = machine.run("d", &["adapt", "apply", "1"], "");
    assert!(String::from_utf8_lossy(&again.stderr).contains("decided already"));
    // Half of the sessions get it, always the same ones.
    let given = |nth: usize| hook(&machine, &format!("session-{nth}")).is_some();
    let with = (0..40).filter(|nth| given(*nth)).count();
    assert!((8..=32).contains(&with), "{with}");
    assert_eq!(given(3), given(3));
}

#[test]
fn the_editor_changes_the_text() {
    let machine = Machine::new();
    let editor = machine.home().join("edit.sh");
    machine.write("edit.sh", b"#!/bin/sh\necho 'Written in an editor.' > \"$1\"\n");
    let mut command = machine.command("d", &["adapt", "edit", ID]);
    command.env("EDITOR", format!("sh {}", editor.display()));
    assert!(command.output().unwrap().status.success());
    assert_eq!(machine.json("d", &["adapt", "show", ID])["content"], "Written in an editor.");
    let without = machine.run("d", &["adapt", "edit", ID], "");
    assert!(String::from_utf8_lossy(&without.stderr).contains("set EDITOR"));
}

// R-002-38
#[test]
fn what_is_edited_by_hand_counts_after_a_reload() {
    let machine = Machine::new();
    machine.ok("d", &["adapt", "enable", ID]);
    let version =
        |frame: &str| -> u64 { adaptation_frames(frame)[0].version.unwrap().parse().unwrap() };
    let before = hook(&machine, "s").unwrap();
    let edits = machine.data("d").join("adaptations/edits.json");
    let mut written: Value = serde_json::from_str(&fs::read_to_string(&edits).unwrap()).unwrap();
    written[ID]["content"] = "By hand.".into();
    fs::write(&edits, written.to_string()).unwrap();
    assert_eq!(hook(&machine, "s").unwrap(), before);
    assert!(machine.ok("d", &["adapt", "reload"]).starts_with("changed: adn.tools.edit-reread"));
    let after = hook(&machine, "s").unwrap();
    assert!(after.contains("By hand."));
    assert_eq!(version(&after), version(&before) + 1);
}
