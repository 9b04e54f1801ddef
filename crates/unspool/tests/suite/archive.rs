//! The archive through its commands: `show` prints the same from the archive as from the files; and
//! tags, names, deletions, exports, searches and rebuilds.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::by_source::by_source;
use crate::case::{captures, cases, fold_in, main_session, name, root};

/// An archive in a temporary folder.
struct Archive(TempDir);

impl Archive {
    fn new() -> Archive {
        Archive(TempDir::new().unwrap())
    }

    fn with(paths: &[&Path]) -> Archive {
        let archive = Archive::new();
        let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        archive.ok(&[&["import"], paths.as_slice()].concat());
        archive
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_unspool"))
            .arg("--data")
            .arg(self.0.path())
            .args(arguments)
            .current_dir(root())
            .env_remove("NO_COLOR")
            .env_remove("UNSPOOL_DATA")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn sessions(&self) -> Vec<Value> {
        self.json(&["list"]).as_array().unwrap().clone()
    }
}

fn id(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

fn demo() -> Archive {
    Archive::with(&[&root().join("fixtures/claude-code/discovery-loop")])
}

by_source!(the_archive_holds_what_the_files_say);

fn the_archive_holds_what_the_files_say(source: &str) {
    // R-001-28, R-000-23, R-X-15: for every recording, and storing it twice changes nothing.
    for case in cases(source) {
        // A JSON document is imported only if it is named itself, not through its folder.
        let document = case.join("log.json");
        let path = if document.exists() { document } else { case.clone() };
        let archive = Archive::with(&[&path]);
        // The session that a fork continues is in the same folder: compare the main one.
        let session_set = fold_in(&captures(&case)[..1], &[0]);
        let main = &main_session(&session_set).agent_session_id;
        let shown = ["show", path.to_str().unwrap(), "--session", main];
        let mut from_file = Archive::new().json(&shown);
        let session = from_file["session"].clone();
        let mut stored = archive.json(&["show", id(&session)]);
        // The call that started a sub-agent is joined only once both are stored.
        for document in [&mut from_file, &mut stored] {
            document["session"]["parent"] = Value::Null;
        }
        for part in ["session", "turns", "records"] {
            assert_eq!(stored[part], from_file[part], "{}: {part}", name(&case));
        }
        let again = archive.json(&["import", path.to_str().unwrap()]);
        for count in ["sessions", "turns", "parts", "records", "bytes"] {
            assert_eq!(again[count], 0, "{}: {count}", name(&case));
        }
        assert_eq!(archive.json(&["show", id(&session)])["turns"], stored["turns"]);
    }
}

#[test]
fn the_text_from_the_archive_is_the_text_from_the_file() {
    let case = root().join("fixtures/claude-code/discovery-loop");
    let archive = Archive::with(&[&case]);
    let session = archive.sessions().remove(0);
    let shown = |what: &str| archive.ok(&["show", what, "--plain", "--width", "90"]);
    assert_eq!(shown(id(&session)), shown(case.to_str().unwrap()));
    // A unique prefix of the id works, and so does the agent's own id.
    assert_eq!(shown(&id(&session)[..6]), shown(id(&session)));
    assert_eq!(shown(session["agent_session_id"].as_str().unwrap()), shown(id(&session)));
    let message = archive.fails(&["show", "nosuchsession"]);
    assert!(message.contains("unspool list"), "{message}");
    // Before anything is printed, and with the turns that there are.
    let said = "unspool: there is no turn 99; the session has only turn 1\n";
    for what in [id(&session), case.to_str().unwrap()] {
        assert_eq!(archive.fails(&["show", what, "--turn", "99"]), said);
    }
}

#[test]
fn a_report_counts_new_records() {
    let fixtures = root().join("fixtures/claude-code");
    let archive = Archive::new();
    let report = archive.json(&["import", fixtures.to_str().unwrap()]);
    let sessions = archive.sessions();
    let sum =
        |name: &str| sessions.iter().map(|session| session[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(report["sessions"], sessions.len());
    assert_eq!(report["turns"], sum("turns"));
    assert_eq!(report["parts"], sum("parts"));
    assert!(report["bytes"].as_u64().unwrap() > 1_000_000);
    // Newest first, then by id.
    let order: Vec<(&Value, &str)> =
        sessions.iter().map(|session| (&session["started_at"], id(session))).collect();
    for pair in order.windows(2) {
        let ((newer, first), (older, second)) = (pair[0], pair[1]);
        let (newer, older) = (newer.as_str(), older.as_str());
        assert!(newer > older || (newer == older && first < second), "{pair:?}");
    }
    assert_eq!(archive.ok(&["db", "check"]).lines().count(), 1);
}

#[test]
fn an_export_brings_everything_back() {
    // R-001-30: an export contains everything that is stored.
    let archive = Archive::with(&[&root().join("fixtures/claude-code")]);
    let sessions = archive.sessions();
    archive.ok(&["tag", id(&sessions[0]), "first", "second"]);
    archive.ok(&["rename", id(&sessions[1]), "A name of my own"]);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("all.jsonl");
    let file = file.to_str().unwrap();
    archive.ok(&["export", "--all", "--to", "jsonl", "-o", file]);
    let other = Archive::new();
    other.ok(&["import", file]);
    assert_eq!(other.sessions(), archive.sessions());
    for session in &sessions {
        let show = ["show", id(session)];
        assert_eq!(other.json(&show), archive.json(&show));
    }
    assert_eq!(
        other.ok(&["export", "--all", "--to", "jsonl"]),
        std::fs::read_to_string(file).unwrap()
    );
    assert_eq!(other.json(&["import", file])["sessions"], 0, "twice is once");
    // Importing the logs adds nothing.
    let report = other.json(&["import", "fixtures/claude-code"]);
    assert_eq!((&report["turns"], &report["parts"]), (&Value::from(0), &Value::from(0)));
    assert!(other.ok(&["db", "check"]).contains("no problems found"));
    // A truncated export is reported.
    let half = folder.path().join("half.jsonl");
    let lines: Vec<String> =
        std::fs::read_to_string(file).unwrap().lines().take(2).map(str::to_owned).collect();
    std::fs::write(&half, lines.join("\n")).unwrap();
    let message = Archive::new().fails(&["import", half.to_str().unwrap()]);
    assert!(message.contains("in the middle of session"), "{message}");
    let message = Archive::new().fails(&["export", "--all", "--to", "jsonl"]);
    assert!(message.contains("unspool sync"), "{message}");
}

#[test]
fn deleted_sessions_stay_deleted() {
    // R-004-20.
    let fixtures = root().join("fixtures/claude-code");
    let archive = Archive::with(&[&fixtures]);
    let before = archive.sessions();
    let gone = id(&before[0]).to_owned();
    let message = archive.fails(&["delete", &gone]);
    assert!(message.contains("--yes"), "nobody was asked: {message}");
    archive.ok(&["delete", &gone, "--yes"]);
    let after = archive.sessions();
    assert!(after.len() < before.len() && after.iter().all(|session| id(session) != gone));
    assert!(archive.ok(&["db", "check"]).contains("no problems found"));
    let fixtures = fixtures.to_str().unwrap();
    archive.ok(&["import", fixtures]);
    assert_eq!(archive.sessions(), after, "it does not come back by itself");
    archive.ok(&["import", "--restore", fixtures]);
    assert_eq!(archive.sessions(), before);
}

#[test]
fn a_rebuild_from_logs_is_idempotent() {
    // R-001-29: it prints the number of sessions, and can be repeated.
    let archive = Archive::with(&[&root().join("fixtures/claude-code")]);
    let sessions = archive.sessions();
    archive.ok(&["tag", id(&sessions[2]), "kept"]);
    archive.ok(&["rename", id(&sessions[3]), "kept too"]);
    let before = archive.sessions();
    for _ in 0..2 {
        let message = archive.ok(&["db", "rebuild", "--from-logs"]);
        assert!(message.contains(&format!("{} sessions", before.len())), "{message}");
        assert_eq!(archive.sessions(), before);
    }
    archive.ok(&["db", "rebuild"]);
    archive.ok(&["db", "vacuum"]);
    assert!(archive.ok(&["db", "check"]).contains("no problems found"));
}

#[test]
fn a_search_finds_the_part_that_has_it() {
    let archive = demo();
    let hits = |arguments: &[&str]| {
        archive.json(&[&["search"], arguments].concat()).as_array().unwrap().clone()
    };
    let document = archive.json(&["show", id(&archive.sessions()[0])]);
    // A word of a tool's output, a fragment with punctuation, the inside of a word, a phrase.
    for query in ["ttlSeconds", "e.storedAt > this.ttl", "orecastCac", "\"cache keeps missing\""] {
        let found = hits(&[query]);
        assert!(!found.is_empty(), "{query}");
        for hit in &found {
            let turn = &document["turns"]
                .as_array()
                .unwrap()
                .iter()
                .find(|turn| turn["number"] == hit["turn"])
                .unwrap();
            let text = match hit["kind"].as_str().unwrap() {
                "user" => turn["user"].to_string(),
                _ => turn["parts"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|part| part["id"] == hit["part"])
                    .unwrap()
                    .to_string(),
            };
            let bare = query.trim_matches('"').to_lowercase();
            assert!(text.to_lowercase().contains(&bare), "{query} in {text}");
            assert_eq!(hit["session"], document["session"]["id"]);
        }
    }
    assert!(
        hits(&["ttlSeconds", "--kind", "tool", "--tool", "Edit"])
            .iter()
            .all(|hit| hit["tool"] == "Edit")
    );
    assert!(hits(&["ttlSeconds", "--agent", "codex"]).is_empty());
    assert!(hits(&["ttlSeconds", "--until", "2000-01-01"]).is_empty());
    assert!(hits(&["xyzzyplugh"]).is_empty());
    let message = archive.fails(&["search", "xyzzyplugh"]);
    assert!(message.contains("Nothing found for the word “xyzzyplugh”."), "{message}");
    let message = archive.fails(&["search", "a", "--kind", "nonsense"]);
    assert!(message.contains("reasoning"), "{message}");
    let message = archive.fails(&["search", "a", "--state", "bogus"]);
    let states = "pending, running, completed, failed, denied, interrupted";
    assert_eq!(message, format!("unspool: unknown state “bogus”; choose one of {states}\n"));
    let message = archive.fails(&["search", "a", "--since", "sometime"]);
    assert!(message.contains("yesterday"), "{message}");
}

#[test]
fn without_an_archive_every_command_says_what_to_do() {
    let archive = Archive::new();
    for command in
        [&["list"][..], &["search", "x"], &["show", "abc"], &["db", "check"], &["tag", "x"]]
    {
        let message = archive.fails(command);
        assert!(message.contains("unspool sync"), "{command:?}: {message}");
    }
    let message = archive.fails(&["import", "no/such/file.jsonl"]);
    assert!(message.contains("does not exist"), "{message}");
    let message = archive.fails(&["import", "Cargo.toml"]);
    assert!(message.contains("Cargo.toml") && message.contains("import --help"), "{message}");
}

#[test]
fn a_file_that_fails_does_not_fail_the_rest() {
    // R-001-27: the failure is reported, and the rest is imported.
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("broken.jsonl"), "this is\nno log\n").unwrap();
    let log = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    std::fs::copy(log, folder.path().join("log.jsonl")).unwrap();
    let archive = Archive::new();
    let report = archive.json(&["import", folder.path().to_str().unwrap()]);
    assert_eq!(report["sessions"], 1);
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("broken.jsonl") && warnings.contains("unrecognised file format"),
        "{warnings}"
    );
    let again = archive.json(&["import", folder.path().to_str().unwrap()]);
    assert_eq!(again["unchanged_files"], 2);
}
