//! What is looked up in a turn while it is in memory. It takes half a kilobyte even when empty, and
//! a session may have a hundred thousand turns in the store: those share one empty value.

use std::ops::{Deref, DerefMut};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::provenance::Name;

use super::part_sets::PartSets;
use super::runs::Runs;

#[derive(Clone, Debug)]
pub(super) struct Lookups {
    /// Names of parts that are unique only within this turn.
    pub parts: FxHashMap<Name, usize>,
    /// The same for steps.
    pub steps: FxHashMap<Name, usize>,
    /// Occurrences per content hash, counted separately for hooks (`true`) and for the feeds
    /// that share ids.
    pub occurrences: FxHashMap<(bool, u64), u32>,
    pub sets: PartSets,
    /// Only in a turn that has runs.
    pub runs: Option<Box<Runs>>,
}

static EMPTY: Lookups = Lookups::new();

impl Lookups {
    const fn new() -> Lookups {
        Lookups {
            parts: FxHashMap::with_hasher(FxBuildHasher),
            steps: FxHashMap::with_hasher(FxBuildHasher),
            occurrences: FxHashMap::with_hasher(FxBuildHasher),
            sets: PartSets::new(),
            runs: None,
        }
    }
}

/// Allocated when it is first written to.
#[derive(Clone, Debug, Default)]
pub(super) struct LazyLookups(Option<Box<Lookups>>);

impl Deref for LazyLookups {
    type Target = Lookups;

    fn deref(&self) -> &Lookups {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for LazyLookups {
    fn deref_mut(&mut self) -> &mut Lookups {
        self.0.get_or_insert_with(|| Box::new(Lookups::new()))
    }
}
