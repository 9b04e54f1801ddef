//! Where names lead. A session of a million parts has two million names, and each of them must
//! still be known when a late event speaks of it; so the index holds digests and small numbers,
//! sixteen bytes a name.

use rustc_hash::FxHashMap;

use crate::telling::Name;

use super::part::At;

/// A turn, a step of a turn, a part of a turn. A record may name both a turn and a part.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub turns: Leads<usize>,
    pub steps: Leads<At>,
    pub parts: Leads<At>,
    /// The turns of names that were taken up from the store and not looked at since.
    pub stored: FxHashMap<u64, u32>,
}

/// What names of one kind lead to.
#[derive(Clone, Debug)]
pub(super) struct Leads<T: Packed>(FxHashMap<u64, T::Small>);

impl<T: Packed> Default for Leads<T> {
    fn default() -> Self {
        Leads(FxHashMap::default())
    }
}

impl<T: Packed> Leads<T> {
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

/// Numbers that are kept small.
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

impl Packed for At {
    type Small = (u32, u32);

    fn pack(self) -> (u32, u32) {
        (small(self.0), small(self.1))
    }

    fn unpack((turn, part): (u32, u32)) -> At {
        (turn as usize, part as usize)
    }
}

/// No session has four billion turns, nor a turn four billion parts: memory ends before.
pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
