use proptest::prelude::*;

use super::front_coding::WordUnpacker;
use super::postings::{Layout, Posting, PostingsWriter};

fn list() -> impl Strategy<Value = Vec<Posting>> {
    let document = prop_oneof![0..200u64, any::<u64>(), Just(u64::MAX), Just(0)];
    prop::collection::btree_map(document, 0..4u8, 1..40).prop_map(|list| {
        list.into_iter().rev().map(|(document, level)| Posting { document, level }).collect()
    })
}

proptest! {
    #[test]
    fn lists_come_back(lists in prop::collection::vec(list(), 1..20)) {
        let mut writer = PostingsWriter::default();
        for list in &lists {
            prop_assert_eq!(writer.add(list.iter().copied()), list.len() as u64);
        }
        let bytes = writer.finish();
        let mut layout = Layout::of(&bytes).unwrap();
        for list in &lists {
            let read = layout.next(&bytes).unwrap();
            prop_assert_eq!(read.documents, list.len() as u64);
            prop_assert_eq!(&read.into_iter().collect::<Vec<_>>(), list);
        }
        prop_assert!(layout.next(&bytes).is_none());
        for (index, list) in lists.iter().enumerate() {
            let read = Layout::of(&bytes).unwrap().nth(&bytes, index).unwrap();
            prop_assert_eq!(&read.into_iter().collect::<Vec<_>>(), list);
        }
    }

    #[test]
    fn any_bytes_can_be_read(mut bytes in prop::collection::vec(any::<u8>(), 0..300), tame in any::<bool>()) {
        if tame {
            for (place, byte) in bytes.iter_mut().zip([1, 9, 200]) {
                *place = byte;
            }
        }
        if let Ok(mut layout) = Layout::of(&bytes) {
            while let Some(list) = layout.next(&bytes) {
                prop_assert!(list.documents <= bytes.len() as u64 + 1);
                prop_assert!(list.into_iter().is_sorted_by(|one, other| one.document > other.document));
            }
        }
        WordUnpacker::default().words(&bytes).ok();
    }

    #[test]
    fn torn_and_changed_bytes_can_be_read(
        lists in prop::collection::vec(list(), 1..20),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut writer = PostingsWriter::default();
        for list in &lists {
            writer.add(list.iter().copied());
        }
        let mut bytes = writer.finish();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        for bytes in [&bytes[..], &bytes[..place]] {
            if let Ok(mut layout) = Layout::of(bytes) {
                while let Some(list) = layout.next(bytes) {
                    list.into_iter().for_each(drop);
                }
            }
        }
    }
}
