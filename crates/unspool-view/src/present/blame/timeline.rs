//! The versions of a file in order, each with the edits that made it: an edit is repeated on the
//! version before it. If the next version is the result, each line of it is known to be of that edit
//! or to be as old as before. What differs from the result was changed by somebody else. A line of
//! which the texts do not tell who wrote it is nobody's.

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::alignment::{align, islands, runs, slides};
use super::steps::{Step, StepLine, StepResult, VersionLine};
use super::{LineKey, kept_lines};

/// An edit that no version has after so many later ones was undone.
const MAX_VERSIONS_AFTER: usize = 64;
/// So many edits may lie between two versions. More are tried in groups.
const MAX_EDITS_BETWEEN: usize = 256;
/// So many of the first edits between two versions may have been undone.
const MAX_UNDONE: usize = 4;
/// A longer run of kept lines is not written again by somebody who replaces the lines around it.
const MAX_REPEATED: usize = 3;

/// An edit.
pub struct VersionEdit {
    /// In seconds; None: the log has no time.
    pub at: Option<i64>,
    /// Edits with the same number have the same writer.
    pub writer: usize,
    pub step: Step,
}

/// A version of the file.
pub struct Version {
    pub base: Base,
    pub content: Content,
    /// The lines that it has more often than the version before.
    pub added: Vec<LineKey>,
    /// When it was made at the latest, in seconds.
    pub time: i64,
    /// It was made at once from the lines before: the indexes of the lines of which each line
    /// consists.
    pub reflow: Option<Reflow>,
}

/// For each line of a version the lines before of which it consists.
pub type Reflow = Box<dyn Fn(usize) -> Range<usize> + Send + Sync>;

/// The version that a version was made from.
pub enum Base {
    Empty,
    Version(usize),
    /// One that no edit and no commit made alone: the result of a merge.
    Merged(Vec<VersionLine>),
}

pub enum Content {
    Whole(Vec<VersionLine>),
    /// What differs: ranges of lines before and the lines that replace them.
    Changes(Vec<(Range<usize>, Vec<VersionLine>)>),
}

/// Who wrote a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Writer {
    /// The index of the edit.
    pub edit: usize,
    pub line: StepLine,
    /// It was moved or laid out anew since.
    pub is_moved: bool,
}

#[derive(Clone, Copy)]
struct Line {
    is: VersionLine,
    writer: Option<Writer>,
}

/// For each line of the last version who wrote it.
pub fn writers(edits: &[VersionEdit], versions: &[Version]) -> Vec<Option<Writer>> {
    let mut order: Vec<usize> = (0..edits.len()).collect();
    order.sort_by_key(|at| edits[*at].at);
    let mut added: FxHashMap<LineKey, usize> = FxHashMap::default();
    versions.iter().flat_map(|it| &it.added).for_each(|key| *added.entry(*key).or_default() += 1);
    added.retain(|_, count| *count > 1);
    let mut timeline =
        Timeline { edits, repeated: added, waiting: VecDeque::new(), next: order.into() };
    let mut uses: FxHashMap<usize, usize> = FxHashMap::default();
    for version in versions {
        if let Base::Version(base) = version.base {
            *uses.entry(base).or_default() += 1;
        }
    }
    let mut states: FxHashMap<usize, Vec<Line>> = FxHashMap::default();
    let mut last = Vec::new();
    for (number, version) in versions.iter().enumerate() {
        let base = match &version.base {
            Base::Empty => Vec::new(),
            Base::Merged(lines) => timeline.merged(lines, &states),
            Base::Version(base) => {
                let left = uses.get_mut(base).map_or(0, |left| {
                    *left -= 1;
                    *left
                });
                let state = if left == 0 { states.remove(base) } else { states.get(base).cloned() };
                state.unwrap_or_default()
            }
        };
        let lines = timeline.version(base, version);
        if number + 1 == versions.len() {
            last = lines;
        } else {
            states.insert(number, lines);
        }
    }
    last.into_iter().map(|line| line.writer).collect()
}

/// An edit that made a version, and which lines of the version it wrote.
struct NewLines<'a> {
    edit: usize,
    writer: &'a dyn Fn(usize) -> Option<Writer>,
}

struct Timeline<'a> {
    edits: &'a [VersionEdit],
    /// Lines that were written more than once.
    repeated: FxHashMap<LineKey, usize>,
    /// Edits that no version has yet, by time, and how many versions came since.
    waiting: VecDeque<(usize, usize)>,
    next: VecDeque<usize>,
}

fn content(base: &[Line], version: &Version) -> Vec<VersionLine> {
    match &version.content {
        Content::Whole(lines) => lines.clone(),
        Content::Changes(changes) => {
            let mut lines = Vec::with_capacity(base.len());
            let mut next = 0;
            for (old, new) in changes {
                lines.extend(base.get(next..old.start).unwrap_or_default().iter().map(|it| it.is));
                lines.extend(new);
                next = old.end;
            }
            lines.extend(base.get(next..).unwrap_or_default().iter().map(|it| it.is));
            lines
        }
    }
}

fn keys(lines: &[VersionLine]) -> Vec<LineKey> {
    lines.iter().map(|line| line.key).collect()
}

impl Timeline<'_> {
    fn version(&mut self, base: Vec<Line>, version: &Version) -> Vec<Line> {
        let new = content(&base, version);
        // Git's times are in seconds.
        while let Some(edit) = self.next.pop_front_if(|edit| {
            self.edits[*edit].at.is_none_or(|at| at <= version.time.saturating_add(1))
        }) {
            self.waiting.push_back((edit, 0));
        }
        if let Some(reflow) = &version.reflow {
            return self.reflowed(&base, &new, reflow);
        }
        let result = self.between(base, &new);
        for (_, versions) in &mut self.waiting {
            *versions += 1;
        }
        self.waiting.retain(|(_, versions)| *versions < MAX_VERSIONS_AFTER);
        self.settle(&result, &new, None)
    }

    /// The lines after the edits that lead nearest to a version. These edits no longer wait.
    fn between(&mut self, base: Vec<Line>, new: &[VersionLine]) -> Vec<Line> {
        let new_keys = keys(new);
        let distance = |lines: &[Line]| {
            let old: Vec<LineKey> = lines.iter().map(|line| line.is.key).collect();
            let kept = kept_lines(&old, &new_keys).iter().flatten().count();
            old.len() + new.len() - 2 * kept
        };
        let mut best = (distance(&base), 0..0, Vec::new());
        let mut best_lines: Option<Vec<Line>> = None;
        for from in 0..self.waiting.len().min(MAX_UNDONE + 1) {
            let mut lines = base.clone();
            let mut made = Vec::new();
            for to in from..self.waiting.len().min(from + MAX_EDITS_BETWEEN) {
                let edit = self.waiting[to].0;
                let Some(after) = self.apply(edit, &lines) else { continue };
                lines = after;
                made.push(edit);
                let distance = distance(&lines);
                if distance < best.0 {
                    best = (distance, from..to + 1, made.clone());
                    best_lines = Some(lines.clone());
                }
            }
            if best.0 == 0 {
                break;
            }
        }
        let (left, _, made) = best;
        self.waiting.retain(|(edit, _)| !made.contains(edit));
        self.after_others(best_lines.unwrap_or(base), new, left)
    }

    /// Goes on with the edits that can only be repeated after what somebody else wrote before the
    /// same version: they are taken back from the version first. `left` is the distance to it.
    fn after_others(&mut self, lines: Vec<Line>, new: &[VersionLine], left: usize) -> Vec<Line> {
        let old: Vec<LineKey> = lines.iter().map(|line| line.is.key).collect();
        let mut target = new.to_vec();
        let (mut left, mut reverted) = (left, Vec::new());
        for (edit, _) in self.waiting.iter().rev().take(MAX_EDITS_BETWEEN) {
            if left == 0 {
                break;
            }
            let Some(before) = self.edits[*edit].step.revert(&target) else { continue };
            let kept = kept_lines(&old, &keys(&before)).iter().flatten().count();
            let distance = old.len() + before.len() - 2 * kept;
            if distance < left {
                (left, target) = (distance, before);
                reverted.push(*edit);
            }
        }
        if reverted.is_empty() {
            return lines;
        }
        self.waiting.retain(|(edit, _)| !reverted.contains(edit));
        let lines = self.settle(&lines, &target, None);
        let again = |lines: Vec<Line>, edit: &usize| self.apply(*edit, &lines).unwrap_or(lines);
        reverted.iter().rev().fold(lines, again)
    }

    /// Repeats an edit.
    fn apply(&self, edit: usize, lines: &[Line]) -> Option<Vec<Line>> {
        let step = &self.edits[edit].step;
        let mut lines = lines.to_vec();
        if let Step::Whole { before: Some(before), .. } = step {
            // What the log says of the file before has changes that it does not have.
            lines = self.settle(&lines, before, None);
        }
        let old: Vec<VersionLine> = lines.iter().map(|line| line.is).collect();
        let result = step.apply(&old)?;
        let new: Vec<VersionLine> = result
            .iter()
            .map(|it| match it {
                StepResult::Kept(at) => old[*at],
                StepResult::New(line, _) => *line,
            })
            .collect();
        let writer = |at: usize| match result[at] {
            StepResult::Kept(_) => None,
            StepResult::New(_, line) => Some(Writer { edit, line, is_moved: false }),
        };
        Some(self.settle(&lines, &new, Some(NewLines { edit, writer: &writer })))
    }

    /// Whether the text of a line says who wrote it.
    fn is_distinctive(&self, line: &VersionLine) -> bool {
        line.is_distinctive && !self.repeated.contains_key(&line.key)
    }

    fn is_same(&self, one: Option<Writer>, other: Option<Writer>) -> bool {
        let writer = |it: Option<Writer>| it.map(|it| self.edits[it.edit].writer);
        writer(one) == writer(other)
    }

    /// The lines of a version that somebody made of another one. Whose lines are new: `by`, or
    /// nobody's.
    fn settle(&self, old: &[Line], new: &[VersionLine], by: Option<NewLines>) -> Vec<Line> {
        let kept = align(&old.iter().map(|line| line.is).collect::<Vec<_>>(), new);
        let mut is_kept = vec![false; old.len()];
        kept.iter().flatten().for_each(|at| is_kept[*at] = true);
        // Distinctive lines that are gone here may stand elsewhere.
        let mut gone: FxHashMap<LineKey, Vec<usize>> = FxHashMap::default();
        for (at, line) in old.iter().enumerate().rev() {
            if !is_kept[at] && self.is_distinctive(&line.is) {
                gone.entry(line.is.key).or_default().push(at);
            }
        }
        let mut lines: Vec<Line> = Vec::with_capacity(new.len());
        for (at, is) in new.iter().enumerate() {
            let writer = match kept[at] {
                Some(from) => old[from].writer,
                None => match gone.get_mut(&is.key).and_then(Vec::pop) {
                    Some(from) => old[from].writer.map(|it| Writer { is_moved: true, ..it }),
                    None => by.as_ref().and_then(|by| (by.writer)(at)),
                },
            };
            lines.push(Line { is: *is, writer });
        }
        let unclear = self.unclear(old, &kept, &is_kept, &lines, by.map(|by| by.edit));
        for at in unclear {
            lines[at].writer = None;
        }
        lines
    }

    /// Lines of which the texts do not tell who wrote them.
    fn unclear(
        &self,
        old: &[Line],
        kept: &[Option<usize>],
        is_kept: &[bool],
        new: &[Line],
        by: Option<usize>,
    ) -> Vec<usize> {
        let mut unclear = Vec::new();
        let mut place = vec![None; old.len()];
        for (at, from) in kept.iter().enumerate() {
            if let Some(from) = from {
                place[*from] = Some(at);
            }
        }
        // A block that was added may be the same lines further up or down, and so may a block that
        // was removed.
        for block in runs(new.len(), |at| kept[at].is_none()) {
            for places in slides(&block, new.len(), |at| new[at].is.text) {
                let mut writers = places.clone().map(|at| new[at].writer);
                let first = writers.next().flatten();
                if !writers.all(|writer| self.is_same(writer, first)) {
                    unclear.extend(places);
                }
            }
        }
        for block in runs(old.len(), |at| !is_kept[at]) {
            for places in slides(&block, old.len(), |at| old[at].is.text) {
                let mut writers = places.clone().map(|at| old[at].writer);
                let first = writers.next().flatten();
                if !writers.all(|writer| self.is_same(writer, first)) {
                    unclear.extend(places.filter_map(|at| place[at]));
                }
            }
        }
        let author = by.map(|edit| self.edits[edit].writer);
        let is_other = |at: &usize| new[*at].writer.map(|it| self.edits[it.edit].writer) != author;
        // Somebody changed the lines beside it and its white space.
        for at in (0..new.len()).filter(is_other) {
            let Some(from) = kept[at] else { continue };
            let is_beside = at.checked_sub(1).is_some_and(|at| kept[at].is_none())
                || kept.get(at + 1).is_some_and(Option::is_none)
                || from.checked_sub(1).is_some_and(|from| !is_kept[from])
                || is_kept.get(from + 1).is_some_and(|is_kept| !is_kept);
            if is_beside
                && old[from].is.text != new[at].is.text
                && !self.is_distinctive(&new[at].is)
            {
                unclear.push(at);
            }
        }
        // Whoever replaces the lines around a `}` may write it again.
        for run in islands(kept, old.len()).into_iter().filter(|run| run.len() <= MAX_REPEATED) {
            if new[run.clone()].iter().all(|line| !self.is_distinctive(&line.is)) {
                unclear.extend(run.filter(is_other));
            }
        }
        unclear
    }

    fn reflowed(&self, old: &[Line], new: &[VersionLine], reflow: &Reflow) -> Vec<Line> {
        let one = |(at, is): (usize, &VersionLine)| {
            let range = reflow(at);
            let lines = old.get(range).unwrap_or_default();
            let first = lines.first().and_then(|line| line.writer);
            let is_one = lines.iter().all(|line| self.is_same(line.writer, first));
            let writer = first.filter(|_| is_one);
            Line { is: *is, writer }
        };
        new.iter().enumerate().map(one).collect()
    }

    /// The result of a merge: each line is that of a version that has it.
    fn merged(&self, new: &[VersionLine], states: &FxHashMap<usize, Vec<Line>>) -> Vec<Line> {
        let new_keys = keys(new);
        let mut found: Vec<Option<Option<Writer>>> = vec![None; new.len()];
        let mut numbers: Vec<&usize> = states.keys().collect();
        numbers.sort_unstable();
        for state in numbers.into_iter().rev().filter_map(|number| states.get(number)) {
            let old: Vec<LineKey> = state.iter().map(|line| line.is.key).collect();
            for (at, from) in kept_lines(&old, &new_keys).into_iter().enumerate() {
                let Some(from) = from else { continue };
                let writer = state[from].writer;
                found[at] = match found[at] {
                    Some(known) if !self.is_same(known, writer) => Some(None),
                    Some(known) => Some(known),
                    None => Some(writer),
                };
            }
        }
        let lines = new.iter().zip(found);
        lines.map(|(is, writer)| Line { is: *is, writer: writer.flatten() }).collect()
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
