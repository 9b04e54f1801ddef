//! Secrets that need a parser instead of a regex: private key blocks, cookies, home folder names.

use super::value_shape::{Shape, is_placeholder};

const FENCE: &str = "-----";
const MAX_LINE_BYTES: usize = 4096;

/// The end of the private key whose header begins at `start`. `None` for certificates, public keys
/// and prose about keys. A truncated key counts as a key.
pub(super) fn key_block(text: &str, start: usize) -> Option<usize> {
    let header = text.get(start..)?.get(FENCE.len()..)?;
    let label_end = header.as_bytes().iter().take(64).position(|byte| *byte == b'-')?;
    let label = header.get(..label_end)?;
    if !label.contains("PRIVATE KEY") || !header.get(label_end..)?.starts_with(FENCE) {
        return None;
    }
    let mut at = start + FENCE.len() + label_end + FENCE.len();
    let mut key = 0;
    loop {
        let line = at + gap(text.get(at..)?);
        let rest = text.get(line..)?;
        if let Some(footer) = rest.strip_prefix("-----END ") {
            let end = footer.as_bytes().iter().take(64).position(|byte| *byte == b'-');
            let end =
                end.filter(|end| footer.get(*end..).is_some_and(|end| end.starts_with(FENCE)));
            at = line + "-----END ".len() + end.map_or(0, |end| end + FENCE.len());
            key += 1;
            break;
        }
        let length = key_line(rest);
        if length == 0 {
            break;
        }
        key += length;
        at = line + length;
    }
    (key > 1).then_some(at)
}

/// Length of the gap between two lines of a key: newlines, escaped or not, and the line prefixes of
/// editors and diffs.
fn gap(text: &str) -> usize {
    let mut at = 0;
    let bytes = text.as_bytes();
    // Line numbers occur only after a newline.
    let mut new_line = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' | b'\r' => new_line = true,
            b'\\' if matches!(bytes.get(at + 1), Some(b'n' | b'r' | b'\\')) => {
                new_line = true;
                at += usize::from(bytes.get(at + 1) != Some(&b'\\'));
            }
            b' ' | b'\t' | b'|' | b'>' | b'"' | b'\'' | b',' => {}
            b'+' if new_line => {}
            b'-' if new_line && bytes.get(at + 1) != Some(&b'-') => {}
            b'0'..=b'9' if new_line && is_line_number(&text[at..]) => {
                at += text[at..].bytes().take_while(u8::is_ascii_digit).count() - 1;
            }
            0xE2 if text[at..].starts_with('→') => at += 2,
            _ => break,
        }
        at += 1;
    }
    at
}

fn is_line_number(text: &str) -> bool {
    let digits = text.bytes().take(7).take_while(u8::is_ascii_digit).count();
    let after = text.get(digits..).unwrap_or_default();
    digits < 7 && after.starts_with(['→', '\t', '|', ' '])
}

/// The length of a key line; 0 if it is not one.
fn key_line(text: &str) -> usize {
    let bytes = text.as_bytes();
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=_".contains(byte);
    let run = bytes.iter().take(MAX_LINE_BYTES).take_while(|byte| base64(byte)).count();
    // Encryption headers.
    if text.starts_with("Proc-Type:")
        || text.starts_with("DEK-Info:")
        || text.starts_with("Version:")
        || text.starts_with("Comment:")
    {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\\' | b'"');
        return bytes.iter().take(128).position(ends).unwrap_or(bytes.len().min(128));
    }
    let closes = matches!(bytes.get(run), None | Some(b'\n' | b'\r' | b'\\' | b'"' | b'\'' | b'-'));
    let long = run >= 32;
    // The last line may be short. Other short runs are ellipses or words, not key lines.
    if long || (run > 0 && closes && (run >= 16 || follows_end(&text[run..]))) { run } else { 0 }
}

fn follows_end(rest: &str) -> bool {
    rest.get(gap(rest)..).is_some_and(|rest| rest.starts_with("-----END"))
}

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
