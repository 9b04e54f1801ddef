#![allow(clippy::unwrap_used)]

use std::io::Read;

use super::*;

const SESSION: &str = "1794812399808_4mcfj";

fn text(path: &Path) -> String {
    let mut text = String::new();
    let file = Box::new(open_regular(path).unwrap());
    lines(path, file).read_to_string(&mut text).unwrap();
    text
}

/// Cline writes the whole document again, with the time of the write: the text made of it must stay
/// the same up to where it was.
#[test]
fn a_conversation_that_was_written_again_grows_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join(SESSION);
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join(format!("{SESSION}.messages.json"));
    let write = |time: &str, messages: &str| {
        let document = format!(
            "{{\n \"version\": 1,\n \"updated_at\": \"{time}\",\n \"agent\": \"lead\",\n \
             \"sessionId\": \"{SESSION}\",\n \"origin\": {{\"mode\": \"user\"}},\n \
             \"messages\": [{messages}],\n \"system_prompt\": \"p\"\n}}\n"
        );
        std::fs::write(&path, document).unwrap();
        text(&path)
    };
    let first = r#"{"id": "a", "role": "user", "content": [{"type": "text", "text": "t"}]}"#;
    let second = r#"{"id": "b", "role": "assistant", "content": []}"#;
    let empty = write("2026-11-16T07:00:00.000Z", "");
    let before = write("2026-11-16T07:00:01.000Z", first);
    let after = write("2026-11-16T07:00:02.000Z", &format!("{first},\n {second}"));
    assert_eq!(empty.lines().count(), 1);
    assert!(before.starts_with(&empty) && after.starts_with(&before), "{after}");
    assert_eq!(after.lines().count(), 3, "{after}");
    // Half a document, as a reader may find it: no line that is not complete.
    let whole = std::fs::read(&path).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(after.starts_with(&text(&path)), "{length}");
    }
}

#[test]
fn a_sub_agent_is_of_the_call_with_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join(SESSION);
    std::fs::create_dir(&folder).unwrap();
    let call = |id: &str| {
        format!(r#"{{"type":"tool_use","id":"{id}","name":"spawn_agent","input":{{"task":"t"}}}}"#)
    };
    let document = |mode: &str, message: &str| {
        format!(r#"{{"sessionId":"s","origin":{{{mode}}},"messages":[{{"id":"m",{message}}}]}}"#)
    };
    let calls = format!(r#""role":"assistant","content":[{},{}]"#, call("c1"), call("c2"));
    let parent = folder.join(format!("{SESSION}.messages.json"));
    std::fs::write(parent, document("", &calls)).unwrap();
    let task = r#""role":"user","content":[{"type":"text","text":"t"}]"#;
    for (name, expected) in [("agent_1_a", "c1"), ("agent_2_b", "c2")] {
        let path = folder.join(format!("{name}.messages.json"));
        let origin = format!(r#""parentThreadId":"{SESSION}""#);
        std::fs::write(&path, document(&origin, task)).unwrap();
        let text = text(&path);
        assert!(text.contains(&format!(r#""callId":"{expected}""#)), "{text}");
    }
}

/// R-X-02: a killed run writes no message that says so.
#[test]
fn a_run_that_was_cancelled_ends_its_open_turn() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join(SESSION);
    std::fs::create_dir(&folder).unwrap();
    let prompt = r#"{"id":"p","role":"user","content":[{"type":"text","text":"t"}]}"#;
    let call =
        r#"{"id":"a","role":"assistant","metrics":{},"content":[{"type":"tool_use","id":"c"}]}"#;
    let own = r#"{"id":"o","role":"user","metadata":{"userRunSpan":0},"content":[{"type":"text","text":"t"}]}"#;
    let reply = r#"{"id":"b","role":"assistant","metrics":{},"content":[]}"#;
    let cut = r#"{"id":"b","role":"assistant","content":[]}"#;
    let error = r#"{"id":"e","role":"assistant","content":[],"metadata":{"displayRole":"error"}}"#;
    let path = folder.join(format!("{SESSION}.json"));
    let end = |messages: &[&str], status: &str, metadata: &str| {
        let document = format!(r#"{{"sessionId":"s","messages":[{}]}}"#, messages.join(","));
        let conversation = folder.join(format!("{SESSION}.messages.json"));
        std::fs::write(conversation, document).unwrap();
        let manifest = format!(
            r#"{{"session_id":"{SESSION}","status":"{status}","ended_at":"t","metadata":{{{metadata}}}}}"#
        );
        std::fs::write(&path, manifest).unwrap();
        let line: Value = serde_json::from_str(&text(&path)).unwrap();
        line.get("end").map(|end| (end["status"].clone(), end["prompt"].clone()))
    };
    let open = |status: &str| Some((status.into(), "p".into()));
    assert_eq!(end(&[prompt, call], "cancelled", ""), open("cancelled"));
    assert_eq!(end(&[prompt, call, own], "failed", ""), open("failed"));
    assert_eq!(end(&[prompt, cut], "failed", ""), open("failed"));
    // The conversation says how the turn ended, or the run goes on.
    for messages in [&[prompt, reply][..], &[prompt, call, error], &[prompt, cut, error]] {
        assert_eq!(end(messages, "cancelled", ""), None, "{messages:?}");
    }
    for status in ["running", "idle", "completed"] {
        assert_eq!(end(&[prompt, call], status, ""), None, "{status}");
    }
    // Cline looked for the process of an earlier run.
    assert_eq!(end(&[prompt, call], "failed", r#""terminal_marker":"x""#), None);
}
