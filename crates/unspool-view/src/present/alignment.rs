//! Aligns two sequences. What they consist of is replaced by numbers first, so that the program holds
//! the algorithm once and not once for each type.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// The operations that turn one sequence into the other (Myers).
pub(in crate::present) fn align<T: Eq + Hash>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let mut numbers: FxHashMap<&T, u32> = FxHashMap::default();
    let mut number = |item| {
        let next = numbers.len() as u32;
        *numbers.entry(item).or_insert(next)
    };
    let old: Vec<u32> = old.iter().map(&mut number).collect();
    let new: Vec<u32> = new.iter().map(&mut number).collect();
    align_numbers(&old, &new)
}

fn align_numbers(old: &[u32], new: &[u32]) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff(&mut hook, old, 0..old.len(), new, 0..new.len());
    hook.into_inner().into_inner().into_ops()
}
