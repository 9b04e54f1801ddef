//! Tests of the independent reader: on logs of a few lines, and the log of a recording against its
//! stream.

use std::path::{Path, PathBuf};

use crate::independent::{
    Block, Kind, Tokens, add, hook_questions, hook_questions_of, log, log_of, stream_of,
};
use serde_json::json;

/// `kind message/index text-or-call`.
fn written(blocks: &[Block]) -> Vec<String> {
    let lines = blocks.iter().map(|block| {
        let content = block.call.as_ref().map_or(&block.text, |call| &call.id);
        let flag = if block.abandoned { " abandoned" } else { "" };
        format!("{:?} {}/{} {content}{flag}", block.kind, block.message, block.index)
    });
    lines.collect()
}

fn lines(values: &[serde_json::Value]) -> Vec<u8> {
    values.iter().flat_map(|value| format!("{value}\n").into_bytes()).collect()
}

#[test]
fn blocks_stand_in_the_order_of_their_messages_and_then_of_their_index() {
    let log = log_of(&lines(&[
        json!({"type": "user", "sessionId": "s", "message": {"content": "go"}}),
        json!({"type": "assistant", "apiBlockIndex": 1, "message": {"id": "m1", "model": "x",
            "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}}],
            "usage": {"input_tokens": 4, "output_tokens": 1}}}),
        json!({"type": "assistant", "apiBlockIndex": 0, "message": {"id": "m1", "model": "x",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "…"}],
            "usage": {"input_tokens": 4, "output_tokens": 9, "cache_read_input_tokens": 7}}}),
        json!({"type": "assistant", "message": {"id": "m2", "model": "x",
            "content": [{"type": "text", "text": " \n"}], "usage": {"output_tokens": 2}}}),
        json!({"type": "assistant", "apiBlockIndex": 2, "message": {"id": "m1", "model": "x",
            "content": [{"type": "redacted_thinking", "data": "…"}],
            "usage": {"input_tokens": 4, "output_tokens": 9, "cache_read_input_tokens": 7}}}),
        json!({"type": "assistant", "message": {"id": "m2", "model": "x",
            "content": [{"type": "text", "text": "done"}], "usage": {"output_tokens": 2}}}),
        json!({"type": "assistant", "message": {"id": "m3", "model": "x",
            "content": [{"type": "thinking", "thinking": "", "signature": "…"}]}}),
    ]));
    assert_eq!(
        written(&log.blocks),
        ["Reasoning m1/0 hm", "Tool m1/1 a", "Reasoning m1/2 ", "Text m2/1 done"]
    );
    assert!(log.blocks[2].redacted);
    let call = log.blocks[1].call.as_ref().unwrap();
    assert_eq!((call.name.as_str(), &call.input), ("Read", &json!({"p": 1})));
    assert_eq!(log.tokens, Tokens { input: 4, output: 11, cache_read: 7, cache_creation: 0 });
    assert_eq!((log.session_id.as_deref(), log.records), (Some("s"), 7));
}

#[test]
fn text_of_the_cli_itself_is_separated() {
    let log = log_of(&lines(&[
        json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "u1",
            "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}],
            "usage": {"input_tokens": 5}}}),
        json!({"type": "assistant", "message": {"id": "u2", "model": "<synthetic>",
            "content": [{"type": "text", "text": "No response requested."}]}}),
    ]));
    assert_eq!(written(&log.blocks), ["Error u1/0 API Error", "Text u2/0 No response requested."]);
    assert_eq!(log.tokens, Tokens::default());
}

#[test]
fn a_side_chain_counts_when_the_file_is_one() {
    let said = |side: bool, id: &str| {
        json!({"type": "assistant", "isSidechain": side, "message": {"id": id, "model": "x",
            "content": [{"type": "text", "text": id}], "usage": {"output_tokens": 3}}})
    };
    let mixed = log_of(&lines(&[said(true, "a"), said(false, "b")]));
    assert_eq!(written(&mixed.blocks), ["Text b/0 b"]);
    assert_eq!((mixed.tokens.output, mixed.side_chain_tokens.output), (3, 3));
    let side = log_of(&lines(&[json!({"type": "mode"}), said(true, "a"), said(true, "b")]));
    assert_eq!(written(&side.blocks), ["Text a/0 a", "Text b/0 b"]);
    assert_eq!((side.tokens.output, side.side_chain_tokens.output), (6, 0));
}

#[test]
fn results_are_found_by_the_id_of_their_call() {
    let log = log_of(&lines(&[
        json!({"type": "user", "toolUseResult": "Error: no", "message": {"content":
            [{"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": "no"}]}}),
        json!({"type": "user", "toolUseResult": {"stdout": "x"}, "message": {"content":
        [{"type": "tool_result", "tool_use_id": "a", "content": [
            {"type": "text", "text": "x"}, {"type": "image"}, {"type": "text", "text": "y"}
        ]}]}}),
    ]));
    let result = |id: &str| {
        let result = &log.results[id];
        (result.text.clone(), result.is_error, result.structured.clone())
    };
    assert_eq!(result("a"), ("x\ny".into(), false, json!({"stdout": "x"})));
    assert_eq!(result("b"), ("no".into(), true, json!("Error: no")));
}

#[test]
fn lines_are_counted_and_the_last_cost_counts() {
    let cost = |cost: f64, input: u64| {
        json!({"type": "cost-state", "totalCostUSD": cost, "modelUsage": {
            "m": {"inputTokens": input, "outputTokens": 2, "cacheReadInputTokens": 3,
                  "cacheCreationInputTokens": 4},
            "n": {"inputTokens": 1}}})
    };
    let text = format!("\u{feff}{}\r\n\n{{\"half\n{}\n  \n[1", cost(0.5, 10), cost(0.75, 20));
    let log = log_of(text.as_bytes());
    assert_eq!((log.records, log.unparsable), (4, vec![3, 6]));
    let state = log.cost_state.unwrap();
    assert_eq!(state.tokens, Tokens { input: 21, output: 2, cache_read: 3, cache_creation: 4 });
    assert!((state.cost_usd - 0.75).abs() < f64::EPSILON);
}

#[test]
fn a_stream_is_put_together_from_its_deltas() {
    let event = |event: serde_json::Value| {
        json!({"type": "stream_event", "session_id": "s", "parent_tool_use_id": null,
            "event": event})
    };
    let stream = stream_of(&lines(&[
        json!({"type": "system", "subtype": "hook_started", "session_id": "never"}),
        event(json!({"type": "message_start", "message": {"id": "m1"}})),
        event(json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "thinking", "thinking": ""}})),
        event(json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "h"}})),
        event(json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "tool_use", "id": "a", "name": "Read", "input": {}}})),
        event(json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "m"}})),
        event(json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "{\"p\":"}})),
        event(json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": "1}"}})),
        // Repeats the streamed message.
        json!({"type": "assistant", "parent_tool_use_id": null, "message": {"id": "m1",
            "content": [{"type": "thinking", "thinking": "hm"}]}}),
        // Of a sub-agent.
        json!({"type": "assistant", "parent_tool_use_id": "a", "message": {"id": "m9",
            "content": [{"type": "text", "text": "inner"}]}}),
        event(json!({"type": "message_start", "message": {"id": "m2"}})),
        event(json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": "half"}})),
        event(json!({"type": "message_stop",
            "abandoned_blocks": {"api_message_id": "m2", "from_block_index": 0}})),
        json!({"type": "assistant", "parent_tool_use_id": null, "is_api_error_message": true,
            "message": {"id": "u1", "content": [{"type": "text", "text": "API Error"}]}}),
    ]));
    assert_eq!(
        written(&stream.blocks),
        ["Reasoning m1/0 hm", "Tool m1/1 a", "Text m2/0 half abandoned", "Error u1/0 API Error"]
    );
    assert_eq!(stream.blocks[1].call.as_ref().unwrap().input, json!({"p": 1}));
    assert_eq!(stream.session_ids, ["never", "s"]);
}

#[test]
fn a_question_is_about_the_nearest_equal_call() {
    let payload = |event: &str, command: &str, id: Option<&str>| {
        json!({"hook_event_name": event, "session_id": "s", "tool_name": "Bash",
            "tool_input": {"command": command}, "tool_use_id": id})
    };
    let questions = hook_questions_of(&lines(&[
        payload("PreToolUse", "ls", Some("a")),
        payload("PreToolUse", "rm", Some("b")),
        payload("PermissionRequest", "rm", None),
        payload("PreToolUse", "rm", Some("c")),
        payload("PreToolUse", "rm", Some("d")),
        payload("PermissionRequest", "rm", None),
        payload("PermissionRequest", "rm", None),
        payload("PermissionRequest", "mv", None),
    ]));
    let ids: Vec<_> = questions.iter().map(|question| question.tool_use_id.as_deref()).collect();
    assert_eq!(ids, [Some("b"), Some("d"), Some("c"), None]);
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude-code");
    let entries = root.read_dir().into_iter().flatten().flatten();
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    cases.sort();
    cases
}

#[test]
fn the_log_and_the_stream_of_a_recording_agree() {
    let mut compared = 0;
    for case in cases() {
        let (log_path, stream_path) = (case.join("log.jsonl"), case.join("stream.jsonl"));
        // `order_acp` compares captures of ACP.
        let acp = case.file_name().unwrap().to_string_lossy().starts_with("acp-");
        if !log_path.exists() || !stream_path.exists() || acp {
            continue;
        }
        let mut log = log(&log_path);
        let mut stream = stream_of(&std::fs::read(&stream_path).unwrap());
        assert!(log.session_id.is_none_or(|id| stream.session_ids.contains(&id)), "{case:?}");
        // Discarded blocks are in the stream only. A log may have messages from before the capture,
        // and texts that the CLI writes only to the log.
        stream.blocks.retain(|block| !block.abandoned);
        log.blocks.retain(|block| stream.blocks.iter().any(|said| said.message == block.message));
        assert_eq!(written(&log.blocks), written(&stream.blocks), "{case:?}");
        let kinds = log.blocks.iter().filter(|block| block.kind == Kind::Other).count();
        assert_eq!(kinds, 0, "{case:?}");
        compared += 1;
    }
    assert!(compared >= 40, "{compared}");
}

#[test]
fn every_question_of_a_recording_finds_its_call() {
    let mut checked = 0;
    for case in cases() {
        let path = case.join("hooks.jsonl");
        for question in path.exists().then(|| hook_questions(&path)).into_iter().flatten() {
            let id = question.tool_use_id.unwrap_or_else(|| panic!("{case:?}"));
            let log = log(&case.join("log.jsonl"));
            let own =
                log.blocks.iter().any(|block| block.call.as_ref().is_some_and(|c| c.id == id));
            assert!(own || question.agent_id.is_some(), "{case:?} {id}");
            checked += 1;
        }
    }
    assert!(checked >= 15, "{checked}");
}

/// The agent's own count includes its sub-agents.
#[test]
fn tokens_are_what_the_agent_counted() {
    // Model calls that are in no log: a broken stream, a compaction, a search inside a tool. A fork
    // continues the count of its origin.
    let uncounted = [
        "compaction-and-resume",
        "compaction-automatic-mid-turn",
        "forked-session",
        "interrupted-mid-text",
        "terminal-interrupts-and-queued-prompts",
        "web-search",
    ];
    let mut compared = 0;
    for case in cases() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let path = case.join("log.jsonl");
        let Some(own) = path.exists().then(|| log(&path)) else { continue };
        // The cost has the tokens of other sessions that the ACP adapter ran in the same process.
        let Some(counted) = own.cost_state.filter(|_| !name.starts_with("acp-")) else { continue };
        let agents = case.join("subagents").read_dir().into_iter().flatten().flatten();
        let agents = agents.map(|entry| entry.path());
        let logs = agents.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let sum = logs.fold(own.tokens, |sum, path| add(sum, log(&path).tokens));
        if uncounted.contains(&name.as_str()) {
            assert_ne!(sum, counted.tokens, "{name}");
        } else {
            assert_eq!(sum, counted.tokens, "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 35, "{compared}");
}
