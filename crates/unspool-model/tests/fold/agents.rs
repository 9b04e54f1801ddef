//! Sub-agents of a call: grouped directly after it, in the foreground or in the background.

use unspool_model::change::SkipReason;
use unspool_model::event::EndReason::{self, Completed, Failed, Idle, Interrupted, Superseded};
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{AgentEnd, ToolEnd};

use crate::script::*;

fn agents(run: &Run) -> String {
    let turns = run.turns();
    let found = turns.iter().flatten().find(|part| part.starts_with("agents of t1: "));
    found.map(|part| part["agents of t1: ".len()..].to_owned()).unwrap_or_default()
}

fn background() -> Run {
    reply([called("t1", "Task"), background_started("t1", "a")])
}

#[test]
fn the_first_state_follows_the_mode() {
    // R-003-28 R-003-18
    assert_eq!(agents(&reply([called("t1", "Task"), agent_started("t1", "a")])), "a running");
    assert_eq!(agents(&background()), "a background");
    let later = reply([called("t1", "Task"), agent_started("t1", "a"), agent_went_on("t1", "a")]);
    assert_eq!(agents(&later), "a background");
}

#[test]
fn only_the_matching_agent_ends() {
    // R-003-29 R-003-35
    let mut run = reply([
        called("t1", "Task"),
        agent_started("t1", "a"),
        agent_started("t1", "b"),
        background_started("t1", "c"),
    ]);
    run.apply(agent_ended("t1", "b", AgentEnd::Failed));
    assert_eq!(agents(&run), "a running, b failed, c background");
    run.apply(agent_ended("", "a", AgentEnd::Completed));
    assert_eq!(agents(&run), "a completed, b failed, c background");
    run.apply(agent_ended("", "c", AgentEnd::Interrupted));
    assert_eq!(agents(&run), "a completed, b failed, c interrupted");
}

#[test]
fn an_agents_end_is_final() {
    // R-003-07 R-003-29: contradicting events are skipped and counted.
    let mut run = reply([
        called("t1", "Task"),
        agent_started("t1", "a"),
        agent_ended("t1", "a", AgentEnd::Completed),
    ]);
    for late in [
        agent_ended("t1", "a", AgentEnd::Failed),
        agent_started("t1", "a"),
        agent_went_on("t1", "a"),
    ] {
        run.apply(late.clone());
        assert_eq!(agents(&run), "a completed", "{late:?}");
    }
    assert_eq!(run.skipped(SkipReason::Contradiction), 1);
}

#[test]
fn path_1_a_tools_result_does_not_end_a_background_agent() {
    // R-003-30
    for end in [ToolEnd::Completed, ToolEnd::Failed, ToolEnd::Denied] {
        let mut run = background();
        run.apply(ended("t1", end, "launched"));
        assert_eq!(agents(&run), "a background", "{end:?}");
    }
    let mut run = reply([called("t1", "Task"), agent_started("t1", "a")]);
    run.apply(ended("t1", ToolEnd::Completed, "done"));
    assert_eq!(agents(&run), "a completed");
}

fn reasons() -> [EndReason; 5] {
    [Completed, Failed(None), Interrupted, Idle, Superseded]
}

#[test]
fn path_2_the_end_of_the_turn_does_not_end_a_background_agent() {
    // R-003-31 R-003-34 R-X-13
    for reason in reasons() {
        let mut run = background();
        run.apply_all([ended("t1", ToolEnd::Completed, ""), over(reason.clone())]);
        assert_eq!(agents(&run), "a background", "{reason:?}");
        assert_ne!(run.state(), "running");
        run.apply(agent_ended("", "a", AgentEnd::Completed));
        assert_eq!(agents(&run), "a completed", "{reason:?}");
    }
}

#[test]
fn path_3_deferred_completion_ends_only_the_foreground() {
    // R-003-32 R-003-35
    let mut run = reply([
        called("t1", "Task"),
        agent_started("t1", "a"),
        background_started("t1", "b"),
        over(Completed),
    ]);
    assert_eq!((agents(&run).as_str(), run.state()), ("a running, b background", "running"));
    run.apply(agent_ended("t1", "a", AgentEnd::Completed));
    assert_eq!((agents(&run).as_str(), run.state()), ("a completed, b background", "completed"));
}

#[test]
fn path_4_a_turn_of_agents_only_leaves_the_background_alone() {
    // R-003-33 R-003-35
    for reason in reasons() {
        let run = reply([
            called("t1", "Task"),
            background_started("t1", "a"),
            called("t2", "Task"),
            background_started("t2", "b"),
            over(reason.clone()),
        ]);
        assert_ne!(run.state(), "running", "{reason:?}");
        let parts = run.parts();
        assert_eq!(parts[1], "agents of t1: a background", "{reason:?}");
        assert_eq!(parts[3], "agents of t2: b background", "{reason:?}");
    }
}

#[test]
fn a_background_agent_ends_by_its_own_end_in_a_later_turn() {
    // R-003-34 R-003-54
    let mut run = background();
    run.apply_all([
        ended("t1", ToolEnd::Completed, ""),
        over(Completed),
        prompt("p2"),
        said(Text, "other"),
    ]);
    run.apply(agent_ended("t1", "a", AgentEnd::Failed));
    assert_eq!(agents(&run), "a failed");
    assert_eq!(run.turns()[1], [r#"text:"other""#]);
}

#[test]
fn every_end_of_a_turn_ends_the_foreground() {
    // R-X-02 R-X-13 R-003-35
    for reason in [Failed(None), Interrupted, Idle, Superseded] {
        let run = reply([
            called("t1", "Task"),
            agent_started("t1", "a"),
            background_started("t1", "b"),
            over(reason.clone()),
        ]);
        assert_eq!(agents(&run), "a interrupted, b background", "{reason:?}");
    }
}

#[test]
fn each_call_has_its_own_agent_part() {
    // R-003-39 C-16
    let run = reply([
        called("t1", "Task"),
        agent_started("t1", "a"),
        said(Text, "x"),
        called("t2", "Task"),
        agent_started("t2", "b"),
        agent_started("t1", "c"),
    ]);
    assert_eq!(
        run.parts(),
        [
            "tool t1 running",
            "agents of t1: a running, c running",
            r#"text:"x""#,
            "tool t2 running",
            "agents of t2: b running",
        ]
    );
}

#[test]
fn a_temporary_id_is_promoted_without_a_second_row() {
    // R-003-40
    let mut run = reply([called("t1", "Task"), agent_started("t1", "")]);
    assert_eq!(agents(&run), "temp_t1 running");
    run.apply(agent_went_on("t1", "real"));
    assert_eq!(agents(&run), "real background");
    run.apply(agent_started("t1", ""));
    assert_eq!(agents(&run), "real background");
    run.apply(agent_ended("", "real", AgentEnd::Completed));
    assert_eq!(agents(&run), "real completed");
}

#[test]
fn a_temporary_agent_that_ended_keeps_its_end_when_promoted() {
    // R-003-40
    let run = reply([
        called("t1", "Task"),
        agent_started("t1", ""),
        agent_ended("t1", "", AgentEnd::Failed),
        agent_started("t1", "real"),
    ]);
    assert_eq!(agents(&run), "real failed");
}

#[test]
fn events_of_an_agent_that_arrive_before_its_start_are_applied_to_it() {
    // R-X-04
    let run = reply([
        agent_ended("", "a", AgentEnd::Failed),
        called("t1", "Task"),
        agent_started("t1", "a"),
    ]);
    assert_eq!(agents(&run), "a failed");
    // Until then, none of it appears in the main text.
    let alone = reply([said(Text, "x"), agent_ended("", "a", AgentEnd::Failed)]);
    assert_eq!(alone.parts(), [r#"text:"x""#]);
}

#[test]
fn an_agent_that_starts_before_its_call_arrives_is_not_lost() {
    // R-X-04, several feeds: a hook may report the agent before the log has the call.
    let mut run = fold([prompt("p1").hook(), background_started("t1", "a").hook()]);
    run.apply_all([prompt("p1"), called("t1", "Task")]);
    assert_eq!(agents(&run), "a background");
    let ended = reply([agent_ended("t1", "a", AgentEnd::Failed), called("t1", "Task")]);
    assert!(agents(&ended).is_empty() || agents(&ended) == "a failed");
    let reported = reply([
        agent_ended("t1", "a", AgentEnd::Failed),
        called("t1", "Task"),
        agent_started("t1", "a"),
    ]);
    assert_eq!(agents(&reported), "a failed");
}

#[test]
fn news_of_an_agent_that_nobody_knows_is_counted() {
    // Law 3 and law 4: nothing is dropped without a trace.
    let run = reply([agent_started("", "nobody")]);
    let traced = run.skipped(SkipReason::Unknown) == 1 || !run.parts().is_empty();
    assert!(traced, "{:?}", run.parts());
}

#[test]
fn one_feed_on_one_agent_does_not_silence_another_feed_on_another() {
    // R-003-29, several feeds: nothing that only one feed has is dropped.
    let mut run =
        reply([called("t1", "Task"), background_started("t1", "a"), background_started("t1", "b")]);
    run.apply_all([
        agent_ended("t1", "a", AgentEnd::Completed),
        agent_ended("t1", "b", AgentEnd::Completed).hook(),
    ]);
    assert_eq!(agents(&run), "a completed, b completed");
}

#[test]
fn agents_keep_their_own_names_when_feeds_differ() {
    // R-003-29: the same for their names.
    use unspool_model::event::EventKind;
    use unspool_model::part::Body;
    let named = |id: &str, name: &str| {
        let (name, task) = (name.to_owned(), String::new());
        crate::script::Line::from(EventKind::AgentStarted {
            agent: agent_of("t1", id),
            name,
            task,
            background: true,
        })
    };
    let run = reply([called("t1", "Task"), named("a", "Explore"), named("b", "Plan").hook()]);
    let names: Vec<String> = run
        .turn()
        .parts
        .into_iter()
        .filter_map(
            |part| if let Body::Agent(agents) = part.body { Some(agents.agents) } else { None },
        )
        .flatten()
        .map(|agent| agent.name)
        .collect();
    assert_eq!(names, ["Explore", "Plan"]);
}
