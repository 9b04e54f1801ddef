//! Builds diff blocks with marked words from two texts, from a unified diff, from a patch in
//! Codex's format, or from the `structuredPatch` that Claude Code stores with a result.

use serde::Deserialize;
use similar::DiffOp;

use super::alignment::align;
use super::format;
use crate::block::{Diff, DiffKind, DiffLine, DiffSpan, Hunk};

/// Limits on comparisons (lines × lines, words × words); larger inputs are not aligned. A hostile
/// or generated text must not take seconds. A deadline would not be deterministic: the same parts
/// must always give the same blocks.
const MAX_WORK: usize = 4_000_000;
const MAX_WORD_WORK: usize = 250_000;
const MAX_PAIRINGS: usize = 400;
/// Two lines that share a smaller fraction of their words count as unrelated.
const MIN_SIMILARITY: f32 = 0.35;
const CONTEXT_LINES: usize = 3;

/// A hunk of Claude Code's `structuredPatch`.
#[derive(Deserialize)]
pub struct PatchHunk {
    #[serde(rename = "oldStart")]
    pub old_start: u64,
    #[serde(rename = "newStart")]
    pub new_start: u64,
    pub lines: Vec<String>,
}

/// The diff of a `structuredPatch`.
pub fn from_structured_patch(path: Option<&str>, hunks: &[PatchHunk]) -> Diff {
    let hunks = hunks.iter().map(|hunk| {
        let mut lines = HunkBuilder::numbered(hunk.old_start, hunk.new_start);
        hunk.lines.iter().for_each(|line| lines.push_marked(line));
        lines.hunk()
    });
    file_diff(path, hunks.collect())
}

/// The diff between two texts. Lines are numbered from `first`, if given.
pub fn between(path: Option<&str>, old: &str, new: &str, first: Option<u64>) -> Diff {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let groups = match old.len().saturating_mul(new.len()) <= MAX_WORK {
        true => similar::group_diff_ops(align(&old, &new), CONTEXT_LINES),
        false => vec![vec![DiffOp::Replace {
            old_index: 0,
            old_len: old.len(),
            new_index: 0,
            new_len: new.len(),
        }]],
    };
    let hunk = |ops: &Vec<DiffOp>| {
        let start = |at: usize| first.map(|first| first + at as u64);
        let (old_at, new_at) =
            ops.first().map_or((0, 0), |op| (op.old_range().start, op.new_range().start));
        let mut lines =
            HunkBuilder { old: start(old_at), new: start(new_at), ..HunkBuilder::default() };
        for op in ops {
            match *op {
                DiffOp::Equal { .. } => {
                    old[op.old_range()].iter().for_each(|line| lines.push(DiffKind::Context, line));
                }
                DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => {
                    old[op.old_range()].iter().for_each(|line| lines.push(DiffKind::Removed, line));
                    new[op.new_range()].iter().for_each(|line| lines.push(DiffKind::Added, line));
                }
            }
        }
        lines.hunk()
    };
    file_diff(path, groups.iter().map(hunk).collect())
}

/// Parses a patch: unified, with or without git headers, or Codex's `*** Begin Patch` format.
/// Returns an empty list if the text is not a patch.
pub fn patch(text: &str) -> Vec<Diff> {
    // In Codex's format a hunk has no counts, and `--- ` can only be a removed line.
    let codex = text.trim_start().starts_with("*** Begin Patch");
    let mut diffs: Vec<Diff> = Vec::new();
    let mut path: Option<String> = None;
    let mut open: Option<HunkBuilder> = None;
    for line in text.lines() {
        // A removed SQL comment looks like a `--- ` header; the hunk's line counts disambiguate.
        if let Some(lines) =
            open.as_mut().filter(|lines| lines.is_short() || line.starts_with('\\'))
        {
            lines.push_marked(line);
            continue;
        }
        let header = if codex { codex_header(line) } else { unified_header(line) };
        if (header.is_some() || line.starts_with("@@") || line.starts_with("*** "))
            && let Some(lines) = open.take()
        {
            close(&mut diffs, path.as_deref(), lines);
        }
        if let Some(header) = header {
            // `+++ /dev/null`: the file was deleted; keep its old name.
            if let Some(name) = header {
                path = Some(name.to_owned());
            }
            if line.starts_with("*** Add File: ") {
                open = Some(HunkBuilder { new: Some(1), ..HunkBuilder::default() });
            }
        } else if line.starts_with("@@") {
            open = Some(hunk_header(line));
        } else if codex && let Some(lines) = &mut open {
            lines.push_marked(line);
        }
    }
    if let Some(lines) = open {
        close(&mut diffs, path.as_deref(), lines);
    }
    diffs
}

fn close(diffs: &mut Vec<Diff>, path: Option<&str>, lines: HunkBuilder) {
    let hunk = lines.hunk();
    match diffs.last_mut() {
        Some(diff) if diff.path.as_deref() == path => diff.hunks.push(hunk),
        Some(_) | None => diffs.push(file_diff(path, vec![hunk])),
    }
}

fn codex_header(line: &str) -> Option<Option<&str>> {
    let marks = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
    marks.iter().find_map(|mark| line.strip_prefix(mark)).map(|path| Some(path.trim()))
}

/// The path that a header line names; `Some(None)` for a header without one.
fn unified_header(line: &str) -> Option<Option<&str>> {
    if line.starts_with("diff --git ") {
        return Some(None);
    }
    let path = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- "))?;
    let path = path.split('\t').next().unwrap_or(path);
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    Some((path != "/dev/null").then_some(path))
}

/// Reads `@@ -1,6 +1,7 @@`; Codex writes `@@` alone.
fn hunk_header(line: &str) -> HunkBuilder {
    let range = |mark: char| {
        let range = line.split(' ').find_map(|word| word.strip_prefix(mark))?;
        let (start, length) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse::<u64>().ok()?, length.parse::<u64>().ok()?))
    };
    match (range('-'), range('+')) {
        (Some((old, old_left)), Some((new, new_left))) => HunkBuilder {
            old: Some(old),
            new: Some(new),
            left: (old_left, new_left),
            lines: Vec::new(),
        },
        (Some(_) | None, Some(_) | None) => HunkBuilder::default(),
    }
}

pub(super) fn file_diff(path: Option<&str>, hunks: Vec<Hunk>) -> Diff {
    Diff { path: path.map(Into::into), language: path.and_then(format::language), hunks }
}

/// A hunk being parsed, with the numbers of its next old and new line.
#[derive(Default)]
pub(super) struct HunkBuilder {
    pub(super) old: Option<u64>,
    pub(super) new: Option<u64>,
    /// Remaining old and new lines according to the hunk header.
    left: (u64, u64),
    pub(super) lines: Vec<DiffLine>,
}

impl HunkBuilder {
    pub(super) fn numbered(old: u64, new: u64) -> HunkBuilder {
        HunkBuilder { old: Some(old), new: Some(new), ..HunkBuilder::default() }
    }

    fn is_short(&self) -> bool {
        self.left != (0, 0)
    }

    /// Adds a line that starts with its `+`, `-` or space mark.
    fn push_marked(&mut self, line: &str) {
        match line.split_at_checked(1) {
            Some(("+", rest)) => self.push(DiffKind::Added, rest),
            Some(("-", rest)) => self.push(DiffKind::Removed, rest),
            Some((" ", rest)) => self.push(DiffKind::Context, rest),
            // `\ No newline at end of file` refers to the previous line.
            Some(("\\", _)) => {
                self.lines.last_mut().into_iter().for_each(|line| line.no_newline = true);
            }
            Some(_) | None => self.push(DiffKind::Context, line),
        }
    }

    pub(super) fn push(&mut self, kind: DiffKind, text: &str) {
        let step = |number: &mut Option<u64>| {
            let at = *number;
            *number = at.map(|at| at.saturating_add(1));
            at
        };
        let (old_left, new_left) = &mut self.left;
        if kind != DiffKind::Added {
            *old_left = old_left.saturating_sub(1);
        }
        if kind != DiffKind::Removed {
            *new_left = new_left.saturating_sub(1);
        }
        let (old, new) = match kind {
            DiffKind::Context => (step(&mut self.old), step(&mut self.new)),
            DiffKind::Added => (None, step(&mut self.new)),
            DiffKind::Removed => (step(&mut self.old), None),
        };
        let spans = vec![DiffSpan { text: text.to_owned(), changed: false }];
        self.lines.push(DiffLine { kind, old, new, spans, no_newline: false });
    }

    pub(super) fn hunk(mut self) -> Hunk {
        mark_words(&mut self.lines);
        Hunk { lines: self.lines }
    }
}

/// Marks the differing words wherever added lines follow removed lines.
fn mark_words(lines: &mut [DiffLine]) {
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, kind: DiffKind| {
            lines[from..].iter().take_while(|line| line.kind == kind).count()
        };
        let removed = run(at, DiffKind::Removed);
        let added = run(at + removed, DiffKind::Added);
        let (before, after) = lines.split_at_mut(at + removed);
        mark_run(&mut before[at..], &mut after[..added]);
        at += (removed + added).max(1);
    }
}

/// Pairs each line of the shorter side with one of the longer side, all at the same offset. Chooses
/// the offset with the highest total similarity.
fn mark_run(removed: &mut [DiffLine], added: &mut [DiffLine]) {
    let pairs = removed.len().min(added.len());
    let spare = removed.len().max(added.len()) - pairs;
    if pairs == 0 || pairs * (spare + 1) > MAX_PAIRINGS {
        return;
    }
    let compare = |offset: usize| -> Vec<Option<Pairing>> {
        let (out, into) = if removed.len() > pairs { (offset, 0) } else { (0, offset) };
        (0..pairs).map(|at| pair(&removed[out + at], &added[into + at])).collect()
    };
    let similarity = |pairings: &[Option<Pairing>]| -> f32 {
        pairings.iter().flatten().map(|pairing| pairing.similarity).sum()
    };
    let mut best = (0, compare(0));
    for offset in 1..=spare {
        let pairings = compare(offset);
        if similarity(&pairings) > similarity(&best.1) {
            best = (offset, pairings);
        }
    }
    let (offset, pairings) = best;
    let (out, into) = if removed.len() > pairs { (offset, 0) } else { (0, offset) };
    for (at, pairing) in pairings.into_iter().enumerate() {
        if let Some(pairing) = pairing {
            removed[out + at].spans = pairing.old;
            added[into + at].spans = pairing.new;
        }
    }
}

/// Two similar lines with their changed words marked.
struct Pairing {
    similarity: f32,
    old: Vec<DiffSpan>,
    new: Vec<DiffSpan>,
}

fn pair(removed: &DiffLine, added: &DiffLine) -> Option<Pairing> {
    let (old_text, new_text) = (removed.text(), added.text());
    let (old, new) = (words(&old_text), words(&new_text));
    if old.len().saturating_mul(new.len()) > MAX_WORD_WORK {
        return None;
    }
    let ops = align(&old, &new);
    let mut old_flags = vec![true; old.len()];
    let mut new_flags = vec![true; new.len()];
    // Ignore white space: it is equal everywhere and would inflate the similarity.
    let weight = |words: &[&str]| words.iter().filter(|word| !word.trim().is_empty()).count();
    let mut same = 0;
    for op in &ops {
        if let DiffOp::Equal { .. } = op {
            old_flags[op.old_range()].fill(false);
            new_flags[op.new_range()].fill(false);
            same += weight(&old[op.old_range()]);
        }
    }
    let similarity = (2 * same) as f32 / (weight(&old) + weight(&new)).max(1) as f32;
    let is_similar = similarity >= MIN_SIMILARITY;
    is_similar.then(|| Pairing {
        similarity,
        old: joined(&old, &old_flags),
        new: joined(&new, &new_flags),
    })
}

/// Converts words to spans and joins neighbours with equal flags.
fn joined(words: &[&str], flags: &[bool]) -> Vec<DiffSpan> {
    let mut spans: Vec<DiffSpan> = Vec::new();
    for (&word, &changed) in words.iter().zip(flags) {
        match spans.last_mut() {
            Some(span) if span.changed == changed => span.text.push_str(word),
            Some(_) | None => spans.push(DiffSpan { text: word.to_owned(), changed }),
        }
    }
    spans
}

/// Splits into runs of letters and digits, runs of white space, and single other characters.
fn words(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 3,
    };
    let mut words = Vec::new();
    let mut from = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        let class = class(c);
        if last.is_some_and(|last| last != class || class == 3) {
            words.push(&text[from..at]);
            from = at;
        }
        last = Some(class);
    }
    if from < text.len() {
        words.push(&text[from..]);
    }
    words
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
