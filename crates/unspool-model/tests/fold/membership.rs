//! Feeds that divide a session into turns differently: the strongest one decides which turn a part
//! or a step is in, and arrival order leaves no trace.

use proptest::prelude::*;
use unspool_model::event::EndReason::{Completed, Interrupted};
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{AgentEnd, ToolEnd};
use unspool_model::part::Decision;
use unspool_model::provenance::{Feed, Name};

use crate::feeds::{agree, keyed, shape};
use crate::script::*;

/// A prompt whose words both feeds know, and whose id only the log has.
fn human() -> Line {
    started(vec![prompt_name("p1"), Name::ByContent(7, 0)], vec![words("go")])
}

fn human_in_stream() -> Line {
    started(vec![Name::ByContent(7, 0)], vec![words("go")]).stream()
}

/// One prompt of a stream that is three turns of the log: what a person asked, and two
/// notifications of background tasks.
fn log_with_notifications() -> Vec<Line> {
    vec![
        human(),
        step("m1"),
        called("t1", "Bash"),
        ended("t1", ToolEnd::Completed, "x"),
        over(Completed),
        prompt("p2"),
        step("m2"),
        called("t2", "Read"),
        prompt("p3"),
        called("t3", "Write"),
    ]
}

fn streamed(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    std::iter::once(human_in_stream()).chain(lines.into_iter().map(Line::stream)).collect()
}

#[test]
fn a_prompt_of_a_stream_that_is_three_turns_of_the_log() {
    // Law 5
    let stream = streamed([
        step("m1"),
        called("t1", "Bash"),
        step("m2"),
        called("t2", "Read"),
        called("t3", "Write"),
        notice(None, "only here"),
    ]);
    let transcript = agree(log_with_notifications(), stream);
    let turns: Vec<Vec<String>> = transcript.turns.iter().map(shown).collect();
    assert_eq!(turns[0], [r#"tool t1 completed "x""#, "notice:only here"]);
    assert_eq!(turns[1], ["tool t2 interrupted", "notice:interrupted"]);
    assert_eq!(turns[2], ["tool t3 running"]);
    let steps: Vec<usize> = transcript.turns.iter().map(|turn| turn.steps.len()).collect();
    assert_eq!(steps, [1, 1, 0]);
}

#[test]
fn hooks_without_a_prompt_leave_their_call_to_the_turn_of_the_log() {
    // R-003-11: hooks that were installed while the turn ran.
    let log =
        vec![human(), step("m1"), said_in(Text, block("m1", 0), "Look."), called("t1", "Bash")];
    let hooks = vec![
        called("t1", "Bash").hook(),
        ask_question("t1", question(Some("r"), "Run?")).hook(),
        called("t2", "Read").hook(),
    ];
    let transcript = agree(log, hooks);
    let turns: Vec<(u32, Vec<String>)> =
        transcript.turns.iter().map(|turn| (turn.number, shown(turn))).collect();
    let expected = [r#"text:"Look.""#, r#"tool t1 running asks "Run?""#].map(str::to_owned);
    assert_eq!(turns, [(0, vec!["tool t2 running".to_owned()]), (1, expected.to_vec())]);
}

#[test]
fn sub_agents_move_with_their_call() {
    let log =
        vec![human(), over(Completed), prompt("p2"), called("t1", "Task"), called("t2", "Task")];
    let stream = streamed([
        called("t1", "Task"),
        background_started("t1", "a"),
        agent_ended("", "a", AgentEnd::Completed),
        agent_started("t2", "b"),
        over(Completed),
    ]);
    let transcript = agree(log, stream);
    assert_eq!(shown(&transcript.turns[0]), ["notice:no-reply"]);
    assert_eq!(
        shown(&transcript.turns[1]),
        [
            "tool t1 running",
            "agents of t1: a completed",
            "tool t2 running",
            "agents of t2: b running"
        ]
    );
}

#[test]
fn the_end_of_another_turn_does_not_end_what_moved() {
    // The stream ends its turn before the log has the second one.
    let log = vec![
        human(),
        said_in(Text, block("m1", 0), "One"),
        prompt("p2"),
        grew_in(Reasoning, block("m2", 0), "Two"),
        called("t1", "Bash"),
    ];
    let stream = streamed([
        grew_in(Reasoning, block("m2", 0), "Tw"),
        called("t1", "Bash"),
        over(Interrupted),
    ]);
    let transcript = agree(log, stream);
    assert_eq!(shown(&transcript.turns[0]), [r#"text:"One""#, "notice:interrupted"]);
    assert_eq!(shown(&transcript.turns[1]), [r#"reasoning…:"Two""#, "tool t1 running"]);
    let thinking: Vec<bool> = transcript.turns.iter().map(|turn| turn.thinking_mode).collect();
    assert_eq!(thinking, [false, true]);
}

#[test]
fn equal_calls_are_counted_in_the_turn_that_they_moved_to() {
    // Hooks of the second turn know neither the id of the call nor another turn.
    use unspool_model::assemble::content_hash;
    use unspool_model::event::{CallRef, EventKind};
    use unspool_model::json::Json;
    let content = content_hash("Bash", Json::parse(r#"{"q":1}"#).as_ref());
    let failed = EventKind::QuestionAsked {
        call: CallRef::ByContent(content, 0),
        tool: "Bash".to_owned(),
        question: question(Some("r"), "Run?"),
        requested: true,
        inferred: false,
    };
    let log = vec![human(), called("t1", "Bash"), prompt("p2"), called("t2", "Bash")];
    let stream = streamed([called("t1", "Bash"), called("t2", "Bash")]);
    let hooks = [prompt("p2").hook(), Line::from(failed).hook()];
    let feeds = [keyed(log, 100), keyed(stream, 200), keyed(hooks.to_vec(), 300)];
    let mut first = None;
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let transcript = fold(order.iter().flat_map(|at| feeds[*at].clone())).transcript();
        let held = first.get_or_insert_with(|| transcript.clone());
        assert_eq!(shape(held), shape(&transcript), "{order:?}");
    }
    let turns: Vec<Vec<String>> = first.unwrap().turns.iter().map(shown).collect();
    assert_eq!(turns[1], [r#"tool t2 running asks "Run?""#]);
}

#[test]
fn a_part_that_an_earlier_process_placed_moves() {
    // Law 2: hooks in one run, the log in the next, at every cut.
    let hooks = keyed(
        vec![
            called("t1", "Task").hook(),
            background_started("t1", "a").hook(),
            ask_question("t1", question(Some("r"), "Run?")).hook(),
            answered("t1", Decision::Allowed).hook(),
        ],
        200,
    );
    let stream =
        keyed(streamed([step("m1"), called("t0", "Read"), step("m2"), called("t1", "Task")]), 300);
    let log = keyed(
        vec![
            human(),
            step("m1"),
            called("t0", "Read"),
            prompt("p2"),
            step("m2"),
            called("t1", "Task"),
        ],
        100,
    );
    let script = [hooks, stream, log].concat();
    crate::laws::live_is_stored(&script).unwrap();
    let turns = fold(script).turns();
    assert_eq!(turns[0], [""; 0]);
    assert_eq!(turns[1], ["tool t0 interrupted", "notice:interrupted"]);
    assert_eq!(turns[2].len(), 2);
}

/// A log of several turns, and another feed with the same steps and parts whose turns are some of
/// those, or none.
fn divided_differently() -> impl Strategy<Value = Vec<Line>> {
    // For each turn: whether the other feed has it too, how it ends, and what is in it. For each
    // part: its kind, and what the other feed makes of it.
    let part = (0..4u8, 0..6u8);
    let turn = (any::<bool>(), any::<bool>(), prop::collection::vec(part, 1..4));
    let turns = prop::collection::vec(turn, 1..4);
    (turns, any::<bool>(), any::<bool>()).prop_map(|(turns, from_hooks, prompted)| {
        let (mut log, mut other) = (Vec::new(), Vec::new());
        for (nth, (shared, ends, parts)) in turns.into_iter().enumerate() {
            let words = Name::ByContent(90 + nth as u64, 0);
            log.push(started(vec![prompt_name(&format!("p{nth}")), words.clone()], vec![]));
            if prompted && (nth == 0 || shared) {
                other.push(started(vec![words], vec![]));
            }
            for (at, (kind, seen)) in parts.into_iter().enumerate() {
                let id = format!("{nth}{at}");
                let line = match kind {
                    0 => step(&id),
                    1 => said_in(Reasoning, block(&id, 0), &id),
                    2 => said_in(Text, record(&id), &id),
                    _ => called(&id, "Bash"),
                };
                log.push(line.clone());
                // Hooks have names of calls only.
                if seen > 0 && !(from_hooks && kind < 3) {
                    other.push(line);
                }
                if seen == 1 {
                    other.push(notice(None, "only here"));
                }
                if seen == 2 && kind > 2 {
                    other.push(ask_question(&id, question(Some("r"), "Run?")));
                }
                if seen == 3 && kind > 2 {
                    log.push(ended(&id, ToolEnd::Completed, "x"));
                }
            }
            if ends {
                log.push(over(Completed));
            }
        }
        let other =
            other.into_iter().map(|line| if from_hooks { line.hook() } else { line.stream() });
        [keyed(log, 100), keyed(other.collect(), 200)].concat()
    })
}

#[test]
fn law_5_feeds_may_divide_a_session_differently() {
    // R-X-03: in any order, and with each feed cut anywhere by the other.
    crate::laws::hold(300, divided_differently(), |script| {
        let (log, other): (Vec<Line>, Vec<Line>) =
            script.iter().cloned().partition(|line| line.feed == Feed::Log);
        let expected = fold([log.clone(), other.clone()].concat());
        let cuts = |whole: &[Line], between: &[Line]| -> Vec<Vec<Line>> {
            let cut = |at| [&whole[..at], between, &whole[at..]].concat();
            (0..=whole.len()).map(cut).collect()
        };
        for script in [cuts(&log, &other), cuts(&other, &log)].concat() {
            let found = fold(script.clone());
            found.assembler.check_bookkeeping().map_err(TestCaseError::fail)?;
            let (expected, found) = (shape(&expected.transcript()), shape(&found.transcript()));
            prop_assert_eq!(expected, found, "{:#?}", script);
        }
        Ok(())
    });
}

#[test]
fn law_2_feeds_that_divide_a_session_differently_are_stored() {
    crate::laws::hold(60, divided_differently(), |script| {
        let (log, other): (Vec<Line>, Vec<Line>) =
            script.iter().cloned().partition(|line| line.feed == Feed::Log);
        crate::laws::live_is_stored(&[other, log].concat())
    });
}
