use proptest::prelude::*;

use super::front_coding::{BLOCK_BYTES, WordPacker, WordUnpacker};

proptest! {
    #[test]
    fn words_come_back(words in prop::collection::btree_set("[ab]{1,64}|[a-z0-9]{1,20}|é{1,32}", 1..200)) {
        let mut packer = WordPacker::default();
        for word in &words {
            packer.add(word.as_bytes());
        }
        let packed = packer.finish().unwrap();
        let raw: String = words.iter().map(|word| format!("\n{word}")).collect::<String>() + "\n";
        let mut word_unpacker = WordUnpacker::default();
        prop_assert_eq!(word_unpacker.words(&packed.words).unwrap(), raw.as_bytes());
        prop_assert_eq!(&packed.first, words.first().unwrap().as_bytes());
        prop_assert_eq!(&packed.last, words.last().unwrap().as_bytes());
        prop_assert!(packer.finish().is_none());
    }

    #[test]
    fn any_bytes_can_be_unpacked(mut bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        if let Some(version) = bytes.first_mut() {
            *version = 2;
        }
        let mut word_unpacker = WordUnpacker::default();
        if let Ok(raw) = word_unpacker.words(&bytes) {
            prop_assert!(raw.starts_with(b"\n") && raw.ends_with(b"\n"));
        }
    }
}

#[test]
fn a_full_block_can_be_unpacked() {
    let mut packer = WordPacker::default();
    let mut number = 0;
    while packer.length() <= BLOCK_BYTES {
        packer.add(format!("{number:064}").as_bytes());
        number += 1;
    }
    let packed = packer.finish().unwrap();
    assert_eq!(WordUnpacker::default().words(&packed.words).unwrap().len(), number * 65 + 1);
}

#[test]
fn hostile_words_take_no_more_than_a_block() {
    let bytes = [&[2, 1, b'a'][..], &[0x11, b'a'].repeat(1 << 20)].concat();
    assert!(WordUnpacker::default().words(&bytes).is_err());
}
