//! Secrets that need a parser instead of a regex: cookies, recovery phrases, home folder names.

use super::value_shape::{Shape, is_placeholder};

const MAX_LINE_BYTES: usize = 4096;

/// The values of a `Cookie` or `Set-Cookie` header whose pairs begin at `start`, and its end.
pub(super) fn cookies(text: &str, start: usize) -> (Vec<(usize, usize)>, usize) {
    let mut found = Vec::new();
    let line = text.get(start..).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\' | 0);
    let length = line.as_bytes().iter().take(MAX_LINE_BYTES).position(ends);
    let line = &line[..line.floor_char_boundary(length.unwrap_or(line.len().min(MAX_LINE_BYTES)))];
    let mut at = start;
    for pair in line.split(';') {
        if let Some((name, value)) = pair.split_once('=') {
            let from = at + name.len() + 1 + (value.len() - value.trim_start().len());
            let value = value.trim();
            if is_cookie(name.trim(), value) {
                found.push((from, from + value.len()));
            }
        }
        at += pair.len() + 1;
    }
    (found, start + line.len())
}

fn is_cookie(name: &str, value: &str) -> bool {
    let attribute = ["path", "expires", "max-age", "domain", "samesite", "priority"];
    if attribute.iter().any(|other| other.eq_ignore_ascii_case(name)) || name.contains(' ') {
        return false;
    }
    if value.len() < 8
        || value.contains("::")
        || is_placeholder(value)
        || value.contains(char::is_whitespace)
    {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let is_session_like =
        ["sess", "sid", "auth", "token", "jwt", "csrf", "xsrf", "remember", "login", "user", "id"];
    let shape = Shape::of(value);
    let is_session_like = is_session_like.iter().any(|word| name.contains(word));
    (is_session_like && shape.digits > 0) || (shape.is_random() && shape.length >= 16)
}

/// The start of the header's value; `end` is the end of the word `cookie`.
pub(super) fn cookie_value(text: &str, end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let quotes = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default().iter().take(16);
        from + rest.take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count()
    };
    let spaces = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default().iter().take(16);
        from + rest.take_while(|byte| **byte == b' ').count()
    };
    let named = quotes(end);
    let gap = spaces(named);
    match bytes.get(gap)? {
        b':' | b'=' => Some(quotes(spaces(gap + 1))),
        // `--cookie 'a=b'`
        _ if gap > named => Some(quotes(gap)).filter(|value| *value > gap),
        _ => None,
    }
}

/// The value of a session cookie outside a header, and where what may be one ends; `end` is the end of
/// its name and the `=`.
pub(super) fn session_cookie(text: &str, end: usize) -> Option<(Option<(usize, usize)>, usize)> {
    let bytes = text.as_bytes();
    // `sessionId=` is the id of any session, not a cookie.
    if text.get(..end)?.ends_with("sessionId=") {
        return None;
    }
    let quoted = usize::from(matches!(bytes.get(end), Some(b'"' | b'\'')));
    let start = end + quoted;
    let belongs = |byte: &&u8| byte.is_ascii_alphanumeric() || b"%._~+/=!-:".contains(byte);
    let length = bytes.get(start..)?.iter().take(MAX_LINE_BYTES).take_while(belongs).count();
    let value = text.get(start..start + length)?.trim_end_matches(['.', ':', '!']);
    let shape = Shape::of(value);
    let is_session = shape.length >= 16 && shape.is_random() && !is_placeholder(value);
    Some((is_session.then_some((start, start + value.len())), start + length))
}

/// Words that are frequent in sentences and not in the list of words for wallets.
const SENTENCE_WORDS: &[&str] = &[
    "and", "are", "been", "from", "for", "has", "have", "its", "must", "not", "our", "should",
    "store", "the", "which", "words", "your", "was", "were", "with", "can",
];

/// The words of a wallet that follow a keyword which ends at `end`: 12, 15, 18, 21 or 24, with or
/// without numbers before them.
pub(super) fn recovery_phrase(text: &str, end: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let letters = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default().iter().take(12);
        rest.take_while(|byte| byte.is_ascii_lowercase()).count()
    };
    let sign = |byte: u8| b" \t\r\n:=\"'`,.)|>-\\*[]".contains(&byte) || byte.is_ascii_digit();
    let mut from = end;
    // `phrase (12 words) is:`, `phrases`, `"mnemonic": "`.
    let head = bytes.get(end..text.len().min(end + 40))?;
    if let Some(colon) = head.iter().position(|byte| matches!(byte, b':' | b'=' | b'\n')) {
        from = end + colon;
    }
    let (mut count, mut first, mut last) = (0, from, from);
    let mut place = from;
    loop {
        let mut gap = 0;
        while gap < 16 && sign(at(place)) {
            // An escaped line end.
            place += 1 + usize::from(at(place) == b'\\' && matches!(at(place + 1), b'n' | b'r'));
            gap += 1;
        }
        let length = letters(place);
        let word = text.get(place..place + length).unwrap_or_default();
        let after = at(place + length);
        let ends = after.is_ascii_alphanumeric() || matches!(after, b'_' | b'(' | b'=' | b':');
        if !(3..=8).contains(&length) || gap == 0 || ends || SENTENCE_WORDS.contains(&word) {
            break;
        }
        if count == 0 {
            first = place;
        }
        count += 1;
        place += length;
        last = place;
        // A sentence ends, and a quote closes.
        let closes = matches!(after, b'"' | b'\'' | b'`' | b'\\') && at(place + 1) != b',';
        let stops = matches!(after, b'.' | b'\n') && !matches!(at(place + 1), b'0'..=b'9' | b' ');
        if count > 24 || count >= 12 && count % 3 == 0 && (stops || closes) {
            break;
        }
    }
    matches!(count, 12 | 15 | 18 | 21 | 24).then_some((first, last))
}

/// The byte range of the home folder path whose prefix is at `start..end`.
pub(super) fn home(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let word = text.get(start..end)?;
    let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let encoded = word.starts_with('-');
    // Claude Code encodes `/` as `-` in folder names, so the name ends at the first `-`.
    let belongs = |byte: &u8| belongs(byte) && !(encoded && *byte == b'-');
    let separators = bytes.get(end..)?.iter().take(8).take_while(|byte| **byte == b'\\').count();
    let from = end + separators;
    let length = bytes.get(from..)?.iter().take(64).take_while(|byte| belongs(byte)).count();
    let name = text.get(from..from + length)?;
    if name.is_empty()
        || name.bytes().all(|byte| byte == b'.')
        || name.eq_ignore_ascii_case("shared")
    {
        return None;
    }
    let before = text.get(..start)?;
    let begin = match word.as_bytes().first()? {
        b'\\' => {
            let slashes = before.len() - before.trim_end_matches('\\').len();
            let drive = before.get(..start - slashes)?;
            if !drive.ends_with(':') {
                return None;
            }
            start - slashes - 2
        }
        b'-' => {
            let folder = before.ends_with("projects/") || before.ends_with("projects\\");
            (folder).then_some(start)?
        }
        _ => {
            let last = before.bytes().last().unwrap_or(b' ');
            let inside =
                last.is_ascii_alphanumeric() || matches!(last, b'.' | b'_' | b'-' | b']' | b'}');
            // `/c/Users/…` and `/mnt/c/Users/…` are Windows home folders.
            let drive =
                before.ends_with("/c") || before.ends_with("/mnt/c") || before.ends_with("C:");
            (!inside || drive).then_some(start)?
        }
    };
    text.is_char_boundary(begin).then_some((begin, from + length))
}
