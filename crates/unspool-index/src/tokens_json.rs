//! The words of raw JSON: of its keys, strings and numbers, as if each string were unescaped and
//! split, but without parsing or copying. Quotes, brackets and the common escapes (`\n`, `\"`, …)
//! only separate words, so removing the character after a backslash from the mask of word bytes is
//! enough. `\u` may encode a letter inside a word: its six bytes are added to the surrounding run,
//! and only such runs are unescaped.
//!
//! Invalid JSON is split on a best-effort basis; it never fails.

use super::masks::{byte_mask, escaped_mask};
use super::tokens::{Base64Chain, ShortWord, Tokeniser, WordSink};

const ESCAPE: usize = "\\u0000".len();
const TRUE: ShortWord = ShortWord::pack(b"true");
const FALSE: ShortWord = ShortWord::pack(b"false");
const NULL: ShortWord = ShortWord::pack(b"null");

impl Tokeniser {
    /// The words of raw JSON.
    pub fn json(&mut self, raw: &str, sink: &mut impl WordSink) {
        self.scan::<true>(raw, &mut Base64Chain::default(), sink);
    }

    /// A run that contains `\u`, ends at `end` and may continue the chain.
    pub(super) fn escaped(
        &mut self,
        run: &str,
        linked: bool,
        end: usize,
        chain: &mut Base64Chain,
        sink: &mut impl WordSink,
    ) {
        let mut text = std::mem::take(&mut self.unescaped);
        text.clear();
        unescape(run, &mut text);
        if linked {
            // Position -1, just before the first byte.
            chain.end = usize::MAX;
        } else {
            *chain = Base64Chain::default();
        }
        self.scan::<false>(&text, chain, sink);
        if chain.end == text.len() {
            chain.end = end;
        } else {
            *chain = Base64Chain::default();
        }
        self.unescaped = text;
    }
}

/// The state of JSON escapes while scanning.
#[derive(Default)]
pub(super) struct Escapes {
    /// 1 if the next chunk begins with an escaped byte, else 0.
    carry: u64,
    /// Bytes of the next chunk that belong to a `\u` in this one.
    run: u64,
    /// The position after the backslash of the latest `\u`.
    latest: usize,
    /// How far quotes were counted, and whether a string is open there.
    counted: usize,
    quoted: bool,
}

impl Escapes {
    /// Removes escaped bytes from the mask of word bytes and adds `\u` sequences.
    #[inline]
    pub(super) fn apply(&mut self, chunk: &[u8; 64], mask: u64, bytes: &[u8], base: usize) -> u64 {
        let escaped = escaped_mask(byte_mask(chunk, b'\\'), &mut self.carry);
        let units = escaped & byte_mask(chunk, b'u');
        let mask = mask & !escaped;
        if units | self.run | self.carry == 0 {
            return mask;
        }
        self.apply_units(mask, units, bytes, base)
    }

    #[inline(never)]
    fn apply_units(&mut self, mask: u64, units: u64, bytes: &[u8], base: usize) -> u64 {
        let run = std::mem::take(&mut self.run);
        let mut mask = mask | run;
        let mut take = |place: usize| {
            if unit(bytes, place).is_some() {
                let run = ((1u128 << ESCAPE) - 1) << (place - base);
                mask |= run as u64;
                self.run |= (run >> 64) as u64;
                self.latest = place + 1;
            }
        };
        // A `\u` whose backslash is in the previous chunk was handled there.
        let mut units = units & !1;
        while units != 0 {
            take(base + units.trailing_zeros() as usize - 1);
            units &= units - 1;
        }
        if self.carry != 0 {
            take(base + 63);
        }
        mask
    }

    /// True if a run that starts here may contain a `\u`.
    #[inline]
    pub(super) fn reach(&self, start: usize) -> bool {
        start < self.latest
    }

    /// True for `true`, `false` and `null` outside strings. They are not indexed: nobody searches
    /// for them, and they would be in every document.
    #[inline]
    pub(super) fn is_literal(&mut self, word: ShortWord, bytes: &[u8], start: usize) -> bool {
        let literal = (word == TRUE) | (word == FALSE) | (word == NULL);
        literal && !self.is_quoted(bytes, start)
    }

    /// True if a string is open here. Quotes are counted lazily.
    #[inline(never)]
    fn is_quoted(&mut self, bytes: &[u8], here: usize) -> bool {
        while let Some(rest) = bytes.get(self.counted..here)
            && let Some(at) = memchr::memchr2(b'"', b'\\', rest)
        {
            let quote = rest.get(at) == Some(&b'"');
            self.quoted ^= quote;
            self.counted += at + if quote { 1 } else { 2 };
        }
        self.counted = self.counted.max(here);
        self.quoted
    }
}

/// The UTF-16 unit of the `\u` escape at `place`, if it is valid.
fn unit(bytes: &[u8], place: usize) -> Option<u16> {
    let escape = bytes.get(place..)?.first_chunk::<ESCAPE>()?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | digit as u16)
    })
}

/// Unescapes a run of word bytes and valid `\u`. Lone surrogates become the replacement character,
/// which separates words.
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
        let both = [unit, pair.map_or(0, |(_, second)| second)];
        match char::decode_utf16(both).next() {
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
