//! From the claims in commits to the lines of the file, over what git says about each line.

use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_view::present::blame::{Claim, CommitLines, LineKey, is_distinctive};

use super::edits::FoundEdit;
use super::file_history::{FileHistory, FileLine, Origin};

/// For each line of the file the edit that wrote it.
pub fn of(history: &mut FileHistory, edits: &[FoundEdit]) -> Vec<Option<Claim>> {
    let claims: Vec<FxHashMap<u32, Claim>> = history.commits.iter().map(in_commit).collect();
    let claim = |origin: &Origin| claims.get(origin.commit?)?.get(&origin.number).copied();
    let session = |claim: &Claim| edits[claim.edit].session;
    let followed = followed(&history.lines);
    let mut found: Vec<Option<LineClaim>> = Vec::with_capacity(history.lines.len());
    for (line, is_followed) in history.lines.iter().zip(followed) {
        let Some(origin) = line.origins.first() else {
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
        let from = line.earlier.as_ref().filter(|_| was_moved).unwrap_or(origin);
        let mut claimed = claim(from);
        if !was_moved {
            // Several lines with several writers have none.
            let is_by = |other: &Origin, first: &Claim| {
                claim(other).is_some_and(|other| session(&other) == session(first))
            };
            claimed = claimed.filter(|first| line.origins.iter().all(|it| is_by(it, first)));
        }
        found.push(claimed.map(|claim| match was_moved || line.is_reflowed {
            true => LineClaim { claim: claim.moved(), from: *from },
            false => LineClaim { claim, from: *from },
        }));
    }
    let writers: Vec<Option<SessionId>> =
        found.iter().map(|it| it.as_ref().map(|it| session(&it.claim))).collect();
    let disputed = disputed(&history.lines, &writers);
    let alone = alone(&found, &distinctive(history));
    for at in disputed.into_iter().chain(alone) {
        found[at] = None;
    }
    found.into_iter().map(|it| it.map(|it| it.claim)).collect()
}

/// The edit that wrote a line, and the line of a commit that it is.
struct LineClaim {
    claim: Claim,
    from: Origin,
}

fn in_commit(commit: &CommitLines) -> FxHashMap<u32, Claim> {
    commit.lines.iter().filter_map(|line| Some((line.number, line.claim?))).collect()
}

/// Lines whose text does not say who wrote it, and that no longer stand beside a line of the same edit
/// with which they were written. Whoever replaced the lines around them may have written them again,
/// and a diff shows them as kept.
fn alone(found: &[Option<LineClaim>], tells: &[bool]) -> Vec<usize> {
    let goes_on = |one: &Option<LineClaim>, next: &Option<LineClaim>| match (one, next) {
        (Some(one), Some(next)) => {
            one.claim.edit == next.claim.edit
                && one.from.commit == next.from.commit
                && one.from.number + 1 == next.from.number
        }
        (Some(_) | None, Some(_) | None) => false,
    };
    let runs = found.chunk_by(goes_on).scan(0, |at, run| {
        *at += run.len();
        Some((*at - 1, run.len()))
    });
    let alone = runs.filter(|(last, length)| *length == 1 && found[*last].is_some());
    alone.map(|(at, _)| at).filter(|at| !tells[*at]).collect()
}

/// For each line whether its text alone says who wrote it: it stands once in the file, and only one
/// commit ever added it. People and agents write `log.info("start")` again and again.
fn distinctive(history: &FileHistory) -> Vec<bool> {
    let mut counts: FxHashMap<LineKey, (usize, usize)> = FxHashMap::default();
    for line in &history.lines {
        counts.entry(line.key).or_default().0 += 1;
    }
    let added = history.commits.iter().flat_map(|commit| &commit.lines);
    for line in added.filter(|line| line.is_added) {
        if let Some(count) = counts.get_mut(&line.key()) {
            count.1 += 1;
        }
    }
    let tells = |line: &FileLine| {
        let (stands, added) = counts.get(&line.key).copied().unwrap_or_default();
        stands == 1 && added <= 1 && is_distinctive(&line.text)
    };
    history.lines.iter().map(tells).collect()
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
    let commit = |at: usize| lines[at].origins.first().and_then(|origin| origin.commit);
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
