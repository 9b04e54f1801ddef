//! The name index: from names to turns, steps and parts. A session of a million parts has two
//! million names, and late events may refer to any of them, so the index holds digests and 32-bit
//! numbers: sixteen bytes per name.

use rustc_hash::FxHashMap;

use crate::provenance::Name;

use super::part::PartIndex;

/// One map per kind of target. The same record may name both a turn and a part.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub turns: NameMap<usize>,
    pub steps: NameMap<PartIndex>,
    pub parts: NameMap<PartIndex>,
    /// The turns of names loaded from the store and not restored since.
    pub stored: FxHashMap<u64, u32>,
}

/// A map from name digests to targets.
#[derive(Clone, Debug)]
pub(super) struct NameMap<T: Packed>(FxHashMap<u64, T::Small>);

impl<T: Packed> Default for NameMap<T> {
    fn default() -> Self {
        NameMap(FxHashMap::default())
    }
}

impl<T: Packed> NameMap<T> {
    pub fn get(&self, name: &Name) -> Option<T> {
        self.0.get(&name.digest()).map(|small| T::unpack(*small))
    }

    pub fn insert(&mut self, name: &Name, to: T) {
        self.0.insert(name.digest(), to.pack());
    }

    pub fn insert_new(&mut self, name: &Name, to: T) {
        self.0.entry(name.digest()).or_insert(to.pack());
    }
}

/// A target that is stored in 32-bit numbers.
pub(super) trait Packed: Copy {
    type Small: Copy + std::fmt::Debug;
    fn pack(self) -> Self::Small;
    fn unpack(small: Self::Small) -> Self;
}

impl Packed for usize {
    type Small = u32;

    fn pack(self) -> u32 {
        small(self)
    }

    fn unpack(small: u32) -> usize {
        small as usize
    }
}

impl Packed for PartIndex {
    type Small = (u32, u32);

    fn pack(self) -> (u32, u32) {
        (small(self.0), small(self.1))
    }

    fn unpack((turn, part): (u32, u32)) -> PartIndex {
        (turn as usize, part as usize)
    }
}

/// Saturates: memory runs out before a session has 2^32 turns or a turn 2^32 parts.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
