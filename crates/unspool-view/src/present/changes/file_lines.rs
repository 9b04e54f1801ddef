//! A file as far as the log shows it: which lines of the original are still there, which lines were
//! added, and the texts that edits and reads revealed. Applying every edit in order to it and
//! comparing with the original gives the net change, without the file itself.

use std::collections::BTreeMap;

use crate::block::{Diff, DiffKind, Hunk};
use crate::present::diff;

/// A file with more pieces than this is not followed further. It bounds the cost of an edit.
const MAX_PIECES: usize = 4096;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub text: String,
    /// It is the last one and does not end with a newline.
    pub no_newline: bool,
}

/// A run of lines of the file as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// Lines of the original, from this one (0 is the first). The count of the rest of a file
    /// whose length is unknown is [`UNKNOWN_LENGTH`].
    Kept {
        from: u64,
        count: u64,
    },
    Added(Vec<Line>),
}

const UNKNOWN_LENGTH: u64 = u64::MAX / 4;

/// Why an edit cannot be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApplyError {
    /// The file is not as the edits before left it.
    Mismatch,
    /// The position of the edit is not recorded and cannot be found.
    NoPosition,
    TooManyPieces,
}

/// One line of a part of the file that is being rewritten.
enum Slot {
    Kept(u64),
    Added(Line),
}

#[derive(Clone, Debug)]
pub struct FileLines {
    /// The known lines of the original, by index.
    pub original: BTreeMap<u64, Line>,
    /// None while it is unknown.
    pub original_length: Option<u64>,
    pub pieces: Vec<Piece>,
}

impl FileLines {
    /// A file of which nothing is known.
    pub fn without_text() -> FileLines {
        let rest = Piece::Kept { from: 0, count: UNKNOWN_LENGTH };
        FileLines { original: BTreeMap::new(), original_length: None, pieces: vec![rest] }
    }

    /// A file that does not exist yet.
    pub fn absent() -> FileLines {
        FileLines { original: BTreeMap::new(), original_length: Some(0), pieces: Vec::new() }
    }

    /// Whether every line of the original is known.
    pub fn has_whole_original(&self) -> bool {
        self.original_length.is_some_and(|length| self.original.len() as u64 == length)
    }

    /// The lines of the file as it is now, if all are known.
    fn lines(&self) -> Option<Vec<Line>> {
        let mut lines = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Kept { count: UNKNOWN_LENGTH.., .. } => return None,
                Piece::Kept { from, count } => {
                    let known = self.original.range(*from..from + count);
                    let length = lines.len() as u64;
                    lines.extend(known.map(|(_, line)| line.clone()));
                    if lines.len() as u64 - length != *count {
                        return None;
                    }
                }
                Piece::Added(added) => lines.extend(added.iter().cloned()),
            }
        }
        Some(lines)
    }

    /// The whole text as it is now, if it is known.
    pub fn text(&self) -> Option<String> {
        let lines = self.lines()?;
        let mut text = String::new();
        for line in &lines {
            text.push_str(&line.text);
            if !line.no_newline {
                text.push('\n');
            }
        }
        Some(text)
    }

    /// Notes what somebody read or recorded: the whole text as it is now.
    pub fn learn(&mut self, text: &str) -> Result<(), ApplyError> {
        let lines = split(text);
        let total = lines.len() as u64;
        let is_open = |piece: &Piece| matches!(piece, Piece::Kept { count: UNKNOWN_LENGTH.., .. });
        let before: u64 =
            self.pieces.iter().filter(|piece| !is_open(piece)).map(Piece::length).sum();
        match self.pieces.iter_mut().find(|piece| is_open(piece)) {
            Some(Piece::Kept { from, count }) => {
                *count = total.checked_sub(before).ok_or(ApplyError::Mismatch)?;
                self.original_length = Some(*from + *count);
            }
            Some(Piece::Added(_)) | None if before != total => return Err(ApplyError::Mismatch),
            Some(Piece::Added(_)) | None => {}
        }
        self.pieces.retain(|piece| piece.length() > 0);
        let mut lines = lines.into_iter();
        let mut learned = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Kept { from, count } => {
                    learned.extend((*from..from + count).zip(lines.by_ref()));
                }
                Piece::Added(added) => {
                    let same =
                        added.iter().zip(lines.by_ref()).all(|(a, b)| same_text(&a.text, &b.text));
                    if !same {
                        return Err(ApplyError::Mismatch);
                    }
                }
            }
        }
        learned.into_iter().try_for_each(|(at, line)| self.learn_line(at, line))
    }

    /// Notes the text of a line of the original.
    fn learn_line(&mut self, at: u64, line: Line) -> Result<(), ApplyError> {
        let known = self.original.entry(at).or_insert_with(|| line.clone());
        known.no_newline |= line.no_newline;
        if same_text(&known.text, &line.text) { Ok(()) } else { Err(ApplyError::Mismatch) }
    }

    /// Replaces everything. False if lines of the original that were still there are unknown.
    pub fn replace_all(&mut self, text: &str) -> bool {
        if let Some(old) = self.text() {
            // Keeps the lines that did not change, as a patch would.
            let diff = diff::between(None, &old, text, Some(1));
            if self.apply(&diff).is_ok() {
                self.end_like(text);
                return true;
            }
        }
        let is_known = self.has_whole_original();
        self.pieces = vec![Piece::Added(split(text))];
        is_known
    }

    /// Whether the last line has a newline is not part of a diff between two texts.
    fn end_like(&mut self, text: &str) {
        let no_newline = !text.is_empty() && !text.ends_with('\n');
        match self.pieces.last_mut() {
            Some(Piece::Added(lines)) => {
                lines.last_mut().into_iter().for_each(|line| line.no_newline = no_newline);
            }
            Some(Piece::Kept { from, count }) => {
                let last = (*from + *count).checked_sub(1);
                let Some(line) = last.and_then(|last| self.original.get(&last)).cloned() else {
                    return;
                };
                if line.no_newline != no_newline {
                    *count -= 1;
                    self.pieces.push(Piece::Added(vec![Line { no_newline, ..line }]));
                    self.pieces.retain(|piece| piece.length() > 0);
                }
            }
            None => {}
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Applies a diff whose lines are numbered.
    pub fn apply(&mut self, diff: &Diff) -> Result<(), ApplyError> {
        let mut shift = 0;
        for hunk in &diff.hunks {
            let start = start_of(hunk, shift).ok_or(ApplyError::NoPosition)?;
            self.apply_hunk(start, hunk)?;
            let count = |kind| hunk.lines.iter().filter(|line| line.kind == kind).count();
            shift += count(DiffKind::Added) as i64 - count(DiffKind::Removed) as i64;
        }
        Ok(())
    }

    fn apply_hunk(&mut self, start: u64, hunk: &Hunk) -> Result<(), ApplyError> {
        let old = hunk.lines.iter().filter(|line| line.kind != DiffKind::Added).count();
        let (first, slots) = self.take(start, old)?;
        let mut slots = slots.into_iter();
        let mut put = PieceBuilder::default();
        for line in &hunk.lines {
            let seen = Line { text: line.text(), no_newline: line.no_newline };
            if line.kind == DiffKind::Added {
                put.added(seen);
                continue;
            }
            let slot = slots.next().ok_or(ApplyError::Mismatch)?;
            match &slot {
                Slot::Kept(at) => self.learn_line(*at, seen)?,
                Slot::Added(line) if same_text(&line.text, &seen.text) => {}
                Slot::Added(_) => return Err(ApplyError::Mismatch),
            }
            if line.kind == DiffKind::Context {
                put.slot(slot);
            }
        }
        self.pieces.splice(first..first, put.pieces);
        if self.pieces.len() > MAX_PIECES {
            return Err(ApplyError::TooManyPieces);
        }
        Ok(())
    }

    /// Takes `count` lines from line `start` on out of the pieces, and returns them with the index
    /// of the piece behind them.
    fn take(&mut self, start: u64, count: usize) -> Result<(usize, Vec<Slot>), ApplyError> {
        let first = self.split_at(start)?;
        let mut slots = Vec::with_capacity(count.min(65_536));
        while slots.len() < count {
            let left = (count - slots.len()) as u64;
            match self.pieces.get_mut(first).ok_or(ApplyError::Mismatch)? {
                Piece::Kept { from, count } => {
                    let taken = left.min(*count);
                    slots.extend((*from..*from + taken).map(Slot::Kept));
                    *from += taken;
                    if *count < UNKNOWN_LENGTH {
                        *count -= taken;
                    }
                }
                Piece::Added(lines) => {
                    let taken = left.min(lines.len() as u64) as usize;
                    slots.extend(lines.drain(..taken).map(Slot::Added));
                }
            }
            if self.pieces[first].length() == 0 {
                self.pieces.remove(first);
            }
        }
        Ok((first, slots))
    }

    /// The index of the piece that starts at this line; splits one if needed.
    fn split_at(&mut self, line: u64) -> Result<usize, ApplyError> {
        let mut left = line;
        for (at, piece) in self.pieces.iter_mut().enumerate() {
            if left == 0 {
                return Ok(at);
            }
            if left < piece.length() {
                let rest = piece.split_off(left);
                self.pieces.insert(at + 1, rest);
                return Ok(at + 1);
            }
            left -= piece.length();
        }
        if left == 0 { Ok(self.pieces.len()) } else { Err(ApplyError::Mismatch) }
    }
}

impl Piece {
    pub fn length(&self) -> u64 {
        match self {
            Piece::Kept { count, .. } => *count,
            Piece::Added(lines) => lines.len() as u64,
        }
    }

    fn split_off(&mut self, at: u64) -> Piece {
        match self {
            Piece::Kept { from, count } => {
                let rest = if *count < UNKNOWN_LENGTH { *count - at } else { UNKNOWN_LENGTH };
                *count = at;
                Piece::Kept { from: *from + at, count: rest }
            }
            Piece::Added(lines) => Piece::Added(lines.split_off(at as usize)),
        }
    }

    /// The rest of a file whose length is unknown.
    pub fn is_open(&self) -> bool {
        self.length() >= UNKNOWN_LENGTH
    }
}

/// Joins neighbouring lines into pieces.
#[derive(Default)]
struct PieceBuilder {
    pieces: Vec<Piece>,
}

impl PieceBuilder {
    fn added(&mut self, line: Line) {
        match self.pieces.last_mut() {
            Some(Piece::Added(lines)) => lines.push(line),
            Some(Piece::Kept { .. }) | None => self.pieces.push(Piece::Added(vec![line])),
        }
    }

    fn slot(&mut self, slot: Slot) {
        match (slot, self.pieces.last_mut()) {
            (Slot::Added(line), _) => self.added(line),
            (Slot::Kept(at), Some(Piece::Kept { from, count })) if *from + *count == at => {
                *count += 1;
            }
            (Slot::Kept(at), Some(_) | None) => {
                self.pieces.push(Piece::Kept { from: at, count: 1 });
            }
        }
    }
}

/// The index of the line at which a hunk starts, in the file after the hunks before it, which moved
/// it by `shift` lines.
fn start_of(hunk: &Hunk, shift: i64) -> Option<u64> {
    // Removed lines have no new number; the line behind them has theirs.
    if let Some(new) = hunk.lines.iter().find_map(|line| line.new) {
        return Some(new.saturating_sub(1));
    }
    let old = hunk.lines.iter().find_map(|line| line.old)?;
    old.saturating_sub(1).checked_add_signed(shift)
}

/// Some diffs have two spaces for each tab (Claude Code).
fn same_text(one: &str, other: &str) -> bool {
    let spaced = |text: &str| text.replace('\t', "  ");
    one == other || (one.contains('\t') != other.contains('\t') && spaced(one) == spaced(other))
}

/// The lines of a text.
pub fn split(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> =
        text.lines().map(|text| Line { text: text.to_owned(), no_newline: false }).collect();
    if !text.ends_with('\n') {
        lines.last_mut().into_iter().for_each(|line| line.no_newline = true);
    }
    lines
}
