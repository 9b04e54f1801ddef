use serde_json::{Value, json};
use unspool_model::part::{Body, McpServer};

use crate::in_memory::SessionSet;
use crate::read::lines::Line;

/// The snapshots of a session, with the number of the turn and how many parts stand before each.
fn snapshots(records: &[Value]) -> Vec<(u32, usize, Vec<McpServer>)> {
    let mut session_set = SessionSet::default();
    let mut input = session_set.open("s.jsonl");
    for (number, record) in (1..).zip(records) {
        let bytes = record.to_string().into_bytes();
        session_set.take(&mut input, Line { number, offset: number * 1000, bytes: &bytes });
    }
    session_set.close(input, &mut |_| {});
    let [session] = session_set.sessions.as_slice() else { panic!("one session") };
    let mut found = Vec::new();
    for turn in session.transcript().turns {
        for (nth, part) in turn.parts.into_iter().enumerate() {
            if let Body::McpSnapshot(snapshot) = part.body {
                found.push((turn.number, nth, snapshot.servers));
            }
        }
    }
    found
}

fn server(name: &str, status: &str, tools: &[&str]) -> McpServer {
    let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
    McpServer { name: name.to_owned(), status: Some(status.to_owned()), tools }
}

fn claude(turns: &[Value]) -> Vec<(u32, usize, Vec<McpServer>)> {
    let mut records = Vec::new();
    for (nth, servers) in turns.iter().enumerate() {
        records.push(json!({
            "type": "system", "subtype": "init", "cwd": "/w", "session_id": "s", "model": "m",
            "tools": ["Bash", "mcp__city_map__find", "mcp__city_map__route", "mcp__city__now"],
            "mcp_servers": servers, "apiKeySource": "none", "permissionMode": "default",
            "claude_code_version": "2.1.325", "uuid": format!("init-{nth}"),
        }));
        records.push(json!({
            "type": "assistant", "session_id": "s", "uuid": format!("said-{nth}"),
            "parent_tool_use_id": null,
            "message": { "id": format!("m{nth}"), "role": "assistant", "model": "m",
                "content": [{ "type": "text", "text": "done" }] },
        }));
        records.push(json!({
            "type": "result", "subtype": "success", "is_error": false, "session_id": "s",
            "uuid": format!("end-{nth}"), "num_turns": 1, "result": "done",
        }));
    }
    snapshots(&records)
}

// R-003-05
#[test]
fn claude_code_shows_its_servers_when_they_change() {
    let both = json!([{ "name": "city map", "status": "connected" },
        { "name": "city", "status": "failed" }, { "status": "nameless" }, 7]);
    let one = json!([{ "name": "city", "status": "failed" }]);
    let found = claude(&[both.clone(), both, one, json!([]), json!([])]);
    let map = server("city map", "connected", &["find", "route"]);
    let city = || server("city", "failed", &["now"]);
    assert_eq!(
        found,
        [(1, 0, vec![map, city()]), (3, 0, vec![city()]), (4, 0, Vec::new())],
        "at the start of the turn, and not again while nothing changes"
    );
}

#[test]
fn an_agent_without_servers_shows_none() {
    assert_eq!(claude(&[json!([]), json!(null), json!("x")]), []);
}

// R-003-05
#[test]
fn copilot_shows_its_servers_and_their_changes() {
    let event = |kind: &str, nth: u32, data: Value| {
        json!({
            "type": kind, "id": format!("e{nth}"), "parentId": null, "ephemeral": true,
            "timestamp": format!("2026-11-15T00:49:1{nth}.000Z"), "data": data,
        })
    };
    let changed = |nth: u32, name: &str, status: &str| {
        event(
            "session.mcp_server_status_changed",
            nth,
            json!({ "serverName": name, "status": status }),
        )
    };
    let start = json!({ "sessionId": "s", "version": 1, "producer": "copilot-agent",
        "copilotVersion": "1.0.63", "startTime": "2026-11-15T00:49:10.000Z",
        "context": { "cwd": "/w" } });
    let loaded = json!({ "servers": [
        { "name": "github", "status": "connected", "source": "builtin", "transport": "http" },
        { "name": "map", "status": "pending" }] });
    let found = snapshots(&[
        event("session.start", 0, start),
        event("user.message", 1, json!({ "content": "hello", "interactionId": "i" })),
        event("session.mcp_servers_loaded", 2, loaded.clone()),
        event("session.mcp_servers_loaded", 3, loaded),
        changed(4, "map", "failed"),
        changed(5, "map", "failed"),
    ]);
    let github = || server("github", "connected", &[]);
    let states: Vec<Vec<McpServer>> = found.into_iter().map(|(_, _, servers)| servers).collect();
    assert_eq!(
        states,
        [
            vec![github(), server("map", "pending", &[])],
            vec![github(), server("map", "failed", &[])],
        ]
    );
}
