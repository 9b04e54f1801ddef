//! Fields of a document that our parts cannot hold: other tools' fields, ids and dependencies that
//! cannot be derived from the parts, previews. Those of a conversation are stored in one data part
//! after it, those of the session in one before the first prompt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspool_model::id::Id;
use unspool_model::json::Json;
use unspool_model::part::Data;

use super::super::Fields;

/// Fields by their names.
pub(super) type FieldMap = BTreeMap<String, Json>;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnmappedFields {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: FieldMap,
    /// Fields of its steps, by index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<usize, FieldMap>,
    /// The digest of the conversation as another program wrote it: exports give it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl UnmappedFields {
    pub fn keep(&mut self, step: usize, name: &str, value: Json) {
        self.steps.entry(step).or_default().insert(name.to_owned(), value);
    }

    /// Keeps a field of a step if it is present.
    pub fn keep_present(&mut self, step: usize, fields: &Fields<'_>, name: &str) {
        if let Some(value) = fields.raw_or_null(name) {
            self.keep(step, name, Json::checked(value));
        }
    }

    /// Keeps the fields of a payload except the listed ones.
    pub fn keep_except(&mut self, step: usize, of: &str, payload: &Fields<'_>, listed: &[&str]) {
        let Some(left) = fields_except(payload, listed) else { return };
        self.keep(step, of, left);
    }

    pub fn data(&self, kind: &str) -> Option<Data> {
        if self.fields.is_empty() && self.steps.is_empty() && self.source.is_none() {
            return None;
        }
        data(kind, self)
    }
}

pub(super) fn data(kind: &str, what: &impl Serialize) -> Option<Data> {
    Some(Data { kind: kind.to_owned(), payload: json(what)? })
}

pub(super) fn json(what: &impl Serialize) -> Option<Json> {
    Json::parse(&serde_json::to_string(what).ok()?)
}

/// The fields of an object except the listed ones; `None` if there are none.
pub(super) fn fields_except(fields: &Fields<'_>, listed: &[&str]) -> Option<Json> {
    let left: FieldMap = fields
        .each()
        .filter(|(name, _)| !listed.contains(&&**name))
        .map(|(name, value)| (name.into_owned(), Json::checked(value)))
        .collect();
    if left.is_empty() { None } else { json(&left) }
}

/// True if an id has the form of our own exports. Dependencies between such steps follow from the
/// parts and need not be kept.
pub(super) fn is_own(id: &str) -> bool {
    let (head, tail) = id.split_once('-').map_or((id, ""), |(head, tail)| (head, tail));
    let listed = |tail: &str| {
        matches!(tail, "" | "output" | "error" | "trigger") || tail.starts_with("user-")
    };
    id.starts_with("snp_") || head.parse::<Id>().is_ok() && listed(tail)
}
