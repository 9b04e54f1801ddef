//! The words of a segment while it is built: a hash table from words to numbers, and the words of
//! each document. The tokeniser calls it once per occurrence; `build.rs` reads it when the segment
//! is finished.
//!
//! An occurrence costs one hash and usually one access to a slot and one to an entry. Slots are
//! four bytes (a number and a tag of the hash), so that the table stays in the cache; an entry
//! holds a word of up to 16 bytes inline, so that most comparisons end there.

use std::hash::{BuildHasher, RandomState};
use std::hint::select_unpredictable;

use super::tokens::{ShortWord, WordSink};

/// The tag of a long word. 0xff is no UTF-8 byte, so no short word looks like a long one.
const LONG_WORD_TAG: u64 = 0xff << 56;
const MIN_SLOT_BITS: u32 = 10;
/// Bits of a posting for the number of occurrences: one to eight, minus one.
const COUNT_BITS: u32 = 3;
pub(super) const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;
/// No posting yet.
const NO_POSTING: u32 = 0;
const BATCH_WORDS: usize = 64;

/// A word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The first eight bytes, of any word.
    pub(super) first: u64,
    /// The next eight; or, for a word of more than 16, the tag `LONG_WORD_TAG`, its length
    /// (8 bits), a part of its hash (16) and its offset in the heap (32).
    second: u64,
    /// Its latest posting.
    latest: u32,
}

impl Entry {
    /// The range of the word in the heap, if it is long.
    fn place(&self) -> Option<std::ops::Range<usize>> {
        (self.second >= LONG_WORD_TAG).then(|| {
            let start = self.second as u32 as usize;
            start..start + (self.second >> 48 & 0xff) as usize
        })
    }
}

/// A word in a document: the number of the word and of its occurrences.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occurrence(u32);

impl Occurrence {
    pub(super) fn word(self) -> usize {
        (self.0 >> COUNT_BITS) as usize
    }

    /// The number of occurrences, one to eight, minus one.
    pub(super) fn count(self) -> u32 {
        self.0 & MAX_COUNT
    }
}

/// The postings of all documents, one after the other.
#[derive(Debug)]
struct Occurrences {
    /// Longer than `used`, so that there is always room for the next one. Index 0 is reserved for
    /// `NO_POSTING`.
    all: Vec<Occurrence>,
    used: usize,
    /// The start of the open document's postings.
    opened: usize,
}

impl Default for Occurrences {
    fn default() -> Self {
        Occurrences { all: Vec::new(), used: 1, opened: 1 }
    }
}

impl Occurrences {
    /// Counts an occurrence of a word in the open document. Branch-free, because the CPU cannot
    /// predict whether it is the first one.
    #[inline(always)]
    fn occurs(&mut self, number: usize, latest: &mut u32) {
        if self.used >= self.all.len() {
            self.grow();
        }
        let first = (*latest as usize) < self.opened;
        let place = select_unpredictable(first, self.used, *latest as usize);
        let posting = &mut self.all[place];
        let again = posting.0 + u32::from(posting.count() < MAX_COUNT);
        posting.0 = select_unpredictable(first, (number as u32) << COUNT_BITS, again);
        *latest = place as u32;
        self.used += usize::from(first);
    }

    #[cold]
    fn grow(&mut self) {
        reserve(&mut self.all);
        self.all.resize(self.all.capacity(), Occurrence(0));
    }
}

#[derive(Debug)]
pub(super) struct Dictionary {
    /// Zero, or the number of an entry plus one in the lower `bits` bits and a hash tag above.
    slots: Vec<u32>,
    bits: u32,
    pub(super) entries: Vec<Entry>,
    heap: Vec<u8>,
    postings: Occurrences,
    /// Short words, buffered for a batch pass.
    batch: [ShortWord; BATCH_WORDS],
    waiting: usize,
    /// Random, against logs crafted to collide. The word order of the segment does not depend on
    /// it.
    seeds: [u64; 2],
}

impl Default for Dictionary {
    fn default() -> Self {
        let random = RandomState::new();
        Dictionary {
            slots: vec![0; 1 << MIN_SLOT_BITS],
            bits: MIN_SLOT_BITS,
            entries: Vec::new(),
            heap: Vec::new(),
            postings: Occurrences::default(),
            batch: [ShortWord::default(); BATCH_WORDS],
            waiting: 0,
            seeds: [random.hash_one(1), random.hash_one(2)],
        }
    }
}

impl Dictionary {
    /// Begins another document.
    pub(super) fn open(&mut self) {
        self.settle();
        self.postings.opened = self.postings.used;
    }

    /// The postings of all documents, one after the other. Call `settle` first.
    pub(super) fn postings(&self) -> &[Occurrence] {
        self.postings.all.get(1..self.postings.used).unwrap_or_default()
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.heap.capacity()
            + self.postings.all.capacity() * size_of::<Occurrence>()
    }

    /// The bytes of a word after its first eight, for ordering.
    pub(super) fn rest<'a>(&'a self, entry: &Entry, buffer: &'a mut [u8; 8]) -> &'a [u8] {
        match entry.place() {
            Some(place) => self.heap.get(place).and_then(|word| word.get(8..)).unwrap_or_default(),
            None => {
                *buffer = entry.second.to_be_bytes();
                &buffer[..8 - entry.second.trailing_zeros() as usize / 8]
            }
        }
    }

    /// Appends a word to `out`.
    pub(super) fn write(&self, entry: &Entry, out: &mut Vec<u8>) {
        match entry.place() {
            Some(place) => out.extend_from_slice(self.heap.get(place).unwrap_or_default()),
            None => {
                let short = ShortWord { first: entry.first, second: entry.second };
                let (bytes, length) = short.unpack();
                out.extend_from_slice(&bytes[..length]);
            }
        }
    }

    #[inline]
    fn hash_short(&self, word: ShortWord) -> u64 {
        mix(word.first ^ self.seeds[0], word.second ^ self.seeds[1])
    }

    fn hash_long(&self, word: &[u8]) -> u64 {
        word.chunks(ShortWord::MAX_BYTES).fold(word.len() as u64, |hash, part| {
            let part = ShortWord::pack(part);
            mix(part.first ^ self.seeds[0] ^ hash, part.second ^ self.seeds[1])
        })
    }

    fn hash_of(&self, entry: &Entry) -> u64 {
        match entry.place() {
            Some(place) => self.hash_long(self.heap.get(place).unwrap_or_default()),
            None => self.hash_short(ShortWord { first: entry.first, second: entry.second }),
        }
    }

    /// Processes the buffered words in two passes: the first finds all slots, the second the
    /// entries. Memory accesses of different words then overlap, except for new words.
    pub(super) fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting).min(BATCH_WORDS);
        let mut found = [(0, 0); BATCH_WORDS];
        let mask = self.slots.len() - 1;
        for (word, found) in self.batch[..waiting].iter().zip(&mut found) {
            let hash = self.hash_short(*word);
            let slot = self.slots[(hash >> 32) as usize & mask];
            *found = (hash, slot ^ self.tag(hash));
        }
        for (index, (hash, number)) in found[..waiting].iter().enumerate() {
            let word = self.batch[index];
            let number = (*number as usize).wrapping_sub(1);
            match self.entries.get_mut(number) {
                Some(entry) if entry.first == word.first && entry.second == word.second => {
                    self.postings.occurs(number, &mut entry.latest);
                }
                Some(_) | None => self.settle_short(word, *hash),
            }
        }
    }

    /// A short word that is new or not in its first slot.
    #[inline(never)]
    fn settle_short(&mut self, word: ShortWord, hash: u64) {
        let ShortWord { first, second } = word;
        self.occurs(
            hash,
            |entry, _| entry.first == first && entry.second == second,
            |_| (first, second),
        );
    }

    #[inline]
    fn tag(&self, hash: u64) -> u32 {
        (hash as u32) >> self.bits << self.bits
    }

    /// Counts an occurrence of the word with this hash. `same` compares an entry with the word;
    /// `make` creates the entry of a new word.
    fn occurs(
        &mut self,
        hash: u64,
        same: impl Fn(&Entry, &[u8]) -> bool,
        make: impl FnOnce(&mut Vec<u8>) -> (u64, u64),
    ) {
        let tag = self.tag(hash);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                break;
            }
            let number = ((slot ^ tag) as usize).wrapping_sub(1);
            if let Some(entry) = self.entries.get_mut(number)
                && same(entry, &self.heap)
            {
                self.postings.occurs(number, &mut entry.latest);
                return;
            }
            at += 1;
        }
        let number = self.entries.len();
        self.slots[at & mask] = tag | (number as u32 + 1);
        let (first, second) = make(&mut self.heap);
        let mut entry = Entry { first, second, latest: NO_POSTING };
        self.postings.occurs(number, &mut entry.latest);
        push(&mut self.entries, entry);
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.bits += 1;
        let mask = (1usize << self.bits) - 1;
        let mut slots = vec![0; mask + 1];
        for (number, entry) in self.entries.iter().enumerate() {
            let hash = self.hash_of(entry);
            let mut at = (hash >> 32) as usize & mask;
            while slots[at & mask] != 0 {
                at += 1;
            }
            slots[at & mask] = (hash as u32) >> self.bits << self.bits | (number as u32 + 1);
        }
        self.slots = slots;
    }
}

impl WordSink for Dictionary {
    #[inline(always)]
    fn short(&mut self, word: ShortWord) {
        self.batch[self.waiting % BATCH_WORDS] = word;
        self.waiting += 1;
        if self.waiting == BATCH_WORDS {
            self.settle();
        }
    }

    #[inline(never)]
    fn long(&mut self, word: &[u8]) {
        let hash = self.hash_long(word);
        let head = LONG_WORD_TAG | (word.len() as u64) << 48 | (hash & 0xffff) << 32;
        let first = ShortWord::pack(word).first;
        self.occurs(
            hash,
            |entry, heap| {
                entry.second >> 32 == head >> 32
                    && entry.place().and_then(|place| heap.get(place)) == Some(word)
            },
            |heap| {
                let second = head | heap.len() as u64;
                heap.extend_from_slice(word);
                (first, second)
            },
        );
    }
}

#[inline]
fn mix(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

/// Pushes with growth by a quarter instead of doubling, to bound the builder's memory.
#[inline(always)]
fn push<T>(vector: &mut Vec<T>, value: T) {
    if vector.len() == vector.capacity() {
        reserve(vector);
    }
    vector.push(value);
}

#[cold]
fn reserve<T>(vector: &mut Vec<T>) {
    vector.reserve_exact(vector.len() / 4 + 1024);
}
