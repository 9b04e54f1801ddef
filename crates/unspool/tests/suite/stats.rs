//! `unspool stats`, compared with `list` and `show` of the same archive (R-001-33).

pub mod archive;
mod costs;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use archive::{Archive, list, milliseconds, number, parts, sum, tokens, turns};
use jiff::Timestamp;
use serde_json::{Value, json};
use unspool_view::lines::width;

const GROUPS: [&str; 6] = ["by_day", "by_week", "by_month", "by_model", "by_agent", "by_project"];

/// Sessions with several models, sub-agents, failures, denials, interruptions, no times, copies.
const CASES: [&str; 14] = [
    "compaction-and-resume",
    "discovery-loop",
    "error-gives-up",
    "forked-session",
    "interrupted-mid-tool",
    "killed-mid-tool",
    "sdk-permissions-and-questions",
    "subagents-nested",
    "subagents-parallel-and-background",
    "terminal-permissions-and-questions",
    "v1-0-100-discovery-loop",
    "v1-0-100-subagents",
    "v2-0-30-subagents",
    "v2-1-197-subagents-without-log",
];

#[test]
fn the_json_has_the_names_that_scripts_rely_on() {
    // R-001-33
    let stats = Archive::of(&["discovery-loop"]).json(&["stats"]);
    let names = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|n| (*n).into()).collect() };
    assert_eq!(
        names(&stats),
        set(&[
            "totals",
            "tools",
            "error_paths",
            "by_day",
            "by_week",
            "by_month",
            "by_hour",
            "by_model",
            "by_agent",
            "by_project",
            "most_expensive",
            "slowest",
            "failures"
        ])
    );
    let of_slow = [
        "tool",
        "what",
        "duration_ms",
        "waited_ms",
        "may_include_waiting",
        "session",
        "title",
        "turn",
        "part",
        "at",
    ];
    assert_eq!(names(&stats["slowest"][0]), set(&of_slow));
    let of_totals = [
        "sessions",
        "sub_agents",
        "turns",
        "steps",
        "parts",
        "tool_calls",
        "errors",
        "reasoning_parts",
        "reasoning_share",
        "reasoning_ms",
        "usage",
        "sessions_with_cost",
        "first_at",
        "last_at",
    ];
    assert_eq!(names(&stats["totals"]), set(&of_totals));
    let of_usage = [
        "input",
        "output",
        "cache_read",
        "cache_write",
        "cache_write_1h",
        "reasoning",
        "cost_usd",
        "partial_cost_usd",
        "estimated_cost_usd",
        "unpriced_steps",
        "spent_usd",
        "is_estimated",
    ];
    assert_eq!(names(&stats["totals"]["usage"]), set(&of_usage));
    let of_session =
        ["session", "title", "agent", "project", "started_at", "sub_agents", "turns", "usage"];
    assert_eq!(names(&stats["most_expensive"][0]), set(&of_session));
    let of_hour = ["weekday", "hour", "turns", "steps", "tokens"];
    assert_eq!(names(&stats["by_hour"][0]), set(&of_hour));
    let of_tool = [
        "name",
        "calls",
        "completed",
        "failed",
        "denied",
        "interrupted",
        "running",
        "error_rate",
        "duration",
    ];
    assert_eq!(names(&stats["tools"][0]), set(&of_tool));
    let of_duration = ["known", "median_ms", "p95_ms", "total_ms", "with_waiting"];
    assert_eq!(names(&stats["tools"][0]["duration"]), set(&of_duration));
    for group in GROUPS {
        let of_group = ["name", "sessions", "turns", "steps", "usage"];
        assert_eq!(names(&stats[group][0]), set(&of_group), "{group}");
    }
    assert_eq!(stats["totals"]["first_at"], "2026-11-15T00:22:41.113Z");
    assert_eq!(stats["by_day"][0]["name"], "2026-11-15");
    assert_eq!(stats["by_agent"][0]["name"], "claude-code");
    assert_eq!(stats["by_project"][0]["name"], "/home/dev/weather-app");
    assert_eq!(stats["by_model"][0]["usage"]["cost_usd"], Value::Null);
}

#[test]
fn tokens_and_counts_are_those_of_the_sessions() {
    // R-001-33: exact to the token, against the sessions' own sums and every turn of `show`.
    let archive = Archive::of(&CASES);
    let (stats, sessions, shown) =
        (archive.json(&["stats"]), archive.json(&["list"]), archive.shown());
    let (totals, sessions) = (&stats["totals"], list(&sessions));
    assert!(sessions.len() > CASES.len());
    assert_eq!(tokens([totals]), tokens(sessions));
    assert_eq!(tokens([totals]), tokens(shown.iter().map(|session| &session["session"])));
    assert_eq!(tokens([totals]), tokens(turns(&shown)));
    // The scripted model reports no reasoning tokens.
    assert!(tokens([totals])[..4].iter().all(|count| *count > 0), "{totals}");
    assert_eq!(number(&totals["sessions"]), sessions.len() as u64);
    for (name, of_session) in
        [("turns", "turns"), ("parts", "parts"), ("tool_calls", "tools"), ("errors", "errors")]
    {
        assert_eq!(number(&totals[name]), sum(sessions, of_session), "{name}");
    }
    assert_eq!(number(&totals["turns"]), turns(&shown).count() as u64);
    assert_eq!(number(&totals["parts"]), parts(&shown).count() as u64);
    let reasoning: Vec<&Value> = parts(&shown).filter(|part| part["kind"] == "reasoning").collect();
    assert_eq!(number(&totals["reasoning_parts"]), reasoning.len() as u64);
    let share = reasoning.len() as f64 / parts(&shown).count() as f64;
    assert!((totals["reasoning_share"].as_f64().unwrap() - share).abs() < 1e-9);
    let mut bounds: Vec<i64> =
        sessions.iter().filter_map(|session| milliseconds(&session["started_at"])).collect();
    bounds.sort_unstable();
    assert_eq!(milliseconds(&totals["first_at"]), bounds.first().copied());
    let last = sessions.iter().filter_map(|session| milliseconds(&session["ended_at"])).max();
    assert_eq!(milliseconds(&totals["last_at"]), last);
    let costs: Vec<f64> =
        sessions.iter().filter_map(|session| session["usage"]["cost_usd"].as_f64()).collect();
    assert_eq!(number(&totals["sessions_with_cost"]), costs.len() as u64);
    let reported = totals["usage"]["cost_usd"].as_f64().unwrap();
    assert!((reported - costs.iter().sum::<f64>()).abs() < 1e-9, "{reported}");
}

#[test]
fn groups_add_up_to_the_totals() {
    // R-001-33
    let archive = Archive::of(&CASES);
    let (stats, shown) = (archive.json(&["stats"]), archive.shown());
    let totals = &stats["totals"];
    let estimated = |value: &Value| value["usage"]["estimated_cost_usd"].as_f64();
    for name in GROUPS {
        let groups = list(&stats[name]);
        assert_eq!(tokens(groups), tokens([totals]), "{name}");
        let costs: f64 = groups.iter().filter_map(estimated).sum();
        assert!((costs - estimated(totals).unwrap()).abs() < 1e-9, "{name}: {costs}");
        assert_eq!(sum(groups, "steps"), number(&totals["steps"]), "{name}");
        if name == "by_model" {
            continue;
        }
        assert_eq!(sum(groups, "turns"), number(&totals["turns"]), "{name}");
        let reported = |value: &Value| value["usage"]["cost_usd"].as_f64().unwrap_or_default();
        let costs: f64 = groups.iter().map(reported).sum();
        assert!((costs - reported(totals)).abs() < 1e-9, "{name}: {costs}");
    }
    for name in ["by_agent", "by_project"] {
        assert_eq!(sum(list(&stats[name]), "sessions"), number(&totals["sessions"]), "{name}");
    }
    let models: BTreeSet<&str> = shown
        .iter()
        .flat_map(|session| list(&session["session"]["models"]))
        .map(|model| model.as_str().unwrap())
        .collect();
    let named: Vec<&str> =
        list(&stats["by_model"]).iter().filter_map(|group| group["name"].as_str()).collect();
    assert!(named.len() > 1);
    assert_eq!(named.iter().copied().collect::<BTreeSet<_>>(), models);
    assert_eq!(named.len(), models.len());

    // Days from the turns of `show`: by their start, in UTC.
    let mut days: BTreeMap<Option<String>, (u64, [u64; 5])> = BTreeMap::new();
    for session in &shown {
        for turn in list(&session["turns"]) {
            let of_parts = list(&turn["parts"])
                .iter()
                .filter_map(|part| part["started_at"].as_str().or(part["ended_at"].as_str()));
            let time = turn["started_at"]
                .as_str()
                .or_else(|| of_parts.min())
                .or(turn["ended_at"].as_str())
                .or(session["session"]["started_at"].as_str());
            let day = days.entry(time.map(|time| time[..10].to_owned())).or_default();
            day.0 += 1;
            for (sum, used) in day.1.iter_mut().zip(tokens([turn])) {
                *sum += used;
            }
        }
    }
    let reported: BTreeMap<Option<String>, (u64, [u64; 5])> = list(&stats["by_day"])
        .iter()
        .map(|day| {
            (day["name"].as_str().map(str::to_owned), (number(&day["turns"]), tokens([day])))
        })
        .collect();
    assert_eq!(reported, days);
}

#[test]
fn tools_are_counted_as_they_are_shown() {
    // R-001-33: calls, states, error rates and durations, from the parts of `show --json`.
    #[derive(Default)]
    struct Calls {
        states: BTreeMap<String, u64>,
        took: Vec<u64>,
        unclear: u64,
    }
    let archive = Archive::of(&CASES);
    let (stats, shown) = (archive.json(&["stats"]), archive.shown());
    let mut expected_tools: BTreeMap<String, Calls> = BTreeMap::new();
    for part in parts(&shown).filter(|part| part["kind"] == "tool") {
        let calls = expected_tools.entry(part["name"].as_str().unwrap().to_owned()).or_default();
        let state = match part["state"].as_str().unwrap() {
            "pending" => "running",
            state => state,
        };
        *calls.states.entry(state.to_owned()).or_default() += 1;
        let between = || {
            let (from, to) = (milliseconds(&part["started_at"])?, milliseconds(&part["ended_at"])?);
            u64::try_from(to - from).ok()
        };
        // A person's time is no time of a tool.
        let is_question = matches!(part["name"].as_str(), Some("AskUserQuestion" | "ExitPlanMode"));
        if state != "running" && state != "denied" && !is_question {
            let reported = part["duration_ms"].as_u64();
            calls.took.extend(reported.or_else(between));
            let asks = matches!(
                part["name"].as_str(),
                Some("Bash" | "Edit" | "Write" | "WebFetch" | "WebSearch")
            );
            calls.unclear += u64::from(asks && reported.is_none() && between().is_some());
        }
    }
    let tools = list(&stats["tools"]);
    assert_eq!(tools.len(), expected_tools.len());
    assert_eq!(sum(tools, "calls"), number(&stats["totals"]["tool_calls"]));
    let calls: Vec<u64> = tools.iter().map(|tool| number(&tool["calls"])).collect();
    assert!(calls.is_sorted_by(|one, next| one >= next), "{calls:?}");
    for tool in tools {
        let calls = expected_tools.get_mut(tool["name"].as_str().unwrap()).unwrap();
        let states = ["completed", "failed", "denied", "interrupted", "running"];
        for state in states {
            let count = calls.states.get(state).copied().unwrap_or_default();
            assert_eq!(number(&tool[state]), count, "{tool}");
        }
        assert_eq!(number(&tool["calls"]), calls.states.values().sum::<u64>());
        let finished = number(&tool["calls"]) - number(&tool["running"]);
        let rate = number(&tool["failed"]) as f64 / finished as f64;
        match tool["error_rate"].as_f64() {
            Some(reported) => assert!((reported - rate).abs() < 1e-9, "{tool}"),
            None => assert_eq!(finished, 0, "{tool}"),
        }
        calls.took.sort_unstable();
        let nearest = |percent: usize| match calls.took.len() {
            0 => Value::Null,
            count => json!(calls.took[(count * percent).div_ceil(100) - 1]),
        };
        let duration = json!({
            "known": calls.took.len(),
            "median_ms": nearest(50),
            "p95_ms": nearest(95),
            "total_ms": calls.took.iter().sum::<u64>(),
            "with_waiting": calls.unclear,
        });
        assert_eq!(tool["duration"], duration, "{tool}");
    }
    for state in ["completed", "failed", "denied", "interrupted"] {
        assert!(sum(tools, state) > 0, "no case has a call that is {state}");
    }
}

#[test]
fn filters_narrow_every_figure() {
    let archive = Archive::of(&CASES);
    let all = archive.json(&["stats"]);
    let middle = {
        let mut times: Vec<i64> =
            turns(&archive.shown()).filter_map(|turn| milliseconds(&turn["started_at"])).collect();
        times.sort_unstable();
        Timestamp::from_millisecond(times[times.len() / 2]).unwrap().to_string()
    };
    let before = archive.json(&["stats", "--until", &middle]);
    let after = archive.json(&["stats", "--since", &middle]);
    let timeless: Vec<&Value> =
        list(&all["by_day"]).iter().filter(|day| day["name"].is_null()).collect();
    for kind in ["turns", "steps"] {
        let parted = number(&before["totals"][kind]) + number(&after["totals"][kind]);
        assert_eq!(parted + sum(timeless.clone(), kind), number(&all["totals"][kind]), "{kind}");
    }
    assert!(number(&before["totals"]["turns"]) > 0 && number(&after["totals"]["turns"]) > 0);
    for part in [&before, &after] {
        for name in GROUPS {
            assert_eq!(tokens(list(&part[name])), tokens([&part["totals"]]), "{name}");
        }
        let calls = number(&part["totals"]["tool_calls"]);
        assert_eq!(sum(list(&part["tools"]), "calls"), calls);
    }
    let middle: Timestamp = middle.parse().unwrap();
    assert!(milliseconds(&after["totals"]["first_at"]) >= Some(middle.as_millisecond()));

    for project in list(&all["by_project"]) {
        let Some(name) = project["name"].as_str() else { continue };
        let only = archive.json(&["stats", "--project", name]);
        let inside: Vec<&Value> = list(&all["by_project"])
            .iter()
            .filter(|other| other["name"].as_str().is_some_and(|other| other.contains(name)))
            .collect();
        assert_eq!(tokens([&only["totals"]]), tokens(inside.iter().copied()), "{name}");
        assert_eq!(list(&only["by_project"]).len(), inside.len());
    }
    assert_eq!(archive.json(&["stats", "--agent", "claude-code"]), all);
    let none = archive.json(&["stats", "--agent", "nobody"]);
    assert_eq!(none["totals"]["sessions"], 0);
    let output = archive.run(&["stats", "--agent", "nobody"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let few = archive.json(&["stats", "--limit", "1"]);
    for name in GROUPS.into_iter().chain(["tools"]) {
        assert_eq!(list(&few[name]).len(), 1, "{name}");
    }
    assert_eq!(few["totals"], all["totals"]);
}

#[test]
fn an_empty_archive_says_what_to_do() {
    let archive = Archive::new();
    let output = archive.run(&["stats"]);
    assert_eq!(output.status.code(), Some(1), "there is no archive yet");
    assert!(String::from_utf8_lossy(&output.stderr).contains("unspool sync"));
    archive.text(&["sync"]);
    let output = archive.run(&["stats"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(reported.contains("empty") && reported.contains("unspool sync"), "{reported}");
    let stats = archive.json(&["stats"]);
    assert_eq!(tokens([&stats["totals"]]), [0; 5]);
    for name in ["sessions", "sub_agents", "turns", "steps", "parts", "tool_calls", "errors"] {
        assert_eq!(stats["totals"][name], 0, "{name}");
    }
    for name in ["reasoning_share", "first_at", "last_at"] {
        assert_eq!(stats["totals"][name], Value::Null, "{name}");
    }
    for name in GROUPS.into_iter().chain(["tools"]) {
        assert_eq!(stats[name], json!([]), "{name}");
    }
}

/// A log of one turn with one call of a tool.
fn log(session: &str, project: &str, model: &str, tool: &str, output: u64) -> String {
    let common = json!({
        "sessionId": session, "cwd": project, "version": "2.1.325", "isSidechain": false,
        "userType": "external", "gitBranch": "main", "timestamp": "2026-11-14T23:59:59.500Z",
    });
    let record = |more: Value| {
        let mut record = common.clone();
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{record}\n")
    };
    [
        record(json!({ "type": "user", "uuid": "u1", "parentUuid": null,
            "message": { "role": "user", "content": "hello" } })),
        record(json!({ "type": "assistant", "uuid": "u2", "parentUuid": "u1", "requestId": "r1",
            "message": { "id": "m1", "type": "message", "role": "assistant", "model": model,
                "content": [{ "type": "tool_use", "id": "t1", "name": tool, "input": {} }],
                "stop_reason": "tool_use",
                "usage": { "input_tokens": 3, "output_tokens": output } } })),
        record(json!({ "type": "user", "uuid": "u3", "parentUuid": "u2",
            "timestamp": "2026-11-15T00:00:01.500Z",
            "message": { "role": "user", "content": [{ "type": "tool_result",
                "tool_use_id": "t1", "content": "no", "is_error": true }] } })),
    ]
    .concat()
}

#[test]
fn names_that_agents_give_reach_no_terminal_raw() {
    // Law 8
    let archive = Archive::new();
    let file = archive.0.path().join("hostile.jsonl");
    let (tool, model, project) =
        ("\u{1b}[31mrm\u{202e}\n", "\u{1b}]0;model\u{7}", "/home/\u{9b}31m/\u{1b}c");
    let session = "6a3d1c8e-0000-4000-8000-000000000001";
    std::fs::write(&file, log(session, project, model, tool, 5)).unwrap();
    archive.text(&["import", &file.to_string_lossy()]);
    let stats = archive.json(&["stats"]);
    assert_eq!(stats["tools"][0]["name"], tool);
    assert_eq!(stats["tools"][0]["failed"], 1);
    assert_eq!(stats["tools"][0]["error_rate"], 1.0);
    assert_eq!(stats["tools"][0]["duration"]["median_ms"], 2000);
    assert_eq!(stats["by_model"][0]["name"], model);
    assert_eq!(stats["by_project"][0]["name"], project);
    // By the day on which the turn started, not ended.
    assert_eq!(list(&stats["by_day"]).len(), 1);
    assert_eq!(stats["by_day"][0]["name"], "2026-11-14");
    for arguments in
        [vec!["stats"], vec!["stats", "--by", "tool"], vec!["stats", "--by", "project"]]
    {
        let text = archive.text(&arguments);
        let raw = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(raw, None, "{text}");
    }
}

#[test]
fn tables_fit_the_width() {
    let archive = Archive::of(&CASES);
    for columns in ["20", "33", "60", "80", "100", "200"] {
        let room: usize = columns.parse().unwrap();
        let tables = ["day", "week", "month", "hour", "model", "agent", "project", "tool"];
        for by in tables.into_iter().chain(["", "session"]) {
            let mut arguments = vec!["stats", "--width", columns];
            if !by.is_empty() {
                arguments.extend(["--by", by]);
            }
            let text = archive.text(&arguments);
            assert!(!text.contains('\u{1b}'));
            for line in text.lines() {
                assert!(width(line) <= room, "{columns}: {line}");
            }
        }
    }
    let text = archive.text(&["stats", "--width", "100"]);
    for word in [
        "sub-agent",
        "tokens per day",
        "DAY",
        "MODEL",
        "PROJECT",
        "TOOL",
        "█",
        "Bash",
        "MOST EXPENSIVE",
        "turns by hour",
        "* may include waiting for permission",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let days = archive.text(&["stats", "--by", "day"]);
    assert!(days.starts_with("DAY") && !days.contains("MODEL"), "{days}");
    let limited = archive.text(&["stats", "--by", "tool", "--limit", "2"]);
    assert!(limited.contains("more; raise --limit"), "{limited}");
}
