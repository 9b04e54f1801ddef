//! Rewinds, and saving and restoring the tree.

use super::*;

fn name(text: &str) -> Name {
    Name::Prompt(text.into())
}

fn tree() -> Tree {
    let mut tree = Tree::default();
    tree.note(digest(b"before"));
    for turn in ["a", "b", "c"] {
        tree.begin(name(turn));
        for record in 0..3 {
            tree.note(digest(format!("{turn}{record}").as_bytes()));
        }
    }
    tree
}

#[test]
fn a_prompt_leaves_the_turns_behind_that_follow_its_parent() {
    assert_eq!(tree().rewind("c0"), []);
    assert_eq!(tree().rewind("a2"), [name("b"), name("c")]);
    assert_eq!(tree().rewind("before"), [name("a"), name("b"), name("c")]);
    assert_eq!(tree().rewind("unknown"), []);
    let mut tree = tree();
    assert_eq!(tree.rewind("b1"), [name("c")]);
    tree.begin(name("d"));
    // An abandoned turn is not reported again.
    assert_eq!(tree.rewind("a0"), [name("b"), name("d")]);
    assert_eq!(tree.current(), Some(&name("a")));
}

#[test]
fn what_is_saved_is_what_was_held() {
    let mut tree = tree();
    for bits in [0, 1, 63, u64::MAX, 1 << 63, 0x0123_4567_89ab_cdef] {
        tree.note(bits);
    }
    // Every value of six bits.
    (0..64).for_each(|value| tree.note(value << 58 | value << 30 | value));
    let saved = serde_json::to_string(&tree).unwrap();
    let again: Tree = serde_json::from_str(&saved).unwrap();
    assert_eq!(again.records, tree.records);
    assert_eq!((again.turns, again.live), (tree.turns, tree.live));
    // No character needs an escape.
    assert!(!saved.contains('\\'));
    assert!(serde_json::from_str::<Tree>(r#"{"records":"0","turns":[],"live":[]}"#).is_err());
}
