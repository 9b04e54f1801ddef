//! Benchmarks the terminal application from outside, in a pseudo-terminal; frame times are measured
//! in process, without one. `scripts/bench terminal` builds the program and runs this:
//! `cargo run --release -p unspool --example terminal -- target/release/unspool`. With `chat` and the
//! command of an agent behind it, it measures chats instead (`scripts/bench chat`).

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod chat;
#[path = "../../tests/suite/pty.rs"]
mod pty;
mod screen;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unspool_store::database::Database;
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;

use screen::{SIZE, Terminal, row, share};

const PROJECT: &str = ".claude/projects/-home-dev-weather-app";

fn main() {
    let program = PathBuf::from(std::env::args().nth(1).unwrap());
    let folder = tempfile::TempDir::new().unwrap();
    if std::env::args().nth(2).is_some_and(|what| what == "chat") {
        let agent: Vec<String> = std::env::args().skip(3).collect();
        return chat::run(&program, folder.path(), &agent);
    }
    let bench = Bench { program, folder: folder.path().to_owned() };
    bench.many();
    bench.long();
    bench.live();
}

struct Bench {
    program: PathBuf,
    folder: PathBuf,
}

impl Bench {
    fn home(&self, name: &str) -> PathBuf {
        self.folder.join(name).join("home")
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder.join(name).join("data")
    }

    fn log(&self, name: &str, file: &str) -> PathBuf {
        let folder = self.home(name).join(PROJECT);
        fs::create_dir_all(&folder).unwrap();
        folder.join(file)
    }

    fn sync(&self, name: &str) {
        let mut command = Command::new(&self.program);
        command.arg("--data").arg(self.data(name)).arg("sync");
        let output = command.env_clear().env("HOME", self.home(name)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn open(&self, name: &str) -> Terminal {
        Terminal::open(&self.program, &self.home(name), &self.data(name))
    }

    /// The first frame of a list of 10,000 sessions.
    fn many(&self) {
        for nth in 0..10_000 {
            let mut log = Log::new(&format!("{nth:08}-0000-4000-8000-000000000000"));
            log.prompt(&format!("Prompt {nth} of many"));
            log.say("Done");
            fs::write(self.log("many", &format!("{nth:08}.jsonl")), log.text).unwrap();
        }
        self.sync("many");
        let mut times = Vec::new();
        for _ in 0..9 {
            let begun = Instant::now();
            let mut terminal = self.open("many");
            terminal.until(|text| text.contains("of many"));
            times.push(begun.elapsed());
            // Stop before it scans ten thousand files, which it does after the first frame.
            terminal.until(|text| text.contains("10,000 sessions"));
        }
        row("first frame with 10,000 sessions, median", share(&times, 0.5), "under 60 ms");
        row("first frame with 10,000 sessions, slowest of 9", share(&times, 1.0), "under 60 ms");
    }

    /// A session of 100,000 parts: opening, scrolling, memory.
    fn long(&self) {
        let mut log = Log::new("11111111-0000-4000-8000-000000000000");
        let mut made = 0;
        for turn in 0.. {
            log.prompt(&format!("Prompt {turn}"));
            let own = if turn == 40 { 20_000 } else { 240 };
            for nth in (0..own).step_by(3) {
                log.call(
                    nth,
                    &format!("make step-{nth}"),
                    &format!("step {nth}\n{}", "ok ".repeat(20)),
                );
                log.say(&format!(
                    "Step **{nth}** is done:\n\n```rust\nfn step_{nth}() -> u32 {{ {nth} }}\n```"
                ));
                log.say("And on.");
                made += 3;
            }
            if made >= 100_000 {
                break;
            }
        }
        fs::write(self.log("long", "long.jsonl"), log.text).unwrap();
        self.sync("long");
        let mut times = Vec::new();
        for _ in 0..9 {
            let mut terminal = self.open("long");
            terminal.until(|text| text.contains("1 session"));
            thread::sleep(Duration::from_millis(1500));
            terminal.drain();
            let begun = Instant::now();
            terminal.press("\r");
            terminal.until(|text| text.contains("[ ] prompts") && text.contains("is done:"));
            times.push(begun.elapsed());
        }
        row("a session of 100,000 parts, opened, median", share(&times, 0.5), "under 60 ms");
        row("a session of 100,000 parts, opened, slowest of 9", share(&times, 1.0), "under 60 ms");

        let mut terminal = self.open("long");
        terminal.until(|text| text.contains("1 session"));
        thread::sleep(Duration::from_millis(1500));
        terminal.press("\r");
        terminal.until(|text| text.contains("[ ] prompts"));
        for _ in 0..400 {
            terminal.press("b");
            thread::sleep(Duration::from_millis(15));
            terminal.drain();
        }
        println!(
            "{:<58} {:>13} MB   under 80 MB",
            "memory after 400 screens upward, highest",
            terminal.memory()
        );
        drop(terminal);

        // Each frame: a wheel event, the loading it causes, and drawing.
        let store = Database::open_to_read(&self.data("long").join("unspool.db")).unwrap();
        let mut test_harness =
            TestHarness::new(store, SIZE, Theme::named("mocha").unwrap()).unwrap();
        test_harness.press("\n");
        let (mut frames, mut loads) = (Vec::new(), Vec::new());
        let mut shown = test_harness.draw();
        for _ in 0..3000 {
            let begun = Instant::now();
            let requested = test_harness.press_without_responses("K");
            let next = test_harness.draw();
            std::hint::black_box(shown.diff(&next).len());
            frames.push(begun.elapsed());
            shown = next;
            // In the application, another thread answers the queries.
            let begun = Instant::now();
            let responses = test_harness.responses(requested);
            loads.push(begun.elapsed());
            let begun = Instant::now();
            test_harness.deliver(responses);
            if let Some(last) = frames.last_mut() {
                *last += begun.elapsed();
            }
        }
        row("scrolling through it, a frame at 200×60, median", share(&frames, 0.5), "");
        row("scrolling through it, a frame at 200×60, 99 %", share(&frames, 0.99), "under 8 ms");
        row("what is loaded beside it, slowest", share(&loads, 1.0), "");
    }

    /// Appends two thousand lines a second while keys are pressed.
    fn live(&self) {
        let mut log = Log::new("22222222-0000-4000-8000-000000000000");
        for turn in 0..40 {
            log.prompt(&format!("Prompt {turn}"));
            log.say(&format!("Answer {turn}\n\nwith\n\nmore\n\nlines"));
        }
        log.prompt("Now");
        let path = self.log("live", "live.jsonl");
        fs::write(&path, std::mem::take(&mut log.text)).unwrap();
        self.sync("live");
        let mut terminal = self.open("live");
        terminal.until(|text| text.contains("1 session"));
        thread::sleep(Duration::from_millis(1000));
        terminal.press("\r");
        terminal.until(|text| text.contains("[ ] prompts"));
        terminal.press(&"K".repeat(70));
        thread::sleep(Duration::from_millis(300));
        terminal.drain();
        let writer = thread::spawn(move || {
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            let begun = Instant::now();
            for tick in 0..800_u32 {
                for nth in 0..20 {
                    log.say(&format!("delta {}", tick * 20 + nth));
                }
                file.write_all(std::mem::take(&mut log.text).as_bytes()).unwrap();
                let due = begun + Duration::from_millis(u64::from(tick + 1) * 10);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            f64::from(800 * 20) / begun.elapsed().as_secs_f64()
        });
        let mut times = Vec::new();
        let mut down = false;
        while !writer.is_finished() {
            let before = terminal.top();
            let begun = Instant::now();
            terminal.press(if down { "J" } else { "K" });
            terminal.until_top_is_not(&before);
            times.push(begun.elapsed());
            down = !down;
            thread::sleep(Duration::from_millis(23));
            terminal.drain();
        }
        let rate = writer.join().unwrap();
        println!("{:<58} {:>13.0} /s   2,000 /s", "lines written meanwhile", rate);
        row("a key to the screen meanwhile, median", share(&times, 0.5), "");
        row("a key to the screen meanwhile, 95 %", share(&times, 0.95), "under 30 ms");
        row("a key to the screen meanwhile, slowest", share(&times, 1.0), "");
    }
}

/// Writes a Claude Code log.
struct Log {
    session: String,
    text: String,
    time: i64,
    number: u64,
    parent: Value,
}

impl Log {
    fn new(session: &str) -> Log {
        let (session, time) =
            (session.to_owned(), jiff::Timestamp::now().as_millisecond() - 86_400_000);
        Log { session, text: String::new(), time, number: 0, parent: Value::Null }
    }

    fn write(&mut self, kind: &str, message: &Value) {
        self.time += 10;
        self.number += 1;
        let id = format!("00000000-0000-4000-8000-{:012}", self.number);
        let at = jiff::Timestamp::from_millisecond(self.time).unwrap().to_string();
        let line = json!({
            "type": kind, "uuid": id, "parentUuid": self.parent, "sessionId": self.session,
            "timestamp": at, "cwd": "/home/dev/weather-app", "version": "2.1.325",
            "isSidechain": false, "userType": "external", "message": message,
        });
        self.parent = Value::String(id);
        self.text.push_str(&line.to_string());
        self.text.push('\n');
    }

    fn prompt(&mut self, text: &str) {
        self.write("user", &json!({ "role": "user", "content": text }));
    }

    fn answer(&mut self, content: &Value, reason: &str) {
        let id = format!("msg_{}", self.number);
        let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
        self.write(
            "assistant",
            &json!({
                "id": id, "role": "assistant", "model": "claude-opus-5-5", "type": "message",
                "content": [content], "stop_reason": reason, "usage": usage,
            }),
        );
    }

    fn say(&mut self, text: &str) {
        self.answer(&json!({ "type": "text", "text": text }), "end_turn");
    }

    fn call(&mut self, nth: usize, command: &str, output: &str) {
        let id = format!("toolu_{}_{nth}", self.number);
        let input = json!({ "command": command });
        self.answer(
            &json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input }),
            "tool_use",
        );
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": output });
        self.write("user", &json!({ "role": "user", "content": [result] }));
    }
}
