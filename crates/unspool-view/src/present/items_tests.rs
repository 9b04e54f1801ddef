use jiff::Timestamp;
use unspool_model::id::{Id, TurnId};
use unspool_model::part::{Place, Reasoning, Tool, ToolState};
use unspool_model::provenance::Origin;
use unspool_model::session::{Trigger, TurnOrigin, TurnState};
use unspool_model::skeleton::Skeleton;

use super::super::{Folding, PresentOptions, partial_turn};
use super::*;
use crate::lines::{LineOptions, closed_reasoning_lines, turn_lines};
use crate::plain::paint;

fn part(place: i64, times: (i64, Option<i64>), body: Body) -> Part {
    let at = |millisecond| Timestamp::from_millisecond(millisecond).unwrap();
    Part {
        id: PartId(Id::derive([place.to_le_bytes().as_slice()])),
        place: Place(place),
        step: Some(StepId(Id::derive([b"step".as_slice()]))),
        started: Some(at(times.0)),
        ended: times.1.map(at),
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

fn call(name: &str, state: ToolState) -> Body {
    Body::Tool(Box::new(Tool { name: name.into(), state, ..Tool::default() }))
}

/// Reasoning and three parallel calls, of which the last runs until `ended`.
fn turn(ended: Option<i64>) -> Turn {
    let last = if ended.is_some() { ToolState::Failed } else { ToolState::Running };
    let reasoning = Body::Reasoning(Reasoning { text: "Look.".into(), ..Reasoning::default() });
    Turn {
        id: TurnId(Id::derive([b"turn".as_slice()])),
        number: 1,
        trigger: Trigger::User,
        user: Vec::new(),
        thinking_mode: true,
        state: TurnState::Running,
        abandoned: false,
        inherited: false,
        started: None,
        ended: None,
        steps: Vec::new(),
        parts: vec![
            part(1, (0, Some(0)), reasoning),
            part(2, (0, Some(300)), call("Alpha", ToolState::Completed)),
            part(3, (5, Some(400)), call("Beta", ToolState::Completed)),
            part(4, (9, ended), call("Gamma", last)),
        ],
        origin: TurnOrigin::default(),
    }
}

#[test]
fn parallel_calls_are_below_a_title_also_behind_a_reasoning_block() {
    // Law 1: nothing moves.
    let view = super::super::turn(&turn(Some(1_200)), &PresentOptions::default());
    let lines = paint(&turn_lines(&view, 60, &LineOptions::default()));
    let lines: Vec<&str> = lines.lines().skip(2).collect();
    assert_eq!(
        lines,
        [
            "◌ Reasoning (3 tool calls) — Look.",
            "┊ ┌ 3 calls at once · 1.2 s · 1 failed",
            "┊ │ ● Alpha                                             [OK]",
            "  │ ● Beta                                              [OK]",
            "  │ ✕ Gamma                                         [FAILED]",
        ]
    );
    let Some(Item::Reasoning(block)) = view.items.first() else { panic!("no block") };
    let closed = paint(&closed_reasoning_lines(block, 60, &LineOptions::default()));
    assert_eq!(closed.lines().count(), 3, "{closed}");
}

#[test]
fn a_block_that_folds_its_calls_names_them() {
    // C-23: a setting folds all, and then the line names them.
    let mut turn = turn(Some(1_200));
    let more = Body::Reasoning(Reasoning { text: "And more.".into(), ..Reasoning::default() });
    turn.parts.insert(2, part(2, (300, Some(300)), more));
    for (place, part) in (1..).zip(&mut turn.parts) {
        part.place = Place(place);
    }
    let options = PresentOptions { folding: Folding::All, ..PresentOptions::default() };
    let view = super::super::turn(&turn, &options);
    let Some(Item::Reasoning(block)) = view.items.first() else { panic!("no block") };
    let closed = paint(&closed_reasoning_lines(block, 60, &LineOptions::default()));
    assert_eq!(closed.lines().collect::<Vec<_>>(), ["◌ Reasoning · Alpha · 1 more — Look."]);
    // What is opened is complete.
    let everything = LineOptions::everything();
    let opened = paint(&turn_lines(&view, 60, &everything));
    for name in ["Alpha", "And more.", "Beta", "Gamma"] {
        assert!(opened.contains(name), "{name}: {opened}");
    }
}

#[test]
fn the_end_of_a_call_repaints_the_title_and_nothing_between() {
    // Law 2: a live page repaints the items whose context changed.
    let hashes = |turn: &Turn| {
        let laid = layout(turn, &Skeleton::of(turn), SegmentRule::Default);
        laid.into_iter().map(|laid| laid.context_hash).collect::<Vec<u64>>()
    };
    let (before, after) = (hashes(&turn(None)), hashes(&turn(Some(1_200))));
    let same: Vec<bool> = before.iter().zip(&after).map(|(a, b)| a == b).collect();
    // The block with the title; the call that ended is repainted because its part changed.
    assert_eq!(same, [false, true, true]);
}

#[test]
fn a_part_of_a_group_looks_the_same_whatever_else_is_loaded() {
    let whole = turn(None);
    let part_skeletons = Skeleton::of(&whole);
    let mut loaded = whole.clone();
    loaded.parts.drain(..2);
    let options = PresentOptions::default();
    let all = super::super::turn(&whole, &options);
    let some = partial_turn(&loaded, &part_skeletons, &options);
    let group = |item: Option<&Item>| match item {
        Some(Item::Part(part)) => part.group.clone(),
        Some(Item::Reasoning(_)) | None => None,
    };
    let member = GroupMember { title: None, after_block: true };
    assert_eq!(group(some.items.first()), Some(Box::new(member)));
    assert_eq!(group(some.items.first()), group(all.items.get(1)));
}
