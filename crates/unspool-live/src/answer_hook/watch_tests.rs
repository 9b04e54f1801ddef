use std::fs::OpenOptions;
use std::io::Write;

use serde_json::json;

use super::*;

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn payload(event: &str, call: Option<&str>, command: &str) -> Value {
    json!({"session_id": "s", "hook_event_name": event, "tool_name": "Bash",
        "tool_input": {"command": command}, "tool_use_id": call})
}

fn spooled(payload: &Value) -> String {
    format!("{}\n", json!({"agent": "claude-code", "event": "", "at": "", "payload": payload}))
}

fn question() -> HookQuestion {
    HookQuestion::of_payload(&payload("PermissionRequest", None, "ls").to_string()).unwrap()
}

fn folders(path: &Path) -> ChatFolders {
    let chats = path.join("chats");
    ChatFolders { chats, captures: path.join("streams"), processes: path.join("processes") }
}

#[test]
fn only_whole_new_lines_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    append(&path, "old\n");
    let mut file = GrowingFile::at_end(path.clone());
    assert!(file.new_lines().is_empty());
    append(&path, "one\ntw");
    assert_eq!(file.new_lines(), [b"one"]);
    append(&path, "o\n");
    assert_eq!(file.new_lines(), [b"two"]);
    std::fs::write(&path, "").unwrap();
    assert!(file.new_lines().is_empty());
    append(&path, "new\n");
    assert_eq!(file.new_lines(), [b"new"]);
}

#[test]
fn the_call_is_the_one_of_the_last_request() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let folders = folders(folder.path());
    assert_eq!(find_call(&question(), "claude-code", &spool, &folders), None);
    for (event, call, command) in [
        ("PreToolUse", "t0", "ls"),
        ("PostToolUse", "t0", "ls"),
        // Refused: nothing more is reported about it.
        ("PreToolUse", "t1", "ls"),
        ("PermissionRequest", "", "ls"),
        ("PreToolUse", "other", "pwd"),
        ("PreToolUse", "t2", "ls"),
        ("PreToolUse", "t3", "ls"),
        ("PermissionRequest", "", "ls"),
    ] {
        let call = Some(call).filter(|call| !call.is_empty());
        append(&spool, &spooled(&payload(event, call, command)));
    }
    let mut earlier = payload("PreToolUse", Some("t9"), "ls");
    earlier["prompt_id"] = "earlier".into();
    append(&spool, &spooled(&earlier));
    let found = || find_call(&question(), "claude-code", &spool, &folders);
    assert_eq!(found().as_deref(), Some("t2"));
    // Another hook waits for the answer about that one.
    let taken = HookQuestion { call: Some("t2".to_owned()), ..question() };
    let state = crate::protocol::ChatState {
        answers_only: true,
        agent: "claude-code".to_owned(),
        session: Some("s".to_owned()),
        questions: vec![taken.open(0)],
        ..Default::default()
    };
    let stored = crate::host::folder::StoredChat { state, ..Default::default() };
    folders.create().unwrap().write(&stored).unwrap();
    append(&spool, &spooled(&payload("PermissionRequest", None, "ls")));
    assert_eq!(found().as_deref(), Some("t3"));
}

#[test]
fn a_question_ends_when_the_spool_or_the_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, log) = (folder.path().join("spool"), folder.path().join("log"));
    let question =
        HookQuestion { call: Some("t1".to_owned()), log: Some(log.clone()), ..question() };
    let watch = || {
        let spool = spool.clone();
        let file: SpoolFile = Box::new(move || spool.clone());
        Watch::new(question.clone(), file, None, Duration::from_secs(60))
    };
    let mut first = watch();
    assert_eq!(first.poll(), None);
    append(&spool, &spooled(&payload("PostToolUse", Some("t9"), "ls")));
    assert_eq!(first.poll(), None);
    append(&spool, &spooled(&payload("PostToolUse", Some("t1"), "ls")));
    assert_eq!(first.poll(), Some(QuestionEnd::Answered("allowed")));
    // Only what comes later counts.
    let mut second = watch();
    assert_eq!(second.poll(), None);
    let result = json!({"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}});
    append(&log, &format!("{result}\n"));
    assert_eq!(second.poll(), Some(QuestionEnd::Answered("allowed")));
}

#[test]
fn the_agent_says_that_its_dialog_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let agent = crate::host::process::identify(std::process::id());
    let status = folder.path().join("sessions").join(format!("{}.json", agent.group));
    std::fs::create_dir(status.parent().unwrap()).unwrap();
    let log = folder.path().join("projects/-w/s.jsonl");
    let question = HookQuestion { log: Some(log), ..question() };
    let file: SpoolFile = Box::new(|| PathBuf::from("/nowhere"));
    let mut watch = Watch::new(question, file, Some(agent), Duration::from_secs(60));
    let mut says = |text: &str| {
        std::fs::write(&status, text).unwrap();
        watch.poll()
    };
    // What it did before the dialog, and a file that is being written, say nothing.
    assert_eq!(says(r#"{"status": "busy"}"#), None);
    assert_eq!(says(r#"{"status": "busy"}"#), None);
    assert_eq!(says(r#"{"status": "waiting"}"#), None);
    assert_eq!(says(r#"{"status": "busy"}"#), None);
    assert_eq!(says(r#"{"status": "waiting"}"#), None);
    assert_eq!(says(""), None);
    assert_eq!(says(r#"{"status": "busy"}"#), None);
    assert_eq!(says(r#"{"status": "busy"}"#), Some(QuestionEnd::Answered("answered")));
}

#[test]
fn time_allows_nothing() {
    let file: SpoolFile = Box::new(|| PathBuf::from("/nowhere"));
    let mut watch = Watch::new(question(), file, None, Duration::ZERO);
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(watch.poll(), Some(QuestionEnd::Gone("nobody answered here")));
}
