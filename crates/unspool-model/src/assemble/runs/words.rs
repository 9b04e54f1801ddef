//! Texts without their white space: a stream and a log break lines and trim in different places.
//! A text is compared by length and hash, so that the assembler need not keep the texts of a log.

use std::ops::Range;

/// The Mersenne prime 2^61 - 1, and a base below it. A polynomial hash gives the hash of every
/// window of a text from the hashes of its beginnings.
const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0f3a_91c5_d27b_4e61;

/// The length and the hash of a text without white space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::assemble) struct Words {
    pub length: usize,
    hash: u64,
}

impl Words {
    pub fn of(text: &str) -> Words {
        let mut words = Words::default();
        for byte in text.bytes().filter(|byte| !is_space(*byte)) {
            words = Words { length: words.length + 1, hash: extend(words.hash, byte) };
        }
        words
    }
}

/// Control characters that separate words, and the space. Other white space counts as a word.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn extend(hash: u64, byte: u8) -> u64 {
    // A zero byte must count.
    (multiply(hash, BASE) + u64::from(byte) + 1) % PRIME
}

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product as u64 & PRIME) + (product >> 61) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

/// Several runs as one text without white space. They are read as far as texts are looked for.
pub(super) struct Runs<'a, I> {
    more: I,
    texts: Vec<&'a str>,
    /// Where each run starts in `bytes`.
    starts: Vec<usize>,
    /// For each byte, its offset in its run.
    bytes: Vec<usize>,
    /// The hash of each beginning.
    hashes: Vec<u64>,
}

/// The texts that were found, each with its range in the runs.
pub(super) struct Found<T> {
    pub texts: Vec<(T, Range<usize>)>,
    /// Some text was not found.
    pub incomplete: bool,
    /// The number of texts that were looked for.
    #[cfg(test)]
    pub tried: usize,
}

impl<'a, I: Iterator<Item = &'a str>> Runs<'a, I> {
    pub fn new(runs: I) -> Runs<'a, I> {
        let (texts, starts, bytes) = (Vec::new(), Vec::new(), Vec::new());
        Runs { more: runs, texts, starts, bytes, hashes: vec![0] }
    }

    /// Reads runs until there are so many bytes. False if the runs have fewer.
    fn read(&mut self, bytes: usize) -> bool {
        let mut hash = self.hashes.last().copied().unwrap_or_default();
        while self.bytes.len() < bytes {
            let Some(text) = self.more.next() else { return false };
            self.texts.push(text);
            self.starts.push(self.bytes.len());
            for (offset, byte) in text.bytes().enumerate().filter(|(_, byte)| !is_space(*byte)) {
                hash = extend(hash, byte);
                self.bytes.push(offset);
                self.hashes.push(hash);
            }
        }
        true
    }

    /// Finds the texts in the runs, each after the one before it.
    pub fn find_in_order<T>(&mut self, texts: impl Iterator<Item = (T, Words)>) -> Found<T> {
        let mut found = Found {
            texts: Vec::new(),
            incomplete: false,
            #[cfg(test)]
            tried: 0,
        };
        let mut from = 0;
        for (text, words) in texts {
            // No text that follows can be found at the end of the runs.
            if !self.read(from + 1) {
                found.incomplete = true;
                break;
            }
            #[cfg(test)]
            {
                found.tried += 1;
            }
            if let Some(range) = self.find(&words, from) {
                from = range.end;
                found.texts.push((text, range));
            } else {
                found.incomplete = true;
            }
        }
        found
    }

    fn find(&mut self, text: &Words, from: usize) -> Option<Range<usize>> {
        if text.length == 0 {
            return None;
        }
        let power = power(text.length);
        let mut start = from;
        while self.read(start + text.length) {
            let before = multiply(self.hashes[start], power);
            if (self.hashes[start + text.length] + PRIME - before) % PRIME == text.hash {
                return Some(start..start + text.length);
            }
            start += 1;
        }
        None
    }

    /// The number of runs that were read.
    #[cfg(test)]
    pub fn count_read(&self) -> usize {
        self.texts.len()
    }

    /// The run in which a byte is.
    pub fn run_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).saturating_sub(1)
    }

    /// What is left of a run without the ranges, which are in order, and what was cut out of it.
    pub fn without(&self, run: usize, ranges: &[Range<usize>]) -> Rest {
        let text = self.texts[run];
        let first = self.starts[run];
        let end = self.starts.get(run + 1).copied().unwrap_or(self.bytes.len());
        let mut rest = Rest::default();
        let mut from = 0;
        let behind = ranges.partition_point(|range| range.end <= first);
        for range in ranges[behind..].iter().take_while(|range| range.start < end) {
            let (first, end) = (first.max(range.start), end.min(range.end));
            let (start, end) = (self.bytes[first], self.bytes[end - 1] + 1);
            rest.shown.push_str(&text[from..start]);
            rest.cut.push((rest.shown.len(), text[start..end].to_owned()));
            from = end;
        }
        rest.shown.push_str(&text[from..]);
        rest
    }
}

/// The base to the power of a length.
fn power(length: usize) -> u64 {
    let (mut power, mut base, mut left) = (1, BASE, length);
    while left > 0 {
        if left & 1 == 1 {
            power = multiply(power, base);
        }
        base = multiply(base, base);
        left >>= 1;
    }
    power
}

/// What is left of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Rest {
    pub shown: String,
    /// The words that were cut out, and the offset in `shown` where each stood.
    pub cut: Vec<(usize, String)>,
}

/// The run as the stream reported it.
pub(in crate::assemble) fn whole_run(shown: &str, cut: &[(usize, String)]) -> String {
    let mut whole = String::with_capacity(shown.len());
    let mut from = 0;
    for (at, words) in cut {
        let next = shown.get(from..*at).unwrap_or_default();
        whole.push_str(next);
        whole.push_str(words);
        from += next.len();
    }
    whole.push_str(&shown[from..]);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(runs: &[&str], texts: &[&str]) -> Vec<Rest> {
        let words = texts.iter().map(|text| ((), Words::of(text)));
        let mut held = Runs::new(runs.iter().copied());
        let found = held.find_in_order(words);
        let ranges: Vec<_> = found.texts.into_iter().map(|(_, range)| range).collect();
        // What is not found is looked for in all runs.
        held.read(usize::MAX);
        (0..runs.len()).map(|run| held.without(run, &ranges)).collect()
    }

    fn shown(runs: &[&str], texts: &[&str]) -> Vec<String> {
        let rests = rest(runs, texts);
        for (run, rest) in runs.iter().zip(&rests) {
            assert_eq!(whole_run(&rest.shown, &rest.cut), *run);
        }
        rests.into_iter().map(|rest| rest.shown.trim().to_owned()).collect()
    }

    #[test]
    fn the_log_covers_runs_whatever_its_white_space() {
        assert_eq!(shown(&["\n\nLook first.\nThen run."], &["Look  first.", "Then run.\n"]), [""]);
        assert_eq!(shown(&["Look ", "first"], &["Look first"]), ["", ""]);
        assert_eq!(shown(&["größe\u{3000}日本"], &["größe\u{3000}日本"]), [""]);
    }

    #[test]
    fn what_only_the_stream_has_is_left() {
        assert_eq!(shown(&["Info: /tmp/a\nDone."], &["Done."]), ["Info: /tmp/a"]);
        assert_eq!(shown(&["Done. Aborted te"], &["Done."]), ["Aborted te"]);
        assert_eq!(shown(&["a", "b", "c"], &["b"]), ["a", "", "c"]);
        assert_eq!(shown(&["a", "b"], &["x", "b"]), ["a", ""]);
        assert_eq!(shown(&["a b"], &["b", "a"]), ["a"]);
        assert_eq!(shown(&["ab"], &["abc"]), ["ab"]);
        assert_eq!(shown(&[], &["abc"]), Vec::<String>::new());
    }
}
