use proptest::prelude::*;

use super::build_tests::{expected, pairs};
use super::model::{build_segments, merged, text};
use super::{CorruptIndex, Segment, SegmentBlock, merge, plan_merge};

fn documents() -> impl Strategy<Value = Vec<(u64, String)>> {
    prop::collection::vec((0..80u64, text()), 0..30)
}

proptest! {
    #[test]
    fn merged_segments_have_what_was_kept(
        documents in documents(),
        segments in prop::collection::vec(0..5usize, 30),
        modulus in 1..5u64,
    ) {
        let list = build_segments(&documents, &segments);
        let mut visited = Vec::new();
        let segment = merged(list.0.iter(), &mut |document| {
            visited.push(document);
            document % modulus == 0
        });
        let mut expected = expected(&documents);
        expected.retain(|(_, document), _| document % modulus == 0);
        let found = pairs(&segment);
        prop_assert_eq!(segment.tokens, found.len() as u64);
        let mut kept: Vec<u64> = found.keys().map(|(_, document)| *document).collect();
        kept.sort_unstable();
        kept.dedup();
        prop_assert_eq!(segment.documents, kept.len() as u64);
        // A document in two segments has the higher of its levels.
        prop_assert_eq!(found, expected);
        let times = visited.len();
        visited.sort_unstable();
        visited.dedup();
        prop_assert_eq!(visited.len(), times, "keep is called once for each document");
    }

    #[test]
    fn hostile_blocks_are_refused(
        documents in documents(),
        words in prop::collection::vec(any::<u8>(), 0..60),
        postings in prop::collection::vec(any::<u8>(), 0..60),
        plain in any::<bool>(),
    ) {
        let list = build_segments(&documents, &vec![0; documents.len()]);
        let hostile = SegmentBlock {
            first: Vec::new(),
            last: Vec::new(),
            words: if plain { [b"\x02\x01a\x11b", &words[..]].concat() } else { words },
            postings: if plain { [&[1, 3, 99, 2, 3], &postings[..]].concat() } else { postings },
        };
        let sources = [list.0[0].blocks.clone(), vec![hostile.clone(), hostile]];
        let sources = sources.map(|blocks| blocks.into_iter().map(Ok::<_, CorruptIndex>));
        merge(sources, &mut |_| true, &mut |_| Ok(())).ok();
    }
}

#[test]
fn what_cannot_be_read_or_written_is_an_error() {
    let list = build_segments(&[(1, "alpha".to_owned())], &[0]);
    let blocks = list.0[0].blocks.clone();
    let twice = [blocks.clone().into_iter().chain(blocks.clone()).map(Ok)];
    assert!(merge(twice, &mut |_| true, &mut |_| Ok::<_, CorruptIndex>(())).is_err());
    let torn = [[Err(CorruptIndex::new("a hole"))].into_iter()];
    assert!(merge(torn, &mut |_| true, &mut |_| Ok(())).is_err());
    let once = [blocks.into_iter().map(Ok)];
    assert!(merge(once, &mut |_| true, &mut |_| Err(CorruptIndex::new("no room"))).is_err());
}

/// Adds segments one by one and merges as `plan_merge` says. Returns the maximum number of segments
/// and how often each token was rewritten on average.
fn simulate(sizes: impl Iterator<Item = u64>) -> (usize, f64) {
    let mut live: Vec<u64> = Vec::new();
    let (mut most, mut added, mut rewritten) = (0, 0, 0);
    for size in sizes {
        live.push(size);
        added += size;
        while let Some(mut chosen) = plan_merge(&live) {
            assert!(chosen.len() >= 2);
            chosen.sort_unstable();
            let merged = chosen.iter().rev().map(|index| live.remove(*index)).sum();
            rewritten += merged;
            live.push(merged);
        }
        most = most.max(live.len());
    }
    (most, rewritten as f64 / added as f64)
}

#[test]
fn segments_stay_few_and_are_not_rewritten_often() {
    // A million documents: imported, written live, and imported then live.
    let import = simulate((0..150).map(|index| 1_000_000 + index));
    let live = simulate((0..200_000).map(|index| 200 + index % 1000));
    let mixed = simulate((0..150).map(|_| 1_000_000).chain((0..50_000).map(|_| 700)));
    for (most, rewritten) in [import, live, mixed] {
        assert!(most <= 24, "{most} {import:?} {live:?} {mixed:?}");
        assert!(rewritten < 10.0, "{rewritten} {import:?} {live:?} {mixed:?}");
    }
    assert_eq!(plan_merge(&[]), None);
    assert_eq!(plan_merge(&[1; 3]), None);
    assert_eq!(plan_merge(&[1 << 40, 2_000, 5, 1_000, 0, 9]), Some(vec![4, 2, 5, 3, 1]));
}

#[test]
fn merging_nothing_gives_nothing() {
    assert_eq!(merged([].into_iter(), &mut |_| true), Segment::default());
    let list = build_segments(&[(1, "alpha".to_owned())], &[0]);
    assert_eq!(merged(list.0.iter(), &mut |_| false), Segment::default());
}
