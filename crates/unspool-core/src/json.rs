//! JSON as its source wrote it: kept as text, so that nothing is rounded, reordered or rejected
//! for its depth, and parsed only by whoever needs to look inside.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::id::digest;

/// A piece of JSON, byte for byte. Cloning is cheap.
#[derive(Clone)]
pub struct Json(Arc<str>);

impl Json {
    /// Keeps a piece of JSON that a parser has already checked.
    pub fn raw(value: &RawValue) -> Json {
        Json(value.get().into())
    }

    /// A JSON string.
    pub fn string(text: &str) -> Json {
        Json(Value::from(text).to_string().into())
    }

    /// Text that should be JSON. `None` when it is not.
    pub fn parse(text: &str) -> Option<Json> {
        serde_json::from_str::<&RawValue>(text).ok().map(Json::raw)
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// The parsed value; `Null` where the nesting is deeper than the parser allows.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Parses into a type of the caller's.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(&self.0).ok()
    }

    /// A digest that does not depend on spaces or on the order of keys.
    pub fn canonical_digest(&self) -> u64 {
        // `Value` sorts its keys, because the `preserve_order` feature is off.
        digest(self.value().to_string().as_bytes())
    }
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
