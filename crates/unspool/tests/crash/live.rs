//! Live sessions: agents append in arbitrary chunks, with unfinished lines and split characters,
//! while the recorder is killed and restarted at any point.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::contents::Contents;
use crate::corpus;
use crate::kills::kills;
use crate::random::Random;
use crate::sandbox::Sandbox;

/// A file that an agent is writing.
pub struct GrowingFile {
    path: PathBuf,
    bytes: Vec<u8>,
    written: usize,
}

impl GrowingFile {
    pub fn new(path: &Path, bytes: Vec<u8>) -> GrowingFile {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        GrowingFile { path: path.to_owned(), bytes, written: 0 }
    }

    /// A recording of a case, as the agent wrote it.
    pub fn recording(sandbox: &Sandbox, case: &str, feed: &str) -> GrowingFile {
        let path = sandbox.projects().join(case).join(format!("{feed}.jsonl"));
        GrowingFile::new(&path, corpus::recording(case, feed))
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Appends up to `length` bytes. Returns how many lines they finish.
    pub fn append(&mut self, length: usize) -> u64 {
        let piece = &self.bytes[self.written..][..length.min(self.left())];
        let mut file = File::options().create(true).append(true).open(&self.path).unwrap();
        file.write_all(piece).unwrap();
        self.written += piece.len();
        piece.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    /// Appends `lines` more lines, to a line end.
    pub fn append_lines(&mut self, lines: usize) -> u64 {
        let ends = self.bytes[self.written..].iter().enumerate();
        let mut ends = ends.filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let length = ends.nth(lines - 1).unwrap();
        self.append(length)
    }

    /// Sets the modification time one hour back.
    fn backdate(&self) {
        let file = File::options().append(true).open(&self.path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    }

    /// Appends a random number of bytes: part of a character, of a line, or a few records.
    pub fn append_some(&mut self, random: &mut Random) -> u64 {
        let most = [8, 300, 12_000][random.below(3)];
        self.append(1 + random.below(most))
    }
}

/// Files that grow at the same time: three feeds of one session, two of another, a long log, one
/// with unusual characters, and sub-agents.
pub fn agents_at_work(sandbox: &Sandbox) -> Vec<GrowingFile> {
    let feeds = [
        ("sdk-permissions-and-questions", "log"),
        ("sdk-permissions-and-questions", "stream"),
        ("sdk-permissions-and-questions", "hooks"),
        ("terminal-permissions-and-questions", "hooks"),
        ("terminal-permissions-and-questions", "log"),
        ("odd-output", "log"),
    ];
    let mut growing: Vec<GrowingFile> =
        feeds.map(|(case, feed)| GrowingFile::recording(sandbox, case, feed)).into();
    let agents = corpus::fixtures().join("subagents-nested");
    for path in [agents.clone(), agents.join("subagents")] {
        for entry in path.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            if entry.to_str().unwrap().ends_with(".jsonl") && !entry.ends_with("stream.jsonl") {
                let name = entry.file_name().unwrap();
                let to = sandbox.projects().join("nested").join(name);
                growing.push(GrowingFile::new(&to, fs::read(&entry).unwrap()));
            }
        }
    }
    let long = corpus::repeated("discovery-loop", 3);
    growing.push(GrowingFile::new(&sandbox.projects().join("long.jsonl"), long));
    growing
}

#[test]
fn a_recorder_of_live_sessions_may_be_killed_at_any_point() {
    // R-001-14 R-001-28, laws 2, 4 and 5: a live recording by many successive processes equals one
    // import of the finished files.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("live");
    let mut random = Random::new("live");
    // A log without a session id: it is imported once it is no longer written.
    let mut growing = vec![GrowingFile::recording(&sandbox, "v1-0-100-summary-only", "log")];
    growing.append(&mut agents_at_work(&sandbox));
    let lives = kills() / 8;
    for left in (1..=lives).rev() {
        let watcher = unspool.watch();
        // It polls twice a second: some processes live for several polls, some for none.
        let life = random.delay(Duration::from_millis(900));
        let begun = Instant::now();
        let todo = growing.iter().map(GrowingFile::left).sum::<usize>() / left;
        let mut written = 0;
        while written < todo {
            let at = random.below(growing.len());
            let before = growing[at].left();
            growing[at].append_some(&mut random);
            written += before - growing[at].left();
            // Spread the writes evenly over the process's life.
            let due = life.mul_f64((written as f64 / todo as f64).min(1.0));
            thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        if left % 5 == 0 {
            // Kill some right after they reported a write.
            watcher.report();
        }
        watcher.kill();
    }
    let last = growing.len() - 1;
    growing.iter_mut().for_each(|growing| {
        growing.append(growing.left());
        growing.backdate();
    });
    // A watcher that is not killed imports the rest, then new records.
    let end = b"{\"type\":\"summary\",\"summary\":\"Sch\xc3\xb6n\",\"leafUuid\":\"x\"}\n".to_vec();
    let watcher = unspool.watch();
    watcher.report();
    growing[last].bytes.extend_from_slice(&end);
    growing[last].append(40);
    growing[last].append(end.len());
    watcher.take(1);
    watcher.kill();

    let undisturbed = sandbox.unspool("undisturbed");
    undisturbed.sync();
    let expected = Contents::of(&undisturbed);
    Contents::of(&unspool).assert_same_as(&expected, "live");
    assert_eq!(unspool.sync()["records"], 0, "all was taken");
}
