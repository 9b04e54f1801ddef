//! Several feeds of one session: one spine, nothing doubled, nothing dropped, and arrival order
//! leaves no trace.

use unspool_model::assemble::prose_content_hash;
use unspool_model::change::Change;
use unspool_model::event::EndReason::{Completed, Failed, Idle, Interrupted};
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::ToolEnd;
use unspool_model::part::Decision;
use unspool_model::provenance::Name;
use unspool_model::session::Transcript;

use crate::script::*;

/// Every way to interleave two scripts, each kept in its own order.
fn interleavings(a: &[Line], b: &[Line]) -> Vec<Vec<Line>> {
    match (a.split_first(), b.split_first()) {
        (None, _) => vec![b.to_vec()],
        (_, None) => vec![a.to_vec()],
        (Some((first, rest)), Some((other, others))) => {
            let with = |head: &Line, tails: Vec<Vec<Line>>| {
                tails
                    .into_iter()
                    .map(|tail| [vec![head.clone()], tail].concat())
                    .collect::<Vec<_>>()
            };
            [with(first, interleavings(rest, b)), with(other, interleavings(a, others))].concat()
        }
    }
}

/// Assigns keys per script, so that they do not depend on the interleaving.
pub fn keyed(lines: Vec<Line>, from: u64) -> Vec<Line> {
    lines.into_iter().zip(from..).map(|(line, key)| line.key(key)).collect()
}

pub fn agree(log: Vec<Line>, other: Vec<Line>) -> Transcript {
    let (log, other) = (keyed(log, 100), keyed(other, 200));
    let mut first: Option<Transcript> = None;
    for script in interleavings(&log, &other) {
        let run = fold(script.clone());
        let transcript = run.transcript();
        let held = first.get_or_insert_with(|| transcript.clone());
        let reported: Vec<_> = script.iter().map(|line| (line.feed, &line.kind)).collect();
        assert_eq!(shape(held), shape(&transcript), "{reported:#?}");
    }
    first.unwrap()
}

/// The visible content of a transcript, with ids and places.
pub fn shape(transcript: &Transcript) -> Vec<String> {
    let mut out = Vec::new();
    for turn in &transcript.turns {
        out.push(format!("turn {} {} {}", turn.number, turn.id, turn.state.name()));
        out.extend(turn.parts.iter().map(|part| {
            format!("{} {:?} {:?} {}", part.id, part.place, part.step.is_some(), show(part))
        }));
    }
    out
}

pub fn parts(transcript: &Transcript) -> Vec<String> {
    transcript.turns.iter().flat_map(|turn| turn.parts.iter().map(show)).collect()
}

#[test]
fn an_end_that_says_how_is_believed_before_silence() {
    // A stored chat only shows that nothing is open; its stream has the end.
    let log = vec![prompt("p1"), said_in(Text, block("m", 0), "Hello"), over(Idle)];
    let stream = |end| {
        let grown = grew_in(Text, block("m", 0), "Hello").stream();
        vec![prompt("p1").stream(), grown, over(end).stream()]
    };
    let ended = |end| agree(log.clone(), stream(end)).turns.remove(0).state.name();
    assert_eq!(ended(Interrupted), "interrupted");
    assert_eq!(ended(Failed(None)), "failed");
    assert_eq!(ended(Completed), "completed");
}

#[test]
fn a_weaker_answer_is_evidence_all_the_same() {
    let reported = |feed: fn(Line) -> Line| {
        let lines = [
            called("t1", "Bash"),
            ask_question("t1", question(Some("r"), "Run?")),
            answered("t1", Decision::Allowed),
        ];
        let mut script = vec![feed(prompt("p1"))];
        script.extend(lines.map(feed));
        script
    };
    let (log, stream) = (keyed(reported(|line| line), 100), keyed(reported(Line::stream), 200));
    let evidence = |script: Vec<Line>| {
        let mut turn = fold(script).turn();
        turn.parts.remove(0).evidence.len()
    };
    let one = evidence([log.clone(), stream.clone()].concat());
    assert_eq!(one, evidence([stream, log].concat()));
    assert_eq!(one, 6);
}

#[test]
fn log_and_stream_of_one_turn() {
    // R-X-03 R-000-14, several feeds: never doubled
    let log = vec![
        prompt("p1"),
        said_in(Text, block("m", 0), "Hello"),
        called("t1", "Bash"),
        ended("t1", ToolEnd::Completed, "x"),
        over(Completed),
    ];
    let stream = vec![
        prompt("p1").stream(),
        grew_in(Text, block("m", 0), "Hel").stream(),
        called("t1", "Bash").stream(),
        ask_question("t1", question(Some("r"), "Run?")).stream(),
        answered("t1", Decision::Allowed).stream(),
    ];
    let transcript = agree(log, stream);
    assert_eq!(
        parts(&transcript),
        [r#"text:"Hello""#, r#"tool t1 completed "x" asked "Run?": allowed"#]
    );
}

#[test]
fn a_part_seen_by_one_feed_only_goes_between() {
    // R-000-01: text of an aborted stream is not dropped, and the spine places the rest.
    let log = vec![
        prompt("p1"),
        called("t1", "Bash"),
        called("t2", "Bash"),
        said_in(Text, block("m", 3), "end"),
    ];
    let stream = vec![
        prompt("p1").stream(),
        called("t1", "Bash").stream(),
        said_in(Reasoning, block("m", 1), "only here").stream(),
        called("t2", "Bash").stream(),
    ];
    let transcript = agree(log, stream);
    assert_eq!(
        parts(&transcript),
        ["tool t1 running", r#"reasoning:"only here""#, "tool t2 running", r#"text:"end""#]
    );
}

#[test]
fn hooks_find_text_and_calls_without_ids() {
    // Several feeds: matched by content hash.
    let log = vec![
        prompt("p1"),
        said_in(Text, block("m", 0), "Hello"),
        called("t1", "Bash"),
        ended("t1", ToolEnd::Completed, "x"),
    ];
    let hooks = vec![prompt("p1").hook(), said(Text, "Hello").hook(), called("t1", "Bash").hook()];
    let transcript = agree(log, hooks);
    assert_eq!(parts(&transcript), [r#"text:"Hello""#, r#"tool t1 completed "x""#]);
}

#[test]
fn a_stream_that_names_nothing_meets_the_log_by_what_is_said() {
    // R-X-03: neither turns nor texts have an id in common.
    let alike = |prose_kind, text: &str| Name::ByContent(prose_content_hash(prose_kind, text), 0);
    let turn = Name::ByContent(7, 0);
    let log = vec![
        prompt("p1"),
        started(vec![prompt_name("p1"), turn.clone()], Vec::new()),
        said_in(Reasoning, block("r", 0), "Same"),
        said_in(Text, block("m", 0), "Same"),
        over(Completed),
    ];
    let stream = vec![
        started(vec![turn], Vec::new()).stream(),
        said_in(Reasoning, alike(Reasoning, "Same"), "Same").stream(),
        said_in(Text, alike(Text, "Same"), "Same").stream(),
        over(Completed).stream(),
    ];
    let transcript = agree(log.clone(), stream.clone());
    assert_eq!(transcript.turns.len(), 1);
    assert_eq!(parts(&transcript), [r#"reasoning:"Same""#, r#"text:"Same""#]);
    // Hooks that repeat the last text change nothing, in either order.
    let hooks = [prompt("p1").hook(), said_in(Text, record("last"), "Same").hook()];
    for order in [[0, 1, 2], [1, 2, 0], [2, 1, 0], [1, 0, 2]] {
        let feeds = [log.as_slice(), stream.as_slice(), hooks.as_slice()];
        let reported = fold(order.iter().flat_map(|at| feeds[*at].to_vec()));
        assert_eq!(shape(&reported.transcript()), shape(&transcript), "{order:?}");
    }
}

#[test]
fn a_denied_permission_that_only_a_hook_saw_is_not_dropped() {
    // Several feeds, tool state: interrupted → denied applies at any time and commutes.
    let log = vec![prompt("p1"), called("t1", "Bash"), ended("t1", ToolEnd::Interrupted, "")];
    let hooks = vec![prompt("p1").hook(), ended("t1", ToolEnd::Denied, "").hook()];
    let transcript = agree(log, hooks);
    assert_eq!(parts(&transcript), ["tool t1 denied"]);
}

#[test]
fn the_stronger_feed_decides_how_a_call_ended() {
    // R-003-07: a stronger feed may correct a weaker one, never the reverse.
    let log = vec![prompt("p1"), called("t1", "Bash"), ended("t1", ToolEnd::Failed, "log")];
    let hooks = vec![prompt("p1").hook(), ended("t1", ToolEnd::Completed, "hook").hook()];
    let transcript = agree(log, hooks);
    assert_eq!(parts(&transcript), [r#"tool t1 failed "log""#]);
}

#[test]
fn ends_of_a_turn_in_any_order() {
    // R-X-01 R-X-03
    let log = vec![prompt("p1"), called("t1", "Bash"), over(Interrupted)];
    let hooks = vec![prompt("p1").hook(), over(Completed).hook()];
    let transcript = agree(log, hooks);
    assert_eq!(parts(&transcript), ["tool t1 interrupted", "notice:interrupted"]);
}

#[test]
fn an_idle_hook_and_a_log_with_the_result_in_any_order() {
    // R-X-03 R-X-13: arrival order does not change the result.
    use unspool_model::event::EndReason::Idle;
    let log = vec![prompt("p1"), called("t1", "Bash"), ended("t1", ToolEnd::Completed, "x")];
    let hooks = vec![prompt("p1").hook(), over(Idle).hook()];
    let transcript = agree(log, hooks);
    assert_eq!(parts(&transcript), [r#"tool t1 completed "x""#]);
}

#[test]
fn agents_from_hooks_and_log_in_any_order() {
    // R-X-04 R-003-30 R-003-40
    use unspool_model::event::AgentEnd;
    let log = vec![prompt("p1"), called("t1", "Task"), ended("t1", ToolEnd::Completed, "go")];
    let hooks = vec![
        prompt("p1").hook(),
        background_started("t1", "a").hook(),
        agent_ended("", "a", AgentEnd::Completed).hook(),
    ];
    let transcript = agree(log, hooks);
    assert_eq!(parts(&transcript), [r#"tool t1 completed "go""#, "agents of t1: a completed"]);
}

#[test]
fn a_weaker_feed_does_not_merge_two_turns_of_the_spine() {
    // R-000-01 C-02: places are unique in a turn, and the spine decides what a turn is.
    let named = |id: &str| started(vec![record(id)], vec![words(id)]);
    let run = fold([
        named("r1"),
        called("t1", "Bash"),
        named("r2"),
        called("t2", "Bash"),
        named("r1").stream(),
        called("t1", "Bash").stream(),
        called("t2", "Bash").stream(),
    ]);
    for turn in &run.transcript().turns {
        let mut places: Vec<_> = turn.parts.iter().map(|part| part.place).collect();
        places.dedup();
        assert_eq!(places.len(), turn.parts.len(), "{:?}", run.turns());
    }
    assert_eq!(run.turns().len(), 2, "{:?}", run.turns());
}

#[test]
fn two_turns_of_hooks_that_a_log_calls_one_keep_all_their_parts() {
    // Law 4: parts numbered by count in two turns are different parts.
    let alike = |content: u64| started(vec![Name::ByContent(content, 0)], vec![]);
    let run = fold([
        alike(1).hook(),
        called("t1", "Bash").hook(),
        notice(None, "one").hook(),
        alike(2).hook(),
        called("t2", "Bash").hook(),
        notice(None, "two").hook(),
        prompt("p1"),
        called("t1", "Bash"),
        called("t2", "Bash"),
    ]);
    let shown: Vec<String> = run.turns().concat();
    for part in ["notice:one", "notice:two"] {
        assert!(shown.iter().any(|shown| shown == part), "{:?}", run.turns());
    }
}

#[test]
fn calls_of_a_like_with_ids_of_their_own_stay_two_when_turns_are_joined() {
    // Law 4, R-X-06: a content hash matches calls without an id; it never merges two ids.
    let run = fold([
        started(vec![Name::ByContent(9, 0)], vec![]).stream(),
        called("t1", "Bash").stream(),
        called_with("x", "Read", "{}").stream(),
        prompt("p1"),
        called("t2", "Bash"),
        called_with("x", "Read", "{}"),
    ]);
    let shown = run.turns().concat();
    for call in ["t1", "t2", "x"] {
        let parts = shown.iter().filter(|part| part.starts_with(&format!("tool {call} ")));
        assert_eq!(parts.count(), 1, "{call}: {:?}", run.turns());
    }
}

#[test]
fn a_step_does_not_reach_into_another_turn() {
    // R-000-01: also if events name their turn and there is no prompt.
    let run = fold([
        step("m1").in_turn("p1"),
        said(Text, "a").in_turn("p1"),
        called("t1", "Bash").in_turn("p2"),
    ]);
    for turn in run.transcript().turns {
        let steps: Vec<_> = turn.steps.iter().map(|step| step.id).collect();
        for part in turn.parts {
            assert!(part.step.is_none_or(|step| steps.contains(&step)), "{}", show(&part));
        }
    }
}

#[test]
fn a_hook_call_without_an_id_does_not_cut_the_turn() {
    // R-X-03: a part merged into another no longer affects the turn.
    use unspool_model::assemble::content_hash;
    use unspool_model::event::EndReason::Idle;
    use unspool_model::event::{CallRef, EventKind};
    use unspool_model::json::Json;
    let alike = content_hash("Bash", Json::parse(r#"{"q":1}"#).as_ref());
    let started = Line::from(EventKind::ToolStarted { call: CallRef::ByContent(alike, 0) }).hook();
    let run = fold([
        prompt("p1").hook(),
        started,
        over(Idle).hook(),
        prompt("p1"),
        called("t1", "Bash"),
        ended("t1", ToolEnd::Completed, "x"),
        over(Idle),
    ]);
    assert_eq!(run.parts(), [r#"tool t1 completed "x""#]);
    assert_eq!(run.state(), "completed");
}

#[test]
fn an_answer_from_both_feeds_leaves_no_trace_of_arrival_order() {
    // R-X-03: the weaker feed is overruled but still counts as evidence.
    let reported = || {
        vec![
            prompt("p1"),
            called("t1", "Bash"),
            ask_question("t1", question(Some("r1"), "Run?")),
            answered("t1", Decision::Allowed),
        ]
    };
    let live = reported().into_iter().map(Line::stream).collect();
    let transcript = agree(reported(), live);
    assert_eq!(transcript.turns[0].parts[0].evidence.len(), 6);
}

#[test]
fn a_text_that_was_merged_is_not_merged_again() {
    // R-X-03 R-X-14: hooks correct a text, so it has been equal to both texts of the log.
    let mut run = fold([
        prompt("p1").hook(),
        prompt("p1"),
        said_in(Text, block("m", 2), "a").hook(),
        said_in(Text, block("m", 2), "b").hook(),
        grew_in(Text, block("m", 0), "b"),
        grew_in(Text, block("m", 1), "a"),
    ]);
    let changes = run.apply(step("n"));
    let merged = changes.iter().filter(|change| matches!(change, Change::PartMerged { .. }));
    assert_eq!(merged.count(), 1);
    assert_eq!(run.parts(), [r#"text:"b""#, r#"text:"a""#]);
}
