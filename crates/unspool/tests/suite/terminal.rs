//! The terminal application in a pseudo-terminal: the real program, real key presses, and the
//! screen as a user sees it.

use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use unspool_query::reader::Query;
use unspool_query::request::Request;
use unspool_tui::app::{self, AppOptions};
use unspool_tui::backend::{Backend, QueryId};
use unspool_tui::keys::Keys;
use unspool_tui::theme::Theme;

use crate::harness::{Machine, lines, recorded};
use crate::pty::Pty;
use crate::test_server::Server;

const PROJECT: &str = ".claude/projects/-home-dev-weather-app";
const LOOP: &str = "claude-code/discovery-loop/log.jsonl";
/// The longest wait for anything, on any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// The program in its own pseudo-terminal.
pub struct Terminal(pub Pty);

impl Terminal {
    pub fn open(machine: &Machine, size: (u16, u16), arguments: &[&str]) -> Terminal {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_unspool"));
        command.arg("--data");
        command.arg(machine.data("archive"));
        command.args(arguments);
        Terminal::with(machine, size, command, &[])
    }

    pub fn with(
        machine: &Machine,
        size: (u16, u16),
        mut command: CommandBuilder,
        variables: &[(&str, &str)],
    ) -> Terminal {
        command.env_clear();
        variables.iter().for_each(|(name, value)| command.env(name, value));
        command.env("HOME", machine.home());
        command.env("PATH", "/usr/bin:/bin");
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.cwd(machine.home());
        Terminal(Pty::open(command, size))
    }

    fn take(&mut self, wait: Duration) {
        // On a timeout the current screen is checked again.
        let _ = self.0.take(wait);
    }

    /// The visible text of the screen.
    pub fn text(&self) -> String {
        let rows = self.0.screen.screen().contents();
        rows.lines().map(|row| format!("{}\n", row.trim_end())).collect()
    }

    /// Waits until the screen satisfies `is`.
    #[track_caller]
    pub fn until(&mut self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let text = self.text();
            if is(&text) {
                return text;
            }
            assert!(begun.elapsed() < DEADLINE, "{what} never came:\n{text}");
            self.take(Duration::from_millis(20));
        }
    }

    #[track_caller]
    pub fn shows(&mut self, what: &str) -> String {
        self.until(what, |text| text.contains(what))
    }

    #[track_caller]
    pub fn hides(&mut self, what: &str) -> String {
        self.until(&format!("the end of {what}"), |text| !text.contains(what))
    }

    pub fn press(&mut self, keys: &str) {
        self.0.press(keys);
    }

    /// Moves the cursor down until it is on a block that contains `what`.
    #[track_caller]
    pub fn moves_to(&mut self, what: &str) {
        let cursor = |text: &str| {
            let rows = text.lines().filter(|row| row.starts_with('▎'));
            rows.map(|row| format!("{row}\n")).collect::<String>()
        };
        let mut at = cursor(&self.text());
        while !at.contains(what) {
            self.press("j");
            at = cursor(&self.until("the next block", |text| {
                let next = cursor(text);
                !next.is_empty() && next != at
            }));
        }
    }

    /// Waits until the program exits. Returns its exit code.
    #[track_caller]
    pub fn ends(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            self.take(Duration::from_millis(20));
            if let Some(status) = self.0.child.try_wait().unwrap() {
                // The last output may arrive in several chunks.
                while self.0.take(Duration::from_secs(2)).is_ok() {}
                return status.exit_code();
            }
            assert!(begun.elapsed() < DEADLINE, "it goes on:\n{}", self.text());
        }
    }

    /// Asserts that the terminal is restored: main screen, cursor, no mouse, no bracketed paste.
    #[track_caller]
    fn assert_restored(&self) {
        let screen = self.0.screen.screen();
        assert!(!screen.alternate_screen(), "the alternate screen");
        assert!(!screen.hide_cursor(), "the cursor");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert!(!screen.bracketed_paste(), "pasting in brackets");
    }
}

const ENTER: &str = "\r";
const ESC: &str = "\x1b";

fn machine(logs: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    for (fixture, name) in logs {
        machine.put(fixture, &format!("{PROJECT}/{name}.jsonl"));
    }
    machine
}

// List, open, scroll.
#[test]
fn a_session_is_listed_opened_and_scrolled() {
    let machine = machine(&[(LOOP, "one"), ("claude-code/question-answered/log.jsonl", "two")]);
    let mut terminal = Terminal::open(&machine, (100, 30), &[]);
    let list = terminal.shows("2 sessions");
    assert!(list.contains("weather-app"), "{list}");
    terminal.press("/forecast");
    terminal.press(ENTER);
    terminal.shows("/forecast");
    terminal.press(ENTER);
    let end = terminal
        .until("the end of the session", |text| text.contains("tokens") && text.contains("[OK]"));
    assert!(!end.contains("── Turn 1"), "it opens at its end:\n{end}");
    terminal.press("g");
    terminal.shows("── Turn 1");
    terminal.press("G");
    terminal.hides("── Turn 1");
    // `q` goes back, and from the list out.
    terminal.press("q");
    terminal.shows("2 sessions");
    terminal.press("q");
    assert_eq!(terminal.ends(), 0);
    terminal.assert_restored();
}

/// Writes the first half of a log. Returns its path and the lines that are left.
pub fn half_written<'a>(machine: &Machine, log: &'a [u8]) -> (String, Vec<&'a [u8]>) {
    let mut all = lines(log);
    let later = all.split_off(all.len() / 2);
    let path = format!("{PROJECT}/growing.jsonl");
    all.iter().for_each(|line| machine.append(&path, line));
    (path, later)
}

#[test]
fn the_preview_of_the_list_follows_its_session() {
    let (machine, log) = (Machine::new(), recorded(LOOP));
    let (path, later) = half_written(&machine, &log);
    let mut terminal = Terminal::open(&machine, (160, 40), &[]);
    let before = terminal.shows("Redacted reasoning");
    assert!(!before.contains("Tests: 2 passed"), "{before}");
    // Nothing is pressed: the preview reads what the agent writes.
    later.iter().for_each(|line| machine.append(&path, line));
    terminal.shows("Tests: 2 passed");
    terminal.hides("Redacted reasoning");
}

#[test]
fn j_and_k_open_the_next_session_and_the_list_stays_beside_it() {
    let other = "claude-code/permission-allowed/log.jsonl";
    let machine = machine(&[(LOOP, "loop"), (other, "other")]);
    let mut terminal = Terminal::open(&machine, (160, 40), &[]);
    terminal.shows("2 sessions");
    terminal.press(ENTER);
    let first = terminal.until("the list beside the session", |text| {
        text.contains("enter open  [ ] prompts")
            && text.contains("The forecast cache keeps missing,")
    });
    let head = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    terminal.press("J");
    let second = terminal.until("the next session", |text| head(text) != head(&first));
    terminal.press("J");
    terminal.shows("this is the last session in the list");
    terminal.press("K");
    terminal.until("the first session again", |text| head(text) == head(&first));
    terminal.press("w");
    terminal.until("no list", |text| !text.lines().nth(5).unwrap_or_default().contains('│'));
    assert_ne!(head(&first), head(&second));
    // A narrow terminal has no room for it, and the keys work.
    terminal.press("w");
    terminal.0.resize(80, 24);
    terminal.until("no list", |text| !text.lines().nth(5).unwrap_or_default().contains('│'));
}

#[test]
fn a_log_that_grows_is_followed_and_nobody_is_moved() {
    let (machine, log) = (Machine::new(), recorded(LOOP));
    let (path, later) = half_written(&machine, &log);
    let mut terminal = Terminal::open(&machine, (90, 14), &[]);
    terminal.shows("1 session");
    terminal.press(ENTER);
    let before = terminal.shows("Redacted reasoning");
    assert!(!before.contains("this text does not exist"), "{before}");
    // At the end: new content scrolls into view.
    let (next, last) = later.split_at(later.len() / 2);
    next.iter().for_each(|line| machine.append(&path, line));
    let followed = terminal.shows("this text does not exist");
    assert!(!followed.contains("new part"), "{followed}");
    // Scrolled away: nothing moves, and new parts are counted.
    terminal.press("g");
    terminal.shows("session ");
    let start = terminal.text();
    last.iter().for_each(|line| machine.append(&path, line));
    let counted = terminal.shows("new part");
    let body = |text: &str| text.lines().take(10).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&counted)[1..8], body(&start)[1..8]);
    // Back at the end: it follows again.
    terminal.press("G");
    terminal.hides("new part");
    terminal.shows("14.0k tokens + 76.7k cached");
}

#[test]
fn parts_are_folded_found_and_jumped_to() {
    let machine = machine(&[(LOOP, "one")]);
    let mut terminal = Terminal::open(&machine, (100, 40), &[]);
    terminal.shows("1 session");
    terminal.press(ENTER);
    terminal.shows("[ ] prompts");
    // An error shows its output, which can be closed and opened.
    terminal.press("g");
    terminal.shows("── Turn 1");
    terminal.press("e");
    terminal.shows("[FAILED]");
    let closed = terminal.text();
    terminal.press("+");
    let open = terminal.until("everything open", |text| text != closed);
    terminal.press("-");
    terminal.until("everything closed", |text| text != open);
    // Find in the whole session, with highlights.
    terminal.press("/");
    terminal.shows("in this session");
    terminal.press("weather");
    terminal.press(ENTER);
    // The next hit from the cursor, wrapping around.
    terminal.shows("/weather 4 of 7");
    terminal.press("n");
    terminal.shows("/weather 5 of 7");
    terminal.press("NNNNN");
    terminal.shows("/weather 7 of 7");
    terminal.press(ESC);
    terminal.hides("/weather 7 of 7");
    // Help.
    terminal.press("?");
    terminal.shows("next prompt");
    terminal.press(ESC);
    terminal.hides("next prompt");
}

#[test]
fn everything_is_searched_and_a_hit_opens_at_its_part() {
    let machine = machine(&[
        (LOOP, "one"),
        ("claude-code/question-answered/log.jsonl", "two"),
        ("claude-code/images-read-by-tools/log.jsonl", "three"),
    ]);
    let mut terminal = Terminal::open(&machine, (110, 30), &[]);
    terminal.shows("3 sessions");
    terminal.press("s");
    terminal.shows("NOT word");
    terminal.press("radar");
    terminal.press(ENTER);
    let hits = terminal.until("hits", |text| text.contains("hits") && text.contains("radar.png"));
    assert!(hits.contains("search: radar"), "{hits}");
    assert!(hits.contains("Searched for the word “radar”."), "{hits}");
    terminal.press(ENTER);
    terminal.shows("/radar 1 of");
    // Back through the hits to the list.
    terminal.press(ESC);
    terminal.hides("/radar 1 of");
    terminal.press(ESC);
    terminal.shows("hits");
    terminal.press(ESC);
    terminal.shows("3 sessions");
}

#[test]
fn sessions_are_tagged_renamed_and_deleted() {
    let machine = machine(&[(LOOP, "one"), ("claude-code/question-answered/log.jsonl", "two")]);
    let mut terminal = Terminal::open(&machine, (120, 20), &[]);
    terminal.shows("2 sessions");
    terminal.press("t");
    terminal.shows("removes one");
    terminal.press("keep");
    terminal.press(ENTER);
    terminal.shows("#keep");
    terminal.press("R");
    terminal.press("\x15a name of my own");
    terminal.press(ENTER);
    terminal.shows("a name of my own");
    // Deleting asks first; any key but y means no.
    terminal.press("X");
    terminal.shows("from the archive?");
    terminal.press("n");
    terminal.shows("was not deleted");
    terminal.press("X");
    terminal.shows("from the archive?");
    terminal.press("y");
    terminal.shows("1 session");
    let listed = machine.json("archive", &["list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[test]
fn notes_and_bookmarks_are_written_and_found() {
    let machine = machine(&[(LOOP, "one")]);
    let mut terminal = Terminal::open(&machine, (120, 40), &[]);
    terminal.shows("1 session");
    terminal.press(ENTER);
    terminal.shows("[ ] prompts");
    // On the turn that the cursor is at the head of.
    terminal.press("g");
    terminal.shows("Turn 1");
    terminal.moves_to("Turn 1");
    terminal.press("B");
    terminal.shows("bookmark saved");
    terminal.shows("★");
    terminal.press("B");
    terminal.shows("note removed");
    terminal.hides("★");
    terminal.press("M");
    terminal.shows("B sets a bookmark");
    terminal.press("why so vague");
    terminal.press(ENTER);
    terminal.shows("✎ why so vague");
    // The next text is on a part.
    terminal.moves_to("◆");
    terminal.press("M");
    terminal.shows("B sets a bookmark");
    terminal.press("this is it");
    terminal.press(ENTER);
    terminal.shows("✎ this is it");
    terminal.press("U");
    terminal.until("the cursor at the first note", |text| {
        text.lines().any(|row| row.starts_with('▎') && row.contains("Turn 1"))
    });
    terminal.press("U");
    terminal.shows("no note above; 1 below");
    terminal.press("u");
    terminal.until("the cursor at the second note", |text| {
        text.lines().any(|row| row.starts_with('▎') && row.contains("this is it"))
    });
    // It is edited with what it says, and a bookmark does not throw it away.
    terminal.press("B");
    terminal.shows("M edits it");
    terminal.press("M");
    terminal.shows("note this is it");
    terminal.press(" indeed");
    terminal.press(ENTER);
    terminal.shows("✎ this is it indeed");
    let notes = machine.json("archive", &["note"]);
    let texts: Vec<&str> =
        notes.as_array().unwrap().iter().map(|note| note["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["this is it indeed", "why so vague"]);
    // What another process writes shows up here.
    let id = notes[0]["session"].as_str().unwrap();
    machine.ok("archive", &["note", id, "from outside", "--turn", "1"]);
    terminal.press("g");
    terminal.shows("✎ from outside");
    // Search finds it, and opens at its place.
    terminal.press("s");
    terminal.press("outside");
    terminal.press(ENTER);
    terminal.shows("from outside");
    terminal.press(ENTER);
    terminal.shows("Turn 1");
}

// R-X-15, R-001-32, R-002-42: with its own times, step by step.
#[test]
fn a_session_is_replayed() {
    let machine = machine(&[(LOOP, "one")]);
    machine.ok("archive", &["sync"]);
    let id = machine.json("archive", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let mut terminal = Terminal::open(&machine, (100, 30), &["replay", &id]);
    terminal.shows("1×");
    terminal.press(" ");
    terminal.shows("‖");
    let paused = terminal.text();
    terminal.press(".");
    let first = terminal.until("a part more", |text| text != paused);
    terminal.press(".");
    let second = terminal.until("another part more", |text| text != first);
    terminal.press(",");
    let back = terminal.until("a part less", |text| text != second);
    assert_eq!(
        back.lines().take(26).collect::<Vec<_>>(),
        first.lines().take(26).collect::<Vec<_>>()
    );
    // Half of the session time: more than at the start, less than all.
    terminal.press("5");
    let half = terminal.until("half of it", |text| text != back);
    assert!(half.contains("[OK]") && !half.contains("npm test 2>&1"), "{half}");
    terminal.press("0");
    terminal.until("its start", |text| !text.contains("[OK]"));
    terminal.press("++++++");
    terminal.shows("64×");
    terminal.press(" ");
    // It ends by itself with everything visible.
    terminal.until("its end", |text| text.contains("‖") && text.contains("tokens"));
    terminal.press(ESC);
    terminal.hides("64×");
}

// R-002-42: one turn, from its start to its end and no further.
#[test]
fn one_turn_is_replayed() {
    let machine = machine(&[("claude-code/terminal-errors/log.jsonl", "one")]);
    machine.ok("archive", &["sync"]);
    let id = machine.json("archive", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let mut terminal = Terminal::open(&machine, (100, 40), &["replay", &id, "--turn", "1"]);
    terminal.shows("1×");
    terminal.press("++++++");
    let end = |text: &str| text.contains("‖") && text.contains("(mock)");
    terminal.until("the end of the turn", end);
    terminal.press(",,");
    terminal.until("a part less", |text| !text.contains("(mock)"));
    // Steps do not go on into the next turn.
    terminal.press("....");
    let whole = terminal.until("the end again", end);
    assert!(!whole.contains("/add-dir"), "{whole}");
    // The timeline is that of the turn.
    terminal.press("0");
    terminal.until("its start", |text| !text.contains("(mock)"));
    terminal.press("9");
    terminal.until("most of it", |text| text.contains("invalid request case"));
    terminal.press(ESC);
    terminal.shows("Version bumped.");
    // The turn of the cursor: the last one.
    terminal.press("P");
    terminal.shows("1×");
    terminal.until("its start", |text| !text.contains("Version bumped."));
    terminal.press("++++++");
    terminal.until("its end", |text| text.contains("‖") && text.contains("Version bumped."));
}

#[test]
fn a_sub_agent_is_entered_and_left() {
    let machine = Machine::new();
    let case = crate::case::root().join("fixtures/claude-code/subagents-parallel-and-background");
    let log = std::fs::read_to_string(case.join("log.jsonl")).unwrap();
    let session = log.lines().find_map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        record["sessionId"].as_str().map(str::to_owned)
    });
    let session = session.unwrap();
    machine.write(&format!("{PROJECT}/{session}.jsonl"), log.as_bytes());
    let agents = machine.home().join(format!("{PROJECT}/{session}/subagents"));
    crate::harness::copy(&case.join("subagents"), &agents);
    let mut terminal = Terminal::open(&machine, (100, 40), &[]);
    terminal.shows("1 session");
    terminal.press(ENTER);
    terminal.shows("[ ] prompts");
    terminal.press("g");
    terminal.shows("── Turn 1");
    // Inline: the first agent's transcript appears below it, behind a rail.
    terminal.moves_to("● general-purpose");
    terminal.press(ENTER);
    let inline = terminal.shows("┃");
    assert!(inline.contains("┃ ── Turn 1"), "{inline}");
    terminal.press(ENTER);
    terminal.hides("┃");
    // From the part with the agents into the first of them.
    terminal.press("a");
    let opened = terminal.until("the sub-agent or the choice of one", |text| {
        text.contains("Sub-agents") || text.contains(" › ")
    });
    if opened.contains("Sub-agents") {
        terminal.press(ENTER);
    }
    let inside = terminal.shows(" › ");
    assert!(inside.contains("started by"), "{inside}");
    terminal.press(ESC);
    terminal.hides(" › ");
    terminal.shows("── Turn");
}

#[test]
fn any_size_will_do() {
    let machine = machine(&[(LOOP, "one"), ("claude-code/odd-output/log.jsonl", "two")]);
    let mut terminal = Terminal::open(&machine, (40, 10), &[]);
    terminal.shows("2 sessions");
    terminal.press("j");
    terminal.press(ENTER);
    terminal.until("a session", |text| !text.contains("2 sessions"));
    for (cols, rows) in [(200, 60), (40, 10), (80, 24), (10, 3), (300, 80), (60, 15)] {
        terminal.0.resize(cols, rows);
        terminal.press("g");
        terminal.press("G");
        terminal.until("something", |text| text.trim().len() > 2);
    }
    terminal.press(ESC);
    terminal.shows("2 sessions");
    // No control character of a program's output reached the terminal.
    assert!(!terminal.text().contains('\x07'));
}

#[test]
fn the_terminal_is_restored_on_every_signal() {
    for signal in ["TERM", "HUP", "INT"] {
        let machine = machine(&[(LOOP, "one")]);
        let mut terminal = Terminal::open(&machine, (80, 24), &[]);
        terminal.shows("1 session");
        let id = terminal.0.child.process_id().unwrap();
        let sent = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &id.to_string()])
            .status();
        assert!(sent.unwrap().success());
        terminal.ends();
        terminal.assert_restored();
    }
    // Ctrl-C is a key.
    let machine = machine(&[(LOOP, "one")]);
    let mut terminal = Terminal::open(&machine, (80, 24), &[]);
    terminal.shows("1 session");
    terminal.press("\x03");
    assert_eq!(terminal.ends(), 0);
    terminal.assert_restored();
}

#[test]
fn a_server_is_attached_to_and_comes_back() {
    let machine = machine(&[(LOOP, "one"), ("claude-code/question-answered/log.jsonl", "two")]);
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port().to_string()
    };
    let serve = || {
        let mut command = machine.command("served", &["serve", "--port", &port]);
        command.stderr(std::process::Stdio::null());
        Server::begin_with(command).0
    };
    let server = serve();
    let address = format!("http://127.0.0.1:{port}/?token={}", server.token);
    let mut terminal = Terminal::open(&machine, (120, 30), &["--connect", &address]);
    let list = terminal.until("the server's list", |text| {
        text.contains("2 sessions") && text.contains("127.0.0.1")
    });
    assert!(!list.contains(&server.token), "{list}");
    terminal.press(ENTER);
    terminal.shows("[ ] prompts");
    // A write on the server shows up here.
    let log = recorded("claude-code/web-search/log.jsonl");
    machine.write(&format!("{PROJECT}/three.jsonl"), &log);
    terminal.press(ESC);
    terminal.shows("3 sessions");
    // Tags, names and notes are written there; nothing else is.
    terminal.press("t");
    terminal.shows("removes one");
    terminal.press("from-afar");
    terminal.press(ENTER);
    terminal.shows("#from-afar");
    terminal.press("X");
    terminal.shows("from the archive?");
    terminal.press("y");
    terminal.shows("run unspool there");
    terminal.shows("3 sessions");
    // Connection lost and re-established.
    drop(server);
    terminal.shows("not connected");
    machine.put("claude-code/odd-output/log.jsonl", &format!("{PROJECT}/four.jsonl"));
    let _server = serve();
    terminal.shows("4 sessions");
    terminal.hides("not connected");
}

#[test]
fn a_wrong_server_is_reported_before_the_terminal_is_acquired() {
    let machine = Machine::new();
    let mut terminal =
        Terminal::open(&machine, (100, 20), &["--connect", "http://127.0.0.1:1/?token=x"]);
    assert_eq!(terminal.ends(), 1);
    assert!(terminal.text().contains("127.0.0.1:1"), "{}", terminal.text());
    terminal.assert_restored();
}

#[test]
fn copy_and_export_leave_the_screen() {
    let machine = machine(&[(LOOP, "one")]);
    let mut terminal = Terminal::open(&machine, (100, 30), &[]);
    terminal.shows("1 session");
    terminal.press("Y");
    terminal.shows("copied: cd /home/dev/weather-app && claude --resume");
    let copied = |terminal: &Terminal| {
        let text = String::from_utf8_lossy(&terminal.0.raw).into_owned();
        text.matches("\x1b]52;c;").count()
    };
    assert_eq!(copied(&terminal), 1);
    terminal.press(ENTER);
    terminal.shows("[ ] prompts");
    terminal.press("y");
    terminal.shows("copied as Markdown");
    assert_eq!(copied(&terminal), 2);
    terminal.press("x");
    let message = terminal.shows("exported to unspool-");
    let name = message.split_whitespace().find(|word| word.starts_with("unspool-")).unwrap();
    let written = std::fs::read_to_string(machine.home().join(name)).unwrap();
    assert!(written.starts_with("# The forecast cache keeps missing"), "{written}");
    assert!(written.contains("## Turn 1"), "{written}");
}

// Suspending needs a shell with job control.
#[test]
fn it_is_suspended_and_comes_back_and_the_wheel_scrolls() {
    let machine = machine(&[(LOOP, "one")]);
    let mut shell = CommandBuilder::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    let mut terminal = Terminal::with(&machine, (80, 20), shell, &[]);
    let (program, data) = (env!("CARGO_BIN_EXE_unspool"), machine.data("archive"));
    terminal.press("bind 'set enable-bracketed-paste off'; PS1='ready> '\r");
    terminal.shows("ready> ");
    terminal.press(&format!("{program} --data {}\r", data.display()));
    terminal.shows("1 session");
    terminal.press("\x1a");
    terminal.shows("Stopped");
    terminal.assert_restored();
    terminal.press("fg\r");
    terminal
        .until("the screen again", |text| text.contains("1 session") && text.contains("? help"));
    terminal.press(ENTER);
    let end = terminal.shows("[ ] prompts");
    terminal.press("\x1b[<64;10;10M");
    terminal.until("what is above", |text| text.contains("[ ] prompts") && text != end);
    terminal.press("q");
    terminal.shows("1 session");
    terminal.press("q");
    terminal.until("the shell", |text| text.contains("ready> ") && !text.contains("[ ] prompts"));
    terminal.assert_restored();
}

#[test]
fn the_config_file_sets_keys_and_errors_are_reported() {
    let machine = machine(&[(LOOP, "one")]);
    let config = ".config/unspool/config.toml";
    machine.write(config, b"[terminal]\nwindow = 100\n[terminal.keys]\nopen = [\"z\"]\n");
    let mut terminal = Terminal::open(&machine, (80, 24), &[]);
    terminal.shows("1 session");
    terminal.press("z");
    terminal.shows("[ ] prompts");
    for (wrong, message) in [
        ("[terminal]\ntheme = \"mauve\"\n", "unknown theme mauve"),
        ("[terminal.keys]\nopne = [\"z\"]\n", "there is no action"),
        ("[terminal.keys]\nopen = [\"hyper\"]\n", "as a key"),
    ] {
        machine.write(config, wrong.as_bytes());
        let mut terminal = Terminal::open(&machine, (120, 24), &[]);
        assert_eq!(terminal.ends(), 1, "{wrong}");
        assert!(terminal.text().contains(message), "{wrong}: {}", terminal.text());
        terminal.assert_restored();
    }
}

/// A backend that panics on the first query.
struct Broken;

impl Backend for Broken {
    fn send_query(&self, _: QueryId, _: Query) {
        panic!("broken on purpose");
    }

    fn change(&self, _: Request) {}

    fn name(&self) -> Option<&str> {
        None
    }
}

#[test]
#[ignore = "the next one runs it, in a terminal"]
fn breaks() {
    let (sender, events) = app::events();
    let (theme, keys) = (Theme::mocha(), Keys::new([]).unwrap());
    let options = AppOptions {
        theme,
        keys,
        motion: false,
        mouse: true,
        window: 100,
        session: None,
        name: None,
        can_open_demo: false,
        reading: false,
        chat: None,
        chat_opener: None,
    };
    let _ = app::run(&Broken, &sender, &events, options, || {});
}

// The panic message is readable on a restored terminal.
#[test]
fn a_panic_restores_the_terminal() {
    let machine = Machine::new();
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    command.args(["--exact", "terminal::breaks", "--ignored", "--nocapture"]);
    command.env("RUST_BACKTRACE", "0");
    let mut terminal = Terminal::with(&machine, (100, 30), command, &[]);
    assert_ne!(terminal.ends(), 0);
    assert!(terminal.text().contains("broken on purpose"), "{}", terminal.text());
    let entered = b"\x1b[?1049h";
    assert!(terminal.0.raw.windows(entered.len()).any(|bytes| bytes == entered));
    terminal.assert_restored();
}

#[test]
fn a_search_shows_hits_while_it_is_typed() {
    let machine = machine(&[(LOOP, "one")]);
    let mut terminal = Terminal::open(&machine, (100, 30), &[]);
    terminal.shows("1 session");
    terminal.press("s");
    terminal.press("ForecastCa");
    terminal.press("che");
    terminal.until("hits", |text| {
        text.contains("Searched for the word “ForecastCache”") && text.contains("Edit  turn 1")
    });
    terminal.press("\x1b");
    terminal.shows("1 session");
}

#[test]
fn a_seek_says_that_there_is_nothing_further() {
    let machine = machine(&[(LOOP, "one")]);
    let mut terminal = Terminal::open(&machine, (100, 30), &[]);
    terminal.shows("1 session");
    terminal.press(ENTER);
    // The keys of the footer are there before the session is.
    terminal.shows("Tests: 2 passed");
    terminal.press("g");
    terminal.shows("── Turn 1");
    terminal.press("D");
    terminal
        .until("the sentence", |text| text.contains("no edit above; ") && text.contains(" below"));
}

#[test]
fn changed_files_are_shown_and_opened_in_the_editor() {
    let machine = Machine::new();
    let project = machine.home().join("weather");
    let log = String::from_utf8(recorded("../crates/unspool/tests/changes/codex-edits/log.jsonl"))
        .unwrap();
    let log = log.replace("/home/dev/weather", project.to_str().unwrap());
    machine.write("log.jsonl", log.as_bytes());
    machine.write("weather/src/app.ts", b"line\n");
    // The editor notes what it was asked for and which key it got.
    machine.write("editor.sh", b"echo \"$@\" > opened; read -n 1 key; echo \"got $key\" >> opened");
    machine.ok("archive", &["import", machine.home().join("log.jsonl").to_str().unwrap()]);
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_unspool"));
    command.arg("--data");
    command.arg(machine.data("archive"));
    let mut terminal = Terminal::with(&machine, (80, 24), command, &[("EDITOR", "bash editor.sh")]);
    terminal.shows("Add humidity");
    terminal.press("C");
    terminal.shows("6 files changed  +28  −11");
    // The last line is painted last.
    let shown = terminal.shows("file 1 of 7");
    assert!(shown.contains("1 edit failed and is not included."), "{shown}");
    assert!(shown.contains("▎ src/app.ts  +13  −2"), "{shown}");
    for (key, file) in [("n", "src/cache.ts"), ("n", "src/new.ts"), ("N", "src/cache.ts")] {
        terminal.press(key);
        terminal.shows(&format!("▎ {file}"));
    }
    terminal.press("N");
    terminal.shows("▎ src/app.ts");
    terminal.press("i");
    let opened = machine.home().join("opened");
    let said = || std::fs::read_to_string(&opened).unwrap_or_default();
    terminal.until("the editor", |_| said().contains("src/app.ts"));
    terminal.press("z");
    terminal.until("the key in the editor", |_| said().contains("got z"));
    assert!(said().starts_with("+2 "), "the first changed line: {}", said());
    terminal.shows("▎ src/app.ts");
    // A file that is gone.
    terminal.press("n");
    terminal.shows("▎ src/cache.ts");
    terminal.press("i");
    terminal.shows("no longer exists on this machine");
    // From a file to the call that made it, and back.
    terminal.press("N");
    terminal.press(ENTER);
    terminal.shows("apply_patch");
    terminal.press(ESC);
    terminal.shows("6 files changed");
    terminal.press("q");
    terminal.hides("6 files changed");
}
