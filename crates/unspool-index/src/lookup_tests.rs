use proptest::prelude::*;

use super::matcher_tests::{picks, query_from};
use super::model::{MemoryStore, all_candidates, build_segments, merged, naive_matches, text};
use super::segment::BlockWriter;
use super::{CorruptIndex, Limits, Segment, SegmentBlock, SegmentBuilder, TextQuery, candidates};

fn limits() -> impl Strategy<Value = Limits> {
    let small = prop::sample::select(vec![0, 1, 3, 20, 5_000]);
    (small.clone(), 1..30usize, small.clone(), small.clone(), small).prop_map(
        |(ranked, max_newest, enough_documents, words, postings)| Limits {
            ranked,
            max_newest,
            before: None,
            enough_documents,
            words: words as usize,
            postings,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The invariant of the index: every match is a candidate.
    #[test]
    fn no_document_that_matches_is_missed(
        texts in prop::collection::vec(text(), 1..25),
        segments in prop::collection::vec(0..6usize, 25),
        merges in prop::collection::vec(prop::collection::vec(0..6usize, 1..4), 0..3),
        picks in picks(),
        limits in limits(),
    ) {
        let typed = query_from(&texts, &picks);
        let documents: Vec<(u64, String)> = texts.into_iter().zip(0..).map(|(text, number)| (number * 3, text)).collect();
        let mut store = build_segments(&documents, &segments[..documents.len()]);
        for chosen in merges {
            let count = store.0.len();
            let chosen: Vec<usize> = chosen.into_iter().map(|index| index % count).collect();
            store.merge(&chosen, &mut |_| true);
        }
        let parsed = TextQuery::parse(&typed);
        for limits in [limits, Limits::default()] {
            let query = candidates(&parsed, &store, &limits).unwrap().query;
            let Some(found) = all_candidates(&parsed, &store, &limits) else { continue };
            let mut once = found.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), found.len());
            for (number, text) in &documents {
                for query in [&parsed, &query] {
                    if naive_matches(query, &[text]) {
                        prop_assert!(found.contains(number), "{number} for {typed:?} in {text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_fragment_of_a_document_finds_it(
        texts in prop::collection::vec(text(), 1..8),
        which in 0..8usize,
        start in 0..400usize,
        length in 1..120usize,
    ) {
        let text = texts[which % texts.len()].clone();
        let start = text.floor_char_boundary(start % (text.len() + 1));
        let end = text.floor_char_boundary((start + length).min(text.len()));
        prop_assume!(!text[start..end].contains('"') && !text[start..end].trim().is_empty());
        let query = TextQuery::parse(&format!("\"{}\"", &text[start..end]));
        let documents: Vec<(u64, String)> = (0..).zip(texts.clone()).collect();
        let store = build_segments(&documents, &vec![0; documents.len()]);
        prop_assert!(query.matches(&[&text]));
        if let Some(found) = all_candidates(&query, &store, &Limits::default()) {
            prop_assert!(found.contains(&((which % texts.len()) as u64)));
        }
    }

    #[test]
    fn hostile_blocks_give_errors_or_nothing(
        words in prop::collection::vec(any::<u8>(), 0..60),
        postings in prop::collection::vec(any::<u8>(), 0..60),
        plain in any::<bool>(),
        typed in "[ab]{1,2}[*.]?( [ab]{1,2})?",
        limits in limits(),
    ) {
        let block = SegmentBlock {
            first: vec![b'a'],
            last: vec![b'z'],
            words: if plain { [b"\x02\x01a\x11b", &words[..]].concat() } else { words },
            postings: if plain { [&[1, 3, 99, 2, 3], &postings[..]].concat() } else { postings },
        };
        let store = MemoryStore(vec![Segment { documents: 3, words: 3, tokens: 9, blocks: vec![block], bitmaps: Vec::new() }]);
        let query = TextQuery::parse(&typed);
        for query in [&query, &query.widened()] {
            candidates(query, &store, &limits).ok();
        }
    }
}

fn store_of(texts: &[&str]) -> MemoryStore {
    let documents: Vec<(u64, String)> =
        (1..).zip(texts).map(|(number, text)| (number, (*text).to_owned())).collect();
    let segments: Vec<usize> = (0..texts.len()).map(|index| index % 3).collect();
    build_segments(&documents, &segments)
}

#[track_caller]
fn finds(store: &MemoryStore, typed: &str, expected: &[u64]) {
    let found = candidates(&TextQuery::parse(typed), store, &Limits::default()).unwrap();
    let found: Vec<u64> = found.documents.iter().map(|it| it.document).collect();
    assert_eq!(found, expected, "{typed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Many small blocks, so that there are several n-gram bitmaps.
    #[test]
    fn every_fragment_of_every_word_is_found_among_many_blocks(
        words in prop::collection::vec("[a-z]{1,12}|[a-d]{5,30}|[a-zé]{3,9}", 900..1500),
        block in 30..60usize,
    ) {
        let mut builder = SegmentBuilder::default();
        for (number, word) in words.iter().enumerate() {
            builder.begin(number as u64);
            builder.text(word);
            builder.end();
        }
        let segment = builder.finish_with(BlockWriter::of_blocks(block));
        let merged = merged([&segment].into_iter(), &mut |_| true);
        prop_assert_eq!(merged.tokens, segment.tokens);
        prop_assert!(segment.bitmaps.len() > 1 && segment.blocks.len() > 62);
        let store = MemoryStore(vec![segment]);
        for (number, word) in words.iter().enumerate().step_by(61) {
            for (start, _) in word.char_indices() {
                for (end, _) in word.char_indices().filter(|(end, _)| *end > start) {
                    let query = TextQuery::parse(&format!("\"{}\"", &word[start..end]));
                    if let Some(found) = all_candidates(&query, &store, &Limits::default()) {
                        prop_assert!(found.contains(&(number as u64)), "{} in {word}", &word[start..end]);
                    }
                }
            }
        }
    }
}

#[test]
fn conditions_are_all_needed() {
    let store = store_of(&["alpha beta", "alpha", "beta alphabet", "gamma"]);
    finds(&store, "alpha", &[2, 1]);
    finds(&store, "alpha beta", &[1]);
    finds(&store, "alph*", &[3, 2, 1]);
    finds(&store, "\"a bet\"", &[3, 1]);
    finds(&store, "nothing", &[]);
    finds(&store, "alpha -beta", &[2, 1]);
}

#[test]
fn the_best_come_first_and_of_equals_the_newest() {
    let store = store_of(&[
        "alpha",
        "alpha alpha alpha alpha",
        "alpha",
        "alpha alpha",
        "rare alpha",
        "common common common rare",
    ]);
    finds(&store, "alpha", &[2, 4, 5, 3, 1]);
    finds(&store, "rare", &[6, 5]);
}

#[test]
fn a_word_that_is_never_whole_is_tried_as_a_fragment() {
    let store = store_of(&["alphabet", "beta", "an alpha male"]);
    let found = candidates(&TextQuery::parse("lpha"), &store, &Limits::default()).unwrap();
    assert!(found.widened);
    assert_eq!(found.query, TextQuery::parse("\"lpha\""));
    assert_eq!(found.documents.len(), 2);
    let found = candidates(&TextQuery::parse("alpha"), &store, &Limits::default()).unwrap();
    assert!(!found.widened);
    assert_eq!(found.documents.len(), 1);
}

#[test]
fn what_narrows_nothing_down_is_said() {
    let store = store_of(&["alpha", "beta"]);
    for typed in ["", "...", "-\"alpha\""] {
        let found = candidates(&TextQuery::parse(typed), &store, &Limits::default()).unwrap();
        assert!(found.everything && found.documents.is_empty(), "{typed}");
    }
    let limits = Limits { words: 1, ..Limits::default() };
    assert!(candidates(&TextQuery::parse("\"a\""), &store, &limits).unwrap().everything);
    assert!(!candidates(&TextQuery::parse("\"ph\""), &store, &limits).unwrap().everything);
}

#[test]
fn many_documents_are_taken_from_the_newest_on() {
    let mut builders =
        [SegmentBuilder::default(), SegmentBuilder::default(), SegmentBuilder::default()];
    for number in 0..3_000u64 {
        let builder = &mut builders[(number / 100 % 3) as usize];
        builder.begin(number);
        builder.text(if number % 2 == 0 { "even all" } else { "odd all" });
        if number % 3 == 0 {
            builder.text("third");
        }
        builder.text(&format!("n{number}x"));
        builder.end();
    }
    let store = MemoryStore(builders.into_iter().map(SegmentBuilder::finish).collect());
    let limits = Limits { ranked: 100, max_newest: 10, ..Limits::default() };
    for typed in ["even third", "even \"third \"", "third \"n\" even"] {
        let query = TextQuery::parse(typed);
        let page = candidates(&query, &store, &limits).unwrap();
        assert!(page.newest_first && page.more);
        let first: Vec<u64> = page.documents.iter().map(|it| it.document).collect();
        assert_eq!(first, [2994, 2988, 2982, 2976, 2970, 2964, 2958, 2952, 2946, 2940]);
        let all = all_candidates(&query, &store, &limits).unwrap();
        assert_eq!(all, (0..500).rev().map(|number| number * 6).collect::<Vec<_>>());
    }
    assert_eq!(all_candidates(&TextQuery::parse("\"1x\""), &store, &limits).unwrap().len(), 300);
}

#[test]
fn corrupt_blocks_are_reported() {
    let mut store = store_of(&["alpha", "alpha"]);
    store.0[0].blocks[0].words = vec![9];
    for typed in ["alpha", "alph*", "\"alpha\""] {
        let error: CorruptIndex =
            candidates(&TextQuery::parse(typed), &store, &Limits::default()).unwrap_err();
        assert!(error.to_string().contains("invalid data"), "{error}");
    }
}
