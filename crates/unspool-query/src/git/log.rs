//! `git log -p`: the commits of files and the lines that each changed.

use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use unspool_view::present::blame::{CommitLine, CommitLines, LineKey, VersionLine, source_lines};

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
    /// The ids of its texts before and after. None if the commit only renamed it.
    pub blobs: Option<(String, String)>,
    /// The lines before that each hunk replaces, by their indexes.
    pub replaced: Vec<Range<usize>>,
    /// The lines that the commit has more often than the version before.
    added_keys: FxHashMap<LineKey, isize>,
    /// All lines that git shows as added.
    pub added: usize,
    /// The commit only laid the text of the file out anew. Its lines then count neither as added nor
    /// as removed.
    pub run: Option<FormatterRun>,
}

/// What a formatter did: the hunks of its diff in order.
#[derive(Clone, Default)]
pub struct FormatterRun {
    hunks: Vec<RunHunk>,
}

#[derive(Clone)]
struct RunHunk {
    /// The numbers of its first lines, and of the first lines after it.
    old: Range<u32>,
    new: Range<u32>,
    /// For each of its lines the first and the last line before of which it consists.
    lines: Vec<(u32, u32)>,
}

/// The lines before of which a line consists.
pub struct SourceLines {
    pub first: u32,
    pub last: u32,
}

impl FormatterRun {
    /// The lines before of which a line of the file consists. None for a blank line of its own.
    pub fn before(&self, line: u32) -> Option<SourceLines> {
        let at = self.hunks.partition_point(|hunk| hunk.new.end <= line);
        if let Some(hunk) = self.hunks.get(at).filter(|hunk| hunk.new.contains(&line)) {
            let at = (line - hunk.new.start) as usize;
            let (first, last) = *hunk.lines.get(at)?;
            return (first > 0).then_some(SourceLines { first, last });
        }
        let (old, new) = match at.checked_sub(1).and_then(|before| self.hunks.get(before)) {
            Some(hunk) => (hunk.old.end, hunk.new.end),
            None => (1, 1),
        };
        let number = (line + old).checked_sub(new)?;
        Some(SourceLines { first: number, last: number })
    }
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
        "--full-index",
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
    for file in commits.iter_mut().flat_map(|commit| &mut commit.files) {
        file.leave_out_run();
    }
    commits.reverse();
    commits
}

#[derive(Default)]
struct Reader {
    commits: Vec<Commit>,
    /// Lines of the hunk that are left, before and after the change.
    old_left: u64,
    new_left: u64,
    /// The numbers of the next line before and after the change.
    next_old: u32,
    next: u32,
    /// The hunk before the change: its first number and its texts. None once the diff of the file
    /// says that it is no formatter run.
    old: Option<(u32, Vec<String>)>,
    /// The first line of the hunk among those of its file.
    from: usize,
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
        } else if let Some(blobs) = line.strip_prefix(b"index ") {
            let text = String::from_utf8_lossy(blobs);
            let blobs = text.split(' ').next().and_then(|blobs| blobs.split_once(".."));
            let blobs = blobs.map(|(old, new)| (old.to_owned(), new.to_owned()));
            self.file().into_iter().for_each(|file| file.blobs = blobs.clone());
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
        if let (Some((next_old, old)), Some((next, new))) = (range('-'), range('+')) {
            (self.old_left, self.new_left) = (old, new);
            // A side without lines is named by the line before it.
            self.next_old = next_old + u32::from(old == 0);
            self.next = next;
            let Some(file) = self.file() else { return };
            let first = next_old.saturating_sub(u32::from(old > 0)) as usize;
            file.replaced.push(first..first.saturating_add(old as usize));
            file.lines.lines.push(CommitLine::hunk_break());
            let is_first = file.lines.lines.len() == 1;
            let may_be_run = is_first || file.run.is_some();
            self.from = file.lines.lines.len();
            self.old = may_be_run.then(|| (self.next_old, Vec::new()));
        }
    }

    fn hunk_line(&mut self, line: &[u8]) {
        let (mark, text) = line.split_first().map_or((b' ', line), |(mark, text)| (*mark, text));
        let text = String::from_utf8_lossy(text);
        let is_old = matches!(mark, b'-' | b' ');
        let is_new = matches!(mark, b'+' | b' ');
        if is_old {
            self.old_left = self.old_left.saturating_sub(1);
            if let Some((_, texts)) = &mut self.old {
                texts.push(text.clone().into_owned());
            }
        }
        let number = self.next;
        if is_new {
            self.new_left = self.new_left.saturating_sub(1);
            self.next += 1;
        }
        let Some(file) = self.commits.last_mut().and_then(|commit| commit.files.last_mut()) else {
            return;
        };
        if mark != b' ' {
            *file.added_keys.entry(LineKey::of(&text)).or_default() += if is_new { 1 } else { -1 };
        }
        if is_new {
            file.added += usize::from(mark == b'+');
            file.lines.lines.push(CommitLine::new(text.into_owned(), number, mark == b'+'));
        }
        // Not after `\ No newline at end of file`.
        if (is_old || is_new) && self.old_left == 0 && self.new_left == 0 {
            let old = self.old.take();
            file.run = old.and_then(|(first, texts)| run_hunk(file, self.from, first, &texts)).map(
                |hunk| {
                    let mut run = file.run.take().unwrap_or_default();
                    run.hunks.push(hunk);
                    run
                },
            );
        }
    }
}

/// The hunk of a file's diff whose lines begin at `from`, if it only lays text out anew.
fn run_hunk(file: &CommitFile, from: usize, first: u32, old: &[String]) -> Option<RunHunk> {
    let new = file.lines.lines.get(from..)?;
    let old_texts: Vec<&str> = old.iter().map(String::as_str).collect();
    let texts: Vec<&str> = new.iter().map(|line| line.text.as_str()).collect();
    let sources = source_lines(&old_texts, &texts)?;
    let number = |at: usize| first + at as u32;
    let lines = sources.into_iter().map(|range| match range.is_empty() {
        true => (0, 0),
        false => (number(range.start), number(range.end - 1)),
    });
    let start = new.first().map_or(0, |line| line.number);
    Some(RunHunk {
        old: first..number(old.len()),
        new: start..start + new.len() as u32,
        lines: lines.collect(),
    })
}

impl CommitFile {
    /// The lines before that each hunk replaces, and the lines of the hunk after.
    pub fn changes(&self) -> Vec<(Range<usize>, Vec<VersionLine>)> {
        let hunks = self.lines.lines.split(CommitLine::is_hunk_break).skip(1);
        let lines = hunks.map(|hunk| hunk.iter().map(CommitLine::version_line).collect());
        self.replaced.iter().cloned().zip(lines).collect()
    }

    /// The lines that the commit has more often than the version before.
    pub fn added_keys(&self) -> Vec<LineKey> {
        let more = self.added_keys.iter().filter(|(_, count)| **count > 0);
        more.flat_map(|(key, count)| std::iter::repeat_n(*key, count.unsigned_abs())).collect()
    }

    /// A formatter run neither adds nor removes lines.
    fn leave_out_run(&mut self) {
        let Some(run) = &self.run else { return };
        for line in &mut self.lines.lines {
            line.is_added &= run.before(line.number).is_none();
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
