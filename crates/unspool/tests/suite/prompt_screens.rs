//! The terminal's screens of what model calls were sent: as text, compared with a golden file, and
//! in a pseudo-terminal, over the archive and over a connection.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use unspool_store::database::Database;
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;

use crate::case::root;
use crate::harness::{Machine, archive_of, recorded};
use crate::terminal::Terminal;
use crate::test_server::Server;

const CASE: &str = "claude-code/discovery-loop";

fn opened(size: (u16, u16), theme: Theme) -> (TestHarness<Database>, TempDir) {
    let (store, folder) = archive_of(&[root().join("fixtures").join(CASE)]);
    let mut test_harness = TestHarness::new(store, size, theme).unwrap();
    test_harness.press("\n");
    (test_harness, folder)
}

/// The lines of a screen that begin with a mark of a piece, without the cursor.
fn pieces(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim_start_matches('▎').trim());
    lines.filter(|line| line.starts_with(['▸', '▾'])).map(str::to_owned).collect()
}

#[test]
fn prompt_screens_match_their_golden() {
    let mut seen = String::new();
    for (width, height) in [(40, 12), (80, 24), (140, 45)] {
        let (mut test_harness, _folder) = opened((width, height), Theme::mocha());
        test_harness.press("gr");
        seen.push_str(&format!("== {width}×{height}, a prompt\n{}", test_harness.text()));
        test_harness.press("G\n");
        seen.push_str(&format!("== {width}×{height}, its last piece\n{}", test_harness.text()));
        test_harness.press("]=");
        seen.push_str(&format!("== {width}×{height}, what is new\n{}", test_harness.text()));
        test_harness.press("r");
        seen.push_str(&format!("== {width}×{height}, all calls\n{}", test_harness.text()));
    }
    let golden = root().join("crates/unspool/tests/prompts/screens.txt");
    if std::env::var_os("UNSPOOL_BLESS").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(&golden, &seen).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(seen, expected, "{}", golden.display());
}

#[test]
fn themes_of_a_prompt_differ_in_colours_only() {
    let draw = |theme| {
        let (mut test_harness, _folder) = opened((80, 24), theme);
        test_harness.press("gr");
        // The first line below the header is the bar: its kinds have colours of their own.
        let buffer = test_harness.draw();
        let mut colours = Vec::new();
        for x in 2..78 {
            let colour = buffer.cell((x, 1)).unwrap().fg;
            if !colours.contains(&colour) {
                colours.push(colour);
            }
        }
        (test_harness.text(), colours)
    };
    let (dark, dark_colours) = draw(Theme::mocha());
    let (light, light_colours) = draw(Theme::latte());
    assert_eq!(dark, light);
    assert!(dark_colours.len() > 2, "{dark_colours:?}\n{dark}");
    assert_eq!(dark_colours.len(), light_colours.len());
    assert_ne!(dark_colours, light_colours);
}

#[test]
fn a_prompt_is_walked_compared_and_searched() {
    let (mut test_harness, _folder) = opened((100, 60), Theme::mocha());
    // From the user's message: the first call of the turn.
    test_harness.press("gr");
    let text = test_harness.text();
    assert!(text.contains("prompt 1.1") && text.contains("call 1 of"), "{text}");
    assert!(text.contains("Tokens (shared out)") && text.contains('~'), "{text}");
    assert!(text.contains("Not in the log: the billing header"), "{text}");
    let all = pieces(&text).len();
    assert!(all > 10, "{text}");
    test_harness.press("[");
    assert!(test_harness.text().contains("this is the first model call"));
    test_harness.advance_time(Duration::from_secs(10));
    // What the next call added, and nothing else.
    test_harness.press("]=");
    let text = test_harness.text();
    assert!(text.contains("prompt 1.2") && text.contains("Only what is new"), "{text}");
    let new = pieces(&text);
    assert!(!new.is_empty() && new.len() < all, "{new:?}");
    assert!(new.iter().all(|piece| !piece.contains("system prompt")), "{new:?}");
    test_harness.press("=");
    // A text is found in the pieces that have it; exactly as it was sent.
    test_harness.press("/The forecast cache keeps missing\n");
    let text = test_harness.text();
    assert!(text.contains("/The forecast cache keeps missing 1 of"), "{text}");
    // Which calls had it? All of them, since it is what the user asked.
    test_harness.press("W");
    let text = test_harness.text();
    let sentence = text.lines().nth(1).unwrap_or_default().trim().to_owned();
    let (had, of) = sentence.split_once(" of ").unwrap();
    let all_calls = of.split(' ').next().unwrap();
    assert_eq!(had, all_calls, "{sentence}");
    // Of what a call gave back, the call that asked has nothing.
    test_harness.press("\u{1b}\u{1b}G");
    test_harness.press("W");
    let text = test_harness.text();
    let sentence = text.lines().nth(1).unwrap_or_default().trim().to_owned();
    let had: usize = sentence.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(had + 1, all_calls.parse::<usize>().unwrap(), "{sentence}");
    // One of them, and back to the session.
    test_harness.press("\n");
    assert!(test_harness.text().contains("prompt 1.2"), "{}", test_harness.text());
    test_harness.press("\u{1b}\u{1b}\u{1b}\u{1b}");
    assert!(test_harness.text().contains("[ ] prompts"), "{}", test_harness.text());
}

/// A recorded session of Codex in which the user said this.
fn codex(text: &str) -> (TestHarness<Database>, TempDir) {
    let folder = TempDir::new().unwrap();
    let recorded = String::from_utf8(recorded("codex/discovery-loop/log.jsonl")).unwrap();
    let said = "The forecast shows wrong Fahrenheit values. Find the cause and fix it.";
    assert!(recorded.contains(said));
    let quoted = serde_json::to_string(text).unwrap();
    let log = recorded.replace(said, quoted.trim_matches('"'));
    let path = folder.path().join("rollout.jsonl");
    fs::write(&path, log).unwrap();
    let (store, archive) = archive_of(&[path]);
    (TestHarness::new(store, (80, 24), Theme::mocha()).unwrap(), archive)
}

/// Goes down through an open piece until its text is on the screen.
fn scroll_to(test_harness: &mut TestHarness<Database>, wanted: &str) -> String {
    for _ in 0..1000 {
        let text = test_harness.text();
        if text.contains(wanted) {
            return text;
        }
        test_harness.press("j");
    }
    panic!("{wanted} never came:\n{}", test_harness.text());
}

// Law 8, law 10: what was sent is hostile and may be large; it is cut, and all of it can be opened.
#[test]
fn a_large_and_hostile_text_is_cut_and_opened() {
    let large = format!("\u{1b}[31mred \u{202e}begin\n{}the very end", "a line\n".repeat(3000));
    let (mut test_harness, _folder) = codex(&large);
    test_harness.press("\nr");
    let text = test_harness.text();
    assert!(text.contains("prompt 1.1"), "{text}");
    test_harness.press("Gg");
    let user = |text: &str| text.lines().any(|line| line.contains("▎ ▸ prompts"));
    for _ in 0..80 {
        if user(&test_harness.text()) {
            break;
        }
        test_harness.press("j");
    }
    assert!(user(&test_harness.text()), "{}", test_harness.text());
    test_harness.press("\n");
    let text = scroll_to(&mut test_harness, "more characters: enter");
    assert!(
        !text.contains("the very end") && !text.contains('\u{1b}') && !text.contains('\u{202e}')
    );
    test_harness.press("\n");
    let text = scroll_to(&mut test_harness, "the very end");
    assert!(!text.contains("more characters"), "{text}");
    test_harness.press("\n");
    assert!(!test_harness.text().contains("the very end"));
}

#[test]
fn an_agent_without_prompts_says_so_in_the_terminal() {
    let (store, _folder) = archive_of(&[root().join("fixtures/aider/discovery-loop")]);
    let mut test_harness = TestHarness::new(store, (80, 24), Theme::mocha()).unwrap();
    test_harness.press("\nr");
    let text = test_harness.text();
    assert!(text.contains("Nothing is known about the prompts"), "{text}");
    assert!(text.contains("[ ] prompts") || !text.contains("loading"), "{text}");
}

#[test]
fn prompts_are_shown_in_a_terminal_and_over_a_connection() {
    let machine = Machine::new();
    machine.put(&format!("{CASE}/log.jsonl"), ".claude/projects/-home-dev-weather-app/one.jsonl");
    let walk = |terminal: &mut Terminal| {
        terminal.shows("1 session");
        terminal.press("\r");
        terminal.shows("[ ] prompts");
        terminal.press("g");
        terminal.press("r");
        terminal.shows("prompt 1.1");
        terminal.shows("call 1 of");
        terminal.press("]");
        terminal.shows("prompt 1.2");
        terminal.press("r");
        terminal.shows("What each call was sent");
        terminal.press("q");
        terminal.shows("4 messages");
        terminal.press("q");
        terminal.shows("[ ] prompts");
    };
    walk(&mut Terminal::open(&machine, (80, 24), &[]));
    let mut command = machine.command("served", &["serve", "--port", "0"]);
    command.stderr(std::process::Stdio::null());
    let server = Server::begin_with(command).0;
    let address = format!("http://127.0.0.1:{}/?token={}", server.port, server.token);
    walk(&mut Terminal::open(&machine, (120, 30), &["--connect", &address]));
}
