//! Kinds of parts, their ids, and data without a kind of its own.

use std::collections::HashSet;

use unspool_model::assemble::Assembler;
use unspool_model::change::SkipReason;
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::id::SessionId;
use unspool_model::part::{
    Body, Compaction, ContextInfo, File, Interjection, Kind, McpSnapshot, Part, Patch, SkillLoad,
    SourceLink, TaskList,
};
use unspool_model::session::Transcript;

use crate::script::*;

const ODD: &str = r#"{ "z":1,  "a":[1e400, 0.10, 12345678901234567890123], "z":"\u00e9\u0000" }"#;

#[test]
fn unknown_data_keeps_its_place_and_round_trips_unchanged() {
    // R-000-24
    let run = reply([
        said(Text, "a"),
        data(Some("d1"), "x-future", ODD),
        said(Text, "b"),
        data(None, "x-future", "null"),
    ]);
    let shown = run.parts();
    assert_eq!(shown[0], r#"text:"a""#);
    assert_eq!(shown[1], format!("data:x-future {ODD}"));
    assert_eq!(shown[3], "data:x-future null");
    let json = serde_json::to_string(&run.transcript()).unwrap();
    let back: Transcript = serde_json::from_str(&json).unwrap();
    assert_eq!(back, run.transcript());
    assert_eq!(show(&back.turns[0].parts[1]), shown[1]);
}

#[test]
fn a_part_event_with_prose_or_a_call_is_skipped() {
    // Law 3: these grow or have states, and their own events say how.
    for body in [words("a"), Body::Tool(Default::default()), Body::Agent(Default::default())] {
        let run = reply([EventKind::Part(Some(record("x")), body).into()]);
        assert!(run.parts().is_empty());
        assert_eq!(run.skipped(SkipReason::Contradiction), 1);
    }
}

#[test]
fn every_kind_has_its_event_and_keeps_its_place() {
    // R-003-05 R-003-18
    let name = |id: &str| Some(record(id));
    let run = reply([
        said(Text, "a"),
        said(Reasoning, "b"),
        called("t1", "Task"),
        agent_started("t1", "x"),
        EventKind::Part(name("1"), Body::Interjection(Interjection { text: "wait".into() })).into(),
        EventKind::Part(name("2"), Body::TaskList(TaskList::default())).into(),
        EventKind::Part(name("3"), Body::SkillLoad(SkillLoad::default())).into(),
        EventKind::Part(name("4"), Body::McpSnapshot(McpSnapshot::default())).into(),
        EventKind::Part(name("5"), Body::ContextInfo(ContextInfo::default())).into(),
        EventKind::Part(name("6"), Body::Compaction(Compaction::default())).into(),
        EventKind::Part(name("7"), Body::File(File::default())).into(),
        EventKind::Part(name("8"), Body::Source(SourceLink::default())).into(),
        EventKind::Part(name("9"), Body::Patch(Patch::default())).into(),
        notice(Some("10"), "retry"),
        failed(Some("11"), "no"),
        data(Some("12"), "x", "{}"),
    ]);
    let kinds: Vec<Kind> = run.turn().parts.iter().map(|part| part.body.kind()).collect();
    let expected = [
        Kind::Text,
        Kind::Reasoning,
        Kind::Tool,
        Kind::Agent,
        Kind::Interjection,
        Kind::TaskList,
        Kind::SkillLoad,
        Kind::McpSnapshot,
        Kind::ContextInfo,
        Kind::Compaction,
        Kind::File,
        Kind::Source,
        Kind::Patch,
        Kind::Notice,
        Kind::Error,
        Kind::Data,
    ];
    assert_eq!(kinds, expected);
    assert!(run.turn().parts.iter().all(|part| part.started.is_some()), "createdAt on all");
    let json = serde_json::to_string(&run.turn().parts).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Part>>(&json).unwrap(), run.turn().parts);
}

#[test]
fn a_replayed_part_is_replaced_in_place() {
    // R-003-03
    let mut run = reply([
        notice(Some("n1"), "retry"),
        said(Text, "a"),
        data(Some("d1"), "x", "1"),
        said(Text, "b"),
    ]);
    let before = run.turn();
    run.apply_all([data(Some("d1"), "x", "2"), notice(Some("n1"), "mode-change")]);
    let after = run.turn();
    assert_eq!(run.parts(), ["notice:mode-change", r#"text:"a""#, "data:x 2", r#"text:"b""#]);
    let ids = |parts: &[Part]| parts.iter().map(|part| (part.id, part.place)).collect::<Vec<_>>();
    assert_eq!(ids(&before.parts), ids(&after.parts));
}

#[test]
fn a_part_is_found_wherever_it_stands() {
    // R-003-03 R-003-04: at the start, in the middle and at the end of an empty list, a single part
    // and a large list; before, between and after there is nothing; ids are compared as bytes.
    let many: Vec<String> = (0..2000).map(|nth| format!("n{:04}", nth * 2)).collect();
    let lists: [Vec<&str>; 4] =
        [vec![], vec!["b"], vec!["b", "d", "f"], many.iter().map(String::as_str).collect()];
    for names in lists {
        let count = names.len();
        let run = reply(names.iter().map(|name| data(Some(name), "x", "1")));
        let mut found = vec![0, 1, count / 2, count.saturating_sub(1)];
        found.retain(|at| *at < count);
        for at in found {
            let mut run = run.clone();
            run.apply(data(Some(names[at]), "x", "2"));
            let expected: Vec<String> =
                (0..count).map(|nth| format!("data:x {}", if nth == at { 2 } else { 1 })).collect();
            assert_eq!(run.parts(), expected);
        }
        // An upper-case or full-width letter equals another one in some locales.
        for stranger in ["a", "c", "g", "n0001", "n9999", "B", "n\u{0}", "ｂ"] {
            let mut run = run.clone();
            run.apply(data(Some(stranger), "x", "3"));
            assert_eq!(run.parts().last().unwrap(), "data:x 3");
            assert_eq!(run.parts().len(), count + 1);
            assert!(run.parts()[..count].iter().all(|part| part == "data:x 1"), "{stranger}");
        }
    }
}

#[test]
fn nameless_parts_appear_once_each() {
    // R-003-03: without a name every repeat is a new part, at the end.
    let run = reply([notice(None, "retry"), said(Text, "a"), notice(None, "retry")]);
    assert_eq!(run.parts(), ["notice:retry", r#"text:"a""#, "notice:retry"]);
}

#[test]
fn a_name_that_means_a_finished_text_is_not_taken_over() {
    // R-003-03, law 4: a text is not replaced by data of the same feed.
    let run = reply([said_in(Text, record("r1"), "words"), data(Some("r1"), "x", "{}")]);
    assert_eq!(run.turn().content(), "words");
}

#[test]
fn ids_are_unique_opaque_and_the_same_for_the_same_log() {
    // R-003-01 R-X-15 R-001-28
    let script = || {
        [
            prompt("p1"),
            said(Text, "a"),
            said(Text, "a"),
            called("t1", "Task"),
            agent_started("t1", "x"),
            notice(None, "retry"),
            over(unspool_model::event::EndReason::Interrupted),
            prompt("p2"),
            said(Text, "a"),
            over(unspool_model::event::EndReason::Interrupted),
        ]
    };
    let ids = |transcript: &Transcript| -> Vec<String> {
        let turns = transcript.turns.iter();
        turns
            .flat_map(|turn| {
                let parts = turn.parts.iter().map(|part| part.id.to_string());
                parts.chain([turn.id.to_string()]).collect::<Vec<_>>()
            })
            .collect()
    };
    let live = fold(script()).transcript();
    let unique: HashSet<String> = ids(&live).into_iter().collect();
    assert_eq!(unique.len(), ids(&live).len());
    assert!(unique.iter().all(|id| id.len() == 20));
    assert_eq!(ids(&fold(script()).transcript()), ids(&live));

    // Another session of the same shape shares no id.
    let mut assembler = Assembler::new(SessionId::of("test", "s2"));
    let mut builder = unspool_model::transcript::TranscriptBuilder::new("test", "s2");
    for event in events(script()) {
        builder.apply_all(assembler.apply(event));
    }
    let other: HashSet<String> = ids(&builder.transcript()).into_iter().collect();
    assert!(unique.is_disjoint(&other));
}

#[test]
fn a_replay_keeps_the_original_times() {
    // R-X-15
    let run = fold([prompt("p1").at(1000), said(Text, "a").at(1001), called("t1", "B").at(1002)]);
    let turn = run.turn();
    assert_eq!(turn.started.unwrap().as_second(), 1000);
    let started: Vec<i64> =
        turn.parts.iter().map(|part| part.started.unwrap().as_second()).collect();
    assert_eq!(started, [1001, 1002]);
    let mut line = said(Text, "b");
    line.at = Some(None);
    let timeless = reply([line]);
    assert!(timeless.turn().parts[0].started.is_none(), "no clock of ours");
}

#[test]
fn what_comes_before_the_first_prompt_is_turn_0() {
    // Design, turn
    let run = fold([notice(None, "informational"), prompt("p1"), said(Text, "a")]);
    let transcript = run.transcript();
    let numbers: Vec<_> = transcript.turns.iter().map(|turn| turn.number).collect();
    assert_eq!(numbers, [0, 1]);
    assert_eq!(run.turns(), [vec!["notice:informational"], vec![r#"text:"a""#]]);
}

#[test]
fn turns_without_any_name_are_still_turns() {
    // R-003-01, law 3: unnamed turns of a source are separate turns.
    let nameless = |text: &str| started(vec![], vec![words(text)]);
    let run = fold([nameless("one"), said(Text, "1"), nameless("two"), said(Text, "2")]);
    assert_eq!(run.turns(), [vec![r#"text:"1""#], vec![r#"text:"2""#]]);
    let turns = run.transcript().turns;
    assert_ne!(turns[0].id, turns[1].id);
    assert_eq!(turns[1].user, [words("two")]);
}

#[test]
fn steps_that_are_only_counted_belong_to_their_turn() {
    // R-000-01, `Name::Nth`: a local name is unique only within its turn.
    use unspool_model::provenance::{Feed, Name};
    let skipped =
        || Line::from(EventKind::StepStarted { step: Name::Nth(Feed::Log, 0), model: None });
    let run =
        fold([prompt("p1"), skipped(), said(Text, "1"), prompt("p2"), skipped(), said(Text, "2")]);
    for turn in run.transcript().turns {
        let step = turn.parts[0].step.unwrap();
        assert_eq!(turn.step_number(step), Some(1), "turn {}", turn.number);
    }
}

#[test]
fn the_users_own_parts_are_the_turns() {
    // R-004-01 R-001-18 R-X-04
    let file = Body::File(File { name: Some("a.png".into()), ..File::default() });
    let run = reply([
        EventKind::UserAdded(file.clone()).into(),
        called("t1", "Read"),
        ended("t1", ToolEnd::Completed, "x"),
    ]);
    let turns = run.transcript().turns;
    assert_eq!(turns.len(), 1, "a record of results only is no prompt");
    assert_eq!(turns[0].user, [words("p1"), file]);
    assert_eq!(run.parts(), [r#"tool t1 completed "x""#]);
}
