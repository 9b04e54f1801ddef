use std::collections::BTreeMap;

use proptest::prelude::*;

use super::SegmentBuilder;
use super::front_coding::WordUnpacker;
use super::model::{merged, text, words_of_text};
use super::postings::Layout;
use super::segment::Segment;

/// Word and document to level, as read from the blocks.
pub(super) type Pairs = BTreeMap<(String, u64), u8>;

pub(super) fn pairs(segment: &Segment) -> Pairs {
    let mut pairs = Pairs::new();
    let mut word_unpacker = WordUnpacker::default();
    let mut previous = Vec::new();
    for block in &segment.blocks {
        let raw = word_unpacker.words(&block.words).unwrap();
        let words: Vec<&[u8]> = raw[1..raw.len() - 1].split(|byte| *byte == b'\n').collect();
        assert_eq!(words.first().unwrap(), &block.first);
        assert_eq!(words.last().unwrap(), &block.last);
        let mut layout = Layout::of(&block.postings).unwrap();
        for word in words {
            assert!(previous.as_slice() < word, "words in order");
            previous = word.to_vec();
            for posting in layout.next(&block.postings).unwrap() {
                let word = String::from_utf8(word.to_vec()).unwrap();
                assert!(pairs.insert((word, posting.document), posting.level).is_none());
            }
        }
        assert!(layout.next(&block.postings).is_none());
    }
    pairs
}

pub(super) fn expected(documents: &[(u64, String)]) -> Pairs {
    let mut expected = Pairs::new();
    for (number, text) in documents {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for word in words_of_text(text) {
            *counts.entry(word).or_default() += 1;
        }
        for (word, count) in counts {
            let level = expected.entry((word, *number)).or_default();
            *level = (*level).max(match count {
                1 => 0,
                2..=3 => 1,
                4..=7 => 2,
                _ => 3,
            });
        }
    }
    expected
}

fn build(documents: &[(u64, String)]) -> Segment {
    let mut builder = SegmentBuilder::default();
    for (number, text) in documents {
        builder.begin(*number);
        builder.text(text);
        builder.end();
    }
    assert_eq!(builder.documents(), documents.len());
    builder.finish()
}

proptest! {
    #[test]
    fn a_segment_has_the_words_of_its_documents(mut documents in prop::collection::vec((0..60u64, text()), 0..30), sort in any::<bool>()) {
        if sort {
            documents.sort_by_key(|(number, _)| *number);
        }
        let segment = build(&documents);
        let pairs = pairs(&segment);
        prop_assert_eq!(segment.tokens, pairs.len() as u64);
        prop_assert_eq!(&pairs, &expected(&documents));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn many_words_make_many_blocks(seed in 0..1000u64, extra in 0..3000usize) {
        let mut documents = Vec::new();
        for document in 0..20 {
            let words = (0..200 + extra).map(|word| format!("{:x}", (word as u64 + document * 100 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            documents.push((document, words.collect::<Vec<_>>().join(" ")));
        }
        let segment = build(&documents);
        prop_assert_eq!(&pairs(&segment), &expected(&documents));
        let again = merged([&segment].into_iter(), &mut |_| true);
        prop_assert_eq!(again, segment);
    }
}

#[test]
fn several_texts_of_a_document_count_together() {
    let mut builder = SegmentBuilder::default();
    builder.text("nowhere");
    builder.begin(7);
    builder.text("alpha beta");
    builder.json(r#"{"alpha": "alpha\nalpha"}"#);
    builder.end();
    builder.text("nowhere");
    let segment = builder.finish();
    let found: Vec<_> = pairs(&segment).into_iter().collect();
    assert_eq!(found, [(("alpha".to_owned(), 7), 2), (("beta".to_owned(), 7), 0)]);
    assert_eq!((segment.documents, segment.words, segment.tokens), (1, 2, 2));
}

#[test]
fn nothing_is_a_segment_too() {
    assert_eq!(SegmentBuilder::default().finish(), Segment::default());
}

#[test]
fn a_very_common_word_ends_its_block() {
    let mut builder = SegmentBuilder::default();
    for number in 0..200_000 {
        builder.begin(number);
        builder.text("common");
        if number % 1000 == 0 {
            builder.text(&format!("z{number} a{number}"));
        }
        builder.end();
    }
    let segment = builder.finish();
    assert_eq!(segment.blocks.len(), 2);
    assert_eq!(segment.blocks[0].last, b"common");
}

#[test]
fn memory_is_what_is_held() {
    let mut builder = SegmentBuilder::default();
    let empty = builder.memory();
    builder.begin(1);
    for number in 0..100_000 {
        builder.text(&format!("word{number} "));
    }
    builder.end();
    assert!(empty < 64 << 10, "{empty}");
    assert!((2 << 20..8 << 20).contains(&builder.memory()), "{}", builder.memory());
}
