//! Which lines of two versions of a file are the same, and of which lines that is not certain.

use std::iter::StepBy;
use std::ops::Range;

use super::steps::VersionLine;
use super::{LineKey, kept_lines};

/// So far a block may be the same lines further up or down.
const MAX_SLIDE: usize = 1000;

/// For each new line the index of the same old line. White space counts, unless it is most of what
/// differs: people indent lines, and they write a `return` of another depth.
pub fn align(old: &[VersionLine], new: &[VersionLine]) -> Vec<Option<usize>> {
    let old_keys: Vec<LineKey> = old.iter().map(|line| line.key).collect();
    let new_keys: Vec<LineKey> = new.iter().map(|line| line.key).collect();
    let by_key = kept_lines(&old_keys, &new_keys);
    let is_indented = |(at, from): (usize, &Option<usize>)| {
        from.is_some_and(|from| old[from].text != new[at].text)
    };
    let indented = by_key.iter().enumerate().filter(|line| is_indented(*line)).count();
    let changed = by_key.iter().filter(|from| from.is_none()).count();
    if indented == 0 || indented > changed {
        return by_key;
    }
    let old_texts: Vec<u64> = old.iter().map(|line| line.text).collect();
    let new_texts: Vec<u64> = new.iter().map(|line| line.text).collect();
    let mut kept = kept_lines(&old_texts, &new_texts);
    let (mut at, mut from) = (0, 0);
    while at < kept.len() {
        if let Some(same) = kept[at] {
            (at, from) = (at + 1, same + 1);
            continue;
        }
        let gap = kept[at..].iter().take_while(|kept| kept.is_none()).count();
        let to = kept.get(at + gap).copied().flatten().unwrap_or(old.len());
        let inner = kept_lines(&old_keys[from..to], &new_keys[at..at + gap]);
        for (by, same) in inner.into_iter().enumerate() {
            kept[at + by] = same.map(|same| from + same);
        }
        at += gap;
        from = to;
    }
    kept
}

/// The runs of indexes for which it is true.
pub fn runs(count: usize, is_in: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..count).filter(|at| is_in(*at)) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            Some(_) | None => runs.push(at..at + 1),
        }
    }
    runs
}

/// The lines of a block and beside it that are the same, so that the block may be any of them: for
/// each line of the block the indexes of which it may be one.
pub fn slides(
    block: &Range<usize>,
    count: usize,
    text: impl Fn(usize) -> u64,
) -> Vec<StepBy<Range<usize>>> {
    let length = block.len();
    let up = (1..=block.start.min(MAX_SLIDE))
        .take_while(|by| text(block.end - by) == text(block.start - by));
    let start = block.start - up.count();
    let down = (block.end..count.min(block.end + MAX_SLIDE))
        .take_while(|at| text(at - length) == text(*at));
    let end = block.end + down.count();
    if end - start == length {
        return Vec::new();
    }
    (start..start + length).map(|from| (from..end).step_by(length)).collect()
}

/// The runs of kept lines between two changes: new lines, or lines that are gone.
pub fn islands(kept: &[Option<usize>], old_count: usize) -> Vec<Range<usize>> {
    let goes_on = |one: &Option<usize>, next: &Option<usize>| match (one, next) {
        (Some(one), Some(next)) => one + 1 == *next,
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    let mut from = 0;
    let mut islands = Vec::new();
    for run in kept.chunk_by(goes_on) {
        let to = from + run.len();
        let is_first = from == 0 && run.first() == Some(&Some(0));
        let is_last = to == kept.len() && run.last() == Some(&old_count.checked_sub(1));
        if run.first().is_some_and(Option::is_some) && !is_first && !is_last {
            islands.push(from..to);
        }
        from = to;
    }
    islands
}
