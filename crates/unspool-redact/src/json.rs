//! Redacts JSON string by string, using the field name as context. Everything else stays
//! byte-identical, including numbers and key order. Malformed JSON is processed as far as possible.

use unspool_model::json::{Lexer, TokenKind};

use super::Redactor;
use super::list::is_description;
use super::scan::{ScanContext, documented};
use super::secret_name::{classify, singular};

/// Longer names are ignored.
const MAX_NAME_BYTES: usize = 64;

/// Deepest path in a report. Hostile JSON nests without end, and every secret in it has a path.
const MAX_PATH_FRAMES: usize = 64;

/// An open object or array.
struct Frame {
    object: bool,
    /// Byte range of the current key, without quotes.
    key: Option<(usize, usize)>,
    /// Index of the current array element.
    index: usize,
    /// The previous string of an array: `["--password", "…"]`.
    previous: Option<(usize, usize)>,
    /// The name in `{"name": …, "value_shape": …}`.
    naming: Option<(usize, usize)>,
}

impl Redactor<'_> {
    /// The redacted JSON, or `None` if it has no secrets.
    pub(super) fn replaced_json(&mut self, text: &str, field: &str) -> Option<String> {
        if self.is_clean(text) {
            return None;
        }
        let marked = self.rules.map(|rules| documented(rules, text)).unwrap_or_default();
        let mut frames: Vec<Frame> = Vec::new();
        let mut out: Option<String> = None;
        let mut copied = 0;
        for token in Lexer::new(text) {
            if let TokenKind::Punctuation(byte) = token.kind {
                punctuate(&mut frames, byte);
            }
            let Some(string) = token.content() else { continue };
            let is_key = frames.last().is_some_and(|frame| frame.object && frame.key.is_none());
            let at = marked.partition_point(|(start, ..)| *start < string.start);
            let whole = marked.get(at).filter(|(start, end, _)| (*start..*end) == string);
            let context = ScanContext {
                whole: whole.map(|(.., kind)| *kind),
                ..if is_key { ScanContext::default() } else { context_of(text, &frames) }
            };
            let raw = text.get(string.clone()).unwrap_or_default();
            let replaced = self.replaced_literal(raw, context, |this| {
                if !this.collecting {
                    this.location.field = path(text, field, &frames);
                }
            });
            if let Some(replaced) = replaced {
                let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
                out.push_str(text.get(copied..string.start).unwrap_or_default());
                out.push_str(&replaced);
                copied = string.end;
            }
            if let Some(frame) = frames.last_mut() {
                remember(text, frame, is_key, (string.start, string.end));
            }
        }
        let mut out = out?;
        out.push_str(text.get(copied..).unwrap_or_default());
        Some(out)
    }

    /// Redacts one string literal, given as its escaped content.
    fn replaced_literal(
        &mut self,
        raw: &str,
        context: ScanContext<'_>,
        found: impl FnOnce(&mut Self),
    ) -> Option<String> {
        // Skip embedded images and other files.
        if raw.starts_with("data:") && raw.get(..128).unwrap_or(raw).contains(";base64,") {
            return None;
        }
        let mut found = Some(found);
        let mut current: Option<String> = None;
        for _ in 0..super::MAX_ROUNDS {
            let raw = current.as_deref().unwrap_or(raw);
            let plain = Unescaped::of(raw);
            let edits = self.edits(plain.as_ref().map_or(raw, |plain| &plain.text), context);
            if edits.is_empty() {
                break;
            }
            if let Some(found) = found.take() {
                found(self);
            }
            let mut out = String::with_capacity(raw.len());
            let mut copied = 0;
            for edit in &edits {
                let place = |at| plain.as_ref().map_or(at, |plain| plain.raw(at));
                out.push_str(raw.get(copied..place(edit.start)).unwrap_or_default());
                // A mark needs no JSON escapes.
                self.secrets.mark(edit.secret, &mut out);
                copied = place(edit.end);
            }
            out.push_str(raw.get(copied..).unwrap_or_default());
            self.count(&edits);
            current = Some(out);
        }
        current
    }
}

/// Opens or closes a frame, or moves on in it.
fn punctuate(frames: &mut Vec<Frame>, byte: u8) {
    match byte {
        b'{' | b'[' => frames.push(Frame {
            object: byte == b'{',
            key: None,
            index: 0,
            previous: None,
            naming: None,
        }),
        b'}' | b']' => {
            frames.pop();
        }
        b',' => {
            if let Some(frame) = frames.last_mut() {
                frame.key = None;
                frame.index += 1;
            }
        }
        _ => {}
    }
}

/// The name that the current string is the value of, or that of the list or object around it.
fn context_of<'t>(text: &'t str, frames: &[Frame]) -> ScanContext<'t> {
    let word = |(start, end): (usize, usize)| {
        text.get(start..end).filter(|name| name.len() <= MAX_NAME_BYTES)
    };
    let Some((frame, around)) = frames.split_last() else { return ScanContext::default() };
    let outer = around.last().and_then(|frame| frame.key).and_then(word);
    let outer = outer.filter(|name| classify(name).or_else(|| classify(singular(name))).is_some());
    let around = ScanContext { name: outer, listed: true, ..ScanContext::default() };
    if !frame.object {
        let option = frame.previous.and_then(word).filter(|option| option.starts_with("--"));
        return match option {
            Some(name) => ScanContext { name: Some(name), ..ScanContext::default() },
            None => around,
        };
    }
    let Some(key) = frame.key.and_then(word) else { return ScanContext::default() };
    let name = match key.eq_ignore_ascii_case("value") {
        true => frame.naming.and_then(word).or(outer).unwrap_or(key),
        false => key,
    };
    let own = ScanContext { name: Some(name), ..ScanContext::default() };
    match classify(name) {
        None if outer.is_some() && !is_description(key) => around,
        None | Some(_) => own,
    }
}

fn remember(text: &str, frame: &mut Frame, is_key: bool, string: (usize, usize)) {
    if is_key {
        frame.key = Some(string);
        return;
    }
    if !frame.object {
        frame.previous = Some(string);
        return;
    }
    let key = frame.key.and_then(|(start, end)| text.get(start..end)).unwrap_or_default();
    if ["name", "key", "header", "variable"].iter().any(|name| name.eq_ignore_ascii_case(key)) {
        frame.naming = Some(string);
    }
}

/// `input.env.TOKEN`, `result.content[0].text`.
fn path(text: &str, field: &str, frames: &[Frame]) -> String {
    let mut path = field.to_owned();
    for frame in frames.iter().take(MAX_PATH_FRAMES) {
        if !frame.object {
            path.push_str(&format!("[{}]", frame.index));
        } else if let Some(key) = frame.key.and_then(|(start, end)| text.get(start..end)) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key.get(..MAX_NAME_BYTES).unwrap_or(key));
        }
    }
    path
}

/// An unescaped string with a mapping back to the escaped text.
struct Unescaped {
    text: String,
    /// After each escape: its offset in the unescaped and in the escaped text.
    places: Vec<(usize, usize)>,
}

impl Unescaped {
    /// `None` if there are no escapes.
    fn of(raw: &str) -> Option<Unescaped> {
        let mut text = String::new();
        let mut places = Vec::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(found) = raw.get(at..)?.find('\\') {
            at += found;
            text.push_str(raw.get(copied..at)?);
            let unit = |at: usize| {
                let digits = raw.get(at..at + 6)?.strip_prefix("\\u")?;
                u16::from_str_radix(digits, 16).ok()
            };
            let next = raw.get(at + 1..).and_then(|rest| rest.chars().next());
            let length = match (unit(at), unit(at + 6)) {
                (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) => {
                    text.extend(char::decode_utf16([high, low]).flatten());
                    12
                }
                (Some(unit), _) => {
                    text.push(char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}'));
                    6
                }
                (None, _) => {
                    match next {
                        Some('n') => text.push('\n'),
                        Some('r') => text.push('\r'),
                        Some('t') => text.push('\t'),
                        Some('b') => text.push('\u{8}'),
                        Some('f') => text.push('\u{c}'),
                        // Quotes, slashes and invalid escapes.
                        Some(other) => text.push(other),
                        None => text.push('\\'),
                    }
                    1 + next.map_or(0, char::len_utf8)
                }
            };
            at += length;
            copied = at;
            places.push((text.len(), at));
        }
        if places.is_empty() {
            return None;
        }
        text.push_str(raw.get(copied..)?);
        Some(Unescaped { text, places })
    }

    /// Maps an offset in the unescaped text to the escaped text.
    fn raw(&self, at: usize) -> usize {
        let before = self.places.partition_point(|(place, _)| *place <= at);
        let (place, raw) = before
            .checked_sub(1)
            .and_then(|before| self.places.get(before))
            .copied()
            .unwrap_or_default();
        raw + (at - place)
    }
}
