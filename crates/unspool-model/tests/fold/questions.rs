//! Questions belong to their tool and are never parts: asked, answered, declined.

use unspool_model::assemble::Assembler;
use unspool_model::change::SkipReason;
use unspool_model::event::EndReason::{Completed, Failed, Idle, Interrupted, Superseded};
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind, QuestionOption};

use crate::feeds::{agree, keyed, parts as parts_of};
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
    assert_eq!(run.parts(), [r#"tool t1 running first asked "Run?": allowed asks "Again?""#]);
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
    let open = [r#"tool t1 running first asked "First?": allowed asks "Second?""#];
    assert_eq!(run.parts(), open);
    // A repeat of the first request changes nothing.
    run.apply_all([
        ask_question("t1", question(Some("r1"), "First?")),
        answered("t1", Decision::Allowed),
    ]);
    assert_eq!(run.parts(), open);
    run.apply_all([
        ask_question("t1", question(Some("r2"), "Second?")),
        answered("t1", Decision::Denied),
    ]);
    let both = r#"tool t1 running first asked "First?": allowed asked "Second?": denied"#;
    assert_eq!(run.parts(), [both]);
    assert_eq!(run.skipped(SkipReason::Contradiction), 0);
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
    assert_eq!(run.parts(), [r#"tool t1 running first asked "First?": allowed asks "Second?""#]);
}

/// Two questions about one call, as a stream reports them: Codex asks for a command in its sandbox,
/// and again for the same command outside of it.
fn escalation() -> Vec<Line> {
    let lines = vec![
        prompt("p1"),
        called("t1", "Bash"),
        ask_question("t1", question(Some("r1"), "Run?")),
        answered("t1", Decision::Allowed),
        ask_question("t1", question(Some("r2"), "Outside?")),
        answered("t1", Decision::Denied),
    ];
    lines.into_iter().map(Line::stream).collect()
}

const ESCALATED: &str = r#"first asked "Run?": allowed asked "Outside?": denied"#;

#[test]
fn a_second_question_stands_beside_the_first() {
    // R-X-09: each answer stays with its question.
    let run = fold(escalation());
    assert_eq!(run.parts(), [format!("tool t1 running {ESCALATED}")]);
    // The second question stands open until it is answered, whatever was answered before.
    let mut open = fold(escalation().into_iter().take(5));
    assert_eq!(open.parts(), [r#"tool t1 running first asked "Run?": allowed asks "Outside?""#]);
    open.apply(over(Interrupted).stream());
    let declined = r#"tool t1 interrupted first asked "Run?": allowed asked "Outside?": declined"#;
    assert_eq!(open.parts()[0], declined);
    assert!(!open.tool("t1").answer.unwrap().observed);
}

#[test]
fn the_log_beside_two_questions_adds_none() {
    // Law 5. The log has the call and its end only.
    let end = || vec![prompt("p1"), called("t1", "Bash"), ended("t1", ToolEnd::Denied, "no")];
    let transcript = agree(end(), escalation());
    assert_eq!(parts_of(&transcript), [format!(r#"tool t1 denied "no" {ESCALATED}"#)]);
    // The log also has the last word about the call.
    let mut log = end();
    log.push(answered("t1", Decision::Declined));
    let transcript = agree(log, escalation());
    let expected = r#"tool t1 denied "no" first asked "Run?": allowed asked "Outside?": declined"#;
    assert_eq!(parts_of(&transcript), [expected]);
}

#[test]
fn hooks_that_ask_the_same_add_no_question() {
    // Law 5. Hooks have neither request ids nor answers.
    let hooks = vec![
        prompt("p1").hook(),
        ask_question("t1", question(None, "Bash: Run?")).hook(),
        ask_question("t1", question(None, "Bash: Outside?")).hook(),
    ];
    let transcript = agree(escalation(), hooks.clone());
    assert_eq!(parts_of(&transcript), [format!("tool t1 running {ESCALATED}")]);
    // Nor do they with answers of their own.
    let mut answering = hooks;
    answering.insert(2, answered("t1", Decision::Denied).hook());
    answering.push(answered("t1", Decision::Allowed).hook());
    let transcript = agree(escalation(), answering);
    assert_eq!(parts_of(&transcript), [format!("tool t1 running {ESCALATED}")]);
}

#[test]
fn the_account_of_a_stronger_feed_replaces_that_of_a_weaker_one() {
    // Law 5. The log reports one question and its answer.
    let log = vec![
        prompt("p1"),
        called("t1", "Bash"),
        ask_question("t1", question(None, "Logged?")),
        answered("t1", Decision::Allowed),
    ];
    let transcript = agree(log.clone(), escalation());
    assert_eq!(parts_of(&transcript), [r#"tool t1 running asked "Logged?": allowed"#]);
    // It lacks the answer: that of the stream to its first question stands in.
    let transcript = agree(log[..3].to_vec(), escalation());
    assert_eq!(parts_of(&transcript), [r#"tool t1 running asked "Logged?": allowed"#]);
}

#[test]
fn two_questions_survive_a_restart_at_every_point() {
    // Law 2, also with an answer of the log that overrules that of the stream.
    let log = vec![called("t1", "Bash"), answered("t1", Decision::Declined)];
    for before in [Vec::new(), log] {
        let script = [vec![prompt("p1")], before, escalation()].concat();
        let script = keyed(script, 1);
        let whole = fold(script.clone()).transcript();
        for cut in 0..script.len() {
            let mut run = fold(script[..cut].to_vec()).restarted();
            run.apply_all(script[cut..].to_vec());
            assert_eq!(run.transcript(), whole, "restarted after {cut}");
        }
    }
}

#[test]
fn another_source_of_the_feed_asks_no_second_question() {
    // Two captures of one session may give the same request different ids.
    let mut run = reply([
        called("t1", "Bash"),
        ask_question("t1", question(Some("r1"), "Run?")),
        answered("t1", Decision::Allowed),
    ]);
    let mut nth = 100;
    let mut apply_from = |run: &mut Run, source: u16, line: Line| {
        nth += 1;
        let mut event = line.in_turn("p1").event(nth);
        event.evidence.source = source;
        let changes = run.assembler.apply(event);
        run.builder.apply_all(changes);
    };
    apply_from(&mut run, 1, ask_question("t1", question(Some("7"), "Allow?")));
    assert_eq!(run.parts(), [r#"tool t1 running asked "Run?": allowed"#]);
    assert_eq!(run.skipped(SkipReason::Contradiction), 1);
    // A rewritten log repeats what it said, and goes on.
    apply_from(&mut run, 2, ask_question("t1", question(Some("r1"), "Run?")));
    apply_from(&mut run, 2, answered("t1", Decision::Allowed));
    apply_from(&mut run, 2, ask_question("t1", question(Some("r2"), "Outside?")));
    assert_eq!(run.parts(), [r#"tool t1 running first asked "Run?": allowed asks "Outside?""#]);
}

#[test]
fn a_row_of_an_earlier_version_takes_a_second_question() {
    // Its origin does not have the accounts of the feeds.
    let run = fold(escalation().into_iter().take(4));
    let mut stored = run.transcript();
    stored.turns[0].parts[0].origin.questions.clear();
    let mut run = Run { assembler: Assembler::resume(&stored), ..run };
    run.apply_all(escalation().into_iter().skip(4));
    assert_eq!(run.parts(), [format!("tool t1 running {ESCALATED}")]);
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
        by: None,
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

/// A question in the words of a decoder, which has only the answer to it.
fn inferred_question(id: &str) -> Line {
    let mut line = ask_question(id, question(None, "Allow Bash?"));
    if let EventKind::QuestionAsked { inferred, .. } = &mut line.kind {
        *inferred = true;
    }
    line
}

#[test]
fn who_answered_is_kept_beside_the_answer_of_a_stronger_feed() {
    // R-003-13, C-24, law 5: only the feed of the surface knows who answered.
    let by = |decision: Decision, who: Option<&str>| {
        let mut line = answered("t1", decision);
        if let EventKind::QuestionAnswered { answer, .. } = &mut line.kind {
            answer.by = who.map(str::to_owned);
        }
        line
    };
    let log = || {
        vec![
            prompt("p1"),
            called("t1", "Ask"),
            ask_question("t1", question(None, "Which?")),
            by(Decision::Answered, None),
            ended("t1", ToolEnd::Completed, ""),
        ]
    };
    let capture = |decision: Decision| {
        let script = vec![
            prompt("p1"),
            called("t1", "Ask"),
            ask_question("t1", question(Some("r1"), "Which?")),
            by(decision, Some("browser")),
        ];
        script.into_iter().map(Line::stream).collect::<Vec<Line>>()
    };
    for (decision, expected) in [(Decision::Answered, Some("browser")), (Decision::Declined, None)]
    {
        agree(log(), capture(decision));
        for both in [[log(), capture(decision)].concat(), [capture(decision), log()].concat()] {
            let answer = fold(both).tool("t1").answer.unwrap();
            assert_eq!((answer.decision, answer.by.as_deref()), (Decision::Answered, expected));
        }
    }
    // A feed that repeats the answer need not say it again.
    let repeated = || by(Decision::Answered, None).stream();
    let run = fold([capture(Decision::Answered), vec![repeated()]].concat());
    assert_eq!(run.tool("t1").answer.unwrap().by.as_deref(), Some("browser"));
}

#[test]
fn a_feed_that_has_only_the_answer_keeps_the_words_of_the_question() {
    // R-X-09, law 5: the log is the stronger feed, and only the stream has what was asked.
    let log = || {
        vec![
            prompt("p1"),
            called("t1", "Bash"),
            inferred_question("t1"),
            answered("t1", Decision::Denied),
            ended("t1", ToolEnd::Denied, "no"),
        ]
    };
    let asked = || {
        vec![
            prompt("p1"),
            called("t1", "Bash"),
            ask_question("t1", question(Some("r1"), "Edit file?")),
        ]
    };
    let transcript = agree(log(), asked().into_iter().map(Line::stream).collect());
    assert_eq!(parts_of(&transcript), [r#"tool t1 denied "no" asked "Edit file?": denied"#]);
    // The words of an answer stay as well, unless the log knows it otherwise.
    for (decision, text) in [(Decision::Denied, "Reject"), (Decision::Allowed, "denied")] {
        let mut stream = asked();
        stream.push(answered("t1", decision));
        if let Some(EventKind::QuestionAnswered { answer, .. }) =
            stream.last_mut().map(|line| &mut line.kind)
        {
            answer.text = "Reject".to_owned();
        }
        agree(log(), stream.iter().cloned().map(Line::stream).collect());
        let lines = log().into_iter().chain(stream.into_iter().map(Line::stream));
        assert_eq!(fold(lines).tool("t1").answer.map(|answer| answer.text).as_deref(), Some(text));
    }
    // Alone it is all that is known.
    let alone = fold(log());
    assert_eq!(alone.parts(), [r#"tool t1 denied "no" asked "Allow Bash?": denied"#]);
    // The words of the same feed win too, whichever of its files is read first.
    let mut run = fold(log());
    run.apply(ask_question("t1", question(Some("r1"), "Edit file?")));
    run.apply(inferred_question("t1"));
    assert_eq!(run.parts(), [r#"tool t1 denied "no" asked "Edit file?": denied"#]);
}
