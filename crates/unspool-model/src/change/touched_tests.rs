use super::*;
use crate::change::{DeltaField, SkipReason, ToolPatch};
use crate::id::Id;
use crate::part::{Place, Text, Tool};
use crate::provenance::{HiddenReason, Origin};

fn turn(name: &str) -> TurnId {
    TurnId(Id::derive([b"turn".as_slice(), name.as_bytes()]))
}

fn id(name: &str) -> PartId {
    PartId(Id::derive([b"part".as_slice(), name.as_bytes()]))
}

fn part(name: &str, body: Body) -> Part {
    Part {
        id: id(name),
        place: Place(1),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

fn text(text: &str) -> Body {
    Body::Text(Text { text: text.to_owned(), ..Text::default() })
}

/// A session with one turn, a text and a running call.
fn started() -> TranscriptBuilder {
    let mut builder = TranscriptBuilder::new("claude-code", "s");
    let call = Tool { state: ToolState::Running, output: Some("ab".to_owned()), ..Tool::default() };
    builder.apply_all([
        Change::TurnOpened { turn: turn("a") },
        Change::PartOpened { turn: turn("a"), part: Box::new(part("text", text("one"))) },
        Change::PartOpened {
            turn: turn("a"),
            part: Box::new(part("call", Body::Tool(Box::new(call)))),
        },
    ]);
    builder
}

fn touched(changes: impl IntoIterator<Item = Change>) -> Touched {
    let (mut builder, mut delta) = (started(), Delta::default());
    for change in changes {
        delta.push(change.clone(), &builder);
        builder.apply(change);
    }
    delta.touched
}

fn patched(part: &str, patch: PartPatch) -> Change {
    Change::PartUpdated { part: id(part), patch: Box::new(patch) }
}

fn grew(field: DeltaField) -> Change {
    Change::PartDelta { part: id("text"), field, text: "more".to_owned() }
}

#[test]
fn only_text_that_grows_may_wait() {
    // C-20
    let deltas = [grew(DeltaField::Text), grew(DeltaField::Output)];
    assert_eq!(touched(deltas.clone()).urgency, Urgency::Text);
    let closed = patched("text", PartPatch::default());
    assert_eq!(touched([grew(DeltaField::Text), closed]).urgency, Urgency::State);
    let skipped = Change::EventSkipped { reason: SkipReason::Duplicate };
    assert_eq!(touched([skipped]).urgency, Urgency::State);
    assert!(Urgency::State > Urgency::Text, "the more urgent is the greater");
    let touched = touched(deltas);
    assert_eq!(touched.parts, FxHashSet::from_iter([id("text")]));
    assert_eq!(touched.turns, FxHashSet::from_iter([turn("a")]));
    assert!(touched.heads.is_empty() && touched.restructured.is_empty());
}

#[test]
fn text_that_is_replaced_rewrites_its_turn_and_text_that_is_appended_does_not() {
    let rewritten = |change: Change| !touched([change]).rewritten.is_empty();
    let with_text = |text: &str| PartPatch { text: Some(text.to_owned()), ..Default::default() };
    assert!(!rewritten(patched("text", with_text("one two"))));
    assert!(rewritten(patched("text", with_text("two"))));
    let with_body = |body: Body| PartPatch { body: Some(body), ..Default::default() };
    assert!(!rewritten(patched("text", with_body(text("one!")))));
    assert!(rewritten(patched("text", with_body(Body::Tool(Box::default())))));
    let with_output = |output: &str, state: Option<ToolState>| PartPatch {
        tool: Some(Box::new(ToolPatch {
            output: Some(output.to_owned()),
            state,
            ..Default::default()
        })),
        ..Default::default()
    };
    assert!(!rewritten(patched("call", with_output("abc", None))));
    assert!(rewritten(patched("call", with_output("c", None))));
    // The output of a finished call is shown as a whole.
    assert!(!rewritten(patched("call", with_output("c", Some(ToolState::Completed)))));
    for gone in [
        Change::PartRemoved { part: id("text") },
        Change::PartRenamed { part: id("text"), to: id("other") },
        Change::PartMerged { part: id("text"), into: id("call"), take: Vec::new() },
    ] {
        let touched = touched([gone]);
        assert_eq!(touched.rewritten, FxHashSet::from_iter([turn("a")]));
        assert_eq!(touched.restructured, FxHashSet::from_iter([turn("a")]));
        assert_eq!(touched.removed, [id("text")]);
    }
}

#[test]
fn a_merge_touches_the_part_that_is_left() {
    // Its fields may come from the part that is gone, so views must show it again.
    let touched =
        touched([Change::PartMerged { part: id("text"), into: id("call"), take: Vec::new() }]);
    assert_eq!(touched.parts, FxHashSet::from_iter([id("call")]));
}

#[test]
fn a_part_that_moves_touches_both_turns() {
    let touched = touched([
        Change::TurnOpened { turn: turn("b") },
        Change::PartMoved { part: id("call"), to: turn("b") },
    ]);
    let both = FxHashSet::from_iter([turn("a"), turn("b")]);
    assert_eq!((&touched.turns, &touched.restructured), (&both, &both));
    assert_eq!(touched.rewritten, both);
    assert_eq!(touched.parts, FxHashSet::from_iter([id("call")]));
    assert_eq!(touched.removed, [id("call")]);
}

#[test]
fn positions_in_the_feeds_and_hidden_parts_touch_nothing_visible() {
    let patch = TurnPatch { origin: Some(Default::default()), ..Default::default() };
    let mut hidden = part("hidden", text("x"));
    hidden.origin.hidden = Some(HiddenReason::CoveredFragment);
    let touched = touched([
        Change::TurnUpdated { turn: turn("a"), patch: Box::new(patch) },
        Change::PartOpened { turn: turn("a"), part: Box::new(hidden) },
    ]);
    assert_eq!(touched, Touched { urgency: Urgency::State, ..Touched::default() });
}

#[test]
fn ids_are_those_after_the_batch() {
    let number = TurnPatch { number: Some(2), ..Default::default() };
    let renamed = touched([
        Change::TurnOpened { turn: turn("b") },
        Change::TurnUpdated { turn: turn("b"), patch: Box::new(number) },
        Change::PartOpened { turn: turn("b"), part: Box::new(part("new", text("x"))) },
        Change::TurnRenamed { turn: turn("b"), to: turn("c") },
    ]);
    let only = FxHashSet::from_iter([turn("c")]);
    assert_eq!((&renamed.opened, &renamed.turns, &renamed.heads), (&only, &only, &only));
    assert_eq!((&renamed.renumbered, &renamed.rewritten), (&only, &only));
    assert_eq!(renamed.opened_parts[0].0, turn("c"));
    assert_eq!(renamed.renamed, [(turn("b"), turn("c"))]);
    assert!(renamed.is_reordered());
    let merged = touched([
        Change::TurnOpened { turn: turn("b") },
        Change::TurnMerged { turn: turn("b"), into: turn("a"), take: Vec::new() },
    ]);
    assert!(merged.opened.is_empty() && merged.is_reordered());
    assert_eq!(merged.turns, FxHashSet::from_iter([turn("a")]));
}

#[test]
fn what_was_touched_crosses_the_change_socket() {
    let mut delta = Delta::default();
    let (mut builder, state) = (started(), Some(ToolState::Completed));
    let tool = Some(Box::new(ToolPatch { state, ..Default::default() }));
    for change in [
        Change::TurnOpened { turn: turn("b") },
        Change::PartOpened { turn: turn("b"), part: Box::new(part("new", text("x"))) },
        patched("call", PartPatch { tool, ..Default::default() }),
        Change::PartRemoved { part: id("text") },
        Change::TurnRenamed { turn: turn("b"), to: turn("c") },
    ] {
        delta.push(change.clone(), &builder);
        builder.apply(change);
    }
    let line = serde_json::to_string(&delta).unwrap();
    assert_eq!(serde_json::from_str::<Delta>(&line).unwrap(), delta);
}

#[test]
fn the_end_of_a_call_has_its_state_and_its_time() {
    // A view that keeps skeletons needs both for the title of parallel calls.
    let ended = jiff::Timestamp::from_millisecond(1_200).ok();
    let tool = ToolPatch { state: Some(ToolState::Completed), ..Default::default() };
    let patch = PartPatch { ended, tool: Some(Box::new(tool)), ..Default::default() };
    let touched = touched([patched("call", patch)]);
    let state = Some(ToolState::Completed);
    let update = ToolUpdate { state, ended_ms: Some(1_200), ..ToolUpdate::default() };
    assert_eq!(touched.tool_updates, [(id("call"), update)]);
}
