//! The text as a reader sees it: without terminal escapes, zero-width characters and continued
//! lines, all of which may split a key. Rules match on this view too; its offsets map back to the
//! original text, so that the whole original range is replaced.

/// Keywords that tell that a text differs from what a reader sees. The written forms (`\x1b[`) are
/// what programs print that escape their output.
pub(super) const HIDDEN_KEYWORDS: &[&str] = &[
    "\u{1b}", "\u{9b}", "\u{ad}", "\u{200b}", "\u{200c}", "\u{200d}", "\u{200e}", "\u{200f}",
    "\u{202a}", "\u{202b}", "\u{202c}", "\u{202d}", "\u{202e}", "\u{2060}", "\u{2061}", "\u{2062}",
    "\u{2063}", "\u{2064}", "\u{feff}", "\\\n", "\\\r\n", "\\u001b", "\\x1b", "\\033[", "\\e[",
    "\\u200", "\\u2060", "\\ufeff", "\\u00ad", "^[[",
];

/// Longest parameters of a control sequence.
const MAX_PARAMETER_BYTES: usize = 64;
/// Longest address of a hyperlink.
const MAX_LINK_BYTES: usize = 4096;
/// Deepest nesting of backslashes before a written escape.
const MAX_BACKSLASHES: usize = 16;

/// A text without its hidden characters.
pub(super) struct VisibleText {
    pub(super) text: String,
    /// After each hidden piece: its offset in the visible and in the original text.
    places: Vec<(usize, usize)>,
    /// The hidden pieces are marks of Markdown.
    emphasis: bool,
}

impl VisibleText {
    /// `None` if nothing is hidden.
    pub(super) fn of(original: &str) -> Option<VisibleText> {
        VisibleText::without(original, |bytes, at| match bytes[at] {
            0x1b | b'\\' | b'^' | 0xC2 | 0xE2 | 0xEF => hidden_length(bytes, at),
            _ => 0,
        })
    }

    /// The text without the marks of Markdown that may split a key. `None` if there are none.
    pub(super) fn without_emphasis(original: &str) -> Option<VisibleText> {
        let is_mark = |byte: u8| matches!(byte, b'*' | b'`');
        let visible = VisibleText::without(original, |bytes, at| usize::from(is_mark(bytes[at])))?;
        Some(VisibleText { emphasis: true, ..visible })
    }

    /// A piece of the original text as a reader sees it.
    pub(super) fn seen(&self, piece: &str) -> Option<VisibleText> {
        match self.emphasis {
            true => VisibleText::without_emphasis(piece),
            false => VisibleText::of(piece),
        }
    }

    /// The text without the pieces whose length a function tells.
    fn without(original: &str, hidden_at: impl Fn(&[u8], usize) -> usize) -> Option<VisibleText> {
        let bytes = original.as_bytes();
        let mut text = String::new();
        let mut places = Vec::new();
        let (mut copied, mut at) = (0, 0);
        while at < bytes.len() {
            let length = hidden_at(bytes, at);
            if length == 0 {
                at += 1;
                continue;
            }
            text.push_str(original.get(copied..at)?);
            at += length;
            copied = at;
            places.push((text.len(), at));
        }
        if places.is_empty() {
            return None;
        }
        text.push_str(original.get(copied..)?);
        Some(VisibleText { text, places, emphasis: false })
    }

    /// Maps a range to the original text, with what is hidden inside it, not around it.
    pub(super) fn original(&self, start: usize, end: usize) -> (usize, usize) {
        let start = self.offset(start);
        (start, end.checked_sub(1).map_or(start, |last| self.offset(last) + 1).max(start))
    }

    fn offset(&self, at: usize) -> usize {
        let before = self.places.partition_point(|(place, _)| *place <= at);
        let place = before.checked_sub(1).and_then(|before| self.places.get(before));
        let (place, original) = place.copied().unwrap_or_default();
        original + (at - place)
    }
}

/// The length of the hidden piece at an offset; 0 if what stands there is visible.
fn hidden_length(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest {
        [0x1b, b'[', ..] => 2 + control_length(&rest[2..]).unwrap_or(0),
        [0x1b, b']', ..] => 2 + link_length(&rest[2..]).unwrap_or(0),
        // Selects a character set: `tput sgr0` ends with it.
        [0x1b, b'(' | b')', set, ..] if set.is_ascii_alphanumeric() => 3,
        [0x1b, ..] => 1,
        [0xC2, 0x9B, ..] => 2 + control_length(&rest[2..]).unwrap_or(0),
        [0xC2, 0xAD, ..] => 2,
        [0xE2, 0x80, 0x8B..=0x8F | 0xAA..=0xAE, ..] | [0xE2, 0x81, 0xA0..=0xA4, ..] => 3,
        [0xEF, 0xBB, 0xBF, ..] => 3,
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        [b'\\', ..] => written_length(rest),
        [b'^', b'[', b'[', ..] => control_length(&rest[3..]).map_or(0, |length| 3 + length),
        _ => 0,
    }
}

/// The length of the parameters and the final letter of a control sequence.
fn control_length(rest: &[u8]) -> Option<usize> {
    let parameters = rest.iter().take(MAX_PARAMETER_BYTES);
    let length = parameters.take_while(|byte| matches!(byte, 0x20..=0x3f)).count();
    rest.get(length).filter(|byte| matches!(byte, 0x40..=0x7e)).map(|_| length + 1)
}

/// The length of a hyperlink or title, to the end of its terminator. The next escape ends the
/// search, which keeps it linear.
fn link_length(rest: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| matches!(byte, 0x07 | 0x1b | b'\n');
    let length = rest.iter().take(MAX_LINK_BYTES).position(ends)?;
    match rest.get(length..)? {
        [0x07, ..] => Some(length + 1),
        [0x1b, b'\\', ..] => Some(length + 2),
        _ => None,
    }
}

/// The length of an escape that is written out: `\u001b[31m`, `\x1b[31m`, `\u200b`.
fn written_length(rest: &[u8]) -> usize {
    let slashes = rest.iter().take(MAX_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    let written = rest.get(slashes..).unwrap_or_default();
    let starts = |word: &str| {
        written.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    for word in ["u001b[", "x1b[", "033[", "e["] {
        if starts(word) {
            let control = control_length(written.get(word.len()..).unwrap_or_default());
            return control.map_or(0, |length| slashes + word.len() + length);
        }
    }
    let invisible = ["u200b", "u200c", "u200d", "u200e", "u200f", "u2060", "ufeff", "u00ad"];
    match invisible.into_iter().find(|word| starts(word)) {
        Some(word) => slashes + word.len(),
        None => 0,
    }
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
