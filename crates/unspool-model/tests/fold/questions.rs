//! Questions belong to their tool and are never parts: asked, answered, declined.

use unspool_model::change::SkipReason;
use unspool_model::event::EndReason::{Completed, Failed, Idle, Interrupted, Superseded};
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind, QuestionOption};

use crate::script::*;

#[test]
fn a_question_lies_over_its_tool() {
    // R-003-09 R-003-10 R-003-12 R-003-18
    let mut run = reply([
        said(Text, "a"),
        called("t1", "Bash"),
        said(Text, "b"),
        ask_question("t1", question(Some("r1"), "Run?")),
    ]);
    assert_eq!(run.parts(), [r#"text:"a""#, r#"tool t1 running asks "Run?""#, r#"text:"b""#]);
    run.apply(answered("t1", Decision::Allowed));
    assert_eq!(run.parts()[1], r#"tool t1 running asked "Run?": allowed"#);
    run.apply(ended("t1", ToolEnd::Completed, "ok"));
    assert_eq!(run.parts()[1], r#"tool t1 completed "ok" asked "Run?": allowed"#);
    assert_eq!(run.parts().len(), 3);
}

#[test]
fn a_question_keeps_all_that_it_asks() {
    // R-003-09
    let asks = Question {
        request_id: Some("r1".to_owned()),
        kind: QuestionKind::Choice,
        items: vec![QuestionItem {
            header: Some("Unit".to_owned()),
            question: "Which?".to_owned(),
            options: vec![
                QuestionOption { label: "C".to_owned(), description: None },
                QuestionOption { label: "F".to_owned(), description: Some("no".to_owned()) },
            ],
            multi_select: true,
        }],
    };
    let run = reply([called("t1", "AskUserQuestion"), ask_question("t1", asks.clone())]);
    assert_eq!(run.tool("t1").question, Some(asks));
}

#[test]
fn a_request_for_an_unknown_call_makes_its_tool() {
    // R-003-11
    let mut run = reply([said(Text, "a"), ask_question("t1", question(None, "Run?"))]);
    assert_eq!(run.parts(), [r#"text:"a""#, r#"tool t1 pending asks "Run?""#]);
    assert_eq!(run.tool("t1").name, "Bash");
    run.apply_all([called("t1", "Bash"), said(Text, "b")]);
    assert_eq!(run.parts(), [r#"text:"a""#, r#"tool t1 running asks "Run?""#, r#"text:"b""#]);
}

#[test]
fn each_answer_reaches_its_own_tool() {
    // R-003-14
    let run = reply([
        called("a", "Bash"),
        called("b", "Bash"),
        ask_question("a", question(Some("r1"), "A?")),
        ask_question("b", question(Some("r2"), "B?")),
        answered("b", Decision::Denied),
        answered("a", Decision::Allowed),
    ]);
    assert_eq!(
        run.parts(),
        [r#"tool a running asked "A?": allowed"#, r#"tool b running asked "B?": denied"#]
    );
}

#[test]
fn every_end_of_a_turn_declines_its_open_question() {
    // R-003-15 R-X-11 R-X-02
    for reason in [Completed, Failed(None), Interrupted, Idle, Superseded] {
        let run = reply([
            called("t1", "Bash"),
            ask_question("t1", question(None, "Run?")),
            over(reason.clone()),
        ]);
        assert_eq!(run.parts()[0], r#"tool t1 interrupted asked "Run?": declined"#, "{reason:?}");
        let answer = run.tool("t1").answer.unwrap();
        assert!(!answer.observed, "nobody said it: it follows");
    }
    let next =
        reply([called("t1", "Bash"), ask_question("t1", question(None, "Run?")), prompt("p2")]);
    assert_eq!(next.turns()[0][0], r#"tool t1 interrupted asked "Run?": declined"#);
}

#[test]
fn no_prompt_is_active_after_the_turn_ended() {
    // R-X-11: also for a question that arrives late.
    let existing = reply([
        called("t1", "Bash"),
        over(Interrupted),
        ask_question("t1", question(None, "Run?")),
    ]);
    assert!(existing.tool("t1").answer.is_some());
    let unknown =
        reply([said(Text, "a"), over(Interrupted), ask_question("t1", question(None, "Run?"))]);
    assert!(unknown.tool("t1").answer.is_some(), "{:?}", unknown.parts());
}

#[test]
fn a_pending_question_survives_a_restart() {
    // R-X-11
    let run = reply([called("t1", "Bash"), ask_question("t1", question(Some("r1"), "Run?"))]);
    let mut run = run.restarted();
    assert_eq!(run.parts(), [r#"tool t1 running asks "Run?""#]);
    run.apply(answered("t1", Decision::Allowed));
    assert_eq!(run.parts(), [r#"tool t1 running asked "Run?": allowed"#]);
    run.apply_all([ask_question("t1", question(Some("r2"), "Again?"))]);
    assert_eq!(run.skipped(SkipReason::Contradiction), 1);
}

#[test]
fn an_answered_question_is_never_matched_by_a_new_request() {
    // R-X-09: the record of the first question and its answer stays together.
    let mut run = reply([
        called("t1", "Bash"),
        ask_question("t1", question(Some("r1"), "First?")),
        answered("t1", Decision::Allowed),
        ask_question("t1", question(Some("r2"), "Second?")),
    ]);
    assert_eq!(run.parts(), [r#"tool t1 running asked "First?": allowed"#]);
    assert_eq!(run.skipped(SkipReason::Contradiction), 1);
    // A repeat of the same request changes nothing.
    run.apply(ask_question("t1", question(Some("r1"), "First?")));
    assert_eq!(run.parts(), [r#"tool t1 running asked "First?": allowed"#]);
}

#[test]
fn an_answered_question_without_an_id_is_not_matched_either() {
    // R-X-09: the answer to the first question must not be paired with the second one.
    let run = reply([
        called("t1", "Bash"),
        ask_question("t1", question(None, "First?")),
        answered("t1", Decision::Allowed),
        ask_question("t1", question(None, "Second?")),
    ]);
    assert_ne!(run.parts(), [r#"tool t1 running asked "Second?": allowed"#]);
}

#[test]
fn several_questions_get_one_combined_reply() {
    // R-X-09 R-003-13
    let item = |text: &str| QuestionItem { question: text.to_owned(), ..QuestionItem::default() };
    let asks = Question {
        request_id: None,
        kind: QuestionKind::Choice,
        items: vec![item("A?"), item("B?")],
    };
    let answer = Answer {
        decision: Decision::Answered,
        text: "x, y".to_owned(),
        choices: vec![("A?".into(), "x".into()), ("B?".into(), "y".into())],
        observed: true,
    };
    let reported = EventKind::QuestionAnswered { call: call_id("t1"), answer: answer.clone() };
    let run = reply([called("t1", "Ask"), ask_question("t1", asks.clone()), reported.into()]);
    assert_eq!(run.tool("t1").answer, Some(answer));
    assert_eq!(run.parts().len(), 1);
    // One answer declines all of them.
    let declined = answered("t1", Decision::Declined);
    let mut run = reply([called("t1", "Ask"), ask_question("t1", asks.clone()), declined]);
    run.apply(ask_question("t1", asks));
    let tool = run.tool("t1");
    assert_eq!(tool.question.unwrap().items.len(), 2);
    let answer = tool.answer.unwrap();
    assert_eq!((answer.decision, answer.choices.len()), (Decision::Declined, 0));
}

#[test]
fn an_inferred_answer_yields_to_a_reported_one() {
    // R-003-13 R-X-18: an inferred answer is marked, and a reported one always wins.
    let ask = || ask_question("t1", question(None, "Run?"));
    let end = || ended("t1", ToolEnd::Completed, "");
    let inferred = reply([called("t1", "Bash"), ask(), end()]);
    let answer = inferred.tool("t1").answer.unwrap();
    assert_eq!((answer.decision, answer.observed), (Decision::Allowed, false));
    let reported = reply([called("t1", "Bash"), ask(), end(), answered("t1", Decision::Answered)]);
    let answer = reported.tool("t1").answer.unwrap();
    assert_eq!((answer.decision, answer.observed), (Decision::Answered, true));
}

#[test]
fn an_answer_before_its_question_is_kept() {
    // R-003-54, law 4: refinements commute.
    let run = reply([
        called("t1", "Bash"),
        answered("t1", Decision::Denied),
        ask_question("t1", question(Some("r1"), "Run?")),
    ]);
    assert_eq!(run.parts(), [r#"tool t1 running asked "Run?": denied"#]);
}
