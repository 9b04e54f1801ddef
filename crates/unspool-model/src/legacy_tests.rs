use super::*;
use crate::assemble::Assembler;
use crate::id::SessionId;
use crate::session::Transcript;
use crate::transcript::TranscriptBuilder;

fn row(said: LegacyRowKind) -> LegacyRow {
    LegacyRow { id: None, at: None, said }
}

fn call(id: &str, offset: usize) -> LegacyCall {
    LegacyCall {
        id: id.to_owned(),
        name: "Bash".to_owned(),
        output: Some("out".to_owned()),
        state: ToolState::Completed,
        offset,
        ..LegacyCall::default()
    }
}

fn fold(rows: &[LegacyRow]) -> Transcript {
    let mut assembler = Assembler::new(SessionId::of("rows", "s"));
    let mut builder = TranscriptBuilder::new("rows", "s");
    for event in events(rows, 0) {
        builder.apply_all(assembler.apply(event));
    }
    builder.into_transcript()
}

/// `number: part part …`, one line a turn.
#[allow(clippy::wildcard_enum_match_arm)] // These tests cover only the kinds above.
fn written(transcript: &Transcript) -> Vec<String> {
    let turn = |turn: &crate::session::Turn| {
        let parts = turn.parts.iter().map(|part| match &part.body {
            Body::Text(text) => format!("{:?}", text.text),
            Body::Reasoning(reasoning) => format!("({})", reasoning.text),
            Body::Tool(tool) => format!("{}:{}", tool.call_id, tool.state.name()),
            Body::Agent(agents) => format!("agents of {}", agents.call_id),
            other => other.kind().name().to_owned(),
        });
        format!("{}: {}", turn.number, parts.collect::<Vec<_>>().join(" "))
    };
    transcript.turns.iter().map(turn).collect()
}

#[test]
fn a_message_with_calls_at_offsets_keeps_its_visible_order() {
    // R-003-55: text, calls and agents keep the places of the segment model.
    let agent = LegacyAgent {
        call_id: "t2".to_owned(),
        id: "a".to_owned(),
        state: AgentState::Completed,
        ..LegacyAgent::default()
    };
    let message = LegacyMessage {
        thinking: "hm".to_owned(),
        content: "Äpfel first. Then more.".to_owned(),
        calls: vec![call("t2", 12), call("t1", 12), call("t3", 99)],
        agents: vec![agent],
    };
    let rows = [row(LegacyRowKind::User("go".to_owned())), row(LegacyRowKind::Message(message))];
    let transcript = fold(&rows);
    assert_eq!(
        written(&transcript),
        [
            r#"1: (hm) "Äpfel first." t2:completed agents of t2 t1:completed " Then more." t3:completed"#
        ]
    );
    assert_eq!(transcript.turns[0].content(), "Äpfel first. Then more.");
}

#[test]
fn a_message_without_parts_shows_its_thinking_and_then_its_content() {
    // R-000-18, R-000-19
    let message = LegacyMessage {
        thinking: "first".to_owned(),
        content: "then".to_owned(),
        ..LegacyMessage::default()
    };
    let transcript =
        fold(&[row(LegacyRowKind::User("go".to_owned())), row(LegacyRowKind::Message(message))]);
    assert_eq!(written(&transcript), [r#"1: (first) "then""#]);
}

#[test]
fn rows_without_turns_are_grouped_by_the_users_words() {
    // R-004-23: a turn extends from a user row to the next one; rows before the first are turn 0.
    let text = |text: &str| row(LegacyRowKind::Text(text.to_owned()));
    let user = |text: &str| row(LegacyRowKind::User(text.to_owned()));
    let rows = [
        text("hello"),
        user("one"),
        row(LegacyRowKind::Think("why".to_owned())),
        row(LegacyRowKind::Tool(call("t1", 0))),
        text("so"),
        text("and"),
        user("two"),
        text("bye"),
    ];
    let transcript = fold(&rows);
    assert_eq!(
        written(&transcript),
        [r#"0: "hello""#, r#"1: (why) t1:completed "so" "and""#, r#"2: "bye""#]
    );
    // The thinking mode of imported turns is inferred.
    let thinking: Vec<bool> = transcript.turns.iter().map(|turn| turn.thinking_mode).collect();
    assert_eq!(thinking, [false, true, false]);
}
