use std::convert::Infallible;

use proptest::prelude::*;

use super::runs::Runs;
use super::sheets::{BLOCKS, Retrace, Sheet, Stack, Wanted};

fn sheets_of(blocks: &[Vec<String>]) -> Vec<Sheet> {
    let mut stack = Stack::default();
    let mut sheets = Vec::new();
    for words in blocks {
        let mut runs = Runs::default();
        words.iter().for_each(|word| runs.add(word.as_bytes()));
        sheets.extend(stack.add(runs.take()));
    }
    sheets.extend(stack.take());
    sheets
}

/// The blocks, of this many, that the bitmaps admit.
fn wanted(sheets: &[Sheet], needs: &[&str], blocks: usize) -> Vec<usize> {
    let mut read = |sheet: usize, slice: usize| {
        let sheet: Option<&Sheet> = sheets.get(sheet);
        Ok::<_, Infallible>(sheet.and_then(|sheet| sheet.slices.get(slice)).cloned())
    };
    let ranges = Wanted::new(needs.iter().map(|need| need.as_bytes())).blocks(&mut read).unwrap();
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
        let sheets = sheets_of(&blocks);
        prop_assert_eq!(sheets.len(), blocks.len().div_ceil(BLOCKS));
        let words: Vec<&String> = blocks.iter().flatten().collect();
        prop_assume!(!words.is_empty());
        let fragments: Vec<&str> = picks.iter().map(|(word, start, length)| {
            let word = words[word.index(words.len())];
            let start = word.floor_char_boundary(*start % word.len());
            &word[start..word.ceil_char_boundary((start + length).min(word.len()))]
        }).collect();
        for needs in fragments.iter().map(std::slice::from_ref).chain(fragments.windows(2)) {
            let found = wanted(&sheets, needs, blocks.len());
            for (number, block) in blocks.iter().enumerate() {
                let has = block.iter().any(|word| needs.iter().any(|need| word.contains(need)));
                prop_assert!(!has || found.contains(&number), "{needs:?} in {number}");
            }
        }
    }

    #[test]
    fn a_sheet_says_what_the_maps_say(
        blocks in prop::collection::vec(prop::collection::vec("[a-z]{4,9}", 0..40), 1..130),
        run in "[a-z]{4}",
    ) {
        // Compare with each block by itself, widened to the size of its bitmap.
        let sheets = sheets_of(&blocks);
        let found = wanted(&sheets, &[&run], blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            let alone = sheets_of(std::slice::from_ref(block));
            let passes = !wanted(&alone, &[&run], 1).is_empty();
            prop_assert_eq!(passes, found.contains(&number), "{}", number);
        }
    }

    #[test]
    fn what_cannot_be_read_hides_nothing(
        blocks in blocks(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..40))), 1..8),
    ) {
        let mut sheets = sheets_of(&blocks);
        prop_assume!(!sheets.is_empty());
        for (sheet, slice, bytes) in damage {
            let sheet = sheet.index(sheets.len());
            let slices = &mut sheets[sheet].slices;
            let slice = slice.index(slices.len());
            match bytes {
                // Mostly too short for its header; the others must not panic.
                Some(bytes) => slices[slice] = [&[17, 200][..], &bytes].concat(),
                None => slices[slice].truncate(1),
            }
        }
        for (number, block) in blocks.iter().enumerate() {
            for word in block.iter().take(3) {
                prop_assert!(wanted(&sheets, &[word], blocks.len()).contains(&number));
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
        wanted(&[Sheet { slices: headed.collect() }], &[&word], 200);
    }
}

const NOWHERE: &str = "zyxwvutsrqponm";

#[test]
fn most_blocks_are_passed_over() {
    let word = |number: u64| format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let blocks: Vec<Vec<String>> =
        (0..200).map(|block| (0..40).map(|it| word(block * 40 + it)).collect()).collect();
    let sheets = sheets_of(&blocks);
    assert_eq!(sheets.len(), 4);
    assert!(wanted(&sheets, &[&word(7)], 200).len() < 20);
    assert!(wanted(&sheets, &[NOWHERE], 200).len() < 5);
    // Too short a term, alone and beside another one.
    assert_eq!(wanted(&sheets, &["abc"], 200).len(), 200);
    assert_eq!(wanted(&sheets, &[NOWHERE, "a"], 200).len(), 200);
    // Blocks without a bitmap.
    assert!(wanted(&sheets[..2], &[NOWHERE], 200).ends_with(&(124..200).collect::<Vec<_>>()));
    assert_eq!(wanted(&[], &[NOWHERE], 3), [0, 1, 2]);
}

#[test]
fn a_slice_fits_a_quarter_of_a_page() {
    let mut number = 0u64;
    let mut word = || {
        number += 1;
        format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    };
    let blocks: Vec<Vec<String>> = (0..BLOCKS)
        .map(|block| (0..if block == 9 { 5000 } else { 1 }).map(|_| word()).collect())
        .collect();
    let sheets = sheets_of(&blocks);
    assert_eq!((sheets.len(), sheets[0].slices.len()), (1, 256));
    // The maximum row size of an index with four rows in a page of 8192 bytes, minus the key.
    assert!(sheets[0].slices.iter().all(|slice| slice.len() == sheets[0].slices[0].len()));
    assert!(sheets[0].slices[0].len() <= 2030 - 30, "{}", sheets[0].slices[0].len());
}

#[test]
fn sheets_can_be_made_again() {
    let mut builder = super::Builder::default();
    builder.begin(1);
    (0..3000).for_each(|number| builder.text(&format!("word{number}x ")));
    builder.end();
    let segment = builder.finish_with(super::segment::Writer::of_blocks(200));
    assert!(segment.sheets.len() > 2);
    let mut again = Retrace::default();
    let mut sheets: Vec<Sheet> =
        segment.blocks.iter().filter_map(|block| again.add(&block.words).unwrap()).collect();
    sheets.extend(again.finish());
    assert_eq!(sheets, segment.sheets);
}
