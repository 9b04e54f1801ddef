//! What an edit did to the lines of its file, so that it can be repeated on a version of the file.

use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::{LineKey, is_distinctive};
use crate::block::{Diff, DiffKind, Hunk};
use crate::present::tools::edits::{FileAction, FileEdit};

/// A line as versions are compared by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionLine {
    pub key: LineKey,
    /// A digest of the text with its white space.
    pub text: u64,
    pub is_distinctive: bool,
}

impl VersionLine {
    pub fn of(text: &str) -> VersionLine {
        let mut digest = FxHasher::default();
        // Claude Code's patches have two spaces for each tab, and agents record CRLF as LF.
        for piece in text.trim_end_matches('\r').split_inclusive('\t') {
            match piece.strip_suffix('\t') {
                Some(before) => {
                    digest.write(before.as_bytes());
                    digest.write(b"  ");
                }
                None => digest.write(piece.as_bytes()),
            }
        }
        VersionLine {
            key: LineKey::of(text),
            text: digest.finish(),
            is_distinctive: is_distinctive(text),
        }
    }
}

/// What an edit did.
pub enum Step {
    /// The file has these lines. `before`: it had those, if the log says so.
    Whole {
        before: Option<Vec<VersionLine>>,
        after: Vec<VersionLine>,
        text: Arc<str>,
    },
    Hunks(Vec<StepHunk>),
    Deleted,
}

/// A piece of the file before and after.
pub struct StepHunk {
    /// The numbers of its first line before and after, from 1, if the log says them.
    first: (Option<usize>, Option<usize>),
    before: Vec<VersionLine>,
    after: Vec<VersionLine>,
    texts: Vec<String>,
    /// Lines at its beginning and end that it only repeats.
    context: (usize, usize),
}

/// A line of an edit: its piece and its index there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepLine {
    hunk: u32,
    line: u32,
}

/// A line after a step.
#[derive(Clone, Copy)]
pub enum StepResult {
    /// The line with this index before.
    Kept(usize),
    New(VersionLine, StepLine),
}

fn lines_of(text: &str) -> Vec<VersionLine> {
    text.lines().map(VersionLine::of).collect()
}

fn whole(before: Option<&str>, after: &str) -> Step {
    Step::Whole { before: before.map(lines_of), after: lines_of(after), text: Arc::from(after) }
}

impl Step {
    pub fn of(edit: &FileEdit) -> Step {
        match &edit.action {
            FileAction::Create(text) | FileAction::Write(text) => whole(None, text),
            FileAction::Rewrite { before, after } => whole(Some(before), after),
            FileAction::Delete(_) => Step::Deleted,
            FileAction::Patch(_) | FileAction::LoosePatch(_) | FileAction::Replace(_) => {
                let Diff { hunks, .. } = edit.diff().unwrap_or_default();
                Step::Hunks(hunks.iter().map(StepHunk::of).collect())
            }
        }
    }

    /// The text of a line, as the log has it.
    pub fn text(&self, line: StepLine) -> Option<&str> {
        match self {
            Step::Whole { text, .. } => text.lines().nth(line.line as usize),
            Step::Hunks(hunks) => {
                let texts = &hunks.get(line.hunk as usize)?.texts;
                texts.get(line.line as usize).map(String::as_str)
            }
            Step::Deleted => None,
        }
    }

    /// The lines after the step; None if the file has not what the step replaced.
    pub fn apply(&self, old: &[VersionLine]) -> Option<Vec<StepResult>> {
        match self {
            Step::Whole { after, .. } => {
                let line = |(at, line): (usize, &VersionLine)| {
                    StepResult::New(*line, StepLine { hunk: 0, line: at as u32 })
                };
                Some(after.iter().enumerate().map(line).collect())
            }
            Step::Deleted => Some(Vec::new()),
            Step::Hunks(hunks) => {
                let sides = hunks.iter().map(|hunk| Sides {
                    first: hunk.first.0,
                    from: &hunk.before,
                    to: &hunk.after,
                    context: hunk.context,
                });
                replace(old, sides)
            }
        }
    }

    /// The lines before the step; None if the file has not what the step wrote, or if that says
    /// nothing.
    pub fn revert(&self, new: &[VersionLine]) -> Option<Vec<VersionLine>> {
        let Step::Hunks(hunks) = self else { return None };
        let tells = |hunk: &StepHunk| {
            let written = hunk.context.0..hunk.after.len().saturating_sub(hunk.context.1);
            let written = hunk.after.get(written).unwrap_or_default();
            written.is_empty() || written.iter().any(|line| line.is_distinctive)
        };
        if !hunks.iter().all(tells) {
            return None;
        }
        let sides = hunks.iter().map(|hunk| Sides {
            first: hunk.first.1,
            from: &hunk.after,
            to: &hunk.before,
            context: hunk.context,
        });
        let line = |it: StepResult| match it {
            StepResult::Kept(at) => new[at],
            StepResult::New(line, _) => line,
        };
        Some(replace(new, sides)?.into_iter().map(line).collect())
    }
}

/// A piece of the file and what replaces it.
struct Sides<'a> {
    /// The number of its first line, from 1, if the log says it.
    first: Option<usize>,
    from: &'a [VersionLine],
    to: &'a [VersionLine],
    /// Lines at its beginning and end that both have.
    context: (usize, usize),
}

/// Replaces pieces of a file, first ones first.
fn replace<'a>(
    old: &[VersionLine],
    pieces: impl Iterator<Item = Sides<'a>>,
) -> Option<Vec<StepResult>> {
    let mut result = Vec::with_capacity(old.len());
    // Lines before are shifted by changes that no log has.
    let (mut next, mut shift) = (0, 0isize);
    for (number, piece) in pieces.enumerate() {
        let expected = piece.first.map(|first| (first as isize - 1 + shift).max(0) as usize);
        let (at, (skip_before, skip_after)) = piece.find(old, next, expected)?;
        if let Some(first) = piece.first {
            shift = at as isize - (first as isize - 1 + skip_before as isize);
        }
        result.extend((next..at).map(StepResult::Kept));
        let wanted = skip_before..piece.to.len() - skip_after;
        result.extend(wanted.map(|line| {
            let place = StepLine { hunk: number as u32, line: line as u32 };
            StepResult::New(piece.to[line], place)
        }));
        next = at + piece.from.len() - skip_before - skip_after;
    }
    result.extend((next..old.len()).map(StepResult::Kept));
    Some(result)
}

impl StepHunk {
    fn of(hunk: &Hunk) -> StepHunk {
        let side = |other: DiffKind| {
            hunk.lines.iter().filter(move |line| line.kind != other).map(|line| line.text())
        };
        let number = |number: Option<u64>| number.and_then(|it| usize::try_from(it).ok());
        let first = (
            number(hunk.lines.iter().find_map(|line| line.old)),
            number(hunk.lines.iter().find_map(|line| line.new)),
        );
        let is_context = |line: &&_| matches!(line, DiffKind::Context);
        let kinds = || hunk.lines.iter().map(|line| &line.kind);
        let context =
            (kinds().take_while(is_context).count(), kinds().rev().take_while(is_context).count());
        let texts: Vec<String> = side(DiffKind::Removed).collect();
        StepHunk {
            first,
            before: side(DiffKind::Added).map(|text| VersionLine::of(&text)).collect(),
            after: texts.iter().map(|text| VersionLine::of(text)).collect(),
            texts,
            context,
        }
    }
}

impl Sides<'_> {
    /// Where the lines stand, and how many lines of context at both ends do not. Of several
    /// places the one that is nearest to the expected one.
    fn find(
        &self,
        old: &[VersionLine],
        from: usize,
        expected: Option<usize>,
    ) -> Option<(usize, (usize, usize))> {
        let most = self.context.0.max(self.context.1);
        for skip in 0..=most.min(2) {
            let skip = (skip.min(self.context.0), skip.min(self.context.1));
            let wanted = self.from.get(skip.0..self.from.len().checked_sub(skip.1)?)?;
            if wanted.is_empty() {
                let at = expected.unwrap_or(old.len()).min(old.len());
                return (skip == (0, 0) && at >= from).then_some((at, skip));
            }
            let is_here = |at: usize| {
                old.get(at..at + wanted.len())
                    .is_some_and(|lines| lines.iter().zip(wanted).all(|(a, b)| a.key == b.key))
            };
            let places = from..(old.len() + 1).saturating_sub(wanted.len());
            let found = match expected.map(|at| at + skip.0) {
                Some(at) if at >= from && is_here(at) => Some(at),
                Some(expected) => {
                    places.filter(|at| is_here(*at)).min_by_key(|at| at.abs_diff(expected))
                }
                None => {
                    let mut places = places.filter(|at| is_here(*at));
                    let first = places.next();
                    // Which of several is not recorded.
                    first.filter(|_| places.next().is_none())
                }
            };
            if let Some(at) = found {
                return Some((at, skip));
            }
        }
        None
    }
}
