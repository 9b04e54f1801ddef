//! The words of a segment while it is built: a hash table from words to numbers, and for each word
//! the documents it stands in. Words come from the tokeniser, one call per occurrence; everything
//! leaves through `build.rs` when the segment is finished.
//!
//! An occurrence costs one hash and, as a rule, one look at a slot and one at an entry. Slots are
//! four bytes (a number and a tag of the hash) so that the table stays in the cache; an entry holds
//! a word of up to 16 bytes itself, so that most comparisons end there.

use std::hash::{BuildHasher, RandomState};
use std::hint::select_unpredictable;

use super::tokens::{Short, Sink};

/// No UTF-8 begins a byte with these bits, so no short word looks like a long one.
const LONG: u64 = 0xff << 56;
const FEWEST_SLOTS: u32 = 10;
/// Bits of a posting that count occurrences: one to eight, less one.
const COUNT_BITS: u32 = 3;
pub(super) const COUNT_MOST: u32 = (1 << COUNT_BITS) - 1;
/// No posting yet.
const NEVER: u32 = 0;
const BATCH: usize = 64;

/// A word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The first eight bytes, of any word.
    pub(super) first: u64,
    /// The next eight; or, for a word of more than 16, [`LONG`], its length (8 bits), a part of
    /// its hash (16) and where it begins in the heap (32).
    second: u64,
    /// Its latest posting.
    latest: u32,
}

impl Entry {
    /// Where the word stands in the heap, if it is there.
    fn place(&self) -> Option<std::ops::Range<usize>> {
        (self.second >= LONG).then(|| {
            let start = self.second as u32 as usize;
            start..start + (self.second >> 48 & 0xff) as usize
        })
    }
}

/// A word in a document: the number of the word and how often it stands there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Posting(u32);

impl Posting {
    pub(super) fn word(self) -> usize {
        (self.0 >> COUNT_BITS) as usize
    }

    /// One to eight, less one.
    pub(super) fn count(self) -> u32 {
        self.0 & COUNT_MOST
    }
}

/// The postings of all documents, one after the other.
#[derive(Debug)]
struct Postings {
    /// Longer than what is used, so that there is always a place for the next one. The first is
    /// nobody's: [`NEVER`].
    all: Vec<Posting>,
    used: usize,
    /// Where those of the open document begin.
    opened: usize,
}

impl Default for Postings {
    fn default() -> Self {
        Postings { all: Vec::new(), used: 1, opened: 1 }
    }
}

impl Postings {
    /// Another occurrence of a word in the open document, or its first one. Which of them it is
    /// cannot be foretold, so there is no branch on it.
    #[inline(always)]
    fn occurs(&mut self, number: usize, latest: &mut u32) {
        if self.used >= self.all.len() {
            self.grow();
        }
        let first = (*latest as usize) < self.opened;
        let place = select_unpredictable(first, self.used, *latest as usize);
        let posting = &mut self.all[place];
        let again = posting.0 + u32::from(posting.count() < COUNT_MOST);
        posting.0 = select_unpredictable(first, (number as u32) << COUNT_BITS, again);
        *latest = place as u32;
        self.used += usize::from(first);
    }

    #[cold]
    fn grow(&mut self) {
        reserve(&mut self.all);
        self.all.resize(self.all.capacity(), Posting(0));
    }
}

#[derive(Debug)]
pub(super) struct Dictionary {
    /// Zero, or above `bits` a tag and below it the number of an entry plus one.
    slots: Vec<u32>,
    bits: u32,
    pub(super) entries: Vec<Entry>,
    heap: Vec<u8>,
    postings: Postings,
    /// Short words wait here until there are enough of them for a pass.
    batch: [Short; BATCH],
    waiting: usize,
    /// Random, so that no log can be written to fill one slot. The order of the words in the
    /// segment does not depend on it.
    seeds: [u64; 2],
}

impl Default for Dictionary {
    fn default() -> Self {
        let random = RandomState::new();
        Dictionary {
            slots: vec![0; 1 << FEWEST_SLOTS],
            bits: FEWEST_SLOTS,
            entries: Vec::new(),
            heap: Vec::new(),
            postings: Postings::default(),
            batch: [Short::default(); BATCH],
            waiting: 0,
            seeds: [random.hash_one(1), random.hash_one(2)],
        }
    }
}

impl Dictionary {
    /// What is added from here on belongs to another document.
    pub(super) fn open(&mut self) {
        self.settle();
        self.postings.opened = self.postings.used;
    }

    /// The postings of all documents, one after the other. Nothing may wait.
    pub(super) fn postings(&self) -> &[Posting] {
        self.postings.all.get(1..self.postings.used).unwrap_or_default()
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.heap.capacity()
            + self.postings.all.capacity() * size_of::<Posting>()
    }

    /// The rest of a word behind its first eight bytes, in a form that orders like it.
    pub(super) fn rest<'a>(&'a self, entry: &Entry, buffer: &'a mut [u8; 8]) -> &'a [u8] {
        match entry.place() {
            Some(place) => self.heap.get(place).and_then(|word| word.get(8..)).unwrap_or_default(),
            None => {
                *buffer = entry.second.to_be_bytes();
                &buffer[..8 - entry.second.trailing_zeros() as usize / 8]
            }
        }
    }

    /// Writes a word behind what `out` has.
    pub(super) fn write(&self, entry: &Entry, out: &mut Vec<u8>) {
        match entry.place() {
            Some(place) => out.extend_from_slice(self.heap.get(place).unwrap_or_default()),
            None => {
                let short = Short { first: entry.first, second: entry.second };
                let (bytes, length) = short.unpack();
                out.extend_from_slice(&bytes[..length]);
            }
        }
    }

    #[inline]
    fn hash_short(&self, word: Short) -> u64 {
        mix(word.first ^ self.seeds[0], word.second ^ self.seeds[1])
    }

    fn hash_long(&self, word: &[u8]) -> u64 {
        word.chunks(Short::MOST).fold(word.len() as u64, |hash, part| {
            let part = Short::pack(part);
            mix(part.first ^ self.seeds[0] ^ hash, part.second ^ self.seeds[1])
        })
    }

    fn hash_of(&self, entry: &Entry) -> u64 {
        match entry.place() {
            Some(place) => self.hash_long(self.heap.get(place).unwrap_or_default()),
            None => self.hash_short(Short { first: entry.first, second: entry.second }),
        }
    }

    /// Takes the words that wait. In two passes, because looks into memory then wait for each
    /// other only where a word is new: the first finds the slots of all, the second their entries.
    pub(super) fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting).min(BATCH);
        let mut found = [(0, 0); BATCH];
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

    /// A short word that is new, or not where it was looked for first.
    #[inline(never)]
    fn settle_short(&mut self, word: Short, hash: u64) {
        let Short { first, second } = word;
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

    /// An occurrence of the word with this hash. `same` says whether an entry is this word;
    /// `make` makes the entry if none is.
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
        let mut entry = Entry { first, second, latest: NEVER };
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

impl Sink for Dictionary {
    #[inline(always)]
    fn short(&mut self, word: Short) {
        self.batch[self.waiting % BATCH] = word;
        self.waiting += 1;
        if self.waiting == BATCH {
            self.settle();
        }
    }

    #[inline(never)]
    fn long(&mut self, word: &[u8]) {
        let hash = self.hash_long(word);
        let head = LONG | (word.len() as u64) << 48 | (hash & 0xffff) << 32;
        let first = Short::pack(word).first;
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

/// Grows by a quarter instead of by half of the new size: the builder promises to be small.
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
