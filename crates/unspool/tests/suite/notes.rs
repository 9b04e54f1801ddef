//! Notes and bookmarks on the command line: written, shown, found, exported and kept.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::Machine;
use crate::test_server::{HttpResponse, Server};

const LOG: &str = ".claude/projects/-home-dev-weather-app/log.jsonl";
const LOOP: &str = "claude-code/discovery-loop/log.jsonl";
const LOOP_ID: &str = "112b2623-935f-4249-9e9a-c45c61ba0d98";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.put(LOOP, LOG);
    machine.ok("d", &["sync"]);
    machine
}

fn refused(machine: &Machine, arguments: &[&str]) -> String {
    let output = machine.run("d", arguments, "");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_note_is_shown_at_its_place() {
    let machine = machine();
    let before = machine.ok("d", &["show", LOOP_ID, "--full"]);
    assert_eq!(machine.ok("d", &["note", LOOP_ID]), "");
    let said = machine.ok("d", &["note", LOOP_ID, "the prompt is vague", "--turn", "1"]);
    assert_eq!(said, "turn 1: the prompt is vague\n");
    machine
        .ok("d", &["note", LOOP_ID, "first\nsecond \u{1b}[31mred", "--turn", "1", "--part", "2"]);
    machine.ok("d", &["note", LOOP_ID, "--bookmark", "--turn", "1", "--part", "3"]);
    machine.ok("d", &["note", LOOP_ID, "all in all"]);
    let shown = machine.ok("d", &["show", LOOP_ID, "--full"]);
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text} in {shown}"));
    assert!(at("✎ all in all") < at("── Turn 1"));
    assert!(at("── Turn 1") < at("✎ the prompt is vague"));
    assert!(at("✎ the prompt is vague") < at("✎ first"));
    assert!(at("✎ first") < at("second "), "{shown}");
    assert!(!shown.contains('\u{1b}'), "hostile text is made visible");
    // The part is the first of a group: the mark is at its own head, not at the group's.
    let marked: Vec<&str> = shown.lines().filter(|line| line.contains('★')).collect();
    assert!(
        matches!(marked[..], [line] if line.contains("Glob") && line.contains("[OK] ★")),
        "{marked:?}"
    );
    // Notes only add lines: the transcript is as before.
    let words = |line: &str| line.replace('★', "").split_whitespace().collect::<String>();
    let mut lines = shown.lines().map(words);
    for line in before.lines().map(words) {
        assert!(lines.any(|found| found == line), "{line:?} in {shown}");
    }
    let listed = machine.ok("d", &["note", LOOP_ID]);
    let expected = "session: all in all\nturn 1: the prompt is vague\n";
    assert!(
        listed.starts_with(expected) && listed.ends_with("turn 1, part: ★ Glob **/*.ts 2 files\n"),
        "{listed}"
    );
    // Another text replaces it; removed is removed.
    machine.ok("d", &["note", LOOP_ID, "better"]);
    machine.ok("d", &["note", LOOP_ID, "--remove", "--turn", "1"]);
    let listed = machine.json("d", &["note", LOOP_ID]);
    let texts: Vec<&str> =
        listed.as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["better", "first\nsecond \u{1b}[31mred", ""]);
    assert_eq!(listed[2]["bookmark"], true);
    let all = machine.ok("d", &["note"]);
    assert!(all.contains("session: better") && all.contains("★ Glob"), "{all}");
    machine.ok("d", &["db", "check"]);
}

#[test]
fn what_cannot_be_noted_is_refused_with_a_reason() {
    let machine = machine();
    let long = "x".repeat(16 * 1024 + 1);
    for (arguments, reason) in [
        (vec!["note", LOOP_ID, &long], "at most 16384"),
        (vec!["note", LOOP_ID, "x", "--turn", "99"], "there is no turn 99"),
        (vec!["note", LOOP_ID, "x", "--turn", "1", "--part", "999"], "there is no part 999"),
        (vec!["note", LOOP_ID, "x", "--part", "2"], "add --turn"),
        (vec!["note", LOOP_ID, "x", "--part", "00000000000000000000"], "no such turn or part"),
        (vec!["note", LOOP_ID, " "], "--bookmark"),
        (vec!["note", "nobody", "x"], "there is no session"),
    ] {
        let said = refused(&machine, &arguments);
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
    assert_eq!(machine.ok("d", &["note"]), "");
}

#[test]
fn a_note_survives_that_its_session_is_read_again() {
    let machine = machine();
    machine.ok("d", &["note", LOOP_ID, "look here", "--turn", "1", "--part", "2"]);
    machine.ok("d", &["note", LOOP_ID, "--bookmark", "--turn", "1"]);
    let shown = machine.json("d", &["show", LOOP_ID]);
    let last = shown["turns"].as_array().unwrap().last().unwrap();
    let last = last["parts"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    machine.ok("d", &["note", LOOP_ID, "the end", "--part", last]);
    let before = machine.json("d", &["note", LOOP_ID]);
    assert_eq!((&before[1]["lost"], &before[2]["text"]), (&false.into(), &"the end".into()));
    machine.ok("d", &["db", "rebuild"]);
    assert_eq!(machine.json("d", &["note", LOOP_ID]), before);
    machine.ok("d", &["db", "rebuild", "--from-logs"]);
    assert_eq!(machine.json("d", &["note", LOOP_ID]), before);
    // A note whose part is gone is shown at the head of the session.
    let archive = Connection::open(machine.data("d").join("unspool.db")).unwrap();
    let sql = "UPDATE note SET target = '00000000000000000000' WHERE text = 'the end'";
    assert_eq!(archive.execute(sql, []).unwrap(), 1);
    let lost = machine.json("d", &["note", LOOP_ID]);
    let shown = machine.ok("d", &["show", LOOP_ID]);
    assert_eq!(lost.as_array().unwrap().len(), 3);
    assert_eq!((&lost[2]["lost"], &lost[2]["text"]), (&true.into(), &"the end".into()), "{lost}");
    assert!(
        shown.contains("✎ the end  (on a part that is no longer in the transcript)"),
        "{shown}"
    );
    machine.ok("d", &["delete", LOOP_ID, "--yes"]);
    assert_eq!(machine.json("d", &["note"]), Value::Array(Vec::new()));
}

#[test]
fn notes_are_searched() {
    let machine = machine();
    machine.ok("d", &["note", LOOP_ID, "a zebrafish in the cache", "--turn", "1", "--part", "2"]);
    machine.ok("d", &["note", LOOP_ID, "--bookmark", "--turn", "1"]);
    let part = machine.json("d", &["note", LOOP_ID])[1]["part"].clone();
    for query in [&["search", "zebrafish"][..], &["search", "zebrafish", "--kind", "note"]] {
        let hits = machine.json("d", query);
        assert_eq!(hits.as_array().unwrap().len(), 1, "{hits}");
        assert_eq!(hits[0]["kind"], "note");
        assert_eq!((&hits[0]["turn"], &hits[0]["part"]), (&1.into(), &part));
        assert_eq!(hits[0]["snippet"], "a zebrafish in the cache");
    }
    let hits = machine.json("d", &["search", "--kind", "note"]);
    assert_eq!(hits.as_array().unwrap().len(), 2, "without words all of them: {hits}");
    // A bookmark says what it is on: here the prompt.
    let bookmark = hits.as_array().unwrap().iter().find(|hit| hit["part"].is_null()).unwrap();
    assert!(bookmark["snippet"].as_str().unwrap().starts_with("The forecast cache"), "{hits}");
    let none = machine.json("d", &["search", "zebrafish", "--kind", "text"]);
    assert_eq!(none, Value::Array(Vec::new()));
    let none = machine.json("d", &["search", "zebrafish", "--agent", "codex"]);
    assert_eq!(none, Value::Array(Vec::new()));
}

#[test]
fn notes_are_exported_on_request_and_come_back() {
    let machine = machine();
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    let text = format!("zebrafish <b> uses {secret}");
    machine.ok("d", &["note", LOOP_ID, &text, "--turn", "1", "--part", "2"]);
    machine.ok("d", &["note", LOOP_ID, "on the whole"]);
    for form in ["markdown", "html", "text", "json"] {
        let plain = machine.ok("d", &["export", LOOP_ID, "--to", form]);
        assert!(!plain.contains("zebrafish") && !plain.contains("on the whole"), "{form}");
        let with = machine.ok("d", &["export", LOOP_ID, "--to", form, "--notes"]);
        assert!(with.contains("zebrafish") && with.contains("on the whole"), "{form}");
        assert!(!with.contains(secret), "{form}: notes are redacted too");
        assert!(form == "json" || form == "text" || !with.contains("zebrafish <b>"), "{form}");
    }
    let said = refused(&machine, &["export", LOOP_ID, "--to", "atif", "--notes"]);
    assert!(said.contains("no place for notes"), "{said}");
    let lines = machine.ok("d", &["export", LOOP_ID, "--to", "jsonl", "--notes"]);
    machine.write("export.jsonl", lines.as_bytes());
    let path = machine.home().join("export.jsonl");
    machine.ok("other", &["import", path.to_str().unwrap()]);
    assert_eq!(machine.json("other", &["note"]), machine.json("d", &["note"]));
}

/// Posts a change with these headers instead of the token.
fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> HttpResponse {
    let body = body.to_string();
    let mut lines = vec![format!("POST {path} HTTP/1.0")];
    lines.push(format!("host: 127.0.0.1:{}", server.port));
    lines.push("content-type: application/json".to_owned());
    lines.push(format!("content-length: {}", body.len()));
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    server.send(&lines, body.as_bytes())
}

#[test]
fn programs_and_pages_change_a_session_and_other_sites_do_not() {
    let machine = machine();
    let server = Server::begin(&machine, "d", &[]);
    let path = format!("/api/sessions/{LOOP_ID}");
    let token = format!("Bearer {}", server.token);
    let by_program = [("authorization", token.as_str())];
    let change = |body: Value| post(&server, &path, &by_program, &body);
    let edited = change(json!({
        "name": "Mine", "add_tags": ["b", " a "],
        "note": { "turn": 1, "text": "  by a program\n" },
    }));
    assert_eq!(edited.status, 200, "{}", String::from_utf8_lossy(&edited.body));
    let edited = edited.json();
    assert_eq!((&edited["name"], &edited["title"]), (&"Mine".into(), &"Mine".into()));
    assert_eq!(edited["tags"], json!(["a", "b"]));
    assert_eq!(edited["notes"][0]["text"], "by a program");
    assert_eq!(edited["notes"], server.json(&format!("{path}/notes")));
    assert!(machine.ok("d", &["show", LOOP_ID]).contains("✎ by a program"));
    let edited =
        change(json!({ "name": null, "remove_tags": ["b"], "note": { "turn": 1, "text": null } }));
    let edited = edited.json();
    assert_eq!((&edited["name"], &edited["tags"]), (&Value::Null, &json!(["a"])));
    assert_eq!(edited["notes"], json!([]));
    for (body, reason) in [
        (json!({ "nam": "x" }), "nam"),
        (json!({ "note": {} }), "text"),
        (json!({ "add_tags": [" "] }), "blank"),
        (json!({ "note": { "text": "x".repeat(16 * 1024 + 1) } }), "16384"),
    ] {
        let problem = change(body).problem(400);
        assert!(problem.contains(reason), "{problem}");
    }
    let missing = json!({ "note": { "part": "00000000000000000000", "text": "x" } });
    assert!(change(missing).problem(409).contains("no such turn or part"));
    // A browser that is logged in: only pages of this server may change anything.
    let login =
        server.request("GET", &format!("/?token={}", server.token), &[("authorization", "")]);
    let cookie = login.cookie("unspool-");
    let own = format!("http://127.0.0.1:{}", server.port);
    let body = json!({ "name": "by a browser" });
    let by_browser = |origin: Option<&str>| {
        let headers = [("cookie", cookie.as_str())].into_iter();
        let headers: Vec<_> = headers.chain(origin.map(|origin| ("origin", origin))).collect();
        post(&server, &path, &headers, &body)
    };
    for origin in [Some("https://evil.example"), Some("null"), Some("http://127.0.0.1:1"), None] {
        by_browser(origin).problem(403);
    }
    post(&server, &path, &[], &body).problem(403);
    post(&server, &path, &[("origin", &own)], &body).problem(401);
    let with_token = [("authorization", token.as_str()), ("origin", "https://evil.example")];
    post(&server, &path, &with_token, &body).problem(403);
    assert_ne!(server.json("/api/sessions")[0]["title"], "by a browser");
    assert_eq!(by_browser(Some(&own)).status, 200);
    assert_eq!(server.json("/api/sessions")[0]["title"], "by a browser");
}
