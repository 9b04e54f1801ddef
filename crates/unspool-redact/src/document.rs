//! Secrets that the structure of a document reveals: the values of a Kubernetes Secret, the value
//! beside a secret name, the sensitive attributes of a Terraform state.

use super::assignment::is_constant;
use super::secret_name::classify;
use super::structure::{
    FieldValue, StructureField, mapping_fields, nested_fields, object_fields, object_start,
    quote_depth,
};
use super::value_shape::is_placeholder;
use super::verdict::{AssignmentKind, is_secret};

/// What a keyword announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DocumentKind {
    /// `kind: Secret`.
    KubernetesSecret,
    /// The `value` of a pair of fields.
    PairValue,
    /// `random_password` of Terraform.
    RandomPassword,
    /// `sensitive_attributes` of Terraform.
    SensitiveAttributes,
}

pub(super) const DOCUMENT_KEYWORDS: &[(&str, DocumentKind)] = &[
    ("kind: secret", DocumentKind::KubernetesSecret),
    ("kind: \"secret\"", DocumentKind::KubernetesSecret),
    ("kind\": \"secret\"", DocumentKind::KubernetesSecret),
    ("kind\":\"secret\"", DocumentKind::KubernetesSecret),
    ("kind\\\": \\\"secret\\\"", DocumentKind::KubernetesSecret),
    ("kind\\\":\\\"secret\\\"", DocumentKind::KubernetesSecret),
    ("value\":", DocumentKind::PairValue),
    ("value\\\":", DocumentKind::PairValue),
    ("value: ", DocumentKind::PairValue),
    ("\"random_password\"", DocumentKind::RandomPassword),
    ("\\\"random_password\\\"", DocumentKind::RandomPassword),
    ("sensitive_attributes", DocumentKind::SensitiveAttributes),
];

/// A secret of a document and its kind.
pub(super) type Found = (usize, usize, &'static str);

/// How far documents have been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Progress {
    /// End of the last document that was read as a whole. What is before it is not read again,
    /// which keeps the search linear.
    read_to: usize,
}

/// Longest text around the value of a pair.
const MAX_PAIR_BYTES: usize = 512;
const MAX_MAPPING_BYTES: usize = 256;
const MAX_PAIR_LINES: usize = 6;
/// Longest resource of a Terraform state.
const MAX_RESOURCE_BYTES: usize = 16 << 10;

impl Progress {
    /// The secrets of the document around a keyword.
    pub(super) fn secrets(
        &mut self,
        text: &str,
        kind: DocumentKind,
        start: usize,
        end: usize,
    ) -> Vec<Found> {
        match kind {
            DocumentKind::PairValue => pair_value(text, start).into_iter().collect(),
            DocumentKind::KubernetesSecret if start >= self.read_to => {
                self.kubernetes_secret(text, start, end)
            }
            DocumentKind::RandomPassword if start >= self.read_to => {
                self.random_password(text, end)
            }
            DocumentKind::SensitiveAttributes if start >= self.read_to => {
                self.sensitive_attributes(text, start, end)
            }
            DocumentKind::KubernetesSecret
            | DocumentKind::RandomPassword
            | DocumentKind::SensitiveAttributes => Vec::new(),
        }
    }

    fn kubernetes_secret(&mut self, text: &str, start: usize, end: usize) -> Vec<Found> {
        let bytes = text.as_bytes();
        let longer = bytes.get(end).is_some_and(u8::is_ascii_alphanumeric);
        if longer {
            return Vec::new();
        }
        let (fields, read_to) = match json_depth(bytes, start, "kind") {
            Some(depth) => match object_start(bytes, start, self.read_to) {
                Some(open) => object_fields(text, open, depth),
                None => (Vec::new(), end),
            },
            None => mapping_fields(text, start, self.read_to, usize::MAX),
        };
        self.read_to = read_to.max(self.read_to);
        let mut found = Vec::new();
        for StructureField { key, value } in fields {
            let FieldValue::Nested(from, to) = value else { continue };
            if !matches!(text.get(key.0..key.1), Some("data" | "stringData")) {
                continue;
            }
            for StructureField { value, key: _ } in
                children(text, from, to, json_depth(bytes, start, "kind"))
            {
                if let FieldValue::Text(from, to) = value
                    && text.get(from..to).is_some_and(is_stored)
                {
                    found.push((from, to, "secret"));
                }
            }
        }
        found
    }

    /// The results of a resource, up to the next one.
    fn random_password(&mut self, text: &str, end: usize) -> Vec<Found> {
        let bytes = text.as_bytes();
        let most = text.floor_char_boundary(end + MAX_RESOURCE_BYTES);
        let resource = text.get(end..most).unwrap_or_default();
        let most = end + resource.find("\"mode\"").unwrap_or(resource.len());
        self.read_to = most;
        let mut found = Vec::new();
        let mut at = end;
        while let Some(next) = text.get(at..most).and_then(|rest| rest.find("result")) {
            let word = at + next;
            at = word + "result".len();
            let Some(depth) = quote_depth(bytes, word) else { continue };
            let Some(open) = object_start(bytes, word, end) else { continue };
            let (fields, read_to) = object_fields(text, open, depth);
            found.extend(values_of(text, &fields, &["result"], "password"));
            at = text.ceil_char_boundary(read_to.max(at));
        }
        found
    }

    /// The attributes that a list names, which stand before the list.
    fn sensitive_attributes(&mut self, text: &str, start: usize, end: usize) -> Vec<Found> {
        let bytes = text.as_bytes();
        let Some(depth) = quote_depth(bytes, start) else { return Vec::new() };
        let list = text.get(end..text.floor_char_boundary(end + MAX_PAIR_BYTES));
        // The field after the list is `private`, or the resource ends.
        let list = list.unwrap_or_default().split("\"private").next().unwrap_or_default();
        let names: Vec<&str> = list
            .match_indices("value")
            .filter_map(|(at, word)| list.get(at + word.len()..)?.split('"').nth(2))
            .map(|name| name.trim_end_matches('\\'))
            .collect();
        let open = object_start(bytes, start, self.read_to);
        self.read_to = end;
        let Some(open) = open else { return Vec::new() };
        for StructureField { key, value } in object_fields(text, open, depth).0 {
            if let FieldValue::Nested(at, _) = value
                && text.get(key.0..key.1) == Some("attributes")
            {
                return values_of(text, &object_fields(text, at, depth).0, &names, "secret");
            }
        }
        Vec::new()
    }
}

/// The stored texts of fields with these names.
fn values_of(
    text: &str,
    fields: &[StructureField],
    names: &[&str],
    kind: &'static str,
) -> Vec<Found> {
    let named =
        |key: (usize, usize)| text.get(key.0..key.1).is_some_and(|key| names.contains(&key));
    let mut found = Vec::new();
    for StructureField { key, value } in fields {
        if let FieldValue::Text(from, to) = value
            && named(*key)
            && text.get(*from..*to).is_some_and(is_stored)
        {
            found.push((*from, *to, kind));
        }
    }
    found
}

/// The number of backslashes before the quotes of a key of JSON; `None` for a key of YAML.
fn json_depth(bytes: &[u8], start: usize, key: &str) -> Option<usize> {
    let yaml = bytes.get(start + key.len()) == Some(&b':');
    quote_depth(bytes, start).filter(|_| !yaml)
}

/// The fields of what is below a key: an object, lines, or `{a: b}` of YAML.
fn children(text: &str, from: usize, to: usize, depth: Option<usize>) -> Vec<StructureField> {
    let bytes = text.as_bytes();
    if bytes.get(from) != Some(&b'{') {
        return nested_fields(text, from, to);
    }
    if let Some(depth) = depth {
        return object_fields(text, from, depth).0;
    }
    let rest = text.get(from + 1..).unwrap_or_default();
    let line = &rest[..rest.find(['}', '\n']).unwrap_or(rest.len())];
    let mut fields = Vec::new();
    let mut at = from + 1;
    for piece in line.split(',') {
        if let Some((name, value)) = piece.split_once(':') {
            let trimmed = value.trim_matches([' ', '"', '\'']);
            let start = at + name.len() + 1 + value.find(trimmed).unwrap_or(0);
            let value = FieldValue::Text(start, start + trimmed.len());
            fields.push(StructureField { key: (at, at + name.len()), value });
        }
        at += piece.len() + 1;
    }
    fields
}

/// The value beside a secret name or a type that says that it is one.
fn pair_value(text: &str, start: usize) -> Option<Found> {
    let bytes = text.as_bytes();
    let word = text.get(..start)?;
    // `ParameterKey` and `ParameterValue` of CloudFormation.
    let longer = if word.ends_with("\"Parameter") { "Parameter".len() } else { 0 };
    let depth = json_depth(bytes, start - longer, &"ParameterValue"[9 - longer..]);
    let start = start - longer;
    let fields = match depth {
        Some(depth) => {
            let open = object_start(bytes, start, start.saturating_sub(MAX_PAIR_BYTES))?;
            let end = text.floor_char_boundary(start + MAX_PAIR_BYTES);
            object_fields(text.get(..end)?, open, depth).0
        }
        None => {
            let end = text.floor_char_boundary(start + MAX_MAPPING_BYTES);
            mapping_fields(
                text.get(..end)?,
                start,
                start.saturating_sub(MAX_MAPPING_BYTES),
                MAX_PAIR_LINES,
            )
            .0
        }
    };
    let word = |(from, to): (usize, usize)| text.get(from..to).unwrap_or_default();
    let (from, to) = fields.iter().find_map(|field| match field.value {
        FieldValue::Text(from, to) if field.key.0 == start => Some((from, to)),
        FieldValue::Text(..) | FieldValue::Literal(..) | FieldValue::Nested(..) => None,
    })?;
    let value = text.get(from..to)?;
    for StructureField { key, value: beside } in &fields {
        let (first, last) = match beside {
            FieldValue::Text(first, last) | FieldValue::Literal(first, last) => (*first, *last),
            FieldValue::Nested(..) => continue,
        };
        let beside = word((first, last));
        let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(word(*key)));
        let marked = is(&["type"]) && beside.eq_ignore_ascii_case("securestring")
            || is(&["sensitive", "secret", "isSecret", "is_secret", "secured"]) && beside == "true";
        if marked && is_stored(value) {
            return Some((from, to, "secret"));
        }
        if is(&["name", "key", "header", "variable", "field", "param", "parameter", "ParameterKey"])
            && let Some(name) = beside.rsplit(['/', ':']).next()
            && name.len() <= 64
            && let Some(class) = classify(name)
        {
            let assignment = match is_constant(name) {
                true => AssignmentKind::Environment,
                false => AssignmentKind::Field,
            };
            return is_secret(class, assignment, value).then_some((from, to, class.kind()));
        }
    }
    None
}

/// True for a value that is stored here, not a template or an encrypted one.
fn is_stored(value: &str) -> bool {
    value.len() >= 2 && !is_placeholder(value) && !value.starts_with("ENC[") && value != "null"
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
