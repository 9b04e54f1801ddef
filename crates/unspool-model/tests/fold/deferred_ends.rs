//! Deferred completion and the generation guard.

use unspool_model::assemble::Assembler;
use unspool_model::change::{Change, SkipReason};
use unspool_model::event::EndReason::{Completed, Idle, Interrupted};
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{AgentEnd, ToolEnd};

use crate::script::*;

fn waiting() -> Run {
    let run = reply([
        called("t1", "Task"),
        agent_started("t1", "a"),
        agent_started("t1", "b"),
        over(Completed).at(50),
    ]);
    assert_eq!(run.state(), "running");
    run
}

#[test]
fn completion_waits_for_the_last_agent_in_the_foreground() {
    // R-003-36 C-17
    let mut run = waiting();
    run.apply(agent_ended("t1", "a", AgentEnd::Completed));
    assert_eq!(run.state(), "running");
    run.apply(agent_ended("t1", "b", AgentEnd::Failed).at(60));
    assert_eq!(run.state(), "completed");
    assert_eq!(run.turn().ended.unwrap().as_second(), 50);
    // It fires once.
    let changes = run.apply(agent_ended("t1", "b", AgentEnd::Failed).at(70));
    assert_eq!(run.state(), "completed");
    let debug_text = format!("{changes:?}");
    assert!(!debug_text.contains("state: Some(Completed)"), "{debug_text}");
}

#[test]
fn background_never_blocks_completion() {
    // C-17 R-003-31
    let run = reply([
        called("t1", "Task"),
        background_started("t1", "a"),
        ended("t1", ToolEnd::Completed, ""),
        over(Completed),
    ]);
    assert_eq!(run.state(), "completed");
}

#[test]
fn completion_fires_when_the_calls_results_end_the_agents() {
    // R-003-36 R-X-13: a foreground agent ends with its call.
    let mut run = waiting();
    run.apply(ended("t1", ToolEnd::Completed, "done"));
    assert_eq!(run.parts()[1], "agents of t1: a completed, b completed");
    assert_eq!(run.state(), "completed");
}

#[test]
fn completion_fires_when_the_last_agent_goes_to_the_background() {
    // R-003-36 C-17: background never blocks.
    let mut run = waiting();
    run.apply_all([agent_ended("t1", "a", AgentEnd::Completed), agent_went_on("t1", "b")]);
    assert_eq!(run.parts()[1], "agents of t1: a completed, b background");
    assert_eq!(run.state(), "completed");
}

#[test]
fn idle_and_interrupt_do_not_wait() {
    // R-X-13 R-003-34
    for reason in [Idle, Interrupted] {
        let mut run = waiting();
        run.apply(over(reason));
        assert_eq!(run.parts()[1], "agents of t1: a interrupted, b interrupted");
        assert_ne!(run.state(), "running");
    }
}

#[test]
fn a_deferred_end_of_an_older_turn_changes_nothing_in_a_newer_one() {
    // R-003-37
    let mut run = waiting();
    run.apply_all([prompt("p2"), grew(Text, "new")]);
    run.apply_all([
        agent_ended("t1", "a", AgentEnd::Completed),
        agent_ended("t1", "b", AgentEnd::Completed),
    ]);
    assert_eq!(run.turns()[1], [r#"text…:"new""#]);
    assert_eq!(run.state(), "running");
}

#[test]
fn a_deferred_end_is_dropped_when_the_turn_goes_on() {
    // R-003-37: the end belonged to the stream before this step.
    let mut run = waiting();
    run.apply_all([step("m2"), grew(Text, "more")]);
    run.apply_all([
        agent_ended("t1", "a", AgentEnd::Completed),
        agent_ended("t1", "b", AgentEnd::Completed),
    ]);
    assert_eq!(run.state(), "running");
    assert_eq!(run.parts().last().unwrap(), r#"text…:"more""#);
    run.apply(grew(Text, "!"));
    assert_eq!(run.parts().last().unwrap(), r#"text…:"more!""#);
}

#[test]
fn a_deferred_end_survives_a_restart() {
    // R-003-36, law 2
    let mut run = waiting().restarted();
    run.apply_all([
        agent_ended("t1", "a", AgentEnd::Completed),
        agent_ended("t1", "b", AgentEnd::Completed),
    ]);
    assert_eq!(run.state(), "completed");
}

#[test]
fn events_of_an_old_generation_change_nothing() {
    // R-003-38
    let mut run = reply([grew(Text, "new").generation(2), called("t1", "Bash").generation(2)]);
    let before = run.transcript();
    let stale = [
        over(Completed),
        grew(Text, "old"),
        called("t9", "Bash"),
        ended("t1", ToolEnd::Completed, "old"),
        agent_started("t1", "old"),
        prompt("p9"),
        notice(None, "informational"),
    ];
    let count = stale.len() as u64;
    for line in stale {
        let changes = run.apply(line.generation(1));
        assert_eq!(changes.len(), 1, "{changes:?}");
    }
    assert_eq!(run.transcript(), before);
    assert_eq!(run.skipped(SkipReason::Stale), count);
    run.apply(ended("t1", ToolEnd::Completed, "x").generation(2));
    assert_eq!(run.parts()[1], r#"tool t1 completed "x""#);
}

#[test]
fn a_generation_belongs_to_its_feed() {
    // R-003-38: the log has no streams.
    let run = reply([
        prompt("p1").stream().generation(5),
        called("t1", "Bash").generation(1),
        ended("t1", ToolEnd::Completed, "x"),
    ]);
    assert_eq!(run.parts(), [r#"tool t1 completed "x""#]);
}

#[test]
fn each_source_counts_its_own_streams() {
    // R-003-38, law 5: with one count for all files, those that are read later would be lost.
    let mut assembler = Assembler::new(session());
    let mut apply = |nth: u64, source: u16, line: Line| {
        let mut event = line.event(nth);
        event.evidence.source = source;
        let changes = assembler.apply(event);
        changes.iter().any(|change| matches!(change, Change::PartOpened { .. }))
    };
    apply(0, 0, prompt("p1").generation(3));
    assert!(apply(1, 1, called("t1", "Bash").in_turn("p1").generation(1)), "another file");
    assert!(apply(2, 1, called("t2", "Bash").in_turn("p1").generation(2)));
    assert!(!apply(3, 1, called("t3", "Bash").in_turn("p1").generation(1)), "an older stream");
    assert!(apply(4, 0, called("t4", "Bash").in_turn("p1").generation(3)));
}
