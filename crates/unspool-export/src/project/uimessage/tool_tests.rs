use serde_json::{Value, json};
use unspool_model::id::{Id, PartId, SessionId};
use unspool_model::json::Json;
use unspool_model::part::{
    Answer, Decision, Question, QuestionItem, QuestionKind, Tool, ToolState,
};
use unspool_model::session::{Facts, Session, SessionState};

use super::super::UiMessage;
use super::super::stream::{ChunkEncoder, Rewritten};
use super::part;
use crate::project::Sdk;

fn tool(state: ToolState, output: Option<&str>) -> Tool {
    Tool {
        call_id: "c1".to_owned(),
        name: "read".to_owned(),
        input: Json::parse(r#"{"path":"a"}"#),
        output: output.map(str::to_owned),
        state,
        ..Tool::default()
    }
}

fn tool_with_question(answer: Option<Decision>) -> Tool {
    let items = vec![QuestionItem { question: "Allow?".to_owned(), ..QuestionItem::default() }];
    let request_id = Some("q1".to_owned());
    let answer = answer.map(|decision| Answer {
        decision,
        text: "as you like".to_owned(),
        choices: Vec::new(),
        observed: true,
        by: None,
    });
    let question = Some(Question { request_id, kind: QuestionKind::Permission, items });
    Tool { question, answer, ..tool(ToolState::Running, None) }
}

fn id() -> Id {
    Id::derive([b"part".as_slice()])
}

fn session() -> Session {
    Session {
        id: SessionId(id()),
        agent: "codex".to_owned(),
        agent_session_id: "s".to_owned(),
        facts: Facts::default(),
        state: SessionState::Idle,
        parent: None,
        forked_from: None,
    }
}

fn projected(tool: &Tool, sdk: Sdk) -> Value {
    serde_json::to_value(part(&session(), PartId(id()), tool, sdk)).unwrap()
}

/// Each state with exactly the fields that it may have.
// R-001-04, C-03, C-04
#[test]
fn a_tool_has_the_fields_of_its_state() {
    let whole = json!({ "path": "a" });
    let part = |state: &str| json!({ "type": "tool-read", "toolCallId": "c1", "state": state });
    let with = |state: &str, more: Value| {
        let mut part = part(state);
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        part
    };
    let how = |state: &str| json!({ "unspool": { "state": state } });
    let failed = "output-error";
    let cases = [
        (
            Tool {
                input: None,
                input_text: "{\"path\":\"a".to_owned(),
                ..tool(ToolState::Pending, None)
            },
            with("input-streaming", json!({ "input": whole, "rawInput": "{\"path\":\"a" })),
        ),
        (tool(ToolState::Running, None), with("input-available", json!({ "input": whole }))),
        (
            tool(ToolState::Completed, Some("x")),
            with("output-available", json!({ "input": whole, "output": "x" })),
        ),
        (
            tool(ToolState::Failed, Some("no")),
            with(failed, json!({ "input": whole, "errorText": "no" })),
        ),
        (
            tool(ToolState::Denied, Some("no")),
            with(
                failed,
                json!({ "input": whole, "errorText": "no", "callProviderMetadata": how("denied") }),
            ),
        ),
        (
            tool(ToolState::Interrupted, Some("stopped")),
            with(
                failed,
                json!({ "input": whole, "errorText": "stopped", "callProviderMetadata": how("interrupted") }),
            ),
        ),
        // C-04: only a call that may still run is without a result (R-001-20).
        (
            tool(ToolState::Interrupted, None),
            with(
                failed,
                json!({ "input": whole, "errorText": "interrupted", "callProviderMetadata": how("interrupted") }),
            ),
        ),
    ];
    for (tool, expected) in cases {
        assert_eq!(projected(&tool, Sdk::Common), expected, "{:?}", tool.state);
    }
    let newer = [
        (
            tool_with_question(None),
            with("approval-requested", json!({ "input": whole, "approval": { "id": "q1" } })),
        ),
        (
            tool_with_question(Some(Decision::Allowed)),
            with(
                "approval-responded",
                json!({ "input": whole, "approval": { "id": "q1", "approved": true, "reason": "as you like" } }),
            ),
        ),
        (
            Tool { state: ToolState::Denied, ..tool_with_question(Some(Decision::Denied)) },
            with(
                "output-denied",
                json!({ "input": whole, "approval": { "id": "q1", "approved": false, "reason": "as you like" } }),
            ),
        ),
    ];
    for (tool, expected) in newer {
        assert_eq!(projected(&tool, Sdk::Seven), expected);
    }
}

/// A call without an id uses its part's id.
#[test]
fn a_call_without_an_id_can_be_answered() {
    let nameless = Tool { call_id: String::new(), ..tool(ToolState::Running, None) };
    assert_eq!(projected(&nameless, Sdk::Common)["toolCallId"].as_str().unwrap().len(), 20);
}

fn message(tool: &Tool) -> UiMessage {
    let parts = vec![part(&session(), PartId(id()), tool, Sdk::Common)];
    UiMessage { id: "m".to_owned(), role: "assistant", metadata: Value::Null, parts }
}

// R-001-34: a call's input is streamed as it is written, then whole, then with its outcome.
#[test]
fn an_input_grows_in_a_stream() {
    let writing = |text: &str| {
        let pending = tool(ToolState::Pending, None);
        message(&Tool { input: None, input_text: text.to_owned(), ..pending })
    };
    let mut encoder = ChunkEncoder::new(Sdk::Common);
    let mut kinds = Vec::new();
    for message in [
        writing(""),
        writing("{\"pa"),
        writing("{\"path\":\"a"),
        message(&tool(ToolState::Running, None)),
        message(&tool(ToolState::Completed, Some("x"))),
    ] {
        for chunk in encoder.emit(message).unwrap() {
            kinds.push((chunk.kind, chunk.input_text_delta.unwrap_or_default()));
        }
    }
    let kinds: Vec<(&str, &str)> =
        kinds.iter().map(|(kind, text)| (kind.as_str(), text.as_str())).collect();
    let expected = [
        ("start", ""),
        ("tool-input-start", ""),
        ("tool-input-delta", "{\"pa"),
        ("tool-input-delta", "th\":\"a"),
        ("tool-input-available", ""),
        ("tool-output-available", ""),
    ];
    assert_eq!(kinds, expected);
    let mut encoder = ChunkEncoder::new(Sdk::Common);
    encoder.emit(writing("{\"pa")).unwrap();
    assert_eq!(encoder.emit(writing("{\"no")), Err(Rewritten));
}
