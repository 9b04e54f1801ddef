//! Codex rollouts whose history is in another file: a fork (`history_base` names another thread),
//! or a continuation after the user rewound (`history_base` names the same thread, and the file is
//! a second one of it). The text is composed from ranges of several files:
//!
//! ```text
//! a fork                                   after a rewind
//!   its own first line                       the whole text of the earlier file
//!   the base's text, up to the cut           its own text
//!   the rest of its own
//! ```
//!
//! The base is found by its thread id in the file names of the same tree. If it is missing, its
//! text is left out.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::packed::Unpacked;
use super::regular_file::open_regular;

/// How many forks of forks are followed. A longer chain is a cycle.
const MAX_FORK_DEPTH: usize = 64;
/// The first line holds the model's instructions.
const MAX_FIRST_LINE_BYTES: u64 = 4 * 1024 * 1024;
/// How many bytes identify the first line of a rollout.
const SNIFF_BYTES: u64 = 256;

/// A byte range of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRange {
    path: PathBuf,
    from: u64,
    /// `None`: to the end of the file.
    to: Option<u64>,
}

#[derive(Deserialize)]
struct Head {
    r#type: String,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    id: Option<String>,
    history_base: Option<Base>,
}

#[derive(Deserialize)]
struct Base {
    thread_id: String,
    end_ordinal_exclusive: Option<u64>,
    end_byte_offset: u64,
}

#[derive(Deserialize)]
struct Ordinal {
    ordinal: Option<u64>,
}

/// The ranges that make up a rollout's text; `None` if it is all in its own file.
pub fn ranges(path: &Path) -> Option<Vec<FileRange>> {
    let (head, length) = head(path)?;
    head.payload.history_base.as_ref()?;
    let ranges = compose(path, head, length, None, MAX_FORK_DEPTH);
    (ranges.len() > 1).then_some(ranges)
}

fn compose(path: &Path, head: Head, length: u64, to: Option<u64>, depth: usize) -> Vec<FileRange> {
    let piece = |from, to| FileRange { path: path.to_owned(), from, to };
    let Some(base) = head.payload.history_base else { return vec![piece(0, to)] };
    let own = head.payload.id.as_deref() == Some(base.thread_id.as_str());
    let found = depth.checked_sub(1).and_then(|_| find(path, &base.thread_id));
    let Some(found) = found else { return vec![piece(0, to)] };
    let Some((before, skip)) = self::head(&found) else { return vec![piece(0, to)] };
    if own {
        let mut ranges = compose(&found, before, skip, None, depth - 1);
        ranges.push(piece(0, to));
        return ranges;
    }
    let mut ranges = vec![piece(0, Some(length))];
    let end = cut(&found, &base).unwrap_or(base.end_byte_offset);
    ranges.extend(compose(&found, before, skip, Some(end), depth - 1));
    ranges.push(piece(length, to));
    ranges
}

/// The end of the base's history in a fork: the offset of the record with the end ordinal. The
/// recorded byte offset is only a fallback, because the base may have been rewritten since.
fn cut(path: &Path, base: &Base) -> Option<u64> {
    let end = base.end_ordinal_exclusive?;
    let mut text = BufReader::new(open(path).ok()?);
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        line.clear();
        let length = text.read_until(b'\n', &mut line).ok()?;
        let record: Option<Ordinal> = serde_json::from_slice(&line).ok();
        let ordinal = record.and_then(|record| record.ordinal);
        if length == 0 || ordinal.is_some_and(|ordinal| ordinal >= end) {
            return Some(at);
        }
        // Legacy rollouts have no ordinals.
        ordinal?;
        at += length as u64;
    }
}

/// The first line of a rollout, and its length.
fn head(path: &Path) -> Option<(Head, u64)> {
    let mut text = open(path).ok()?.take(MAX_FIRST_LINE_BYTES);
    // Nearly all files are not rollouts; do not read further.
    let mut line = Vec::new();
    text.by_ref().take(SNIFF_BYTES).read_to_end(&mut line).ok()?;
    memchr::memmem::find(&line, b"\"session_meta\"")?;
    match memchr::memchr(b'\n', &line) {
        Some(end) => line.truncate(end + 1),
        None => _ = BufReader::new(text).read_until(b'\n', &mut line).ok()?,
    }
    let head: Head = serde_json::from_slice(&line).ok()?;
    let whole = head.r#type == "session_meta" && line.ends_with(b"\n");
    whole.then_some((head, line.len() as u64))
}

/// The first rollout of a thread in the same tree: Codex's `sessions` and `archived_sessions`, or
/// else the folder of the file.
fn find(beside: &Path, thread: &str) -> Option<PathBuf> {
    // A relative path may begin in the middle of the tree.
    let beside = &*std::path::absolute(beside).ok()?;
    let folder = beside.parent()?;
    let named = |piece: &Path| {
        matches!(
            piece.file_name().and_then(|name| name.to_str()),
            Some("sessions" | "archived_sessions")
        )
    };
    let home = folder.ancestors().find(|piece| named(piece)).and_then(Path::parent);
    let folders = match home {
        Some(home) => vec![home.join("sessions"), home.join("archived_sessions")],
        None => vec![folder.to_owned()],
    };
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders {
        collect_rollouts(&folder, thread, 5, &mut found);
    }
    found.retain(|path| path != beside);
    found.sort();
    found.into_iter().next()
}

fn collect_rollouts(folder: &Path, thread: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if kind.is_dir() && depth > 0 {
            collect_rollouts(&entry.path(), thread, depth - 1, found);
        } else if kind.is_file() && first_of(name, thread) {
            found.push(entry.path());
        }
    }
}

/// True for the first file of a thread. A file written after a rewind has another id after the
/// thread's.
fn first_of(name: &str, thread: &str) -> bool {
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let stem = name.strip_prefix("rollout-").and_then(|name| name.strip_suffix(".jsonl"));
    stem.is_some_and(|stem| stem.strip_suffix(thread).is_some_and(|time| time.ends_with('-')))
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let file = open_regular(path)?;
    Ok(if path.extension().is_some_and(|form| form == "zst") {
        Box::new(Unpacked::new(file)?)
    } else {
        Box::new(file)
    })
}

/// The concatenated text of the ranges.
pub fn text(ranges: &[FileRange]) -> io::Result<Box<dyn Read + Send>> {
    let mut text: Box<dyn Read + Send> = Box::new(io::empty());
    for piece in ranges {
        let packed = piece.path.extension().is_some_and(|form| form == "zst");
        let mut part: Box<dyn Read + Send> = if packed {
            let mut part = open(&piece.path)?;
            io::copy(&mut (&mut part).take(piece.from), &mut io::sink())?;
            part
        } else {
            let mut file = open_regular(&piece.path)?;
            file.seek(SeekFrom::Start(piece.from))?;
            Box::new(file)
        };
        if let Some(to) = piece.to {
            part = Box::new(part.take(to.saturating_sub(piece.from)));
        }
        text = Box::new(text.chain(part));
    }
    Ok(text)
}

/// The length of the text; `None` if a file would have to be decompressed to know it.
pub fn length(ranges: &[FileRange]) -> Option<u64> {
    let mut sum = 0_u64;
    for piece in ranges {
        let end = match piece.to {
            Some(to) => to,
            None if piece.path.extension().is_some_and(|form| form == "zst") => return None,
            None => piece.path.metadata().ok()?.len(),
        };
        sum = sum.saturating_add(end.saturating_sub(piece.from));
    }
    Some(sum)
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
