//! Budgets of the config file: a warning on every surface that lists sessions.

use jiff::Timestamp;

use crate::harness::{Machine, recorded};
use crate::test_server::Server;

const CONFIG: &str = ".config/unspool/config.toml";

/// A machine whose only session cost $0.1487 today.
fn machine(config: &str) -> Machine {
    let machine = Machine::new();
    machine.write(CONFIG, config.as_bytes());
    let log = String::from_utf8(recorded("claude-code/discovery-loop/log.jsonl")).unwrap();
    let today = Timestamp::now().strftime("%Y-%m-%dT").to_string();
    let log = log.replace("2026-11-15T", &today);
    machine.write(".claude/projects/-home-dev-weather-app/log.jsonl", log.as_bytes());
    machine.ok("data", &["sync"]);
    machine
}

fn said(machine: &Machine, arguments: &[&str]) -> String {
    String::from_utf8(machine.run("data", arguments, "").stderr).unwrap()
}

#[test]
fn a_budget_that_is_nearly_spent_is_said_everywhere() {
    let machine = machine(
        "[budget]\nday_usd = 0.17\n[budget.projects]\n\"/home/dev\" = 0.1\n\"/home/other\" = 0.1\n",
    );
    let day = "Daily budget: $0.15 of $0.17 (87 %)";
    let project = "Daily budget used up for /home/dev: $0.15 of $0.10 (148 %)";
    for command in ["list", "stats"] {
        assert_eq!(said(&machine, &[command]), format!("unspool: {day}\nunspool: {project}\n"));
        assert_eq!(said(&machine, &[command, "--json"]), "", "JSON is for programs");
    }
    let server = Server::begin(&machine, "data", &[]);
    let page = String::from_utf8(server.get("/").body).unwrap();
    assert!(page.contains(day) && page.contains(project), "{page}");
}

#[test]
fn a_budget_with_room_is_not_mentioned() {
    let machine = machine("[budget]\nday_usd = 1\n");
    assert_eq!(said(&machine, &["list"]), "");
    machine.write(CONFIG, b"[budget]\nday_usd = 0\n");
    assert_eq!(
        said(&machine, &["list"]),
        "unspool: invalid limit in [budget] of the config file: expected more than 0 dollars\n"
    );
}

/// The burn rate comes from the model calls of the last ten minutes, and only while a session runs.
#[test]
fn a_live_session_has_a_burn_rate() {
    let machine = Machine::new();
    machine.keep_turns_open();
    let log = String::from_utf8(recorded("claude-code/discovery-loop/log.jsonl")).unwrap();
    // The first half of the recording, five minutes ago.
    let then = Timestamp::now() - jiff::SignedDuration::from_mins(5);
    let minute = then.strftime("%Y-%m-%dT%H:%M").to_string();
    let log = log.replace("2026-11-15T00:22", &minute);
    let lines: Vec<&str> = log.lines().collect();
    let half = lines[..lines.len() / 2].join("\n") + "\n";
    machine.write(".claude/projects/-home-dev-weather-app/log.jsonl", half.as_bytes());
    machine.ok("data", &["sync"]);
    let server = Server::begin(&machine, "data", &[]);
    let id = machine.json("data", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let page = String::from_utf8(server.get(&format!("/s/{id}")).body).unwrap();
    let rate = page.split("burn-rate\">").nth(1).and_then(|rest| rest.split('<').next());
    let rate = rate.unwrap_or_else(|| panic!("no rate: {page}"));
    assert!(rate.contains("tokens/min · ~$") && rate.contains("/h in the last minutes"), "{rate}");
}
