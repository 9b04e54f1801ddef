//! The source text of the corpus: the repository's own files, split into tokens that can be varied.
//!
//! A token is plain text, a name or a number. In a generated file a name is kept, or replaced by
//! one that the whole project uses, or by one that only this file uses. So a name is consistent
//! within a file, as in real code, and there are very many names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::random::{Random, digest, mix};
use crate::words::{Spelling, Words};

pub struct Sources {
    text: String,
    lines: Vec<Line>,
    pieces: Vec<Piece>,
    /// Every name once, in order of appearance.
    names: Vec<Name>,
    pub words: Words,
    /// Identifies the source text: other text gives another corpus.
    pub fingerprint: u64,
}

struct Line {
    pieces: Range<u32>,
    /// The length of the comment marker and the space before a comment's words.
    comment: Option<u32>,
}

struct Piece {
    text: Range<u32>,
    kind: Kind,
}

enum Kind {
    Plain,
    Number,
    /// Index of the name.
    Name(u32),
}

struct Name {
    text: Range<u32>,
    bits: u64,
    spelling: Spelling,
}

/// A project's replacements for names.
pub struct NamingStyle {
    pub bits: u64,
    text: String,
    /// For each name the range of its replacement in `text`; empty if each file has its own.
    spans: Vec<Range<u32>>,
}

/// The project and file whose names a text uses.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub naming: &'a NamingStyle,
    pub file: u64,
}

/// Words that are never renamed.
const KEYWORDS: &str = "as async await bool break const continue crate dyn else enum Err extern false \
    fn for from if impl in into let loop match mod move mut None Ok Option pub ref Result return \
    self Self Some static str String struct super trait true type u8 u16 u32 u64 usize i32 i64 \
    unsafe use where while Vec vec Box iter map push len new assert_eq assert format println std \
    core test cfg derive Debug Clone the and that with not this are";

impl Sources {
    pub fn read(root: &Path) -> Result<Sources> {
        let mut paths = Vec::new();
        collect(root, 0, &mut paths)?;
        paths.sort();
        let mut text = String::new();
        for path in &paths {
            let content = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            text.push_str(&content);
            text.push('\n');
        }
        ensure!(
            text.len() > 20_000,
            "{} holds too little source text; name a repository with --sources",
            root.display()
        );
        let prose: Vec<&str> = text.lines().filter_map(prose_of).collect();
        let words = Words::new(&text, &prose);
        let mut sources = Sources {
            fingerprint: digest(text.as_bytes()),
            text: String::new(),
            lines: Vec::new(),
            pieces: Vec::new(),
            names: Vec::new(),
            words,
        };
        let keywords: BTreeSet<&[u8]> =
            KEYWORDS.split_ascii_whitespace().map(str::as_bytes).collect();
        let mut names = BTreeMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            sources.cut(line.trim_end(), start, &keywords, &mut names);
            start += line.len();
        }
        sources.text = text;
        Ok(sources)
    }

    fn cut<'a>(
        &mut self,
        line: &'a str,
        start: usize,
        keywords: &BTreeSet<&[u8]>,
        names: &mut BTreeMap<&'a [u8], u32>,
    ) {
        let first = self.pieces.len() as u32;
        let bytes = line.as_bytes();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut at = 0;
        while at < bytes.len() {
            let from = at;
            let inside = is_word(bytes[at]);
            while at < bytes.len() && is_word(bytes[at]) == inside {
                at += 1;
            }
            let piece = &bytes[from..at];
            let text = (start + from) as u32..(start + at) as u32;
            let kind = match inside.then(|| shape_of(piece)) {
                Some(Shape::Number) => Kind::Number,
                Some(Shape::Name(spelling)) if !keywords.contains(piece) => {
                    Kind::Name(*names.entry(piece).or_insert_with(|| {
                        let (text, bits) = (text.clone(), digest(piece));
                        self.names.push(Name { text, bits, spelling });
                        self.names.len() as u32 - 1
                    }))
                }
                Some(Shape::Name(_) | Shape::Plain) | None => Kind::Plain,
            };
            // Adjacent plain tokens are merged, which halves the copying.
            match (self.pieces.get_mut(first as usize..).and_then(<[Piece]>::last_mut), &kind) {
                (Some(Piece { text: before, kind: Kind::Plain }), Kind::Plain) => {
                    before.end = text.end;
                }
                (Some(_) | None, Kind::Plain | Kind::Number | Kind::Name(_)) => {
                    self.pieces.push(Piece { text, kind });
                }
            }
        }
        let comment = line.find("//").filter(|&at| line[..at].trim().is_empty());
        self.lines.push(Line {
            pieces: first..self.pieces.len() as u32,
            comment: comment.map(|at| at as u32),
        });
    }

    /// Decides which names a project keeps, which it replaces, and which each file replaces.
    pub fn naming(&self, bits: u64) -> NamingStyle {
        let mut naming = NamingStyle { bits, text: String::new(), spans: Vec::new() };
        for name in &self.names {
            let start = naming.text.len() as u32;
            match mix(name.bits ^ bits) & 127 {
                0..44 => {
                    let keywords = &self.text[name.text.start as usize..name.text.end as usize];
                    naming.text.push_str(keywords);
                }
                44..90 => {
                    self.words.name(&mut naming.text, mix(name.bits ^ bits ^ 1), name.spelling);
                }
                _ => {}
            }
            naming.spans.push(start..naming.text.len() as u32);
        }
        naming
    }

    /// About `bytes` bytes of code, in runs of lines that are adjacent in the repository.
    pub fn code(&self, out: &mut String, random: &mut Random, place: Place<'_>, bytes: usize) {
        let end = out.len() + bytes;
        while out.len() < end {
            let first = random.below(self.lines.len());
            for line in self.lines.iter().skip(first).take(random.between(4, 28)) {
                self.line(out, random, place, line);
                out.push('\n');
                if out.len() >= end {
                    break;
                }
            }
        }
    }

    /// One line of code, trimmed.
    pub fn line_of_code(&self, out: &mut String, random: &mut Random, place: Place<'_>) {
        let mut written = String::new();
        for _ in 0..8 {
            written.clear();
            let line = &self.lines[random.below(self.lines.len())];
            self.line(&mut written, random, place, line);
            if written.trim().len() > 12 {
                break;
            }
        }
        out.push_str(written.trim());
    }

    fn line(&self, out: &mut String, random: &mut Random, place: Place<'_>, line: &Line) {
        if let Some(indent) = line.comment
            && random.chance(500)
        {
            out.extend((0..indent).map(|_| ' '));
            out.push_str("// ");
            let from = out.len();
            let words = random.between(5, 14);
            self.words.prose(out, random, words);
            if out[from..].contains('\n') {
                let one_line = out[from..].replace("\n\n", " ");
                out.truncate(from);
                out.push_str(&one_line);
            }
            return;
        }
        for piece in &self.pieces[line.pieces.start as usize..line.pieces.end as usize] {
            let text = &self.text[piece.text.start as usize..piece.text.end as usize];
            match piece.kind {
                Kind::Plain => out.push_str(text),
                Kind::Number => random.digits(out, text.len()),
                Kind::Name(index) => {
                    let span = &place.naming.spans[index as usize];
                    if span.is_empty() {
                        let name = &self.names[index as usize];
                        self.words.name(out, mix(name.bits ^ place.file), name.spelling);
                    } else {
                        out.push_str(&place.naming.text[span.start as usize..span.end as usize]);
                    }
                }
            }
        }
    }
}

enum Shape {
    Plain,
    Number,
    Name(Spelling),
}

fn shape_of(piece: &[u8]) -> Shape {
    if piece.len() > 1 && piece.iter().all(u8::is_ascii_digit) {
        return Shape::Number;
    }
    if piece.len() < 3 || piece[0].is_ascii_digit() {
        return Shape::Plain;
    }
    Shape::Name(if piece.iter().all(|byte| !byte.is_ascii_lowercase()) {
        Spelling::Shouted
    } else if piece[0].is_ascii_uppercase() {
        Spelling::Camel
    } else {
        Spelling::Snake
    })
}

/// The prose of a line: a comment's text, or a line of a document.
fn prose_of(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(comment) = line.strip_prefix("//") {
        return Some(comment.trim_start_matches(['/', '!']).trim());
    }
    let is_prose = line.len() > 40
        && line.starts_with(|letter: char| letter.is_ascii_uppercase() || letter == '-')
        && !line.contains(['{', ';', '=']);
    is_prose.then_some(line)
}

fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let hidden = name.to_string_lossy().starts_with('.') || name == "target";
        if entry.file_type()?.is_dir() {
            if !hidden && depth < 8 {
                collect(&path, depth + 1, paths)?;
            }
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "md") {
            paths.push(path);
        }
    }
    Ok(())
}
