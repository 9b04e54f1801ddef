//! From the claims in commits to the lines of the file, over what git says about each line.

use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_view::present::blame::{Claim, CommitLines, Confidence, is_distinctive};

use super::edits::FoundEdit;
use super::file_history::{FileHistory, FileLine, Origin};

/// For each line of the file the edit that wrote it.
pub fn of(history: &mut FileHistory, edits: &[FoundEdit]) -> Vec<Option<Claim>> {
    let numbered = |lines: &CommitLines| -> FxHashMap<u32, Option<Claim>> {
        let added = lines.lines.iter().filter(|line| line.is_added);
        added.map(|line| (line.number, line.claim)).collect()
    };
    let claims: Vec<FxHashMap<u32, Option<Claim>>> = history.commits.iter().map(numbered).collect();
    let claim =
        |origin: &Origin| claims.get(origin.commit?)?.get(&origin.number).copied().flatten();
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
            Some(earlier) => claim(earlier).map(|claim| Claim {
                confidence: claim.confidence.min(Confidence::Moved),
                ..claim
            }),
            None => claim(origin),
        });
    }
    let session = |claim: &Option<Claim>| claim.map(|claim| edits[claim.edit].session);
    let writers: Vec<Option<SessionId>> = found.iter().map(session).collect();
    for at in disputed(&history.lines, &writers) {
        found[at] = None;
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
