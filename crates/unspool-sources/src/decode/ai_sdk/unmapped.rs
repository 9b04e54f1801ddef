//! Fields of a message that our parts cannot hold: metadata, provider metadata, source ids, fields
//! of future versions. They are stored unchanged in one data part after the message, so that an
//! export can restore the message.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspool_model::json::Json;
use unspool_model::part::Data;

use super::super::Fields;

/// The kind of that data part.
const DATA_KIND: &str = "ai-sdk-message";

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnmappedFields {
    /// Fields of the message.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Json>,
    /// Fields of its parts, by their index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<u32, BTreeMap<String, Json>>,
}

impl UnmappedFields {
    pub fn keep_field(&mut self, name: &str, value: Json) {
        self.fields.insert(name.to_owned(), value);
    }

    pub fn keep(&mut self, part: u32, name: &str, value: Json) {
        self.parts.entry(part).or_default().insert(name.to_owned(), value);
    }

    pub fn drop_field(&mut self, part: u32, name: &str) {
        if let Some(held) = self.parts.get_mut(&part) {
            held.remove(name);
            if held.is_empty() {
                self.parts.remove(&part);
            }
        }
    }

    /// Drops the fields of this part and all later ones.
    pub fn truncate(&mut self, part: u32) {
        self.parts.split_off(&part);
    }

    /// Keeps the fields of a message except the mapped ones.
    pub fn keep_fields_except(&mut self, fields: &Fields<'_>, mapped_fields: &[&str]) {
        for (name, value) in fields.each().filter(|(name, _)| !mapped_fields.contains(&&**name)) {
            self.keep_field(&name, Json::checked(value));
        }
    }

    /// Keeps the fields of a part except the mapped ones.
    pub fn keep_except(&mut self, part: u32, fields: &Fields<'_>, mapped_fields: &[&str]) {
        for (name, value) in fields.each().filter(|(name, _)| !mapped_fields.contains(&&**name)) {
            self.keep(part, &name, Json::checked(value));
        }
    }

    /// Keeps a field of a part if it is present.
    pub fn keep_present(&mut self, part: u32, fields: &Fields<'_>, name: &str) {
        if let Some(value) = fields.raw_or_null(name) {
            self.keep(part, name, Json::checked(value));
        }
    }

    /// Keeps the fields of a part that should be strings and are not.
    pub fn keep_non_texts(&mut self, part: u32, fields: &Fields<'_>, names: &[&str]) {
        for name in names.iter().filter(|name| fields.has(name) && !fields.is_text(name)) {
            self.keep_present(part, fields, name);
        }
    }

    /// The data part, or `None` if nothing was kept.
    pub fn data(&self) -> Option<Data> {
        if self.fields.is_empty() && self.parts.is_empty() {
            return None;
        }
        let text = serde_json::to_string(self).ok()?;
        Some(Data { kind: DATA_KIND.to_owned(), payload: Json::parse(&text)? })
    }
}
