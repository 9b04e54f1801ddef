//! Fragments of prose: pieces of a text that another feed may have complete. A fragment is compared
//! with its whole again only after one of the two changed.

use std::collections::BTreeSet;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::provenance::{Feed, HiddenReason, Name};
use crate::rank::PartField;

use super::Assembler;
use super::fold::{PartFold, TurnFold};
use super::names::small;

/// The content hash of the whole text, and its occurrence in the turn.
type WholeKey = (u64, u32);

/// The fragments of one turn.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fragments {
    /// The whole of each fragment.
    wholes: FxHashMap<u32, WholeKey>,
    by_whole: FxHashMap<WholeKey, BTreeSet<u32>>,
    /// Parts that were found to be the whole of fragments: the feed that has its body, and what
    /// the fragments call it.
    found: FxHashMap<u32, (Option<Feed>, Vec<WholeKey>)>,
    /// Fragments to compare with their whole.
    stale: BTreeSet<u32>,
}

impl PartFold {
    /// The text of which this part is a fragment.
    pub fn fragment_of(&self) -> Option<WholeKey> {
        self.origin.names.iter().find_map(|name| {
            if let Name::ContentFragment(content, nth, _) = name {
                Some((*content, *nth))
            } else {
                None
            }
        })
    }
}

impl Fragments {
    pub const fn new() -> Fragments {
        Fragments {
            wholes: FxHashMap::with_hasher(FxBuildHasher),
            by_whole: FxHashMap::with_hasher(FxBuildHasher),
            found: FxHashMap::with_hasher(FxBuildHasher),
            stale: BTreeSet::new(),
        }
    }

    /// Notes a part that may have changed. `whole`: what it is a fragment of; `rank`: the feed that
    /// has its body.
    pub fn update(&mut self, part: usize, whole: Option<WholeKey>, rank: Option<Feed>) {
        let part = small(part);
        if self.wholes.is_empty() && whole.is_none() {
            return;
        }
        let before = self.wholes.get(&part).copied();
        if before != whole {
            if let Some(fragments) = before.and_then(|before| self.by_whole.get_mut(&before)) {
                fragments.remove(&part);
                self.wholes.remove(&part);
            }
            if let Some(whole) = whole {
                self.by_whole.entry(whole).or_default().insert(part);
                self.wholes.insert(part, whole);
            }
        }
        if whole.is_some() {
            self.stale.insert(part);
        }
        if let Some((held, keys)) = self.found.get_mut(&part)
            && *held != rank
        {
            *held = rank;
            for key in keys.iter() {
                self.stale.extend(self.by_whole.get(key).into_iter().flatten());
            }
        }
    }

    /// The name of a text now leads to another part.
    fn rename(&mut self, whole: WholeKey) {
        self.stale.extend(self.by_whole.get(&whole).into_iter().flatten());
    }

    /// Compares with fragments counted from the parts.
    pub fn check(&self, counted: &Fragments) -> Result<(), String> {
        let same = self.wholes == counted.wholes;
        let same = same && counted.by_whole.iter().all(|(k, v)| self.by_whole.get(k) == Some(v));
        if same { Ok(()) } else { Err(format!("{self:#?}\ncounted: {counted:#?}")) }
    }
}

impl TurnFold {
    /// Lets a local name lead to this part. Returns the part it led to before.
    pub fn set_local(&mut self, name: Name, part: usize) -> Option<usize> {
        if let Name::ByContent(content, nth) = name {
            self.lookups.sets.fragments.rename((content, nth));
        }
        let aliases = &mut self.parts[part].aliases;
        if !aliases.contains(&name) {
            aliases.push(name.clone());
        }
        self.lookups.parts.insert(name, part)
    }

    /// Lets no local name lead to this part any more.
    pub fn forget_local(&mut self, part: usize) {
        for name in std::mem::take(&mut self.parts[part].aliases) {
            if self.lookups.parts.get(&name) != Some(&part) {
                continue;
            }
            self.lookups.parts.remove(&name);
            if let Name::ByContent(content, nth) = name {
                self.lookups.sets.fragments.rename((content, nth));
            }
        }
    }
}

impl Assembler {
    /// Hides fragments of prose that a stronger feed has complete, so that it is shown once.
    pub(super) fn settle_fragments(&mut self, turn: usize) {
        self.recount();
        for part in std::mem::take(&mut self.turns[turn].lookups.sets.fragments.stale) {
            let at = (turn, part as usize);
            let Some((content, nth)) = self.peek(at).fragment_of() else { continue };
            let whole = self.find_part(turn, &Name::ByContent(content, nth));
            let rank = |at| self.peek(at).origin.ranks.holder(PartField::Body);
            let whole_rank = whole.and_then(rank);
            let covered = whole_rank > rank(at) && !self.peek(at).gone;
            let covered = covered.then_some(HiddenReason::CoveredFragment);
            if let Some(whole) = whole {
                let found = &mut self.turns[turn].lookups.sets.fragments.found;
                let (held, keys) = found.entry(small(whole.1)).or_default();
                *held = whole_rank;
                if !keys.contains(&(content, nth)) {
                    keys.push((content, nth));
                }
            }
            if self.peek(at).origin.hidden != covered {
                self.part(at).origin.hidden = covered;
                self.emit_origin(at);
            }
        }
    }

    /// Checks that no fragment is hidden or shown wrongly, except those that are noted as stale.
    pub(super) fn check_fragments(&self, turn: usize) -> Result<(), String> {
        let fold = &self.turns[turn];
        for (part, held) in fold.parts.iter().enumerate() {
            let Some((content, nth)) = held.fragment_of() else { continue };
            if fold.lookups.sets.fragments.stale.contains(&small(part)) {
                continue;
            }
            let whole =
                fold.lookups.parts.get(&Name::ByContent(content, nth)).map(|at| &fold.parts[*at]);
            let rank = |part: &PartFold| part.origin.ranks.holder(PartField::Body);
            let covered = whole.and_then(rank) > rank(held) && !held.gone;
            let hidden = held.origin.hidden == Some(HiddenReason::CoveredFragment);
            if hidden != covered {
                return Err(format!("fragment {part}: hidden {hidden}, covered {covered}"));
            }
        }
        Ok(())
    }
}
