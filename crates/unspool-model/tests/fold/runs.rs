//! Prose without names in a stream (ACP) beside the log of the same turn: nothing is said twice,
//! nothing that only the stream saw is dropped, and the result does not depend on who came first.

use proptest::prelude::*;
use proptest::sample::select;
use unspool_model::event::EndReason::{Completed, Interrupted};
use unspool_model::event::ProseKind::{self, Reasoning, Text};
use unspool_model::event::ToolEnd;

use crate::feeds::{agree, keyed, shape};
use crate::laws::hold;
use crate::script::*;

fn stream(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    let first = std::iter::once(prompt("p1"));
    first.chain(lines).map(Line::stream).collect()
}

fn log(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    std::iter::once(prompt("p1")).chain(lines).collect()
}

fn logged(prose_kind: ProseKind, id: &str, text: &str) -> Line {
    said_in(prose_kind, record(id), text)
}

#[test]
fn law_2_nothing_is_said_twice() {
    let told = agree(
        log([
            logged(Reasoning, "r1", "Look first."),
            logged(Text, "t1", "I will look"),
            called("c1", "Read"),
            logged(Text, "t2", "Done."),
        ]),
        stream([
            grew(Reasoning, "\n\nLook "),
            grew(Reasoning, "first."),
            grew(Text, "I will look"),
            called("c1", "Read"),
            grew(Text, "Done."),
            over(Completed),
        ]),
    );
    let expected = [
        r#"reasoning:"Look first.""#,
        r#"text:"I will look""#,
        "tool c1 interrupted",
        r#"text:"Done.""#,
    ];
    assert_eq!(shown(&told.turns[0]), expected);
}

#[test]
fn two_texts_of_the_log_are_one_run_of_the_stream() {
    let told = agree(
        log([logged(Text, "t1", "One."), logged(Text, "t2", " Two."), called("c1", "Read")]),
        stream([grew(Text, "One. Two."), called("c1", "Read"), called("c2", "Write")]),
    );
    assert_eq!(
        shown(&told.turns[0]),
        [r#"text:"One.""#, r#"text:" Two.""#, "tool c1 running", "tool c2 running"]
    );
}

#[test]
fn what_only_the_stream_saw_is_kept_where_it_stood() {
    // A refused call that the log lacks, and the words of a program between those of the model.
    let told = agree(
        log([logged(Text, "t1", "I write."), logged(Text, "t2", "It was refused.")]),
        stream([
            grew(Text, "I write."),
            called("c1", "Write"),
            grew(Text, "Info: cancelled\n"),
            grew(Text, "It was refused."),
        ]),
    );
    assert_eq!(
        shown(&told.turns[0]),
        [
            r#"text:"I write.""#,
            "tool c1 running",
            r#"text…:"Info: cancelled\n""#,
            r#"text:"It was refused.""#
        ]
    );
}

#[test]
fn an_aborted_answer_is_left() {
    let told = agree(
        log([logged(Text, "t1", "First."), called("c1", "Read")]),
        stream([
            grew(Text, "First."),
            called("c1", "Read"),
            grew(Text, "Second, and then"),
            over(Interrupted),
        ]),
    );
    let shown = shown(&told.turns[0]);
    assert_eq!(shown[0], r#"text:"First.""#);
    assert_eq!(shown[2], r#"text:"Second, and then""#);
}

#[test]
fn a_run_goes_on_after_the_log_had_its_beginning() {
    let mut run = fold(stream([grew(Text, "First.")]));
    run.apply_all(log([logged(Text, "t1", "First.")]));
    assert_eq!(run.parts(), [r#"text:"First.""#]);
    run.apply(grew(Text, " Sec").stream());
    assert_eq!(run.parts(), [r#"text:"First.""#, r#"text…:" Sec""#]);
    // The words that were cut out are in the rows.
    let mut run = run.restarted();
    run.apply(grew(Text, "ond.").stream());
    assert_eq!(run.parts(), [r#"text:"First.""#, r#"text…:" Second.""#]);
    run.apply(logged(Text, "t2", "Second."));
    assert_eq!(run.parts(), [r#"text:"First.""#, r#"text:"Second.""#]);
}

#[test]
fn calls_at_once_may_be_in_another_order() {
    let told = agree(
        log([called("c2", "Read"), called("c1", "Read"), logged(Text, "t1", "Both.")]),
        stream([called("c1", "Read"), called("c2", "Read"), grew(Text, "Both."), over(Completed)]),
    );
    assert_eq!(shown(&told.turns[0]).iter().filter(|part| part.contains("Both")).count(), 1);
}

#[test]
fn equal_words_on_both_sides_of_a_call_stay_apart() {
    let told = agree(
        log([called("c1", "Read"), logged(Text, "t1", "Ok.")]),
        stream([grew(Text, "Ok."), called("c1", "Read"), grew(Text, "Ok.")]),
    );
    assert_eq!(shown(&told.turns[0]), [r#"text:"Ok.""#, "tool c1 running", r#"text:"Ok.""#]);
}

/// One thing that an agent did, as both feeds report it.
#[derive(Clone, Debug)]
enum AgentAction {
    Prose(ProseKind, &'static str),
    Call,
    /// Only the stream has it.
    Leak(&'static str),
}

fn actions() -> impl Strategy<Value = Vec<AgentAction>> {
    let prose = (select(vec![Text, Reasoning]), select(vec!["a", "b", "a b", "c d e"]));
    let action = prop_oneof![
        4 => prose.prop_map(|(kind, text)| AgentAction::Prose(kind, text)),
        2 => Just(AgentAction::Call),
        1 => select(vec!["x", "y z"]).prop_map(AgentAction::Leak),
    ];
    prop::collection::vec(action, 1..8)
}

/// Both accounts of what an agent did: the log's and the stream's.
fn accounts(actions: &[AgentAction]) -> (Vec<Line>, Vec<Line>) {
    let (mut of_log, mut of_stream) = (Vec::new(), Vec::new());
    for (nth, action) in actions.iter().enumerate() {
        let id = format!("n{nth}");
        match action {
            AgentAction::Prose(kind, text) => {
                of_log.push(logged(*kind, &id, text));
                of_stream.extend(text.split_inclusive(' ').map(|piece| grew(*kind, piece)));
            }
            AgentAction::Call => {
                of_log.push(called(&id, "Read"));
                of_log.push(ended(&id, ToolEnd::Completed, "out"));
                of_stream.push(called(&id, "Read"));
                of_stream.push(ended(&id, ToolEnd::Completed, "out"));
            }
            AgentAction::Leak(text) => of_stream.push(grew(Text, text)),
        }
    }
    (keyed(log(of_log), 100), keyed(stream(of_stream), 200))
}

fn woven(log: &[Line], stream: &[Line], choices: &[bool]) -> Vec<Line> {
    let (mut log, mut stream) = (log.iter(), stream.iter());
    let mut out = Vec::new();
    for choice in choices {
        out.extend(if *choice { log.next() } else { stream.next() });
    }
    out.extend(log);
    out.extend(stream);
    out.into_iter().cloned().collect()
}

#[test]
fn law_5_arrival_order_leaves_no_trace_in_runs() {
    let scripts = (actions(), prop::collection::vec(any::<bool>(), 0..40));
    let scripts = scripts.prop_map(|(actions, choices)| {
        let (log, stream) = accounts(&actions);
        woven(&log, &stream, &choices)
    });
    hold(400, scripts, |script| {
        let of = |keep: &dyn Fn(&Line) -> bool| {
            script.iter().filter(|line| keep(line)).cloned().collect::<Vec<Line>>()
        };
        let log = of(&|line| line.feed == unspool_model::provenance::Feed::Log);
        let stream = of(&|line| line.feed == unspool_model::provenance::Feed::Stream);
        let interleaved = shape(&fold(script.to_vec()).transcript());
        prop_assert_eq!(
            &shape(&fold([log.clone(), stream.clone()].concat()).transcript()),
            &interleaved
        );
        prop_assert_eq!(&shape(&fold([stream, log.clone()].concat()).transcript()), &interleaved);
        // Everything of the log, in its order, and nothing twice.
        let texts = |script: Vec<Line>| {
            let turns = fold(script).turns();
            let prose = turns.into_iter().flatten().filter(|part| !part.starts_with("tool"));
            prose.map(|part| part.replace('…', "")).collect::<Vec<String>>()
        };
        let mut rest = texts(script.to_vec()).into_iter();
        for text in texts(log) {
            prop_assert!(rest.any(|held| held == text), "{text} is missing");
        }
        Ok(())
    });
}

#[test]
fn law_2_live_is_stored_with_runs() {
    let scripts = (actions(), prop::collection::vec(any::<bool>(), 0..30));
    let scripts = scripts.prop_map(|(actions, choices)| {
        let (log, stream) = accounts(&actions);
        woven(&log, &stream, &choices)
    });
    hold(100, scripts, crate::laws::live_is_stored);
}
