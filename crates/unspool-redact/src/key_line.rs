//! Lines of a private key: what stands between two of them, how long one is, and the footer.

/// The hyphens around the label of a header or a footer.
pub(super) const FENCE: &str = "-----";
const MAX_LINE_BYTES: usize = 4096;
pub(super) const MAX_LABEL_BYTES: usize = 64;
/// A line of a key that is not its last one. Shorter runs are words and numbers.
pub(super) const MIN_LINE_BYTES: usize = 32;

/// The length of the footer that a text begins with; without its label if that is cut off.
pub(super) fn footer_length(text: &str) -> Option<usize> {
    let begins = ["-----END ", "-----END%20", "-----END+", "---- END "];
    let begin = begins.iter().find(|begin| text.starts_with(**begin))?;
    let label = text.as_bytes().get(begin.len()..)?.iter().take(MAX_LABEL_BYTES);
    let label_end = label.clone().position(|byte| *byte == b'-');
    let fence = begin.bytes().take_while(|byte| *byte == b'-').count();
    let end = label_end.map(|end| begin.len() + end);
    let end = end.filter(|end| text.get(*end..).is_some_and(|e| e.starts_with(&FENCE[..fence])));
    Some(end.map_or(begin.len(), |end| end + fence))
}

/// Length of the gap between two lines of a key: newlines, escaped or not, and the line prefixes of
/// editors, diffs and comments.
pub(super) fn gap(text: &str) -> usize {
    let mut at = 0;
    let bytes = text.as_bytes();
    // Line numbers occur only after a newline.
    let mut new_line = false;
    while let Some(byte) = bytes.get(at) {
        if let Some(length) = encoded_line_end(&bytes[at..]) {
            new_line = true;
            at += length;
            continue;
        }
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

/// The length of a line end in a URL or in HTML.
fn encoded_line_end(bytes: &[u8]) -> Option<usize> {
    if !matches!(bytes.first(), Some(b'%' | b'<' | b'&')) {
        return None;
    }
    let ends = ["%0a", "%0d", "<br>", "<br/>", "<br />", "&#10;", "&#13;", "&#xa;", "&#xd;"];
    let starts = |end: &&&str| {
        bytes.get(..end.len()).is_some_and(|start| start.eq_ignore_ascii_case(end.as_bytes()))
    };
    ends.iter().find(starts).map(|end| end.len())
}

fn is_line_number(text: &str) -> bool {
    let digits = text.bytes().take(7).take_while(u8::is_ascii_digit).count();
    let after = text.get(digits..).unwrap_or_default();
    digits < 7 && after.starts_with(['→', '\t', '|', ' '])
}

/// The length of a key line; 0 if it is not one.
pub(super) fn key_line(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = line_run(bytes);
    // Encryption headers.
    if text.starts_with("Proc-Type:")
        || text.starts_with("DEK-Info:")
        || text.starts_with("Version:")
        || text.starts_with("Comment:")
        || text.starts_with("Subject:")
    {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\\' | b'"');
        // `Comment: "2048-bit RSA"`
        let open = if text.starts_with("Comment: \"") { "Comment: \"".len() } else { 0 };
        let length = bytes.iter().take(256).skip(open).position(ends);
        return length.map_or(bytes.len().min(256), |length| open + length);
    }
    let closes = matches!(bytes.get(run), None | Some(b'\n' | b'\r' | b'\\' | b'"' | b'\'' | b'-'))
        || encoded_line_end(&bytes[run..]).is_some();
    let long = run >= MIN_LINE_BYTES;
    // The last line may be short. Other short runs are ellipses or words, not key lines.
    if long || (run > 0 && closes && (run >= 16 || follows_end(&text[run..]))) { run } else { 0 }
}

/// The length of the base64 that a text begins with, in which a URL has codes for the signs.
pub(super) fn line_run(bytes: &[u8]) -> usize {
    let mut run = 0;
    while let Some(byte) = bytes.get(run).filter(|_| run < MAX_LINE_BYTES) {
        run += match byte {
            b'%' if is_encoded_sign(&bytes[run..]) => 3,
            _ if is_base64(*byte) || *byte == b'_' => 1,
            _ => break,
        };
    }
    run
}

/// True for `+`, `/` and `=` in a URL.
fn is_encoded_sign(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', b'2', b'B' | b'b' | b'F' | b'f', ..] | [b'%', b'3', b'D' | b'd', ..])
}

fn follows_end(rest: &str) -> bool {
    rest.get(gap(rest)..).is_some_and(|rest| footer_length(rest).is_some())
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}
