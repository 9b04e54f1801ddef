#![allow(clippy::unwrap_used)]

use super::*;

const OLD: &str = "11111111-1111-4111-8111-111111111111";
const NEW: &str = "22222222-2222-4222-8222-222222222222";

/// A session that continues a compacted one repeats its tokens: both must not count them.
#[test]
fn the_line_has_the_tokens_of_the_session_that_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    let write = |id: &str, start: &str, tokens: u64| {
        std::fs::write(at(format!("{id}.jsonl")), format!("{start}\n")).unwrap();
        let settings = format!("{{\"tokenUsage\":{{\"inputTokens\":{tokens}}}}}");
        std::fs::write(at(format!("{id}.settings.json")), settings).unwrap();
    };
    write(OLD, r#"{"type":"session_start"}"#, 10);
    write(NEW, &format!(r#"{{"type":"session_start","parent":"{OLD}"}}"#), 15);
    let line = |id: &str| -> Value {
        let path = at(format!("{id}.settings.json"));
        let mut file = File::open(&path).unwrap();
        serde_json::from_slice(&text(&path, &mut file).unwrap().unwrap()).unwrap()
    };
    assert_eq!(line(OLD).get("inheritedUsage"), None);
    assert_eq!(line(NEW)["inheritedUsage"]["inputTokens"], 10);
    assert_eq!(line(NEW)["session"], NEW);
    // A fork counts from zero.
    let fork = format!(r#"{{"type":"session_start","parent":"{OLD}","forkedAtMessageId":"m"}}"#);
    write(NEW, &fork, 5);
    assert_eq!(line(NEW).get("continues"), None);
    assert_eq!(
        settings_of_log(&at(format!("{NEW}.jsonl"))),
        Some(at(format!("{NEW}.settings.json")))
    );
    assert!(!is_settings(Path::new("/h/.claude/local.settings.json")));
}
