//! What became of the lines that a session added: whether git still has them. The diffs are those of
//! [`Changes`](super::Changes); git and the archive are read elsewhere (`unspool-query`).

use std::collections::VecDeque;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::block::{Diff, DiffKind, Span, Tone};
use crate::present::blame::LineKey;
use crate::present::format;

/// What git has of the changes of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// The commits that hold lines of the session, newest first.
    pub commits: Vec<StandingCommit>,
    /// One for each file of the changes, in their order. None: git does not know the file.
    pub files: Vec<Option<FileStanding>>,
}

/// A commit that holds lines of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StandingCommit {
    pub id: String,
    pub author: String,
    pub at: Option<Timestamp>,
    pub subject: String,
    /// The lines that it added.
    pub added: usize,
    /// Those of them that the session wrote.
    pub lines: usize,
    /// Those of them with the exact text of an edit.
    pub exact: usize,
}

/// The added lines of a file, in the order of its diff.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FileStanding {
    pub path: String,
    pub name: String,
    pub lines: Vec<LineStanding>,
}

/// One added line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineStanding {
    /// Its number after the change, if the log has it.
    pub line: Option<u64>,
    pub state: LineState,
    /// The commit at HEAD that the line stands in.
    pub commit: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineState {
    /// HEAD has the line, and the session wrote it.
    Stands,
    /// The file on disk has its text, HEAD does not.
    Uncommitted,
    /// Neither has its text.
    Gone,
    /// Its text is there, but says too little to tell who wrote it, or another wrote it since.
    Unknown,
}

/// A line of a file at HEAD.
pub struct HeadLine<'a> {
    pub text: &'a str,
    /// The commit that git names, if the session wrote the line.
    pub commit: Option<&'a str>,
}

impl FileStanding {
    /// Compares the added lines of a diff with the file at HEAD and with its text on disk. Lines with
    /// the same text are taken in order.
    pub fn new(diff: &Diff, head: &[HeadLine<'_>], on_disk: &str) -> FileStanding {
        let mut own: FxHashMap<LineKey, VecDeque<&str>> = FxHashMap::default();
        let mut others: FxHashMap<LineKey, usize> = FxHashMap::default();
        let mut disk: FxHashMap<LineKey, usize> = FxHashMap::default();
        for text in on_disk.lines() {
            *disk.entry(LineKey::of(text)).or_default() += 1;
        }
        for line in head {
            let key = LineKey::of(line.text);
            match line.commit {
                Some(commit) => own.entry(key).or_default().push_back(commit),
                None => *others.entry(key).or_default() += 1,
            }
            take(&mut disk, key);
        }
        let added = diff.hunks.iter().flat_map(|hunk| &hunk.lines);
        let added = added.filter(|line| line.kind == DiffKind::Added);
        let lines = added.map(|line| {
            let text = line.text();
            let key = LineKey::of(&text);
            let commit = own.get_mut(&key).and_then(VecDeque::pop_front);
            let state = match commit {
                Some(_) => LineState::Stands,
                None if text.trim().is_empty() => LineState::Unknown,
                None if take(&mut others, key) => LineState::Unknown,
                None if take(&mut disk, key) => LineState::Uncommitted,
                None => LineState::Gone,
            };
            LineStanding { line: line.new, state, commit: commit.map(str::to_owned) }
        });
        FileStanding { lines: lines.collect(), ..FileStanding::default() }
    }

    fn count(&self, state: LineState) -> usize {
        self.lines.iter().filter(|line| line.state == state).count()
    }

    /// How many of its lines still stand; nothing for a file without added lines.
    pub fn summary(&self) -> Vec<Span> {
        summary([self].into_iter())
    }
}

/// Takes one from a count. False if there is none.
fn take(counts: &mut FxHashMap<LineKey, usize>, key: LineKey) -> bool {
    let Some(count) = counts.get_mut(&key).filter(|count| **count > 0) else { return false };
    *count -= 1;
    true
}

impl Standing {
    /// Whether git has anything to say about the changes.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.files.iter().all(Option::is_none)
    }

    /// How many of all added lines still stand.
    pub fn summary(&self) -> Vec<Span> {
        summary(self.files.iter().flatten())
    }
}

/// "12 of 15 added lines stand at HEAD, 2 are not committed, 1 is gone".
fn summary<'a>(files: impl Iterator<Item = &'a FileStanding> + Clone) -> Vec<Span> {
    let count = |state| files.clone().map(|file| file.count(state)).sum::<usize>();
    let lines: usize = files.clone().map(|file| file.lines.len()).sum();
    if lines == 0 {
        return Vec::new();
    }
    let be = |count: usize| if count == 1 { "is" } else { "are" };
    let stands = count(LineState::Stands);
    let stand = if lines == 1 { "stands" } else { "stand" };
    let of = format::count(lines, "added line");
    let mut spans = vec![Span::plain(format!("{stands} of {of} {stand} at HEAD"))];
    let uncommitted = count(LineState::Uncommitted);
    if uncommitted > 0 {
        let are = be(uncommitted);
        spans
            .push(Span::plain(format!(", {uncommitted} {are} not committed")).toned(Tone::Warning));
    }
    let gone = count(LineState::Gone);
    if gone > 0 {
        spans.push(Span::plain(format!(", {gone} {} gone", be(gone))).toned(Tone::Removed));
    }
    let unknown = count(LineState::Unknown);
    if unknown > 0 {
        let say = if unknown == 1 { "says" } else { "say" };
        spans.push(Span::plain(format!(", {unknown} {say} too little to tell")).dim());
    }
    spans
}

impl StandingCommit {
    /// The commit in one line: its short id, day, subject and how much of it the session wrote.
    pub fn line(&self) -> Vec<Span> {
        let day = self.at.map(|at| at.strftime("%Y-%m-%d").to_string()).unwrap_or_default();
        vec![
            Span::plain(self.short_id().to_owned()).path(),
            Span::plain(format!("  {day}  ")).dim(),
            Span::plain(self.subject.clone()),
            Span::plain(format!("  {} of {}", self.lines, format::count(self.added, "line"))).dim(),
        ]
    }

    pub fn short_id(&self) -> &str {
        self.id.get(..10).unwrap_or(&self.id)
    }
}

#[cfg(test)]
#[path = "standing_tests.rs"]
mod tests;
