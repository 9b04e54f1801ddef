//! JSON settings as fields in file order, so that all but ours keep their order and their bytes.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum NotSettings {
    #[error("not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    #[error("unexpected structure of `hooks`: {0}")]
    Hooks(serde_json::Error),
    #[error("unexpected structure of `{0}`: {1}")]
    Section(&'static str, serde_json::Error),
    #[error("not TOML: {0}")]
    Toml(String),
}

/// The fields of an object in file order.
pub struct Object(pub Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Object, M::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                let mut names = HashSet::new();
                while let Some((name, value)) = map.next_entry::<String, _>()? {
                    // Programs differ in which of the two they read.
                    if !names.insert(name.clone()) {
                        return Err(M::Error::custom(format!("it has two fields `{name}`")));
                    }
                    fields.push((name, value));
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Editors on Windows begin a file with U+FEFF, which is no part of the JSON. It is kept.
pub fn split_byte_order_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

pub fn render(fields: &[(String, Box<RawValue>)]) -> String {
    if fields.is_empty() {
        return "{}\n".to_owned();
    }
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("  {}: {}", quoted(name), value.get())).collect();
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}
