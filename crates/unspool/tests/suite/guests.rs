//! Links for guests (`unspool share`): one session with its sub-agents, redacted (law 12), and
//! nothing else of the archive or the server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::case::root;
use crate::harness::{Machine, copy, until};
use crate::test_server::{HttpResponse, Server};

const NOBODY: (&str, &str) = ("authorization", "");
const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
/// What the shared session and its sub-agent say, and what only the other session says.
const SHARED: [&str; 2] = ["Please spawn a nested chain", "Inner said 42"];
const OTHER: &str = "Help me choose the default unit";

/// An archive of two sessions, and the id of the one with sub-agents.
fn machine() -> (Machine, String, String) {
    let machine = Machine::new();
    for case in ["question-answered", "subagents-nested"] {
        let recorded = root().join("fixtures/claude-code").join(case);
        let text = fs::read_to_string(recorded.join("log.jsonl")).unwrap();
        let text = text.replace(SHARED[0], &format!("{} {SECRET} ", SHARED[0]));
        machine.write(&format!("logs/{case}/log.jsonl"), text.as_bytes());
        let agents = recorded.join("subagents");
        if agents.is_dir() {
            copy(&agents, &machine.home().join("logs").join(case).join("subagents"));
        }
    }
    machine.ok("d", &["import", machine.home().join("logs").to_str().unwrap()]);
    let sessions = machine.json("d", &["list"]);
    let id_of = |prompt: &str| {
        let of = |one: &&Value| one["title"].as_str().is_some_and(|it| it.contains(prompt));
        sessions.as_array().unwrap().iter().find(of).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let (shared, other) = (id_of(SHARED[0]), id_of(OTHER));
    (machine, shared, other)
}

/// The path of a new link.
fn share(machine: &Machine, arguments: &[&str]) -> String {
    let link = machine.ok("d", &[&["share"], arguments].concat());
    let (address, path) = link.trim().split_once("/guest/").unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{link}");
    format!("/guest/{path}")
}

#[test]
fn a_link_has_the_address_of_the_server_that_runs() {
    let (machine, shared, _) = machine();
    let usual = "http://127.0.0.1:7787/guest/";
    assert!(machine.ok("d", &["share", &shared]).starts_with(usual));
    let server = Server::begin(&machine, "d", &[]);
    let link = machine.ok("d", &["share", &shared]);
    let (_, path) = link.trim().split_once(&format!("http://127.0.0.1:{}", server.port)).unwrap();
    assert_eq!(server.request("GET", path, &[NOBODY]).status, 200);
}

fn text(response: &HttpResponse) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

#[test]
fn law_12_a_guest_sees_one_session_redacted() {
    let (machine, shared, other) = machine();
    machine.ok("d", &["note", &shared, "a private thought"]);
    let server = Server::begin(&machine, "d", &[]);
    let page = server.request("GET", &share(&machine, &[&shared]), &[NOBODY]);
    let body = text(&page);
    assert_eq!(page.status, 200, "{body}");
    for said in SHARED {
        assert!(body.contains(said), "{said}");
    }
    for hidden in [SECRET, OTHER, &other, "a private thought", server.token.as_str()] {
        assert!(!body.contains(hidden), "{hidden}");
    }
    assert!(server.get(&format!("/s/{shared}")).status == 200, "the owner's page");
    assert!(text(&server.get(&format!("/s/{shared}"))).contains(SECRET), "the owner's page is raw");
    // It leads nowhere on this server, and can load and send nothing.
    for place in ["href=\"/", "src=\"/", "action=", "/assets/", "/api/"] {
        assert!(!body.contains(place), "{place}");
    }
    let policy = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "script-src 'sha256-", "frame-ancestors 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("'self'") && page.header("set-cookie").is_none());
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let with_notes = share(&machine, &[&shared, "--notes"]);
    assert!(text(&server.request("GET", &with_notes, &[NOBODY])).contains("a private thought"));
}

#[test]
fn a_guest_reaches_nothing_else() {
    let (machine, shared, other) = machine();
    let link = share(&machine, &[&shared]);
    let token = link.strip_prefix("/guest/").unwrap().to_owned();
    let server = Server::begin(&machine, "d", &[]);
    let stored = fs::read_dir(machine.data("d").join("shares")).unwrap().next().unwrap().unwrap();
    let stored = stored.file_name().into_string().unwrap();
    let attacks = [
        "/".to_owned(),
        "/guest".to_owned(),
        "/guest/".to_owned(),
        format!("/guest/{stored}"),
        format!("/guest/{}", &token[1..]),
        format!("/guest/{token}0"),
        format!("/guest/{}", "0".repeat(48)),
        format!("/guest/..%2Fshares%2F{stored}"),
        format!("{link}/s/{other}"),
        format!("{link}/../../s/{other}"),
        format!("{link}%2F..%2F..%2Fapi%2Fsessions"),
        format!("/s/{other}"),
        format!("/s/{shared}"),
        format!("/s/{shared}?token={token}"),
        format!("/s/{shared}/raw"),
        format!("/api/sessions/{shared}"),
        format!("/api/sessions/{shared}/export?to=html&redact=0"),
        "/api/sessions".to_owned(),
        "/api/search?q=unit".to_owned(),
        "/assets/app.js".to_owned(),
    ];
    let cookie = format!("unspool-{}={token}", server.port);
    let bearer = format!("Bearer {token}");
    for path in &attacks {
        let by_cookie = [NOBODY, ("cookie", &*cookie)];
        let by_token = [("authorization", &*bearer)];
        for headers in [&[NOBODY][..], &by_cookie, &by_token] {
            let answer = server.request("GET", path, headers);
            let body = text(&answer);
            assert!([400, 401, 404].contains(&answer.status), "{path}: {}", answer.status);
            for hidden in [SHARED[0], OTHER, SECRET] {
                assert!(!body.contains(hidden), "{path}: {body}");
            }
        }
    }
    // The parameters of exports do not apply.
    let raw = server.request("GET", &format!("{link}?redact=0&notes=1&session={other}"), &[NOBODY]);
    assert!(raw.status == 200 && !text(&raw).contains(SECRET) && !text(&raw).contains(OTHER));
    // Neither a socket nor a change.
    let upgrade = [
        NOBODY,
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for path in [link.as_str(), "/api/live"] {
        assert_eq!(server.request("GET", path, &upgrade).status, 401, "{path}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(server.request(method, &link, &[NOBODY]).status, 401, "{method}");
    }
    // Another site's name for this machine (DNS rebinding).
    let host = [NOBODY, ("host", "evil.example")];
    assert!([400, 421].contains(&server.request("GET", &link, &host).status));
}

#[test]
fn a_link_ends_by_time_by_hand_and_with_its_session() {
    let (machine, shared, _) = machine();
    let server = Server::begin(&machine, "d", &[]);
    let status = |link: &str| server.request("GET", link, &[NOBODY]).status;
    let links: Vec<String> = (0..4).map(|_| share(&machine, &[&shared])).collect();
    assert!(links.iter().all(|link| status(link) == 200));
    // Only the owner reads what is stored of them.
    let folder = machine.data("d").join("shares");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);

    let listed = machine.json("d", &["share", "--list"]);
    let ids: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 4);
    assert_eq!(listed[0]["session"], json!(shared));
    machine.ok("d", &["share", "--revoke", ids[0]]);
    machine.ok("d", &["share", "--revoke", &links[3]]);
    let valid: Vec<&String> = links.iter().filter(|link| status(link) == 200).collect();
    assert!(valid.len() == 2 && status(&links[3]) == 404, "{valid:?}");
    assert!(!machine.run("d", &["share", "--revoke", ids[0]], "").status.success());

    // Its time is over.
    let file = folder.join(unspool_model::id::sha256(&valid[0].as_bytes()["/guest/".len()..]));
    let mut stored: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(stored["expires"].is_string(), "a week, unless one says otherwise: {stored}");
    stored["expires"] = json!("2001-01-01T00:00:00Z");
    fs::write(&file, stored.to_string()).unwrap();
    assert_eq!((status(valid[0]), status(valid[1])), (404, 200));

    // Deleted, and read again: the link stays dead.
    machine.ok("d", &["delete", "--yes", &shared]);
    assert_eq!(status(valid[1]), 404);
    let logs = machine.home().join("logs");
    machine.ok("d", &["import", "--restore", logs.to_str().unwrap()]);
    assert_eq!(server.get(&format!("/s/{shared}")).status, 200);
    assert_eq!(status(valid[1]), 404);
    for expires in ["0d", "7", "-1d", "7y"] {
        let output = machine.run("d", &["share", &shared, &format!("--expires={expires}")], "");
        assert_eq!(output.status.code(), Some(2), "{expires}");
    }
}

/// While the session is live its page loads itself again, and shows what is complete.
#[test]
fn the_page_of_a_live_session_follows_it() {
    let machine = Machine::new();
    machine.keep_turns_open();
    let now = jiff::Timestamp::now();
    let record = |nth: i64, kind: &str, content: Value| {
        let at = now - jiff::SignedDuration::from_secs(60 - nth);
        let mut line = json!({
            "type": kind, "uuid": format!("u{nth}"), "sessionId": "live", "cwd": "/w",
            "version": "2.1.325", "timestamp": at.to_string(),
            "message": { "id": format!("m{nth}"), "role": kind, "content": content },
        })
        .to_string();
        line.push('\n');
        line
    };
    let log = ".claude/projects/-w/live.jsonl";
    machine.write(log, record(1, "user", json!("look around")).as_bytes());
    let call =
        json!([{ "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "ls" } }]);
    machine.append(log, record(2, "assistant", call).as_bytes());
    machine.ok("d", &["sync"]);
    let link = share(&machine, &["live"]);
    let server = Server::begin(&machine, "d", &[]);
    let page = server.request("GET", &link, &[NOBODY]);
    assert_eq!((page.status, page.header("refresh")), (200, Some("15")), "{}", text(&page));
    assert!(text(&page).contains("look around") && !text(&page).contains("all of them"));
    let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "all of them" }]);
    machine.append(log, record(3, "user", result).as_bytes());
    let mut end = record(4, "assistant", json!([{ "type": "text", "text": "That is all." }]));
    end = end.replace("\"role\"", "\"stop_reason\":\"end_turn\",\"role\"");
    machine.append(log, end.as_bytes());
    until("the rest", || {
        let page = server.request("GET", &link, &[NOBODY]);
        let body = text(&page);
        let is_whole = body.contains("all of them") && body.contains("That is all.");
        if is_whole && page.header("refresh").is_none() { Ok(()) } else { Err(body) }
    });
}

/// A log that names another session as its sub-agent does not open that session to guests.
#[test]
fn a_session_of_another_parent_is_not_shown() {
    let (machine, shared, other) = machine();
    let theirs = machine.json("d", &["show", &other])["session"]["agent_session_id"].clone();
    let server = Server::begin(&machine, "d", &[]);
    let ours = machine.json("d", &["show", &shared])["session"]["agent_session_id"].clone();
    let log = machine.home().join("logs/subagents-nested/log.jsonl");
    let copied = fs::read_to_string(&log).unwrap();
    let agent = copied.lines().find_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        record["toolUseResult"]["agentId"].as_str().map(str::to_owned)
    });
    // The same session under another id, whose call claims to have started the other session.
    let forged = copied
        .replace(&agent.unwrap(), theirs.as_str().unwrap())
        .replace(ours.as_str().unwrap(), "11111111-2222-4333-8444-555555555555");
    machine.write("forged/log.jsonl", forged.as_bytes());
    machine.ok("d", &["import", machine.home().join("forged").to_str().unwrap()]);
    let owner = machine.ok("d", &["export", "11111111", "--to", "html"]);
    assert!(owner.contains(OTHER), "the owner's own export follows the claim");
    let page = server.request("GET", &share(&machine, &["11111111"]), &[NOBODY]);
    assert!(page.status == 200 && text(&page).contains(SHARED[0]));
    assert!(!text(&page).contains(OTHER));
}

/// A link to some turns shows nothing of the others.
#[test]
fn law_12_a_guest_sees_only_the_turns_of_the_link() {
    let machine = Machine::new();
    let rows: String = ["Plan the takeover", "Say hello", "Say goodbye"]
        .iter()
        .enumerate()
        .flat_map(|(nth, prompt)| {
            let row = |role: &str, text: &str, second: usize| {
                let at = format!("2026-03-01T10:0{nth}:{second:02}Z");
                format!("{}\n", json!({"session": "s", "role": role, "text": text, "at": at}))
            };
            [row("user", prompt, 0), row("assistant", "Done.", 5)]
        })
        .collect();
    assert!(machine.run("d", &["import", "-"], &rows).status.success());
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let link = share(&machine, &[&id, "--turns", "2"]);
    let server = Server::begin(&machine, "d", &[]);
    for path in [link.clone(), format!("{link}?turns=1-3")] {
        let body = text(&server.request("GET", &path, &[NOBODY]));
        assert!(body.contains("Say hello"), "{body}");
        assert!(!body.contains("takeover") && !body.contains("goodbye"), "{body}");
    }
    let listed = machine.json("d", &["share", "--list"]);
    assert_eq!(listed[0]["turns"], json!({ "first": 2, "last": 2 }));
    let refused = machine.run("d", &["share", &id, "--turns", "9"], "");
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && error.contains("this session has no turn 9"), "{error}");
}
