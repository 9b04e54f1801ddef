//! Secrets that need a parser instead of a regex: cookies, home folder names.

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
