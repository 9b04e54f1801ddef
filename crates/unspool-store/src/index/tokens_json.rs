//! The words of raw JSON: of its keys, strings and numbers, as if every string had been unescaped
//! and split by itself, but without a parse and without a copy. Quotes, brackets and the common
//! escapes (`\n`, `\"`, …) only separate words, so it is enough to take the character behind a
//! backslash out of the mask of word bytes. `\u` may stand for a letter inside a word: its six
//! bytes are made part of the run they stand in, and only such runs are unescaped.
//!
//! What is not JSON is split as well as may be; it never fails.

use super::tokens::{
    Chain, NOWHERE, Short, Sink, Tokeniser, byte_mask, chunk, links, word_mask,
};

const ESCAPE: usize = "\\u0000".len();

/// `true`, `false` and `null` outside strings are not words: nobody looks for them, and they
/// would stand in every document.
const LITERALS: [Short; 3] = [Short::pack(b"true"), Short::pack(b"false"), Short::pack(b"null")];

/// What the next 64 bytes must know of those before them.
#[derive(Default)]
struct Carried {
    /// Bits that the escapes before already decided: part of a run, or not to be looked at.
    run: u64,
    skip: u64,
    /// Whether a string is open: one or zero.
    quoted: u32,
    /// Where the latest `\u` begins, and whether there is one.
    escape: Option<usize>,
}

impl Tokeniser {
    /// The words of raw JSON.
    pub fn json(&mut self, raw: &str, sink: &mut impl Sink) {
        let bytes = raw.as_bytes();
        let mut chain = Chain::default();
        let mut carried = Carried::default();
        let mut previous = NOWHERE;
        let mut start = 0;
        let mut open = 0;
        let mut base = 0;
        while base <= bytes.len() {
            let (mask, quotes) = carried.masks(bytes, base);
            let shifted = (mask << 1) | open;
            let mut starts = mask & !shifted;
            let mut ends = !mask & shifted;
            if open == 0 {
                start = base + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            while ends != 0 {
                let bit = ends.trailing_zeros();
                let end = base + bit as usize;
                ends &= ends - 1;
                let length = end - start;
                let linked = linked(bytes, previous, start);
                previous = end;
                let word = Short::load(bytes, start, length);
                if carried.escape.is_some_and(|escape| start <= escape)
                    && memchr::memchr(b'\\', &bytes[start..end]).is_some()
                {
                    let run = raw.get(start..end).unwrap_or_default();
                    if !self.escaped(run, linked, &mut chain, sink) {
                        previous = NOWHERE;
                    }
                } else if length > Short::MOST {
                    if !self.lengthy(raw, start..end, linked, &mut chain, sink) {
                        previous = NOWHERE;
                    }
                } else if !word.is_ascii() {
                    self.mixed(raw.get(start..end).unwrap_or_default(), sink);
                    previous = NOWHERE;
                } else {
                    let word = word.folded();
                    let literal = word.second == 0 && LITERALS.contains(&word);
                    if literal && !carried.inside(quotes, bit) {
                        previous = NOWHERE;
                    } else if chain.take(linked, length) {
                        sink.short(word);
                    }
                }
                start = base + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
            }
            carried.quoted = (carried.quoted ^ quotes.count_ones()) & 1;
            open = mask >> 63;
            base += 64;
        }
    }

    /// A run with `\u` in it. Returns whether a word ended at its end.
    #[inline(never)]
    fn escaped(
        &mut self,
        run: &str,
        linked: bool,
        chain: &mut Chain,
        sink: &mut impl Sink,
    ) -> bool {
        let mut text = std::mem::take(&mut self.unescaped);
        text.clear();
        unescape(run, &mut text);
        let end = self.linked_text(&text, linked, chain, sink);
        let whole = end == text.len();
        self.unescaped = text;
        whole
    }
}

impl Carried {
    /// Whether a word that ends at `bit` stands in a string.
    fn inside(&self, quotes: u64, bit: u32) -> bool {
        (self.quoted + (quotes & ((1 << bit) - 1)).count_ones()) % 2 == 1
    }

    /// Word bytes and quotes of the 64 bytes from `base` on.
    #[inline]
    fn masks(&mut self, bytes: &[u8], base: usize) -> (u64, u64) {
        let chunk = chunk(bytes, base);
        let skip = std::mem::take(&mut self.skip);
        let mut mask = (word_mask(&chunk) & !skip) | std::mem::take(&mut self.run);
        let mut quotes = byte_mask(&chunk, b'"') & !skip;
        let mut slashes = byte_mask(&chunk, b'\\') & !skip;
        while slashes != 0 {
            let at = slashes.trailing_zeros();
            let behind = 2u64.checked_shl(at).unwrap_or(0) & !(1 << at);
            slashes &= !((1 << at) | behind);
            mask &= !behind;
            quotes &= !behind;
            let place = base + at as usize;
            if bytes.get(place + 1) == Some(&b'u') && unit(bytes, place).is_some() {
                self.escape = Some(place);
                let run = ((1 << ESCAPE) - 1u128) << at;
                mask |= run as u64;
                self.run = (run >> 64) as u64;
            } else if at == 63 {
                self.skip = 1;
            }
        }
        (mask, quotes)
    }
}

/// Whether one character that holds a chain together stands between two words, as it is or
/// escaped: some writers write `\/`.
#[inline]
fn linked(bytes: &[u8], previous: usize, start: usize) -> bool {
    let distance = start.wrapping_sub(previous);
    let before = bytes.get(start.wrapping_sub(1)).is_some_and(|byte| links(*byte));
    before & (distance <= 2)
        && (distance == 1 || (distance == 2 && bytes.get(previous..start) == Some(b"\\/")))
}

/// The UTF-16 unit that the escape at `place` stands for, if it is one.
fn unit(bytes: &[u8], place: usize) -> Option<u16> {
    let escape = bytes.get(place..)?.first_chunk::<ESCAPE>()?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | digit as u16)
    })
}

/// Unescapes a run: nothing but word bytes and valid `\u`. Halves of pairs that stand alone become
/// the replacement character, which separates.
fn unescape(run: &str, text: &mut String) {
    let bytes = run.as_bytes();
    let mut plain = 0;
    let mut units = memchr::memchr_iter(b'\\', bytes)
        .filter_map(|place| Some((place, unit(bytes, place)?)))
        .peekable();
    while let Some((place, unit)) = units.next() {
        text.push_str(run.get(plain..place).unwrap_or_default());
        plain = place + ESCAPE;
        let pair = units.peek().copied().filter(|(next, _)| *next == plain);
        let units_of_it = [unit, pair.map_or(0, |(_, second)| second)];
        match char::decode_utf16(units_of_it).next() {
            Some(Ok(character)) => {
                if character.len_utf16() == 2 {
                    plain += ESCAPE;
                    units.next();
                }
                text.push(character);
            }
            Some(Err(_)) | None => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    text.push_str(run.get(plain..).unwrap_or_default());
}
