//! A naive reference implementation of the index for tests, and a `BlockStore` in memory.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use proptest::prelude::*;

use super::*;

/// Collects words.
#[derive(Default)]
pub(super) struct Words(pub(super) Vec<String>);

impl WordSink for Words {
    fn short(&mut self, word: ShortWord) {
        let (bytes, length) = word.unpack();
        self.0.push(String::from_utf8(bytes[..length].to_vec()).unwrap());
    }

    fn long(&mut self, word: &[u8]) {
        assert!((17..=64).contains(&word.len()));
        self.0.push(String::from_utf8(word.to_vec()).unwrap());
    }
}

pub(super) fn words_of_text(text: &str) -> Vec<String> {
    let mut words = Words::default();
    Tokeniser::default().text(text, &mut words);
    words.0
}

pub(super) fn words_of_json(raw: &str) -> Vec<String> {
    let mut words = Words::default();
    Tokeniser::default().json(raw, &mut words);
    words.0
}

pub(super) fn lower(text: &str) -> String {
    text.chars().map(chars::fold).collect()
}

/// The words of a text in lower case, uncut.
pub(super) fn naive_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in text.chars() {
        match chars::char_class(character) {
            chars::CharClass::WordChar => words.last_mut().unwrap().push(chars::fold(character)),
            chars::CharClass::Separator => words.push(String::new()),
            chars::CharClass::Standalone => words.extend([character.to_string(), String::new()]),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn naive_holds(condition: &Condition, field: &str) -> bool {
    let wanted = condition.text();
    match condition.kind() {
        ConditionKind::Word => naive_words(field).iter().any(|word| word == wanted),
        ConditionKind::Prefix => naive_words(field).iter().any(|word| word.starts_with(wanted)),
        ConditionKind::Phrase => {
            let field = lower(field);
            let first = |text: &str| text.chars().next();
            field.char_indices().any(|(at, _)| {
                let (before, behind) = field.split_at(at);
                behind.strip_prefix(wanted).is_some_and(|after| {
                    !chars::in_same_word(before.chars().next_back(), first(wanted))
                        && !chars::in_same_word(wanted.chars().next_back(), first(after))
                })
            })
        }
        ConditionKind::Fragment => lower(field).contains(wanted),
    }
}

pub(super) fn naive_matches(query: &TextQuery, fields: &[&str]) -> bool {
    let holds = |condition: &Condition| fields.iter().any(|field| naive_holds(condition, field));
    query.conditions().iter().all(holds) && !query.excluded().iter().any(holds)
}

/// Segments in memory.
#[derive(Default)]
pub(super) struct MemoryStore(pub(super) Vec<Segment>);

impl MemoryStore {
    pub(super) fn blocks_of(&self, segment: i64) -> &[SegmentBlock] {
        &self.0[segment as usize].blocks
    }

    fn place(&self, segment: i64, word: &[u8]) -> Option<usize> {
        let blocks = self.blocks_of(segment);
        blocks.partition_point(|block| block.first.as_slice() <= word).checked_sub(1)
    }

    /// Merges some of the segments.
    pub(super) fn merge(&mut self, chosen: &[usize], keep: &mut dyn FnMut(u64) -> bool) {
        let chosen: BTreeSet<usize> = chosen.iter().copied().collect();
        let merged = merged(chosen.iter().map(|index| &self.0[*index]), keep);
        for index in chosen.into_iter().rev() {
            self.0.remove(index);
        }
        self.0.push(merged);
    }
}

pub(super) fn merged<'a>(
    segments: impl Iterator<Item = &'a Segment>,
    keep: &mut dyn FnMut(u64) -> bool,
) -> Segment {
    let sources: Vec<_> =
        segments.map(|segment| segment.blocks.iter().cloned().map(Ok::<_, CorruptIndex>)).collect();
    let mut segment = Segment::default();
    let counts = merge(sources, keep, &mut |piece| {
        segment.put(piece);
        Ok(())
    })
    .unwrap();
    let SegmentCounts { documents, words, tokens } = counts;
    Segment { documents, words, tokens, ..segment }
}

impl BlockStore for MemoryStore {
    type Error = CorruptIndex;

    fn segments(&self) -> Result<Vec<SegmentHead>, CorruptIndex> {
        let heads = self.0.iter().zip(0..);
        Ok(heads.map(|(it, id)| SegmentHead { id, documents: it.documents }).collect())
    }

    fn block_with(&self, segment: i64, word: &[u8]) -> Result<Option<SegmentBlock>, CorruptIndex> {
        let place = self.place(segment, word);
        Ok(place.map(|place| self.blocks_of(segment)[place].clone()))
    }

    fn blocks(
        &self,
        segment: i64,
        from: &[u8],
        visit: &mut dyn FnMut(BlockRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), CorruptIndex> {
        let place = self.place(segment, from).unwrap_or(0);
        for SegmentBlock { first, words, postings, .. } in &self.blocks_of(segment)[place..] {
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
        let of_segment = self.blocks_of(segment);
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

/// Builds segments: each document goes to the segment of its index, in order.
pub(super) fn build_segments(documents: &[(u64, String)], segments: &[usize]) -> MemoryStore {
    let many = segments.iter().copied().max().unwrap_or(0) + 1;
    let mut builders: Vec<SegmentBuilder> = (0..many).map(|_| SegmentBuilder::default()).collect();
    for ((number, text), segment) in documents.iter().zip(segments) {
        builders[*segment].begin(*number);
        builders[*segment].text(text);
        builders[*segment].end();
    }
    MemoryStore(builders.into_iter().map(SegmentBuilder::finish).collect())
}

/// All candidates, fetched page by page.
pub(super) fn all_candidates(
    query: &TextQuery,
    store: &MemoryStore,
    limits: &Limits,
) -> Option<Vec<u64>> {
    let mut limits = *limits;
    let mut documents = Vec::new();
    loop {
        let page = candidates(query, store, &limits).unwrap();
        if page.everything {
            return None;
        }
        let scores =
            page.documents.iter().map(|it| (Reverse(it.score.to_bits()), Reverse(it.document)));
        assert!(scores.is_sorted(), "best first, then newest first");
        documents.extend(page.documents.iter().map(|it| it.document));
        limits.before = page.documents.last().map(|it| it.document);
        if !page.more || page.documents.is_empty() {
            return Some(documents);
        }
    }
}

/// Text from a small vocabulary, so that words recur, in many scripts and with many separators.
pub(super) fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => prop::sample::select(vec![
            "alpha", "beta", "Alphabet", "bet", "al", "ALPHA", "x1", "1", "42", "foo", "bar", "fooBar",
            "über", "ÜBER", "Straße", "STRASSE", "İstanbul", "istanbul", "\u{212a}elvin", "kelvin",
            "Ⱥb", "ⱥB", "中", "文", "日本", "한국어", "é", "e\u{301}", "😀", "ΣΑΣ", "true", "null",
        ]).prop_map(str::to_owned),
        1 => "[a-c]{60,70}",
        1 => "[a-bé]{15,18}",
        1 => "[ab]{100,200}",
        1 => "[aб中]{20,50}",
    ];
    let between = prop::sample::select(vec![
        " ", " ", "_", ".", "/", "::", "\n", "", "", "-", ", ", "\"", "\\", "\t", "+", "\u{1}", "—",
    ]);
    prop::collection::vec((word, between), 0..12)
        .prop_map(|pairs| pairs.into_iter().map(|(word, between)| word + between).collect())
}
