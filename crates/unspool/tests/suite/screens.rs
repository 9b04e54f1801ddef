//! Screens of the terminal application as text, for recorded sessions at several sizes, compared
//! with golden files beside the recordings. UNSPOOL_BLESS=1 rewrites them; review the diff.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use unspool_model::change::Urgency;
use unspool_model::id::SessionId;
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::store::{SessionFilter, Store, View, Viewer};
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
fn test_harness(path: PathBuf, size: (u16, u16)) -> (TestHarness<Database>, TempDir) {
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

// R-X-14, R-003-45: a long session reads the same in both directions, with only part of it loaded.
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
        test_harness.press("\u{19}".repeat(12).as_str());
        test_harness.advance_time(Duration::from_millis(20));
        if test_harness.text() == before {
            break;
        }
    }
    up.dedup();
    let all: Vec<u32> = (0..60 * 40).rev().collect();
    assert_eq!(up, all, "upward");
    let all: Vec<u32> = (0..60 * 40).collect();
    assert_eq!(walk_down(&mut test_harness), all, "downward");
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

/// The steps from here to the end of the session, half a screen at a time.
fn walk_down(test_harness: &mut TestHarness<Database>) -> Vec<u32> {
    let mut down: Vec<u32> = Vec::new();
    let mut before = String::new();
    loop {
        let text = test_harness.text();
        down.extend(
            steps_in(&text).into_iter().filter(|step| !before.contains(&format!("step-{step} "))),
        );
        before = text;
        test_harness.press("\u{5}".repeat(12).as_str());
        test_harness.advance_time(Duration::from_millis(20));
        if test_harness.text() == before {
            break;
        }
    }
    down.dedup();
    down
}

// R-003-46, C-19: Ctrl-O shows all that the archive has, in order and once, with everything open.
#[test]
fn the_full_transcript_is_all_of_the_session_in_order() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("long.jsonl");
    fs::write(&path, long_log(20, 40)).unwrap();
    let (mut test_harness, _archive) = test_harness(path, (90, 30));
    test_harness.press("\n\x0f");
    assert!(test_harness.text().contains("── Turn 1 "), "{}", test_harness.text());
    let all: Vec<u32> = (0..20 * 40).collect();
    assert_eq!(walk_down(&mut test_harness), all);
    let case = root().join("fixtures/claude-code/discovery-loop");
    let (mut by_keys, _archive) = self::test_harness(case.clone(), (100, 60));
    let (mut at_once, _archive) = self::test_harness(case, (100, 60));
    by_keys.press("\n+g");
    at_once.press("\n\x0f");
    assert_eq!(at_once.text(), by_keys.text());
}

// R-000-25: a replay draws what the transcript draws, as far as it has come.
#[test]
fn a_replay_ends_as_the_transcript() {
    let case = root().join("fixtures/claude-code/discovery-loop");
    let (mut test_harness, _folder) = test_harness(case, (100, 40));
    test_harness.press("\n");
    let body = |text: String| text.lines().take(36).map(str::to_owned).collect::<Vec<_>>();
    let transcript = body(test_harness.text());
    test_harness.press("p ");
    test_harness.advance_time(Duration::from_millis(20));
    assert_ne!(body(test_harness.text()), transcript);
    for _ in 0..200 {
        test_harness.press(".");
    }
    // The timeline of the replay takes a line.
    let replay = body(test_harness.text()).join("\n");
    assert!(replay.contains(&transcript[3..33].join("\n")), "{replay}");
}

/// The session of the only log in an archive.
fn only_session(folder: &TempDir) -> SessionId {
    let store = Database::open_to_read(&folder.path().join("unspool.db")).unwrap();
    let sessions = block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap();
    sessions[0].summary.session.id
}

// R-003-23, C-20: a throttle with a trailing edge, not a debounce; changes of state do not wait.
#[test]
fn growing_text_is_read_ten_times_a_second_and_its_end_always() {
    const STEP: Duration = Duration::from_millis(5);
    let case = root().join("fixtures/claude-code/discovery-loop");
    let (mut test_harness, folder) = test_harness(case, (90, 30));
    let session = only_session(&folder);
    test_harness.press("\n");
    test_harness.advance_time(Duration::from_secs(1));
    test_harness.take_window_queries();
    let mut times: Vec<Duration> = Vec::new();
    for nth in 0..200 {
        test_harness.notify_write(session, Urgency::Text);
        test_harness.advance_time(STEP);
        let queries = test_harness.take_window_queries();
        times.extend((0..queries).map(|_| STEP * nth));
    }
    assert!((10..=11).contains(&times.len()), "it never starves: {times:?}");
    assert_eq!(times[0], Duration::ZERO, "the first delta does not wait");
    let far = times.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(95));
    assert!(far, "{times:?}");
    // The last delta came after the last refresh.
    test_harness.notify_write(session, Urgency::Text);
    test_harness.advance_time(Duration::from_millis(100));
    assert_eq!(test_harness.take_window_queries(), 1, "the last delta is shown");
    test_harness.advance_time(Duration::from_secs(2));
    assert_eq!(test_harness.take_window_queries(), 0);
    test_harness.notify_write(session, Urgency::Text);
    test_harness.notify_write(session, Urgency::State);
    test_harness.advance_time(Duration::from_millis(33));
    assert!(test_harness.take_window_queries() > 0, "a change of state");
}

// R-003-25: a header at once, a sign that it runs while it runs, and a footer afterwards.
#[test]
fn a_turn_has_a_header_at_once_and_a_footer_when_it_is_over() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log.jsonl");
    // A turn runs only if it was heard of lately.
    let begun = jiff::Timestamp::now().as_millisecond() - 5000;
    let clock = jiff::Timestamp::from_millisecond(begun + 1000).unwrap().strftime("%H:%M:%S");
    let expected = format!(" · {clock} · claude-opus-5-5 ─");
    let whole = log_since(begun, 1, 1);
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 4, "a prompt, a call, its result and a text");
    for (count, running) in [(2, true), (4, false)] {
        fs::write(&path, lines[..count].join("\n") + "\n").unwrap();
        let (mut test_harness, _archive) = test_harness(path.clone(), (100, 24));
        test_harness.press("\ng");
        let text = test_harness.text();
        let header = text.lines().find(|line| line.contains("── Turn 1 · user")).unwrap();
        assert!(header.contains(&expected), "{text}");
        assert_eq!(header.contains("running"), running, "{text}");
        assert_eq!(text.contains("◐ Bash"), running, "{text}");
        let footer = text.lines().position(|line| line.trim().ends_with("tokens"));
        assert_eq!(footer.is_some(), !running, "{text}");
        let last = text.lines().position(|line| line.contains("Turn 0 is done"));
        assert!(running || footer > last, "{text}");
    }
}

fn steps_in(text: &str) -> Vec<u32> {
    let words = text.split_whitespace().filter_map(|word| word.strip_prefix("step-"));
    words.filter_map(|word| word.parse().ok()).collect()
}

/// A log of `turns` turns with `calls` calls each, numbered consecutively.
fn long_log(turns: u32, calls: u32) -> String {
    log_since(1_780_000_000_000, turns, calls)
}

/// The same, from a time in milliseconds on, with a record for each second.
fn log_since(mut time: i64, turns: u32, calls: u32) -> String {
    let mut log = String::new();
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
