//! JSON as its source wrote it. Kept as text, so that nothing is rounded, reordered or rejected for
//! its depth, and parsed only on demand.

mod lexer;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::id::digest;

pub use lexer::{Lexer, StringState, Token, TokenKind};

/// A piece of JSON, byte for byte. Cloning is cheap.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// Wraps JSON that a parser has already validated.
    pub fn raw(value: &RawValue) -> Json {
        Json(value.get().into())
    }

    /// Wraps a slice of a record that was validated as a whole.
    pub fn checked(text: &str) -> Json {
        Json(text.into())
    }

    /// A JSON string.
    pub fn string(text: &str) -> Json {
        Json(Value::from(text).to_string().into())
    }

    /// Validates `text`. `None` if it is not JSON.
    pub fn parse(text: &str) -> Option<Json> {
        serde_json::from_str::<&RawValue>(text).ok().map(Json::raw)
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// The parsed value; `Null` where the nesting is deeper than the parser allows.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0)
            .or_else(|_| serde_json::from_str(&replace_lone_surrogates(&self.0)))
            .unwrap_or_default()
    }

    /// Deserialises into the caller's type.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(&self.0).ok()
    }

    /// A digest that is independent of whitespace and key order.
    pub fn canonical_digest(&self) -> u64 {
        // `Value` sorts its keys, because the `preserve_order` feature is off.
        digest(self.value().to_string().as_bytes())
    }
}

/// Replaces escapes of lone surrogates, which no Rust string can hold, by U+FFFD. Programs that cut
/// strings by UTF-16 units write them.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match unit(at) {
            None => at += 2,
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
        }
        // A backslash before a multi-byte character is not valid JSON; skip it anyway.
        while at < text.len() && !text.is_char_boundary(at) {
            at += 1;
        }
        at = at.min(text.len());
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Deserialises a field for which `null` is a value: only a missing field is `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

impl From<Value> for Json {
    fn from(value: Value) -> Json {
        Json(value.to_string().into())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.0 == other.0
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        Ok(Json::raw(&Box::<RawValue>::deserialize(deserializer)?))
    }
}
