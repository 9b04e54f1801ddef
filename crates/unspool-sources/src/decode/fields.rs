//! The fields of a JSON object, read one at a time. Vendors change a field's type from release to
//! release; a field that is not what we expect reads as absent, and never fails its record.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use unspool_core::json::{Json, mended};

/// The fields of one object, in their order, borrowed from the record.
#[derive(Debug, Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A string that borrows where it can.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Fields<'a> {
    pub fn parse(text: &'a str) -> Result<Fields<'a>, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(held, _)| held == name)?;
        (found.1.get() != "null").then_some(found.1)
    }

    pub fn read<T: Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let raw = self.raw(name)?.get();
        if let Ok(Borrowed(text)) = serde_json::from_str(raw) {
            return Some(text);
        }
        // Half a surrogate pair must not cost the whole text.
        let text: String = serde_json::from_str(&mended(raw)).ok()?;
        Some(Cow::Owned(text))
    }

    pub fn string(&self, name: &str) -> Option<String> {
        self.text(name).map(Cow::into_owned)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.read(name).unwrap_or(false)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.read(name)
    }

    pub fn fields(&self, name: &str) -> Fields<'a> {
        self.read(name).unwrap_or_default()
    }

    /// The objects of an array.
    pub fn list(&self, name: &str) -> Vec<Fields<'a>> {
        let raw: Vec<&'a RawValue> = self.read(name).unwrap_or_default();
        raw.into_iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect()
    }

    pub fn json(&self, name: &str) -> Option<Json> {
        self.raw(name).map(Json::raw)
    }

    /// Whether the field is a string.
    pub fn is_text(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw.get().starts_with('"'))
    }

    /// Fields whose values are strings, in their order.
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0
            .iter()
            .filter_map(|(name, raw)| {
                Some((name.to_string(), serde_json::from_str::<String>(&mended(raw.get())).ok()?))
            })
            .collect()
    }

    /// The whole object again, for what we do not know.
    pub fn whole(&self) -> Json {
        let fields: std::collections::BTreeMap<&str, &RawValue> =
            self.0.iter().map(|(name, raw)| (&**name, *raw)).collect();
        let text = serde_json::to_string(&fields).unwrap_or_default();
        Json::parse(&text).unwrap_or_else(|| Json::string(&text))
    }

    pub fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'a>, D::Error> {
        struct Object<'a>(std::marker::PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Object<'a> {
            type Value = Fields<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'a>, A::Error> {
                let mut fields = Vec::with_capacity(24);
                while let Some((Borrowed(name), value)) =
                    map.next_entry::<Borrowed<'de>, &'de RawValue>()?
                {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object(std::marker::PhantomData))
    }
}
