//! Benchmarks of the full-text index, on one core: adding documents, finishing a segment, looking
//! up words and fragments in a million documents, merging. The text (`shared/text.rs`) is generated
//! before timing starts. `INDEX_REPORT=1` also prints sizes.

#[path = "shared/text.rs"]
mod text;

use std::ops::{ControlFlow, Range};
use std::sync::LazyLock;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use unspool_index::{
    BlockRef, BlockStore, CorruptIndex, Limits, Segment, SegmentBlock, SegmentBuilder, SegmentHead,
    SegmentItem, TextQuery, Tokeniser, WordsRef, candidates, merge,
};

use text::{SOURCE, Variation};

/// Bytes of text of a batch, as in an import.
const BATCH: usize = 16 << 20;
/// Bytes of a document in an import, and of one in the large index.
const DOCUMENT: usize = 2_500;
const SMALL_DOCUMENT: usize = 280;
const DOCUMENTS: u64 = 1_000_000;
const SEGMENTS: u64 = 10;

fn main() {
    if std::env::var_os("INDEX_REPORT").is_some() {
        report();
    }
    divan::main();
}

fn report() {
    let bytes: usize = DOCUMENTS_OF_A_BATCH.iter().map(String::len).sum();
    let builder = built();
    let memory = builder.memory();
    let segment = builder.finish();
    let part = |part: usize| part as f64 * 100.0 / bytes as f64;
    println!(
        "a batch: {bytes} bytes, {} documents, {} words, {} tokens; {memory} bytes of memory; {} \
         blocks, {:.1} % of the text (words {:.1} %)",
        segment.documents,
        segment.words,
        segment.tokens,
        segment.blocks.len(),
        part(segment.size()),
        part(segment.blocks.iter().map(|block| block.words.len()).sum()),
    );
    let words: u64 = LARGE.0.iter().map(|segment| segment.words).sum();
    let size: usize = LARGE.0.iter().map(Segment::size).sum();
    println!("the large index: {DOCUMENTS} documents, {words} words in all segments, {size} bytes");
    for query in QUERIES {
        let found = candidates(&TextQuery::parse(query), &*LARGE, &Limits::default());
        if let Ok(found) = found {
            let (newest, all) = (found.newest_first, found.everything);
            println!("{query}: {} newest {newest} everything {all}", found.documents.len());
        }
    }
}

// ── Benchmarks ──────────────────────────────────────────────────────────────────────────────

/// Tokenising only.
#[divan::bench(sample_count = 40, sample_size = 1)]
fn split_text(bencher: Bencher<'_, '_>) {
    bencher.counter(bytes_of(&DOCUMENTS_OF_A_BATCH)).bench(|| {
        let mut count = Count(0);
        let mut tokeniser = Tokeniser::default();
        DOCUMENTS_OF_A_BATCH.iter().for_each(|text| tokeniser.text(text, &mut count));
        count.0
    });
}

struct Count(u64);

impl unspool_index::WordSink for Count {
    fn short(&mut self, word: unspool_index::ShortWord) {
        black_box(word);
        self.0 += 1;
    }

    fn long(&mut self, word: &[u8]) {
        black_box(word);
        self.0 += 1;
    }
}

/// 16 MB into a builder.
#[divan::bench(sample_count = 40, sample_size = 1)]
fn add_text(bencher: Bencher<'_, '_>) {
    bencher.counter(bytes_of(&DOCUMENTS_OF_A_BATCH)).bench(built);
}

/// The same as JSON, as in an agent's log.
#[divan::bench(sample_count = 40, sample_size = 1)]
fn add_json(bencher: Bencher<'_, '_>) {
    let raw: Vec<String> = DOCUMENTS_OF_A_BATCH
        .iter()
        .map(|text| serde_json::json!({"type": "text", "done": true, "text": text}).to_string())
        .collect();
    bencher.counter(bytes_of(&raw)).bench(|| {
        let mut builder = SegmentBuilder::default();
        for (raw, number) in raw.iter().zip(0..) {
            builder.begin(number);
            builder.json(raw);
            builder.end();
        }
        builder
    });
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn finish_segment(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(built).bench_values(SegmentBuilder::finish);
}

/// Four segments of 16 MB into one.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn merge_segments(bencher: Bencher<'_, '_>) {
    let segments: Vec<Segment> = (0..4)
        .map(|part| {
            let mut builder = SegmentBuilder::default();
            let mut variation = Variation::new(part + 7);
            for number in 0..(BATCH / DOCUMENT) as u64 {
                builder.begin(part * 10_000 + number);
                builder.text(&variation.document(DOCUMENT));
                builder.end();
            }
            builder.finish()
        })
        .collect();
    let tokens: u64 = segments.iter().map(|segment| segment.tokens).sum();
    bencher.counter(ItemsCount::new(tokens)).bench(|| {
        let sources =
            segments.iter().map(|it| it.blocks.iter().cloned().map(Ok::<_, CorruptIndex>));
        let mut size = 0;
        let counts = merge(sources, &mut |document| document % 10 != 0, &mut |piece| {
            size += match piece {
                SegmentItem::SegmentBlock(block) => block.size(),
                SegmentItem::NgramBitmap(bitmap) => bitmap.size(),
            };
            Ok(())
        });
        (counts, size)
    });
}

/// In order: a rare word, two of them, common words, a prefix, fragments.
const QUERIES: [&str; 9] = [
    "builder7x",
    "builder7x segment",
    "self",
    "self fn let",
    "fn pub",
    "builder*",
    "\"uilder7\"",
    "\"segment.doc\"",
    "self.documents",
];

/// Among a million documents in ten segments.
#[divan::bench(args = QUERIES, sample_count = 30, sample_size = 1)]
fn look(bencher: Bencher<'_, '_>, query: &str) {
    let query = TextQuery::parse(query);
    LazyLock::force(&LARGE);
    bencher.bench(|| candidates(&query, &*LARGE, &Limits::default()));
}

/// Scans two million different words for a fragment that none contains.
#[divan::bench(sample_count = 30, sample_size = 1)]
fn search_all_words(bencher: Bencher<'_, '_>) {
    let words: u64 = VOCABULARY.0.iter().map(|segment| segment.words).sum();
    // Concatenated, so that the fragment is not in this source, from which the words come.
    let query = TextQuery::parse(&["\"qz", "xj\""].concat());
    bencher
        .counter(ItemsCount::new(words))
        .bench(|| candidates(&query, &*VOCABULARY, &Limits::default()));
}

/// Verifies 5,000 documents.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn verify(bencher: Bencher<'_, '_>) {
    let texts = &DOCUMENTS_OF_A_BATCH[..5_000];
    let query = TextQuery::parse("segment \"self.doc\"");
    bencher
        .counter(bytes_of(texts))
        .bench(|| texts.iter().filter(|text| query.matches(&[text])).count());
}

// ── Inputs ──────────────────────────────────────────────────────────────────────────────────

fn bytes_of(texts: &[String]) -> BytesCount {
    BytesCount::new(texts.iter().map(String::len).sum::<usize>())
}

fn built() -> SegmentBuilder {
    let mut builder = SegmentBuilder::default();
    for (text, number) in DOCUMENTS_OF_A_BATCH.iter().zip(0..) {
        builder.begin(number);
        builder.text(text);
        builder.end();
    }
    builder
}

static DOCUMENTS_OF_A_BATCH: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut variation = Variation::new(1);
    (0..BATCH / DOCUMENT).map(|_| variation.document(DOCUMENT)).collect()
});

static LARGE: LazyLock<Segments> = LazyLock::new(|| {
    let mut variation = Variation::new(2);
    let share = DOCUMENTS / SEGMENTS;
    let segments = (0..SEGMENTS).map(|segment| {
        let mut builder = SegmentBuilder::default();
        for number in segment * share..(segment + 1) * share {
            builder.begin(number);
            builder.text(&variation.document(SMALL_DOCUMENT));
            builder.end();
        }
        builder.finish()
    });
    Segments(segments.collect())
});

static VOCABULARY: LazyLock<Segments> = LazyLock::new(|| {
    let mut variation = Variation::new(3);
    let segments = (0..SEGMENTS).map(|number| {
        let mut builder = SegmentBuilder::default();
        builder.begin(number);
        for _ in 0..2_000_000 / SEGMENTS {
            let word = new_word(&mut variation);
            builder.text(&word);
        }
        builder.end();
        builder.finish()
    });
    Segments(segments.collect())
});

/// A unique identifier of about ten bytes.
fn new_word(variation: &mut Variation) -> String {
    let place = variation.random() as usize % SOURCE.len();
    let word = SOURCE[place..].iter().find(|it| it.0.len() > 3).map_or("", |it| &it.0);
    format!("{word}{:x} ", variation.random() >> 42)
}

struct Segments(Vec<Segment>);

impl Segments {
    fn place(&self, segment: i64, word: &[u8]) -> Option<usize> {
        let blocks = &self.0[segment as usize].blocks;
        blocks.partition_point(|block| block.first.as_slice() <= word).checked_sub(1)
    }
}

impl BlockStore for Segments {
    type Error = CorruptIndex;

    fn segments(&self) -> Result<Vec<SegmentHead>, CorruptIndex> {
        let heads = self.0.iter().zip(0..);
        Ok(heads.map(|(it, id)| SegmentHead { id, documents: it.documents }).collect())
    }

    fn block_with(&self, segment: i64, word: &[u8]) -> Result<Option<SegmentBlock>, CorruptIndex> {
        let place = self.place(segment, word);
        Ok(place.map(|place| self.0[segment as usize].blocks[place].clone()))
    }

    fn blocks(
        &self,
        segment: i64,
        from: &[u8],
        visit: &mut dyn FnMut(BlockRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), CorruptIndex> {
        let place = self.place(segment, from).unwrap_or(0);
        for SegmentBlock { first, words, postings, .. } in &self.0[segment as usize].blocks[place..]
        {
            if visit(BlockRef { first, words, postings }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn slice(
        &self,
        segment: i64,
        bitmap: usize,
        slice: usize,
    ) -> Result<Option<Vec<u8>>, CorruptIndex> {
        let bitmap = self.0[segment as usize].bitmaps.get(bitmap);
        Ok(bitmap.and_then(|bitmap| bitmap.slices.get(slice)).cloned())
    }

    fn words(
        &self,
        segment: i64,
        blocks: Range<usize>,
        visit: &mut dyn FnMut(WordsRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), CorruptIndex> {
        let of_segment = &self.0[segment as usize].blocks;
        let end = blocks.end.min(of_segment.len());
        for SegmentBlock { first, words, .. } in &of_segment[blocks.start.min(end)..end] {
            if visit(WordsRef { first, words }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn postings(&self, segment: i64, first: &[u8]) -> Result<Option<Vec<u8>>, CorruptIndex> {
        Ok(self.block_with(segment, first)?.map(|block| block.postings))
    }
}
