//! Pretty-prints JSON at the text level: no number is rounded, no key is reordered and no nesting
//! depth is refused. Embedded binary data is replaced by its size.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use unspool_model::json::{Json, Lexer};

use super::format;
use crate::block::{Block, Code, Field, Span};

/// Base64 strings of at least this length are replaced by their size.
const MIN_BINARY_CHARS: usize = 256;
/// Maximum indentation level: otherwise the output would grow with the square of the depth.
const MAX_INDENT: usize = 32;
/// After this much output no more lines are broken: a list of a million numbers would grow
/// by its indentation to many times its size.
const MAX_INDENTED_BYTES: usize = 256 * 1024;
/// Longer values get a block of their own.
const MAX_FIELD_CHARS: usize = 160;

/// Indents JSON text.
pub fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len().min(MAX_INDENTED_BYTES));
    let mut depth = 0usize;
    let mut rest = text.trim();
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let end = Lexer::new(rest).next().map_or(rest.len(), |literal| literal.range.end);
            let (literal, after) = rest.split_at(end);
            out.push_str(&literal_text(literal));
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '{' | '[' => {
                out.push(c);
                let after = rest.trim_start();
                if let Some(close) = after.strip_prefix(['}', ']']) {
                    out.push(if c == '{' { '}' } else { ']' });
                    rest = close;
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            ' ' | '\n' | '\r' | '\t' => {}
            other => out.push(other),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    if out.len() > MAX_INDENTED_BYTES {
        return;
    }
    out.push('\n');
    (0..depth.min(MAX_INDENT)).for_each(|_| out.push_str("  "));
}

fn literal_text(literal: &str) -> std::borrow::Cow<'_, str> {
    let inner = literal.trim_matches('"');
    match binary_size(inner) {
        Some(bytes) => format!("\"‹{} of binary data›\"", format::size(bytes)).into(),
        None => literal.into(),
    }
}

/// The decoded size of a string if it is long base64 or a base64 data URL.
pub fn binary_size(text: &str) -> Option<u64> {
    let body = match text.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,")?.1,
        None => text,
    };
    let body = body.trim_end_matches('=');
    let coded =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    // Require mixed characters: neither a repeated letter nor hexadecimal counts as base64.
    let varied = body.bytes().any(|b| b.is_ascii_uppercase())
        && body.bytes().any(|b| b.is_ascii_lowercase())
        && body.bytes().any(|b| b.is_ascii_digit());
    (body.len() >= MIN_BINARY_CHARS && varied && body.bytes().all(coded))
        .then(|| body.len() as u64 * 3 / 4)
}

/// A block of indented JSON.
pub fn block(text: &str) -> Block {
    Block::Code(Code { language: Some("json".into()), text: pretty(text), first_line: None })
}

/// The entries of an object in source order.
pub struct Entries(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        struct Ordered;
        impl<'de> Visitor<'de> for Ordered {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Ordered)
    }
}

/// An object as fields. Long or nested values follow in blocks of their own, under their names.
pub fn fields(json: &Json) -> Vec<Block> {
    let Some(Entries(entries)) = json.read::<Entries>() else {
        return match json.read::<String>() {
            Some(text) => vec![text_block(&text)],
            None => vec![block(json.text())],
        };
    };
    let mut fields = Vec::new();
    let mut blocks = Vec::new();
    for (name, value) in entries {
        let raw = value.get();
        let text: Option<String> = serde_json::from_str(raw).ok();
        let shown = text.clone().unwrap_or_else(|| raw.to_owned());
        if let Some(bytes) = binary_size(&shown) {
            let value = Span::plain(format!("{} of binary data", format::size(bytes))).dim();
            fields.push(Field::new(name, vec![value]));
        } else if shown.chars().nth(MAX_FIELD_CHARS).is_none() && !shown.contains('\n') {
            fields.push(Field::new(name, vec![Span::plain(shown)]));
        } else {
            blocks.push(Block::Paragraph { spans: vec![Span::plain(name).dim()] });
            blocks.push(match text {
                Some(text) => text_block(&text),
                None => block(raw),
            });
        }
    }
    if !fields.is_empty() {
        blocks.insert(0, Block::Fields { fields });
    }
    blocks
}

fn text_block(text: &str) -> Block {
    Block::Code(Code { language: None, text: text.to_owned(), first_line: None })
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
