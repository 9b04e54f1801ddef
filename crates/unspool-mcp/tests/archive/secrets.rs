//! Law 12: no tool tells a secret. The secrets are the planted ones of the redaction rules, in
//! prompts, reasoning, commands, outputs and texts; one more is known only from another turn.

use serde_json::{Value, json};
use unspool_mcp::{Scope, tools};
use unspool_store::database::DatabaseView;

use crate::machine::{Client, Log, Machine};

/// Recognised as a secret in the last turn only.
const PASSWORD: &str = "correct7horse8";

/// The texts of `planted.txt` and their secrets.
fn planted() -> Vec<(String, String)> {
    let mut state = 7u64;
    let mut planted = Vec::new();
    let lines = include_str!("../../../unspool-redact/src/planted.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (_, text) = line.split_once('\t').unwrap();
        let text = text.replace('⏎', "\n").replace("\\u001b", "\u{1b}");
        let text = text.replace("\\u200b", "\u{200b}").replace("\\u00ad", "\u{ad}");
        let text = filled(&text, &mut state);
        let (before, rest) = text.split_once('«').unwrap();
        let (secret, after) = rest.split_once('»').unwrap();
        planted.push((format!("{before}{secret}{after}"), secret.to_owned()));
    }
    planted
}

/// Writes `{a36}` as that many letters and digits.
fn filled(text: &str, state: &mut u64) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let inner = rest[at + 1..].split('}').next().unwrap_or_default();
        let alphabet = match inner.chars().next() {
            Some('h') => "0123456789abcdef",
            Some('u') => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
            Some('d') => "0123456789",
            Some('a' | 'w' | 'b') => "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnopqrstuvwxyz23456789",
            Some(_) | None => "",
        };
        let length = inner.get(1..).and_then(|digits| digits.parse::<usize>().ok());
        let Some(length) = length.filter(|_| !alphabet.is_empty()) else {
            out.push('{');
            rest = &rest[at + 1..];
            continue;
        };
        for nth in 0..length {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Real keys have a digit and a letter of each case.
            let letters = match (nth, alphabet.len()) {
                (0, 50..) => "bcdfghjk",
                (1, 50..) => "BCDFGHJK",
                (2, 50..) => "23456789",
                (_, _) => alphabet,
            };
            let at = (*state >> 33) as usize % letters.len();
            out.push(char::from(letters.as_bytes()[at]));
        }
        rest = &rest[at + inner.len() + 2..];
    }
    out.push_str(rest);
    out
}

fn machine() -> (Machine, Vec<String>) {
    let machine = Machine::new();
    let planted = planted();
    assert!(planted.len() >= 60);
    let mut log = Log::new("55555555-aaaa-4aaa-8aaa-555555555555", "/home/dev/app");
    log.turn(
        &format!("Ask with {PASSWORD} please"),
        "Hm.",
        "true",
        &format!("said {PASSWORD}"),
        "Yes.",
    );
    for (text, _) in &planted {
        log.turn(text, text, "cat notes", text, text);
    }
    // Calls that a finding quotes.
    for (text, _) in planted.iter().take(20) {
        for _ in 0..3 {
            log.turn(
                "Again",
                "Hm.",
                &format!("cat {text}"),
                &format!("{text}\n").repeat(20),
                "Yes.",
            );
        }
    }
    log.turn("End", "Hm.", "env", &format!("DB_PASSWORD={PASSWORD}"), "Done.");
    machine.read_text("log.jsonl", log.text());
    let mut secrets: Vec<String> = planted.into_iter().map(|(_, secret)| secret).collect();
    secrets.push(PASSWORD.to_owned());
    (machine, secrets)
}

/// Everything that the tools tell of the archive, asked as widely as they can be.
fn everything(client: &Client, secrets: &[String]) -> Vec<(String, String)> {
    let mut told = Vec::new();
    let mut ask = |tool: &str, list: &str, arguments: Value| {
        let items = client.all(tool, list, arguments.clone());
        told.push((format!("{tool} {arguments}"), Value::Array(items.clone()).to_string()));
        items
    };
    for session in ask("list_sessions", "sessions", json!({})) {
        let id = &session["session"];
        for turn in ask("get_session", "turns", json!({ "session": id, "limit": 40_000 })) {
            let of = json!({ "session": id, "turn": turn["turn"], "text_chars": 8_000 });
            for part in ask("get_turn", "parts", of) {
                if let Some(part) = part.get("part") {
                    ask(
                        "get_part",
                        "texts",
                        json!({ "session": id, "part": part, "limit": 2_000 }),
                    );
                }
            }
        }
        ask("get_findings", "findings", json!({ "session": id, "limit": 40_000 }));
        ask(
            "get_thoughtflow",
            "steps",
            json!({ "session": id, "text_chars": 4_000, "limit": 40_000 }),
        );
    }
    for by in ["tool", "project", "failure", "error-path", "model"] {
        ask("get_stats", "rows", json!({ "by": by }));
    }
    ask("list_failures", "failures", json!({}));
    ask("get_findings", "findings", json!({}));
    let item = "adn.tools.edit-reread";
    // Without a session around it, only a secret with a form of its own is known.
    let token = secrets.iter().find(|secret| secret.starts_with("ghp_")).cloned();
    let content = format!("Use {}.", token.unwrap_or_default());
    let read = client.call("get_adaptation", json!({ "id": item }));
    let version = &read["adaptations"][0]["version"];
    let change = json!({ "id": item, "version": version, "content": content, "enabled": true });
    ask("update_adaptation", "adaptations", change);
    ask("list_adaptations", "adaptations", json!({ "enabled": true }));
    ask("get_adaptation", "adaptations", json!({ "id": item, "limit": 40_000 }));
    ask("preview_adaptations", "included_ids", json!({ "agent": "codex", "limit": 40_000 }));
    ask("propose_adaptation", "proposals", json!({ "id": item, "content": content, "why": "x" }));
    ask("reload_adaptations", "changed", json!({}));
    for kind in ["user", "text", "reasoning", "tool", "title"] {
        ask("search_sessions", "hits", json!({ "kind": kind, "query": "e*", "count": 50 }));
    }
    for secret in secrets {
        let quoted = format!("\"{}\"", secret.replace('"', ""));
        let found = client.try_call("search_sessions", json!({ "query": quoted, "count": 50 }));
        // What a client types comes back to it as `understood`: only hits tell.
        let hits = found.map_or(Value::Null, |found| found["hits"].clone());
        told.push((format!("search for a secret: {secret}"), hits.to_string()));
    }
    told
}

#[test]
fn law_12_no_tool_tells_a_secret() {
    let (machine, secrets) = machine();
    let escaped =
        |secret: &String| Value::from(secret.as_str()).to_string().trim_matches('"').to_owned();
    let mut asked = 0;
    for (of, told) in everything(&machine.server(Scope::All), &secrets) {
        asked += 1;
        for secret in &secrets {
            assert!(!told.contains(&escaped(secret)), "{of} tells {secret}:\n{told}");
        }
    }
    assert!(asked > 300, "{asked} answers");
    // The same without rules has them: the secrets are there to be told.
    let raw = machine.client(Scope::All, None, None);
    let raw: String = everything(&raw, &[]).into_iter().map(|(_, told)| told).collect();
    let missing: Vec<&String> = secrets
        .iter()
        .filter(|secret| !secret.contains(['\u{1b}', '\u{200b}', '\u{ad}']))
        .filter(|secret| !raw.contains(&escaped(secret)))
        .collect();
    assert!(missing.len() < 3, "{missing:?}");
}

#[test]
fn a_search_cannot_confirm_a_secret() {
    let (machine, secrets) = machine();
    let client = machine.server(Scope::All);
    let is_word = |secret: &&String| {
        // Half of a short one is a syllable.
        secret.len() >= 14 && secret.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    for secret in secrets.iter().filter(is_word) {
        let half = format!("{}*", &secret[..secret.len() / 2]);
        for query in [secret.as_str(), &half] {
            let found = client.call("search_sessions", json!({ "query": query }));
            let hits = found["hits"].as_array().unwrap();
            // A public prefix such as `ghp_` may stay.
            let tells = hits
                .iter()
                .any(|hit| hit["snippet"].as_str().unwrap().contains(&secret[..secret.len() / 2]));
            assert!(!tells, "{query}: {found:#}");
            if query == secret {
                assert_eq!(hits.len(), 0, "{query}: {found:#}");
            }
        }
    }
}

#[test]
fn hidden_text_is_in_no_answer() {
    let machine = Machine::new();
    let hidden = "\u{e0049}\u{e0067}\u{202e}\u{200b}\u{1b}[31m\u{7}";
    let key = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let mut log = Log::new("66666666-aaaa-4aaa-8aaa-666666666666", "/home/dev/app");
    // Tag characters split the key: without them it would be whole again.
    let split = format!("{}\u{e0041}{}", &key[..12], &key[12..]);
    log.turn(
        &format!("Look{hidden}here"),
        "Hm.",
        "cat",
        &format!("{hidden}x {split}\tend\n"),
        "Done.",
    );
    machine.read_text("log.jsonl", log.text());
    let told: String =
        everything(&machine.server(Scope::All), &[]).into_iter().map(|(_, told)| told).collect();
    // JSON inside of a text has it written out, which a person sees.
    let value = told.replace("\\\\u001b", "").replace("\\\\u0007", "");
    let value = value.replace("\\u001b", "\u{1b}").replace("\\u0007", "\u{7}");
    assert!(!value.contains(|c: char| hidden.contains(c) && !"[31m".contains(c)), "{value}");
    assert!(!told.contains(key) && told.contains("[redacted:github-token:"), "{told}");
    assert!(told.contains("Lookhere"), "{told}");
}

#[test]
fn every_tool_is_tried_for_secrets() {
    let (machine, _) = machine();
    let asked: Vec<String> = everything(&machine.server(Scope::All), &[])
        .into_iter()
        .map(|(of, _)| of.split(' ').next().unwrap().to_owned())
        .collect();
    // Prompts need an agent that writes them down: `get_prompt` goes the same way out.
    for tool in tools::<DatabaseView>().iter().filter(|tool| tool.name != "get_prompt") {
        assert!(asked.iter().any(|asked| asked == tool.name), "{} is not asked", tool.name);
    }
}

#[test]
fn a_filter_does_not_tell_what_an_answer_hides() {
    let token = "ghp_0aZ9qWx7Rt2LmNpKsVb4Yc6Dd8Ee1Ff3Gg5H";
    let machine = Machine::new();
    let project = format!("/home/dev/{token}");
    let mut log = Log::new("66666666-aaaa-4aaa-8aaa-666666666666", &project);
    log.turn("Find fruit", "Hm.", "false", "fruit", "There.");
    machine.read_text("secret.jsonl", log.text());
    let client = machine.server(Scope::All);
    let calls = [
        ("list_sessions", json!({})),
        ("search_sessions", json!({ "query": "fruit" })),
        ("get_stats", json!({})),
        ("get_stats", json!({ "by": "project" })),
    ];
    for (tool, arguments) in calls {
        let answer = |text: &str| {
            let mut arguments = arguments.clone();
            arguments["project"] = json!(text);
            client.try_call(tool, arguments).map_or_else(|it| it, |it| it.to_string())
        };
        assert_ne!(answer("/home/dev"), answer("/home/none"), "{tool}: what is shown can be found");
        for known in [4, 5, 20, token.len() - 1] {
            let (right, wrong) = (&token[..=known], format!("{}_", &token[..known]));
            assert_eq!(answer(right), answer(&wrong), "{tool}: {known} characters");
        }
    }
}
