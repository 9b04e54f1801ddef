//! From the claims in commits to the lines of the file, over what git says about each line.

use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_view::present::blame::{
    Claim, CommitLine, CommitLines, Confidence, LineKey, is_distinctive,
};

use super::edits::FoundEdit;
use super::file_history::{FileHistory, FileLine, Origin};

/// For each line of the file the edit that wrote it.
pub fn of(history: &mut FileHistory, edits: &[FoundEdit]) -> Vec<Option<Claim>> {
    let claims: Vec<FxHashMap<u32, InCommit>> = history.commits.iter().map(in_commit).collect();
    let claim = |origin: &Origin| claims.get(origin.commit?)?.get(&origin.number).copied();
    let followed = followed(&history.lines);
    let mut found = Vec::with_capacity(history.lines.len());
    for (line, is_followed) in history.lines.iter().zip(followed) {
        let (Some(origin), earlier) = (&line.origin, &line.earlier) else {
            found.push(None);
            continue;
        };
        // Git found the line in an earlier commit. It was moved or reformatted only if the later
        // commit removed it elsewhere; else it is a copy, which someone typed.
        let was_moved = is_followed && {
            let removed = origin.commit.and_then(|commit| history.removed.get_mut(commit));
            let count = removed.and_then(|removed| removed.get_mut(&line.key));
            count.filter(|count| **count > 0).is_some_and(|count| {
                *count -= 1;
                true
            })
        };
        found.push(match earlier.as_ref().filter(|_| was_moved) {
            Some(earlier) => claim(earlier).map(|(claim, block)| {
                let confidence = claim.confidence.min(Confidence::Moved);
                (Claim { confidence, ..claim }, block)
            }),
            None => claim(origin),
        });
    }
    let session = |(claim, _): &InCommit| edits[claim.edit].session;
    let writers: Vec<Option<SessionId>> = found.iter().map(|it| it.as_ref().map(session)).collect();
    let blocks: Vec<usize> = found.iter().map(|it| it.map_or(0, |(_, block)| block)).collect();
    let disputed = disputed(&history.lines, &writers);
    let left_over = left_over(&history.lines, &writers, &blocks);
    for at in disputed.into_iter().chain(left_over) {
        found[at] = None;
    }
    found.into_iter().map(|it| it.map(|(claim, _)| claim)).collect()
}

/// A claim in a commit, and how many lines of the same edit stand together there.
type InCommit = (Claim, usize);

fn in_commit(commit: &CommitLines) -> FxHashMap<u32, InCommit> {
    let edit = |line: &CommitLine| line.claim.map(|claim| claim.edit);
    let mut found = FxHashMap::default();
    for block in commit.lines.chunk_by(|one, next| edit(one) == edit(next)) {
        let claims = block.iter().filter_map(|line| Some((line.number, line.claim?)));
        found.extend(claims.map(|(number, claim)| (number, (claim, block.len()))));
    }
    found
}

/// Lines that are left of a block whose other lines were replaced, if their text says nothing: whoever
/// replaced the block may have written them again, and a diff shows them as kept.
fn left_over<Writer: PartialEq>(
    lines: &[FileLine],
    writers: &[Option<Writer>],
    blocks: &[usize],
) -> Vec<usize> {
    let mut counts: FxHashMap<LineKey, usize> = FxHashMap::default();
    for line in lines {
        *counts.entry(line.key).or_default() += 1;
    }
    let tells = |line: &FileLine| counts[&line.key] == 1 && is_distinctive(&line.text);
    let mut found = Vec::new();
    let mut from = 0;
    for run in writers.chunk_by(|one, next| one == next) {
        let to = from + run.len();
        if run[0].is_some() && !lines[from..to].iter().any(tells) {
            found.extend((from..to).filter(|at| blocks[*at] > run.len()));
        }
        from = to;
    }
    found
}

/// For each line whether git may follow it to an earlier commit: people write `return None` anew
/// more often than they move it, so such a line is followed only with the lines around it.
fn followed(lines: &[FileLine]) -> Vec<bool> {
    let goes_on = |one: &FileLine, next: &FileLine| match (one.earlier, next.earlier) {
        (Some(one), Some(next)) => one.commit == next.commit && one.number + 1 == next.number,
        (Some(_) | None, Some(_) | None) => false,
    };
    let mut followed = Vec::with_capacity(lines.len());
    for run in lines.chunk_by(goes_on) {
        let tells = run.iter().any(|line| line.earlier.is_some() && is_distinctive(&line.text));
        followed.extend(std::iter::repeat_n(tells, run.len()));
    }
    followed
}

/// Lines of which a diff does not tell who wrote them. A commit that inserts a function after
/// another wrote its last `}` or the other's: both diffs are right, and git shows one of them. If the
/// two lines have different writers, either may have written either.
fn disputed<Writer: PartialEq>(lines: &[FileLine], writers: &[Writer]) -> Vec<usize> {
    let commit = |at: usize| lines[at].origin.and_then(|origin| origin.commit);
    let is_same = |inside: usize, beside: usize| {
        lines[inside].key == lines[beside].key && commit(beside) < commit(inside)
    };
    let mut found = Vec::new();
    let mut from = 0;
    while from < lines.len() {
        let length = (from..lines.len()).take_while(|at| commit(*at) == commit(from)).count();
        let to = from + length;
        let up = (1..=length.min(from)).take_while(|by| is_same(to - by, from - by));
        let up = up.map(|by| (to - by, from - by));
        let down = (0..length.min(lines.len() - to)).take_while(|by| is_same(from + by, to + by));
        let down = down.map(|by| (from + by, to + by));
        let pairs = up.chain(down).filter(|(one, other)| writers[*one] != writers[*other]);
        found.extend(pairs.flat_map(|(one, other)| [one, other]));
        from = to;
    }
    found
}

#[cfg(test)]
#[path = "line_claims_tests.rs"]
mod tests;
