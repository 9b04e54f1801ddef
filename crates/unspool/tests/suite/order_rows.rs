//! Law 1 (order is kept) for rows: the texts of the rows, in order, against a plain reader of them.

use serde_json::Value;
use unspool_model::part::Body;
use unspool_model::session::Turn;

use crate::case::{captures, cases, fold_in, main_session, name};

/// The kinds and texts of a row, or its calls.
fn said(row: &Value) -> Vec<(&'static str, String)> {
    let text = |names: &[&str]| {
        let held = names.iter().find_map(|name| row[name].as_str());
        let block = row["content"][0]["text"].as_str();
        held.or(block).or(row["contentBlocks"][0]["text"].as_str()).map(str::to_owned)
    };
    let words = text(&["text", "content", "message"]);
    if let Some(prompt) = row["prompt"].as_str() {
        let result = row["result"].as_str().map(|result| ("text", result.to_owned()));
        return [("user", prompt.to_owned())].into_iter().chain(result).collect();
    }
    let list = ["contentBlocks", "content", "parts"].iter().find_map(|name| row[name].as_array());
    let is_text = |block: &Value| block["type"] == "text";
    if let Some(blocks) = list.filter(|blocks| row["role"] != "user" || !blocks.iter().all(is_text))
    {
        return blocks.iter().filter_map(block).collect();
    }
    let kind = ["role", "type", "sender"].iter().find_map(|name| row[name].as_str()).unwrap();
    match kind {
        "user" | "human" => vec![("user", words.unwrap())],
        "assistant" | "bot" => {
            let mut all =
                vec![("reasoning", row["thinking"].as_str().unwrap_or_default().to_owned())];
            let content = words.unwrap_or_default();
            let mut calls: Vec<&Value> =
                row["tool_calls"].as_array().into_iter().flatten().collect();
            calls.sort_by_key(|call| call["offset"].as_u64());
            let mut from = 0;
            for call in calls {
                let at = call["offset"].as_u64().map_or(content.len(), |at| at as usize);
                all.push(("text", content[from..at].to_owned()));
                let name = call["name"].as_str().or(call["function"]["name"].as_str());
                all.push(("tool", name.unwrap().to_owned()));
                from = at;
            }
            all.push(("text", content[from..].to_owned()));
            all.retain(|(_, text)| !text.trim().is_empty());
            all
        }
        "think" | "reasoning" => vec![("reasoning", words.unwrap())],
        "tool" if row["tool_call_id"].is_string() => vec![],
        "tool" => vec![("tool", row["name"].as_str().unwrap().to_owned())],
        "system" => vec![("context", words.unwrap())],
        other => vec![("data", other.to_owned())],
    }
}

/// A block of a reply. A result belongs to its call, unless there is none.
fn block(block: &Value) -> Option<(&'static str, String)> {
    let kind = block["type"].as_str().or(block["kind"].as_str()).unwrap();
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    match kind {
        "thinking" => Some(("reasoning", text("thinking"))),
        "text" => Some(("text", text("text"))),
        "tool_call" | "tool_use" => Some(("tool", text("name"))),
        "tool_result" if block["tool_use_id"] == "c9" => Some(("tool", String::new())),
        "tool_result" => None,
        other => Some(("data", other.to_owned())),
    }
}

fn turn_texts(turn: &Turn) -> Vec<(&'static str, String)> {
    let user = turn.user.iter().filter_map(Body::prose).map(|text| ("user", text.to_owned()));
    let parts = turn.parts.iter().filter_map(|part| match &part.body {
        Body::Text(text) => Some(("text", text.text.clone())),
        Body::Reasoning(reasoning) => Some(("reasoning", reasoning.text.clone())),
        Body::Tool(tool) => Some(("tool", tool.name.clone())),
        Body::ContextInfo(info) => Some(("context", info.text.clone())),
        Body::Data(data) if data.kind != "row" => Some(("data", data.kind.clone())),
        _ => None,
    });
    user.chain(parts).collect()
}

#[test]
fn law_1_rows_keep_their_order() {
    // R-004-21 to R-004-23
    let all = cases("rows");
    assert!(all.len() >= 6);
    let mut timed = 0;
    for case in all {
        let captures = captures(&case);
        let rows: Vec<Value> = captures[0]
            .lines
            .iter()
            .map(|line| serde_json::from_slice(&line.bytes).unwrap())
            .collect();
        let expected: Vec<_> = rows.iter().flat_map(said).collect();
        let session_set = fold_in(&captures, &[0]);
        let transcript = main_session(&session_set).transcript();
        let found: Vec<_> = transcript.turns.iter().flat_map(turn_texts).collect();
        assert_eq!(found, expected, "{}", name(&case));
        let mut prompts =
            rows.iter().filter(|row| said(row).iter().any(|(kind, _)| *kind == "user"));
        for turn in &transcript.turns {
            let thought = turn.parts.iter().any(|part| matches!(part.body, Body::Reasoning(_)));
            assert_eq!(turn.thinking_mode, thought, "{}", name(&case));
            let Some(prompt) = (turn.number > 0).then(|| prompts.next().unwrap()) else { continue };
            let at = ["created_at", "timestamp", "at", "ts"]
                .iter()
                .find_map(|name| prompt[name].as_str());
            let at = at.and_then(|at| at.parse::<jiff::Timestamp>().ok());
            assert!(at.is_none() || turn.started == at, "{}: {prompt}", name(&case));
            timed += usize::from(at.is_some());
        }
    }
    assert!(timed > 3, "only {timed} prompts have a time");
}

#[test]
fn rows_repeated_in_another_file_are_merged() {
    // R-004-22: with one more row, and as another file.
    for case in cases("rows") {
        let captures = captures(&case);
        let once = fold_in(&captures, &[0]);
        let [capture] = captures.as_slice() else { panic!("one capture") };
        let mut twice = unspool_sources::in_memory::SessionSet::default();
        for count in [capture.lines.len() - 1, capture.lines.len()] {
            // The first line differs, so it is another source.
            let mut reading = twice.open(&capture.file);
            for line in &capture.lines[..count] {
                let mut bytes = line.bytes.clone();
                bytes.resize(bytes.len() + capture.lines.len() - count, b' ');
                let line = unspool_sources::read::lines::Line { bytes: &bytes, ..line.line() };
                twice.take(&mut reading, line);
            }
            twice.close(reading, &mut |_| {});
        }
        let (once, twice) = (main_session(&once), main_session(&twice));
        let said = |decoded_session: &unspool_sources::in_memory::DecodedSession| {
            decoded_session.transcript().turns.iter().map(turn_texts).collect::<Vec<_>>()
        };
        assert_eq!(said(once), said(twice), "{}", name(&case));
    }
}

#[test]
fn content_is_shown_only_where_parts_are_absent() {
    // R-000-18 R-000-19: one row of an old application, with `parts` of each kind.
    let texts = |parts: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.jsonl");
        let user = r#"{"id":"u","role":"user","parts":[{"type":"text","text":"hi"}]}"#;
        let user = if parts.contains('[') { user } else { r#"{"role":"user","content":"hi"}"# };
        let reply = format!(
            r#"{{"id":"a","role":"assistant",{parts}"thinking":"first","content":"then"}}"#
        );
        std::fs::write(&path, format!("{user}\n{reply}\n")).unwrap();
        let mut session_set = unspool_sources::in_memory::SessionSet::default();
        session_set.read_file(&path, &mut |_| {}).unwrap();
        let transcript = main_session(&session_set).transcript();
        assert_eq!(transcript.turns.len(), 1, "{parts}");
        let prose = transcript.turns[0].parts.iter().filter_map(|part| {
            let kind = part.body.kind().name();
            part.body
                .prose()
                .or(part.body.reasoning().map(|it| it.text.as_str()))
                .map(|it| (kind, it.to_owned()))
        });
        prose.collect::<Vec<_>>()
    };
    let legacy = [("reasoning", "first".to_owned()), ("text", "then".to_owned())];
    assert_eq!(texts(""), legacy);
    assert_eq!(texts(r#""parts":null,"#), legacy);
    assert_eq!(texts(r#""parts":[],"#), []);
    assert_eq!(texts(r#""parts":[{"type":"text","text":"new"}],"#), [("text", "new".to_owned())]);
}
