//! Splits text into the words of the index: maximal runs of alphanumeric characters, folded to
//! lower case; ideographs, kana and hangul syllables are words by themselves. Plain text is split
//! here, JSON in `tokens_json.rs`; words go to a [`WordSink`].
//!
//! This is the hot loop of an import. It processes 64 bytes at a time as a mask of word bytes and
//! emits words of up to 16 bytes as two folded integers. Only runs with non-ASCII bytes are
//! processed character by character.

use std::ops::Range;

use super::chars::{CharClass, char_class, fold};
use super::masks::{chunk, word_mask};
use super::tokens_json::Escapes;

/// The longest word in the dictionary, in bytes. A longer word is indexed as overlapping pieces.
pub(super) const MAX_WORD_BYTES: usize = 64;
/// The distance between the pieces of a long word, in bytes. Any fragment of up to
/// [`MAX_INFIX_BYTES`] bytes is whole in one of them.
const PIECE_STRIDE_BYTES: usize = 32;
/// The longest fragment to look up inside a word, in bytes: 61 (a piece that was cut at a wide
/// character) minus the stride.
pub(super) const MAX_INFIX_BYTES: usize = 29;
/// Only this many bytes of a word are indexed. A longer run is neither language nor code but a
/// dump of data.
pub(super) const MAX_INDEXED_BYTES: usize = 1024;
/// Only this many bytes of a base64 chain are indexed (`+`, `/`, `-` and `_` split it into words).
/// Each piece would be a new word: an image would add its own size to the index.
const MAX_CHAIN_BYTES: usize = 1024;
/// A chain counts as base64 from this mean length of its pieces on. Random base64 has 32; paths,
/// dashed names and sums have far less.
const BASE64_MEAN_BYTES: usize = 16;

/// Receives the words of a text, in order, with repetitions.
pub trait WordSink {
    /// A word of at most 16 bytes.
    fn short(&mut self, word: ShortWord);
    /// A word of 17 to 64 bytes.
    fn long(&mut self, word: &[u8]);
}

/// A word of at most 16 bytes as two big-endian integers, padded with zeros. They compare and order
/// like the words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ShortWord {
    pub(super) first: u64,
    pub(super) second: u64,
}

const fn splat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

impl ShortWord {
    pub(super) const MAX_BYTES: usize = 16;

    /// Packs the first 16 bytes of a word.
    pub(super) const fn pack(word: &[u8]) -> ShortWord {
        let mut bytes = [0; Self::MAX_BYTES];
        let mut index = 0;
        while index < word.len() && index < Self::MAX_BYTES {
            bytes[index] = word[index];
            index += 1;
        }
        let both = u128::from_be_bytes(bytes);
        ShortWord { first: (both >> 64) as u64, second: both as u64 }
    }

    /// The bytes of the word, padded, and its length.
    pub(super) fn unpack(self) -> ([u8; Self::MAX_BYTES], usize) {
        let both = (u128::from(self.first) << 64) | u128::from(self.second);
        (both.to_be_bytes(), Self::MAX_BYTES - both.trailing_zeros() as usize / 8)
    }

    #[inline]
    fn load(bytes: &[u8], start: usize, length: usize) -> ShortWord {
        let sixteen = bytes.get(start..).and_then(<[u8]>::first_chunk::<{ Self::MAX_BYTES }>);
        let both = match sixteen {
            Some(sixteen) => u128::from_be_bytes(*sixteen),
            None => {
                let ShortWord { first, second } =
                    Self::pack(bytes.get(start..).unwrap_or_default());
                (u128::from(first) << 64) | u128::from(second)
            }
        };
        let (first, second) = MASKS[length & 31];
        ShortWord { first: (both >> 64) as u64 & first, second: both as u64 & second }
    }

    #[inline]
    fn is_ascii(self) -> bool {
        (self.first | self.second) & splat(0x80) == 0
    }

    /// Folds to lower case. Of ASCII letters and digits only letters have bit 0x40; bit 0x20 makes
    /// them lower case.
    #[inline]
    pub(super) fn folded(self) -> ShortWord {
        let lower = |it: u64| it | ((it & splat(0x40)) >> 1);
        ShortWord { first: lower(self.first), second: lower(self.second) }
    }
}

/// The bit masks of words by length in bytes.
const MASKS: [(u64, u64); 32] = {
    let mut masks = [(!0, !0); 32];
    let mut length = 0;
    while length < ShortWord::MAX_BYTES {
        let both = !(u128::MAX >> (8 * length));
        masks[length] = ((both >> 64) as u64, both as u64);
        length += 1;
    }
    masks
};

/// A chain of pieces separated by single `+`, `/`, `-` or `_`, possibly base64. It starts with a
/// word of more than 16 bytes, so other text pays nothing for the bookkeeping.
#[derive(Clone, Copy, Default)]
pub(super) struct Base64Chain {
    length: usize,
    /// Zero if there is no chain.
    pieces: usize,
    /// The end of its last piece.
    pub(super) end: usize,
}

impl Base64Chain {
    pub(super) fn is_open(&self) -> bool {
        self.pieces > 0
    }

    /// Adds the next piece or word. Returns true if it is to be indexed.
    fn take(&mut self, linked: bool, length: usize, end: usize) -> bool {
        let before = if linked { *self } else { Base64Chain::default() };
        *self = Base64Chain::default();
        if linked || length > ShortWord::MAX_BYTES {
            *self =
                Base64Chain { length: before.length + length + 1, pieces: before.pieces + 1, end };
        }
        before.length <= MAX_CHAIN_BYTES || before.length < before.pieces * BASE64_MEAN_BYTES
    }

    /// True if the word at `start` continues the chain.
    fn reaches(&self, bytes: &[u8], start: usize, json: bool) -> bool {
        let between = bytes.get(self.end..start);
        self.is_open()
            && match start.wrapping_sub(self.end) {
                // None: `end` is position -1 and the chain continues from the previous text.
                1 => between.is_none_or(|it| matches!(it, b"+" | b"/" | b"-" | b"_")),
                // Some JSON writers escape slashes.
                2 => json && between == Some(b"\\/"),
                _ => false,
            }
    }
}

/// Splits texts. Reuses the buffers of the rare cases.
#[derive(Default, Debug)]
pub struct Tokeniser {
    word: String,
    pub(super) unescaped: String,
}

impl Tokeniser {
    /// The words of plain text.
    pub fn text(&mut self, text: &str, sink: &mut impl WordSink) {
        self.scan::<false>(text, &mut Base64Chain::default(), sink);
    }

    /// Emits the words of a text that may continue a chain.
    pub(super) fn scan<const JSON: bool>(
        &mut self,
        text: &str,
        chain: &mut Base64Chain,
        sink: &mut impl WordSink,
    ) {
        let bytes = text.as_bytes();
        let mut escapes = Escapes::default();
        let mut start = 0;
        let mut open = 0;
        let mut base = 0;
        // One round past the end, to close a word at the very end.
        while base <= bytes.len() {
            let chunk = chunk(bytes, base);
            let mut mask = word_mask(&chunk);
            if JSON {
                mask = escapes.apply(&chunk, mask, bytes, base);
            }
            let shifted = (mask << 1) | open;
            let mut starts = mask & !shifted;
            let mut ends = !mask & shifted;
            if open == 0 {
                start = base + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            while ends != 0 {
                let end = base + ends.trailing_zeros() as usize;
                ends &= ends - 1;
                let length = end - start;
                let word = ShortWord::load(bytes, start, length);
                let simple = (length <= ShortWord::MAX_BYTES) & word.is_ascii() & !chain.is_open();
                if simple && !(JSON && escapes.reach(start)) {
                    let word = word.folded();
                    if !(JSON && escapes.is_literal(word, bytes, start)) {
                        sink.short(word);
                    }
                } else {
                    self.run::<JSON>(text, start..end, &mut escapes, chain, sink);
                }
                start = base + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            open = mask >> 63;
            base += 64;
        }
    }

    /// Emits a run of word bytes that is not a short ASCII word.
    #[inline(never)]
    fn run<const JSON: bool>(
        &mut self,
        text: &str,
        range: Range<usize>,
        escapes: &mut Escapes,
        chain: &mut Base64Chain,
        sink: &mut impl WordSink,
    ) {
        let bytes = text.as_bytes();
        let linked = chain.reaches(bytes, range.start, JSON);
        let run = text.get(range.clone()).unwrap_or_default();
        if JSON && escapes.reach(range.start) && memchr::memchr(b'\\', run.as_bytes()).is_some() {
            return self.escaped(run, linked, range.end, chain, sink);
        }
        if !run.is_ascii() {
            *chain = Base64Chain::default();
            return self.emit_mixed(run, sink);
        }
        if run.len() <= ShortWord::MAX_BYTES {
            let word = ShortWord::pack(run.as_bytes()).folded();
            if JSON && escapes.is_literal(word, bytes, range.start) {
                *chain = Base64Chain::default();
            } else if chain.take(linked, run.len(), range.end) {
                sink.short(word);
            }
            return;
        }
        if !chain.take(linked, run.len(), range.end) {
            return;
        }
        let mut buffer = [0; MAX_WORD_BYTES];
        if let Some(word) = buffer.get_mut(..run.len()) {
            word.copy_from_slice(run.as_bytes());
            word.make_ascii_lowercase();
            sink.long(word);
        } else {
            self.word.clear();
            self.word.push_str(run.get(..MAX_INDEXED_BYTES).unwrap_or(run));
            self.word.make_ascii_lowercase();
            emit(&self.word, sink);
        }
    }

    /// Emits a run with non-ASCII characters, which may or may not be letters.
    fn emit_mixed(&mut self, run: &str, sink: &mut impl WordSink) {
        let word = &mut self.word;
        word.clear();
        let mut full = false;
        for character in run.chars() {
            match char_class(character) {
                CharClass::WordChar => {
                    let folded = fold(character);
                    full |= word.len() + folded.len_utf8() > MAX_INDEXED_BYTES;
                    if !full {
                        word.push(folded);
                    }
                }
                CharClass::Separator | CharClass::Standalone => {
                    emit(word, sink);
                    word.clear();
                    full = false;
                    if char_class(character) == CharClass::Standalone {
                        word.push(fold(character));
                        emit(word, sink);
                        word.clear();
                    }
                }
            }
        }
        emit(word, sink);
    }
}

/// Emits a folded word of any length, in pieces if it is long.
fn emit(word: &str, sink: &mut impl WordSink) {
    match word.len() {
        0 => {}
        1..=ShortWord::MAX_BYTES => sink.short(ShortWord::pack(word.as_bytes())),
        _ => pieces(word, |piece| sink.long(piece.as_bytes())),
    }
}

/// The pieces under which a word is indexed: itself, or overlapping pieces if it is long. The first
/// is a prefix of the word and the last a suffix.
pub(super) fn pieces(word: &str, mut take: impl FnMut(&str)) {
    let mut rest = word;
    loop {
        let end = rest.floor_char_boundary(MAX_WORD_BYTES);
        take(&rest[..end]);
        if end == rest.len() {
            return;
        }
        rest = &rest[rest.floor_char_boundary(PIECE_STRIDE_BYTES)..];
    }
}
