//! Forms (`elicitation/create`): the fields of the agent's JSON schema, and the content that a
//! person's answer becomes.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::protocol::FieldValue;

/// One question of a form.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FormField {
    /// The property in the schema.
    pub name: String,
    pub text: String,
    pub kind: FieldKind,
    pub choices: Vec<FieldChoice>,
    pub required: bool,
    /// The property that takes the person's own words, if there is one.
    pub own_words: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FieldKind {
    Text,
    Number,
    Integer,
    /// Yes or no.
    Switch,
    /// One of the choices.
    One,
    /// Any number of the choices.
    Several,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldChoice {
    pub value: String,
    pub label: String,
    pub description: Option<String>,
}

/// The schema of a form.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FormSchema {
    properties: Properties,
    required: Vec<String>,
}

/// The properties in the order in which the agent wrote them, which is the order of its questions.
#[derive(Default)]
struct Properties(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Properties, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Properties;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of properties")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut properties = Vec::new();
                while let Some(property) = map.next_entry()? {
                    properties.push(property);
                }
                Ok(Properties(properties))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The fields of a schema. A property that ends in `_custom` takes own words for another.
pub fn fields(schema: &FormSchema, message: &str) -> Vec<FormField> {
    let properties = &schema.properties.0;
    let has = |name: &str| properties.iter().any(|(other, _)| other == name);
    let is_custom = |name: &str| name.strip_suffix("_custom").is_some_and(has);
    let alone = properties.iter().filter(|(name, _)| !is_custom(name)).count() == 1;
    properties
        .iter()
        .filter(|(name, _)| !is_custom(name))
        .map(|(name, property)| {
            let text = |key: &str| property[key].as_str().map(str::to_owned);
            let own = text("description").or_else(|| text("title")).unwrap_or_else(|| name.clone());
            let custom = format!("{name}_custom");
            FormField {
                text: if alone && !message.is_empty() { message.to_owned() } else { own },
                kind: kind_of(property),
                choices: choices_of(property),
                required: schema.required.contains(name),
                own_words: has(&custom).then_some(custom),
                name: name.clone(),
            }
        })
        .collect()
}

fn kind_of(property: &Value) -> FieldKind {
    let has_choices = !choices_of(property).is_empty();
    match property["type"].as_str() {
        Some("array") => FieldKind::Several,
        Some("boolean") => FieldKind::Switch,
        Some("number") => FieldKind::Number,
        Some("integer") => FieldKind::Integer,
        _ if has_choices => FieldKind::One,
        _ => FieldKind::Text,
    }
}

fn choices_of(property: &Value) -> Vec<FieldChoice> {
    let from = if property["type"] == "array" { &property["items"] } else { property };
    let titled = ["oneOf", "anyOf"].iter().filter_map(|name| from[name].as_array()).flatten();
    let mut choices: Vec<FieldChoice> = titled
        .filter_map(|choice| {
            let value = choice["const"].as_str()?.to_owned();
            let label = choice["title"].as_str().unwrap_or(&value).to_owned();
            let description = choice["description"].as_str().map(str::to_owned);
            Some(FieldChoice { value, label, description })
        })
        .collect();
    let plain = from["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    choices.extend(plain.map(|value| FieldChoice {
        value: value.to_owned(),
        label: value.to_owned(),
        description: None,
    }));
    choices
}

/// The content of an answer, or why it is none.
pub fn content(
    fields: &[FormField],
    values: &BTreeMap<String, FieldValue>,
) -> Result<Value, String> {
    if let Some(name) = values.keys().find(|name| fields.iter().all(|field| field.name != **name)) {
        return Err(format!("the form has no field `{name}`"));
    }
    let mut content = Map::new();
    for field in fields {
        let empty = FieldValue::default();
        let value = values.get(&field.name).unwrap_or(&empty);
        let own = value.own_words.as_deref().filter(|own| !own.trim().is_empty());
        match (own, &field.own_words) {
            (Some(own), Some(property)) => {
                content.insert(property.clone(), json!(own));
            }
            (Some(_), None) => return Err(format!("“{}” takes only its choices", field.text)),
            (None, _) => {}
        }
        if value.chosen.is_empty() {
            if field.required && own.is_none() {
                return Err(format!("“{}” needs an answer", field.text));
            }
            continue;
        }
        content.insert(field.name.clone(), field_content(field, &value.chosen)?);
    }
    Ok(Value::Object(content))
}

fn field_content(field: &FormField, chosen: &[String]) -> Result<Value, String> {
    let offered = |value: &String| field.choices.iter().any(|choice| choice.value == *value);
    if !field.choices.is_empty()
        && let Some(odd) = chosen.iter().find(|value| !offered(value))
    {
        return Err(format!("“{odd}” is not one of the choices of “{}”", field.text));
    }
    if field.kind == FieldKind::Several {
        return Ok(json!(chosen));
    }
    let [value] = chosen else {
        return Err(format!("“{}” takes one answer", field.text));
    };
    match field.kind {
        FieldKind::Text | FieldKind::One | FieldKind::Several => Ok(json!(value)),
        FieldKind::Switch => match value.as_str() {
            "true" | "yes" => Ok(json!(true)),
            "false" | "no" => Ok(json!(false)),
            _ => Err(format!("“{}” takes yes or no", field.text)),
        },
        FieldKind::Integer => value
            .trim()
            .parse::<i64>()
            .map(|number| json!(number))
            .map_err(|_| format!("“{}” takes a whole number", field.text)),
        FieldKind::Number => value
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(|number| json!(number))
            .ok_or_else(|| format!("“{}” takes a number", field.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> FormSchema {
        let schema = json!({"type": "object", "required": ["unit"], "properties": {
            "unit": {"type": "string", "title": "Unit",
                "oneOf": [{"const": "c", "title": "Celsius"}, {"const": "f", "title": "Fahrenheit"}]},
            "unit_custom": {"type": "string"},
            "days": {"type": "array", "items": {"enum": ["mon", "tue"]}},
            "count": {"type": "integer"},
            "loud": {"type": "boolean"},
        }});
        serde_json::from_value(schema).unwrap()
    }

    fn value(chosen: &[&str]) -> FieldValue {
        FieldValue {
            chosen: chosen.iter().map(|text| (*text).to_owned()).collect(),
            own_words: None,
        }
    }

    #[test]
    fn an_answer_has_the_types_of_the_schema() {
        let fields = fields(&schema(), "Which?");
        assert_eq!(fields.len(), 4);
        let mut values = BTreeMap::from([
            ("unit".to_owned(), FieldValue { own_words: Some("kelvin".into()), ..value(&["c"]) }),
            ("days".to_owned(), value(&["mon", "tue"])),
            ("count".to_owned(), value(&["3"])),
            ("loud".to_owned(), value(&["no"])),
        ]);
        let expected = json!({"unit": "c", "unit_custom": "kelvin", "days": ["mon", "tue"],
            "count": 3, "loud": false});
        assert_eq!(content(&fields, &values), Ok(expected));
        for (name, wrong, why) in [
            ("unit", &["k"][..], "choices"),
            ("unit", &["c", "f"][..], "one answer"),
            ("unit", &[][..], "needs an answer"),
            ("days", &["wed"][..], "choices"),
            ("count", &["many"][..], "whole number"),
            ("loud", &["perhaps"][..], "yes or no"),
            ("other", &["x"][..], "no field"),
        ] {
            let before = values.insert(name.to_owned(), value(wrong));
            let refused = content(&fields, &values).unwrap_err();
            assert!(refused.contains(why), "{refused}");
            match before {
                Some(before) => values.insert(name.to_owned(), before),
                None => values.remove(name),
            };
        }
    }

    #[test]
    fn the_message_is_the_question_of_a_form_with_one() {
        let schema = r#"{"properties": {"q": {"type": "string", "title": "Other"}}}"#;
        let schema = serde_json::from_str(schema).unwrap();
        assert_eq!(fields(&schema, "Which unit?")[0].text, "Which unit?");
        assert!(fields(&FormSchema::default(), "Go on?").is_empty());
    }

    #[test]
    fn questions_keep_the_order_of_the_schema() {
        let schema = r#"{"properties": {"z": {"type": "string"}, "a": {"type": "string"}}}"#;
        let fields = fields(&serde_json::from_str(schema).unwrap(), "Two");
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
    }
}
