//! Turns in a short notation, and the histories expected from them.

use proptest::prelude::*;

use super::*;
use crate::id::{Id, PartId, TurnId};
use crate::part::{Compaction, Failure, Interjection, Notice, Place, SkillLoad, Text};
use crate::provenance::Origin;
use crate::session::{Trigger, TurnState};

fn text(text: &str) -> Body {
    Body::Text(Text { text: text.into(), ..Text::default() })
}

fn reasoning(text: &str) -> Body {
    Body::Reasoning(Reasoning { text: text.into(), ..Reasoning::default() })
}

fn tool(call_id: &str, state: ToolState, output: Option<&str>) -> Body {
    Body::Tool(Box::new(Tool {
        call_id: call_id.into(),
        name: "Read".into(),
        input: Json::parse("{}"),
        state,
        output: output.map(Into::into),
        ..Tool::default()
    }))
}

fn done(call_id: &str) -> Body {
    tool(call_id, ToolState::Completed, Some("ok"))
}

fn step(number: u8) -> Option<StepId> {
    (number > 0).then(|| StepId(Id::derive([[number].as_slice()])))
}

/// A turn of these parts, each with the number of its step; 0 is a part without one.
fn turn(number: u32, prompt: &str, parts: Vec<(u8, Body)>) -> Turn {
    let parts = parts.into_iter().enumerate().map(|(at, (step_number, body))| Part {
        id: PartId(Id::derive([at.to_le_bytes().as_slice()])),
        place: Place(at as i64 * 2),
        step: step(step_number),
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    });
    Turn {
        id: TurnId(Id::derive([number.to_le_bytes().as_slice()])),
        number,
        trigger: Trigger::User,
        user: vec![text(prompt)],
        thinking_mode: true,
        state: TurnState::Completed,
        abandoned: false,
        inherited: false,
        started: None,
        ended: None,
        steps: Vec::new(),
        parts: parts.collect(),
        origin: Default::default(),
    }
}

/// One line for each message: `user: hello`, `assistant: think(…) say call(a)`, `results: a=ok`.
fn written(turns: &[Turn]) -> Vec<String> {
    let lines = model_history(turns).into_iter().map(|message| match message {
        ModelMessage::User(given) => {
            let words = given.iter().map(|given| match given {
                UserContent::Text(text) => (*text).to_owned(),
                UserContent::File(_) => "file".to_owned(),
                UserContent::Context(text) => format!("({text})"),
            });
            format!("user: {}", words.collect::<Vec<_>>().join(" "))
        }
        ModelMessage::Assistant(said) => {
            let words = said.iter().map(|said| match said {
                AssistantContent::Text(text) => (*text).to_owned(),
                AssistantContent::Reasoning(reasoning) => format!("think({})", reasoning.text),
                AssistantContent::Call(tool) => format!("call({})", tool.call_id),
                AssistantContent::File(_) => "file".to_owned(),
            });
            format!("assistant: {}", words.collect::<Vec<_>>().join(" "))
        }
        ModelMessage::Results(results) => {
            let words = results.iter().map(|result| {
                let flags = if result.synthetic { "!" } else { "" };
                format!("{}={}{flags}", result.call_id, result.text)
            });
            format!("results: {}", words.collect::<Vec<_>>().join(" "))
        }
    });
    lines.collect()
}

#[test]
fn each_turn_has_a_user_group_and_then_an_assistant_group() {
    // R-004-15
    let mut turns = [turn(1, "one", vec![(1, text("a"))]), turn(2, "two", vec![])];
    turns[1].thinking_mode = false;
    let groups: Vec<_> = message_groups(&turns)
        .map(|group| match group {
            MessageGroup::User { turn, items } => format!("user {} {}", turn.number, items.len()),
            MessageGroup::Assistant { turn, items, thinking_mode } => {
                format!("assistant {} {} {thinking_mode}", turn.number, items.len())
            }
        })
        .collect();
    assert_eq!(groups, ["user 1 1", "assistant 1 1 true", "user 2 1", "assistant 2 0 false"]);
}

#[test]
fn each_step_is_a_message_with_its_results_right_behind() {
    let turns = [turn(
        1,
        "go",
        vec![
            (1, reasoning("hm")),
            (1, text("let me see")),
            (1, done("a")),
            (1, done("b")),
            (2, done("c")),
            (3, text("found")),
        ],
    )];
    assert_eq!(
        written(&turns),
        [
            "user: go",
            "assistant: think(hm) let me see call(a) call(b)",
            "results: a=ok b=ok",
            "assistant: call(c)",
            "results: c=ok",
            "assistant: found",
        ]
    );
}

#[test]
fn a_text_behind_a_call_of_the_same_step_stays_in_its_message() {
    let turns = [turn(1, "go", vec![(1, done("a")), (1, text("and")), (1, done("b"))])];
    assert_eq!(
        written(&turns),
        ["user: go", "assistant: call(a) and call(b)", "results: a=ok b=ok"]
    );
}

#[test]
fn without_steps_the_model_going_on_begins_one() {
    let turns = [turn(
        1,
        "go",
        vec![(0, text("x")), (0, done("a")), (0, done("b")), (0, reasoning("y")), (0, text("z"))],
    )];
    assert_eq!(
        written(&turns),
        ["user: go", "assistant: x call(a) call(b)", "results: a=ok b=ok", "assistant: think(y) z"]
    );
}

#[test]
fn a_call_without_a_result_gets_one_that_says_so() {
    // R-000-20
    let parts = vec![
        (1, tool("a", ToolState::Completed, None)),
        (1, tool("b", ToolState::Failed, Some("no such file"))),
        (1, tool("c", ToolState::Denied, None)),
        (1, tool("d", ToolState::Interrupted, None)),
        (1, tool("e", ToolState::Running, Some("half of it"))),
        (1, tool("f", ToolState::Pending, None)),
    ];
    let turns = [turn(1, "go", parts)];
    assert_eq!(
        written(&turns).last().map(String::as_str),
        Some("results: a= b=no such file c=denied! d=interrupted! e=interrupted! f=interrupted!")
    );
}

#[test]
fn a_result_without_a_call_is_left_out() {
    // R-000-07, R-000-20: its call is missing, or it was made inside another call.
    let orphan = Body::Tool(Box::new(Tool {
        call_id: "lost".into(),
        state: ToolState::Completed,
        output: Some("?".into()),
        ..Tool::default()
    }));
    let inner = Body::Tool(Box::new(Tool {
        call_id: "inner".into(),
        parent_call_id: Some("a".into()),
        name: "Bash".into(),
        ..Tool::default()
    }));
    let turns = [turn(1, "go", vec![(1, orphan), (1, done("a")), (1, inner)])];
    assert_eq!(written(&turns), ["user: go", "assistant: call(a)", "results: a=ok"]);
}

#[test]
fn what_the_user_says_between_stands_between() {
    let parts = vec![
        (1, done("a")),
        (1, Body::Interjection(Interjection { text: "and hurry".into() })),
        (2, done("b")),
        (
            2,
            Body::SkillLoad(SkillLoad {
                name: "s".into(),
                call_id: Some("b".into()),
                text: "how to".into(),
            }),
        ),
        (3, text("done")),
    ];
    assert_eq!(
        written(&[turn(1, "go", parts)]),
        [
            "user: go",
            "assistant: call(a)",
            "results: a=ok",
            "user: and hurry",
            "assistant: call(b)",
            "results: b=ok",
            "user: (how to)",
            "assistant: done",
        ]
    );
}

#[test]
fn a_compaction_takes_the_place_of_what_was_before() {
    let compaction = |summary: &str| {
        Body::Compaction(Compaction { summary: summary.into(), ..Compaction::default() })
    };
    let turns = [
        turn(1, "one", vec![(1, done("a")), (2, text("x"))]),
        turn(2, "two", vec![(3, done("b")), (0, compaction("so far")), (4, text("y"))]),
        turn(3, "three", vec![(0, compaction("")), (5, text("z"))]),
    ];
    assert_eq!(written(&turns), ["user: (so far)", "assistant: y", "user: three", "assistant: z"]);
}

#[test]
fn what_was_rewound_away_and_what_is_not_for_the_model_is_left_out() {
    let notes = vec![
        (1, Body::Notice(Notice { code: "interrupted".into(), text: "stopped".into() })),
        (1, Body::Error(Failure { text: "overloaded".into(), ..Failure::default() })),
    ];
    let mut turns = [turn(1, "one", vec![(1, text("x"))]), turn(2, "two", notes)];
    turns[0].abandoned = true;
    assert_eq!(written(&turns), ["user: two"]);
}

#[test]
fn tool_calls_are_listed_in_order() {
    // R-001-26, R-001-20
    let turns = [
        turn(1, "one", vec![(1, done("a")), (1, text("x"))]),
        turn(
            2,
            "two",
            vec![
                (1, tool("b", ToolState::Failed, Some("exit 1"))),
                (1, tool("c", ToolState::Interrupted, None)),
                (1, tool("d", ToolState::Running, None)),
                (1, tool("e", ToolState::Pending, None)),
            ],
        ),
    ];
    let calls: Vec<_> = tool_calls(&turns)
        .map(|call| {
            assert_eq!(call.name, "Read");
            assert_eq!(call.input.map(Json::text), Some("{}"));
            (call.order, call.turn.number, call.id, call.output, call.error, call.state)
        })
        .collect();
    assert_eq!(
        calls,
        [
            (0, 1, "a", Some("ok"), None, ToolState::Completed),
            (1, 2, "b", None, Some("exit 1"), ToolState::Failed),
            (2, 2, "c", None, Some("interrupted"), ToolState::Interrupted),
            (3, 2, "d", None, None, ToolState::Running),
            (4, 2, "e", None, None, ToolState::Pending),
        ]
    );
    let unfinished_calls: Vec<_> = unfinished_calls(&turns).map(|call| call.id).collect();
    assert_eq!(unfinished_calls, ["d", "e"]);
}

fn any_body() -> impl Strategy<Value = Body> {
    let states = vec![
        ToolState::Pending,
        ToolState::Running,
        ToolState::Completed,
        ToolState::Failed,
        ToolState::Denied,
        ToolState::Interrupted,
    ];
    prop_oneof![
        Just(text("x")),
        Just(reasoning("x")),
        Just(Body::Interjection(Interjection { text: "x".into() })),
        Just(Body::Compaction(Compaction { summary: "x".into(), ..Compaction::default() })),
        Just(Body::Notice(Notice::default())),
        ("[a-z]{8}", prop::sample::select(states), prop::option::of(Just("out")))
            .prop_map(|(id, state, output)| tool(&id, state, output)),
    ]
}

proptest! {
    #[test]
    fn calls_and_results_are_always_coupled(
        turns in prop::collection::vec(prop::collection::vec((0u8..4, any_body()), 0..12), 0..4)
    ) {
        // R-000-20
        let turns: Vec<Turn> = (1..).zip(turns).map(|(at, parts)| turn(at, "go", parts)).collect();
        let mut open: Vec<&str> = Vec::new();
        for message in model_history(&turns) {
            match &message {
                ModelMessage::Results(results) => {
                    let answered: Vec<&str> = results.iter().map(|result| result.call_id).collect();
                    prop_assert_eq!(&open, &answered);
                    open.clear();
                }
                ModelMessage::User(given) => prop_assert!(open.is_empty() && !given.is_empty()),
                ModelMessage::Assistant(said) => {
                    prop_assert!(open.is_empty() && !said.is_empty());
                    for said in said {
                        if let AssistantContent::Call(tool) = said {
                            open.push(&tool.call_id);
                        }
                    }
                }
            }
        }
        prop_assert!(open.is_empty());
    }
}
