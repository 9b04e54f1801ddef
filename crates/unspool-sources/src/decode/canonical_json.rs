//! The canonical text of a value: sorted names, no spaces, one way to write each string. It equals
//! the text that `Json::canonical_digest` hashes, but is written straight from the record. Nearly
//! all of it is copied; building a tree of each call's input cost as much as decoding the call.

use unspool_model::id::digest;
use unspool_model::json::Json;

use super::fields::Fields;
use super::json_outline::NodeKind;

/// Deeper values are left to the parser, which has its own limit.
const MAX_DEPTH: usize = 64;

impl Fields<'_> {
    /// A digest of a field's value that is independent of spaces and of the order of names.
    pub fn canonical_digest(&self, name: &str) -> Option<u64> {
        let at = self.find(name)?;
        let mut text = String::new();
        match self.write(at, MAX_DEPTH, &mut text) {
            Some(()) => Some(digest(text.as_bytes())),
            None => Json::parse(self.raw(name)?).map(|json| json.canonical_digest()),
        }
    }

    /// The canonical text of the value itself, also of one that is no object.
    pub fn canonical_text(&self) -> Option<String> {
        let mut text = String::new();
        self.write(self.at, MAX_DEPTH, &mut text).map(|()| text).or_else(|| {
            Some(Json::parse(self.source(self.nodes.get(self.at)?))?.value().to_string())
        })
    }

    /// The same hash as `assemble::content_hash` of a tool and the input in a field.
    pub fn content_hash(&self, tool: &str, input: &str) -> u64 {
        let input = self.canonical_digest(input).unwrap_or(0);
        digest(format!("{tool}\n{input}").as_bytes())
    }

    /// Writes a value. `None` if it needs the parser.
    fn write(&self, at: usize, depth: usize, out: &mut String) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let node = self.nodes.get(at)?;
        let source = self.source(node);
        match node.kind {
            NodeKind::Plain => out.push_str(source),
            NodeKind::Escaped if is_canonical(source) => out.push_str(source),
            NodeKind::Escaped => out.push_str(Json::string(&self.text_of(node)?).text()),
            NodeKind::Scalar if is_simple(source) => out.push_str(source),
            NodeKind::Scalar => return None,
            NodeKind::Array => {
                let mut next = at + 1;
                out.push('[');
                while next < node.after as usize {
                    if next > at + 1 {
                        out.push(',');
                    }
                    self.write(next, depth, out)?;
                    next = self.nodes.get(next)?.after as usize;
                }
                out.push(']');
            }
            NodeKind::Object => {
                let object = Fields { at, ..*self };
                let plain = |(name, value)| Some((self.plain(name)?, value));
                let mut fields: Vec<_> = object.entries().map(plain).collect::<Option<_>>()?;
                fields.sort_unstable_by_key(|(name, _)| *name);
                if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return None;
                }
                out.push('{');
                for (nth, (name, value)) in fields.into_iter().enumerate() {
                    if nth > 0 {
                        out.push(',');
                    }
                    out.push('"');
                    out.push_str(name);
                    out.push_str("\":");
                    self.write(value, depth, out)?;
                }
                out.push('}');
            }
        }
        Some(())
    }
}

/// True if a string is already escaped canonically: only where required, in the short form.
fn is_canonical(source: &str) -> bool {
    let bytes = source.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        if !matches!(
            bytes.get(at + found + 1),
            Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't')
        ) {
            return false;
        }
        at += found + 2;
    }
    true
}

/// True if a scalar can be copied: literals, and integers that surely fit 64 bits.
fn is_simple(source: &str) -> bool {
    match source.as_bytes() {
        b"true" | b"false" | b"null" | b"0" => true,
        [b'-', digits @ ..] | digits => {
            digits.len() <= 18 && !digits.starts_with(b"0") && digits.iter().all(u8::is_ascii_digit)
        }
    }
}

#[cfg(test)]
#[path = "canonical_json_tests.rs"]
mod tests;
