//! Law 5, case by case: a log read twice from its beginning changes nothing.

use unspool_model::event::EndReason::{Completed, Idle, Interrupted};
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{AgentEnd, EventKind, ToolEnd};

use crate::script::*;

fn twice_is_once(script: Vec<Line>) {
    let script: Vec<Line> = script.into_iter().zip(10..).map(|(line, key)| line.key(key)).collect();
    let mut run = fold(script.clone());
    let once = run.transcript();
    let shown = run.turns();
    run.apply_all(script);
    assert_eq!(run.turns(), shown);
    let states = |turns: &[unspool_model::session::Turn]| -> Vec<_> {
        turns.iter().map(|turn| (turn.number, turn.state, turn.abandoned)).collect()
    };
    assert_eq!(states(&run.transcript().turns), states(&once.turns));
    assert_eq!(run.transcript(), once);
}

#[test]
fn law_5_a_finished_turn() {
    twice_is_once(vec![
        prompt("p1"),
        step("m1"),
        said_in(Reasoning, block("m1", 0), "a"),
        called("t1", "Bash"),
        ask_question("t1", question(Some("r"), "Run?")),
        ended("t1", ToolEnd::Completed, "x"),
        step("m2"),
        said_in(Text, block("m2", 0), "b"),
        notice(Some("n"), "retry"),
        over(Completed),
    ]);
}

#[test]
fn law_5_a_turn_that_still_runs() {
    twice_is_once(vec![prompt("p1"), said_in(Text, block("m", 0), "a"), called("t1", "Bash")]);
}

#[test]
fn law_5_two_turns_of_which_the_last_still_runs() {
    twice_is_once(vec![
        prompt("p1"),
        said_in(Text, block("m", 0), "a"),
        over(Completed),
        prompt("p2"),
        said_in(Text, block("m", 1), "b"),
        called("t1", "Bash"),
    ]);
}

#[test]
fn law_5_a_rewind() {
    twice_is_once(vec![
        prompt("p1"),
        said_in(Text, block("m", 0), "a"),
        over(Completed),
        prompt("p2"),
        said_in(Text, block("m", 1), "b"),
        over(Completed),
        EventKind::Rewound { turns: vec![prompt_name("p2")] }.into(),
        prompt("p3"),
        said_in(Text, block("m", 2), "c"),
        over(Completed),
    ]);
}

#[test]
fn law_5_deferred_ends_and_agents() {
    twice_is_once(vec![
        prompt("p1"),
        called("t1", "Task"),
        agent_started("t1", "a"),
        over(Completed),
        agent_ended("t1", "a", AgentEnd::Completed),
        prompt("p2"),
        said_in(Text, block("m", 1), "b"),
        over(Interrupted),
    ]);
    twice_is_once(vec![
        prompt("p1"),
        called("t1", "Task"),
        background_started("t1", "a"),
        ended("t1", ToolEnd::Completed, ""),
        over(Completed),
        prompt("p2"),
        agent_ended("", "a", AgentEnd::Completed),
        over(Completed),
    ]);
}

#[test]
fn law_5_a_deferred_end_that_the_next_turn_overtook() {
    // R-003-37
    twice_is_once(vec![
        prompt("p1"),
        called("t1", "Task"),
        agent_started("t1", "a"),
        over(Completed),
        prompt("p2"),
        agent_ended("t1", "a", AgentEnd::Completed),
        over(Completed),
    ]);
}

#[test]
fn law_5_a_result_after_an_idle_end() {
    twice_is_once(vec![
        prompt("p1"),
        called("t1", "Bash"),
        over(Idle),
        ended("t1", ToolEnd::Completed, "x"),
    ]);
}

#[test]
fn law_5_a_turn_that_went_on_after_its_end() {
    twice_is_once(vec![
        prompt("p1"),
        step("m1"),
        said_in(Text, block("m1", 0), "a"),
        over(Interrupted),
        step("m2"),
        said_in(Text, block("m2", 0), "b"),
        over(Completed),
    ]);
}

#[test]
fn law_5_words_that_were_added_to_a_prompt_without_words() {
    twice_is_once(vec![
        started(vec![prompt_name("p1")], vec![]),
        EventKind::UserAdded(words("the words")).into(),
        said_in(Text, block("m", 0), "a"),
        over(Completed),
    ]);
}

#[test]
fn law_5_streamed_blocks() {
    twice_is_once(vec![
        prompt("p1").stream(),
        step("m1").stream(),
        grew_in(Text, block("m1", 0), " ").stream(),
        grew_in(Text, block("m1", 0), "a").stream(),
        grew_in(Text, block("m1", 0), "b").stream(),
        input_grew("t1", "Bash", "{").stream(),
        called("t1", "Bash").stream(),
        output_grew("t1", "x").stream(),
        output_grew("t1", "y").stream(),
    ]);
}

#[test]
fn law_5_a_turn_that_went_on_after_its_end_and_still_runs() {
    twice_is_once(vec![
        prompt("p1"),
        step("m1"),
        said_in(Text, block("m1", 0), "a"),
        over(Interrupted),
        step("m2"),
        called("t1", "Bash"),
    ]);
}

#[test]
fn law_5_a_block_that_still_grows() {
    twice_is_once(vec![
        prompt("p1"),
        step("m1"),
        said_in(Reasoning, block("m1", 0), "a"),
        step("m2"),
        grew_in(Text, block("m2", 0), "b"),
    ]);
}
