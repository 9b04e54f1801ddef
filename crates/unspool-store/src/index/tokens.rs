//! Splits text into the words of the index: maximal runs of alphanumeric characters, folded to
//! lower case; ideographs, kana and hangul syllables are words by themselves. Text comes in as an
//! agent wrote it, plain here and as JSON in `tokens_json.rs`; words go to a [`Sink`].
//!
//! This is the hot loop of an import. It looks at 64 bytes at a time, as a mask of word bytes, and
//! hands out words of up to 16 bytes as two numbers that are already folded. Only runs with bytes
//! outside ASCII are looked at character by character.

use super::letters::{Role, fold, role};

/// The longest word in the dictionary. A longer one is indexed by overlapping pieces of it.
pub(super) const LONGEST: usize = 64;
/// Pieces of a long word begin this far apart, so that anything inside the word of up to
/// [`INSIDE`] bytes stands whole in one of them.
const STRIDE: usize = 32;
/// 61 (a piece that was cut at a wide character) less the stride.
pub(super) const INSIDE: usize = 29;
/// Of a word longer than this only the beginning is indexed, by its pieces. No such word is
/// language or code; it is a dump of something.
pub(super) const SPAN: usize = 1024;
/// Pieces of base64 (`+`, `/`, `-` and `_` separate words) that stand farther in than this are
/// not indexed. Every one of them would be a word of its own: an image would cost its own size.
const CHAIN: usize = 1024;
/// The mean length of pieces from which on a chain counts as base64. Random ones have 32; paths,
/// dashed names and sums have far less.
const CHAIN_MEAN: usize = 16;

/// Takes the words of a text, in order, with repetitions.
pub trait Sink {
    /// A word of at most 16 bytes.
    fn short(&mut self, word: Short);
    /// A word of 17 to 64 bytes.
    fn long(&mut self, word: &[u8]);
}

/// A word of at most 16 bytes as two big-endian numbers, filled up with zeros: equal words are
/// equal numbers, and numbers order as their words do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Short {
    pub(super) first: u64,
    pub(super) second: u64,
}

const HIGH_BITS: u64 = splat(0x80);

impl Short {
    pub(super) const MOST: usize = 16;

    /// Packs the first 16 bytes of a word.
    pub(super) const fn pack(word: &[u8]) -> Short {
        let mut bytes = [0; Self::MOST];
        let mut index = 0;
        while index < word.len() && index < Self::MOST {
            bytes[index] = word[index];
            index += 1;
        }
        let both = u128::from_be_bytes(bytes);
        Short { first: (both >> 64) as u64, second: both as u64 }
    }

    /// The bytes of the word, and how many they are.
    pub(super) fn unpack(self) -> ([u8; Self::MOST], usize) {
        let both = (u128::from(self.first) << 64) | u128::from(self.second);
        (both.to_be_bytes(), Self::MOST - both.trailing_zeros() as usize / 8)
    }

    #[inline]
    pub(super) fn load(bytes: &[u8], start: usize, length: usize) -> Short {
        let sixteen = bytes.get(start..).and_then(<[u8]>::first_chunk::<{ Self::MOST }>);
        let both = match sixteen {
            Some(sixteen) => u128::from_be_bytes(*sixteen),
            None => {
                let Short { first, second } = Self::pack(bytes.get(start..).unwrap_or_default());
                (u128::from(first) << 64) | u128::from(second)
            }
        };
        let (first, second) = MASKS[length & 31];
        Short { first: (both >> 64) as u64 & first, second: both as u64 & second }
    }

    #[inline]
    pub(super) fn is_ascii(self) -> bool {
        (self.first | self.second) & HIGH_BITS == 0
    }

    /// Of ASCII letters and digits only letters have the bit 0x40, and 0x20 makes them small.
    #[inline]
    pub(super) fn folded(self) -> Short {
        let lower = |it: u64| it | ((it & splat(0x40)) >> 1);
        Short { first: lower(self.first), second: lower(self.second) }
    }
}

/// The bits that a word of so many bytes fills.
const MASKS: [(u64, u64); 32] = {
    let mut masks = [(!0, !0); 32];
    let mut length = 0;
    while length < Short::MOST {
        let both = !(u128::MAX >> (8 * length));
        masks[length] = ((both >> 64) as u64, both as u64);
        length += 1;
    }
    masks
};

/// How far a chain of pieces goes that single `+`, `/`, `-` or `_` hold together.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    length: usize,
    pieces: usize,
}

impl Chain {
    /// Takes the next piece and says whether it is to be indexed.
    #[inline]
    pub(super) fn take(&mut self, linked: bool, length: usize) -> bool {
        let before = if linked { *self } else { Chain::default() };
        *self = Chain { length: before.length + length + 1, pieces: before.pieces + 1 };
        before.length <= CHAIN || before.length < before.pieces * CHAIN_MEAN
    }
}

/// A table, because what separates two words cannot be foretold.
const LINKS: [bool; 256] = {
    let mut links = [false; 256];
    links[b'+' as usize] = true;
    links[b'/' as usize] = true;
    links[b'-' as usize] = true;
    links[b'_' as usize] = true;
    links
};

#[inline]
pub(super) fn links(byte: u8) -> bool {
    LINKS[usize::from(byte)]
}

/// No word ended anywhere near.
pub(super) const NOWHERE: usize = usize::MAX - 1;

/// Splits texts, and keeps the buffers that the rare cases need.
#[derive(Default, Debug)]
pub struct Tokeniser {
    pub(super) word: String,
    pub(super) unescaped: String,
}

impl Tokeniser {
    /// The words of plain text.
    pub fn text(&mut self, text: &str, sink: &mut impl Sink) {
        let mut chain = Chain::default();
        self.linked_text(text, false, &mut chain, sink);
    }

    /// The words of a text that may go on with a chain: `linked` says whether a word that begins
    /// at its first byte does. Returns where the last word ended.
    pub(super) fn linked_text(
        &mut self,
        text: &str,
        linked: bool,
        chain: &mut Chain,
        sink: &mut impl Sink,
    ) -> usize {
        let bytes = text.as_bytes();
        // One before the first byte: what begins there is what `linked` speaks of.
        let mut previous = usize::MAX;
        let mut start = 0;
        let mut open = 0;
        let mut base = 0;
        while base <= bytes.len() {
            // One round more than there are bytes: it closes a word at the very end.
            let mask = word_mask(&chunk(bytes, base));
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
                let before = bytes.get(start.wrapping_sub(1));
                let linked = (start == previous.wrapping_add(1))
                    & before.map_or(linked, |byte| links(*byte));
                previous = end;
                let word = Short::load(bytes, start, length);
                if length > Short::MOST {
                    if !self.lengthy(text, start..end, linked, chain, sink) {
                        previous = NOWHERE;
                    }
                } else if !word.is_ascii() {
                    self.mixed(text.get(start..end).unwrap_or_default(), sink);
                    previous = NOWHERE;
                } else if chain.take(linked, length) {
                    sink.short(word.folded());
                }
                start = base + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            open = mask >> 63;
            base += 64;
        }
        previous
    }

    /// A run of more than 16 bytes. Returns whether it is ASCII.
    #[inline(never)]
    pub(super) fn lengthy(
        &mut self,
        text: &str,
        run: std::ops::Range<usize>,
        linked: bool,
        chain: &mut Chain,
        sink: &mut impl Sink,
    ) -> bool {
        let run = text.get(run).unwrap_or_default();
        if !run.is_ascii() {
            self.mixed(run, sink);
            return false;
        }
        if !chain.take(linked, run.len()) {
            return true;
        }
        let mut buffer = [0; LONGEST];
        if let Some(word) = buffer.get_mut(..run.len()) {
            word.copy_from_slice(run.as_bytes());
            word.make_ascii_lowercase();
            sink.long(word);
        } else {
            self.word.clear();
            self.word.push_str(run.get(..SPAN).unwrap_or(run));
            self.word.make_ascii_lowercase();
            hand(&self.word, sink);
        }
        true
    }

    /// A run with characters outside ASCII, which may be letters or not.
    #[inline(never)]
    pub(super) fn mixed(&mut self, run: &str, sink: &mut impl Sink) {
        let word = &mut self.word;
        word.clear();
        let mut full = false;
        for character in run.chars() {
            match role(character) {
                Role::Joins => {
                    let folded = fold(character);
                    full |= word.len() + folded.len_utf8() > SPAN;
                    if !full {
                        word.push(folded);
                    }
                }
                Role::Breaks | Role::Alone => {
                    hand(word, sink);
                    word.clear();
                    full = false;
                    if role(character) == Role::Alone {
                        word.push(fold(character));
                        hand(word, sink);
                        word.clear();
                    }
                }
            }
        }
        hand(word, sink);
    }
}

/// Hands a folded word of any length to the sink, in pieces if it is long.
fn hand(word: &str, sink: &mut impl Sink) {
    match word.len() {
        0 => {}
        1..=Short::MOST => sink.short(Short::pack(word.as_bytes())),
        _ => pieces(word, |piece| sink.long(piece.as_bytes())),
    }
}

/// The pieces by which a word is indexed: itself, or overlapping pieces if it is long. The first
/// is the beginning of the word and the last is its end.
pub(super) fn pieces(word: &str, mut take: impl FnMut(&str)) {
    let mut rest = word;
    loop {
        let end = rest.floor_char_boundary(LONGEST);
        take(&rest[..end]);
        if end == rest.len() {
            return;
        }
        rest = &rest[rest.floor_char_boundary(STRIDE)..];
    }
}

// ── 64 bytes at a time ──────────────────────────────────────────────────────────────────────

pub(super) const fn splat(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The 64 bytes from `base` on, zeros behind the end.
#[inline]
pub(super) fn chunk(bytes: &[u8], base: usize) -> [u8; 64] {
    let rest = bytes.get(base..).unwrap_or_default();
    match rest.first_chunk::<64>() {
        Some(whole) => *whole,
        None => {
            let mut padded = [0; 64];
            padded[..rest.len()].copy_from_slice(rest);
            padded
        }
    }
}

/// One bit for each byte, from the high bits that `mark` leaves in eight of them at a time.
#[inline]
pub(super) fn mask_of(chunk: &[u8; 64], mark: impl Fn(u64) -> u64) -> u64 {
    let (eights, _) = chunk.as_chunks::<8>();
    let mut mask = 0;
    for (index, eight) in eights.iter().enumerate() {
        let marks = mark(u64::from_le_bytes(*eight)) & HIGH_BITS;
        mask |= (marks.wrapping_mul(0x0002_0408_1020_4081) >> 56) << (8 * index);
    }
    mask
}

/// ASCII letters and digits, and every byte of a character outside ASCII.
#[inline]
pub(super) fn word_mask(chunk: &[u8; 64]) -> u64 {
    mask_of(chunk, |bytes| {
        // No sum carries into the next byte: the high bits are out of the way.
        let low = bytes & !HIGH_BITS;
        let lower = low | splat(0x20);
        let letter = (lower + splat(0x80 - b'a')) & !(lower + splat(0x80 - b'z' - 1));
        let digit = (low + splat(0x80 - b'0')) & !(low + splat(0x80 - b'9' - 1));
        letter | digit | bytes
    })
}

/// Where a byte of ASCII stands.
#[inline]
pub(super) fn byte_mask(chunk: &[u8; 64], byte: u8) -> u64 {
    mask_of(chunk, |bytes| {
        let differing = bytes ^ splat(byte);
        !(((differing & !HIGH_BITS) + splat(0x7f)) | differing)
    })
}
