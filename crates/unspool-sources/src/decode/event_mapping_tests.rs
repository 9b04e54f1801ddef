//! R-003-49: how the agents' records map to our events (R-003-18). Each entry of the table is one
//! record, the records before it if they matter, and the expected events with the fields that hold
//! the record's values:
//!
//! ```text
//! tool.start            ToolCalled{name, input}, or ToolStarted if a message named the call
//! tool.complete         ToolEnded{end, outcome{output, result}}
//! subagent.start        AgentStarted{agent{call, id}, name}
//! subagent.complete     AgentEnded{agent{id}, end}
//! permission.requested  QuestionAsked{question{request_id, items}, requested}
//! ```
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::{Format, JsonOutline, Record, claude, copilot, formats, gemini, opencode, recognise};

struct Mapping<'a> {
    format: &'a Format,
    before: Vec<Value>,
    record: Value,
    /// The expected events: exactly these, each with at least these fields.
    events: Value,
}

/// The format of a record, and its events when decoded after others.
fn events(before: &[Value], record: &Value) -> (&'static Format, Value) {
    let text = before.first().unwrap_or(record).to_string();
    let mut outline = JsonOutline::default();
    let (format, _) = recognise(&outline.read(&text).unwrap()).unwrap();
    let mut decoder = (format.decoder)();
    let mut out = Vec::new();
    for (line, record) in (0..).zip(before.iter().chain([record])) {
        let text = record.to_string();
        let fields = outline.read(&text).unwrap();
        // Only the first line of a Gemini chat says whose it is.
        let later = line > 0 && format.name == gemini::LOG.name;
        let taken = (format.recognise)(&fields).is_some() || later;
        assert!(taken, "{} takes {text}", format.name);
        out.clear();
        let record = Record { source: 0, line, offset: line * 1000, text: &text };
        decoder.decode(&record, &fields, &mut out);
    }
    (format, out.iter().map(|event| serde_json::to_value(&event.kind).unwrap()).collect())
}

/// True if a value has all expected fields. Lists must have the expected length.
fn has(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| has(value.get(name).unwrap_or(&Value::Null), expected)),
        (Value::Array(value), Value::Array(expected)) => {
            value.len() == expected.len() && value.iter().zip(expected).all(|(v, e)| has(v, e))
        }
        (value, expected) => value == expected,
    }
}

fn check(table: Vec<Mapping<'_>>) {
    for Mapping { format, before, record, events: expected } in table {
        let (detected, mapped) = events(&before, &record);
        assert_eq!(detected.name, format.name, "{record}");
        assert!(formats().any(|listed| listed.name == detected.name));
        assert!(has(&mapped, &expected), "{record}\nbecame   {mapped}\nand not  {expected}");
    }
}

#[test]
fn claude_codes_hooks_and_requests() {
    // R-003-49 R-003-28
    let hook = |event: &str, rest: Value| {
        let mut payload = rest;
        payload["hook_event_name"] = json!(event);
        payload["session_id"] = json!("s");
        payload["transcript_path"] = json!("/p/s.jsonl");
        payload
    };
    let call = |event: &str, tool: &str, input: &Value, rest: (&str, Value)| {
        let mut payload = json!({"tool_name": tool, "tool_input": input, "tool_use_id": "t1"});
        payload[rest.0] = rest.1;
        hook(event, payload)
    };
    let list = json!({"command": "ls"});
    let questions = json!({"questions": [{"question": "Which?", "header": "Unit",
        "options": [{"label": "Celsius", "description": "C"}], "multiSelect": false}]});
    let question_items = json!([{"question": "Which?", "header": "Unit",
        "options": [{"label": "Celsius", "description": "C"}], "multi_select": false}]);
    let task = json!({"subagent_type": "Explore", "description": "Look", "prompt": "Look around"});
    let mut in_background = task.clone();
    in_background["run_in_background"] = json!(true);
    let id = json!({"id": "t1"});
    let hooks = |before: Vec<Value>, record: Value, events: Value| Mapping {
        format: &claude::HOOKS,
        before,
        record,
        events,
    };
    check(vec![
        hooks(
            vec![],
            call("PreToolUse", "Bash", &list, ("cwd", json!("/w"))),
            json!([{"tool-called": {"call": id, "name": "Bash", "input": list}}]),
        ),
        hooks(
            vec![],
            call("PostToolUse", "Bash", &list, ("tool_response", json!({"stdout": "a.txt"}))),
            json!([{"tool-ended": {"call": id, "end": "completed",
                "outcome": {"output": "a.txt", "result": {"stdout": "a.txt"}}}}]),
        ),
        hooks(
            vec![],
            call("PostToolUseFailure", "Bash", &list, ("error", json!("no such file"))),
            json!([{"tool-ended": {"call": id, "end": "failed",
                "outcome": {"output": "no such file"}}}]),
        ),
        // The call starts the agent and describes its task. `SubagentStart` names no call, and
        // with two agents at a time it is ambiguous: the result joins the call with the agent.
        hooks(
            vec![],
            call("PreToolUse", "Agent", &task, ("cwd", json!("/w"))),
            json!([{"tool-called": {"name": "Agent"}}, {"agent-started":
                {"agent": {"call": "t1", "id": null}, "name": "Explore", "task": "Look",
                "background": false}}]),
        ),
        // R-003-28
        hooks(
            vec![],
            call("PreToolUse", "Agent", &in_background, ("cwd", json!("/w"))),
            json!([{"tool-called": {"name": "Agent"}}, {"agent-started":
                {"agent": {"call": "t1", "id": null}, "background": true}}]),
        ),
        hooks(
            vec![],
            hook("SubagentStart", json!({"agent_id": "a1", "agent_type": "Explore"})),
            json!([]),
        ),
        hooks(
            vec![],
            hook("SubagentStop", json!({"agent_id": "a1", "agent_type": "Explore"})),
            json!([{"agent-ended": {"agent": {"id": "a1"}, "end": "completed"}}]),
        ),
        hooks(
            vec![call("PreToolUse", "AskUserQuestion", &questions, ("cwd", json!("/w")))],
            hook(
                "PermissionRequest",
                json!({"tool_name": "AskUserQuestion", "tool_input": questions}),
            ),
            json!([{"question-asked": {"call": id, "requested": true,
                "question": {"kind": "choice", "items": question_items}}}]),
        ),
        Mapping {
            format: &claude::STREAM,
            before: vec![],
            record: json!({"type": "control_request", "request_id": "r1", "request":
                {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "t1",
                "input": questions}}),
            events: json!([{"question-asked": {"call": id, "tool": "AskUserQuestion",
                "question": {"request_id": "r1", "kind": "choice", "items": question_items},
                "requested": true}}]),
        },
    ]);
}

#[test]
fn opencodes_events() {
    // R-003-49
    let event = |kind: &str, body: Value| {
        let mut properties = body;
        properties["sessionID"] = json!("ses_a");
        json!({"id": "evt_1", "type": kind, "properties": properties})
    };
    let info = |info: Value| event("message.updated", json!({"info": info}));
    let part = |message: &str, rest: Value| {
        let mut part = rest;
        part["id"] = json!("prt_1");
        part["messageID"] = json!(message);
        event("message.part.updated", json!({"part": part}))
    };
    let tool = |tool: &str, state: Value| {
        part("msg_2", json!({"type": "tool", "tool": tool, "callID": "c1", "state": state}))
    };
    let before = || {
        vec![
            info(json!({"id": "msg_1", "role": "user"})),
            info(json!({"id": "msg_2", "role": "assistant", "parentID": "msg_1"})),
        ]
    };
    let call = json!({"id": "msg_2/c1"});
    let list = json!({"command": "ls"});
    let running = tool("bash", json!({"status": "running", "input": list}));
    let input = json!({"subagent_type": "explore", "description": "Look"});
    let child = json!({"sessionId": "ses_b"});
    let task = tool("task", json!({"status": "running", "input": input, "metadata": child}));
    let mapped = |more: Option<&Value>, record: Value, events: Value| {
        let before = before().into_iter().chain(more.cloned()).collect();
        Mapping { format: &opencode::EVENTS, before, record, events }
    };
    check(vec![
        mapped(
            None,
            running.clone(),
            json!([{"tool-called":
                {"call": call, "name": "bash", "input": list, "running": true}}]),
        ),
        mapped(
            Some(&running),
            tool("bash", json!({"status": "completed", "input": list, "output": "a.txt"})),
            json!([{"tool-ended":
                {"call": call, "end": "completed", "outcome": {"output": "a.txt"}}}]),
        ),
        mapped(
            Some(&running),
            tool("bash", json!({"status": "error", "input": list, "error": "broken"})),
            json!([{"tool-ended":
                {"call": call, "end": "failed", "outcome": {"output": "broken"}}}]),
        ),
        // A part of the kind `agent` is only a mention in the user's message: it starts nothing,
        // and no `step-finish` ends it. The call `task` does both, and names the agent's session.
        mapped(
            None,
            part("msg_1", json!({"type": "agent", "name": "explore"})),
            json!([{"turn-started": {"trigger": "user"}}, {"part":
                [{"record": "prt_1"}, {"context-info":
                    {"title": "Mentioned agent", "text": "explore"}}]}]),
        ),
        mapped(
            None,
            task.clone(),
            json!([{"tool-called": {"name": "task"}}, {"agent-started": {"agent":
                {"call": "msg_2/c1", "id": "ses_b"}, "name": "explore", "task": "Look"}}]),
        ),
        // An agent in the foreground ends with its call.
        mapped(
            Some(&task),
            tool(
                "task",
                json!({"status": "completed", "input": input, "output": "done", "metadata": child}),
            ),
            json!([{"tool-ended":
                {"call": call, "end": "completed", "outcome": {"output": "done"}}}]),
        ),
        mapped(
            None,
            part(
                "msg_2",
                json!({"type": "step-finish", "reason": "stop",
                    "tokens": {"input": 3, "output": 1}}),
            ),
            json!([{"usage-updated": {"step": {"message": "msg_2"}}},
                {"step-ended": {"step": {"message": "msg_2"}, "stop_reason": "stop"}}]),
        ),
        mapped(
            None,
            event(
                "question.asked",
                json!({"id": "que_1", "tool": {"messageID": "msg_2", "callID": "c1"},
                    "questions": [{"question": "Which?", "header": "Unit",
                        "options": [{"label": "Celsius", "description": "C"}]}]}),
            ),
            json!([{"question-asked": {"call": call, "requested": true, "question":
                {"request_id": "que_1", "kind": "choice", "items": [{"question": "Which?",
                    "header": "Unit", "options": [{"label": "Celsius", "description": "C"}]}]}}}]),
        ),
    ]);
}

#[test]
fn copilots_events() {
    // R-003-49
    let event = |kind: &str, data: Value| {
        let at = "2026-11-15T00:49:19.188Z";
        json!({"type": kind, "data": data, "id": "e1", "timestamp": at})
    };
    let of_agent = |kind: &str| {
        let mut event = event(kind, json!({"toolCallId": "t1", "agentName": "explore"}));
        event["agentId"] = json!("a1");
        event
    };
    let start = |tool: &str, arguments: &Value| {
        let data = json!({"toolCallId": "t1", "toolName": tool, "arguments": arguments});
        event("tool.execution_start", data)
    };
    let list = json!({"command": "ls"});
    let task = json!({"agent_type": "explore", "description": "Look"});
    let agent = json!({"call": "t1", "id": "a1"});
    let mapped = |before: Vec<Value>, record: Value, events: Value| Mapping {
        format: &copilot::LOG,
        before,
        record,
        events,
    };
    check(vec![
        mapped(
            vec![],
            start("bash", &list),
            json!([{"tool-called": {"call": {"id": "t1"}, "name": "bash", "input": list}}]),
        ),
        mapped(
            vec![start("bash", &list)],
            event(
                "tool.execution_complete",
                json!({"toolCallId": "t1", "success": true, "result": {"content": "a.txt"}}),
            ),
            json!([{"tool-ended": {"call": {"id": "t1"}, "end": "completed",
                "outcome": {"output": "a.txt"}}}]),
        ),
        mapped(
            vec![start("bash", &list)],
            event(
                "tool.execution_complete",
                json!({"toolCallId": "t1", "success": false, "error": {"message": "broken"}}),
            ),
            json!([{"tool-ended": {"end": "failed", "outcome": {"output": "broken"}}}]),
        ),
        mapped(
            vec![start("task", &task)],
            of_agent("subagent.started"),
            json!([{"agent-started": {"agent": agent, "name": "explore"}}]),
        ),
        mapped(
            vec![start("task", &task)],
            of_agent("subagent.completed"),
            json!([{"agent-ended": {"agent": agent, "end": "completed"}}]),
        ),
        mapped(
            vec![start("task", &task)],
            of_agent("subagent.failed"),
            json!([{"agent-ended": {"agent": agent, "end": "failed"}}]),
        ),
    ]);
}

#[test]
fn both_words_for_the_background_are_read() {
    // R-003-28: agents copy each other's tools, so each decoder reads the mode and the flag.
    let words = [
        (json!({"mode": "background"}), true),
        (json!({"run_in_background": true}), true),
        (json!({"mode": "sync", "run_in_background": false}), false),
        (json!({"mode": true, "run_in_background": "background"}), false),
        (json!({}), false),
    ];
    let message = |id: &str, role: &str| {
        json!({"id": "evt_1", "type": "message.updated", "properties": {"sessionID": "ses_a",
            "info": {"id": id, "role": role, "parentID": "msg_1"}}})
    };
    for (input, background) in words {
        let claude = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w",
            "transcript_path": "/p/s.jsonl", "tool_name": "Agent", "tool_use_id": "t1",
            "tool_input": input});
        let copilot = json!({"type": "tool.execution_start", "id": "e1",
            "timestamp": "2026-11-15T00:49:19.188Z",
            "data": {"toolCallId": "t1", "toolName": "task", "arguments": input}});
        let gemini_head = json!({"sessionId": "s", "projectHash": "p", "kind": "main",
            "startTime": "2026-11-15T00:49:19.188Z"});
        let gemini = json!({"id": "m1", "type": "gemini", "timestamp": "2026-11-15T00:49:20.188Z",
            "content": "", "toolCalls": [{"id": "t1", "name": "invoke_agent", "args": input}]});
        let opencode = json!({"id": "evt_2", "type": "message.part.updated", "properties":
            {"sessionID": "ses_a", "part": {"id": "prt_1", "messageID": "msg_2", "type": "tool",
            "tool": "task", "callID": "c1", "state": {"status": "running", "input": input,
            "metadata": {"sessionId": "ses_b"}}}}});
        let messages = vec![message("msg_1", "user"), message("msg_2", "assistant")];
        let agent = json!([{}, {"agent-started": {"background": background}}]);
        let mapping =
            |format, before, record| Mapping { format, before, record, events: agent.clone() };
        check(vec![
            mapping(&claude::HOOKS, vec![], claude),
            mapping(&copilot::LOG, vec![], copilot),
            mapping(&gemini::LOG, vec![gemini_head], gemini),
            mapping(&opencode::EVENTS, messages, opencode),
        ]);
    }
}
