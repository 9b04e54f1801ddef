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

/// Several runs as one text without white space.
pub(super) struct Runs<'a> {
    texts: Vec<&'a str>,
    /// For each byte, the run that has it and its offset there.
    bytes: Vec<(usize, usize)>,
    /// The hash of each beginning.
    hashes: Vec<u64>,
}

impl<'a> Runs<'a> {
    pub fn new(texts: Vec<&'a str>) -> Runs<'a> {
        let (mut bytes, mut hashes) = (Vec::new(), vec![0]);
        let mut hash = 0;
        for (run, text) in texts.iter().enumerate() {
            for (offset, byte) in text.bytes().enumerate().filter(|(_, byte)| !is_space(*byte)) {
                hash = extend(hash, byte);
                bytes.push((run, offset));
                hashes.push(hash);
            }
        }
        Runs { texts, bytes, hashes }
    }

    /// Finds the texts in the runs, each after the one before it. A text that the runs lack has no
    /// range.
    pub fn find_in_order(&self, texts: &[Words]) -> Vec<Option<Range<usize>>> {
        let mut from = 0;
        let find = |text: &Words| {
            let found = self.find(text, from)?;
            from = found.end;
            Some(found)
        };
        texts.iter().map(find).collect()
    }

    fn find(&self, text: &Words, from: usize) -> Option<Range<usize>> {
        let last = self.bytes.len().checked_sub(text.length)?;
        if text.length == 0 || from > last {
            return None;
        }
        let power = (0..text.length).fold(1, |power, _| multiply(power, BASE));
        let start = (from..=last).find(|start| {
            let before = multiply(self.hashes[*start], power);
            (self.hashes[start + text.length] + PRIME - before) % PRIME == text.hash
        })?;
        Some(start..start + text.length)
    }

    /// The run in which a range ends.
    pub fn end_of(&self, range: &Range<usize>) -> Option<usize> {
        self.bytes.get(range.end.checked_sub(1)?).map(|(run, _)| *run)
    }

    /// What is left of a run without the ranges, and what was cut out of it.
    pub fn without(&self, run: usize, ranges: &[Range<usize>]) -> Rest {
        let text = self.texts[run];
        let mut rest = Rest::default();
        let mut from = 0;
        for range in ranges {
            let Some((start, end)) = self.part_in(run, range) else { continue };
            rest.shown.push_str(&text[from..start]);
            rest.cut.push((rest.shown.len(), text[start..end].to_owned()));
            from = end;
        }
        rest.shown.push_str(&text[from..]);
        rest
    }

    /// The bytes of a run that a range covers.
    fn part_in(&self, run: usize, range: &Range<usize>) -> Option<(usize, usize)> {
        let first = self.bytes.partition_point(|(held, _)| *held < run).max(range.start);
        let end = self.bytes.partition_point(|(held, _)| *held <= run).min(range.end);
        let (start, last) = (first < end).then(|| (self.bytes[first].1, self.bytes[end - 1].1))?;
        Some((start, last + 1))
    }
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
        let words: Vec<Words> = texts.iter().map(|text| Words::of(text)).collect();
        let held = Runs::new(runs.to_vec());
        let ranges: Vec<_> = held.find_in_order(&words).into_iter().flatten().collect();
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
