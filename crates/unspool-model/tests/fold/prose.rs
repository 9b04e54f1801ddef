//! Text and reasoning: deltas, complete texts, names, white space.

use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseDetail;
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::part::Body;

use crate::script::*;

#[test]
fn whole_text_reconciles_with_its_deltas() {
    // R-X-05
    let named = reply([
        grew_in(Text, block("m", 0), "Hel"),
        grew_in(Text, block("m", 0), "lo"),
        said_in(Text, block("m", 0), "Hello!"),
    ]);
    assert_eq!(named.parts(), [r#"text:"Hello!""#]);
    let nameless = reply([grew(Text, "Hel"), said(Text, "Hello!")]);
    assert_eq!(nameless.parts(), [r#"text:"Hello!""#]);
    let again =
        reply([said_in(Text, block("m", 0), "Hello"), said_in(Text, block("m", 0), "Hello")]);
    assert_eq!(again.parts(), [r#"text:"Hello""#]);
    let empty = reply([grew(Text, "Hello"), said(Text, "")]);
    assert_eq!(empty.parts(), [r#"text:"Hello""#]);
}

#[test]
fn deltas_after_a_whole_text_open_a_new_part() {
    // R-003-19 R-X-05 R-X-07: the complete text closed the part, so the next delta opens another.
    let run = reply([grew(Text, "Hel"), said(Text, "Hello"), grew(Text, "Next")]);
    assert_eq!(run.parts(), [r#"text:"Hello""#, r#"text…:"Next""#]);
}

#[test]
fn a_second_whole_text_does_not_replace_the_first() {
    // R-X-05, law 4: two texts without names are two texts.
    let run = reply([grew(Text, "Hel"), said(Text, "Hello"), said(Text, "World")]);
    assert_eq!(run.parts(), [r#"text:"Hello""#, r#"text:"World""#]);
}

#[test]
fn the_same_reasoning_source_after_its_end_opens_a_new_part() {
    // R-X-07
    let run = reply([grew(Reasoning, "a"), said(Reasoning, "ab"), grew(Reasoning, "c")]);
    assert_eq!(run.parts(), [r#"reasoning:"ab""#, r#"reasoning…:"c""#]);
}

#[test]
fn news_for_a_named_block_that_ended_is_not_lost() {
    // R-X-07: a delta with its own key is not a repeat.
    let name = block("m", 0);
    let run = reply([
        grew_in(Reasoning, name.clone(), "a"),
        block_over(name.clone()),
        grew_in(Reasoning, name, "b"),
    ]);
    assert!(format!("{:?}", run.parts()).contains('b'), "{:?}", run.parts());
}

#[test]
fn empty_prose_makes_no_part() {
    // R-X-07 R-003-20, text rule: empty parts are never created.
    for prose_kind in [Text, Reasoning] {
        let run = reply([
            grew(prose_kind, ""),
            grew(prose_kind, " \n"),
            said(prose_kind, ""),
            said(prose_kind, "  "),
            grew_in(prose_kind, block("m", 0), " "),
            block_over(block("m", 0)),
            called("t1", "Bash"),
        ]);
        assert_eq!(run.parts(), ["tool t1 running"]);
    }
}

#[test]
fn white_space_before_the_first_word_is_kept_with_its_own_kind() {
    // R-000-09: white space of a text does not belong to the reasoning after it.
    let run = reply([grew(Text, "\n"), grew(Text, "a")]);
    assert_eq!(run.parts(), [r#"text…:"\na""#]);
    let run = reply([grew(Text, "\n\n"), grew(Reasoning, "think")]);
    assert_eq!(run.parts(), [r#"reasoning…:"think""#]);
}

#[test]
fn redacted_reasoning_is_not_empty_and_keeps_its_data() {
    // R-001-22
    let redacted = ProseDetail {
        redacted: true,
        signature: Some("opaque".to_owned()),
        ..ProseDetail::default()
    };
    let signed = ProseDetail { signature: Some("sig".to_owned()), ..ProseDetail::default() };
    let run = reply([
        said_with(Reasoning, Some(block("m", 0)), "", redacted),
        said_with(Reasoning, Some(block("m", 1)), "hm", signed),
    ]);
    assert_eq!(run.parts(), ["reasoning:redacted", r#"reasoning:"hm""#]);
    let signatures: Vec<_> = run
        .turn()
        .parts
        .into_iter()
        .filter_map(|part| {
            if let Body::Reasoning(reasoning) = part.body { reasoning.signature } else { None }
        })
        .collect();
    assert_eq!(signatures, ["opaque", "sig"]);
}

#[test]
fn named_blocks_grow_side_by_side() {
    // Text rule: the name decides; a tool call does not close a named block.
    let (a, b) = (block("m", 0), block("m", 1));
    let mut run = reply([
        grew_in(Reasoning, a.clone(), "a"),
        grew_in(Text, b.clone(), "1"),
        grew_in(Reasoning, a.clone(), "b"),
        called("t1", "Bash"),
        grew_in(Text, b.clone(), "2"),
    ]);
    assert_eq!(run.parts(), [r#"reasoning…:"ab""#, r#"text…:"12""#, "tool t1 running"]);
    run.apply(block_over(a));
    assert_eq!(run.parts()[..2], [r#"reasoning:"ab""#, r#"text…:"12""#]);
    run.apply(block_over(b));
    assert_eq!(run.parts()[1], r#"text:"12""#);
}

#[test]
fn one_message_over_several_records_is_one_step_in_order() {
    // R-001-21
    let run = reply([
        step("m1"),
        said_in(Reasoning, block("m1", 0), "a"),
        step("m1"),
        said_in(Text, block("m1", 1), "b"),
        step("m1"),
        called("t1", "Bash"),
        over(Completed),
    ]);
    let turn = run.turn();
    assert_eq!(turn.steps.len(), 1);
    assert!(turn.parts.iter().all(|part| part.step == Some(turn.steps[0].id)));
    assert_eq!(run.parts(), [r#"reasoning:"a""#, r#"text:"b""#, "tool t1 interrupted"]);
}

#[test]
fn a_replayed_delta_counts_once() {
    // R-000-13, law 5: the same key is the same delta.
    let name = block("m", 0);
    let run = reply([
        grew_in(Text, name.clone(), "a").key(10),
        grew_in(Text, name.clone(), "a").key(11),
        grew_in(Text, name.clone(), "a").key(11),
        grew_in(Text, name, "a").key(10),
    ]);
    assert_eq!(run.parts(), [r#"text…:"aa""#]);
    assert_eq!(run.skipped(unspool_model::change::SkipReason::Duplicate), 2);
}

#[test]
fn replayed_leading_white_space_counts_once() {
    // Law 5: also for the delta that was held back.
    let name = block("m", 0);
    let run = reply([
        grew_in(Text, name.clone(), " ").key(10),
        grew_in(Text, name.clone(), "a").key(11),
        grew_in(Text, name.clone(), " ").key(10),
        grew_in(Text, name, "a").key(11),
    ]);
    assert_eq!(run.parts(), [r#"text…:" a""#]);
}

#[test]
fn reasoning_never_grows_a_text() {
    // R-000-03: a delta of another kind under the same name is a contradiction, not text.
    let run =
        reply([grew_in(Text, block("m", 0), "hi"), grew_in(Reasoning, block("m", 0), "secret")]);
    assert_eq!(run.turn().content(), "hi");
}

#[test]
fn thinking_mode_comes_from_the_request_else_from_the_parts() {
    // R-004-03 R-004-21
    use unspool_model::event::EventKind;
    assert!(reply([said(Reasoning, "hm")]).turn().thinking_mode);
    assert!(!reply([said(Text, "hm")]).turn().thinking_mode);
    let reported = reply([EventKind::ThinkingUpdated(false).into(), said(Reasoning, "hm")]);
    assert!(!reported.turn().thinking_mode);
    let late = reply([said(Reasoning, "hm"), EventKind::ThinkingUpdated(false).into()]);
    assert!(!late.turn().thinking_mode);
    assert!(
        reply([EventKind::ThinkingUpdated(true).into(), said(Text, "hm")]).turn().thinking_mode
    );
}
