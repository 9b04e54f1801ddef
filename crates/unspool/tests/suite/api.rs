//! REST: routes match the OpenAPI document, responses match their schemas and the command line's
//! JSON, and invalid requests are refused with a next step.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::case::{all_cases, root};
use crate::harness::Machine;
use crate::schema::check;
use crate::test_server::Server;

/// A server over sessions of every agent.
fn over_everything(machine: &Machine) -> Server {
    machine.keep_turns_open();
    for agent in unspool_sources::agents::AGENTS.iter().map(|agent| agent.name) {
        let folder = root().join("fixtures").join(agent);
        machine.run("data", &["import", folder.to_str().unwrap()], "");
    }
    Server::begin(machine, "data", &[])
}

/// A server over one session.
fn over_one(machine: &Machine) -> (Server, String) {
    let log = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    machine.ok("data", &["import", log.to_str().unwrap()]);
    let server = Server::begin(machine, "data", &[]);
    let id = server.json("/api/sessions")[0]["id"].as_str().unwrap().to_owned();
    (server, id)
}

/// The turn with the most parts.
fn most_parts(whole: &Value) -> &Value {
    let turns = whole["turns"].as_array().unwrap().iter();
    turns.max_by_key(|turn| turn["parts"].as_array().unwrap().len()).unwrap()
}

/// All pages of a list.
fn all_of(server: &Server, path: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(path) = next {
        let response = server.get(&path);
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        found.extend(response.json().as_array().unwrap().clone());
        next = response.next();
    }
    found
}

#[test]
fn every_route_answers_what_its_schema_says() {
    // R-000-16 R-000-23 R-001-20 R-001-26 R-001-36 R-004-11 R-004-15: on sessions of every agent, no
    // field missing and none unknown.
    let machine = Machine::new();
    let server = over_everything(&machine);
    let document = server.json("/api/openapi.json");
    assert_eq!(document, unspool_server::openapi(), "what is served is what the code says");
    assert_eq!(document["openapi"], "3.1.0");
    let content = &document["components"]["schemas"]["Message"]["properties"]["content"];
    assert!(content["description"].as_str().unwrap().starts_with("derived"), "{content}");

    let sessions = all_of(&server, "/api/sessions");
    assert!(sessions.len() > 50, "{}", sessions.len());
    let (mut kinds, mut dangling, mut changed_files) = (BTreeSet::new(), 0, 0);
    let (mut asked, mut pieces_seen, mut findings) = (BTreeSet::new(), 0, 0);
    let mut request = |route: &str, path: &str| -> Value {
        asked.insert(route.to_owned());
        let operation = &document["paths"][route]["get"];
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let response = server.json(path);
        check(&document, schema, &response).unwrap_or_else(|why| panic!("{path}: {why}"));
        response
    };
    request("/api/openapi.json", "/api/openapi.json");
    request("/api/sessions", "/api/sessions");
    request("/api/stats", "/api/stats");
    let all = request("/api/findings", "/api/findings?limit=1000");
    assert!(all["sessions"].as_array().unwrap().len() > 50, "{all}");
    for kind in unspool_query::params::SEARCH_KINDS {
        request("/api/search", &format!("/api/search?q=a*&kind={kind}&limit=5"));
    }
    for session in &sessions {
        let id = session["id"].as_str().unwrap();
        let whole = request("/api/sessions/{id}", &format!("/api/sessions/{id}"));
        // A list also says what a session does now, and how full its context is.
        let mut listed = session.clone();
        for name in ["activity", "context"] {
            assert!(listed.as_object_mut().unwrap().remove(name).is_some(), "{listed}");
        }
        assert_eq!(whole["session"], listed);
        let turns =
            request("/api/sessions/{id}/turns", &format!("/api/sessions/{id}/turns?limit=1000"));
        assert_eq!(turns, whole["turns"]);
        let messages = request(
            "/api/sessions/{id}/messages",
            &format!("/api/sessions/{id}/messages?limit=1000"),
        );
        check_messages(&turns, &messages);
        request(
            "/api/sessions/{id}/messages",
            &format!("/api/sessions/{id}/messages?limit=1000&form=frames"),
        );
        let groups =
            request("/api/sessions/{id}/groups", &format!("/api/sessions/{id}/groups?limit=1000"));
        check_groups(&turns, &groups);
        let calls =
            request("/api/sessions/{id}/tool-calls", &format!("/api/sessions/{id}/tool-calls"));
        dangling += check_calls(&turns, &calls);
        request("/api/sessions/{id}/notes", &format!("/api/sessions/{id}/notes"));
        let route = "/api/sessions/{id}/prompts";
        let calls = request(route, &format!("/api/sessions/{id}/prompts"));
        let answered = calls["prompts"].as_array().unwrap().iter().find(|it| it["turn"].is_u64());
        if let Some(call) = answered {
            let place = format!("turn={}&step={}", call["turn"], call["step"]);
            let one = request(route, &format!("/api/sessions/{id}/prompts?{place}"));
            let pieces = one["prompts"][0]["pieces"].as_array().unwrap();
            pieces_seen += pieces.len();
        }
        let route = "/api/sessions/{id}/findings";
        let found = request(route, &format!("/api/sessions/{id}/findings"));
        findings += found["findings"].as_array().unwrap().len();
        let changes = request("/api/sessions/{id}/changes", &format!("/api/sessions/{id}/changes"));
        changed_files += changes["files"].as_array().unwrap().len();
        let route = "/api/sessions/{id}/commits";
        request(route, &format!("/api/sessions/{id}/commits"));
        let turns = turns.as_array().unwrap();
        for turn in turns {
            kinds.extend(
                turn["parts"].as_array().unwrap().iter().map(|it| it["kind"].clone().to_string()),
            );
        }
        // One turn per session is enough for the routes of a turn.
        let Some(turn) = turns.iter().max_by_key(|turn| turn["parts"].as_array().unwrap().len())
        else {
            continue;
        };
        let number = &turn["number"];
        let one = request(
            "/api/sessions/{id}/turns/{number}",
            &format!("/api/sessions/{id}/turns/{number}"),
        );
        assert_eq!(one, *turn);
        let path = format!("/api/sessions/{id}/turns/{number}/parts");
        assert_eq!(request("/api/sessions/{id}/turns/{number}/parts", &path), turn["parts"]);
        let Some(part) = turn["parts"].as_array().unwrap().last() else { continue };
        let path = format!("/api/sessions/{id}/parts/{}?raw=1", part["id"].as_str().unwrap());
        let found = request("/api/sessions/{id}/parts/{part}", &path);
        assert_eq!((&found["part"], &found["turn"]), (part, number));
        let records = found["raw"]["records"].as_array().unwrap();
        assert!(records.iter().all(|record| record["text"].is_string()), "{records:?}");
    }
    assert!(kinds.len() > 10, "{kinds:?}");
    assert!(dangling > 0, "some recordings end in a call");
    assert!(changed_files > 10, "{changed_files}");
    assert!(pieces_seen > 100, "{pieces_seen}");
    assert!(findings > 20, "{findings}");

    request("/api/adaptations", "/api/adaptations");
    request("/api/adaptations/preview", "/api/adaptations/preview?agent=codex");
    let one = "/api/adaptations/adn.tools.edit-reread";
    request("/api/adaptations/{item}", one);
    request("/api/adaptations/{item}/history", &format!("{one}/history"));
    request("/api/adaptations/{item}/seen", &format!("{one}/seen"));
    request("/api/adaptations/{item}/effect", &format!("{one}/effect"));
    request("/api/proposals", "/api/proposals");

    // Every route was requested except those that return no JSON.
    let files =
        ["/api/sessions/{id}/export", "/api/stats.csv", "/api/chat/{id}/stream", "/api/live"]
            .map(str::to_owned);
    let reported: BTreeSet<String> =
        document["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(reported, asked.into_iter().chain(files).collect::<BTreeSet<String>>());
}

/// Each turn gives a user message and an assistant message.
fn check_messages(turns: &Value, messages: &Value) {
    let mut expected = Vec::new();
    for turn in turns.as_array().unwrap() {
        if !turn["user"].as_array().unwrap().is_empty() {
            expected.push(("user", &turn["id"], &turn["user"]));
        }
        expected.push(("assistant", &turn["id"], &turn["parts"]));
    }
    let messages = messages.as_array().unwrap();
    assert_eq!(messages.len(), expected.len());
    for (message, (role, turn, parts)) in messages.iter().zip(expected) {
        assert_eq!((&message["role"], &message["execution"]), (&json!(role), turn));
        assert_eq!(message["parts"], *parts);
        let texts = parts.as_array().unwrap().iter().filter(|part| part["kind"] == "text");
        let content: String = texts.map(|part| part["text"].as_str().unwrap()).collect();
        assert_eq!(message["content"], content, "derived from the parts (R-000-16)");
    }
}

/// R-004-15: for each turn the user's group and then the assistant's. C-09: the blocks are one
/// ordered list, and the two lists are derived from it.
fn check_groups(turns: &Value, groups: &Value) {
    let turns = turns.as_array().unwrap();
    let groups = groups.as_array().unwrap();
    assert_eq!(groups.len(), turns.len() * 2);
    for (turn, pair) in turns.iter().zip(groups.chunks(2)) {
        let (user, assistant) = (&pair[0], &pair[1]);
        assert_eq!((&user["role"], &assistant["role"]), (&json!("user"), &json!("assistant")));
        assert_eq!((&user["turn_id"], &assistant["turn_id"]), (&turn["id"], &turn["id"]));
        assert_eq!((&user["items"], &assistant["items"]), (&turn["user"], &turn["parts"]));
        assert_eq!(assistant["is_thinking_mode"], turn["thinking_mode"]);
        let segments = assistant["segments"].as_array().unwrap();
        let parts = |one: &Value| one["parts"].as_array().unwrap().clone();
        let all: Vec<Value> = segments.iter().flat_map(parts).collect();
        let expected = turn["parts"].as_array().unwrap().iter().map(|part| part["id"].clone());
        assert_eq!(all, expected.collect::<Vec<Value>>(), "nothing moves");
        let (blocks, rest): (Vec<&Value>, Vec<&Value>) =
            segments.iter().partition(|one| one["kind"] == "block");
        let blocks: Vec<Value> = blocks.iter().map(|one| one["parts"].clone()).collect();
        assert_eq!(assistant["blocks"], json!(blocks));
        let rest: Vec<Value> = rest.into_iter().flat_map(parts).collect();
        assert_eq!(assistant["reply"], json!(rest));
        assert!(turn["thinking_mode"] == true || blocks.is_empty(), "R-004-11");
    }
}

/// R-001-26: the calls with their fields, in order. R-001-20: those without an end. Returns their
/// number.
fn check_calls(turns: &Value, list: &Value) -> usize {
    let parts = turns.as_array().unwrap().iter().flat_map(|turn| {
        let parts = turn["parts"].as_array().unwrap().iter();
        parts.filter(|part| part["kind"] == "tool").map(|part| (&turn["number"], part))
    });
    let calls = list["calls"].as_array().unwrap();
    let mut dangling = Vec::new();
    let mut seen = 0;
    for (order, (turn, part)) in parts.enumerate() {
        let call = &calls[order];
        assert_eq!((&call["order"], &call["turn"]), (&json!(order), turn));
        for name in ["call_id", "name", "input", "state"] {
            assert_eq!(call[name], part[name], "{name}");
        }
        let failed = ["failed", "denied", "interrupted"].contains(&part["state"].as_str().unwrap());
        assert_eq!(call["error"].is_string(), failed);
        assert_eq!(call["output"], if failed { Value::Null } else { part["output"].clone() });
        if ["pending", "running"].contains(&part["state"].as_str().unwrap()) {
            dangling.push(order);
        }
        seen += 1;
    }
    assert_eq!(calls.len(), seen);
    assert_eq!(list["dangling"], json!(dangling));
    dangling.len()
}

#[test]
fn a_reader_chooses_how_long_a_reasoning_block_lasts() {
    // C-08: by default the second of two calls ends the block; until-text keeps it.
    let machine = Machine::new();
    let rows = r#"{"session":"s","role":"user","text":"go"}
{"session":"s","type":"think","text":"Two files."}
{"session":"s","type":"tool","name":"Read","input":{"n":1},"output":"1"}
{"session":"s","type":"tool","name":"Read","input":{"n":2},"output":"2"}
{"session":"s","role":"assistant","text":"Done."}
"#;
    machine.write("rows.jsonl", rows.as_bytes());
    let path = machine.home().join("rows.jsonl");
    machine.ok("data", &["import", path.to_str().unwrap()]);
    let shown = |rule: &str| machine.ok("data", &["show", "s", "--plain", "--blocks", rule]);
    assert!(shown("default").contains("Reasoning (1 tool call)"), "{}", shown("default"));
    assert!(shown("until-text").contains("Reasoning (2 tool calls)"), "{}", shown("until-text"));
    let server = Server::begin(&machine, "data", &[]);
    let blocks = |rule: &str| {
        let groups = server.json(&format!("/api/sessions/s/groups?rule={rule}"));
        let blocks = groups[1]["blocks"].as_array().unwrap().iter();
        blocks.map(|block| block.as_array().unwrap().len()).collect::<Vec<usize>>()
    };
    assert_eq!((blocks("default"), blocks("until-text")), (vec![2], vec![3]));
}

#[test]
fn the_document_has_every_kind_of_part() {
    let document = unspool_server::openapi();
    let schemas = &document["components"]["schemas"];
    for kind in unspool_query::params::PART_KINDS {
        let all = schemas["Part"]["oneOf"].as_array().unwrap();
        let of_kind = |it: &&Value| it["properties"]["kind"]["const"] == *kind;
        let fields = all.iter().find(of_kind).unwrap()["properties"].as_object().unwrap();
        assert_eq!(fields.contains_key("payload"), *kind == "data", "{kind} has fields of its own");
    }
}

#[test]
fn rest_says_what_the_command_line_says() {
    let machine = Machine::new();
    for case in
        all_cases().iter().filter(|case| case.to_string_lossy().contains("claude-code")).take(8)
    {
        machine.run("data", &["import", case.to_str().unwrap()], "");
    }
    let server = Server::begin(&machine, "data", &[]);
    let listed = machine.json("data", &["list"]);
    assert_eq!(server.json("/api/sessions"), listed);
    for session in listed.as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let shown = machine.json("data", &["show", id]);
        let served = server.json(&format!("/api/sessions/{id}"));
        for field in ["session", "records", "warnings"] {
            assert_eq!(served[field], shown[field], "{id} {field}");
        }
        let content = |document: &Value| -> Vec<Value> {
            document["turns"].as_array().unwrap().iter().map(|turn| turn["parts"].clone()).collect()
        };
        assert_eq!(content(&served), content(&shown), "{id}");
    }
    for (path, command) in [
        ("/api/search?q=cache", vec!["search", "cache"]),
        (
            "/api/search?q=cache&kind=tool&limit=3",
            vec!["search", "cache", "--kind", "tool", "--limit", "3"],
        ),
        (
            "/api/search?q=%22the+cache%22&since=2020-01-01",
            vec!["search", "\"the cache\"", "--since", "2020-01-01"],
        ),
        ("/api/search?q=nosuchwordanywhere", vec!["search", "nosuchwordanywhere"]),
        ("/api/stats", vec!["stats"]),
        (
            "/api/stats?agent=claude-code&limit=2",
            vec!["stats", "--agent", "claude-code", "--limit", "2"],
        ),
        ("/api/stats?since=2999-01-01", vec!["stats", "--since", "2999-01-01"]),
        ("/api/sessions?agent=codex", vec!["list", "--agent", "codex"]),
    ] {
        assert_eq!(server.json(path), machine.json("data", &command), "{path}");
    }
    let id = listed[0]["id"].as_str().unwrap();
    let written = machine.ok("data", &["stats", "--csv", "--by", "tool", "--limit", "3"]);
    let response = server.get("/api/stats.csv?by=tool&limit=3");
    assert_eq!(String::from_utf8(response.body.clone()).unwrap(), written);
    assert!(response.header("content-type").unwrap().starts_with("text/csv"));
    let exported = machine.ok("data", &["export", id, "--to", "jsonl"]);
    let response = server.get(&format!("/api/sessions/{id}/export?to=jsonl"));
    assert_eq!(String::from_utf8(response.body.clone()).unwrap(), exported);
    let named = format!("attachment; filename=\"unspool-{id}.jsonl\"");
    assert_eq!(response.header("content-disposition"), Some(named.as_str()));
    let form = response.header("content-type").unwrap();
    let document = unspool_server::openapi();
    let reported = &document["paths"]["/api/sessions/{id}/export"]["get"]["responses"]["200"];
    assert!(reported["content"].get(form).is_some(), "{form}: {reported}");
}

#[test]
fn lists_go_on_where_they_were_left() {
    let machine = Machine::new();
    let server = over_everything(&machine);
    let all = all_of(&server, "/api/sessions?limit=1000");
    for limit in [1, 7, all.len() - 1, all.len()] {
        assert_eq!(all_of(&server, &format!("/api/sessions?limit={limit}")), all, "{limit}");
    }
    // Filters hold on every page.
    let of_codex: Vec<&Value> = all.iter().filter(|it| it["agent"] == "codex").collect();
    let paged = all_of(&server, "/api/sessions?agent=codex&limit=2");
    assert_eq!(paged.iter().collect::<Vec<_>>(), of_codex);
    let failed: Vec<&Value> = all.iter().filter(|it| it["errors"] != 0).collect();
    let paged = all_of(&server, "/api/sessions?errors=true&limit=3");
    assert_eq!(paged.iter().collect::<Vec<_>>(), failed);
    let model = all.iter().find_map(|it| it["models"][0].as_str()).unwrap();
    let with: Vec<&Value> =
        all.iter().filter(|it| it["models"].as_array().unwrap().contains(&json!(model))).collect();
    let paged = all_of(&server, &format!("/api/sessions?model={model}&limit=4"));
    assert_eq!(paged.iter().collect::<Vec<_>>(), with);

    let most = all.iter().max_by_key(|it| it["turns"].as_u64()).unwrap();
    let id = most["id"].as_str().unwrap();
    let whole = server.json(&format!("/api/sessions/{id}"));
    let turns = whole["turns"].as_array().unwrap();
    assert!(turns.len() > 4, "{}", turns.len());
    assert_eq!(all_of(&server, &format!("/api/sessions/{id}/turns?limit=2")), *turns);
    let number = |at: usize| turns[at]["number"].as_u64().unwrap();
    let after = number(1);
    assert_eq!(all_of(&server, &format!("/api/sessions/{id}/turns?after={after}")), turns[2..]);
    let some = server.json(&format!("/api/sessions/{id}?turns={}-{}", number(2), number(3)));
    assert_eq!(*some["turns"].as_array().unwrap(), turns[2..=3]);
    assert_eq!(some["session"], whole["session"]);
    let some = server.get(&format!("/api/sessions/{id}?after={after}&limit=2"));
    assert_eq!(*some.json()["turns"].as_array().unwrap(), turns[2..=3]);
    assert!(some.next().unwrap().ends_with(&format!("limit=2&after={}", number(3))));
    let messages = all_of(&server, &format!("/api/sessions/{id}/messages?limit=3"));
    assert_eq!(messages, all_of(&server, &format!("/api/sessions/{id}/messages?limit=1000")));
    let users = all_of(&server, &format!("/api/sessions/{id}/messages?role=user&limit=1"));
    assert_eq!(
        users,
        messages.iter().filter(|it| it["role"] == "user").cloned().collect::<Vec<_>>()
    );
}

#[test]
fn parts_and_messages_are_chosen_by_what_they_are() {
    // R-001-36
    let machine = Machine::new();
    let (server, id) = over_one(&machine);
    let whole = server.json(&format!("/api/sessions/{id}"));
    let turn = most_parts(&whole);
    let parts = turn["parts"].as_array().unwrap();
    let path = format!("/api/sessions/{id}/turns/{}/parts", turn["number"]);
    let tool = parts.iter().find_map(|it| it["name"].as_str()).unwrap();
    let chosen = |wanted: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        parts.iter().filter(|part| wanted(part)).cloned().collect()
    };
    for (query, expected) in [
        ("kind=tool".to_owned(), chosen(&|it| it["kind"] == "tool")),
        ("kind=reasoning&limit=1".to_owned(), chosen(&|it| it["kind"] == "reasoning")),
        (format!("tool={tool}"), chosen(&|it| it["name"] == tool)),
        ("state=failed".to_owned(), chosen(&|it| it["state"] == "failed")),
        (format!("after={}", parts[2]["id"].as_str().unwrap()), parts[3..].to_vec()),
    ] {
        assert_eq!(all_of(&server, &format!("{path}?{query}")), expected, "{query}");
    }
    let messages = all_of(&server, &format!("/api/sessions/{id}/messages"));
    for (query, wanted) in [
        (
            "has_tool_calls=true",
            &(|it: &Value| it["has_tool_calls"] == true) as &dyn Fn(&Value) -> bool,
        ),
        ("has_tool_calls=0", &|it: &Value| it["has_tool_calls"] == false),
        ("role=user", &|it: &Value| it["role"] == "user"),
        ("role=assistant", &|it: &Value| it["role"] == "assistant"),
        ("tool_name=Read", &|it: &Value| {
            it["parts"].as_array().unwrap().iter().any(|part| part["name"] == "Read")
        }),
    ] {
        let expected: Vec<Value> = messages.iter().filter(|it| wanted(it)).cloned().collect();
        assert_eq!(
            all_of(&server, &format!("/api/sessions/{id}/messages?{query}")),
            expected,
            "{query}"
        );
    }
    let execution = turn["id"].as_str().unwrap();
    let both = all_of(&server, &format!("/api/sessions/{id}/messages?execution={execution}"));
    assert_eq!(
        both.iter().map(|it| it["role"].as_str().unwrap()).collect::<Vec<_>>(),
        ["user", "assistant"]
    );
}

#[test]
fn raw_records_come_from_the_log_itself() {
    let machine = Machine::new();
    let log = machine.home().join("log.jsonl");
    fs::copy(root().join("fixtures/claude-code/discovery-loop/log.jsonl"), &log).unwrap();
    machine.ok("data", &["import", log.to_str().unwrap()]);
    let server = Server::begin(&machine, "data", &[]);
    let id = server.json("/api/sessions")[0]["id"].as_str().unwrap().to_owned();
    let whole = server.json(&format!("/api/sessions/{id}"));
    let part = most_parts(&whole)["parts"][0]["id"].as_str().unwrap();
    let path = format!("/api/sessions/{id}/parts/{part}?raw=true");
    let response = server.get(&path);
    let record = response.json()["raw"]["records"][0].clone();
    let lines = fs::read_to_string(&log).unwrap();
    assert!(lines.lines().any(|line| record["text"] == line), "{record}");
    assert_eq!(record["file"], log.to_str().unwrap());
    assert!(server.json(&path.replace("true", "false"))["raw"].is_null());
    // The session is unchanged but the file is gone: the ETag no longer matches.
    let tag = response.header("etag").unwrap().to_owned();
    assert_eq!(server.request("GET", &path, &[("if-none-match", &tag)]).status, 304);
    fs::remove_file(&log).unwrap();
    let gone = server.request("GET", &path, &[("if-none-match", &tag)]);
    assert_eq!(gone.status, 200);
    let record = &gone.json()["raw"]["records"][0];
    assert_eq!((&record["text"], &record["absent"]), (&Value::Null, &json!("gone")));
}

// R-001-30
#[test]
fn an_archive_can_forget_where_its_logs_are() {
    let machine = Machine::new();
    machine.keep_turns_open();
    let folder = machine.home().join(".claude/projects/-home-dev-forgotten-place");
    fs::create_dir_all(&folder).unwrap();
    let log = folder.join("112b2623-935f-4249-9e9a-c45c61ba0d98.jsonl");
    let lines = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    let lines = fs::read_to_string(lines).unwrap();
    let half = lines.len() / 2 + lines[lines.len() / 2..].find('\n').unwrap() + 1;
    fs::write(&log, &lines[..half]).unwrap();
    machine.ok("data", &["sync"]);
    let id = machine.json("data", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let show = |data: &str| machine.json(data, &["show", &id]);
    let (before, part) = (show("data"), show("data")["turns"][0]["parts"][0]["id"].clone());
    let raw = || {
        let server = Server::begin(&machine, "data", &[]);
        let path = format!("/api/sessions/{id}/parts/{}?raw=true", part.as_str().unwrap());
        server.json(&path)["raw"]["records"][0].clone()
    };
    assert!(raw()["text"].is_string());
    // A log that changed lately is left alone.
    assert_eq!(machine.ok("data", &["db", "forget-logs"]), "forgot the places of 0 logs\n");
    let forget = || machine.ok("data", &["db", "forget-logs", "--older-than", "0"]);
    assert_eq!(forget(), "forgot the places of 1 log\n");
    let record = raw();
    assert_eq!((&record["text"], &record["file"]), (&Value::Null, &Value::Null), "{record}");
    assert_eq!(record["absent"], "forgotten");
    for file in fs::read_dir(machine.data("data")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap_or_default();
        assert!(!bytes.windows(15).any(|window| window == b"forgotten-place"));
    }
    // The session is whole, and its log is not read again until it grows.
    assert_eq!(show("data"), before);
    let report = machine.ok("data", &["sync"]);
    assert!(report.contains("1 file unchanged"), "{report}");
    fs::write(&log, &lines).unwrap();
    machine.ok("data", &["sync"]);
    machine.ok("other", &["sync"]);
    assert_eq!(show("data"), show("other"));
    assert_eq!(forget(), "forgot the places of 1 log\n");
    assert_eq!(show("data"), show("other"));
    assert!(machine.ok("data", &["db", "check"]).contains("no problems found"));
}

#[test]
fn matching_etags_give_304() {
    let machine = Machine::new();
    let (server, id) = over_one(&machine);
    let paths = ["", "/turns", "/turns/1", "/turns/1/parts", "/messages"]
        .map(|end| format!("/api/sessions/{id}{end}"));
    let others = ["/api/sessions", "/api/search?q=cache", "/api/stats", "/api/openapi.json"];
    for path in paths.iter().map(String::as_str).chain(others) {
        let first = server.get(path);
        let tag = first.header("etag").unwrap_or_else(|| panic!("{path}")).to_owned();
        assert!(tag.starts_with("W/\""), "{path}: {tag}");
        for if_none_match in [
            tag.clone(),
            tag.trim_start_matches("W/").to_owned(),
            format!("\"x\", {tag}"),
            "*".to_owned(),
        ] {
            let again = server.request("GET", path, &[("if-none-match", &if_none_match)]);
            assert_eq!((again.status, again.body.len()), (304, 0), "{path} {if_none_match}");
            assert_eq!(again.header("etag"), Some(tag.as_str()), "{path}");
        }
        assert_eq!(
            server.request("GET", path, &[("if-none-match", "\"x\"")]).status,
            200,
            "{path}"
        );
        let head = server.request("HEAD", path, &[]);
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.header("etag"), Some(tag.as_str()), "{path}");
        let packed = server.request("GET", path, &[("accept-encoding", "gzip")]);
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{path}");
        assert!(packed.body.starts_with(&[0x1f, 0x8b]), "{path}");
    }
    // Another query has another ETag, and so has a changed session.
    let of = |path: &str| server.get(path).header("etag").unwrap().to_owned();
    let one = format!("/api/sessions/{id}");
    assert_ne!(of(&format!("{one}?turns=1")), of(&format!("{one}?turns=0")));
    let (before, listed) = (of(&one), of("/api/sessions"));
    machine.ok("data", &["tag", &id, "good"]);
    crate::harness::until("the tag", || if of(&one) == before { Err("no") } else { Ok(()) });
    assert_ne!(of("/api/sessions"), listed);
}

#[test]
fn invalid_requests_are_refused_with_a_next_step() {
    let machine = Machine::new();
    let (server, id) = over_one(&machine);
    let part = "0".repeat(20);
    for (path, what) in [
        ("/api/sessions?limit=0", "a number from 1 to 1000"),
        ("/api/sessions?limit=1001", "a number from 1 to 1000"),
        ("/api/sessions?limit=-1", "a number from"),
        ("/api/sessions?limit=1e3", "a number from"),
        ("/api/sessions?limit=", "a number from"),
        ("/api/sessions?agnet=codex", "use agent, project"),
        ("/api/sessions?agent=codex&agent=gemini", "more than once"),
        ("/api/sessions?since=sometime", "2026-05-31"),
        ("/api/sessions?errors=maybe", "true or false"),
        ("/api/sessions?after=nowhere", "Link header"),
        ("/api/sessions?after=1.2", "Link header"),
        ("/api/search", "q is missing"),
        ("/api/search?q=", "q is missing"),
        ("/api/search?q=x&kind=thought", "choose one of user, title"),
        ("/api/search?q=x&state=gone", "choose one of pending"),
        ("/api/stats?by=day", "there is no parameter by here"),
        ("/api/openapi.json?x=1", "leave it out"),
        (&format!("/api/sessions/{id}?turns=7-3"), "3, or 3-7"),
        (&format!("/api/sessions/{id}?turns=a"), "3, or 3-7"),
        (&format!("/api/sessions/{id}?turns=1-2&limit=3"), "leave out"),
        (&format!("/api/sessions/{id}/turns/first"), "a number from"),
        (&format!("/api/sessions/{id}/turns/99999999999"), "a number from"),
        (&format!("/api/sessions/{id}/turns/1/parts?after=x"), "20 characters"),
        (&format!("/api/sessions/{id}/turns/1/parts?after={part}"), "leave after out"),
        (&format!("/api/sessions/{id}/parts/nothing"), "20 characters"),
        (&format!("/api/sessions/{id}/messages?role=system"), "choose one of user, assistant"),
        (&format!("/api/sessions/{id}/messages?execution=1"), "20 characters"),
        (&format!("/api/sessions/{id}/export"), "to is missing"),
        (&format!("/api/sessions/{id}/export?to=docx"), "choose one of markdown, html"),
        ("/api/sessions/%FF", "UTF-8"),
    ] {
        let reported = server.get(path).problem(400);
        assert!(reported.contains(what), "{path}: {reported}");
    }
    for (path, what) in [
        ("/api", "/api/openapi.json"),
        ("/api/", "/api/openapi.json"),
        ("/api/nothing", "/api/openapi.json"),
        ("/api/sessions/", "/api/openapi.json"),
        ("/api/sessions/nosuchsession", "/api/sessions lists them"),
        ("/api/sessions/..%2f..%2fetc%2fpasswd", "/api/sessions lists them"),
        ("/api/../../etc/passwd", "no such route"),
        (&format!("/api/sessions/{id}/turns/99"), "/turns lists them"),
        (&format!("/api/sessions/{id}/parts/{part}"), "/turns has them all"),
        (&format!("/api/sessions/{id}/nothing"), "/api/openapi.json"),
    ] {
        let reported = server.get(path).problem(404);
        assert!(reported.contains(what), "{path}: {reported}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "FROB"] {
        for path in ["/api/sessions", "/api/live", "/api/search", "/", "/assets/app.js", "/s/x"] {
            let response = server.request(method, path, &[]);
            let reported = response.problem(405);
            assert!(reported.contains("use GET"), "{method} {path}: {reported}");
            assert_eq!(response.header("allow"), Some("GET, HEAD"), "{method} {path}");
        }
    }
    assert!(server.get("/api/live").problem(426).contains("WebSocket"));
}

#[test]
fn the_docs_have_the_table_of_the_code() {
    let path = root().join("docs/api.md");
    let docs = fs::read_to_string(&path).unwrap();
    let (before, rest) = docs.split_once("<!-- routes -->\n").unwrap();
    let (table, after) = rest.split_once("<!-- end of routes -->\n").unwrap();
    if std::env::var_os("UNSPOOL_BLESS").is_some() {
        let table = unspool_server::table();
        let whole = format!("{before}<!-- routes -->\n{table}<!-- end of routes -->\n{after}");
        return fs::write(&path, whole).unwrap();
    }
    assert_eq!(table, unspool_server::table(), "UNSPOOL_BLESS=1 writes it");
}
