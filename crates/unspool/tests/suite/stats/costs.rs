//! What sessions cost, and which of their time is a tool's.

use serde_json::{Value, json};

use super::archive::{Archive, list, number, tokens};

const SESSION: &str = "6a3d1c8e-0000-4000-8000-00000000000";

fn record(session: u8, at: &str, mut fields: Value) -> String {
    let more = json!({ "sessionId": format!("{SESSION}{session}"), "version": "2.1.325",
        "cwd": "/home/dev/app", "isSidechain": false, "timestamp": at });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("{fields}\n")
}

/// A turn of one model call with a million input tokens: 4 dollars.
fn turn(session: u8, nth: u8) -> String {
    let at = format!("2026-11-1{nth}T10:00:00.000Z");
    // Odd turns are the first of their session.
    let parent = nth.is_multiple_of(2).then(|| format!("a{}", nth - 1));
    [
        record(
            session,
            &at,
            json!({ "type": "user", "uuid": format!("u{nth}"), "parentUuid": parent,
                "promptId": format!("p{nth}"), "message": { "role": "user", "content": "go" } }),
        ),
        record(
            session,
            &at,
            json!({ "type": "assistant", "uuid": format!("a{nth}"), "parentUuid": format!("u{nth}"),
                "requestId": format!("r{nth}"),
                "message": { "id": format!("m{nth}"), "type": "message", "role": "assistant",
                    "model": "claude-opus-5-5", "content": [{ "type": "text", "text": "done" }],
                    "stop_reason": "end_turn", "usage": { "input_tokens": 1_000_000,
                        "output_tokens": 0, "cache_read_input_tokens": 500_000 } } }),
        ),
    ]
    .concat()
}

/// What Claude Code writes when a process ends.
fn cost_state(session: u8, usd: f64, calls: u64) -> String {
    let used = json!({ "inputTokens": 1_000_000 * calls, "outputTokens": 0,
        "cacheReadInputTokens": 500_000 * calls, "cacheCreationInputTokens": 0, "costUSD": usd });
    let fields = json!({ "type": "cost-state", "totalCostUSD": usd,
        "modelUsage": { "claude-opus-5-5": used } });
    record(session, "2026-11-19T00:00:00.000Z", fields)
}

fn import(archive: &Archive, name: &str, log: &str) {
    let file = archive.0.path().join(name);
    std::fs::write(&file, log).unwrap();
    archive.text(&["import", &file.to_string_lossy()]);
}

#[test]
fn a_reported_cost_that_covers_only_the_last_run_gives_way_to_an_estimate() {
    let archive = Archive::new();
    // Two processes; the second counts only itself.
    let log = [turn(1, 1), cost_state(1, 3.5, 1), turn(1, 2), cost_state(1, 3.0, 1)].concat();
    import(&archive, "resumed.jsonl", &log);
    // Two processes; the second counts both.
    let log = [turn(2, 3), cost_state(2, 3.5, 1), turn(2, 4), cost_state(2, 7.0, 2)].concat();
    import(&archive, "whole.jsonl", &log);

    let sessions = archive.json(&["list"]);
    let of = |session: u8| {
        let own = format!("{SESSION}{session}");
        list(&sessions).iter().find(|one| one["agent_session_id"] == own.as_str()).unwrap()
    };
    let (resumed, whole) = (of(1), of(2));
    assert_eq!(resumed["usage"]["cost_usd"], Value::Null);
    assert_eq!(resumed["usage"]["partial_cost_usd"], 3.5);
    assert_eq!(resumed["usage_with_agents"]["cost_usd"], Value::Null);
    assert_eq!(resumed["usage"]["estimated_cost_usd"], 8.2);
    assert_eq!(whole["usage"]["cost_usd"], 7.0);
    assert_eq!(whole["usage"]["partial_cost_usd"], Value::Null);

    let stats = archive.json(&["stats"]);
    let usage = &stats["totals"]["usage"];
    assert_eq!((&usage["cost_usd"], &usage["partial_cost_usd"]), (&json!(7.0), &json!(3.5)));
    assert_eq!(stats["totals"]["sessions_with_cost"], 1);
    assert_eq!((&usage["spent_usd"], &usage["is_estimated"]), (&json!(15.2), &json!(true)));
    let costs: Vec<&Value> =
        list(&stats["most_expensive"]).iter().map(|one| &one["usage"]["spent_usd"]).collect();
    assert_eq!(costs, [&json!(8.2), &json!(7.0)]);

    let text = archive.text(&["list", "--width", "160"]);
    assert!(text.contains("~$8.20") && text.contains(" $7.00"), "{text}");
    let id = resumed["id"].as_str().unwrap();
    let text = archive.text(&["show", id, "--width", "160"]);
    let why = "~$8.2000 estimated: the agent's own sum covers only a part of the session ($3.5000)";
    assert!(text.contains(why), "{text}");
}

#[test]
fn versions_that_count_each_process_alone_are_found_out() {
    // Three processes of Claude Code 2.1.20 reported $0.079, $0.011 and $0.008 for one session.
    let archive = Archive::of(&["v2-1-20-compaction-and-resume"]);
    let sessions = archive.json(&["list"]);
    let usage = &list(&sessions)[0]["usage"];
    assert_eq!(usage["cost_usd"], Value::Null, "{usage}");
    assert!(usage["estimated_cost_usd"].as_f64() > usage["partial_cost_usd"].as_f64(), "{usage}");
}

#[test]
fn cached_tokens_stand_apart_and_agents_count_in_their_own_row() {
    let archive = Archive::of(&["subagents-parallel-and-background"]);
    let sessions = archive.json(&["list"]);
    let parent = list(&sessions).iter().find(|one| one["parent"].is_null()).unwrap();
    let with_agents = json!({ "usage": parent["usage_with_agents"] });
    assert_ne!(tokens([parent]), tokens([&with_agents]), "the case has agents with tokens");
    let text = archive.text(&["list", "--width", "200"]);
    let cached = number(&parent["usage"]["cache_read"]);
    let [input, output, _, written, _] = tokens([parent]);
    let own = unspool_view::present::format::token_sum(input + output + written, cached);
    assert!(own.ends_with(" cached"), "{own}");
    assert!(text.contains(&own), "{own}: {text}");
    let stats = archive.text(&["stats", "--by", "project", "--width", "120"]);
    assert!(stats.contains(" cached"), "{stats}");
    // A turn, too.
    let shown = archive.text(&["show", parent["id"].as_str().unwrap(), "--width", "120"]);
    assert!(shown.lines().any(|line| line.contains(" tokens + ")), "{shown}");
}

#[test]
fn a_persons_time_is_no_time_of_a_tool() {
    // The log has 18.2 seconds between a call and its result. The hooks say that the command took
    // 344 ms: it waited for permission.
    let archive = Archive::of(&["terminal-permissions-and-questions"]);
    let stats = archive.json(&["stats"]);
    let shown = archive.shown();
    let states = |tool: &str| {
        let tools = list(&stats["tools"]);
        tools.iter().find(|one| one["name"] == tool).unwrap_or_else(|| panic!("no {tool}")).clone()
    };
    let slowest = list(&stats["slowest"]);
    assert!(!slowest.is_empty());
    for call in slowest {
        let of = |part: &&Value| part["id"] == call["part"];
        let part = super::parts(&shown).find(of).unwrap();
        assert_ne!(part["state"], "denied", "{call}");
        assert!(
            !matches!(part["name"].as_str(), Some("AskUserQuestion" | "ExitPlanMode")),
            "{call}"
        );
    }
    let asked = states("AskUserQuestion");
    assert!(number(&asked["calls"]) > 0);
    assert_eq!(asked["duration"]["known"], 0, "{asked}");
    let waited = slowest.iter().find(|call| call["waited_ms"].as_u64() > Some(10_000));
    let waited = waited.unwrap_or_else(|| panic!("{slowest:?}"));
    assert!(number(&waited["duration_ms"]) < 1_000, "{waited}");
    assert_eq!(waited["may_include_waiting"], false);

    // Without hooks nobody knows how much of it was waiting.
    let alone = Archive::new();
    let log = "fixtures/claude-code/terminal-permissions-and-questions/log.jsonl";
    alone.text(&["import", log]);
    let stats = alone.json(&["stats"]);
    let slowest = &stats["slowest"][0];
    assert!(number(&slowest["duration_ms"]) > 10_000, "{slowest}");
    assert_eq!(
        (&slowest["may_include_waiting"], &slowest["waited_ms"]),
        (&json!(true), &Value::Null)
    );
}

#[test]
fn a_reported_time_with_the_permission_in_it_is_marked() {
    // OpenCode 1.18.33 and Qwen Code 0.24.4 report the time from the call on: each of these calls
    // stood at its permission.
    for log in [
        "fixtures/opencode/permissions-allowed-and-denied/log.db",
        "fixtures/qwen/terminal-permissions-and-questions",
    ] {
        let archive = Archive::new();
        archive.text(&["import", log]);
        let stats = archive.json(&["stats"]);
        let asks = ["bash", "edit", "run_shell_command", "write_file"];
        let slowest = list(&stats["slowest"]).iter();
        let asked: Vec<&Value> = slowest
            .filter(|call| call["tool"].as_str().is_some_and(|tool| asks.contains(&tool)))
            .collect();
        assert!(asked.len() >= 2, "{stats:#}");
        for call in asked {
            assert_eq!(call["may_include_waiting"], true, "{call}");
            assert_eq!(call["waited_ms"], Value::Null, "{call}");
        }
        // The same with a filter, and in the figures of the tools.
        let agent = stats["by_agent"][0]["name"].as_str().unwrap();
        let narrow = archive.json(&["stats", "--agent", agent]);
        assert_eq!(narrow["slowest"], stats["slowest"]);
        let tools = list(&stats["tools"]).iter();
        for tool in tools.filter(|tool| tool["name"].as_str().is_some_and(|it| asks.contains(&it)))
        {
            assert_eq!(tool["duration"]["with_waiting"], tool["duration"]["known"], "{tool}");
        }
    }
}
