//! Rollouts of Codex that go on from another one's history, which is not in their file: a fork
//! (`history_base` names another thread), or what follows after the user went back (`history_base`
//! names the thread itself, and the file is a second one of it). Their text is put together.
//!
//! ```text
//! a fork                                   after going back
//!   its own first line                       the whole text of the file before
//!   the base's text, up to the cut           its own text
//!   the rest of its own
//! ```
//!
//! The base is looked for by its thread's id in the names of the files that lie around. What is
//! not found is left out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// How many forks of forks are followed. A chain that is longer is a circle.
const DEPTH: usize = 64;
/// The first line holds the instructions of the model, and no more.
const FIRST_LINE: u64 = 4 * 1024 * 1024;
/// What of it says that it is the first line of a rollout.
const BEGINNING: u64 = 256;

/// A stretch of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    path: PathBuf,
    from: u64,
    /// Up to its end, if not told.
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

/// The pieces that a rollout's text is made of; nothing if it is all in its file.
pub fn pieces(path: &Path) -> Option<Vec<Piece>> {
    let (head, length) = head(path)?;
    head.payload.history_base.as_ref()?;
    let pieces = compose(path, head, length, None, DEPTH);
    (pieces.len() > 1).then_some(pieces)
}

fn compose(path: &Path, head: Head, length: u64, to: Option<u64>, depth: usize) -> Vec<Piece> {
    let piece = |from, to| Piece { path: path.to_owned(), from, to };
    let Some(base) = head.payload.history_base else { return vec![piece(0, to)] };
    let own = head.payload.id.as_deref() == Some(base.thread_id.as_str());
    let found = depth.checked_sub(1).and_then(|_| find(path, &base.thread_id));
    let Some(found) = found else { return vec![piece(0, to)] };
    let Some((before, skip)) = self::head(&found) else { return vec![piece(0, to)] };
    if own {
        let mut pieces = compose(&found, before, skip, None, depth - 1);
        pieces.push(piece(0, to));
        return pieces;
    }
    let mut pieces = vec![piece(0, Some(length))];
    let end = cut(&found, &base).unwrap_or(base.end_byte_offset);
    pieces.extend(compose(&found, before, skip, Some(end), depth - 1));
    pieces.push(piece(length, to));
    pieces
}

/// Where the history that a fork has of its base ends: before the record with this ordinal. The
/// offset says the same, unless the base was rewritten since.
fn cut(path: &Path, base: &Base) -> Option<u64> {
    let end = base.end_ordinal_exclusive?;
    let mut text = BufReader::new(open(path).ok()?);
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        line.clear();
        let length = text.read_until(b'\n', &mut line).ok()?;
        let told: Option<Ordinal> = serde_json::from_slice(&line).ok();
        let ordinal = told.and_then(|told| told.ordinal);
        if length == 0 || ordinal.is_some_and(|ordinal| ordinal >= end) {
            return Some(at);
        }
        // A legacy rollout numbers nothing.
        ordinal?;
        at += length as u64;
    }
}

/// The first line of a rollout, and how long it is.
fn head(path: &Path) -> Option<(Head, u64)> {
    let mut text = open(path).ok()?.take(FIRST_LINE);
    // Nearly all files are something else, and need not be read any further.
    let mut line = Vec::new();
    text.by_ref().take(BEGINNING).read_to_end(&mut line).ok()?;
    memchr::memmem::find(&line, b"\"session_meta\"")?;
    match memchr::memchr(b'\n', &line) {
        Some(end) => line.truncate(end + 1),
        None => _ = BufReader::new(text).read_until(b'\n', &mut line).ok()?,
    }
    let head: Head = serde_json::from_slice(&line).ok()?;
    let whole = head.r#type == "session_meta" && line.ends_with(b"\n");
    whole.then_some((head, line.len() as u64))
}

/// The first rollout of a thread, among those that lie in the same tree: the sessions of Codex and
/// those that it has put away, or the folder of the file.
fn find(beside: &Path, thread: &str) -> Option<PathBuf> {
    // A path that somebody typed may begin in the middle of the tree.
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
        gather(&folder, thread, 5, &mut found);
    }
    found.retain(|path| path != beside);
    found.sort();
    found.into_iter().next()
}

fn gather(folder: &Path, thread: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if kind.is_dir() && depth > 0 {
            gather(&entry.path(), thread, depth - 1, found);
        } else if kind.is_file() && first_of(name, thread) {
            found.push(entry.path());
        }
    }
}

/// Whether a file is a thread's first one. What followed after going back is named with an id
/// behind the thread's.
fn first_of(name: &str, thread: &str) -> bool {
    let name = name.strip_suffix(".zst").unwrap_or(name);
    let stem = name.strip_prefix("rollout-").and_then(|name| name.strip_suffix(".jsonl"));
    stem.is_some_and(|stem| stem.strip_suffix(thread).is_some_and(|time| time.ends_with('-')))
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let file = File::open(path)?;
    Ok(if path.extension().is_some_and(|form| form == "zst") {
        Box::new(zstd::Decoder::new(file)?)
    } else {
        Box::new(file)
    })
}

/// The text of the pieces, one behind the other.
pub fn text(pieces: &[Piece]) -> io::Result<Box<dyn Read + Send>> {
    let mut text: Box<dyn Read + Send> = Box::new(io::empty());
    for piece in pieces {
        let packed = piece.path.extension().is_some_and(|form| form == "zst");
        let mut part: Box<dyn Read + Send> = if packed {
            let mut part = open(&piece.path)?;
            io::copy(&mut (&mut part).take(piece.from), &mut io::sink())?;
            part
        } else {
            let mut file = File::open(&piece.path)?;
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

/// How long the text of the pieces is, where no file has to be unpacked to know.
pub fn length(pieces: &[Piece]) -> Option<u64> {
    let mut sum = 0_u64;
    for piece in pieces {
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
