//! Snapshots of prompts and tools that agents record are kept, identified by a digest.

use serde_json::Value;
use unspool_model::event::EventKind;
use unspool_model::id::sha256;
use unspool_sources::in_memory::SessionSet;

use crate::case::{captures, cases, name};

/// For every log of a source: each snapshot that `recorded` finds in a record is emitted as an
/// event of that record. Records copied from another session are emitted there.
fn check_source(source: &str, recorded: fn(u64, &Value) -> Vec<(&'static str, Value)>) -> usize {
    let mut found = 0;
    for case in cases(source) {
        for capture in captures(&case).iter().filter(|capture| capture.file.ends_with(".jsonl")) {
            if capture.file.starts_with("stream") || capture.file.starts_with("hooks") {
                continue;
            }
            let mut session_set = SessionSet::default();
            let mut reading = session_set.open(&capture.file);
            let mut snapshots: Vec<(u64, String, Value)> = Vec::new();
            let mut watch = |decoded: unspool_sources::in_memory::RecordTrace<'_>| {
                for event in decoded.events {
                    let EventKind::SnapshotTaken { kind, sha256: digest, content } = &event.kind
                    else {
                        continue;
                    };
                    let parsed: Value = serde_json::from_str(content.text()).unwrap();
                    // The text of a piece of a prompt, else the JSON of the record.
                    let hashed = parsed.as_str().filter(|_| kind == "prompt-text");
                    let hashed = hashed.unwrap_or(content.text());
                    assert_eq!(*digest, sha256(hashed.as_bytes()));
                    let content = parsed;
                    snapshots.push((decoded.line, kind.clone(), content));
                }
            };
            for line in &capture.lines {
                session_set.take_traced(&mut reading, line.line(), &mut watch);
            }
            session_set.close(reading, &mut watch);
            for line in &capture.lines {
                let record: Value = serde_json::from_slice(&line.bytes).unwrap_or_default();
                for (kind, content) in recorded(line.number, &record) {
                    let wanted = (line.number, kind.to_owned(), content);
                    assert!(
                        snapshots.contains(&wanted),
                        "{} line {}: {kind}",
                        name(&case),
                        line.number
                    );
                    found += 1;
                }
            }
        }
    }
    found
}

fn present(kind: &'static str, value: &Value) -> Option<(&'static str, Value)> {
    (!value.is_null()).then(|| (kind, value.clone()))
}

#[test]
fn claude_codes_prompts_and_tools_are_kept() {
    let found = check_source("claude-code", |_, record| {
        let attached = &record["attachment"];
        let of = |held: &Value, system: &str| {
            let system = present("system-policy", &held[system]);
            system.into_iter().chain(present("tool-schemas", &held["tools"])).collect()
        };
        match (record["type"].as_str(), attached["type"].as_str()) {
            (Some("attachment"), Some("prompt_snapshot")) => of(attached, "systemPrompt"),
            // Each text and each tool is a piece of the prompts.
            (Some("api-request-shape"), _) => {
                let texts = record["shape"]["system"].as_array().into_iter().flatten();
                let texts = texts.map(|block| ("prompt-text", block["text"].clone()));
                texts.collect()
            }
            _ => Vec::new(),
        }
    });
    assert!(found > 200, "{found}");
}

#[test]
fn codexs_instructions_are_kept() {
    let found = check_source("codex", |line, record| match record["type"].as_str() {
        Some("session_meta") if line == 1 => {
            let held = &record["payload"]["base_instructions"];
            present("system-policy", held).into_iter().collect()
        }
        _ => Vec::new(),
    });
    assert!(found > 20, "{found}");
}

#[test]
fn copilots_system_messages_are_kept() {
    let found = check_source("copilot", |_, record| match record["type"].as_str() {
        Some("system.message") => {
            present("system-policy", &record["data"]["content"]).into_iter().collect()
        }
        _ => Vec::new(),
    });
    assert!(found > 10, "{found}");
}
