//! `git log -p`: the commits of files and the lines that each changed.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use unspool_view::present::blame::{CommitLine, CommitLines, LineKey};

use super::unquote;

/// A commit and the files that it changed.
pub struct Commit {
    pub id: Arc<str>,
    pub author_time: i64,
    pub committer_time: i64,
    pub author: String,
    pub subject: String,
    pub files: Vec<CommitFile>,
}

/// One file in a commit.
#[derive(Default)]
pub struct CommitFile {
    pub path: String,
    /// The name before, if the commit renamed it.
    pub renamed_from: Option<String>,
    pub lines: CommitLines,
    /// How many lines with this text the commit removed.
    pub removed: FxHashMap<LineKey, usize>,
}

/// Begins the line of a commit. Such a byte at the beginning of a line of a diff stands after its
/// mark.
const MARK: u8 = 1;

/// The arguments of `git log`. `follow`: the one path is followed through renames.
pub fn arguments(revisions: &[&str], follow: Follow, paths: &[&Path]) -> Vec<OsString> {
    let options = [
        "log",
        "-p",
        "-U3",
        "-M",
        "--no-merges",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-notes",
        "--no-mailmap",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        "--submodule=short",
        "--inter-hunk-context=0",
        "--diff-algorithm=myers",
        "--encoding=UTF-8",
        "--topo-order",
        "--format=%x01%H%x01%at%x01%ct%x01%an%x01%s",
    ];
    let mut arguments: Vec<OsString> = options.iter().map(OsString::from).collect();
    if follow == Follow::Renames {
        arguments.push("--follow".into());
    }
    arguments.push("--end-of-options".into());
    arguments.extend(revisions.iter().map(OsString::from));
    arguments.push("--".into());
    arguments.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    arguments
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Renames,
    Nothing,
}

/// The commits, oldest first.
pub fn parse(output: &[u8]) -> Vec<Commit> {
    let mut reader = Reader::default();
    for line in output.split(|byte| *byte == b'\n') {
        reader.line(line);
    }
    let mut commits = reader.commits;
    commits.reverse();
    commits
}

#[derive(Default)]
struct Reader {
    commits: Vec<Commit>,
    /// Lines of the hunk that are left, before and after the change.
    old_left: u64,
    new_left: u64,
    /// The number of the next line after the change.
    next: u32,
}

impl Reader {
    fn file(&mut self) -> Option<&mut CommitFile> {
        self.commits.last_mut()?.files.last_mut()
    }

    fn line(&mut self, line: &[u8]) {
        if self.old_left > 0 || self.new_left > 0 {
            return self.hunk_line(line);
        }
        if line.first() == Some(&MARK) {
            self.commits.extend(commit(line));
        } else if line.starts_with(b"diff --git ") {
            let Some(commit) = self.commits.last_mut() else { return };
            let lines = CommitLines {
                author_time: commit.author_time,
                committer_time: commit.committer_time,
                lines: Vec::new(),
            };
            commit.files.push(CommitFile { lines, ..CommitFile::default() });
        } else if let Some(name) = line.strip_prefix(b"rename from ") {
            let name = unquote(name);
            self.file().into_iter().for_each(|file| file.renamed_from = Some(name.clone()));
        } else if let Some(name) = line.strip_prefix(b"rename to ") {
            let name = unquote(name);
            self.file().into_iter().for_each(|file| file.path = name.clone());
        } else if let Some(name) = line.strip_prefix(b"--- ").or_else(|| line.strip_prefix(b"+++ "))
        {
            if let Some(name) = header_name(name) {
                self.file().into_iter().for_each(|file| file.path = name.clone());
            }
        } else if line.starts_with(b"@@ ") {
            self.hunk(line);
        }
    }

    fn hunk(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let range = |mark: char| {
            let range = text.split(' ').find_map(|word| word.strip_prefix(mark))?;
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            Some((start.parse::<u32>().ok()?, count.parse::<u64>().ok()?))
        };
        if let (Some((_, old)), Some((next, new))) = (range('-'), range('+')) {
            (self.old_left, self.new_left, self.next) = (old, new, next);
            if let Some(file) = self.file() {
                file.lines.lines.push(CommitLine::hunk_break());
            }
        }
    }

    fn hunk_line(&mut self, line: &[u8]) {
        let (mark, text) = line.split_first().map_or((b' ', line), |(mark, text)| (*mark, text));
        let text = String::from_utf8_lossy(text);
        let number = self.next;
        match mark {
            b'+' | b' ' => {
                self.next += 1;
                self.new_left = self.new_left.saturating_sub(1);
                if mark == b' ' {
                    self.old_left = self.old_left.saturating_sub(1);
                }
                if let Some(file) = self.file() {
                    let line = CommitLine::new(text.into_owned(), number, mark == b'+');
                    file.lines.lines.push(line);
                }
            }
            b'-' => {
                self.old_left = self.old_left.saturating_sub(1);
                if let Some(file) = self.file() {
                    *file.removed.entry(LineKey::of(&text)).or_default() += 1;
                }
            }
            // `\ No newline at end of file`
            _ => {}
        }
    }
}

fn commit(line: &[u8]) -> Option<Commit> {
    let text = String::from_utf8_lossy(line);
    let mut fields = text.splitn(6, char::from(MARK)).skip(1);
    Some(Commit {
        id: Arc::from(fields.next()?),
        author_time: fields.next()?.parse().ok()?,
        committer_time: fields.next()?.parse().ok()?,
        author: fields.next()?.to_owned(),
        subject: fields.next()?.to_owned(),
        files: Vec::new(),
    })
}

/// The name in a `--- a/name` or `+++ b/name` line; None for `/dev/null`. Git ends a name that has
/// spaces with a tab.
fn header_name(name: &[u8]) -> Option<String> {
    let name = unquote(name.strip_suffix(b"\t").unwrap_or(name));
    let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"))?;
    Some(name.to_owned())
}
