//! Which turns of two sessions stand in one row: those with the same prompt, in the order of both
//! sessions. Turns between them stand beside each other by their order.

use rustc_hash::FxHashMap;

/// A row, as positions in both sequences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    pub left: Option<usize>,
    pub right: Option<usize>,
    /// Both have the same key.
    pub is_same: bool,
}

/// Aligns two sequences of keys. Costs n log n, whatever they contain: sessions may have any number
/// of turns, and a diff algorithm takes the square of what differs.
pub fn align(left: &[String], right: &[String]) -> Vec<Pair> {
    let same = |(a, b): &(&String, &String)| a == b;
    let start = left.iter().zip(right).take_while(same).count();
    let (left_rest, right_rest) = (&left[start..], &right[start..]);
    let end = left_rest.iter().rev().zip(right_rest.iter().rev()).take_while(same).count();
    let left_middle = &left_rest[..left_rest.len() - end];
    let right_middle = &right_rest[..right_rest.len() - end];

    let mut pairs: Vec<Pair> = (0..start).map(|at| Pair::same(at, at)).collect();
    let (mut next_left, mut next_right) = (0, 0);
    let ends = std::iter::once((left_middle.len(), right_middle.len()));
    let anchors = anchors(left_middle, right_middle);
    let anchor_count = anchors.len();
    for (nth, (a, b)) in anchors.into_iter().chain(ends).enumerate() {
        let rows = (a - next_left).max(b - next_right);
        for row in 0..rows {
            let within = |next: usize, end: usize| (next + row < end).then_some(start + next + row);
            let (left, right) = (within(next_left, a), within(next_right, b));
            pairs.push(Pair { left, right, is_same: false });
        }
        if nth < anchor_count {
            pairs.push(Pair::same(start + a, start + b));
        }
        (next_left, next_right) = (a + 1, b + 1);
    }
    let (left_end, right_end) = (left.len() - end, right.len() - end);
    pairs.extend((0..end).map(|at| Pair::same(left_end + at, right_end + at)));
    pairs
}

impl Pair {
    fn same(left: usize, right: usize) -> Pair {
        Pair { left: Some(left), right: Some(right), is_same: true }
    }
}

/// Positions with the same key that keep the order of both sequences: the nth occurrence of a key
/// belongs to its nth occurrence on the other side, and of these pairs as many as do not cross.
fn anchors(left: &[String], right: &[String]) -> Vec<(usize, usize)> {
    let mut places: FxHashMap<&str, std::collections::VecDeque<usize>> = FxHashMap::default();
    for (at, key) in right.iter().enumerate() {
        places.entry(key).or_default().push_back(at);
    }
    let candidates: Vec<(usize, usize)> = left
        .iter()
        .enumerate()
        .filter_map(|(at, key)| Some((at, places.get_mut(key.as_str())?.pop_front()?)))
        .collect();
    // The longest increasing subsequence of the right positions. `tails[n]` is the candidate with the
    // smallest position that ends a sequence of n + 1.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(candidates.len());
    for (nth, (_, place)) in candidates.iter().enumerate() {
        let at = tails.partition_point(|tail| candidates[*tail].1 < *place);
        before.push(at.checked_sub(1).and_then(|previous| tails.get(previous).copied()));
        match tails.get_mut(at) {
            Some(tail) => *tail = nth,
            None => tails.push(nth),
        }
    }
    let mut found = Vec::with_capacity(tails.len());
    let mut next = tails.last().copied();
    while let Some(nth) = next {
        found.push(candidates[nth]);
        next = before[nth];
    }
    found.reverse();
    found
}
