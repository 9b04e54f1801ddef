//! Follows lines through commits that only laid the file out anew. There a diff guesses which line
//! became which (a `return` of another depth has the same text), and git with it; the tokens say it. So
//! git blames the versions between such commits, one range of commits after the other.

use std::ffi::OsString;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_view::present::blame::CommitLines;

use super::file_history::{FileLine, Origin};
use crate::git::blame_output::{self, BlamedLine, LineOrigin};
use crate::git::log::FormatterRun;
use crate::git::{GitError, Repository};

/// Each run takes one more call of git. Lines are not followed through older ones.
const MAX_RUNS: usize = 16;
/// Ranges of lines in one call. Beyond, the lines between are read too.
const MAX_RANGES: usize = 100;

/// A commit that only laid the file out anew.
pub struct RunCommit {
    pub id: String,
    /// The name of the file before it.
    pub path: String,
    pub run: FormatterRun,
}

/// A version of the file: a commit and the name there.
struct Version {
    commit: String,
    path: String,
}

/// Where one piece of a line was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the version that is blamed next.
    Line(u32),
    Found(Origin),
}

/// Finds the origins of the lines of `commit` through formatter runs, which are oldest first.
/// `numbers` has the numbers of the commits of the file.
pub fn follow(
    repository: &Repository,
    commit: &str,
    path: &str,
    runs: &[RunCommit],
    numbers: &FxHashMap<Arc<str>, usize>,
    commits: &[CommitLines],
    lines: &mut [FileLine],
) -> Result<(), GitError> {
    let mut places: Vec<Vec<Place>> =
        (1..).take(lines.len()).map(|number| vec![Place::Line(number)]).collect();
    let mut version = Version { commit: commit.to_owned(), path: path.to_owned() };
    let added = added_lines(commits);
    let runs: Vec<Option<&RunCommit>> = runs.iter().rev().take(MAX_RUNS).map(Some).collect();
    for run in runs.into_iter().chain([None]) {
        let wanted = places.iter().flatten().filter_map(|place| match place {
            Place::Line(number) => Some(*number),
            Place::Found(_) => None,
        });
        let is_run = run.is_some_and(|run| run.id == version.commit);
        let blamed = match run.filter(|_| is_run) {
            // Git would take the empty range for the working tree.
            Some(run) => all_of(run, wanted),
            None => blame(repository, &version, run, wanted.collect())?,
        };
        for (line, places) in lines.iter_mut().zip(&mut places) {
            let mut found = Vec::with_capacity(places.len());
            for place in places.iter() {
                let Place::Line(number) = place else {
                    found.push(*place);
                    continue;
                };
                let Some(BlamedLine { origin, is_boundary, .. }) = blamed.get(number) else {
                    continue;
                };
                let reflowing = run.filter(|run| *run.id == *origin.commit);
                if let Some(before) = reflowing.and_then(|run| run.run.before(origin.number)) {
                    line.is_reflowed |= before.is_changed;
                    found.extend((before.first..=before.last).map(Place::Line));
                    continue;
                }
                // The range ends at a commit beside the run: who wrote the line is not known.
                let commit = numbers.get(&origin.commit).copied();
                let is_known = |commit: &usize| {
                    !is_boundary || run.is_none() || added.contains(&(*commit, origin.number))
                };
                let commit = commit.filter(is_known);
                found.push(Place::Found(Origin { commit, number: origin.number }));
            }
            found.dedup();
            *places = found;
        }
        if let Some(run) = run {
            let Some(commit) = repository.commit(&format!("{}^", run.id))? else { break };
            version = Version { commit, path: run.path.clone() };
        }
    }
    for (line, places) in lines.iter_mut().zip(places) {
        let found = places.into_iter().filter_map(|place| match place {
            Place::Found(origin) => Some(origin),
            Place::Line(_) => None,
        });
        line.origins = found.collect();
    }
    Ok(())
}

/// The lines of a run itself.
fn all_of(run: &RunCommit, wanted: impl Iterator<Item = u32>) -> FxHashMap<u32, BlamedLine> {
    let commit: Arc<str> = Arc::from(run.id.as_str());
    let line = |number| BlamedLine {
        number,
        origin: LineOrigin { commit: commit.clone(), number },
        is_boundary: true,
        text: String::new(),
    };
    wanted.map(|number| (number, line(number))).collect()
}

/// The lines that each commit added.
fn added_lines(commits: &[CommitLines]) -> FxHashSet<(usize, u32)> {
    let commits = commits.iter().enumerate();
    let lines = commits.flat_map(|(at, commit)| commit.lines.iter().map(move |line| (at, line)));
    lines.filter(|(_, line)| line.is_added).map(|(at, line)| (at, line.number)).collect()
}

/// Where the wanted lines of a version come from, down to a run.
fn blame(
    repository: &Repository,
    version: &Version,
    run: Option<&RunCommit>,
    mut wanted: Vec<u32>,
) -> Result<FxHashMap<u32, BlamedLine>, GitError> {
    wanted.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in wanted {
        match ranges.last_mut() {
            Some(range) if number <= range.1 + 1 => range.1 = number,
            Some(_) | None => ranges.push((number, number)),
        }
    }
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else {
        return Ok(FxHashMap::default());
    };
    if ranges.len() > MAX_RANGES {
        ranges = vec![(first.0, last.1)];
    }
    let words = ["blame", "--porcelain", "--no-textconv"].map(OsString::from).into_iter();
    let ranges = ranges.iter().map(|(first, last)| OsString::from(format!("-L{first},{last}")));
    let revisions = match run {
        Some(run) => format!("{}..{}", run.id, version.commit),
        None => version.commit.clone(),
    };
    let file = [revisions, "--".to_owned(), version.path.clone()];
    let arguments: Vec<OsString> = words.chain(ranges).chain(file.map(OsString::from)).collect();
    let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
    let lines = blame_output::parse(&repository.read(&arguments)?);
    Ok(lines.into_iter().map(|line| (line.number, line)).collect())
}

#[cfg(test)]
#[path = "formatter_runs_tests.rs"]
mod tests;
