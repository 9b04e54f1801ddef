//! Law 2 at a cut, case by case: an assembler resumed from the stored transcript behaves as one
//! that never stopped.

use unspool_model::assemble::content_hash;
use unspool_model::event::EndReason::{Completed, Interrupted};
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{AgentEnd, CallRef, EventKind, ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::Decision;
use unspool_model::provenance::Name;
use unspool_model::session::Turn;

use crate::script::*;

/// Folds `before` and `after` with and without a restart between them.
fn same_after_restart(before: Vec<Line>, after: Vec<Line>) {
    let mut whole = fold(before);
    let mut cut = whole.restarted();
    whole.apply_all(after.clone());
    cut.apply_all(after);
    assert_eq!(cut.turns(), whole.turns());
    assert_eq!(cut.transcript(), whole.transcript());
}

/// The n-th call of [`called`] for Bash, by its content.
fn same_call(nth: u32) -> CallRef {
    CallRef::ByContent(content_hash("Bash", Json::parse(r#"{"q":1}"#).as_ref()), nth)
}

#[test]
fn law_2_growing_prose_goes_on() {
    same_after_restart(
        vec![prompt("p1"), grew(Text, "a")],
        vec![grew(Text, "b"), grew(Reasoning, "c")],
    );
    let name = block("m", 0);
    same_after_restart(
        vec![prompt("p1"), step("m"), grew_in(Text, name.clone(), "a")],
        vec![grew_in(Text, name.clone(), "b"), block_over(name), called("t1", "Bash")],
    );
}

#[test]
fn law_2_white_space_that_was_held_back() {
    let name = block("m", 0);
    same_after_restart(
        vec![prompt("p1"), grew_in(Text, name.clone(), "\n")],
        vec![grew_in(Text, name, "a")],
    );
}

#[test]
fn law_2_equal_texts_that_close_together() {
    // The block that began first has its text last. Closing numbers equal texts.
    let (first, second) = (block("m", 1), block("m", 0));
    same_after_restart(
        vec![
            prompt("p1"),
            block_begun(first.clone()),
            grew_in(Text, second, "a"),
            grew_in(Text, first, "a"),
        ],
        vec![step("n")],
    );
}

#[test]
fn law_2_prose_closed_by_the_end_of_another_feed() {
    let name = block("m", 0);
    same_after_restart(
        vec![
            prompt("p1").stream(),
            grew_in(Text, name.clone(), "a").stream(),
            prompt("p1"),
            over(Interrupted),
        ],
        vec![grew_in(Text, name, "b").stream()],
    );
}

#[test]
fn law_2_an_input_that_streams_becomes_whole() {
    same_after_restart(
        vec![prompt("p1"), input_grew("t1", "Bash", "{\"q\"")],
        vec![called("t1", "Bash"), ended("t1", ToolEnd::Completed, "x")],
    );
}

#[test]
fn law_2_a_tool_opened_without_its_name() {
    same_after_restart(
        vec![prompt("p1"), tool_started("t1")],
        vec![prompt("p1").hook(), called("t1", "Bash").hook()],
    );
}

#[test]
fn law_2_questions_and_rejections() {
    same_after_restart(
        vec![prompt("p1"), called("t1", "Bash"), ask_question("t1", question(Some("r1"), "Run?"))],
        vec![answered("t1", Decision::Denied), ended("t1", ToolEnd::Rejected, "")],
    );
    same_after_restart(
        vec![
            prompt("p1"),
            called("t1", "Bash"),
            ended("t1", ToolEnd::Interrupted, ""),
            ended("t1", ToolEnd::Rejected, ""),
        ],
        vec![ask_question("t1", question(None, "Run?"))],
    );
}

#[test]
fn law_2_agents_with_inferred_and_observed_ends() {
    same_after_restart(
        vec![
            prompt("p1"),
            called("t1", "Task"),
            agent_started("t1", "a"),
            agent_started("t1", "b"),
            agent_ended("t1", "a", AgentEnd::Completed),
            ended("t1", ToolEnd::Completed, ""),
        ],
        vec![agent_went_on("t1", "b"), over(Completed)],
    );
}

#[test]
fn law_2_the_end_of_an_agent_that_nobody_had_introduced() {
    // R-X-04
    same_after_restart(
        vec![prompt("p1"), called("t1", "Task"), agent_ended("", "a", AgentEnd::Failed)],
        vec![agent_started("t1", "a")],
    );
}

#[test]
fn law_2_facts_of_the_session() {
    let folder = |path: &str| {
        Line::from(EventKind::SessionUpdated {
            project: Some(path.to_owned()),
            branch: None,
            version: None,
            cost: None,
        })
    };
    same_after_restart(vec![folder("/a")], vec![folder("/b")]);
    same_after_restart(vec![folder("/a")], vec![folder("/b").hook()]);
    same_after_restart(vec![folder("/a").hook()], vec![folder("/b")]);
}

#[test]
fn law_2_similar_calls_without_an_id_after_the_cut() {
    let hook =
        |nth: u32| Line::from(EventKind::ToolStarted { call: same_call(nth) }).hook().in_turn("p1");
    same_after_restart(
        vec![prompt("p1"), called("t1", "Bash"), called("t2", "Bash")],
        vec![hook(0), hook(1), hook(2), called("t3", "Bash")],
    );
}

#[test]
fn law_2_prose_taken_over_by_a_stronger_feed() {
    let name = block("m", 0);
    same_after_restart(
        vec![
            prompt("p1").hook(),
            grew_in(Text, name.clone(), "a").hook(),
            prompt("p1"),
            grew_in(Text, name, "ab"),
        ],
        vec![step("m2"), said(Text, "c")],
    );
}

#[test]
fn law_2_prose_that_grows_in_an_older_turn() {
    let name = block("m", 0);
    same_after_restart(
        vec![
            prompt("p1"),
            said(Text, "a"),
            prompt("p2"),
            grew_in(Text, name, "late").in_turn("p1"),
            notice(Some("n"), "retry").in_turn("p2"),
        ],
        vec![step("m2").in_turn("p2")],
    );
}

#[test]
fn law_2_a_call_that_is_merged_together_with_its_turn() {
    // The log reaches a call of the stream by its id, and has it without an id already. Merging
    // the turns merges the calls, and the log has placed one call.
    let mut nameless = called("", "Bash");
    if let EventKind::ToolCalled(call) = &mut nameless.kind {
        call.call = same_call(0);
    }
    let next = EventKind::ToolRefined { call: same_call(1), outcome: ToolOutcome::default() };
    same_after_restart(
        vec![
            started(vec![Name::ByContent(2, 0)], vec![]),
            called("t1", "Task").stream().in_turn("p3"),
            called("t2", "Bash").stream(),
            nameless,
            input_grew("t2", "Bash", "{"),
        ],
        vec![next.into()],
    );
}

#[test]
fn law_2_a_name_that_two_turns_of_a_feed_have() {
    let text = Name::ByContent(1, 0);
    let first = started(vec![text.clone()], vec![]);
    let second = started(vec![prompt_name("p1"), text.clone()], vec![]);
    same_after_restart(
        vec![first.clone().hook(), prompt("p1"), second.hook()],
        vec![first.stream()],
    );
}

#[test]
fn law_2_a_name_that_another_prompt_takes() {
    // Law 9: the turn that had the name is released and restored.
    let text = Name::ByContent(1, 0);
    let named = |prompt: &str| started(vec![prompt_name(prompt), text.clone()], vec![]);
    let mut whole = fold([named("p1").hook(), named("p2"), prompt("p3").hook()]);
    let mut restored = whole.clone();
    let is_first = |turn: &&Turn| turn.origin.names.contains(&prompt_name("p1"));
    let first = whole.builder.turns().find(is_first).unwrap();
    assert!(restored.assembler.release(first.id));
    restored.assembler.restore(first);
    let late = started(vec![text.clone()], vec![]).stream();
    whole.apply(late.clone());
    restored.apply(late);
    assert_eq!(restored.transcript(), whole.transcript());
}

#[test]
fn law_2_equal_calls_of_two_turns_that_are_merged() {
    same_after_restart(
        vec![
            started(vec![Name::ByContent(2, 0)], vec![]),
            called("t1", "Bash"),
            called("t2", "Bash").stream().in_turn("p3"),
            input_grew("t2", "Bash", "{"),
        ],
        vec![called("t3", "Bash")],
    );
}
