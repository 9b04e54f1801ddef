//! Order: parts keep the place where they were opened, across steps and regardless of clocks.

use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{AgentEnd, ToolEnd};
use unspool_model::history::{AssistantContent, ModelMessage, model_history};
use unspool_model::part::Place;
use unspool_model::provenance::Name;

use crate::script::*;

#[test]
fn a_turn_is_one_ordered_list_over_all_steps() {
    // R-000-01 R-000-02 R-000-03 R-000-06 R-000-14
    let run = reply([
        step("m1"),
        said_in(Reasoning, block("m1", 0), "hm"),
        said_in(Text, block("m1", 1), "I look."),
        called("t1", "Read"),
        step("m2"),
        ended("t1", ToolEnd::Completed, "file"),
        said_in(Reasoning, block("m2", 0), "aha"),
        said_in(Text, block("m2", 1), "Done."),
        over(Completed),
    ]);
    assert_eq!(
        run.parts(),
        [
            r#"reasoning:"hm""#,
            r#"text:"I look.""#,
            r#"tool t1 completed "file""#,
            r#"reasoning:"aha""#,
            r#"text:"Done.""#,
        ]
    );
    assert_eq!(run.transcript().turns.len(), 1);
    let turn = run.turn();
    let steps: Vec<_> =
        turn.parts.iter().map(|part| turn.step_number(part.step.unwrap()).unwrap()).collect();
    assert_eq!(steps, [1, 1, 1, 2, 2]);
}

#[test]
fn a_block_that_began_first_comes_first_though_its_text_arrives_later() {
    // R-000-01: a source that writes a text only when complete reports its beginning.
    let run = reply([
        step("m1"),
        block_begun(block("m1", 0)),
        called("t1", "Read"),
        block_begun(block("m1", 1)),
        ended("t1", ToolEnd::Completed, "file"),
        said_in(Text, block("m1", 0), "I look."),
        called("t2", "Read"),
        over(Completed),
    ]);
    // The second block stays empty.
    assert_eq!(
        run.parts(),
        [r#"text:"I look.""#, r#"tool t1 completed "file""#, "tool t2 interrupted"]
    );
}

#[test]
fn reasoning_of_two_steps_stays_two_parts() {
    // R-000-04
    let nameless = reply([step("m1"), grew(Reasoning, "one"), step("m2"), grew(Reasoning, "two")]);
    assert_eq!(nameless.parts(), [r#"reasoning:"one""#, r#"reasoning…:"two""#]);

    let named = reply([
        step("m1"),
        grew_in(Reasoning, block("m1", 0), "one"),
        step("m2"),
        grew_in(Reasoning, block("m2", 0), "two"),
    ]);
    assert_eq!(named.parts(), [r#"reasoning:"one""#, r#"reasoning…:"two""#]);
}

#[test]
fn the_end_of_a_step_closes_what_it_left_open() {
    // R-000-04, text rule: "A step boundary always closes", and a step's end is a boundary.
    let nameless = reply([step("m1"), grew(Text, "one"), step_over("m1")]);
    assert_eq!(nameless.parts(), [r#"text:"one""#]);
    let next = reply([step("m1"), grew(Text, "one"), step_over("m1"), grew(Text, "two")]);
    assert_eq!(next.parts(), [r#"text:"one""#, r#"text…:"two""#]);
    let named = reply([step("m1"), grew_in(Text, block("m1", 0), "one"), step_over("m1")]);
    assert_eq!(named.parts(), [r#"text:"one""#]);
}

#[test]
fn four_texts_with_tool_batches_between_stay_four() {
    // R-000-05
    let mut script = Vec::new();
    for (nth, text) in ["API types.", "Let me read", "More.", "Done."].into_iter().enumerate() {
        script.extend([step(&format!("m{nth}")), grew(Text, text)]);
        for tool in ["a", "b"] {
            let id = format!("{tool}{nth}");
            script.extend([called(&id, "Read"), ended(&id, ToolEnd::Completed, "")]);
        }
    }
    let parts = reply(script).parts();
    let texts: Vec<_> = parts.iter().filter(|part| part.starts_with("text")).collect();
    assert_eq!(
        texts,
        [r#"text:"API types.""#, r#"text:"Let me read""#, r#"text:"More.""#, r#"text:"Done.""#]
    );
    assert_eq!(parts.len(), 12);
}

#[test]
fn an_orphan_result_stands_where_it_arrived() {
    // R-000-07 R-001-19 R-003-08
    let run =
        reply([grew(Text, "a"), ended("gone", ToolEnd::Completed, "all of it"), grew(Text, "b")]);
    assert_eq!(run.parts(), [r#"text:"a""#, r#"tool gone completed "all of it""#, r#"text…:"b""#]);
}

#[test]
fn a_call_without_a_result_runs_and_then_is_interrupted() {
    // R-000-08 R-001-20
    let mut run = reply([called("t1", "Bash")]);
    assert_eq!(run.parts(), ["tool t1 running"]);
    let turns = run.transcript().turns;
    let unfinished_calls: Vec<_> =
        unspool_model::history::unfinished_calls(&turns).map(|call| call.id).collect();
    assert_eq!(unfinished_calls, ["t1"]);
    run.apply(over(Completed));
    assert_eq!(run.parts(), ["tool t1 interrupted"]);
}

#[test]
fn the_kind_rule_for_nameless_deltas() {
    // R-000-09 R-003-19
    let run = reply([grew(Text, "a"), grew(Text, "b"), grew(Reasoning, "c"), grew(Reasoning, "d")]);
    assert_eq!(run.parts(), [r#"text:"ab""#, r#"reasoning…:"cd""#]);
    // R-000-10 R-003-20
    let run = reply([grew(Text, "a"), called("t1", "Bash"), grew(Text, "b")]);
    assert_eq!(run.parts(), [r#"text:"a""#, "tool t1 running", r#"text…:"b""#]);
    let run = reply([
        called("t1", "Bash"),
        grew(Reasoning, "a"),
        ended("t1", ToolEnd::Completed, ""),
        grew(Reasoning, "b"),
    ]);
    assert_eq!(run.parts(), ["tool t1 completed", r#"reasoning:"a""#, r#"reasoning…:"b""#]);
    // R-000-11 C-05
    let run = reply([grew(Text, "a"), grew(Reasoning, "b"), grew(Text, "c")]);
    assert_eq!(run.parts(), [r#"text:"a""#, r#"reasoning:"b""#, r#"text…:"c""#]);
}

#[test]
fn live_differs_by_a_trailing_open_part_and_running_tools_only() {
    // R-000-15
    let script = [
        said(Text, "a"),
        called("t1", "Bash"),
        ended("t1", ToolEnd::Completed, "x"),
        called("t2", "Bash"),
        grew(Text, "b"),
    ];
    let mut run = reply(script);
    let live = run.parts();
    run.apply_all([ended("t2", ToolEnd::Completed, ""), over(Completed)]);
    let stored = run.parts();
    assert_eq!(live.len(), stored.len());
    let differs: Vec<_> = live.iter().zip(&stored).filter(|(a, b)| a != b).collect();
    assert_eq!(
        differs,
        [
            (&"tool t2 running".to_owned(), &"tool t2 completed".to_owned()),
            (&r#"text…:"b""#.to_owned(), &r#"text:"b""#.to_owned()),
        ]
    );
}

#[test]
fn content_is_the_text_parts_joined_and_follows_them() {
    // R-000-16 R-003-17
    let mut run = reply([
        said(Reasoning, "no"),
        said_in(Text, record("a"), "one "),
        called("t1", "Bash"),
        ended("t1", ToolEnd::Completed, "no"),
        said_in(Text, record("b"), "two"),
        notice(None, "informational"),
    ]);
    assert_eq!(run.turn().content(), "one two");
    run.apply(said_in(Text, record("a"), "One. "));
    assert_eq!(run.turn().content(), "One. two");
}

#[test]
fn content_is_no_part_of_a_turn() {
    // R-000-16 R-000-17 R-004-10: content and reasoning blocks are derived, never set or stored.
    let turn = reply([said(Reasoning, "hm"), said(Text, "a")]).turn();
    let json = serde_json::to_value(&turn).unwrap();
    for derived in ["content", "blocks", "segments"] {
        assert!(json.get(derived).is_none(), "{derived}");
    }
    assert!(json.get("parts").is_some());
}

#[test]
fn history_keeps_calls_and_results_coupled() {
    // R-000-20
    let run = reply([
        step("m1"),
        called("t1", "Read"),
        called("t2", "Read"),
        ended("t2", ToolEnd::Completed, "two"),
        over(Completed),
    ]);
    let turns = run.transcript().turns;
    let history = model_history(&turns);
    let mut calls = Vec::new();
    let mut results = Vec::new();
    for message in &history {
        match message {
            ModelMessage::Assistant(said) => calls.extend(said.iter().filter_map(|said| {
                if let AssistantContent::Call(tool) = said {
                    Some(tool.call_id.as_str())
                } else {
                    None
                }
            })),
            ModelMessage::Results(tool_results) => {
                results.extend(tool_results.iter().map(|result| result.call_id))
            }
            ModelMessage::User(_) => {}
        }
    }
    assert_eq!(calls, ["t1", "t2"]);
    assert_eq!(results, calls);
}

#[test]
fn arrival_orders_and_clocks_do_not() {
    // R-003-02 R-003-22 R-004-04
    let same = reply([called("a", "Bash").at(5), called("b", "Bash").at(5), grew(Text, "c").at(5)]);
    assert_eq!(same.parts(), ["tool a running", "tool b running", r#"text…:"c""#]);
    let back = reply([grew(Text, "a").at(9), called("b", "Bash").at(3), grew(Text, "c").at(1)]);
    assert_eq!(back.parts(), [r#"text:"a""#, "tool b running", r#"text…:"c""#]);
}

#[test]
fn tools_complete_independently_in_any_order() {
    // R-003-22 R-X-06
    let run = reply([
        called("a", "Bash"),
        called("b", "Bash"),
        called("c", "Bash"),
        ended("c", ToolEnd::Completed, "C"),
        ended("a", ToolEnd::Failed, "A"),
    ]);
    assert_eq!(run.parts(), [r#"tool a failed "A""#, "tool b running", r#"tool c completed "C""#]);
}

#[test]
fn tools_without_text_between_make_no_empty_text() {
    // R-003-20 R-003-21
    let mut script = vec![grew(Text, ""), called("t0", "Bash"), grew(Text, "")];
    script.extend((1..4).map(|nth| called(&format!("t{nth}"), "Bash")));
    assert_eq!(reply(script).parts().len(), 4);

    let mut script = vec![grew(Text, "0")];
    for nth in 1..=5 {
        script.extend([called(&format!("t{nth}"), "Bash"), grew(Text, &nth.to_string())]);
    }
    let parts = reply(script).parts();
    assert_eq!(parts.iter().filter(|part| part.starts_with("text")).count(), 6);
    assert_eq!(parts.len(), 11);
}

#[test]
fn the_four_ordering_examples() {
    // R-003-41 R-003-18: each after the end of its stream.
    let text_tool_text = reply([
        grew(Text, "I read."),
        called("t1", "Read"),
        ended("t1", ToolEnd::Completed, "x"),
        grew(Text, "It says x."),
        over(Completed),
    ]);
    assert_eq!(
        text_tool_text.parts(),
        [r#"text:"I read.""#, r#"tool t1 completed "x""#, r#"text:"It says x.""#]
    );

    let with_question = reply([
        grew(Text, "May I?"),
        called("t1", "Bash"),
        ask_question("t1", question(Some("r1"), "Run rm?")),
        answered("t1", unspool_model::part::Decision::Allowed),
        ended("t1", ToolEnd::Completed, "gone"),
        grew(Text, "Done."),
        over(Completed),
    ]);
    assert_eq!(
        with_question.parts(),
        [
            r#"text:"May I?""#,
            r#"tool t1 completed "gone" asked "Run rm?": allowed"#,
            r#"text:"Done.""#
        ]
    );

    let two_tasks = reply([
        grew(Text, "Off they go."),
        called("t1", "Task"),
        agent_started("t1", "a"),
        agent_started("t1", "b"),
        called("t2", "Task"),
        agent_started("t2", "c"),
        agent_ended("t2", "c", AgentEnd::Completed),
        ended("t2", ToolEnd::Completed, "2"),
        agent_ended("t1", "b", AgentEnd::Failed),
        ended("t1", ToolEnd::Completed, "1"),
        grew(Text, "They are back."),
        over(Completed),
    ]);
    assert_eq!(
        two_tasks.parts(),
        [
            r#"text:"Off they go.""#,
            r#"tool t1 completed "1""#,
            "agents of t1: a completed, b failed",
            r#"tool t2 completed "2""#,
            "agents of t2: c completed",
            r#"text:"They are back.""#,
        ]
    );

    let mut in_the_background = reply([
        grew(Text, "It goes on."),
        called("t1", "Task"),
        background_started("t1", "a"),
        ended("t1", ToolEnd::Completed, "launched"),
        grew(Text, "Meanwhile."),
        over(Completed),
    ]);
    let expected = |state: &str| {
        [
            r#"text:"It goes on.""#.to_owned(),
            r#"tool t1 completed "launched""#.to_owned(),
            format!("agents of t1: a {state}"),
            r#"text:"Meanwhile.""#.to_owned(),
        ]
    };
    assert_eq!(in_the_background.parts(), expected("background"));
    assert_eq!(in_the_background.state(), "completed");
    in_the_background.apply(agent_ended("", "a", AgentEnd::Completed));
    assert_eq!(in_the_background.parts(), expected("completed"));
}

/// Two calls at once, and a question that is still open.
#[test]
fn parts_keep_their_places_while_calls_run() {
    // R-003-18 R-003-22
    let two_tools = reply([
        grew(Text, "Both."),
        called("t1", "Read"),
        called("t2", "Grep"),
        ended("t2", ToolEnd::Completed, "2"),
        ended("t1", ToolEnd::Completed, "1"),
        grew(Text, "Done."),
    ]);
    assert_eq!(
        two_tools.parts(),
        [
            r#"text:"Both.""#,
            r#"tool t1 completed "1""#,
            r#"tool t2 completed "2""#,
            r#"text…:"Done.""#
        ]
    );
    let with_question = reply([
        grew(Text, "May I?"),
        called("t1", "Bash"),
        ask_question("t1", question(Some("r1"), "Run rm?")),
        grew(Text, "Waiting."),
    ]);
    assert_eq!(
        with_question.parts(),
        [r#"text:"May I?""#, r#"tool t1 running asks "Run rm?""#, r#"text…:"Waiting.""#]
    );
}

#[test]
fn an_agent_part_takes_its_tools_place_plus_one() {
    // R-003-39 C-16 C-02
    let run = reply([
        called("t1", "Task"),
        called("t2", "Task"),
        grew(Text, "later"),
        agent_started("t1", "a"),
        agent_started("t2", "b"),
        agent_started("t1", "c"),
    ]);
    let turn = run.turn();
    let place = |nth: usize| turn.parts[nth].place;
    assert_eq!(
        run.parts()[..4],
        [
            "tool t1 running",
            "agents of t1: a running, c running",
            "tool t2 running",
            "agents of t2: b running"
        ]
    );
    assert_eq!(place(1), Place(place(0).0 + 1));
    assert_eq!(place(3), Place(place(2).0 + 1));
}

#[test]
fn an_event_for_an_older_turn_does_not_make_it_the_current_one() {
    // R-000-01, `Event::turn`: the named turn, otherwise the feed's current one.
    let run = fold([
        prompt("p1"),
        said(Text, "one"),
        prompt("p2"),
        notice(Some("n1"), "informational").in_turn("p1"),
        said(Text, "two"),
    ]);
    assert_eq!(run.turns(), [vec![r#"text:"one""#, "notice:informational"], vec![r#"text:"two""#]]);
}

#[test]
fn records_before_the_first_prompt_may_arrive_late() {
    let mut early = data(Some("head"), "head", "{}");
    early.turn = Some(Name::Preamble);
    let script = vec![
        prompt("p1"),
        said(Text, "one"),
        over(Completed),
        early,
        prompt("p2"),
        said(Text, "two"),
    ];
    let turns = fold(script).transcript().turns;
    let numbers: Vec<(u32, String)> =
        turns.iter().map(|turn| (turn.number, turn.content())).collect();
    let expected = [(0, ""), (1, "one"), (2, "two")];
    assert_eq!(numbers, expected.map(|(number, text)| (number, text.to_owned())));
}
