//! Chats in the terminal application: from the agent to the screen, and keys under load. The agent is
//! `e2e/bench_agent.mjs`: every text that it sends has the time in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::screen::{Terminal, row, share};

/// Longer than keys are taken for typing after a question appeared.
const GUARD: Duration = Duration::from_millis(400);

pub fn run(program: &Path, folder: &Path, agent: &[String]) {
    let (home, data) = (folder.join("home"), folder.join("data"));
    fs::create_dir_all(home.join(".config/unspool")).unwrap();
    fs::write(home.join(".config/unspool/config.toml"), "").unwrap();
    let log = folder.join("agent.log");
    let words = agent.iter().map(String::as_str).chain([log.to_str().unwrap()]);
    let arguments: Vec<&str> = ["chat", "--"].into_iter().chain(words).collect();
    let terminal = Terminal::open_with(program, &home, &data, &arguments);
    let mut chat = Chat { terminal, program: program.to_owned(), home, data, log };
    chat.terminal.until(|text| text.contains("· ready"));
    chat.parts();
    chat.questions();
    chat.keys(
        "flood 2000 10",
        "2,000 updates/s",
        [("95 %", 0.95, "at most 16 ms"), ("99 %", 0.99, "at most 33 ms")],
    );
    chat.keys(
        "flood 50000 10",
        "50,000 updates/s",
        [("95 %", 0.95, "at most 33 ms"), ("99 %", 0.99, "")],
    );
    chat.processes();
}

struct Chat {
    terminal: Terminal,
    program: PathBuf,
    home: PathBuf,
    data: PathBuf,
    /// What the agent notes.
    log: PathBuf,
}

impl Chat {
    fn send(&mut self, prompt: &str) {
        self.terminal.press(&format!("{prompt}\r"));
        self.terminal.until(|text| !text.contains("· ready"));
    }

    fn rest(&mut self) {
        self.terminal.until(|text| text.contains("· ready"));
    }

    /// Notes how old each time is when it comes to the screen.
    fn note(&mut self, seen: &mut BTreeMap<String, Duration>) {
        self.terminal.take();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() * 1e3;
        for stamp in stamps(&self.terminal.text()) {
            let sent: f64 = stamp.parse().unwrap();
            let age = Duration::from_secs_f64((now - sent).max(0.0) / 1e3);
            seen.entry(stamp).or_insert(age);
        }
    }

    /// Parts that begin: texts and thoughts take turns.
    fn parts(&mut self) {
        self.send("parts 100 200");
        let mut seen = BTreeMap::new();
        while !self.terminal.text().contains("· ready") {
            self.note(&mut seen);
        }
        let times: Vec<Duration> = seen.into_values().collect();
        row(
            "first chunk of a part to paint in the terminal, 95 %",
            share(&times, 0.95),
            "at most 50 ms",
        );
        println!("{:<62} {:>12}", "  parts that were seen", format!("{} of 100", times.len()));
    }

    fn questions(&mut self) {
        let mut times = Vec::new();
        let mut seen = BTreeMap::new();
        self.note(&mut seen);
        let known = seen.len();
        self.send("asks 20");
        for _ in 0..20 {
            let before = seen.len();
            while seen.len() == before || !self.terminal.text().contains("tab answers") {
                self.note(&mut seen);
            }
            thread::sleep(GUARD);
            self.terminal.press("\t");
            self.terminal.until(|text| text.contains("ctrl-c declines"));
            self.terminal.press("1");
            self.terminal.until(|text| text.contains("▸ 1 allow once"));
            self.terminal.press("\r");
            self.terminal.until(|text| !text.contains("ctrl-c declines"));
        }
        times.extend(seen.into_values().skip(known));
        row("a question to the screen of the terminal, 95 %", share(&times, 0.95), "at most 60 ms");
        self.rest();
    }

    /// Types while the agent writes this much.
    fn keys(&mut self, prompt: &str, load: &str, rows: [(&str, f64, &str); 2]) {
        self.send(prompt);
        let mut times = Vec::new();
        let mut typed = String::new();
        while !self.terminal.text().contains("· ready") && times.len() < 2_000 {
            // A draft of one line.
            if typed.len() == 60 {
                self.terminal.press("\x15");
                typed.clear();
            }
            typed.push(char::from(b'a' + (times.len() % 26) as u8));
            let draft = format!("│ {typed}");
            let begun = Instant::now();
            self.terminal.press(&typed[typed.len() - 1..]);
            self.terminal.until(|text| text.contains(&draft));
            times.push(begun.elapsed());
            let until = Instant::now() + Duration::from_millis(23);
            while Instant::now() < until {
                self.terminal.take();
            }
        }
        for (name, part, goal) in rows {
            row(
                &format!("a key in the composer to the screen, {load}, {name}"),
                share(&times, part),
                goal,
            );
        }
        println!("{:<62} {:>12}", "  keys", times.len());
        self.terminal.press("\x15");
        self.rest();
    }

    /// Ctrl-C twice ends an agent that hears no interruption. A terminal that is killed leaves its
    /// agent at work.
    fn processes(mut self) {
        const SETTLE_TIME: Duration = Duration::from_secs(6);
        let line = |what: &str, left: usize, goal: &str| println!("{what:<62} {left:>12}   {goal}");
        self.send("deaf");
        self.terminal.press("\x03");
        self.terminal.until(|text| text.contains("ctrl-c ends the agent"));
        self.terminal.press("\x03");
        thread::sleep(SETTLE_TIME);
        line("processes left 6 s after ctrl-c twice", processes(&self.log), "0");
        self.terminal.until(|text| text.contains("enter starts the agent again"));
        self.terminal.press("wait\r");
        self.terminal.until(|text| text.contains("ctrl-c interrupts"));
        let before = processes(&self.log);
        let id = self.terminal.0.child.process_id().unwrap().to_string();
        Command::new("kill").args(["-9", &id]).status().unwrap();
        thread::sleep(SETTLE_TIME);
        line("agents 6 s after kill -9 of the terminal", processes(&self.log), &before.to_string());
        let mut end = Command::new(&self.program);
        end.arg("--data").arg(&self.data).args(["chat", "--list", "--json"]);
        let listed = end.env("HOME", &self.home).output().unwrap().stdout;
        let listed: Value = serde_json::from_slice(&listed).unwrap();
        for chat in listed.as_array().unwrap() {
            let mut end = Command::new(&self.program);
            end.arg("--data").arg(&self.data).args(["chat", "--end", chat["id"].as_str().unwrap()]);
            end.env("HOME", &self.home).output().unwrap();
        }
    }
}

/// The times in a text: `[1794702908545.12]`.
fn stamps(text: &str) -> Vec<String> {
    let pieces = text.split('[').skip(1).filter_map(|piece| piece.split_once(']'));
    let is_time =
        |stamp: &str| stamp.len() == 16 && stamp.chars().all(|c| c.is_ascii_digit() || c == '.');
    pieces.map(|(stamp, _)| stamp.to_owned()).filter(|stamp| is_time(stamp)).collect()
}

/// How many processes have this path in their command line and are agents.
fn processes(log: &Path) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let agent = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    agent
        .filter(|line| line.contains(log.to_str().unwrap()) && line.contains("bench_agent"))
        .filter(|line| !line.contains("\0chat\0"))
        .count()
}
