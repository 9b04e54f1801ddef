//! The added lines of one commit by their text and by the lines around them. Looking up a line of an
//! edit costs the same however long the commit is.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::LineKey;
use super::claims::CommitLine;

/// What a line is looked up by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Around {
    Both,
    Before,
    After,
    Nothing,
}

/// Of lines with the same text and neighbours, so many are compared further.
const MAX_COMPARED: usize = 16;
/// So many lines before and after tell them apart.
const COMPARED_LINES: usize = 4;

pub(super) struct LineIndex {
    places: FxHashMap<u64, Vec<usize>>,
}

/// The keys of lines of which one is looked up.
pub(super) trait Keys {
    fn key(&self, at: usize) -> LineKey;
}

fn digest(around: Around, before: LineKey, key: LineKey, after: LineKey) -> u64 {
    let mut digest = FxHasher::default();
    around.hash(&mut digest);
    key.hash(&mut digest);
    if matches!(around, Around::Both | Around::Before) {
        before.hash(&mut digest);
    }
    if matches!(around, Around::Both | Around::After) {
        after.hash(&mut digest);
    }
    digest.finish()
}

fn neighbours(lines: &impl Keys, at: usize) -> (LineKey, LineKey, LineKey) {
    let before = at.checked_sub(1).map_or(LineKey::BREAK, |before| lines.key(before));
    (before, lines.key(at), lines.key(at + 1))
}

impl LineIndex {
    pub fn new(lines: &[CommitLine]) -> LineIndex {
        let mut places: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        // Backwards, so that the first place is the last of its list.
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.is_added).rev() {
            let (before, key, after) = neighbours(&lines, at);
            for around in [Around::Both, Around::Before, Around::After, Around::Nothing] {
                places.entry(digest(around, before, key, after)).or_default().push(at);
            }
        }
        LineIndex { places }
    }

    /// The places of lines like this one that nobody claimed, first one last.
    fn free(
        &mut self,
        commit: &[CommitLine],
        lines: &impl Keys,
        at: usize,
        around: Around,
    ) -> &[usize] {
        let (before, key, after) = neighbours(lines, at);
        let Some(places) = self.places.get_mut(&digest(around, before, key, after)) else {
            return &[];
        };
        // A claim is never given back: each place is removed once.
        while places.last().is_some_and(|last| commit[*last].claim.is_some()) {
            places.pop();
        }
        places
    }

    /// The place in the commit that is most like the surroundings of this line.
    pub fn find(
        &mut self,
        commit: &[CommitLine],
        lines: &impl Keys,
        at: usize,
        around: Around,
    ) -> Option<usize> {
        let free = self.free(commit, lines, at, around);
        let candidates = free.iter().rev().filter(|place| commit[**place].claim.is_none());
        let likeness = |place: usize| {
            let down = (1..=COMPARED_LINES)
                .take_while(|by| commit.key(place + by) == lines.key(at + by))
                .count();
            let up = (1..=COMPARED_LINES.min(at).min(place))
                .take_while(|by| commit.key(place - by) == lines.key(at - by))
                .count();
            up + down
        };
        let mut best: Option<(usize, usize)> = None;
        for place in candidates.take(MAX_COMPARED) {
            let likeness = likeness(*place);
            if best.is_none_or(|(most, _)| likeness > most) {
                best = Some((likeness, *place));
            }
        }
        best.map(|(_, place)| place)
    }

    /// The one unclaimed line with this text, if there is only one.
    pub fn find_only(
        &mut self,
        commit: &[CommitLine],
        lines: &impl Keys,
        at: usize,
    ) -> Option<usize> {
        let free = self.free(commit, lines, at, Around::Nothing);
        let mut free = free.iter().rev().filter(|place| commit[**place].claim.is_none());
        let found = free.next().copied();
        if free.next().is_some() { None } else { found }
    }
}

impl Keys for [CommitLine] {
    fn key(&self, at: usize) -> LineKey {
        self.get(at).map_or(LineKey::BREAK, |line| line.key)
    }
}

impl Keys for &[CommitLine] {
    fn key(&self, at: usize) -> LineKey {
        (**self).key(at)
    }
}
