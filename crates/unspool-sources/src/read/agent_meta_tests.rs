use std::fs;

use super::*;
use crate::read::source::open;

fn text_of(path: &Path) -> String {
    let mut text = String::new();
    open(path).unwrap().text().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn it_says_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let agents = folder.path().join("s1/subagents");
    fs::create_dir_all(&agents).unwrap();
    let path = agents.join("agent-a1.meta.json");
    fs::write(&path, "{\n  \"toolUseId\": \"toolu_1\"\n}\n").unwrap();
    let line = |session: &str| {
        format!(
            "{{\"type\":\"agent-meta\",\"isSidechain\":true,\"agentId\":\"a1\",\
             \"sessionId\":\"{session}\",\"meta\":{{\"toolUseId\":\"toolu_1\"}}}}\n"
        )
    };
    // Without a log the folder names the session; afterwards the log does.
    assert_eq!(text_of(&path), line("s1"));
    let log = agents.join("agent-a1.jsonl");
    fs::write(&log, "{\"sessionId\":\"s2\"}\n{\"sessionId\":\"s3\"}\n").unwrap();
    assert_eq!(text_of(&path), line("s2"));
    assert_eq!(meta_of_log(&log), Some(path));
}

#[test]
fn what_is_something_else_stays_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent-a1.meta.json");
    fs::write(&path, "{\"toolUseId\":").unwrap();
    assert_eq!(text_of(&path), "{\"toolUseId\":");
    for name in ["agent-.meta.json", "a1.meta.json", "agent-a1.json", "agent-a1.jsonl"] {
        assert!(!is_agent_meta(&folder.path().join(name)), "{name}");
    }
    assert_eq!(meta_of_log(&folder.path().join("agent-a2.jsonl")), None);
    assert_eq!(meta_of_log(&path), None);
}
