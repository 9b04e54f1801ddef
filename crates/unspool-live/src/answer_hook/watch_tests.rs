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
fn the_call_is_the_oldest_open_one_with_this_input() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let folders = folders(folder.path());
    assert_eq!(find_call(&question(), "claude-code", &spool, &folders), None);
    for (event, call, command) in [
        ("PreToolUse", "t0", "ls"),
        ("PostToolUse", "t0", "ls"),
        ("PreToolUse", "t1", "pwd"),
        ("PreToolUse", "t2", "ls"),
        ("PreToolUse", "t3", "ls"),
    ] {
        append(&spool, &spooled(&payload(event, Some(call), command)));
    }
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
fn time_allows_nothing() {
    let file: SpoolFile = Box::new(|| PathBuf::from("/nowhere"));
    let mut watch = Watch::new(question(), file, None, Duration::ZERO);
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(watch.poll(), Some(QuestionEnd::Gone("nobody answered here")));
}
