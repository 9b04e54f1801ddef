//! `unspool import --agents`: imports a table of agents, by their logs or by prompt and result.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::case::root;

struct Sandbox {
    folder: TempDir,
    database: PathBuf,
}

impl Sandbox {
    fn new(script: &str) -> Sandbox {
        let folder = TempDir::new().unwrap();
        let database = folder.path().join("app.db");
        Connection::open(&database).unwrap().execute_batch(script).unwrap();
        Sandbox { folder, database }
    }

    fn change(&self, script: &str) {
        Connection::open(&self.database).unwrap().execute_batch(script).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_unspool"))
            .arg("--data")
            .arg(self.folder.path().join("data"))
            .args(arguments)
            .output()
            .unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn import(&self) -> Value {
        self.json(&["import", "--agents", self.database.to_str().unwrap()])
    }

    fn session(&self, id: &str) -> Value {
        let list = self.json(&["list"]);
        let mut sessions = list.as_array().unwrap().iter();
        sessions.find(|session| session["agent_session_id"] == *id).cloned().unwrap_or_default()
    }
}

fn log() -> PathBuf {
    root().join("fixtures/claude-code/discovery-loop/log.jsonl")
}

fn table(log: &Path) -> String {
    format!(
        "CREATE TABLE agents (id TEXT PRIMARY KEY, prompt TEXT, result TEXT, log_path TEXT,
             tokens INTEGER, tool_calls_count INTEGER, status TEXT, type TEXT, created_at TEXT);
         INSERT INTO agents VALUES
             ('with-log', 'Find it', 'Found.', '{}', 10, 3, 'completed', 'explore',
              '2026-03-01 10:00:00'),
             ('without', 'Name a bird', 'A turnstone.', NULL, 12, 0, 'completed', 'chat',
              '2026-03-01 10:01:00'),
             ('gone', 'Where?', 'Nowhere.', 'logs/gone.jsonl', 1, 0, 'failed', NULL, NULL),
             ('running', 'Wait', NULL, '', NULL, NULL, 'running', NULL, NULL),
             ('nothing', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);",
        log.display()
    )
}

#[test]
fn agents_are_read_by_their_logs_or_by_prompt_and_result() {
    // R-001-12, R-001-27
    let sandbox = Sandbox::new(&table(&log()));
    let report = sandbox.import();
    let counts = ["agents", "with_log", "final_only", "sessions"].map(|name| report[name].clone());
    assert_eq!(counts.map(|count| count.as_u64().unwrap()), [5, 1, 3, 4]);
    // A missing log is reported and does not fail the import.
    let message = report["warnings"].to_string();
    assert!(message.contains("the log of agent gone does not exist"), "{message}");
    let short = sandbox.session("without");
    assert_eq!((&short["agent"], &short["completeness"]), (&"rows".into(), &"final-only".into()));
    let document = sandbox.json(&["show", short["id"].as_str().unwrap()]);
    let turn = &document["turns"][0];
    assert_eq!(turn["user"][0]["text"], "Name a bird");
    assert_eq!(turn["parts"][0]["text"], "A turnstone.");
    assert_eq!(turn["state"], "completed");
    // Other columns are kept.
    assert!(turn["parts"].to_string().contains("agent_type"), "{turn}");
    assert_eq!(sandbox.json(&["show", "gone"])["turns"][0]["state"], "failed");
    let full = sandbox.json(&["list"]);
    let full = full.as_array().unwrap().iter().find(|one| one["agent"] == "claude-code").unwrap();
    assert_eq!(full["completeness"], "full");
}

#[test]
fn a_table_can_be_read_again() {
    // R-001-29: nothing is imported twice, and new rows are added.
    let sandbox = Sandbox::new(&table(&log()));
    sandbox.import();
    let before = sandbox.json(&["list"]);
    let again = sandbox.import();
    for count in ["sessions", "turns", "parts", "records"] {
        assert_eq!(again[count], 0, "{count}: {again}");
    }
    assert_eq!(sandbox.json(&["list"]), before);
    sandbox.change("UPDATE agents SET result = 'Done.', status = 'completed' WHERE id = 'running'");
    let report = sandbox.import();
    assert_eq!(report["sessions"], 1, "{report}");
    let turns = &sandbox.json(&["show", "running"])["turns"];
    assert_eq!(turns.as_array().unwrap().len(), 1);
    assert_eq!(turns[0]["parts"][0]["text"], "Done.");
    assert_eq!(sandbox.json(&["list"]).as_array().unwrap().len(), before.as_array().unwrap().len());
    let checked = sandbox.run(&["db", "check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn columns_of_a_run_become_what_they_are() {
    // R-001-12, R-001-07: tokens, the system prompt, the structured result and the groups.
    let sandbox = Sandbox::new(
        "CREATE TABLE agents (id TEXT, prompt TEXT, result TEXT, system_prompt TEXT, tokens INTEGER,
             duration_ms INTEGER, result_structured TEXT, execution_id TEXT, phase_id INTEGER,
             created_at TEXT, color TEXT);
         INSERT INTO agents VALUES
             ('one', 'Count', 'Three.', 'You are terse.', 42, 1500, '{\"count\":3}', 'exec-9', 2,
              '2026-03-01 10:00:00', 'red'),
             ('two', 'Count', 'Error: out of fingers', 'You are terse.', NULL, NULL, NULL, NULL,
              NULL, NULL, NULL);",
    );
    sandbox.import();
    let session = sandbox.session("one");
    assert_eq!(session["usage"]["input"], 42);
    assert_eq!(session["ended_at"], "2026-03-01T10:00:01.500Z");
    let turn = &sandbox.json(&["show", "one"])["turns"][0];
    let data = |kind: &str| -> &Value {
        let mut parts = turn["parts"].as_array().unwrap().iter();
        &parts.find(|part| part["data_kind"] == *kind).unwrap()["payload"]
    };
    assert_eq!(*data("result"), serde_json::json!({ "count": 3 }));
    let groups = serde_json::json!({ "execution_id": "exec-9", "phase_id": 2 });
    assert_eq!(*data("execution"), groups);
    assert_eq!(*data("row"), serde_json::json!({ "color": "red" }), "only what has no place");
    // The system prompt is kept once, and each run refers to it.
    let stored: Vec<String> = ["one", "two"]
        .map(|id| {
            let output = sandbox.run(&["export", id, "--to", "jsonl"]);
            String::from_utf8(output.stdout).unwrap()
        })
        .to_vec();
    assert!(stored.iter().all(|lines| lines.contains("You are terse.")), "{stored:?}");
    let flow = sandbox.run(&["export", "one", "--to", "thoughtflow"]);
    assert!(String::from_utf8_lossy(&flow.stdout).contains("policy.snapshot"), "{flow:?}");
    // R-004-18: old data says that a reply is an error only with these words.
    let failed = &sandbox.json(&["show", "two"])["turns"][0];
    assert_eq!(failed["state"], "failed");
    let parts = failed["parts"].as_array().unwrap();
    assert_eq!((&parts[0]["kind"], &parts[0]["text"]), (&"error".into(), &"out of fingers".into()));
    assert_eq!(sandbox.session("two")["errors"], 1);
}

#[test]
fn old_replies_that_begin_with_error_are_errors() {
    // R-004-16, R-004-18
    let sandbox = Sandbox::new("CREATE TABLE notes (text TEXT);");
    let rows = sandbox.folder.path().join("rows.jsonl");
    let old = [
        r#"{"session":"old","role":"user","text":"go"}"#,
        r#"{"session":"old","role":"assistant","text":"Error: no connection"}"#,
        r#"{"session":"old","role":"user","text":"what is it?"}"#,
        r#"{"session":"old","role":"assistant","text":"Error: is a word.","is_error":false}"#,
        r#"{"session":"old","role":"user","text":"and now?"}"#,
        r#"{"session":"old","role":"assistant","text":"The quota is used up.","is_error":true}"#,
    ];
    std::fs::write(&rows, old.join("\n") + "\n").unwrap();
    let turns = &sandbox.json(&["show", rows.to_str().unwrap()])["turns"];
    let found: Vec<Value> = turns
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| {
            let parts = turn["parts"].as_array().unwrap();
            assert_eq!(parts.len(), 1, "{turn}");
            serde_json::json!([turn["state"], parts[0]["kind"], parts[0]["text"]])
        })
        .collect();
    let expected = serde_json::json!([
        ["failed", "error", "no connection"],
        ["completed", "text", "Error: is a word."],
        ["failed", "error", "The quota is used up."]
    ]);
    assert_eq!(serde_json::json!(found), expected);
}

#[test]
fn numbers_as_ids_and_other_names_of_columns_will_do() {
    let sandbox = Sandbox::new(
        "CREATE TABLE notes (text TEXT);
         CREATE TABLE Runs (Agent_Id INTEGER, Prompt TEXT, Output TEXT, Started_At INTEGER);
         INSERT INTO Runs VALUES (7, 'Go', 'Went.', 1772359200);",
    );
    assert_eq!(sandbox.import()["final_only"], 1);
    let session = sandbox.session("app-7");
    assert_eq!(session["completeness"], "final-only");
    assert_eq!(session["started_at"], "2026-03-01T10:00:00.000Z");
}

#[test]
fn a_database_without_an_agents_table_is_refused_with_a_next_step() {
    let fails = |sandbox: &Sandbox, path: &Path| {
        let output = sandbox.run(&["import", "--agents", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let sandbox = Sandbox::new("CREATE TABLE notes (text TEXT);");
    let message = fails(&sandbox, &sandbox.database);
    assert!(message.contains("no table of agents") && message.contains("notes"), "{message}");
    assert!(message.contains("unspool import --help"), "{message}");
    let text = sandbox.folder.path().join("text.db");
    std::fs::write(&text, "this is no database, however long it may be").unwrap();
    let message = fails(&sandbox, &text);
    assert!(message.contains("SQLite database"), "{message}");
    let message = fails(&sandbox, &sandbox.folder.path().join("none.db"));
    assert!(message.contains("does not exist"), "{message}");
}

#[test]
fn the_database_is_only_read() {
    // Law 7
    let sandbox = Sandbox::new(&table(&log()));
    let before = std::fs::read(&sandbox.database).unwrap();
    sandbox.import();
    assert_eq!(std::fs::read(&sandbox.database).unwrap(), before);
    let entries = sandbox.folder.path().read_dir().unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn the_calls_that_an_application_counts_are_the_figure() {
    // R-001-12: an agent without a log has no calls to list; its table says how many it made.
    let sandbox = Sandbox::new(
        "CREATE TABLE agents (id TEXT, prompt TEXT, result TEXT, tool_calls_count INTEGER);
         INSERT INTO agents VALUES ('some', 'Count', NULL, 2), ('none', 'Count', 'One.', 0);",
    );
    sandbox.import();
    let calls = |id: &str| sandbox.session(id)["tools"].clone();
    assert_eq!((calls("some"), calls("none")), (2.into(), 0.into()));
    sandbox.change("UPDATE agents SET tool_calls_count = 7, result = 'Two.' WHERE id = 'some'");
    sandbox.import();
    assert_eq!(calls("some"), 7, "the newest figure, not the sum of both");
    let archive = Connection::open(sandbox.folder.path().join("data/unspool.db")).unwrap();
    let counted = "SELECT sum(tool_calls_count) FROM run";
    assert_eq!(archive.query_row(counted, [], |row| row.get::<_, i64>(0)).unwrap(), 7);
    drop(archive);
    let checked = sandbox.run(&["db", "check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let document = sandbox.json(&["show", "some"]);
    assert_eq!(document["session"]["tools"], 7);
}
