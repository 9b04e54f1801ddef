use std::convert::Infallible;

use proptest::prelude::*;

use super::ngram_bitmaps::{
    BLOCKS_PER_BITMAP, BitmapBuilder, BitmapRebuilder, NgramBitmap, NgramQuery,
};
use super::ngrams::NgramHashes;

fn bitmaps_of(blocks: &[Vec<String>]) -> Vec<NgramBitmap> {
    let mut stack = BitmapBuilder::default();
    let mut bitmaps = Vec::new();
    for words in blocks {
        let mut ngrams = NgramHashes::default();
        words.iter().for_each(|word| ngrams.add(word.as_bytes()));
        bitmaps.extend(stack.add(ngrams.take()));
    }
    bitmaps.extend(stack.take());
    bitmaps
}

/// The blocks, of this many, that the bitmaps admit.
fn wanted(bitmaps: &[NgramBitmap], terms: &[&str], blocks: usize) -> Vec<usize> {
    let mut read = |bitmap: usize, slice: usize| {
        let bitmap: Option<&NgramBitmap> = bitmaps.get(bitmap);
        Ok::<_, Infallible>(bitmap.and_then(|bitmap| bitmap.slices.get(slice)).cloned())
    };
    let ranges =
        NgramQuery::new(terms.iter().map(|term| term.as_bytes())).blocks(&mut read).unwrap();
    assert!(ranges.iter().all(|range| !range.is_empty()));
    assert!(ranges.is_sorted_by(|one, other| one.end < other.start), "apart and in order");
    (0..blocks).filter(|block| ranges.iter().any(|range| range.contains(block))).collect()
}

/// Blocks of very different sizes, so that bitmaps are widened.
fn blocks() -> impl Strategy<Value = Vec<Vec<String>>> {
    let block = prop_oneof![
        6 => prop::collection::vec("[a-f]{1,12}|[a-zé]{4,9}", 0..6),
        1 => prop::collection::vec("[a-z0-9]{8,12}", 200..400),
    ];
    prop::collection::vec(block, 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_block_that_has_a_fragment_is_passed_over(
        blocks in blocks(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize, 1..9usize), 1..30),
    ) {
        let bitmaps = bitmaps_of(&blocks);
        prop_assert_eq!(bitmaps.len(), blocks.len().div_ceil(BLOCKS_PER_BITMAP));
        let words: Vec<&String> = blocks.iter().flatten().collect();
        prop_assume!(!words.is_empty());
        let fragments: Vec<&str> = picks.iter().map(|(word, start, length)| {
            let word = words[word.index(words.len())];
            let start = word.floor_char_boundary(*start % word.len());
            &word[start..word.ceil_char_boundary((start + length).min(word.len()))]
        }).collect();
        for terms in fragments.iter().map(std::slice::from_ref).chain(fragments.windows(2)) {
            let found = wanted(&bitmaps, terms, blocks.len());
            for (number, block) in blocks.iter().enumerate() {
                let has = block.iter().any(|word| terms.iter().any(|term| word.contains(term)));
                prop_assert!(!has || found.contains(&number), "{terms:?} in {number}");
            }
        }
    }

    #[test]
    fn a_sheet_says_what_the_maps_say(
        blocks in prop::collection::vec(prop::collection::vec("[a-z]{4,9}", 0..40), 1..130),
        run in "[a-z]{4}",
    ) {
        // Compare with each block by itself, widened to the size of its bitmap.
        let bitmaps = bitmaps_of(&blocks);
        let found = wanted(&bitmaps, &[&run], blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            let alone = bitmaps_of(std::slice::from_ref(block));
            let passes = !wanted(&alone, &[&run], 1).is_empty();
            prop_assert_eq!(passes, found.contains(&number), "{}", number);
        }
    }

    #[test]
    fn what_cannot_be_read_hides_nothing(
        blocks in blocks(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..40))), 1..8),
    ) {
        let mut bitmaps = bitmaps_of(&blocks);
        prop_assume!(!bitmaps.is_empty());
        for (bitmap, slice, bytes) in damage {
            let bitmap = bitmap.index(bitmaps.len());
            let slices = &mut bitmaps[bitmap].slices;
            let slice = slice.index(slices.len());
            match bytes {
                // Mostly too short for its header; the others must not panic.
                Some(bytes) => slices[slice] = [&[17, 200][..], &bytes].concat(),
                None => slices[slice].truncate(1),
            }
        }
        for (number, block) in blocks.iter().enumerate() {
            for word in block.iter().take(3) {
                prop_assert!(wanted(&bitmaps, &[word], blocks.len()).contains(&number));
            }
        }
    }

    #[test]
    fn any_bytes_can_be_looked_at(
        slices in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4),
        power in 0..20u8,
        count in 0..70u8,
        word in "[a-z]{4,8}",
    ) {
        let headed = slices.into_iter().map(|bytes| [&[power, count][..], &bytes].concat());
        wanted(&[NgramBitmap { slices: headed.collect() }], &[&word], 200);
    }
}

const NOWHERE: &str = "zyxwvutsrqponm";

#[test]
fn most_blocks_are_passed_over() {
    let word = |number: u64| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let blocks: Vec<Vec<String>> =
        (0..200).map(|block| (0..40).map(|it| word(block * 40 + it)).collect()).collect();
    let bitmaps = bitmaps_of(&blocks);
    assert_eq!(bitmaps.len(), 4);
    assert!(wanted(&bitmaps, &[&word(7)], 200).len() < 20);
    assert!(wanted(&bitmaps, &[NOWHERE], 200).len() < 5);
    // Too short a term, alone and beside another one.
    assert_eq!(wanted(&bitmaps, &["abc"], 200).len(), 200);
    assert_eq!(wanted(&bitmaps, &[NOWHERE, "a"], 200).len(), 200);
    // Blocks without a bitmap.
    assert!(wanted(&bitmaps[..2], &[NOWHERE], 200).ends_with(&(124..200).collect::<Vec<_>>()));
    assert_eq!(wanted(&[], &[NOWHERE], 3), [0, 1, 2]);
}

#[test]
fn a_slice_fits_a_quarter_of_a_page() {
    let mut number = 0u64;
    let mut word = || {
        number += 1;
        format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    };
    let blocks: Vec<Vec<String>> = (0..BLOCKS_PER_BITMAP)
        .map(|block| (0..if block == 9 { 5000 } else { 1 }).map(|_| word()).collect())
        .collect();
    let bitmaps = bitmaps_of(&blocks);
    assert_eq!((bitmaps.len(), bitmaps[0].slices.len()), (1, 256));
    // The maximum row size of an index with four rows in a page of 8192 bytes, minus the key.
    assert!(bitmaps[0].slices.iter().all(|slice| slice.len() == bitmaps[0].slices[0].len()));
    assert!(bitmaps[0].slices[0].len() <= 2030 - 30, "{}", bitmaps[0].slices[0].len());
}

#[test]
fn sheets_can_be_made_again() {
    let mut builder = super::SegmentBuilder::default();
    builder.begin(1);
    (0..3000).for_each(|number| builder.text(&format!("word{number}x ")));
    builder.end();
    let segment = builder.finish_with(super::segment::BlockWriter::of_blocks(200));
    assert!(segment.bitmaps.len() > 2);
    let mut again = BitmapRebuilder::default();
    let mut bitmaps: Vec<NgramBitmap> =
        segment.blocks.iter().filter_map(|block| again.add(&block.words).unwrap()).collect();
    bitmaps.extend(again.finish());
    assert_eq!(bitmaps, segment.bitmaps);
}
