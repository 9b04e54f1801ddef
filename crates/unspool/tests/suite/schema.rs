//! A validator for the subset of JSON Schema that our OpenAPI document uses. Stricter than JSON
//! Schema in one way: a field without a schema is an error, so that no response has undocumented
//! fields.

use serde_json::{Map, Value};

/// Validates a value against a schema of an OpenAPI document.
pub fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = schema.as_object().ok_or("there is no schema")?;
    for word in schema.keys() {
        let declared = [
            "$ref",
            "type",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "enum",
            "const",
            "oneOf",
            "anyOf",
            "minimum",
            "maximum",
            "format",
            "pattern",
            "description",
        ];
        if !declared.contains(&word.as_str()) {
            return Err(format!("the schema has {word}, which is not checked"));
        }
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let found = document.pointer(name.trim_start_matches('#')).ok_or(name)?;
        return check(document, found, value);
    }
    if let Some(kinds) = schema.get("type") {
        let kinds: Vec<&str> = match kinds {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        if !kinds.iter().any(|kind| is(value, kind)) {
            return Err(format!("{value:.60} is no {}", kinds.join(" or ")));
        }
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array)
        && !words.contains(value)
    {
        return Err(format!("{value} is none of {words:?}"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{value} is not {}", schema["const"]));
    }
    let least = schema.get("minimum").and_then(Value::as_f64);
    if let (Some(least), Some(number)) = (least, value.as_f64())
        && number < least
    {
        return Err(format!("{number} is below {least}"));
    }
    if schema.get("format").is_some_and(|format| format == "date-time")
        && let Some(text) = value.as_str()
        && (text.parse::<jiff::Timestamp>().is_err() || text.len() != 24)
    {
        return Err(format!("{text} is no time in milliseconds"));
    }
    choices(document, schema, value)?;
    if let (Some(of), Some(items)) = (schema.get("items"), value.as_array()) {
        for (at, item) in items.iter().enumerate() {
            check(document, of, item).map_err(|why| format!("[{at}] {why}"))?;
        }
    }
    fields(document, schema, value)
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn choices(document: &Value, schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
    for (word, most) in [("oneOf", 1), ("anyOf", usize::MAX)] {
        let Some(all) = schema.get(word).and_then(Value::as_array) else { continue };
        let outcomes: Vec<_> = all.iter().map(|one| check(document, one, value)).collect();
        let fitting = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        if fitting == 0 {
            // Report the error of the alternative with the same kind.
            let of_kind = |one: &Value| one["properties"]["kind"]["const"] == value["kind"];
            let at = all.iter().position(of_kind).unwrap_or(0);
            return Err(outcomes.into_iter().nth(at).unwrap().unwrap_err());
        }
        if fitting > most {
            return Err(format!("{value:.60} fits {fitting} of {word}"));
        }
    }
    Ok(())
}

fn fields(document: &Value, schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
    let Some(held) = value.as_object() else { return Ok(()) };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !held.contains_key(name) {
            return Err(format!("{name} is missing"));
        }
    }
    let declared = schema.get("properties").and_then(Value::as_object);
    let more = schema.get("additionalProperties");
    for (name, field) in held {
        let of = declared.and_then(|declared| declared.get(name)).or(more);
        match (of, declared) {
            (Some(of), _) => {
                check(document, of, field).map_err(|why| format!("{name}: {why}"))?;
            }
            (None, Some(_)) => return Err(format!("{name} stands in no schema")),
            (None, None) => {}
        }
    }
    Ok(())
}
