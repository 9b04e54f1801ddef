//! The program in a pseudo-terminal, and the rows of the table.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;

use crate::pty::Pty;

pub const SIZE: (u16, u16) = (200, 60);

pub fn share(times: &[Duration], part: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub fn row(what: &str, time: Duration, goal: &str) {
    println!("{what:<58} {:>13.1} ms   {goal}", time.as_secs_f64() * 1e3);
}

/// The program in its own pseudo-terminal.
pub struct Terminal(pub Pty);

impl Terminal {
    pub fn open(program: &Path, home: &Path, data: &Path) -> Terminal {
        Terminal::open_with(program, home, data, &[])
    }

    pub fn open_with(program: &Path, home: &Path, data: &Path, arguments: &[&str]) -> Terminal {
        let mut command = CommandBuilder::new(program);
        command.env_clear();
        command.env("HOME", home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.arg("--data");
        command.arg(data);
        command.args(arguments);
        command.cwd(home);
        Terminal(Pty::open(command, SIZE))
    }

    pub fn take(&mut self) {
        // After a timeout without output, check the screen again.
        let _ = self.0.take(Duration::from_millis(5));
    }

    pub fn text(&self) -> String {
        self.0.screen.screen().contents()
    }

    pub fn drain(&mut self) {
        self.0.drain();
    }

    pub fn until(&mut self, is: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is(&self.text()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.text());
            self.take();
        }
    }

    /// The first lines below the header.
    pub fn top(&self) -> Vec<String> {
        self.0.screen.screen().rows(0, SIZE.0).skip(1).take(6).collect()
    }

    pub fn until_top_is_not(&mut self, before: &[String]) {
        let begun = Instant::now();
        while self.top() == before && begun.elapsed() < Duration::from_secs(5) {
            self.take();
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.0.press(keys);
    }

    pub fn memory(&self) -> u64 {
        let id = self.0.child.process_id().unwrap();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }
}
