//! Finds the value assigned to a name: in an `.env` file, in JSON, YAML or source code, as a
//! command-line option, in a URL query, or in a sentence.

use super::verdict::{AssignmentKind, MAX_VALUE_BYTES};

const MAX_GAP_BYTES: usize = 40;

/// A value's byte range and the form of its assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) assignment: AssignmentKind,
}

/// Finds the value assigned to the name at `from..to`.
pub(super) fn value_of(text: &str, from: usize, to: usize) -> Option<Value> {
    let bytes = text.as_bytes();
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let name = text.get(from..to)?;
    let (mut listed, mut colon) = (false, false);
    let exported = from >= 7 && text.get(from - 7..from).is_some_and(|word| word == "export ");
    let constant = is_constant(name) || exported;
    let before = from.checked_sub(1).map(at).unwrap_or_default();
    let option = name.starts_with('-');

    let mut next = to;
    let quoted_name = quote(bytes, next).filter(|_| !constant || at(next) != b'`');
    if let Some((_, length)) = quoted_name {
        next += length;
    }
    if quoted_name.is_some() && at(next) == b']' {
        next += 1;
    }
    let gap = spaces(bytes, next);
    let spaced = gap > next;
    let mut assignment = match at(gap) {
        b'=' if at(gap + 1) == b'>' => {
            next = gap + 2;
            AssignmentKind::Loose
        }
        b'=' => {
            next = gap + 1;
            while at(next) == b'=' {
                next += 1;
            }
            if option {
                AssignmentKind::Option
            } else if matches!(before, b'?' | b'&') && !spaced {
                AssignmentKind::Query
            } else if constant && !spaced && !matches!(at(next), b' ' | b'\t') {
                AssignmentKind::Environment
            } else {
                AssignmentKind::Loose
            }
        }
        b':' if at(gap + 1) == b':' => return None,
        b':' => {
            colon = true;
            next = gap + 1 + usize::from(at(gap + 1) == b'=');
            if starts_line(bytes, from) { AssignmentKind::Line } else { AssignmentKind::Loose }
        }
        b'>' if before == b'<' && !spaced => {
            next = gap + 1;
            AssignmentKind::Markup
        }
        b',' if quoted_name.is_some() => {
            next = gap + 1;
            match after_word(bytes, next, "value") {
                Some(pair) => (next, colon) = (pair, true),
                // `set("password", "…")`: one argument after the other.
                None => listed = true,
            }
            AssignmentKind::Loose
        }
        b'|' if spaced => {
            next = gap + 1;
            AssignmentKind::Loose
        }
        b'\n' | b'\r' | b'\\' => {
            // `- name: DB_PASSWORD`, and on the next line `value_shape: …`.
            next = after_word(bytes, gap, "value")?;
            AssignmentKind::Line
        }
        _ if option && spaced => {
            next = gap;
            AssignmentKind::Option
        }
        b'i' | b'w' if spaced => {
            let verb = ["is ", "was ", "is: "]
                .into_iter()
                .find(|verb| bytes[gap..].starts_with(verb.as_bytes()))?;
            next = gap + verb.len();
            AssignmentKind::Sentence
        }
        _ => return None,
    };
    next = spaces(bytes, next);
    if let Some(after) = after_type(bytes, next, assignment) {
        next = after;
        assignment = AssignmentKind::Loose;
    }
    // b"…", r"…"
    if matches!(at(next), b'b' | b'r' | b'u') && matches!(at(next + 1), b'"' | b'\'') {
        next += 1;
    }
    if listed && bytes.get(next) == Some(&b'`') {
        return None;
    }
    if let Some((depth, length)) = quote(bytes, next) {
        let mark = at(next + length - 1);
        let start = next + length;
        let end = closing(bytes, start, depth, mark);
        let assignment = match assignment {
            AssignmentKind::Environment
            | AssignmentKind::Option
            | AssignmentKind::Query
            | AssignmentKind::Markup
            | AssignmentKind::Sentence => assignment,
            // `"API_SECRET": "…"`. After `=` it would be a constant in source code.
            AssignmentKind::Line | AssignmentKind::Loose if constant && colon => {
                AssignmentKind::Environment
            }
            AssignmentKind::Field | AssignmentKind::Line => AssignmentKind::Field,
            AssignmentKind::Literal | AssignmentKind::Loose => {
                if quoted_name.is_some() && !listed {
                    AssignmentKind::Field
                } else {
                    AssignmentKind::Literal
                }
            }
        };
        return piece(text, start, end, assignment);
    }
    if listed {
        return None;
    }
    let end = open_end(bytes, next, assignment);
    if assignment == AssignmentKind::Line && !ends_line(bytes, end) {
        assignment = AssignmentKind::Loose;
    }
    piece(text, next, end, assignment)
}

fn piece(text: &str, start: usize, end: usize, assignment: AssignmentKind) -> Option<Value> {
    let end = text.floor_char_boundary(end);
    (start < end && text.is_char_boundary(start)).then_some(Value { start, end, assignment })
}

/// A quote at any escape depth: the number of backslashes, and the total length.
fn quote(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let depth = bytes.get(at..)?.iter().take(16).take_while(|byte| **byte == b'\\').count();
    let mark = bytes.get(at + depth)?;
    matches!(mark, b'"' | b'\'' | b'`').then_some((depth, depth + 1))
}

/// The end of a quoted value: the closing quote at the same escape depth.
fn closing(bytes: &[u8], start: usize, depth: usize, mark: u8) -> usize {
    let most = bytes.len().min(start + 2 * MAX_VALUE_BYTES);
    let mut slashes = 0;
    for (at, byte) in bytes.iter().enumerate().take(most).skip(start) {
        if *byte == mark && slashes <= depth {
            return at - slashes;
        }
        if *byte == b'\n' {
            return at;
        }
        slashes = if *byte == b'\\' { slashes + 1 } else { 0 };
    }
    most
}

/// The end of an unquoted value.
fn open_end(bytes: &[u8], start: usize, assignment: AssignmentKind) -> usize {
    let most = bytes.len().min(start + MAX_VALUE_BYTES);
    let mut end = start;
    while end < most {
        let byte = bytes[end];
        let next = bytes.get(end + 1).copied().unwrap_or_default();
        let stops = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'<' | b'>' | 0 => true,
            b'\\' => matches!(next, b'n' | b'r' | b't' | b'"' | b'\'' | b'\\' | b'\n' | b'u'),
            b'&' => assignment == AssignmentKind::Query || next == b'&',
            b'#' => assignment == AssignmentKind::Query,
            b';' | b',' | b')' | b'}' | b']' | b'|' => {
                assignment != AssignmentKind::Environment && assignment != AssignmentKind::Option
                    || matches!(next, b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'\\' | 0)
            }
            0x1b => true,
            _ => false,
        };
        if stops {
            break;
        }
        end += 1;
    }
    while end > start && matches!(bytes[end - 1], b'.' | b':' | b'!' | b'?' | b',') {
        end -= 1;
    }
    end
}

fn spaces(bytes: &[u8], from: usize) -> usize {
    let gap = bytes.get(from..).unwrap_or_default().iter().take(MAX_GAP_BYTES);
    from + gap.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The start of the value after `…, "value_shape": ` or after a line `value_shape: `.
fn after_word(bytes: &[u8], from: usize, word: &str) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let mut gap = 0;
    while let Some(byte) = rest.get(gap).filter(|_| gap < MAX_GAP_BYTES) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'\\' => gap += 1,
            // An escaped newline.
            b'n' | b'r' if gap > 0 && rest.get(gap - 1) == Some(&b'\\') => gap += 1,
            _ => break,
        }
    }
    let rest = rest.get(gap..)?;
    let found = rest.get(..word.len())?.eq_ignore_ascii_case(word.as_bytes());
    let after = rest.get(word.len()..)?;
    let quotes =
        after.iter().take(16).take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    let colon = after.get(quotes).is_some_and(|byte| matches!(byte, b':' | b'='));
    (found && colon).then_some(from + gap + word.len() + quotes + 1)
}

/// The start of the value after a type annotation: `token: string = "…"`.
fn after_type(bytes: &[u8], from: usize, assignment: AssignmentKind) -> Option<usize> {
    if !matches!(assignment, AssignmentKind::Line | AssignmentKind::Loose) {
        return None;
    }
    let rest = bytes.get(from..)?;
    let typed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:&<>[]?|' ".contains(byte);
    let length = rest.iter().take(MAX_GAP_BYTES).take_while(|byte| typed(byte)).count();
    let assigns = rest.get(length) == Some(&b'=') && rest.get(length + 1) != Some(&b'=');
    let name = rest.get(..length)?;
    // Without a space, `=` may be base64 padding.
    let apart = name.last() == Some(&b' ') || name.iter().all(u8::is_ascii_alphabetic);
    (length >= 2 && assigns && apart).then(|| spaces(bytes, from + length + 1))
}

/// True for names of constants and environment variables.
pub(super) fn is_constant(name: &str) -> bool {
    !name.bytes().any(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// True if only editor, diff or list prefixes precede the name on its line.
fn starts_line(bytes: &[u8], from: usize) -> bool {
    let before = bytes.get(from.saturating_sub(MAX_GAP_BYTES)..from).unwrap_or_default();
    for byte in before.iter().rev() {
        match byte {
            b'\n' | b'\r' => return true,
            b' ' | b'\t' | b'-' | b'+' | b'"' | b'\'' | b'|' | b'>' | b'*' => {}
            b'0'..=b'9' | b':' => {}
            // `→` after a line number.
            0xE2 | 0x86 | 0x92 => {}
            b'n' | b'\\' => return true,
            _ => return false,
        }
    }
    from <= MAX_GAP_BYTES
}

fn ends_line(bytes: &[u8], end: usize) -> bool {
    let rest = bytes.get(spaces(bytes, end)..).unwrap_or_default();
    match rest.first() {
        None | Some(b'\n' | b'\r' | b'#' | b'"') => true,
        Some(b',') => matches!(rest.get(1), None | Some(b'\n' | b'\r')),
        Some(b'\\') => matches!(rest.get(1), Some(b'n' | b'r')),
        Some(_) => false,
    }
}
