//! Values as OTLP/JSON writes them (`AnyValue`), and lists of attributes.

use serde_json::{Number, Value, json};
use unspool_model::json::Json;

/// Deeper values are written as text: protobuf readers allow 100 nested messages, and each level of
/// a value takes three.
const MAX_VALUE_DEPTH: usize = 20;

pub fn text(text: &str) -> Value {
    json!({ "stringValue": text })
}

pub fn int(count: u64) -> Value {
    match i64::try_from(count) {
        Ok(count) => json!({ "intValue": count.to_string() }),
        Err(_) => json!({ "stringValue": count.to_string() }),
    }
}

pub fn flag(is: bool) -> Value {
    json!({ "boolValue": is })
}

pub fn list(values: impl IntoIterator<Item = Value>) -> Value {
    json!({ "arrayValue": { "values": values.into_iter().collect::<Vec<Value>>() } })
}

pub fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(key, value)| json!({ "key": key, "value": value }));
    json!({ "kvlistValue": { "values": fields.collect::<Vec<Value>>() } })
}

/// JSON as a structured value.
pub fn of_json(json: &Json) -> Value {
    match (json.value(), json.text().trim()) {
        // Nested too deep for the parser.
        (Value::Null, whole) if whole != "null" => text(json.text()),
        (value, _) => of(&value, MAX_VALUE_DEPTH),
    }
}

fn of(value: &Value, depth: usize) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(is) => flag(*is),
        Value::Number(number) => of_number(number),
        Value::String(said) => text(said),
        Value::Array(_) | Value::Object(_) if depth == 0 => text(&value.to_string()),
        Value::Array(values) => list(values.iter().map(|value| of(value, depth - 1))),
        Value::Object(fields) => {
            object(fields.iter().map(|(key, value)| (key.as_str(), of(value, depth - 1))))
        }
    }
}

fn of_number(number: &Number) -> Value {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), ..) => json!({ "intValue": whole.to_string() }),
        (None, Some(large), _) => int(large),
        (None, None, Some(real)) => json!({ "doubleValue": real }),
        (None, None, None) => text(&number.to_string()),
    }
}

/// Attributes of a resource, a span or an event.
#[derive(Default)]
pub struct Attributes(Vec<Value>);

impl Attributes {
    pub fn put(&mut self, key: &str, value: Value) {
        self.0.push(json!({ "key": key, "value": value }));
    }

    pub fn text(&mut self, key: &str, value: &str) {
        self.put(key, text(value));
    }

    pub fn maybe_text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// A count, omitted if zero.
    pub fn count(&mut self, key: &str, count: u64) {
        if count > 0 {
            self.put(key, int(count));
        }
    }

    /// A flag, omitted if false.
    pub fn mark(&mut self, key: &str, is: bool) {
        if is {
            self.put(key, flag(true));
        }
    }

    pub fn into_values(self) -> Vec<Value> {
        self.0
    }
}
