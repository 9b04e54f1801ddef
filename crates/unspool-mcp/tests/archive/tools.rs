//! Each tool, its cursors and its errors.

use serde_json::{Value, json};
use unspool_mcp::{MIN_LIMIT, Scope, tools};
use unspool_store::database::DatabaseView;

use crate::machine::{Client, Log, Machine};

const CASE: &str = "claude-code/discovery-loop";
const TITLE: &str = "The forecast cache keeps missing";

fn discovery() -> (Machine, Client, String) {
    let machine = Machine::with_cases(&[CASE]);
    let client = machine.server(Scope::All);
    let id = client.titled(TITLE);
    (machine, client, id)
}

#[test]
fn sessions_are_listed_by_filter_and_by_page() {
    let machine = Machine::with_cases(&[
        CASE,
        "claude-code/subagents-nested",
        "codex/steered",
        "claude-code/question-answered",
    ]);
    let client = machine.server(Scope::All);
    let all = client.sessions();
    assert!(all.len() >= 6, "{all:#?}");
    let top = client.all("list_sessions", "sessions", json!({}));
    assert!(top.iter().all(|it| it.get("started_by").is_none()), "{top:#?}");
    assert_eq!(top.len(), 4);
    let codex = client.all("list_sessions", "sessions", json!({ "agent": "codex" }));
    assert_eq!(codex.len(), 1);
    assert_eq!(codex[0]["agent"], "codex");
    // The smallest answers hold a few sessions each: the pages have all of them, in the same order.
    let paged =
        client.all("list_sessions", "sessions", json!({ "sub_agents": true, "limit": MIN_LIMIT }));
    assert_eq!(paged, all);
    let error = client.try_call("list_sessions", json!({ "since": "soon" })).unwrap_err();
    assert!(error.contains("`since`"), "{error}");
}

#[test]
fn a_session_has_an_outline_and_turns_in_true_order() {
    let (_machine, client, id) = discovery();
    let outline = client.call("get_session", json!({ "session": id }));
    assert_eq!(outline["session"], id);
    let turns = outline["turns"].as_array().unwrap();
    assert!(turns[0]["user"].as_str().unwrap().starts_with(TITLE), "{outline:#}");
    // A prefix is enough.
    let short = client.call("get_session", json!({ "session": &id[..8] }));
    assert_eq!(short["session"], outline["session"]);
    let parts = client.all("get_turn", "parts", json!({ "session": id, "turn": 1 }));
    assert_eq!(parts[0]["kind"], "user");
    let kinds: Vec<&str> = parts.iter().map(|part| part["kind"].as_str().unwrap()).collect();
    // The recording: reasoning, a text, then two calls at once.
    assert_eq!(&kinds[1..5], ["reasoning", "text", "tool", "tool"], "{kinds:?}");
    assert_eq!((&parts[3]["tool"], &parts[4]["tool"]), (&json!("Glob"), &json!("Grep")));
    assert_eq!(parts[3]["state"], "completed");
    assert!(parts[3]["output"].as_str().unwrap().contains("src/cache.ts"));
    let paged =
        client.all("get_turn", "parts", json!({ "session": id, "turn": 1, "limit": MIN_LIMIT }));
    let ids = |parts: &[Value]| parts.iter().map(|it| it["part"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&paged), ids(&parts));
    let calls =
        client.all("get_turn", "parts", json!({ "session": id, "turn": 1, "tool": "Edit" }));
    assert!(!calls.is_empty() && calls.iter().all(|it| it["tool"] == "Edit"), "{calls:#?}");
    let error = client.try_call("get_turn", json!({ "session": id, "turn": 99 })).unwrap_err();
    assert!(error.contains("no turn 99"), "{error}");
}

#[test]
fn a_part_comes_in_windows_that_are_its_whole_text() {
    let machine = Machine::new();
    let output: String =
        (0..20_000).map(|n| format!("line {n} \"é\" \\ of the output\n")).collect();
    let mut log = Log::new("11111111-aaaa-4aaa-8aaa-111111111111", "/home/dev/app");
    log.turn("Print lines", "I print.", "seq 20000", &output, "Done.");
    machine.read_text("log.jsonl", log.text());
    let client = machine.server(Scope::All);
    let id = client.titled("Print lines");
    let parts = client.all("get_turn", "parts", json!({ "session": id }));
    let call = parts.iter().find(|part| part["kind"] == "tool").unwrap();
    assert!(call["output"].as_str().unwrap().chars().count() <= 600);
    assert_eq!(call["output_chars"], output.chars().count());
    for limit in [2_000, 40_000] {
        let pieces = client.all(
            "get_part",
            "texts",
            json!({ "session": id, "part": call["part"], "limit": limit }),
        );
        let whole: String = pieces
            .iter()
            .filter(|piece| piece["name"] == "output")
            .map(|piece| piece["text"].as_str().unwrap())
            .collect();
        assert_eq!(whole, output, "at {limit}");
    }
    let error = client.try_call("get_part", json!({ "session": id })).unwrap_err();
    assert!(error.contains("needs `part`"), "{error}");
    let error = client.try_call("get_part", json!({ "session": id, "part": "x" })).unwrap_err();
    assert!(error.contains("no such part"), "{error}");
}

#[test]
fn search_finds_parts_that_can_be_opened() {
    let (_machine, client, id) = discovery();
    let found = client.call("search_sessions", json!({ "query": "ForecastCache", "count": 50 }));
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.len() > 2, "{found:#}");
    for hit in hits {
        assert!(hit["snippet"].as_str().unwrap().contains("ForecastCache"), "{hit:#}");
        assert_eq!(hit["of"]["session"], id);
        if let Some(part) = hit.get("part") {
            client.call("get_part", json!({ "session": id, "part": part, "turn": hit["turn"] }));
        }
    }
    let paged =
        client.all("search_sessions", "hits", json!({ "query": "ForecastCache", "count": 2 }));
    assert_eq!(&paged, hits);
    let edits = client.call("search_sessions", json!({ "tool": "Edit" }));
    assert!(!edits["hits"].as_array().unwrap().is_empty());
    let none = client.call("search_sessions", json!({ "query": "nowhereatall" }));
    assert_eq!(none["hits"], json!([]));
    assert!(none["understood"].as_str().unwrap().contains("Nothing found"), "{none:#}");
    assert!(client.try_call("search_sessions", json!({})).unwrap_err().contains("`query`"));
}

#[test]
fn failures_say_what_failed_and_where() {
    let (_machine, client, id) = discovery();
    let failures = client.all("list_failures", "failures", json!({}));
    assert!(!failures.is_empty());
    for failure in &failures {
        assert_eq!(failure["state"], "failed");
        assert_eq!(failure["of"]["session"], id);
        assert!(failure["part"].is_string() && failure["turn"].is_u64(), "{failure:#}");
    }
    let errors = client.call("list_failures", json!({ "of": "errors" }));
    assert_eq!(errors["failures"], json!([]));
    let machine = Machine::with_cases(&["claude-code/error-gives-up"]);
    let errors =
        machine.server(Scope::All).all("list_failures", "failures", json!({ "of": "errors" }));
    assert_eq!(errors[0]["kind"], "error", "{errors:#?}");
}

// R-002-42
#[test]
fn findings_name_parts_that_can_be_opened() {
    let machine = Machine::new();
    for session in 0..3 {
        let id = format!("7777777{session}-aaaa-4aaa-8aaa-777777777777");
        let mut log =
            Log::new(&id, if session < 2 { "/home/dev/app" } else { "/home/dev/app/web" });
        for _ in 0..4 {
            log.turn("Read it", "Hm.", "cat notes.txt", &"the same notes ".repeat(30), "Done.");
        }
        machine.read_text(&format!("{id}.jsonl"), log.text());
    }
    let client = machine.server(Scope::All);
    let all = client.all("get_findings", "findings", json!({}));
    assert!(all.len() >= 3, "{all:#?}");
    for finding in &all {
        assert!(finding["count"].as_u64() <= finding["of"].as_u64(), "{finding:#}");
        for place in finding["places"].as_array().unwrap() {
            let (session, part) = (&place["session"], &place["part"]);
            let of = json!({ "session": session, "part": part, "turn": place["turn"] });
            assert!(!client.call("get_part", of)["texts"].as_array().unwrap().is_empty());
        }
    }
    let one = &client.sessions()[0]["session"];
    let of_one =
        client.all("get_findings", "findings", json!({ "session": one, "rule": "read-again" }));
    assert_eq!(of_one.len(), 1, "{of_one:#?}");
    assert_eq!((&of_one[0]["count"], &of_one[0]["sessions"]), (&json!(4), &json!(1)));
    assert!(of_one[0]["what_may_help"].is_string());
    let none = client.call("get_findings", json!({ "rule": "denied" }));
    assert_eq!((&none["findings"], &none["sessions"]), (&json!([]), &json!(3)));
    let paged = client.all("get_findings", "findings", json!({ "limit": MIN_LIMIT }));
    assert_eq!(paged, all);
    // Another project's sessions count for nothing.
    let folder = std::path::Path::new("/home/dev/app/web");
    let below = machine.server(Scope::folder(folder)).call("get_findings", json!({}));
    assert_eq!(below["sessions"], 1, "{below:#}");
}

#[test]
fn statistics_and_flow_have_what_the_archive_has() {
    let (_machine, client, id) = discovery();
    let listed = client.sessions();
    let stats = client.call("get_stats", json!({}));
    assert_eq!(stats["sessions"], listed.len());
    assert_eq!(stats["tool_calls"], listed[0]["tool_calls"]);
    let tools = stats["rows"].as_array().unwrap();
    let calls: u64 = tools.iter().map(|tool| tool["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, listed[0]["tool_calls"].as_u64().unwrap());
    for by in ["day", "week", "month", "model", "agent", "project"] {
        let rows = client.all("get_stats", "rows", json!({ "by": by }));
        assert!(!rows.is_empty(), "{by}");
    }
    let steps = client.all("get_thoughtflow", "steps", json!({ "session": id }));
    assert_eq!(steps[0]["label"], "user_message");
    let labels = |label: &str| steps.iter().filter(|step| step["label"] == label).count() as u64;
    assert_eq!(labels("tool_call"), calls);
    let paged =
        client.all("get_thoughtflow", "steps", json!({ "session": id, "limit": MIN_LIMIT }));
    assert_eq!(paged, steps);
}

#[test]
fn a_prompt_comes_in_pieces() {
    let machine = Machine::with_cases(&["codex/steered", CASE]);
    let client = machine.server(Scope::All);
    let mut seen = 0;
    for session in client.sessions() {
        let id = &session["session"];
        let Ok(_) = client.try_call("get_prompt", json!({ "session": id })) else { continue };
        let calls = client.all("get_prompt", "calls", json!({ "session": id }));
        for call in calls.iter().filter(|call| call.get("turn").is_some()) {
            let of = json!({ "session": id, "turn": call["turn"], "step": call["step"] });
            let pieces = client.all("get_prompt", "pieces", of.clone());
            let mut compared = of.clone();
            compared["compare"] = json!("previous");
            let added = client.all("get_prompt", "pieces", compared);
            assert!(added.len() <= pieces.len());
            for piece in pieces.iter().take(3) {
                let mut one = of.clone();
                one["piece"] = piece["piece"].clone();
                let whole = client.all("get_prompt", "pieces", one);
                let text: String = whole.iter().filter_map(|it| it["text"].as_str()).collect();
                let begun = piece["text"].as_str().unwrap_or_default().trim_end_matches('…');
                assert!(text.starts_with(begun));
                seen += 1;
            }
        }
    }
    assert!(seen > 3, "{seen} pieces");
}

#[test]
fn schemas_are_objects_that_name_every_parameter() {
    let tools = tools::<DatabaseView>();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    assert_eq!(
        names,
        [
            "search_sessions",
            "list_sessions",
            "get_session",
            "get_turn",
            "get_part",
            "list_failures",
            "get_findings",
            "get_prompt",
            "get_thoughtflow",
            "get_stats",
            "list_adaptations",
            "get_adaptation",
            "preview_adaptations",
            "propose_adaptation",
            "update_adaptation",
            "reload_adaptations",
        ]
    );
    let docs = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md"),
    )
    .unwrap();
    for tool in &tools {
        let schema = Value::Object(tool.input_schema());
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema["properties"]["limit"]["maximum"].is_u64());
        for parameter in tool.all_parameters() {
            let property = &schema["properties"][parameter.name];
            assert!(!property["description"].as_str().unwrap().is_empty());
            assert!(docs.contains(&format!("`{}`", parameter.name)), "{}", parameter.name);
        }
        assert!(docs.contains(&format!("| `{}` |", tool.name)), "docs/mcp.md lacks {}", tool.name);
    }
}

#[test]
fn wrong_arguments_are_named() {
    let (_machine, client, id) = discovery();
    for (tool, arguments, said) in [
        (
            "get_turn",
            json!({ "session": id, "turns": 1 }),
            "no parameter \"turns\"; it has session",
        ),
        (
            "get_turn",
            json!({ "session": id, "turn": -1 }),
            "`turn` of get_turn must be a whole number",
        ),
        ("get_turn", json!({ "session": ["x"] }), "`session` of get_turn must be a text"),
        ("get_turn", json!({ "session": id, "kind": "no" }), "one of text, reasoning"),
        ("get_turn", json!({ "session": id, "after": "no cursor" }), "`after` is no cursor"),
        ("get_session", json!({ "session": "zzzz" }), "there is no session \"zzzz\""),
    ] {
        let error = client.try_call(tool, arguments).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    // Models write numbers as texts, and fill in what they do not need.
    client.call("get_turn", json!({ "session": id, "turn": "1", "kind": null }));
}
