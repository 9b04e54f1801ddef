use unspool_model::id::{Id, PartId, SessionId, StepId, TurnId};
use unspool_model::json::Json;
use unspool_model::part::{AgentState, Agents, Part, Place, Text, Tool, ToolState};
use unspool_model::provenance::{Name, Origin, Positions};
use unspool_model::session::{
    Facts, Session, SessionState, Step, Trigger, Turn, TurnOrigin, Usage,
};

use super::*;
use crate::present::{self, PresentOptions};

fn agent(id: &str, state: AgentState) -> Agent {
    let (name, task) = ("Explore".to_owned(), "Look around".to_owned());
    Agent { id: id.into(), name, task, state, ..Agent::default() }
}

pub(in crate::present) fn turn(bodies: Vec<Body>, state: TurnState) -> Turn {
    let part = |(nth, body): (usize, Body)| Part {
        id: PartId(Id::derive([format!("p{nth}").as_bytes()])),
        place: Place(nth as i64),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    };
    let usage = Usage { input: 1_200, ..Usage::default() };
    let step = Step {
        id: StepId(Id::derive([b"step".as_slice()])),
        name: Name::Preamble,
        at: Positions::default(),
        model: None,
        usage,
        stop_reason: None,
        request: None,
        provenance: None,
    };
    Turn {
        id: TurnId(Id::derive([b"turn".as_slice()])),
        number: 1,
        trigger: Trigger::User,
        user: Vec::new(),
        thinking_mode: false,
        state,
        abandoned: false,
        inherited: false,
        started: None,
        ended: None,
        steps: vec![step],
        parts: bodies.into_iter().enumerate().map(part).collect(),
        origin: TurnOrigin::default(),
    }
}

fn tool(name: &str, output: &str) -> Body {
    let (state, output) = (ToolState::Completed, Some(output.to_owned()));
    Body::Tool(Box::new(Tool { name: name.into(), state, output, ..Tool::default() }))
}

fn session(id: &str, bodies: Vec<Body>, state: TurnState) -> Transcript {
    let session = Session {
        id: SessionId::of("claude-code", id),
        agent: "claude-code".into(),
        agent_session_id: id.into(),
        facts: Facts::default(),
        state: SessionState::Idle,
        parent: None,
        forked_from: None,
    };
    Transcript { session, turns: vec![turn(bodies, state)] }
}

fn agents(list: Vec<Agent>) -> Body {
    Body::Agent(Agents { call_id: "c".into(), agents: list })
}

fn shown(bodies: Vec<Body>, sessions: &[Transcript]) -> String {
    let mut subagents = SubagentSessions::default();
    sessions.iter().for_each(|session| subagents.add(session));
    let options = PresentOptions { subagents, ..PresentOptions::default() };
    let view = present::turn(&turn(bodies, TurnState::Completed), &options);
    let lines = crate::lines::turn_lines(&view, 100, &crate::lines::LineOptions::default());
    crate::plain::paint(&lines)
}

// R-X-08: the tree replaces the card, and the card's body is kept.
#[test]
fn a_tree_stands_for_the_call_that_started_it() {
    let call = || tool("SomeTask", "The report.");
    let alone = shown(vec![call()], &[]);
    assert!(alone.contains("SomeTask") && alone.contains("[OK]"), "{alone}");
    let tree = shown(vec![call(), agents(vec![agent("a", AgentState::Completed)])], &[]);
    assert!(!tree.contains("[OK]"), "{tree}");
    assert!(tree.contains("Explore  Look around") && tree.contains("The report."), "{tree}");
    let empty = shown(vec![call(), agents(Vec::new())], &[]);
    assert!(empty.contains("[OK]"), "{empty}");
}

// R-003-27: full while one of them is not done, compact afterwards; five, and then how many more.
#[test]
fn a_tree_is_full_while_an_agent_works_and_shows_five_at_most() {
    let busy =
        |state: AgentState| Agent { activity: Some("reads".to_owned()), ..agent("a", state) };
    let done = || Agent { activity: Some("wrote".to_owned()), ..agent("b", AgentState::Completed) };
    for state in [AgentState::Running, AgentState::Pending, AgentState::Background] {
        let text = shown(vec![agents(vec![done(), busy(state)])], &[]);
        assert!(text.contains("reads") && text.contains("wrote"), "{text}");
    }
    for state in [AgentState::Completed, AgentState::Failed, AgentState::Interrupted] {
        let text = shown(vec![agents(vec![done(), busy(state)])], &[]);
        assert!(!text.contains("reads") && !text.contains("wrote"), "{text}");
        assert_eq!(text.matches("Look around").count(), 2, "{text}");
    }
    for (count, more) in [(5, None), (6, Some("+1")), (12, Some("+7"))] {
        let many = (0..count).map(|nth| agent(&nth.to_string(), AgentState::Running)).collect();
        let text = shown(vec![agents(many)], &[]);
        assert_eq!(text.matches("Look around").count(), 5, "{text}");
        assert_eq!(text.lines().rev().find(|line| line.starts_with('+')), more, "{text}");
    }
}

// R-003-27: name, task, state, counts, tokens, last tools; nested to any depth.
#[test]
fn what_their_own_sessions_say_is_joined() {
    let inner = session("inner", vec![tool("Grep", "")], TurnState::Completed);
    let child = session(
        "child",
        vec![
            tool("Read", ""),
            tool("Bash", ""),
            tool("Task", ""),
            agents(vec![agent("inner", AgentState::Running)]),
        ],
        TurnState::Running,
    );
    let bodies = || vec![tool("Task", ""), agents(vec![agent("child", AgentState::Running)])];
    let text = shown(bodies(), &[child.clone(), inner.clone()]);
    assert!(text.contains("● Explore  Look around  1 tool · 1,200 tokens  completed"), "{text}");
    assert!(text.contains("◐ Explore  Look around  3 tools · 1,200 tokens  running"), "{text}");
    assert!(text.contains("Read, Bash, Task"), "{text}");
    // The parent's own data is unchanged.
    assert!(!shown(bodies(), &[]).contains("tokens  running"));
}

// R-003-27, R-003-34: only its own end event ends a background agent.
#[test]
fn a_background_agent_ends_with_its_own_session() {
    let bodies = || vec![agents(vec![agent("a", AgentState::Background)])];
    for (own, word) in [
        (TurnState::Running, "background"),
        (TurnState::Unknown, "background"),
        (TurnState::Completed, "completed"),
        (TurnState::Failed, "failed"),
        (TurnState::Interrupted, "interrupted"),
    ] {
        let text = shown(bodies(), &[session("a", vec![tool("Grep", "")], own)]);
        let is_active = word == "background";
        let first = text.lines().find(|line| line.contains("Explore")).unwrap_or_default();
        assert!(first.ends_with(word), "{text}");
        // R-003-27: a tree without an active agent is compact.
        assert_eq!(text.contains("Grep"), is_active, "{text}");
    }
}

// R-003-34: what a call in the background returns is advice to the model.
#[test]
fn a_call_that_started_an_agent_in_the_background_shows_its_report() {
    let started = |output: &str, result: &str| {
        let (state, output) = (ToolState::Completed, Some(output.to_owned()));
        let result = Json::parse(result);
        Body::Tool(Box::new(Tool { name: "Task".into(), state, output, result, ..Tool::default() }))
    };
    let shown_with = |call: Body, sessions: &[Transcript]| {
        shown(vec![call, agents(vec![agent("a", AgentState::Completed)])], sessions)
    };
    for (output, result) in [
        ("task_id: internal", r#"{"isAsync":true}"#),
        ("task_id: internal", r#"{"type":"task_execution","status":"background"}"#),
        ("task_id: internal", r#"{"sessionId":"s","background":true}"#),
        ("Task launched in background.\ntask_id: internal", "null"),
    ] {
        let alone = shown_with(started(output, result), &[]);
        assert!(!alone.contains("internal"), "{alone}");
        assert!(alone.contains("its report comes later"), "{alone}");
        let said = Body::Text(Text { text: "All is well.".into(), ..Text::default() });
        let known = [session("a", vec![said], TurnState::Completed)];
        let known = shown_with(started(output, result), &known);
        assert!(known.contains("All is well.") && !known.contains("comes later"), "{known}");
    }
    // One that ran in the foreground after all.
    let report = shown_with(started("The report.", r#"{"status":"completed"}"#), &[]);
    assert!(report.contains("The report."), "{report}");
}

// Law 8: logs are untrusted.
#[test]
fn agents_that_started_each_other_are_no_trouble() {
    let circle = |id: &str, of: &str| {
        session(id, vec![agents(vec![agent(of, AgentState::Running)])], TurnState::Running)
    };
    let bodies = vec![agents(vec![agent("a", AgentState::Running)])];
    let text = shown(bodies, &[circle("a", "b"), circle("b", "a")]);
    assert_eq!(text.matches("Look around").count(), MAX_TREE_DEPTH + 1, "{text}");
}
