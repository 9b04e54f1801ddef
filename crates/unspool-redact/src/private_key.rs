//! Private keys: PEM and OpenVPN blocks, blocks whose beginning is cut off, keys whose block is
//! base64 once more, OpenSSH keys without their header, PuTTY keys.

use super::value_shape::decode_base64;

const FENCE: &str = "-----";
const FOOTER: &str = "-----END ";
const MAX_LINE_BYTES: usize = 4096;
/// How far back the beginning of a key is searched for.
const MAX_TAIL_BYTES: usize = 16 << 10;
/// Less base64 than this is no key.
const MIN_BODY_BYTES: usize = 40;

/// The end of the private key whose header begins at `start`. `None` for certificates, public keys
/// and prose about keys. A truncated key counts as a key.
pub(super) fn key_block(text: &str, start: usize) -> Option<usize> {
    let header = text.get(start..)?.get(FENCE.len()..)?;
    let label_end = header.as_bytes().iter().take(64).position(|byte| *byte == b'-')?;
    let label = header.get(..label_end)?;
    let private = label.contains("PRIVATE KEY") || label.contains("Static key");
    if !private || !header.get(label_end..)?.starts_with(FENCE) {
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
/// editors, diffs and comments.
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
            // Two hyphens are a comment; more of them are the fence of the footer.
            b'-' if new_line && bytes.get(at + 2) != Some(&b'-') => at += 1,
            b'#' | b'*' | b';' | b'%' if new_line => {}
            // One slash may be base64.
            b'/' if new_line && bytes.get(at + 1) == Some(&b'/') => at += 1,
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

/// The end of a key that is base64 without a header: a whole PEM block, as in a kubeconfig or a
/// Kubernetes secret, or the body of an OpenSSH key. `None` for certificates.
pub(super) fn encoded_key(text: &str, start: usize) -> Option<usize> {
    let body = text.get(start..)?;
    // The header decides before the whole line is read, which keeps the search linear.
    let start_of_body = body.as_bytes().get(..body.len().min(64))?;
    let header = decode_base64(body.get(..base64_run(start_of_body) & !3)?)?;
    let holds = |word: &[u8]| header.windows(word.len()).any(|window| window == word);
    if !holds(b"PRIVATE KEY") && !header.starts_with(b"openssh-key-v1") {
        return None;
    }
    let to = more_lines(text, start + base64_run(body.as_bytes()));
    (to - start >= MIN_BODY_BYTES).then_some(to)
}

/// The lines after `Private-Lines:` in a PuTTY key; `end` is the end of the keyword.
pub(super) fn putty_key(text: &str, end: usize) -> Option<(usize, usize)> {
    let count = text.get(end..)?.bytes().take(8).take_while(|b| b" 0123456789".contains(b)).count();
    let line = end + count;
    let from = line + gap(text.get(line..)?);
    let first = base64_run(text.get(from..)?.as_bytes());
    let to = more_lines(text, from + first);
    (from > line && to - from >= MIN_BODY_BYTES).then_some((from, to))
}

/// The end of the base64 lines that follow the one that ends at `at`.
fn more_lines(text: &str, mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let between = gap(rest);
        let (between, rest) = rest.split_at(between);
        let run = base64_run(rest.as_bytes());
        let line = rest.get(..run).unwrap_or_default();
        // Only padding tells a short last line from a word.
        let continues = between.contains('\n') || between.contains("\\n");
        if !continues || run < 16 && !(line.ends_with('=') && run.is_multiple_of(4)) {
            return at;
        }
        at += between.len() + run;
    }
}

fn base64_run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_base64(**byte)).count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

/// The range of a key whose beginning is cut off, from its footer at `start`. The search goes back
/// no further than `floor`.
pub(super) fn key_tail(text: &str, start: usize, floor: usize) -> Option<(usize, usize)> {
    let footer = text.get(start + FOOTER.len()..)?;
    let label_end = footer.as_bytes().iter().take(64).position(|byte| *byte == b'-')?;
    let fenced = footer.get(label_end..)?.starts_with(FENCE);
    if !footer.get(..label_end)?.contains("PRIVATE KEY") || !fenced {
        return None;
    }
    let bytes = text.as_bytes();
    let floor = floor.max(start.saturating_sub(MAX_TAIL_BYTES));
    let (mut from, mut body) = (start, 0);
    while let Some(end) = line_before(bytes, from, floor) {
        let run = bytes.get(floor..end)?.iter().rev().take_while(|byte| is_base64(**byte)).count();
        let mut line = end - run;
        let before = line.checked_sub(1).and_then(|before| bytes.get(before));
        // The `n` of an escaped line end, or the sign of a diff.
        let first = bytes.get(line).copied().unwrap_or_default();
        let foreign = match before {
            Some(b'\\') => matches!(first, b'n' | b'r'),
            Some(b'\n') => first == b'+',
            _ => false,
        };
        line += usize::from(foreign && run > 0);
        if line == end || body > 0 && end - line < 16 {
            break;
        }
        body += end - line;
        from = line;
    }
    let end = start + FOOTER.len() + label_end + FENCE.len();
    (body >= MIN_BODY_BYTES).then_some((from, end))
}

/// The end of the line before the one whose content begins at `at`. `None` if something other than
/// the line prefixes of editors, diffs and comments stands before the content.
fn line_before(bytes: &[u8], at: usize, floor: usize) -> Option<usize> {
    let before = |at: usize| if at > floor { bytes.get(at - 1).copied() } else { None };
    let escaped =
        |at: usize| matches!(before(at), Some(b'n' | b'r')) && before(at - 1) == Some(b'\\');
    let mut at = at;
    while let Some(byte) = before(at).filter(|_| !escaped(at)) {
        match byte {
            b' ' | b'\t' | b'|' | b'>' | b'"' | b'\'' | b',' | b'+' | b'-' | b'0'..=b'9' => at -= 1,
            b'#' | b'*' | b';' | b'%' | b'/' => at -= 1,
            // `→` after a line number.
            0xE2 | 0x86 | 0x92 => at -= 1,
            _ => break,
        }
    }
    let line = at;
    loop {
        match before(at)? {
            b'\n' | b'\r' => at -= 1,
            b'n' | b'r' if escaped(at) => at -= 2,
            b'\\' if at < line => at -= 1,
            b' ' | b'\t' | b'"' | b'\'' if at < line => at -= 1,
            _ => break,
        }
    }
    (at < line).then_some(at)
}
