//! Which turns stand in one row, and what is said of two sessions.

use super::align::{Pair, align};
use proptest::prelude::*;

fn keys(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// `a:a` for turns with the same key, `a-b` for others beside each other, `a-` alone.
fn rows(left: &str, right: &str) -> String {
    let (left, right) = (keys(left), keys(right));
    let name =
        |keys: &[String], at: Option<usize>| at.map(|at| keys[at].clone()).unwrap_or_default();
    let row = |pair: &Pair| {
        let sign = if pair.is_same { ':' } else { '-' };
        format!("{}{sign}{}", name(&left, pair.left), name(&right, pair.right))
    };
    align(&left, &right).iter().map(row).collect::<Vec<_>>().join(" ")
}

#[test]
fn turns_with_the_same_prompt_stand_in_one_row() {
    assert_eq!(rows("a b c", "a b c"), "a:a b:b c:c");
    assert_eq!(rows("a b c", "a c"), "a:a b- c:c");
    assert_eq!(rows("a c", "a b c"), "a:a -b c:c");
    assert_eq!(rows("a x c", "a y z c"), "a:a x-y -z c:c");
    assert_eq!(rows("", "a"), "-a");
    assert_eq!(rows("", ""), "");
    // A branch goes on differently.
    assert_eq!(rows("a b x y", "a b z"), "a:a b:b x-z y-");
    // A prompt that is often repeated.
    assert_eq!(rows("go go go", "go go"), "go:go go:go go-");
    assert_eq!(rows("a go b go", "a b go"), "a:a go- b:b go:go");
    // No common prompt: side by side by their order.
    assert_eq!(rows("a b", "c d e"), "a-c b-d -e");
}

proptest! {
    /// Law 1: every turn is there once, in the order of its session, and only equal keys are the same.
    #[test]
    fn law_1_every_turn_is_in_one_row_in_its_order(
        left in prop::collection::vec("[a-d]", 0..12), right in prop::collection::vec("[a-d]", 0..12)
    ) {
        let pairs = align(&left, &right);
        let of_left: Vec<usize> = pairs.iter().filter_map(|pair| pair.left).collect();
        let of_right: Vec<usize> = pairs.iter().filter_map(|pair| pair.right).collect();
        prop_assert_eq!(of_left, (0..left.len()).collect::<Vec<_>>());
        prop_assert_eq!(of_right, (0..right.len()).collect::<Vec<_>>());
        for pair in pairs {
            prop_assert!(pair.left.is_some() || pair.right.is_some());
            if pair.is_same {
                prop_assert_eq!(&left[pair.left.unwrap()], &right[pair.right.unwrap()]);
            }
        }
    }
}

/// Long sessions without a common order cost no more than n log n: the diff of two texts takes the
/// square of what differs.
#[test]
fn any_number_of_turns_is_aligned() {
    let left: Vec<String> = (0..200_000).map(|nth: u32| nth.to_string()).collect();
    let right: Vec<String> = left.iter().rev().cloned().collect();
    let pairs = align(&left, &right);
    assert_eq!(pairs.iter().filter(|pair| pair.is_same).count(), 1);
    assert_eq!(pairs.iter().filter_map(|pair| pair.left).count(), left.len());
}
