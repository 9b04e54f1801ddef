//! Makes the pictures of the terminal application in docs/images: runs the program in a pseudo-
//! terminal over the demo's sessions, presses keys, and writes each screen as an SVG.
//! `scripts/pictures` builds the program and runs this:
//! `cargo run -p unspool --example pictures -- target/debug/unspool docs/images PUPPET`

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "../../tests/suite/pty.rs"]
mod pty;

mod chat;
mod svg;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use pty::Pty;

/// Longer than any step takes, even on a slow machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// Code is highlighted after the text appears: a screen is complete after this long without output.
const QUIET_PERIOD: Duration = Duration::from_millis(500);

const WIDE_SIZE: (u16, u16) = (140, 38);
const DEFAULT_SIZE: (u16, u16) = (110, 38);
const SHORT_SIZE: (u16, u16) = (110, 12);

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(program), Some(into), Some(puppet)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        panic!("usage: pictures PROGRAM FOLDER PUPPET");
    };
    let folder = tempfile::TempDir::new().unwrap();
    let studio = Studio::new(program, folder.path(), into);

    for (theme, shade) in [("mocha", "dark"), ("latte", "light")] {
        let mut list = studio.open(WIDE_SIZE, theme, &[]);
        list.until(&["9 sessions", "enter open"]);
        list.press_until("j", "unit helpers");
        studio.take(&mut list, &format!("terminal-list-{shade}"));
    }

    let mut session = studio.open(DEFAULT_SIZE, "mocha", &[]);
    session.until(&["9 sessions"]);
    studio.choose(&mut session, "The forecast cache keeps missing");
    session.press("\r");
    session.until(&["[ ] prompts"]);
    // The edit is inside a reasoning block, which opens.
    session.press("gd");
    session.until(&["ttlSeconds * 1000", "Write"]);
    studio.take(&mut session, "terminal-session-dark");
    drop(session);

    let mut agents = studio.open(DEFAULT_SIZE, "mocha", &[]);
    agents.until(&["9 sessions"]);
    studio.choose(&mut agents, "weather app from two angles");
    agents.press("\r");
    agents.until(&["[ ] prompts"]);
    agents.press_until("k", "▎ │ ● general-purpose");
    agents.press("\r");
    agents.until(&["┃ ── Turn 1"]);
    studio.take(&mut agents, "terminal-agents-dark");
    drop(agents);

    let mut search = studio.open(SHORT_SIZE, "mocha", &[]);
    search.until(&["9 sessions"]);
    // Search one session only: hits of equal rank depend on the order in which sessions were read.
    search.press("scelsius\r");
    search.until(&["esc back", "hits"]);
    studio.take(&mut search, "terminal-search-dark");
    drop(search);

    let mut replay = studio.open(DEFAULT_SIZE, "mocha", &["replay", "466998a9"]);
    replay.until(&["turn 1 of 2"]);
    replay.press(" ");
    replay.press_until(".", "Summary so far");
    studio.take(&mut replay, "terminal-replay-dark");
    drop(replay);

    chat::take_pictures(&studio, &puppet);
}

/// The setup: the demo's archive and an empty home.
struct Studio {
    program: PathBuf,
    archive: PathBuf,
    home: PathBuf,
    into: PathBuf,
}

impl Studio {
    fn new(program: PathBuf, folder: &Path, into: PathBuf) -> Studio {
        // The demo writes its logs before it prints its address.
        let data = folder.join("data");
        let mut demo = Command::new(&program)
            .args(["serve", "--demo", "--port", "0", "--data"])
            .arg(&data)
            .env_clear()
            .env("HOME", folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(demo.stdout.take().unwrap()).read_line(&mut said).unwrap();
        demo.kill().unwrap();
        demo.wait().unwrap();
        // The demo may have been stopped before it stored everything: sync the rest.
        let archive = data.join("demo");
        let output = Command::new(&program)
            .args(["sync", "--data"])
            .arg(&archive)
            .env_clear()
            .env("HOME", archive.join("home"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let home = folder.join("home");
        fs::create_dir(&home).unwrap();
        fs::create_dir_all(&into).unwrap();
        Studio { program, archive, home, into }
    }

    fn open(&self, size: (u16, u16), theme: &str, arguments: &[&str]) -> Terminal {
        let config = self.home.join("config.toml");
        fs::write(&config, format!("[terminal]\ntheme = \"{theme}\"\nmotion = false\n")).unwrap();
        let mut command = CommandBuilder::new(&self.program);
        command.env_clear();
        command.env("HOME", &self.home);
        command.env("UNSPOOL_CONFIG", config);
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.arg("--data");
        command.arg(&self.archive);
        command.args(arguments);
        Terminal::open(command, size)
    }

    /// Narrows the list to one session.
    fn choose(&self, list: &mut Terminal, title: &str) {
        list.press(&format!("/{title}"));
        list.until(&[&format!("/{title}")]);
        list.press("\r");
    }

    fn take(&self, terminal: &mut Terminal, name: &str) {
        terminal.settle();
        let path = self.into.join(format!("{name}.svg"));
        fs::write(&path, svg::picture(terminal.0.screen.screen())).unwrap();
        println!("{}", path.display());
    }
}

/// The program in its own pseudo-terminal.
struct Terminal(Pty);

impl Terminal {
    fn open(command: CommandBuilder, size: (u16, u16)) -> Terminal {
        Terminal(Pty::open(command, size))
    }

    fn text(&self) -> String {
        self.0.screen.screen().contents()
    }

    /// Waits until the screen shows all of these.
    fn until(&mut self, wanted: &[&str]) {
        let begun = Instant::now();
        while !wanted.iter().all(|wanted| self.text().contains(wanted)) {
            let waited = begun.elapsed();
            assert!(waited < DEADLINE, "{wanted:?} is not in\n{}", self.text());
            // After a timeout without output, check the screen again.
            let _ = self.0.take(Duration::from_millis(20));
        }
    }

    /// Presses a key repeatedly until the screen shows this.
    fn press_until(&mut self, key: &str, wanted: &str) {
        self.settle();
        while !self.text().contains(wanted) {
            let before = self.text();
            self.press(key);
            self.settle();
            assert_ne!(self.text(), before, "{key} does not lead to {wanted:?}");
        }
    }

    fn settle(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < DEADLINE {
            match self.0.take(QUIET_PERIOD) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => panic!("it has ended:\n{}", self.text()),
            }
        }
        panic!("it does not come to rest:\n{}", self.text());
    }

    fn press(&mut self, keys: &str) {
        self.0.press(keys);
    }
}
