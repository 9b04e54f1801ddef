//! Screens of the terminal application as text, for recorded sessions at several sizes, compared
//! with golden files beside the recordings. UNSPOOL_BLESS=1 rewrites them; review the diff.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use unspool_store::sqlite::Sqlite;
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;

use crate::case::root;
use crate::harness::archive_of;

const CASES: &[&str] = &[
    "claude-code/discovery-loop",
    "claude-code/subagents-parallel-and-background",
    "claude-code/question-answered",
    "claude-code/odd-output",
    "claude-code/compaction-and-resume",
    "claude-code/interrupted-mid-tool",
    "codex/exec-discovery-with-hooks",
];
const SIZES: [(u16, u16); 3] = [(40, 10), (80, 24), (140, 45)];

/// The application over an archive of one recording.
fn test_harness(path: PathBuf, size: (u16, u16)) -> (TestHarness<Sqlite>, TempDir) {
    let (store, folder) = archive_of(&[path]);
    (TestHarness::new(store, size, Theme::named("mocha").unwrap()).unwrap(), folder)
}

#[test]
fn screens_match_their_goldens() {
    let bless = std::env::var_os("UNSPOOL_BLESS").is_some();
    for case in CASES {
        let path = root().join("fixtures").join(case);
        let (mut test_harness, _folder) = test_harness(path.clone(), SIZES[0]);
        test_harness.press("\n");
        let mut seen = String::new();
        for (width, height) in SIZES {
            test_harness.resize(width, height);
            test_harness.press("g");
            seen.push_str(&format!("== {width}×{height}, the start\n{}", test_harness.text()));
            test_harness.press("G");
            seen.push_str(&format!("== {width}×{height}, the end\n{}", test_harness.text()));
        }
        test_harness.press("+g");
        seen.push_str(&format!("== everything open\n{}", test_harness.text()));
        let golden = path.join("screens.txt");
        if bless {
            fs::write(&golden, &seen).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(seen, expected, "{}", golden.display());
    }
}

// R-X-14: a long session reads the same in both directions, with only part of it loaded.
#[test]
fn walking_through_a_long_session_shows_all_of_it_in_order() {
    let log = long_log(60, 40);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("long.jsonl");
    fs::write(&path, log).unwrap();
    let (mut test_harness, _archive) = test_harness(path, (90, 30));
    test_harness.press("\n");
    // From the end to the start, half a screen at a time, collecting the steps seen.
    let mut up: Vec<u32> = Vec::new();
    let mut before = String::new();
    loop {
        let text = test_harness.text();
        up.extend(
            steps_in(&text)
                .into_iter()
                .rev()
                .filter(|step| !before.contains(&format!("step-{step} "))),
        );
        before = text;
        test_harness.press("K".repeat(12).as_str());
        test_harness.advance_time(Duration::from_millis(20));
        if test_harness.text() == before {
            break;
        }
    }
    up.dedup();
    let all: Vec<u32> = (0..60 * 40).rev().collect();
    assert_eq!(up, all, "upward");
    let mut down: Vec<u32> = Vec::new();
    before = String::new();
    loop {
        let text = test_harness.text();
        down.extend(
            steps_in(&text).into_iter().filter(|step| !before.contains(&format!("step-{step} "))),
        );
        before = text;
        test_harness.press("J".repeat(12).as_str());
        test_harness.advance_time(Duration::from_millis(20));
        if test_harness.text() == before {
            break;
        }
    }
    down.dedup();
    let all: Vec<u32> = (0..60 * 40).collect();
    assert_eq!(down, all, "downward");
    // Jump by prompts in both directions, beyond the loaded window.
    test_harness.press("g");
    for turn in 1..=60 {
        test_harness.press("]");
        let head = format!("── Turn {turn} ");
        assert!(
            test_harness.text().lines().take(4).any(|line| line.contains(&head)),
            "{turn}:\n{}",
            test_harness.text()
        );
    }
    for turn in (1..60).rev() {
        test_harness.press("[");
        let head = format!("── Turn {turn} ");
        assert!(
            test_harness.text().lines().take(4).any(|line| line.contains(&head)),
            "{turn}:\n{}",
            test_harness.text()
        );
    }
}

fn steps_in(text: &str) -> Vec<u32> {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix("step-"));
    words.filter_map(|word| word.parse().ok()).collect()
}

/// A log of `turns` turns with `calls` calls each, numbered consecutively.
fn long_log(turns: u32, calls: u32) -> String {
    let mut log = String::new();
    let mut time = 1_780_000_000_000_i64;
    let mut number = 0;
    let mut parent = serde_json::Value::Null;
    let mut write = |kind: &str, message: serde_json::Value| {
        time += 1000;
        number += 1;
        let at = jiff::Timestamp::from_millisecond(time).unwrap().to_string();
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let line = serde_json::json!({
            "type": kind, "uuid": id, "parentUuid": parent, "sessionId": "11111111-0000-4000-8000-000000000000",
            "timestamp": at, "cwd": "/home/dev/long", "version": "2.1.325", "isSidechain": false,
            "userType": "external", "message": message,
        });
        parent = serde_json::Value::String(id);
        log.push_str(&line.to_string());
        log.push('\n');
    };
    for turn in 0..turns {
        write("user", serde_json::json!({ "role": "user", "content": format!("Prompt {turn}") }));
        for call in 0..calls {
            let nth = turn * calls + call;
            let id = format!("toolu_{nth}");
            write(
                "assistant",
                serde_json::json!({
                    "id": format!("msg_{nth}"), "role": "assistant", "model": "claude-opus-5-5", "type": "message",
                    "content": [{ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": format!("step-{nth} now") } }],
                    "stop_reason": "tool_use", "usage": { "input_tokens": 1, "output_tokens": 1 },
                }),
            );
            write(
                "user",
                serde_json::json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": id, "content": "ok" },
            ] }),
            );
        }
        write(
            "assistant",
            serde_json::json!({
                "id": format!("msg_end_{turn}"), "role": "assistant", "model": "claude-opus-5-5", "type": "message",
                "content": [{ "type": "text", "text": format!("Turn {turn} is done") }],
                "stop_reason": "end_turn", "usage": { "input_tokens": 1, "output_tokens": 1 },
            }),
        );
    }
    log
}
