//! The JSON Schema of single types, references and objects, from which the others are built.

use serde_json::{Map, Value, json};

pub fn is(kind: &str) -> Value {
    json!({ "type": kind })
}

pub fn nullable(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

pub fn text() -> Value {
    is("string")
}

pub fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub fn nullable_count() -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0 })
}

pub fn time() -> Value {
    json!({ "type": ["string", "null"], "format": "date-time" })
}

pub fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

pub fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

/// A reference to another schema.
pub fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub fn or_null(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

/// Any JSON, as the source wrote it.
pub fn anything() -> Value {
    json!({ "description": "as the source has it" })
}

pub type SchemaField = (&'static str, Value);

pub fn object(required: impl IntoIterator<Item = SchemaField>) -> Value {
    with(required, [])
}

pub fn with(
    required: impl IntoIterator<Item = SchemaField>,
    optional: impl IntoIterator<Item = SchemaField>,
) -> Value {
    let mut fields = Map::new();
    let mut names = Vec::new();
    for (name, schema) in required {
        names.push(name);
        fields.insert(name.to_owned(), schema);
    }
    fields.extend(optional.into_iter().map(|(name, schema)| (name.to_owned(), schema)));
    json!({ "type": "object", "properties": fields, "required": names })
}

pub fn described(mut schema: Value, what: &str) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("description".to_owned(), what.into());
    }
    schema
}
