//! Private keys: PEM and OpenVPN blocks, blocks whose beginning is cut off, keys whose block is
//! base64 once more, OpenSSH keys without their header, PuTTY keys.

use super::key_line::{FENCE, MAX_LABEL_BYTES, footer_length, gap, is_base64, key_line};
use super::key_prefix::{prefix_length, prefixed_line};
use super::value_shape::decode_base64;

const FOOTER: &str = "-----END ";
/// How far back the beginning of a key is searched for.
const MAX_TAIL_BYTES: usize = 16 << 10;
/// Less base64 than this is no key.
const MIN_BODY_BYTES: usize = 40;

/// The end of the private key whose header begins at `start`. `None` for certificates, public keys
/// and prose about keys. A truncated key counts as a key.
pub(super) fn key_block(text: &str, start: usize) -> Option<usize> {
    let mut at = start + boundary(text.get(start..)?)?;
    let prefix = prefix_length(text.as_bytes(), start);
    let mut key = 0;
    loop {
        // What a program puts before each line may itself look like a key line, as the commits of
        // `git blame` do.
        let prefixed = prefix.and_then(|prefix| prefixed_line(text, at, prefix));
        let line = prefixed.map_or_else(|| at + gap(&text[at..]), |(line, _)| line);
        let rest = text.get(line..)?;
        if let Some(length) = footer_length(rest) {
            at = line + length;
            key += 1;
            break;
        }
        let length = prefixed.map_or_else(|| key_line(rest), |(_, length)| length);
        if length == 0 {
            break;
        }
        key += length;
        at = line + length;
    }
    (key > 1).then_some(at)
}

/// The length of the header or footer of a private key that a text begins with. SSH2 keys have four
/// hyphens and spaces around the label; in a URL the spaces are `%20` or `+`.
fn boundary(text: &str) -> Option<usize> {
    let hyphens = text.bytes().take(FENCE.len()).take_while(|byte| *byte == b'-').count();
    let inner = text.get(hyphens..)?;
    let label_end = inner.as_bytes().iter().take(MAX_LABEL_BYTES).position(|b| *b == b'-')?;
    let label = inner.get(..label_end)?.replace("%20", " ").replace('+', " ");
    let private = label.contains("PRIVATE KEY") || label.contains("Static key");
    let closes = inner.get(label_end..)?.starts_with(&FENCE[..hyphens]);
    (private && closes).then_some(hyphens + label_end + hyphens)
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
