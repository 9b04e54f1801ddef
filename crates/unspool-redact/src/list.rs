//! The values of a list or an object that has a secret name: `"passwords": ["…"]`, a list of YAML,
//! `"secrets": {"db": "…"}`.

use super::line::spaces;
use super::secret_name::classify;
use super::structure::{FieldValue, StructureField, object_fields};

/// Longest list.
const MAX_LIST_BYTES: usize = 4096;

/// Keys of an object that describe it.
#[rustfmt::skip]
const DESCRIPTIONS: &[&str] = &[
    "account", "algorithm", "arn", "created", "date", "description", "digest", "email", "endpoint",
    "format", "hash", "host", "id", "key_id", "keyid", "kind", "label", "name", "namespace", "path",
    "project", "provider", "ref", "region", "revision", "role", "scope", "sha", "tag", "title",
    "type", "updated", "url", "user", "username", "uuid", "version",
];

/// True if the value of a key says what an object is, and is not secret.
pub(super) fn is_description(key: &str) -> bool {
    let last = key.rsplit(['_', '-', '.', ' ']).next().unwrap_or(key);
    let names = |name: &str| DESCRIPTIONS.iter().any(|other| other.eq_ignore_ascii_case(name));
    names(key) || names(last) || key.ends_with("Id") || key.ends_with("At")
}

/// True if a list, an object or lines may follow the name that ends at `to`. Most names are followed by
/// something else, which a few bytes tell.
pub(super) fn opens_list(bytes: &[u8], to: usize) -> bool {
    let after = bytes.get(to..).unwrap_or_default().iter().take(16);
    let mut after = after.skip_while(|byte| matches!(byte, b'\\' | b'"' | b'\'' | b' '));
    let assigned = matches!(after.next(), Some(b':' | b'='));
    let value = after.find(|byte| **byte != b' ');
    // `[-old-]` is a difference of words.
    let differs = value == Some(&b'[') && after.next() == Some(&b'-');
    assigned && matches!(value, Some(b'[' | b'{' | b'\n' | b'\r')) && !differs
}

/// The values below the name that ends at `to`, and where they end.
pub(super) fn listed_values(text: &str, to: usize) -> Option<(Vec<(usize, usize)>, usize)> {
    let bytes = text.as_bytes();
    let depth = bytes.get(to..)?.iter().take(8).take_while(|byte| **byte == b'\\').count();
    let quoted = matches!(bytes.get(to + depth), Some(b'"' | b'\''));
    let name_end = if quoted { to + depth + 1 } else { to };
    let operator = spaces(bytes, name_end);
    if !matches!(bytes.get(operator), Some(b':' | b'=')) {
        return None;
    }
    let open = spaces(bytes, operator + 1);
    match bytes.get(open)? {
        b'[' => Some(list(bytes, open)),
        b'{' if quoted => {
            let end = text.floor_char_boundary(open + MAX_LIST_BYTES);
            let (fields, end) = object_fields(text.get(..end)?, open, depth);
            Some((secrets_of(text, &fields), end))
        }
        b'\n' | b'\r' if bytes.get(operator) == Some(&b':') => Some(items(bytes, open)),
        _ => None,
    }
}

fn secrets_of(text: &str, fields: &[StructureField]) -> Vec<(usize, usize)> {
    let mut values = Vec::new();
    for StructureField { key, value } in fields {
        if let FieldValue::Text(from, to) = value
            && let Some(key) = text.get(key.0..key.1)
            && !is_description(key)
            // Such a key speaks for itself.
            && classify(key).is_none()
        {
            values.push((*from, *to));
        }
    }
    values
}

/// The elements of `["a", b]`. Something nested ends the list.
fn list(bytes: &[u8], open: usize) -> (Vec<(usize, usize)>, usize) {
    let most = bytes.len().min(open + MAX_LIST_BYTES);
    let mut values = Vec::new();
    let mut start = None;
    let mut at = open + 1;
    while at < most {
        let byte = bytes[at];
        let outside = matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b'"' | b'\'' | b'`' | b'\\');
        let ends = matches!(byte, b',' | b']' | b'[' | b'{' | b'(');
        if outside || ends {
            values.extend(start.take().map(|start| (start, at)));
        } else if start.is_none() {
            start = Some(at);
        }
        if ends && byte != b',' {
            break;
        }
        at += 1;
    }
    (values, at)
}

/// The items of a list of YAML, of which each is alone on its line.
fn items(bytes: &[u8], from: usize) -> (Vec<(usize, usize)>, usize) {
    let most = bytes.len().min(from + MAX_LIST_BYTES);
    let mut values = Vec::new();
    let mut at = from;
    for line in bytes[from..most].split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii();
        let Some(item) = text.strip_prefix(b"- ") else {
            if text.is_empty() {
                at += line.len();
                continue;
            }
            break;
        };
        let outside = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'');
        let before = item.iter().take_while(|byte| outside(byte)).count();
        let after = item[before..].iter().rev().take_while(|byte| outside(byte)).count();
        let indent = line.len() - line.trim_ascii_start().len();
        let start = at + indent + 2 + before;
        values.push((start, start + item.len() - before - after));
        at += line.len();
    }
    (values, at)
}
