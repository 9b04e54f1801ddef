//! What model calls were sent, against the requests that the raw logs say were made. The readers here
//! share no code with the product: they put each request together from the records, and every piece
//! must be what stands at its place in it (law 10).

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use unspool_model::id::sha256;
use unspool_model::prompt::PromptMessage;
use unspool_query::prompts::{SessionPrompts, prompts};
use unspool_server::templates;
use unspool_server::templates::prompts::{Pieces, Shown};
use unspool_store::blocking::block_on;
use unspool_store::store::{SessionFilter, Store, StoredSession, View, Viewer};
use unspool_view::present::prompt::{Call, PromptDifference};

use crate::case::{cases, name, root};
use crate::harness::{Machine, archive_of};

/// A request as a reader of the log rebuilds it.
pub struct Request {
    pub body: Value,
    /// Messages that the log does not have.
    pub unknown: usize,
}

fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The requests of a log of Claude Code, by their names.
fn claude_requests(records: &[Value]) -> HashMap<String, Request> {
    let mut messages: HashMap<String, Value> = HashMap::new();
    let mut add = |role: &str, content: &[Value]| {
        let message = json!({ "role": role, "content": content });
        messages.insert(sha256(message.to_string().as_bytes()), message);
    };
    let blocks = |record: &Value| -> Vec<Value> {
        match &record["message"]["content"] {
            Value::String(text) => vec![json!({ "type": "text", "text": text })],
            Value::Array(blocks) => blocks.clone(),
            _ => Vec::new(),
        }
    };
    // Each beginning of a reply, and each run of the user's records between two replies.
    let mut replies: HashMap<String, Vec<Value>> = HashMap::new();
    let mut run: Vec<Vec<Value>> = Vec::new();
    for record in records {
        if record["type"] == "assistant" {
            run.clear();
            let id = record["message"]["id"].as_str().unwrap_or_default().to_owned();
            let reply = replies.entry(id).or_default();
            reply.extend(blocks(record));
            add("assistant", reply);
        } else if record["type"] == "user" {
            run.push(blocks(record));
            for from in 0..run.len() {
                add("user", &run[from..].concat());
            }
        }
    }
    for record in records.iter().filter(|record| record["type"] == "api-request-blob") {
        // A string counts as one block of text.
        let mut message = record["message"].clone();
        message["content"] = blocks(record).into();
        // Recordings are cut, some of them only in one of two records.
        messages.entry(record["hash"].as_str().unwrap().to_owned()).or_insert(message);
    }
    let shapes: HashMap<&str, &Value> = records
        .iter()
        .filter(|record| record["type"] == "api-request-shape")
        .map(|record| (record["shapeHash"].as_str().unwrap(), &record["shape"]))
        .collect();
    let mut lists: HashMap<String, Vec<String>> = HashMap::new();
    let mut requests = HashMap::new();
    for record in records.iter().filter(|record| record["type"] == "api-request") {
        let id = record["id"].as_str().unwrap().to_owned();
        let keep = record["keep"].as_u64().unwrap() as usize;
        let base = record["base"].as_str().and_then(|base| lists.get(base));
        let mut list = base.map(|base| base[..keep].to_vec()).unwrap_or_default();
        let tail = record["tail"].as_array().unwrap().iter();
        list.extend(tail.map(|digest| digest.as_str().unwrap().to_owned()));
        let unknown = list.iter().filter(|digest| !messages.contains_key(*digest)).count();
        let sent: Vec<Value> =
            list.iter().map(|digest| messages.get(digest).cloned().unwrap_or_default()).collect();
        let shape = record["shapeHash"].as_str().and_then(|shape| shapes.get(shape));
        let mut system = vec![Value::Null];
        system.extend(
            shape.and_then(|shape| shape["system"].as_array()).into_iter().flatten().cloned(),
        );
        let tools = shape.map(|shape| shape["tools"].clone()).unwrap_or_default();
        let body = json!({ "system": system, "tools": tools, "messages": sent });
        requests.insert(id.clone(), Request { body, unknown });
        lists.insert(id, list);
    }
    requests
}

/// The requests of a rollout of Codex, in their order. `None` if it continues or copies another.
fn codex_requests(records: &[Value]) -> Option<Vec<Request>> {
    let is_head = |record: &&Value| record["type"] == "session_meta";
    let heads: Vec<&Value> = records.iter().filter(is_head).collect();
    let [head] = heads[..] else { return None };
    if !head["payload"]["history_base"].is_null()
        || !records.iter().any(|record| record["type"] == "token_usage_record")
    {
        return None;
    }
    // The instructions stand before the items, in words that the rollout does not have, unless they
    // are one of the items.
    let has_item = records.iter().any(|record| {
        let kinds = &record["payload"]["internal_chat_message_metadata_passthrough"];
        kinds["content_item_kinds"].to_string().contains("model.base_instructions")
    });
    let text = &head["payload"]["base_instructions"]["text"];
    let first = if has_item || text.is_null() { vec![] } else { vec![Value::Null] };
    let (mut input, mut is_open, mut requests) = (first.clone(), false, Vec::new());
    for record in records {
        let payload = &record["payload"];
        match record["type"].as_str().unwrap_or_default() {
            "token_usage_record" => is_open = false,
            "event_msg" if payload["type"] == "task_started" => is_open = false,
            "compacted" => {
                input = first.clone();
                input.extend(
                    payload["replacement_history"].as_array().into_iter().flatten().cloned(),
                );
            }
            "response_item" => {
                let kind = payload["type"].as_str().unwrap_or_default();
                let is_reply = kind.ends_with("_call")
                    || kind == "reasoning"
                    || (kind == "message" && payload["role"] == "assistant");
                if is_reply && !is_open {
                    is_open = true;
                    let body = json!({ "input": input });
                    requests.push(Request { body, unknown: first.len() });
                }
                input.push(payload.clone());
            }
            _ => {}
        }
    }
    Some(requests)
}

/// Recordings are cut in long texts, some of them in only one of two records.
const CUT: &str = "…[cut ";

/// Compares a prompt with the request. Returns the number of pieces that were compared.
pub fn compare<V: View>(
    view: &V,
    prompts: &SessionPrompts,
    call: &Call<'_>,
    sent: &Request,
) -> usize {
    let request = &call.prompt.call().request;
    assert_eq!(call.prompt.unknown_messages() as usize, sent.unknown, "{request}");
    let pieces = block_on(prompts.pieces(view, call)).unwrap();
    let mut compared = 0;
    for piece in &pieces {
        let at = &piece.at;
        let there = sent.body.pointer(at).unwrap_or_else(|| panic!("{request} has no {at}"));
        let Some(text) = &piece.text else {
            assert!(piece.is_binary(), "{request}: {at} is not known");
            continue;
        };
        let is_cut = text.contains(CUT) || there.as_str().is_some_and(|there| there.contains(CUT));
        compared += usize::from(!is_cut);
        match there {
            Value::String(_) if is_cut => {}
            Value::String(there) => assert_eq!(**text, **there, "{request}: {at}"),
            there => assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *there, "{at}"),
        }
        for span in &piece.piece.spans {
            assert!(span.start < span.end && span.end <= piece.piece.chars, "{request}: {at}");
        }
        assert!(piece.piece.spans.is_sorted_by(|one, next| one.end <= next.start), "{at}");
    }
    // Nothing of a message is left out.
    for (number, message) in call.prompt.messages() {
        let list = call.prompt.call().list;
        let there = sent.body.pointer(&list.pointer(number, "")).unwrap();
        let blocks = there["content"].as_array().map_or(1, Vec::len);
        let is_whole = |message: &PromptMessage| {
            message.pieces.len() >= blocks || message.pieces.iter().any(|piece| piece.at.is_empty())
        };
        assert!(message.is_none_or(is_whole), "{request} {there}");
    }
    compared
}

fn sessions(view: &impl View) -> Vec<StoredSession> {
    block_on(view.sessions(SessionFilter::default())).unwrap()
}

#[test]
fn law_10_a_prompt_is_true_of_claude_code() {
    let (mut calls, mut pieces, mut sub_agents) = (0, 0, 0);
    for case in cases("claude-code") {
        let mut logs = vec![case.join("log.jsonl")];
        let inner = fs::read_dir(case.join("subagents")).into_iter().flatten();
        logs.extend(inner.map(|file| file.unwrap().path()));
        logs.retain(|log| log.exists() && log.extension().is_some_and(|end| end == "jsonl"));
        let all: Vec<Vec<Value>> = logs.iter().map(|log| records(log)).collect();
        let requests: HashMap<String, Request> =
            all.iter().flat_map(|records| claude_requests(records)).collect();
        if requests.is_empty() {
            continue;
        }
        let (archive, _folder) = archive_of(&logs);
        let view = archive.view(Viewer::Sole);
        let mut found = 0;
        for stored in sessions(&view) {
            let prompts = block_on(prompts(&view, &stored)).unwrap();
            for call in prompts.calls() {
                let request = &requests[&*call.prompt.call().request];
                pieces += compare(&view, &prompts, &call, request);
                found += 1;
                sub_agents += usize::from(stored.summary.session.parent.is_some());
            }
        }
        assert_eq!(found, requests.len(), "{}", name(&case));
        calls += found;
    }
    assert!(calls > 150 && sub_agents > 5 && pieces > 2500, "{calls} {sub_agents} {pieces}");
}

#[test]
fn law_10_a_prompt_is_true_of_codex() {
    let (mut calls, mut pieces, mut compactions) = (0, 0, 0);
    for case in cases("codex") {
        let log = case.join("log.jsonl");
        let records = records(&log);
        let Some(requests) = codex_requests(&records) else { continue };
        let (archive, _folder) = archive_of(&[log]);
        let view = archive.view(Viewer::Sole);
        let stored = sessions(&view).pop().unwrap();
        let prompts = block_on(prompts(&view, &stored)).unwrap();
        assert_eq!(prompts.calls().count(), requests.len(), "{}", name(&case));
        for (call, request) in prompts.calls().zip(&requests) {
            pieces += compare(&view, &prompts, &call, request);
        }
        calls += requests.len();
        compactions += records.iter().filter(|record| record["type"] == "compacted").count();
    }
    assert!(calls > 50 && pieces > 300 && compactions > 0, "{calls} {pieces} {compactions}");
}

/// The machine with one session of Claude Code, and its id.
fn machine(case: &str) -> (Machine, String) {
    machine_of(&format!("claude-code/{case}"))
}

fn machine_of(case: &str) -> (Machine, String) {
    let machine = Machine::new();
    let path = root().join("fixtures").join(case);
    machine.ok("d", &["import", path.to_str().unwrap()]);
    let sessions = machine.json("d", &["list"]);
    let own = |session: &&Value| session["parent"].is_null();
    let id = sessions.as_array().unwrap().iter().find(own).unwrap()["id"].as_str().unwrap();
    (machine, id.to_owned())
}

#[test]
fn prompts_are_listed_and_one_is_shown() {
    let (machine, id) = machine("discovery-loop");
    let all = machine.json("d", &["prompt", &id]);
    let all = all["prompts"].as_array().unwrap();
    assert!(all.len() > 4, "{}", all.len());
    assert!(all.iter().all(|call| call.get("pieces").is_none() && call["turn"] == 1));
    let table = machine.ok("d", &["prompt", &id, "--plain"]);
    assert_eq!(table.lines().filter(|line| line.starts_with("1.")).count(), all.len(), "{table}");
    assert!(table.contains("+2 messages"), "{table}");
    // One call has all its pieces, and says what is never written down.
    let one = machine.json("d", &["prompt", &format!("{id}:1.2")]);
    let [call] = one["prompts"].as_array().unwrap().as_slice() else { panic!("{one}") };
    let kinds: Vec<&str> = call["pieces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|piece| piece["kind"].as_str().unwrap())
        .collect();
    for kind in ["policy", "tool-schema", "instructions", "user-instruction", "tool-output"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    assert_eq!(call["truth"]["unknown_messages"], 0);
    assert!(call["truth"]["not_recorded"][0].as_str().unwrap().contains("billing"));
    // Only what the call before was not sent.
    let new = machine.json("d", &["prompt", &format!("{id}:1.2"), "--diff"]);
    let new = new["prompts"][0]["pieces"].as_array().unwrap();
    assert!(!new.is_empty() && new.len() < kinds.len());
    assert!(new.iter().all(|piece| piece["kind"] != "policy"), "{new:?}");
    // Wrong places say what to write.
    for (place, sentence) in [("1.x", "write SESSION:2"), ("9", "no call of turn 9")] {
        let output = machine.run("d", &["prompt", &format!("{id}:{place}")], "");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1));
        assert!(text.contains(sentence), "{text}");
    }
}

#[test]
fn a_text_is_found_in_exactly_the_calls_that_had_it() {
    let (machine, id) = machine("discovery-loop");
    let all = machine.json("d", &["prompt", &id])["prompts"].as_array().unwrap().len();
    let found = |text: &str| -> Vec<u64> {
        let document = machine.json("d", &["prompt", &id, "--find", text]);
        let calls = document["prompts"].as_array().unwrap().iter();
        calls.map(|call| call["step"].as_u64().unwrap()).collect()
    };
    // The user's prompt is in every call, the output of the first call from the second on.
    assert_eq!(found("The forecast cache keeps missing").len(), all);
    let first = machine.json("d", &["show", &id]);
    let parts = first["turns"][0]["parts"].as_array().unwrap();
    let output = parts.iter().find_map(|part| part["output"].as_str()).unwrap();
    let expected: Vec<u64> = (2..=all as u64).collect();
    assert_eq!(found(output), expected, "{output}");
    assert_eq!(found("no prompt has this text"), Vec::<u64>::new());
}

#[test]
fn an_agent_without_prompts_says_so() {
    let machine = Machine::new();
    let session = |data: &str, case: &str| {
        let path = root().join("fixtures").join(case);
        machine.ok(data, &["import", path.to_str().unwrap()]);
        machine.json(data, &["list"])[0]["id"].as_str().unwrap().to_owned()
    };
    // Nothing but the conversation.
    let aider = session("aider", "aider/discovery-loop");
    let output = machine.run("aider", &["prompt", &aider], "");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("Nothing is known about the prompts"), "{text}");
    assert!(text.contains("unspool show"), "the next step: {text}");
    assert_eq!(output.status.code(), Some(1));
    // A part of it: what is known, what is not, and what to do.
    for (agent, missing) in [
        ("gemini", "the system prompt and tool schemas"),
        ("copilot", "tool schemas"),
        ("qwen", "the system prompt"),
        ("opencode", "instruction files"),
    ] {
        let id = session(agent, &format!("{agent}/discovery-loop"));
        let output = machine.run(agent, &["prompt", &id], "");
        let text = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
        assert!(text.contains("known in part") && text.contains(missing), "{agent}: {text}");
        assert!(text.contains("unspool show") && output.status.success(), "{agent}: {text}");
        let document = machine.json(agent, &["prompt", &id]);
        assert_eq!(document["knowledge"]["grade"], "part", "{agent}");
        assert_eq!(document["prompts"], serde_json::json!([]), "{agent}");
    }
    // So does a sub-agent of one.
    for case in ["copilot/acp-subagents", "gemini/subagents"] {
        let (agent, _) = case.split_once('/').unwrap();
        let data = format!("{agent}-parent");
        session(&data, case);
        let sessions = machine.json(&data, &["list"]);
        let is_child = |one: &&Value| !one["parent"].is_null();
        let child = sessions.as_array().unwrap().iter().find(is_child);
        let child = child.unwrap_or_else(|| panic!("{case}: {sessions}"))["id"].as_str().unwrap();
        let text = machine.ok(&data, &["prompt", child]).replace('\n', " ");
        assert!(text.contains("known in part"), "{case}: {text}");
    }
}

/// A request that was tried again is a step of its turn, and says that it got no reply.
#[test]
fn attempts_without_a_reply_are_steps() {
    for (case, expected) in [
        ("error-500-retried", vec![("1.1", true), ("1.2", false)]),
        ("error-overloaded-retried", vec![("1.1", true), ("1.2", true), ("1.3", false)]),
        ("error-gives-up", vec![("1.1", true), ("1.2", true), ("1.3", true)]),
        ("error-authentication", vec![("1.1", true)]),
    ] {
        let (machine, id) = machine(case);
        let calls = machine.json("d", &["prompt", &id]);
        let calls = calls["prompts"].as_array().unwrap();
        let found: Vec<(String, bool)> = calls
            .iter()
            .map(|call| {
                let place = format!("{}.{}", call["turn"], call["step"]);
                (place, call["no_reply"].as_bool().unwrap())
            })
            .collect();
        let expected: Vec<(String, bool)> =
            expected.into_iter().map(|(place, none)| (place.to_owned(), none)).collect();
        assert_eq!(found, expected, "{case}");
        let table = machine.ok("d", &["prompt", &id, "--plain"]);
        let silent = table.lines().filter(|line| line.contains("no reply")).count();
        assert_eq!(silent, found.iter().filter(|(_, none)| *none).count(), "{table}");
        for call in calls {
            let (sent, ended) = (call["sent_at"].as_str().unwrap(), &call["ended_at"]);
            assert!(ended.as_str().is_none_or(|ended| sent <= ended), "{call}");
            assert!(call["no_reply"] == true || ended.is_string(), "{call}");
        }
    }
}

/// The steps of Codex have the names of their requests.
#[test]
fn answered_calls_have_a_reply_and_failed_ones_do_not() {
    for (case, unanswered) in [("codex/discovery-loop", 0), ("codex/error-retried", 0)] {
        let (machine, id) = machine_of(case);
        let calls = machine.json("d", &["prompt", &id]);
        let calls = calls["prompts"].as_array().unwrap();
        assert!(calls.len() > 1, "{case}");
        let silent = calls.iter().filter(|call| call["no_reply"] == true).count();
        assert_eq!(silent, unanswered, "{case}");
    }
}

#[test]
fn prompts_survive_an_export_and_a_second_import() {
    let (machine, id) = machine("discovery-loop");
    let before = machine.json("d", &["prompt", &format!("{id}:1")]);
    let path = machine.home().join("session.jsonl");
    let file = path.to_str().unwrap();
    machine.ok("d", &["export", &id, "--to", "jsonl", "-o", file]);
    machine.ok("other", &["import", file]);
    assert_eq!(machine.json("other", &["prompt", &format!("{id}:1")]), before);
    // Law 5.
    let fixture = root().join("fixtures/claude-code/discovery-loop");
    machine.ok("d", &["import", fixture.to_str().unwrap()]);
    assert_eq!(machine.json("d", &["prompt", &format!("{id}:1")]), before);
}

#[test]
fn prompts_do_not_depend_on_how_a_log_is_cut() {
    let log = fs::read_to_string(root().join("fixtures/claude-code/discovery-loop/log.jsonl"));
    let log = log.unwrap();
    let machine = Machine::new();
    machine.write("whole.jsonl", log.as_bytes());
    let whole = machine.home().join("whole.jsonl");
    machine.ok("whole", &["import", whole.to_str().unwrap()]);
    let ends: Vec<usize> = log.match_indices('\n').map(|(at, _)| at + 1).collect();
    let grown = machine.home().join("grown.jsonl");
    for end in ends.chunks(7).filter_map(|ends| ends.last()) {
        fs::write(&grown, &log[..*end]).unwrap();
        machine.ok("grown", &["import", grown.to_str().unwrap()]);
    }
    let id = machine.json("whole", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let prompts = |data: &str| machine.json(data, &["prompt", &format!("{id}:1")]);
    assert_eq!(prompts("grown"), prompts("whole"));
}

#[test]
fn a_compaction_is_a_shorter_prompt() {
    let mut seen = 0;
    for case in cases("claude-code").into_iter().chain(cases("codex")) {
        let log = case.join("log.jsonl");
        if !log.exists() {
            continue;
        }
        let (archive, _folder) = archive_of(&[log]);
        let view = archive.view(Viewer::Sole);
        for stored in sessions(&view) {
            let prompts = block_on(prompts(&view, &stored)).unwrap();
            let differences: Vec<(Call<'_>, Option<PromptDifference>)> = prompts.differences();
            let has_dropped = |(_, difference): &&(Call<'_>, Option<PromptDifference>)| {
                difference.as_ref().is_some_and(|difference| difference.removed > 2)
            };
            seen += differences.iter().filter(has_dropped).count();
        }
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn law_8_what_was_sent_is_hostile() {
    let log = fs::read_to_string(root().join("fixtures/claude-code/discovery-loop/log.jsonl"));
    let attack = "<script>alert(1)</script>\\u202e\\u001b[31m\\\" onload=\\\"x() ";
    let log = log.unwrap().replace("The forecast cache keeps missing", attack);
    let machine = Machine::new();
    machine.write("log.jsonl", log.as_bytes());
    let (archive, _folder) = archive_of(&[machine.home().join("log.jsonl")]);
    let view = archive.view(Viewer::Sole);
    let stored = sessions(&view).pop().unwrap();
    let prompts = block_on(prompts(&view, &stored)).unwrap();
    let find = Some("<script>alert(1)</script>\u{202e}");
    let page = templates::prompts::PromptsPage { summary: &stored.summary, find };
    let last = prompts.calls().last().unwrap();
    let pieces = block_on(prompts.pieces(&view, &last)).unwrap();
    let before = prompts.before(&last).unwrap();
    let difference = PromptDifference::between(&before.prompt, &last.prompt);
    let context = block_on(prompts.context(&view)).unwrap();
    let pages = [
        templates::prompts::calls(&page, &prompts.differences(), Shown::All(&context)),
        templates::prompts::call(&page, &last, &pieces, Some((&before, &difference)), &Pieces::All),
    ];
    for html in pages.map(|page| page.into_string()) {
        let bad = |c: char| {
            (c.is_control() && c != '\n' && c != '\t') || unspool_view::block::is_deceptive(c)
        };
        assert!(!html.contains(bad));
        assert!(!html.contains("<script>alert") && !html.contains("\" onload=\""), "{html}");
        assert!(html.contains("&lt;script&gt;alert(1)"), "the text is still visible");
        // The browser would refuse styles in attributes.
        assert!(!html.contains("style="));
    }
    // Nor does the terminal obey it.
    machine.ok("d", &["import", machine.home().join("log.jsonl").to_str().unwrap()]);
    let shown = machine.ok("d", &["prompt", &format!("{}:1.1", stored.summary.session.id)]);
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}') && shown.contains("<script>"));
}
