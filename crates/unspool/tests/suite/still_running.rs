//! Whether a session still runs is one function of its last record and the time: the list, the
//! command line, REST, the page, the terminal and exports agree.

use jiff::{SignedDuration, Timestamp};
use unspool_store::database::Database;
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;

use crate::harness::Machine;
use crate::test_server::Server;

/// A Codex log with a start, one turn without an end, and no other times.
fn log(started: Timestamp) -> String {
    let meta = format!(
        r#"{{"timestamp":"{started}","type":"session_meta","payload":{{"id":"01a0e8a3-0000-7000-8000-000000000001","timestamp":"{started}","cwd":"/w","originator":"codex_exec","cli_version":"0.166.0","source":"exec"}}}}"#
    );
    let rest = r#"
{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}
{"type":"event_msg","payload":{"type":"user_message","message":"Hi"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}}
"#;
    meta + rest
}

/// The states of the session and of its turn on every surface.
fn assert_states(silent_for: SignedDuration, session: &str, turn: &str) {
    let machine = Machine::new();
    machine.write("rollout.jsonl", log(Timestamp::now() - silent_for).as_bytes());
    let path = machine.home().join("rollout.jsonl");
    machine.ok("data", &["import", path.to_str().unwrap()]);
    let listed = machine.json("data", &["list"]);
    assert_eq!(listed[0]["state"], session);
    assert!(listed[0]["ended_at"].is_null(), "it has a start only");
    let id = listed[0]["id"].as_str().unwrap();

    let shown = machine.json("data", &["show", id]);
    assert_eq!(
        (&shown["session"]["state"], &shown["turns"][0]["state"]),
        (&session.into(), &turn.into())
    );
    let exported = machine.ok("data", &["export", id, "--to", "json"]);
    let exported: serde_json::Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(exported["turns"][0]["state"], turn, "{exported}");

    let server = Server::begin(&machine, "data", &[]);
    let served = server.json(&format!("/api/sessions/{id}"));
    assert_eq!(
        (&served["session"]["state"], &served["turns"][0]["state"]),
        (&session.into(), &turn.into())
    );
    assert_eq!(server.json(&format!("/api/sessions/{id}/turns/1"))["state"], turn);
    let page = String::from_utf8(server.get(&format!("/s/{id}")).body).unwrap();
    assert!(page.contains(&format!("data-state=\"{turn}\"")), "{page}");

    let store = Database::open_to_read(&machine.data("data").join("unspool.db")).unwrap();
    let mut terminal = TestHarness::new(store, (120, 30), Theme::named("mocha").unwrap()).unwrap();
    terminal.open(id);
    let screen = terminal.text();
    assert!(screen.contains(&format!("· {turn}")), "{screen}");
}

#[test]
fn a_session_with_only_a_start_runs_everywhere_or_nowhere() {
    assert_states(SignedDuration::from_mins(2), "live", "running");
    assert_states(SignedDuration::from_mins(90), "idle", "unknown");
}
