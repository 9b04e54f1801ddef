//! What the prompts of recorded agents become in a ThoughtFlow document, held against the raw logs:
//! nothing in a document was made up.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use unspool_model::id::sha256;

use crate::case::root;
use crate::harness::Machine;

/// Every text of a log, and every line of JSON in a text, as a set.
fn texts_of(folder: &Path, texts: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts_of(&path, texts);
        } else if path.extension().is_some_and(|it| it == "jsonl" || it == "json") {
            // Traces have one value in several lines.
            let log = fs::read_to_string(&path).unwrap();
            let values = serde_json::Deserializer::from_str(&log).into_iter::<Value>();
            values.map_while(Result::ok).for_each(|value| {
                // An item without a text of its own is a piece as a whole.
                texts.insert(value["payload"].to_string());
                leaves(&value, texts);
            });
        }
    }
}

fn leaves(value: &Value, texts: &mut HashSet<String>) {
    match value {
        Value::String(text) => drop(texts.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| leaves(field, texts)),
        _ => {}
    }
}

/// The documents of all recorded sessions of an agent.
fn documents(agent: &str) -> Vec<Value> {
    let machine = Machine::new();
    let folder = root().join("fixtures").join(agent);
    machine.ok("data", &["import", folder.to_str().unwrap()]);
    let sessions = machine.json("data", &["list"]);
    let ids = sessions.as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap());
    let export = |id| machine.ok("data", &["export", id, "--to", "thoughtflow"]);
    ids.map(|id| serde_json::from_str(&export(id)).unwrap()).collect()
}

fn steps(document: &Value) -> impl Iterator<Item = (usize, &Vec<Value>, &Value)> {
    let runs = document["conversations"].as_array().unwrap().iter();
    runs.flat_map(|run| {
        let steps = run["steps"].as_array().unwrap();
        steps.iter().enumerate().map(move |(at, step)| (at, steps, step))
    })
}

fn list(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect(),
        Value::String(one) => vec![one],
        _ => Vec::new(),
    }
}

const SNAPSHOTS: [&str; 4] =
    ["policy.snapshot", "tool.schemas.snapshot", "context.preamble", "prompt.adaptations"];

/// The values of the parts of these kinds, as one text.
fn joined(parts: &[Value], kinds: &[&str]) -> String {
    let own = parts.iter().filter(|part| kinds.contains(&part["kind"].as_str().unwrap_or("")));
    own.map(|part| part["value"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

// R-002-10, R-002-11, R-002-12, R-002-14
#[test]
fn snapshots_of_recorded_prompts_stand_where_they_are_used() {
    for (agent, least) in [("claude-code", 200), ("codex", 100)] {
        let (mut calls, mut policies) = (0, 0);
        for document in &documents(agent) {
            for (at, steps, step) in steps(document) {
                let label = step["label"].as_str().unwrap();
                let started = &step["payload_started"];
                if SNAPSHOTS.contains(&label) {
                    // Nothing but other snapshots stands between it and the first call that used it.
                    let next = steps[at..]
                        .iter()
                        .find(|next| !SNAPSHOTS.contains(&next["label"].as_str().unwrap()));
                    let next = next.unwrap();
                    assert_eq!(next["label"], "assistant_call", "{agent}: {step}");
                    let id = step["step_id"].as_str().unwrap();
                    assert!(list(&next["depends_on"]).contains(&id), "{agent}: {id}");
                    let with =
                        |wanted| steps.iter().filter(|step| step["step_id"] == wanted).count();
                    assert_eq!(with(id), 1, "{agent}: one node for each run");
                }
                let fields: &[&str] = match label {
                    "policy.snapshot" => &["version", "produced_at", "content_preview"],
                    "tool.schemas.snapshot" => &["version", "count", "names", "schemas_preview"],
                    "context.preamble" => &["version", "context"],
                    _ => &[],
                };
                for field in fields {
                    assert!(started.get(field).is_some(), "{agent}: {field} in {step}");
                }
                if label == "context.preamble" {
                    for field in ["channel", "currentTime", "timeZone"] {
                        assert!(started["context"].get(field).is_some(), "{agent}: {step}");
                    }
                }
                let provenance = &started["prompt_provenance"];
                let Some(parts) = provenance["parts"].as_array() else { continue };
                calls += 1;
                let depends_on = list(&step["depends_on"]);
                let prompt = depends_on.iter().any(|id| id.contains("-user-"));
                let begun = steps[..at]
                    .iter()
                    .any(|step| step["step_id"].as_str().unwrap().contains("-user-"));
                assert!(prompt || !begun, "{agent}: {step}");
                // The version is the digest of the very text that the call was sent.
                let policy = joined(parts, &["policy"]);
                if !policy.is_empty() {
                    policies += 1;
                    let id = format!("snp_policy_{}", sha256(policy.as_bytes()));
                    assert!(depends_on.contains(&id.as_str()), "{agent}: {id} of {depends_on:?}");
                }
            }
        }
        assert!(
            calls >= least && policies * 2 > calls,
            "{agent}: {calls} calls, {policies} policies"
        );
    }
}

/// A text without the tag around it: a child of Codex has only what stands inside in its log.
fn inside(text: &str) -> &str {
    let tag = text.strip_prefix('<').and_then(|text| text.split_once('>'));
    let inner = tag.and_then(|(tag, rest)| rest.strip_suffix(&format!("</{tag}>")));
    inner.map_or(text, str::trim)
}

// R-002-15, R-002-16, R-002-17, R-002-18
#[test]
fn recorded_prompts_are_the_text_of_the_log() {
    let types = [
        "channel_preamble",
        "context_preamble",
        "prompt_adaptations",
        "personality",
        "user_instruction",
        "tool_schemas_snapshot",
    ];
    for (agent, least) in [("claude-code", 1000), ("codex", 300)] {
        let mut texts = HashSet::new();
        texts_of(&root().join("fixtures").join(agent), &mut texts);
        let all = texts.iter().map(String::as_str).collect::<Vec<_>>().join("\u{0}");
        let (mut found, mut prompts, mut composed) = (0, 0, 0);
        for document in &documents(agent) {
            for (_, _, step) in steps(document) {
                let started = &step["payload_started"];
                let provenance = &started["prompt_provenance"];
                let Some(parts) = provenance["parts"].as_array() else { continue };
                assert!(started["name"].is_string() && started.get("model").is_some(), "{step}");
                assert!(started["arguments"].get("tools_count").is_some(), "{agent}: {step}");
                let whole: Vec<char> =
                    provenance["final_prompt"].as_str().unwrap_or_default().chars().collect();
                let preview =
                    started["arguments"]["instructions_preview"].as_str().unwrap_or_default();
                prompts += usize::from(!whole.is_empty());
                let begin: String = whole.iter().take(20).collect();
                assert!(preview.starts_with(&begin), "{agent}: {preview}");
                let (mut last, mut covered) = (0, 0);
                for span in provenance["assembly"].as_array().unwrap() {
                    let at = |name: &str| span[name].as_u64().unwrap() as usize;
                    let (start, end) = (at("start"), at("end"));
                    assert!(last <= start && start < end, "{agent}: {provenance}");
                    let between: String = whole[last..start].iter().collect();
                    assert!(between.trim().is_empty(), "{agent}: {between:?} is no part's");
                    let there: String = whole[start..end].iter().collect();
                    assert_eq!(parts[at("part")]["value"], there.as_str(), "{agent}");
                    (last, covered) = (end, covered + 1);
                }
                let rest: String = whole[last..].iter().collect();
                assert!(rest.trim().is_empty(), "{agent}: {rest:?} is no part's");
                for part in parts {
                    let kind = part["type"].as_str().unwrap();
                    assert!(types.contains(&kind), "{agent}: {kind}");
                    let value = part["value"].as_str().unwrap();
                    if kind == "tool_schemas_snapshot" {
                        continue;
                    }
                    // An item without a text has the order of the writer's keys.
                    let item = serde_json::from_str::<Value>(value).map(|item| item.to_string());
                    let is_item = item.is_ok_and(|item| texts.contains(&item));
                    let is_there = is_item || all.contains(value) || all.contains(inside(value));
                    // A child of Codex has some instructions as numbers only: its words are Codex'
                    // own, and scripts/prompt-judge compares them with real requests.
                    assert!(is_there || agent == "codex", "{agent}: {value}");
                    composed += usize::from(!is_there);
                    found += 1;
                }
                assert!(covered > 0 || whole.is_empty(), "{agent}");
            }
        }
        assert!(composed * 20 <= found, "{agent}: {composed} of {found} texts are in no log");
        assert!(
            found >= least && prompts * 10 > least,
            "{agent}: {found} texts, {prompts} prompts"
        );
    }
}
