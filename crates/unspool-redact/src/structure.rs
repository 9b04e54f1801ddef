//! Reads objects of JSON and mappings of YAML that stand somewhere in a text: printed by a command,
//! escaped in other JSON, in a diff or after line numbers.

/// Longest object or mapping, in each direction from where it was noticed.
const MAX_STRUCTURE_BYTES: usize = 32 << 10;

/// A field of an object or mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StructureField {
    pub(super) key: (usize, usize),
    pub(super) value: FieldValue,
}

/// The byte ranges of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FieldValue {
    /// The content of a string or of a block of lines.
    Text(usize, usize),
    /// A number, `true`, `null`.
    Literal(usize, usize),
    /// An object or a list: where it opens, or the lines below its key.
    Nested(usize, usize),
}

/// The number of backslashes before a quote at most 8 bytes before `at`, which is inside the quotes.
pub(super) fn quote_depth(bytes: &[u8], at: usize) -> Option<usize> {
    let before = bytes.get(..at)?;
    let quote = before.len().checked_sub(1).filter(|quote| before[*quote] == b'"')?;
    Some(before[..quote].iter().rev().take(8).take_while(|byte| **byte == b'\\').count())
}

/// The bracket that opens the object around `at`. Strings are not recognised backwards, but the
/// brackets inside them are nearly always balanced.
pub(super) fn object_start(bytes: &[u8], at: usize, least: usize) -> Option<usize> {
    let least = least.max(at.saturating_sub(MAX_STRUCTURE_BYTES));
    let mut level = 0usize;
    for (back, byte) in bytes.get(least..at)?.iter().enumerate().rev() {
        match byte {
            b'}' | b']' => level += 1,
            b'{' if level == 0 => return Some(least + back),
            b'[' if level == 0 => return None,
            b'{' | b'[' => level -= 1,
            _ => {}
        }
    }
    None
}

/// The fields of the object that opens at `open`, and its end. Its quotes have `depth` backslashes.
pub(super) fn object_fields(text: &str, open: usize, depth: usize) -> (Vec<StructureField>, usize) {
    let bytes = text.as_bytes();
    let most = bytes.len().min(open + 2 * MAX_STRUCTURE_BYTES);
    let mut fields = Vec::new();
    let mut key = None;
    let mut level = 1usize;
    let mut at = open + 1;
    while at < most && level > 0 {
        match bytes[at] {
            b'{' | b'[' => {
                if level == 1
                    && let Some(key) = key.take()
                {
                    fields.push(StructureField { key, value: FieldValue::Nested(at, at + 1) });
                }
                level += 1;
                at += 1;
            }
            b'}' | b']' => {
                level -= 1;
                at += 1;
            }
            b'\\' | b'"' => {
                let slashes = bytes[at..most].iter().take_while(|byte| **byte == b'\\').count();
                if slashes != depth || bytes.get(at + slashes) != Some(&b'"') {
                    at += slashes.max(1);
                    continue;
                }
                let start = at + slashes + 1;
                let end = string_end(bytes, start, depth, most);
                at = (end + depth + 1).min(most);
                if level == 1 {
                    match key.take() {
                        Some(key) => {
                            let value = FieldValue::Text(start, end);
                            fields.push(StructureField { key, value });
                        }
                        None => key = Some((start, end)).filter(|_| is_colon(bytes, at)),
                    }
                }
            }
            b'a'..=b'z' | b'0'..=b'9' | b'-' if level == 1 => {
                let word = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                let end = at + bytes[at..most].iter().take_while(word).count();
                if let Some(key) = key.take() {
                    fields.push(StructureField { key, value: FieldValue::Literal(at, end) });
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    (fields, at)
}

fn is_colon(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default().iter().take(8);
    rest.copied().find(|byte| *byte != b' ') == Some(b':')
}

fn string_end(bytes: &[u8], start: usize, depth: usize, most: usize) -> usize {
    let mut slashes = 0;
    for (at, byte) in bytes.iter().enumerate().take(most).skip(start) {
        if *byte == b'"' && slashes <= depth {
            return at - slashes;
        }
        slashes = if *byte == b'\\' { slashes + 1 } else { 0 };
    }
    most
}

/// A line without its end and without the number that a tool printed before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    /// Where its text starts, after the indentation and the dash of a list.
    start: usize,
    end: usize,
    /// The indentation. The dash of a list and the sign of a diff belong to it.
    column: usize,
    /// It starts an item of a list.
    item: bool,
}

/// The fields of the YAML mapping whose key is at `key`, and its end. Reads back to `least`, and at
/// most this many lines in each direction.
pub(super) fn mapping_fields(
    text: &str,
    key: usize,
    least: usize,
    most_lines: usize,
) -> (Vec<StructureField>, usize) {
    let bytes = text.as_bytes();
    let escaped = is_escaped(bytes, key);
    let first = least.max(key.saturating_sub(MAX_STRUCTURE_BYTES));
    let own = line_at(bytes, line_start(bytes, key, first, escaped), escaped);
    // A key in the middle of a line is one of a sentence.
    if own.start != key && bytes.get(own.start..key) != Some(b"\"") {
        return (Vec::new(), key);
    }
    let mut lines = vec![own];
    let mut at = line_start(bytes, key, first, escaped);
    let starts_item = |line: &Line| line.item && line.column == own.column;
    while !lines.last().is_some_and(starts_item) && at > first && lines.len() <= most_lines {
        let before = line_start(bytes, at - 1, first, escaped);
        let line = line_at(bytes, before, escaped);
        if is_outside(bytes, &line, own.column) {
            break;
        }
        lines.push(line);
        at = before;
    }
    lines.reverse();
    let most_lines = lines.len().saturating_add(most_lines);
    let most = bytes.len().min(key + MAX_STRUCTURE_BYTES);
    let mut at = own.end;
    while let Some(next) = line_end(bytes, at, escaped).1.filter(|next| *next < most) {
        let line = line_at(bytes, next, escaped);
        let ends = is_outside(bytes, &line, own.column) || starts_item(&line);
        if ends || lines.len() >= most_lines {
            break;
        }
        lines.push(line);
        at = line.end;
    }
    (entries(bytes, &lines, own.column), at)
}

/// The fields of the mapping in the lines of a range, whose first line tells its indentation.
pub(super) fn nested_fields(text: &str, start: usize, end: usize) -> Vec<StructureField> {
    let bytes = text.as_bytes();
    let escaped = is_escaped(bytes, start);
    let mut lines = Vec::new();
    let mut at = line_start(bytes, start, start.saturating_sub(256), escaped);
    while at < end {
        let line = line_at(bytes, at, escaped);
        lines.push(line);
        match line_end(bytes, line.end, escaped).1 {
            Some(next) => at = next,
            None => break,
        }
    }
    let column = lines.iter().find(|line| line.start < line.end).map_or(0, |line| line.column);
    entries(bytes, &lines, column)
}

/// The fields of a mapping with this indentation.
fn entries(bytes: &[u8], lines: &[Line], column: usize) -> Vec<StructureField> {
    let mut fields = Vec::new();
    let mut rest = lines;
    while let Some((line, below)) = rest.split_first() {
        rest = below;
        let content = bytes.get(line.start..line.end).unwrap_or_default();
        let Some(colon) = content.iter().position(|byte| *byte == b':') else { continue };
        if line.column != column || content.starts_with(b"#") {
            continue;
        }
        let deeper = below.iter().take_while(|line| line.column > column || line.start == line.end);
        let (deeper, after) = below.split_at(deeper.count());
        let key = unquoted(bytes, line.start, line.start + colon);
        let value = unquoted(bytes, line.start + colon + 1, line.end);
        let first = bytes.get(value.0).copied().unwrap_or_default();
        let block = matches!(first, b'|' | b'>') && value.1 - value.0 <= 3;
        let value = match (deeper.first(), deeper.iter().rev().find(|line| line.start < line.end)) {
            (Some(first), Some(last)) if block => FieldValue::Text(first.start, last.end),
            (Some(first), Some(last)) if value.0 == value.1 => {
                FieldValue::Nested(first.start, last.end)
            }
            _ if first == b'{' => FieldValue::Nested(value.0, value.0 + 1),
            _ => FieldValue::Text(value.0, value.1),
        };
        fields.push(StructureField { key, value });
        rest = after;
    }
    fields
}

/// A range without the white space, the quotes and the comment around it.
fn unquoted(bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
    let mut range = bytes.get(start..end).unwrap_or_default();
    if let Some(comment) = range.windows(2).position(|pair| pair == b" #") {
        range = &range[..comment];
    }
    let outside = |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'\\' | b'\r');
    let before = range.iter().take_while(|byte| outside(byte)).count();
    let after = range[before..].iter().rev().take_while(|byte| outside(byte)).count();
    (start + before, start + range.len() - after)
}

/// True if the lines end with a written `\n`, because the text is escaped in JSON.
fn is_escaped(bytes: &[u8], key: usize) -> bool {
    let around = bytes.get(key.saturating_sub(64)..bytes.len().min(key + 64)).unwrap_or_default();
    !around.contains(&b'\n') && around.windows(2).any(|pair| pair == b"\\n")
}

fn line_start(bytes: &[u8], at: usize, least: usize, escaped: bool) -> usize {
    let before = bytes.get(least..at).unwrap_or_default();
    let start = match escaped {
        false => before.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1),
        // The string that holds the lines starts with a quote.
        true => {
            let starts = |pair: &[u8]| pair == b"\\n" || pair[1] == b'"' && pair[0] != b'\\';
            before.windows(2).rposition(starts).map(|at| at + 2)
        }
    };
    least + start.unwrap_or(0)
}

/// The end of a line and the start of the next one.
fn line_end(bytes: &[u8], at: usize, escaped: bool) -> (usize, Option<usize>) {
    let rest = bytes.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAX_STRUCTURE_BYTES)];
    let found = match escaped {
        false => rest.iter().position(|byte| *byte == b'\n').map(|found| (found, 1)),
        true => rest.windows(2).position(|pair| pair == b"\\n").map(|found| (found, 2)),
    };
    match found {
        Some((found, length)) => {
            let slashes = rest[..found].iter().rev().take_while(|byte| **byte == b'\\').count();
            (at + found - slashes, Some(at + found + length))
        }
        None if escaped => {
            let ends = |pair: &[u8]| pair[1] == b'\n' || pair[1] == b'"' && pair[0] != b'\\';
            let quote = rest.windows(2).position(ends).map(|at| at + 1);
            (at + quote.unwrap_or(rest.len()), None)
        }
        None => (at + rest.len(), None),
    }
}

fn line_at(bytes: &[u8], at: usize, escaped: bool) -> Line {
    let (end, _) = line_end(bytes, at, escaped);
    let line = bytes.get(at..end).unwrap_or_default();
    let spaces = line.iter().take_while(|byte| **byte == b' ').count();
    let digits = line[spaces..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = match line.get(spaces + digits..) {
        Some([0xE2, 0x86, 0x92, ..]) if digits > 0 => spaces + digits + 3,
        Some([b'\t', ..]) if digits > 0 => spaces + digits + 1,
        _ => 0,
    };
    let indent = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'-' | b'+');
    let column = line[number..].iter().take_while(indent).count();
    let start = at + number + column;
    let item = line[..number + column].ends_with(b"- ");
    Line { start, end, column, item }
}

/// True for a line that is not part of a mapping with this indentation.
fn is_outside(bytes: &[u8], line: &Line, column: usize) -> bool {
    let text = bytes.get(line.start..line.end).unwrap_or_default();
    let separator = text.is_empty() && line.column >= 3;
    separator || !text.trim_ascii().is_empty() && line.column < column
}
