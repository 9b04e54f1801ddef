//! `unspool export`: files, folders, redaction, and its errors.

use std::fs;
use std::process::Stdio;

use crate::harness::Machine;

/// An invalid token, assembled so that no complete one is in this file.
fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

/// A machine whose archive has a session with a secret, and one without.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", "logs/plain.jsonl");
    let log =
        String::from_utf8(crate::harness::recorded("claude-code/question-answered/log.jsonl"));
    let secret = log.unwrap().replace("Celsius", &format!("GITHUB_TOKEN={} TICKET-1234", token()));
    assert!(secret.contains("ghp_"));
    machine.write("logs/secret.jsonl", secret.as_bytes());
    let logs = machine.home().join("logs");
    machine.ok("archive", &["import", logs.to_str().unwrap()]);
    machine
}

/// The sessions, the one with the secret first.
fn ids(machine: &Machine) -> Vec<String> {
    let listed = machine.json("archive", &["list"]);
    let mut ids: Vec<String> =
        listed.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    ids.sort_by_key(|id| !machine.ok("archive", &["export", id, "--to", "jsonl"]).contains("ghp_"));
    assert_eq!(ids.len(), 2);
    ids
}

#[test]
fn secrets_are_redacted_listed_and_kept_on_request() {
    let machine = machine();
    let [secret, plain] = &ids(&machine)[..] else { panic!("two sessions") };
    for form in unspool_export::project::NAMES {
        let output = machine.run("archive", &["export", secret, "--to", form], "");
        let (text, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{form}: {stderr}");
        let is_archive = *form == "jsonl";
        assert_eq!(text.contains(&token()), is_archive, "{form}");
        assert_eq!(text.contains("redacted:github-token:1"), !is_archive, "{form}: {text}");
        assert_eq!(stderr.contains("1 github-token"), !is_archive, "{form}: {stderr}");
    }
    let listed = machine.ok("archive", &["export", secret, "--to", "markdown", "--dry-run"]);
    assert!(listed.contains("[redacted:github-token:1]  ghp_… (40 characters)"), "{listed}");
    assert!(listed.lines().skip(1).any(|line| line.contains("turn 1, part ")), "{listed}");
    assert!(!listed.contains(&token()), "{listed}");
    let listed = machine.ok("archive", &["export", plain, "--to", "markdown", "--dry-run"]);
    assert_eq!(listed, "no secrets found\n");

    // Without a terminal to ask on, --yes is required.
    let refused =
        machine.run("archive", &["export", secret, "--to", "markdown", "--no-redact"], "y\n");
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("add --yes"), "{refused:?}");
    let confirmed = ["export", secret, "--to", "text", "--no-redact", "--yes"];
    assert!(machine.ok("archive", &confirmed).contains(&token()));
    let refused = machine.run("archive", &["export", secret, "--to", "jsonl", "--dry-run"], "");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is never redacted"));

    // Custom rules, and errors in them.
    let config = ".config/unspool/config.toml";
    machine
        .write(config, b"[redaction]\nhomes = true\n[redaction.rules]\nticket = 'TICKET-(\\d+)'\n");
    let text = machine.ok("archive", &["export", secret, "--to", "text"]);
    assert!(text.contains("TICKET-[redacted:ticket:1]") && !text.contains("/home/dev/"), "{text}");
    machine.write(config, b"[redaction.rules]\nticket = 'TICKET-(('\n");
    let refused = machine.run("archive", &["export", secret, "--to", "text"], "");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success()
            && stderr.contains("ticket")
            && stderr.contains("[redaction.rules]"),
        "{stderr}"
    );
}

#[test]
fn several_sessions_are_several_files() {
    let machine = machine();
    let ids = ids(&machine);
    let refused = machine.run("archive", &["export", "--all", "--to", "html"], "");
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("-o FOLDER"), "{refused:?}");
    let folder = machine.data("out");
    machine.ok("archive", &["export", "--all", "--to", "html", "-o", folder.to_str().unwrap()]);
    let mut found: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut wanted: Vec<String> = ids.iter().map(|id| format!("{id}.html")).collect();
    wanted.sort();
    assert_eq!(found, wanted, "and nothing that was half written");
    // One session goes into the named file; jsonl puts all sessions into one file.
    let file = machine.data("one.md");
    machine.ok("archive", &["export", &ids[0], "--to", "markdown", "-o", file.to_str().unwrap()]);
    assert!(fs::read_to_string(&file).unwrap().starts_with("# "));
    let lines = machine.ok("archive", &["export", "--all", "--to", "jsonl"]);
    assert_eq!(lines.lines().filter(|line| line.starts_with("{\"unspool\":1,")).count(), 2);
    let refused = machine.run("archive", &["export", &ids[0], "--to", "docx"], "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("markdown"), "{refused:?}");
}

// R-X-16: a hostile session id cannot name a file outside the output folder.
#[test]
fn files_are_named_by_our_own_ids() {
    let machine = Machine::new();
    let log = "{\"id\":\"../../../evil\",\"messages\":[{\"id\":\"u\",\"role\":\"user\",\
        \"parts\":[{\"type\":\"text\",\"text\":\"Hello.\"}]}]}";
    machine.write("chat.json", log.as_bytes());
    machine.ok("archive", &["import", machine.home().join("chat.json").to_str().unwrap()]);
    let listed = machine.json("archive", &["list"]);
    let id = listed[0]["id"].as_str().unwrap();
    assert!(id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
    let shown = machine.json("archive", &["show", id]);
    assert_eq!(shown["session"]["agent_session_id"], "../../../evil");
    for form in ["thoughtflow", "html"] {
        let folder = machine.data(form);
        machine.ok("archive", &["export", "--all", "--to", form, "-o", folder.to_str().unwrap()]);
        let files: Vec<_> = folder.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        assert_eq!(file.file_stem().unwrap().to_str().unwrap(), id);
    }
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let machine = machine();
    for arguments in [&["export", "--all", "--to", "jsonl"][..], &["list"], &["stats"]] {
        let mut command = machine.command("archive", arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("pipe"), "{arguments:?}: {stderr}");
    }
}

/// Some turns: nothing of the others leaves, not even as a title, and a secret that only another turn
/// reveals is redacted in them too.
#[test]
fn some_turns_are_exported_and_nothing_of_the_others() {
    let machine = Machine::new();
    let secret = "correct7horse9battery";
    let rows = [
        ("user", "Plan the takeover"),
        ("assistant", &format!("export DB_PASSWORD={secret}")),
        ("user", "Say hello"),
        ("assistant", &format!("It says {secret} there.")),
        ("user", "Say goodbye"),
        ("assistant", "Until tomorrow."),
    ];
    let rows: String = rows
        .iter()
        .enumerate()
        .map(|(nth, (role, text))| {
            let at = format!("2026-03-01T10:00:{nth:02}Z");
            let row = serde_json::json!({"session": "s", "role": role, "text": text, "at": at});
            format!("{row}\n")
        })
        .collect();
    assert!(machine.run("archive", &["import", "-"], &rows).status.success());
    let id = machine.json("archive", &["list"])[0]["id"].as_str().unwrap().to_owned();
    machine.ok("archive", &["note", &id, "on the whole session"]);
    machine.ok("archive", &["note", &id, "on the first turn", "--turn", "1"]);
    machine.ok("archive", &["note", &id, "on the second turn", "--turn", "2"]);
    for form in ["html", "markdown", "text"] {
        let export = |turns: &str| {
            let more = ["--turns", turns, "--notes"];
            machine.ok("archive", &[&["export", id.as_str(), "--to", form][..], &more].concat())
        };
        let text = export("2");
        assert!(text.contains("Say hello (turn 2)") && text.contains("It says"), "{form}: {text}");
        assert!(text.contains("on the second turn"), "{form}: {text}");
        for hidden in [
            "takeover",
            "goodbye",
            "tomorrow",
            "DB_PASSWORD",
            secret,
            "whole session",
            "first turn",
        ] {
            assert!(!text.contains(hidden), "{form}: {hidden}\n{text}");
        }
        let text = export("2-3");
        assert!(text.contains("turns 2 to 3") && text.contains("goodbye"), "{form}: {text}");
        assert!(!text.contains("takeover"), "{form}: {text}");
    }
    let refused = |turns: &str, form: &str| {
        let output = machine.run("archive", &["export", &id, "--to", form, "--turns", turns], "");
        assert!(!output.status.success() && output.stdout.is_empty(), "{turns} {form}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused("7-9", "html").contains("this session has no turns 7 to 9"));
    assert!(refused("3-2", "html").contains("like 3 or 3-7"));
    assert!(refused("2", "json").contains("choose markdown, html or text"));
    let server = crate::test_server::Server::begin(&machine, "archive", &[]);
    let status = |query: &str| server.get(&format!("/api/sessions/{id}/export?{query}")).status;
    assert_eq!(status("to=html&turns=2"), 200);
    assert_eq!(status("to=html&turns=9"), 404);
    assert_eq!(status("to=html&turns=x"), 400);
    assert_eq!(status("to=json&turns=2"), 400);
    let body = server.get(&format!("/api/sessions/{id}/export?to=html&turns=2")).body;
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("Say hello") && !body.contains("takeover"), "{body}");
}
