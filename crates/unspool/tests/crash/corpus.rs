//! Builds an agent's log folder from the recordings in `fixtures/`: many small sessions, some with
//! three feeds, sub-agents, and long sessions made by repeating a log under other ids.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The modification time of the first file, in seconds; each further file is one second later.
const FIRST_MTIME_SECS: u64 = 1_790_000_000;

pub fn fixtures() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join("fixtures").join("claude-code")
}

/// A recording of a case: `log`, `stream` or `hooks`.
pub fn recording(case: &str, feed: &str) -> Vec<u8> {
    fs::read(fixtures().join(case).join(format!("{feed}.jsonl"))).unwrap()
}

pub fn cases() -> Vec<String> {
    let entries = fixtures().read_dir().unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Fills a folder with logs. The feeds of one session are separate files with increasing times, so
/// they are read one after another and a session is written before its next file is read. An import
/// thus has dozens of transactions to be killed in and between.
pub fn fill(projects: &Path) {
    let names = cases();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut folder = fill_with(projects, &names);
    folder.add("long-discovery.jsonl", &repeated("discovery-loop", 8));
    folder.add("long-questions.jsonl", &repeated("terminal-permissions-and-questions", 8));
}

/// The same with these cases alone.
pub fn fill_with(projects: &Path, cases: &[&str]) -> LogFolder {
    let mut folder = LogFolder { folder: projects.join("-home-dev-weather-app"), written: 0 };
    for (number, case) in cases.iter().enumerate() {
        let from = fixtures().join(case);
        let feeds: &[&str] = if number % 2 == 0 { &["log", "stream", "hooks"] } else { &["log"] };
        for feed in feeds {
            if let Ok(bytes) = fs::read(from.join(format!("{feed}.jsonl"))) {
                folder.add(&format!("{case}.{feed}.jsonl"), &bytes);
            }
        }
        let Ok(agents) = from.join("subagents").read_dir() else { continue };
        for agent in agents {
            let path = agent.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            folder.add(&format!("{case}/subagents/{name}"), &fs::read(&path).unwrap());
        }
    }
    folder
}

pub struct LogFolder {
    folder: PathBuf,
    written: u64,
}

impl LogFolder {
    fn add(&mut self, name: &str, bytes: &[u8]) {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        self.written += 1;
        let at = UNIX_EPOCH + Duration::from_secs(FIRST_MTIME_SECS + self.written);
        File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
    }
}

/// A log repeated `times` times in one session of another id. Each copy has its own ids, and its
/// first record points to the last one of the copy before.
pub fn repeated(case: &str, times: usize) -> Vec<u8> {
    let log = String::from_utf8(recording(case, "log")).unwrap();
    let session = field(&log, "sessionId").unwrap();
    let id_segments = id_segments(&log);
    let mut long = String::with_capacity(times * (log.len() + log.len() / 8));
    let mut before = None;
    for time in 0..times {
        let start = long.len();
        let salt = format!("{case} {time}");
        for (text, id) in &id_segments {
            long.push_str(text);
            let salt = if *id == session { "session" } else { &salt };
            push_renamed(id, salt, &mut long);
        }
        let copy = &long[start..];
        let last = last_record(copy);
        if let Some(before) = before {
            let root = start + copy.find("\"parentUuid\":null").unwrap() + "\"parentUuid\":".len();
            long.replace_range(root..root + "null".len(), &format!("\"{before}\""));
        }
        before = last;
    }
    long.into_bytes()
}

/// The value of the first field of this name.
pub fn field<'l>(log: &'l str, name: &str) -> Option<&'l str> {
    let name = format!("\"{name}\":\"");
    let start = log.find(&name)? + name.len();
    log[start..].split('"').next()
}

fn last_record(log: &str) -> Option<String> {
    log.lines().rev().find_map(|line| field(line, "uuid")).map(str::to_owned)
}

/// Splits a log into pairs of text and the id after it; the last id is empty.
fn id_segments(log: &str) -> Vec<(&str, &str)> {
    let mut id_segments = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < log.len() {
        if let Some(length) = log.is_char_boundary(at).then(|| id_length(&log[at..])).flatten() {
            id_segments.push((&log[start..at], &log[at..at + length]));
            at += length;
            start = at;
        } else {
            at += 1;
        }
    }
    id_segments.push((&log[start..], ""));
    id_segments
}

fn push_renamed(id: &str, salt: &str, copy: &mut String) {
    let digest = hash(format!("{salt} {id}").as_bytes()) & 0xffff_ffff_ffff;
    match id.len() {
        0 => {}
        36 => *copy += &format!("{}{digest:012x}", &id[..24]),
        _ => *copy += &format!("{id}{digest:012x}"),
    }
}

/// The length of the id at the start of the text: a UUID, or a provider's id such as `toolu_…`.
fn id_length(text: &str) -> Option<usize> {
    let word = |text: &str| text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    for prefix in ["msg_", "toolu_", "req_"] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return Some(prefix.len() + word(rest)).filter(|length| *length >= 12 && *length != 36);
        }
    }
    let bytes = text.as_bytes().get(..36)?;
    let uuid = bytes.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
    });
    uuid.then_some(36)
}

/// FNV-1a, good enough for names.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
