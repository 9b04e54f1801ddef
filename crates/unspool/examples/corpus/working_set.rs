//! The files that a session works on. As agents do, it reads a file repeatedly and edits it in
//! between; the number of open files is limited, which bounds memory.

use std::ops::Range;

use crate::random::{Random, mix};
use crate::sources::{NamingStyle, Place, Sources};

const MAX_OPEN_FILES: usize = 10;
/// Number of files shared by all sessions of a project.
const SHARED_FILES: usize = 48;

pub struct WorkingSet<'a> {
    files: Vec<OpenFile<'a>>,
    naming: &'a NamingStyle,
    folder: String,
    /// Scale of file sizes; constant in a corpus, so that a file has the same content everywhere.
    scale: f64,
}

pub struct OpenFile<'a> {
    pub path: String,
    pub content: String,
    pub place: Place<'a>,
}

/// An edit of a file: the lines before and after.
pub struct Change {
    pub range: Range<usize>,
    /// The number of the first line of `before`, counted from 1.
    pub first: usize,
    pub before: String,
    pub after: String,
    /// Up to three lines around the change.
    pub above: String,
    pub below: String,
}

impl<'a> WorkingSet<'a> {
    pub fn new(naming: &'a NamingStyle, folder: &str, scale: f64) -> WorkingSet<'a> {
        let scale = scale.clamp(0.05, 4.0);
        WorkingSet { files: Vec::new(), naming, folder: folder.to_owned(), scale }
    }

    /// Chooses a file to read: mostly one that is open.
    pub fn choose(&mut self, sources: &Sources, random: &mut Random) -> usize {
        if !self.files.is_empty() && random.chance(400) {
            return random.below(self.files.len());
        }
        let bits = if random.chance(400) {
            self.naming.bits ^ random.below(SHARED_FILES) as u64
        } else {
            random.next()
        };
        // Depends on the bits alone: a shared file is the same in every session.
        let mut content = String::new();
        let place = Place { naming: self.naming, file: mix(bits) };
        let mut own = Random::new(bits);
        let size = (own.skewed(1_500, 40_000) as f64 * self.scale) as usize;
        sources.code(&mut content, &mut own, place, size);
        self.put(sources, bits, content)
    }

    /// Chooses a file to edit: an open one, preferably small.
    pub fn choose_small(&mut self, sources: &Sources, random: &mut Random) -> usize {
        if self.files.len() < 3 {
            return self.choose(sources, random);
        }
        let (one, other) = (random.below(self.files.len()), random.below(self.files.len()));
        let size = |index: usize| self.files[index].content.len();
        if size(one) < size(other) { one } else { other }
    }

    /// Chooses a file that is far larger than others: a lock file, a generated table.
    pub fn choose_large(&mut self, sources: &Sources, random: &mut Random, bytes: usize) -> usize {
        let bits = random.next();
        let mut content = String::new();
        let place = Place { naming: self.naming, file: mix(bits) };
        sources.code(&mut content, random, place, bytes);
        self.put(sources, bits, content)
    }

    /// Adds a file that was just written and returns its index.
    pub fn put(&mut self, sources: &Sources, bits: u64, content: String) -> usize {
        let mut path = format!("{}/", self.folder);
        sources.words.path(&mut path, bits);
        let place = Place { naming: self.naming, file: mix(bits) };
        let file = OpenFile { path, content, place };
        if let Some(index) = self.files.iter().position(|open| open.path == file.path) {
            // Keep the open version: it may have been edited.
            return index;
        }
        if self.files.len() < MAX_OPEN_FILES {
            self.files.push(file);
            return self.files.len() - 1;
        }
        let index = (bits >> 20) as usize % MAX_OPEN_FILES;
        self.files[index] = file;
        index
    }

    pub fn file(&self, index: usize) -> &OpenFile<'a> {
        &self.files[index]
    }

    pub fn apply(&mut self, index: usize, change: &Change) {
        self.files[index].content.replace_range(change.range.clone(), &change.after);
    }
}

impl OpenFile<'_> {
    /// About `bytes` bytes of whole lines, and the number of the first line.
    pub fn slice(&self, random: &mut Random, bytes: usize) -> (&str, usize) {
        let text = self.content.trim_end_matches('\n');
        if text.len() <= bytes + bytes / 2 {
            return (text, 1);
        }
        let start = line_start(text, random.below(text.len() - bytes));
        let end = line_end(text, (start + bytes).min(text.len()));
        (&text[start..end], 1 + count_lines(&text[..start]))
    }

    pub fn count_lines(&self) -> usize {
        count_lines(&self.content).max(1)
    }

    /// A random edit of a few lines.
    pub fn change(&self, sources: &Sources, random: &mut Random) -> Change {
        let text = self.content.trim_end_matches('\n');
        let start = line_start(text, random.below(text.len().max(1)));
        let mut end = start;
        for _ in 0..random.skewed(1, 12) {
            end = line_end(text, (end + 1).min(text.len()));
        }
        let before = &text[start..end];
        let mut after = String::new();
        for line in before.split('\n') {
            if random.chance(450) {
                after.push_str(line);
            } else {
                let indent = line.len() - line.trim_start().len();
                after.push_str(&line[..indent]);
                sources.line_of_code(&mut after, random, self.place);
            }
            after.push('\n');
        }
        for _ in 0..random.below(5) {
            after.push_str("    ");
            sources.line_of_code(&mut after, random, self.place);
            after.push('\n');
        }
        after.pop();
        let mut top = start;
        for _ in 0..3 {
            top = line_start(text, top.saturating_sub(1));
        }
        let mut bottom = end;
        for _ in 0..3 {
            bottom = line_end(text, (bottom + 1).min(text.len()));
        }
        Change {
            first: 1 + count_lines(&text[..start]),
            before: before.to_owned(),
            after,
            above: text[top..start].trim_end_matches('\n').to_owned(),
            below: text[end..bottom].trim_matches('\n').to_owned(),
            range: start..end,
        }
    }
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The start of the line at a byte offset. Line feeds are never part of a multi-byte character.
fn line_start(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |before| before + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text.as_bytes()[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |end| at + end)
}
