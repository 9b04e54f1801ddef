//! Which lines of a text stand in an earlier version of it. Linear: it aligns the lines that each
//! version has once, and goes on from them to their neighbours.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// For each new line the index of the same old line.
pub fn kept_lines<Line: Copy + Eq + Hash>(old: &[Line], new: &[Line]) -> Vec<Option<usize>> {
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let ends = old[before..].iter().rev().zip(new[before..].iter().rev());
    let after = ends.take_while(|(old, new)| old == new).count();
    let inner = changed_lines(&old[before..old.len() - after], &new[before..new.len() - after]);
    let inner = inner.into_iter().map(|kept| kept.map(|kept| kept + before));
    let after = (old.len() - after..old.len()).map(Some);
    (0..before).map(Some).chain(inner).chain(after).collect()
}

/// The same between the lines that both begin and end with.
fn changed_lines<Line: Copy + Eq + Hash>(old: &[Line], new: &[Line]) -> Vec<Option<usize>> {
    let mut kept = vec![None; new.len()];
    for (old_at, new_at) in increasing(&unique_pairs(old, new)) {
        kept[new_at] = Some(old_at);
    }
    let mut next_old = 0;
    for at in 0..new.len() {
        if kept[at].is_none()
            && old.get(next_old) == Some(&new[at])
            && !is_taken(&kept, at, next_old)
        {
            kept[at] = Some(next_old);
        }
        if let Some(old_at) = kept[at] {
            next_old = old_at + 1;
        } else {
            // The next line is a neighbour only of a kept line.
            next_old = usize::MAX;
        }
    }
    let mut before_old = old.len().checked_sub(1);
    for at in (0..new.len()).rev() {
        if kept[at].is_none()
            && let Some(old_at) = before_old
            && old[old_at] == new[at]
            && kept[..at].iter().rev().take(1).flatten().all(|it| *it < old_at)
        {
            kept[at] = Some(old_at);
        }
        before_old = kept[at].and_then(|old_at| old_at.checked_sub(1));
    }
    in_order(kept)
}

/// Whether the next kept line already has this old line.
fn is_taken(kept: &[Option<usize>], at: usize, old_at: usize) -> bool {
    kept.get(at + 1).copied().flatten().is_some_and(|next| next <= old_at)
}

/// Extending from both sides may cross: keeps the pairs that are in order.
fn in_order(kept: Vec<Option<usize>>) -> Vec<Option<usize>> {
    let pairs: Vec<(usize, usize)> =
        kept.iter().enumerate().filter_map(|(new, old)| Some(((*old)?, new))).collect();
    let mut ordered = vec![None; kept.len()];
    for (old, new) in increasing(&pairs) {
        ordered[new] = Some(old);
    }
    ordered
}

/// The lines that both have exactly once, in the order of the new text.
fn unique_pairs<Line: Copy + Eq + Hash>(old: &[Line], new: &[Line]) -> Vec<(usize, usize)> {
    let mut places: FxHashMap<Line, (usize, usize, usize, usize)> = FxHashMap::default();
    for (at, line) in old.iter().enumerate() {
        let entry = places.entry(*line).or_default();
        (entry.0, entry.1) = (entry.0 + 1, at);
    }
    for (at, line) in new.iter().enumerate() {
        let entry = places.entry(*line).or_default();
        (entry.2, entry.3) = (entry.2 + 1, at);
    }
    let unique = places.into_values().filter(|(olds, _, news, _)| (*olds, *news) == (1, 1));
    let mut pairs: Vec<(usize, usize)> = unique.map(|(_, old, _, new)| (old, new)).collect();
    pairs.sort_unstable_by_key(|(_, new)| *new);
    pairs
}

/// The longest run of pairs whose old indexes strictly increase.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the pair that ends such a run with the smallest old index.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (old, _)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].0 < *old);
        before.push(length.checked_sub(1).map(|length| ends[length]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(pair) = at {
        run.push(pairs[pair]);
        at = before[pair];
    }
    run.reverse();
    run
}
