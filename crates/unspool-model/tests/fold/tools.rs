//! The tool state machine: forward only, keyed by the call's id.

use unspool_model::change::SkipReason;
use unspool_model::event::EndReason::{Completed, Interrupted};
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::ToolState;

use crate::script::*;

#[test]
fn a_call_and_its_result_are_one_part() {
    // R-001-17 R-001-18 R-000-06 R-003-06
    let mut run = reply([input_grew("t1", "Bash", "{\"q\"")]);
    assert_eq!(run.parts(), ["tool t1 pending"]);
    run.apply(called("t1", "Bash"));
    assert_eq!(run.parts(), ["tool t1 running"]);
    run.apply(output_grew("t1", "par"));
    assert_eq!(run.parts(), [r#"tool t1 running "par""#]);
    run.apply(ended("t1", ToolEnd::Completed, "partial no more"));
    assert_eq!(run.parts(), [r#"tool t1 completed "partial no more""#]);
    let tool = run.tool("t1");
    assert_eq!((tool.name.as_str(), tool.input_text.as_str()), ("Bash", ""));
    assert_eq!(tool.input, Json::parse(r#"{"q":1}"#));
    assert_eq!(run.transcript().turns.len(), 1);
}

#[test]
fn every_end_has_its_state() {
    // R-003-06 R-001-17
    let table = [
        (ToolEnd::Completed, r#"tool t1 completed "o""#),
        (ToolEnd::Failed, r#"tool t1 failed "o""#),
        (ToolEnd::Denied, r#"tool t1 denied "o""#),
        (ToolEnd::Interrupted, r#"tool t1 interrupted "o""#),
        (ToolEnd::Rejected, r#"tool t1 interrupted "o""#),
    ];
    for (end, expected) in table {
        assert_eq!(reply([called("t1", "Bash"), ended("t1", end, "o")]).parts(), [expected]);
    }
}

#[test]
fn a_terminal_state_is_immutable_and_late_news_is_counted() {
    // R-003-07
    use ToolEnd::*;
    let late = [
        tool_started("t1"),
        ended("t1", Completed, ""),
        ended("t1", Failed, ""),
        ended("t1", Interrupted, ""),
        ended("t1", Denied, ""),
    ];
    for (end, state) in [(Completed, "completed"), (Failed, "failed"), (Denied, "denied")] {
        for line in &late {
            let mut run = reply([called("t1", "Bash"), ended("t1", end, "")]);
            run.apply(line.clone());
            assert_eq!(run.parts(), [format!("tool t1 {state}")], "{line:?}");
            let skipped =
                run.skipped(SkipReason::Contradiction) + run.skipped(SkipReason::Duplicate);
            assert_eq!(skipped, 1, "{line:?}");
        }
    }
    for line in [tool_started("t1"), ended("t1", Completed, ""), ended("t1", Failed, "")] {
        let mut run = reply([called("t1", "Bash"), ended("t1", Interrupted, ""), line.clone()]);
        assert_eq!(run.parts(), ["tool t1 interrupted"], "{line:?}");
        assert_eq!(run.skipped(SkipReason::Contradiction), 1, "{line:?}");
        run.apply(called("t1", "Bash"));
        assert_eq!(run.parts(), ["tool t1 interrupted"]);
    }
}

#[test]
fn interrupted_may_become_denied() {
    // Design, tool state: interrupted → denied applies at any time, also in a closed turn.
    let mut run = reply([called("t1", "Bash"), ended("t1", ToolEnd::Interrupted, "")]);
    run.apply_all([over(Interrupted), ended("t1", ToolEnd::Denied, "")]);
    assert_eq!(run.parts()[0], "tool t1 denied");
    // And a rejection with a question is a denial, in whatever order the events arrive.
    let ask = || ask_question("t1", question(None, "Run?"));
    let reject = || ended("t1", ToolEnd::Rejected, "");
    for script in [[ask(), reject()], [reject(), ask()]] {
        let run = reply([called("t1", "Bash")].into_iter().chain(script));
        assert_eq!(run.parts(), [r#"tool t1 denied asked "Run?": denied"#]);
    }
}

#[test]
fn a_refusal_is_reported_as_one_whatever_another_feed_said() {
    // C-25: the exit code is of what a weaker feed took for the end of the call.
    let exit = ToolOutcome { exit_code: Some(3), ..ToolOutcome::default() };
    let run = reply([
        called("t1", "Bash"),
        ended("t1", ToolEnd::Completed, "").stream(),
        refined("t1", exit).stream(),
        ask_question("t1", question(None, "Run?")),
        ended("t1", ToolEnd::Rejected, ""),
    ]);
    let tool = run.tool("t1");
    assert_eq!((tool.state, tool.reported_state), (ToolState::Denied, Some(ToolState::Denied)));
}

#[test]
fn a_result_that_comes_after_the_end_of_the_turn() {
    // R-003-07: interruption by the end rule is terminal as well, for the same feed; the result
    // is a refinement and is kept.
    let run =
        reply([called("t1", "Bash"), over(Interrupted), ended("t1", ToolEnd::Completed, "late")]);
    let (tool, turn) = (run.tool("t1"), run.turn());
    assert_eq!(tool.output.as_deref(), Some("late"));
    // The turn's ending must agree with the tool's state.
    assert_eq!(turn.state.name(), "interrupted");
    assert_eq!(run.parts().last().unwrap(), "notice:interrupted");
}

#[test]
fn an_idle_turn_whose_tool_did_end_after_all_was_not_cut() {
    // R-X-03, law 5: the state of an idle turn depends on the facts, not on their arrival order.
    use unspool_model::event::EndReason::Idle;
    let result = || ended("t1", ToolEnd::Completed, "x");
    let early = reply([called("t1", "Bash"), result(), over(Idle)]);
    let late = reply([called("t1", "Bash"), over(Idle), result()]);
    assert_eq!(early.parts(), [r#"tool t1 completed "x""#]);
    // Either the tool stays interrupted and so does the turn, or both are completed.
    let tool = late.tool("t1").state.name();
    assert_eq!(late.state(), tool, "{:?}", late.parts());
}

#[test]
fn a_repeated_start_keeps_the_first_time() {
    // R-003-08
    let run = reply([
        called("t1", "Bash").at(10),
        tool_started("t1").at(20),
        called("t1", "Bash").at(30),
    ]);
    let part = &run.turn().parts[0];
    assert_eq!(part.started.unwrap().as_second(), 10);
    assert_eq!(run.parts(), ["tool t1 running"]);
}

#[test]
fn start_and_end_times_are_the_sources_own() {
    // R-X-15 R-003-06
    let run = reply([called("t1", "Bash").at(100), ended("t1", ToolEnd::Completed, "").at(107)]);
    let part = &run.turn().parts[0];
    assert_eq!(part.started.unwrap().as_second(), 100);
    assert_eq!(part.ended.unwrap().as_second(), 107);
}

#[test]
fn results_are_matched_by_id_and_never_by_position() {
    // R-X-06
    let run = reply([
        called("a", "Read"),
        called("b", "Read"),
        ended("b", ToolEnd::Failed, "no b"),
        ended("a", ToolEnd::Completed, "a"),
    ]);
    assert_eq!(run.parts(), [r#"tool a completed "a""#, r#"tool b failed "no b""#]);
}

#[test]
fn refinements_commute() {
    // Design, tool state: refinements apply at any time, also in a closed turn, and commute.
    let exit = ToolOutcome { exit_code: Some(3), ..ToolOutcome::default() };
    let took = ToolOutcome { duration_ms: Some(7), ..ToolOutcome::default() };
    let lines = [
        ended("t1", ToolEnd::Failed, "out"),
        refined("t1", exit),
        refined("t1", took),
        over(Completed),
    ];
    let mut seen = Vec::new();
    for order in [[0, 1, 2, 3], [1, 2, 0, 3], [0, 3, 2, 1], [2, 0, 3, 1]] {
        let mut run = reply([called("t1", "Bash")]);
        run.apply_all(order.map(|nth: usize| lines[nth].clone()));
        seen.push((run.tool("t1"), run.state()));
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:#?}");
    assert_eq!((seen[0].0.exit_code, seen[0].0.duration_ms), (Some(3), Some(7)));
}

#[test]
fn a_call_inside_a_call_keeps_its_parent() {
    // Design, tool: parent call id.
    use unspool_model::event::EventKind;
    let mut line = called("inner", "Read");
    if let EventKind::ToolCalled(call) = &mut line.kind {
        call.parent_call_id = Some("outer".to_owned());
    }
    let run = reply([called("outer", "Script"), line]);
    assert_eq!(run.tool("inner").parent_call_id.as_deref(), Some("outer"));
}

#[test]
fn what_opens_a_tool_without_its_name_does_not_hold_the_name() {
    // R-003-08 R-003-11, several feeds: a weaker feed may always set a field that is unset.
    for opener in [ended("t1", ToolEnd::Completed, "x"), tool_started("t1"), output_grew("t1", "x")]
    {
        let run = reply([opener.clone(), prompt("p1").stream(), called("t1", "Bash").stream()]);
        assert_eq!(run.tool("t1").name, "Bash", "{opener:?}");
    }
}

#[test]
fn output_streamed_by_two_feeds_is_not_doubled() {
    // Several feeds: existing output is never doubled.
    let run = reply([
        called("t1", "Bash"),
        prompt("p1").stream(),
        called("t1", "Bash").stream(),
        output_grew("t1", "one\n").stream(),
        output_grew("t1", "one\n"),
    ]);
    assert_eq!(run.parts(), [r#"tool t1 running "one\n""#]);
    let run = reply([
        prompt("p1").stream(),
        input_grew("t1", "Bash", "{}").stream(),
        input_grew("t1", "Bash", "{}"),
    ]);
    assert_eq!(run.tool("t1").input_text, "{}");
}

#[test]
fn late_news_of_an_unknown_call_leaves_nothing_running_in_an_ended_turn() {
    // R-X-02 R-000-08 R-X-11
    for late in [
        tool_started("t9"),
        output_grew("t9", "x"),
        input_grew("t9", "Bash", "{"),
        refined("t9", ToolOutcome { exit_code: Some(1), ..ToolOutcome::default() }),
        ask_question("t9", question(None, "Run?")),
    ] {
        let run = reply([said(Text, "a"), over(Completed), late.clone()]);
        let tool = run.tool("t9");
        let running = run.state() == "running";
        assert!(running || tool.state.is_terminal(), "{late:?}: {:?}", run.parts());
    }
}
