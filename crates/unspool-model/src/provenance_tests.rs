use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::{HiddenReason, Name, Origin};

#[test]
fn the_reason_a_part_is_hidden_survives_storage_under_the_old_name() {
    let fragment = Origin {
        names: vec![Name::ContentFragment(7, 0, 1)],
        hidden: Some(HiddenReason::CoveredFragment),
        ..Origin::default()
    };
    let call = Origin {
        names: vec![Name::Call("c".into())],
        hidden: Some(HiddenReason::SubAgentCall),
        ..Origin::default()
    };
    let shown = Origin { names: vec![Name::Call("c".into())], ..Origin::default() };
    for (origin, stored) in [(fragment, "true"), (call, "true"), (shown, "false")] {
        let text = serde_json::to_string(&origin).unwrap();
        assert!(text.contains(&format!("\"foreign\":{stored}")), "{text}");
        assert_eq!(serde_json::from_str::<Origin>(&text).unwrap(), origin);
    }
}

/// All names that a session can have with one text and these indexes.
fn names_with(text: &str, indexes: std::ops::Range<u32>) -> Vec<Name> {
    let blocks = indexes.map(|index| Name::Block(text.into(), index));
    let named =
        [Name::Call, Name::AgentsOf, Name::Agent, Name::Message, Name::Prompt, Name::Record];
    blocks.chain(named.map(|name| name(text.into()))).collect()
}

#[test]
fn names_with_short_texts_have_digests_of_their_own() {
    let mut texts: Vec<String> = (0..1000).map(|nth| nth.to_string()).collect();
    texts.extend((0..1000).map(|nth| format!("m{nth}")));
    texts.extend((0..200).map(|nth| format!("msg_{nth:012}")));
    let mut found: FxHashMap<u64, Name> = FxHashMap::default();
    for name in texts.iter().flat_map(|text| names_with(text, 0..70)) {
        if let Some(other) = found.insert(name.digest(), name.clone()) {
            panic!("{name:?} and {other:?} have one digest");
        }
    }
}

proptest! {
    /// Two texts of one length that differ where the seed of the digest changes them.
    #[test]
    fn no_difference_of_two_short_texts_makes_up_for_their_kinds(
        text in "[ -~]{1,16}",
        (first, last) in (1_u8..16, 0_u8..16),
    ) {
        let mut bytes = text.clone().into_bytes();
        bytes[0] ^= first;
        *bytes.last_mut().unwrap() ^= last;
        let other = String::from_utf8(bytes).unwrap();
        prop_assume!(other != text);
        for name in names_with(&text, 0..20) {
            let same = names_with(&other, 0..20).into_iter().find(|it| it.digest() == name.digest());
            prop_assert!(same.is_none(), "{name:?} and {same:?}");
        }
    }
}
