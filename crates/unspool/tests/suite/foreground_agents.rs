//! The end of a reply while its sub-agents still work, as a person sees it in the terminal
//! application.
#![cfg(target_os = "linux")]

use serde_json::json;

use crate::attention::{Agent, SESSION};
use crate::harness::Machine;
use crate::terminal::Terminal;

/// Two sub-agents in the foreground, and a reply that has ended.
fn agents_at_work<'a>(machine: &'a Machine) -> (Agent<'a>, Terminal) {
    let mut agent = Agent::start(machine);
    for (id, what) in [("toolu_1", "Read the tests"), ("toolu_2", "Read the docs")] {
        let input = json!({"subagent_type": "explorer", "description": what, "prompt": what});
        agent.answer(
            json!({"type": "tool_use", "id": id, "name": "Task", "input": input}),
            "tool_use",
        );
    }
    agent.answer(json!({"type": "text", "text": "Both are at work."}), "end_turn");
    let mut terminal = Terminal::open(machine, (100, 30), &[]);
    terminal.shows("Clean up");
    terminal.press("\r");
    let screen = terminal.shows("Both are at work.");
    assert!(is_running(&screen), "{screen}");
    (agent, terminal)
}

fn is_running(screen: &str) -> bool {
    header(screen, "Turn 1").contains("running")
}

/// The line that opens a turn.
fn header<'a>(screen: &'a str, turn: &str) -> &'a str {
    screen.lines().find(|line| line.contains(turn)).unwrap_or_default()
}

/// R-003-36: a turn whose reply has ended is not over while sub-agents in the foreground work.
#[test]
fn a_turn_is_over_when_the_last_of_its_agents_is() {
    let machine = Machine::new();
    let (mut agent, mut terminal) = agents_at_work(&machine);
    agent.result("toolu_1", "12 tests");
    let screen = terminal.shows("Read the tests  completed");
    assert!(is_running(&screen), "{screen}");
    agent.result("toolu_2", "3 pages");
    let screen = terminal.until("the end of the turn", |text| !is_running(text));
    assert!(screen.contains("Read the docs  completed"), "{screen}");
    let shown = machine.json("archive", &["show", SESSION]);
    assert_eq!(shown["turns"][0]["state"], "completed", "{shown}");
    terminal.press("qq");
    terminal.ends();
}

/// R-003-37: the end that waited for the agents of an older reply does not end the turn that runs.
#[test]
fn a_deferred_end_of_an_older_turn_ends_no_newer_one() {
    let machine = Machine::new();
    let (mut agent, mut terminal) = agents_at_work(&machine);
    agent.prompt("And the examples?");
    agent.call("toolu_3", "ls examples");
    terminal.shows("ls examples");
    for id in ["toolu_1", "toolu_2"] {
        agent.result(id, "late");
    }
    agent.answer(json!({"type": "text", "text": "There are three."}), "tool_use");
    let screen = terminal.shows("There are three.");
    let newer = header(&screen, "Turn 2");
    assert!(newer.contains("running") && !newer.contains("completed"), "{screen}");
    terminal.press("qq");
    terminal.ends();
}
