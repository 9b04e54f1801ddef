//! Law 1 (order is kept) for Gemini CLI: every chat file against the independent reader.

use unspool_model::part::{Body, ToolState};
use unspool_model::session::{Transcript, TurnState};
use unspool_sources::in_memory::SessionSet;

use crate::case::{captures, cases, fold_in, main_session, name};
use crate::harness::{Machine, recorded};
use crate::independent::{Kind, gemini};

fn blocks(transcript: &Transcript) -> Vec<(Kind, String)> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    parts
        .filter_map(|part| match &part.body {
            Body::Text(text) => Some((Kind::Text, text.text.clone())),
            Body::Reasoning(reasoning) => Some((Kind::Reasoning, reasoning.text.clone())),
            Body::Tool(tool) => Some((Kind::Tool, tool.call_id.clone())),
            _ => None,
        })
        .collect()
}

#[test]
fn law_1_order_is_kept_by_gemini() {
    // R-000-01 to R-000-06, R-001-17, R-001-21, R-X-06
    for case in cases("gemini") {
        let chat = gemini::chat(&std::fs::read(case.join("log.jsonl")).unwrap());
        let captures = captures(&case);
        let session_set = fold_in(&captures[..1], &[0]);
        let session = main_session(&session_set);
        let (case, transcript) = (name(&case), session.transcript());
        assert_eq!(blocks(&transcript), chat.blocks, "{case}");
        let prompts =
            transcript.turns.iter().filter_map(|turn| turn.user.iter().find_map(Body::prose));
        assert_eq!(prompts.collect::<Vec<_>>(), chat.prompts, "{case}");
        let (usage, tokens) = (transcript.usage(), chat.tokens);
        let found = (usage.input, usage.output, usage.cache_read);
        assert_eq!(found, (tokens.input, tokens.output, tokens.cache_read), "{case}");
        assert_eq!(session.record_counts.unreadable, 0, "{case}");
        for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
            let Body::Tool(tool) = &part.body else { continue };
            let (text, wrong) = &chat.results[&tool.call_id];
            assert_eq!(tool.output.as_deref(), Some(&**text), "{case} {}", tool.call_id);
            // A command with another exit code than 0 has failed (C-25); the log has it in words.
            let wrong = *wrong || text.contains("\nExit Code: ");
            assert_eq!(tool.state != ToolState::Completed, wrong, "{case} {}", tool.call_id);
        }
    }
}

#[test]
fn the_stream_of_gemini_adds_to_the_chat_and_doubles_nothing() {
    // R-X-03: the stream adds only parts that were cut off.
    let cut = ["error-stream-cut", "interrupted-mid-tool", "interrupted-mid-text"];
    for case in cases("gemini") {
        let captures = captures(&case);
        // `order_acp` compares captures of ACP.
        if captures.len() < 2 || name(&case).starts_with("acp-") {
            continue;
        }
        let chat = gemini::chat(&std::fs::read(case.join("log.jsonl")).unwrap());
        let order: Vec<usize> = (0..captures.len()).collect();
        let session_set = fold_in(&captures, &order);
        let mut found = blocks(&main_session(&session_set).transcript());
        if found != chat.blocks {
            assert!(cut.contains(&&*name(&case)), "{}", name(&case));
            assert_eq!(found.len(), chat.blocks.len() + 1, "{}", name(&case));
            found.pop();
        }
        assert_eq!(found, chat.blocks, "{}", name(&case));
    }
}

const HEAD: &str = r#""sessionId":"s","projectHash":"h","startTime":"2026-11-15T00:00:00.000Z","lastUpdated":"2026-11-15T00:00:00.000Z","kind":"main""#;
const PROMPT: &str =
    r#"{"id":"u1","timestamp":"2026-11-15T00:00:01.000Z","type":"user","content":[{"text":"Go"}]}"#;
const ANSWER: &str = r#"{"id":"g1","timestamp":"2026-11-15T00:00:02.000Z","type":"gemini","content":"Looking.","thoughts":[{"subject":"Look","description":"At it."}],"tokens":{"input":10,"output":5,"cached":4,"thoughts":2,"tool":0,"total":17},"model":"m","toolCalls":[{"id":"c1","name":"read_file","args":{"file_path":"a"},"result":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"text"}}}],"status":"success"}]}"#;

fn chat(file: &str, text: &str) -> Transcript {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, text).unwrap();
    let mut session_set = SessionSet::default();
    session_set.read_file(&path, &mut |_| {}).unwrap();
    main_session(&session_set).transcript()
}

fn expected() -> Vec<(Kind, String)> {
    vec![
        (Kind::Reasoning, "**Look**\n\nAt it.".to_owned()),
        (Kind::Text, "Looking.".to_owned()),
        (Kind::Tool, "c1".to_owned()),
    ]
}

#[test]
fn a_resumed_chat_of_gemini_loses_and_doubles_nothing() {
    // On resume Gemini CLI rewrites the list in the shape of the API: one id for a reply and its
    // results, no metadata, results twice.
    let rewritten = r#"{"$set":{"messages":[{"id":"x","type":"user","content":[{"text":"<session_context>\n- **Workspace Directories:**\n  - /home/a\n</session_context>"}]},{"id":"u1","type":"user","content":[{"text":"Go"}]},{"id":"g1","type":"gemini","content":[{"text":"**Look**\n\nAt it.","thought":true},{"text":"Looking."},{"functionCall":{"id":"c1","name":"read_file","args":{"file_path":"a"}}}]},{"id":"g1","type":"user","content":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"text"}}}]},{"id":"r1","type":"user","content":[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"text"}}}]}]}}"#;
    let next = r#"{"id":"u2","timestamp":"2026-11-15T00:01:00.000Z","type":"user","content":[{"text":"And?"}]}"#;
    let text = format!("{{{HEAD}}}\n{PROMPT}\n{ANSWER}\n{{{HEAD}}}\n{rewritten}\n{next}\n");
    let transcript = chat("session.jsonl", &text);
    assert_eq!(blocks(&transcript), expected());
    assert_eq!(transcript.turns.len(), 2);
    assert_eq!(transcript.session.facts.project.as_deref(), Some("/home/a"));
    let usage = transcript.usage();
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (6, 4, 7, 2));
    // The rewritten list alone gives the same blocks.
    let transcript = chat("session.jsonl", &format!("{{{HEAD}}}\n{rewritten}\n"));
    assert_eq!(blocks(&transcript), expected());
}

#[test]
fn a_chat_of_gemini_may_be_one_document() {
    let text = format!(
        "{{{HEAD},\n  \"messages\": [\n{PROMPT},\n{ANSWER}\n],\n\"summary\":\"A title\"}}\n"
    );
    let transcript = chat("session.json", &text);
    assert_eq!(blocks(&transcript), expected());
    assert_eq!(transcript.session.facts.title.map(|title| title.text).as_deref(), Some("A title"));
}

#[test]
fn a_prompt_that_gemini_forgets_is_kept_and_marked() {
    // Law 4, R-004-17
    let case = crate::case::root().join("fixtures/gemini/error-quota-prompt-removed");
    let captures = captures(&case);
    for count in [1, 2] {
        let order: Vec<usize> = (0..count).collect();
        let session_set = fold_in(&captures[..count], &order);
        let turns = main_session(&session_set).transcript().turns;
        assert_eq!(turns.len(), 1);
        assert_eq!(turns[0].state, TurnState::Failed);
        assert_eq!(turns[0].user.iter().find_map(Body::prose), Some("Check something."));
    }
}

#[test]
fn law_1_order_is_kept_by_the_stream_of_gemini_alone() {
    // Text between two calls of one message is in the stream only: the chat file joins it.
    let mut between = 0;
    for case in cases("gemini") {
        if name(&case).starts_with("acp-") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(case.join("stream.jsonl")) else { continue };
        // Consecutive text deltas join; a tool call and the next run separate them.
        let mut chat: Vec<(Kind, String)> = Vec::new();
        for line in text.lines() {
            let Ok(frame) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            let of = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
            match (frame["type"].as_str(), frame["role"].as_str()) {
                (Some("message"), Some("assistant")) => match chat.last_mut() {
                    Some((Kind::Text, said)) => said.push_str(&of("content")),
                    _ => chat.push((Kind::Text, of("content"))),
                },
                (Some("init"), _) if !chat.is_empty() => chat.push((Kind::Text, String::new())),
                (Some("tool_use"), _) => {
                    between += usize::from(chat.len() > 1);
                    chat.push((Kind::Tool, of("tool_id")));
                }
                _ => {}
            }
        }
        let trimmed = |(kind, said): (Kind, String)| (kind, said.trim().to_owned());
        let chat: Vec<_> =
            chat.into_iter().map(trimmed).filter(|(_, said)| !said.is_empty()).collect();
        let captures = captures(&case);
        let stream = captures.iter().position(|capture| capture.file == "stream.jsonl").unwrap();
        let session_set = fold_in(&captures[stream..=stream], &[0]);
        let found = blocks(&main_session(&session_set).transcript());
        let found: Vec<_> = found.into_iter().map(trimmed).collect();
        assert_eq!(found, chat, "{}", name(&case));
    }
    assert!(between > 0);
}

/// Gemini removes the file of a running session that has no messages yet when another one starts. The
/// session then appends to a new file without a head.
#[test]
fn a_chat_file_that_was_removed_and_made_again_is_the_same_session() {
    const CHAT: &str = ".gemini/tmp/weather-app/chats/session-2026-11-15T00-47-d9db3e93.jsonl";
    let machine = Machine::new();
    let text = String::from_utf8(recorded("gemini/discovery-loop/log.jsonl")).unwrap();
    let (head, rest) = text.split_once('\n').unwrap();
    machine.write(CHAT, format!("{head}\n").as_bytes());
    machine.ok("d", &["sync"]);
    std::fs::remove_file(machine.home().join(CHAT)).unwrap();
    machine.ok("d", &["sync"]);
    // Without the context either, which was in the removed file.
    let (_, rest) = rest.split_once('\n').unwrap();
    machine.write(CHAT, rest.as_bytes());
    machine.ok("d", &["sync"]);
    let listed = machine.json("d", &["list"]);
    let listed: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["agent"], &one["agent_session_id"]))
        .collect();
    let id: serde_json::Value = "d9db3e93-35ea-4bfb-b8f9-fd2461356d10".into();
    assert_eq!(listed, [(&"gemini".into(), &id)]);
    machine.ok("d", &["db", "check"]);

    // Nobody saw the head: it is a session of Gemini nevertheless, once nothing is written any more.
    let file = std::fs::OpenOptions::new().append(true).open(machine.home().join(CHAT)).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
    machine.ok("e", &["sync"]);
    assert_eq!(machine.json("e", &["list"])[0]["agent"], "gemini");
}
