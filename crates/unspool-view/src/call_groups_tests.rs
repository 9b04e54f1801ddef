use proptest::prelude::*;
use unspool_model::id::{Id, PartId};
use unspool_model::part::Place;

use super::*;

/// A part of a turn in short: `tool step start end`, where a missing end is a call that runs and
/// `- -` are unknown times. Any other kind stands for itself.
fn part(at: usize, words: &str) -> PartSkeleton {
    let words: Vec<&str> = words.split(' ').collect();
    let kind = Kind::of_name(words[0]);
    let time = |nth: usize| words.get(nth).and_then(|word| word.parse().ok());
    let state = match words.get(4).copied() {
        Some(name) => ToolState::of_name(name),
        None if words.get(3) == Some(&"") => Some(ToolState::Running),
        None => Some(ToolState::Completed),
    };
    PartSkeleton {
        id: PartId(Id::derive([at.to_le_bytes().as_slice()])),
        place: Place(at as i64),
        kind: kind.unwrap_or(Kind::Tool),
        step: words.get(1).map(|step| StepId(Id::derive([step.as_bytes()]))),
        tool: kind.is_none().then(|| words[0].into()),
        state: state.filter(|_| kind.is_none()),
        started_ms: time(2),
        ended_ms: time(3),
    }
}

fn titles(parts: &[&str]) -> Vec<(Range<usize>, String)> {
    let parts: Vec<PartSkeleton> =
        parts.iter().enumerate().map(|(at, one)| part(at, one)).collect();
    call_groups(&parts).into_iter().map(|group| (group.range.clone(), group.title())).collect()
}

fn one(range: Range<usize>, title: &str) -> Vec<(Range<usize>, String)> {
    vec![(range, title.to_owned())]
}

#[test]
fn calls_of_one_step_with_overlapping_times_are_parallel() {
    let calls = ["reasoning a", "Read a 0 200", "Bash a 10 1200", "Grep a 20 90 failed", "text a"];
    assert_eq!(titles(&calls), one(1..4, "3 calls at once · 1.2 s · 1 failed"));
    // One after the other, in two steps, or alone.
    assert_eq!(titles(&["Read a 0 10", "Read a 11 20"]), []);
    assert_eq!(titles(&["Read a 0 10", "Read b 5 20"]), []);
    assert_eq!(titles(&["Read a 0 10"]), []);
    // No step: who made the calls together is not known.
    assert_eq!(titles(&["Read", "Read"]), []);
}

#[test]
fn a_running_group_counts_what_is_done() {
    let calls = ["Read a 0 200", "Bash a 10 ", "Bash a 11 "];
    assert_eq!(titles(&calls), one(0..3, "3 calls at once · 1 of 3 done"));
    let calls = ["Read a 0 200 failed", "Bash a 500 "];
    assert_eq!(titles(&calls), [], "the first one had ended before the second began");
}

#[test]
fn without_times_there_is_a_group_and_no_time() {
    let calls = ["a s - -", "b s - -", "text s", "c s - -"];
    assert_eq!(titles(&calls), one(0..2, "2 calls at once"));
    // Gemini has one time for the calls of a message.
    let calls = ["read_file s 7 7", "read_file s 7 7 failed"];
    assert_eq!(titles(&calls), one(0..2, "2 calls at once · 1 failed"));
    assert_eq!(titles(&["a s 1 2", "b s - -"]), []);
}

#[test]
fn agents_and_notices_between_calls_are_inside() {
    let calls = ["task a 0 90", "agent a", "notice a", "task a 5 80", "agent a", "patch a"];
    assert_eq!(titles(&calls), one(0..5, "2 calls at once · 90 ms"));
    assert_eq!(titles(&["Read a 0 90", "interjection a", "Read a 5 80"]), []);
}

#[test]
fn calls_inside_a_call_and_calls_of_the_provider_are_not_called_parallel() {
    // Code mode of Codex; the order of its log.
    assert_eq!(titles(&["exec a 0 90", "exec_command a 50 50", "exec_command a 50 60"]), []);
    assert_eq!(titles(&["web_search a 0 0", "web_search a 0 0"]), []);
    let calls = ["web_search a 0 0", "apply_patch a 0 4", "exec_command a 1 99"];
    assert_eq!(titles(&calls), one(1..3, "2 calls at once · 99 ms"));
}

proptest! {
    #[test]
    fn groups_are_ordered_disjoint_and_begin_and_end_with_their_calls(
        parts in proptest::collection::vec(
            prop::sample::select(vec![
                "Read a 0 9", "Read a 5 20", "Bash a 30 40", "Read b 0 9", "Read b - -", "task b 3 ",
                "agent b", "notice a", "text a", "reasoning a", "exec a 0 9",
            ]),
            0..40,
        ),
    ) {
        let parts: Vec<PartSkeleton> =
            parts.iter().enumerate().map(|(at, one)| part(at, one)).collect();
        let mut last = 0;
        for group in call_groups(&parts) {
            prop_assert!(last <= group.range.start);
            last = group.range.end;
            let members = &parts[group.range.clone()];
            let calls: Vec<_> = members.iter().filter(|part| part.kind == Kind::Tool).collect();
            prop_assert_eq!(calls.len(), group.calls);
            prop_assert!(group.calls > 1 && group.failed <= group.done && group.done <= group.calls);
            prop_assert!(calls.iter().all(|part| part.step == calls[0].step));
            prop_assert_eq!(members[0].kind, Kind::Tool);
            let end = members[members.len() - 1].kind;
            prop_assert!(matches!(end, Kind::Tool | Kind::Agent));
        }
    }
}
