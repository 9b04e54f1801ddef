//! The arguments of a call, checked against the tool's parameters.

use serde_json::{Map, Value};
use unspool_query::times::parse_time;
use unspool_store::store::View;

use crate::answer::{DEFAULT_LIMIT, MAX_LIMIT, MIN_LIMIT};
use crate::item::cut;
use crate::tool::{LIMIT, Parameter, ParameterKind, Tool, ToolError};

/// The longest argument that is read.
const MAX_ARGUMENT_CHARS: usize = 4_000;

/// Arguments of the kinds that the tool's parameters ask for.
pub struct Arguments {
    given: Map<String, Value>,
}

impl Arguments {
    /// Checks what a client gave. `null` counts as absent: some models fill in every parameter.
    pub fn check<V: View>(tool: &Tool<V>, given: Map<String, Value>) -> Result<Self, ToolError> {
        let mut checked = Map::new();
        for (name, value) in given {
            if value.is_null() {
                continue;
            }
            let known = tool.all_parameters().find(|parameter| parameter.name == name);
            let Some(parameter) = known else {
                let names: Vec<&str> = tool.all_parameters().map(|known| known.name).collect();
                return Err(ToolError::message(format!(
                    "{} has no parameter {:?}; it has {}",
                    tool.name,
                    cut(&name, 40),
                    names.join(", ")
                )));
            };
            checked.insert(name, of_kind(tool.name, parameter, value)?);
        }
        let missing = tool
            .all_parameters()
            .find(|parameter| parameter.required && !checked.contains_key(parameter.name));
        match missing {
            Some(parameter) => Err(ToolError::message(format!(
                "{} needs `{}`: {}",
                tool.name, parameter.name, parameter.description
            ))),
            None => Ok(Arguments { given: checked }),
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    pub fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.given.get(name).and_then(Value::as_u64)
    }

    /// A number of a turn, a step, …
    pub fn small_number(&self, name: &str) -> Option<u32> {
        self.number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    pub fn flag(&self, name: &str) -> bool {
        self.given.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// `None` if it is not given.
    pub fn flag_if(&self, name: &str) -> Option<bool> {
        self.given.get(name).and_then(Value::as_bool)
    }

    pub fn time(&self, name: &str) -> Result<Option<i64>, ToolError> {
        let parsed = self.text(name).map(parse_time).transpose();
        parsed.map_err(|error| ToolError::message(format!("`{name}`: {error}")))
    }

    /// The longest answer, in characters.
    pub fn limit(&self) -> usize {
        let asked = self.number(LIMIT.name).and_then(|asked| usize::try_from(asked).ok());
        asked.unwrap_or(DEFAULT_LIMIT).clamp(MIN_LIMIT, MAX_LIMIT)
    }

    /// The cursor, read by `parse`.
    pub fn after<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, ToolError> {
        let Some(text) = self.text("after") else { return Ok(None) };
        let wrong = "`after` is no cursor of this tool: take `next` of the answer before, and leave \
                     it out for the beginning";
        parse(text).map(Some).ok_or_else(|| ToolError::message(wrong))
    }
}

fn of_kind(tool: &str, parameter: &Parameter, value: Value) -> Result<Value, ToolError> {
    let wanted = match (parameter.kind, &value) {
        (ParameterKind::Text, Value::String(text)) if text.chars().count() > MAX_ARGUMENT_CHARS => {
            "a shorter text".to_owned()
        }
        (ParameterKind::Text, Value::String(_)) => return Ok(value),
        // Models write turn numbers and ids of digits in either way.
        (ParameterKind::Text, Value::Number(number)) => return Ok(number.to_string().into()),
        (ParameterKind::Number, Value::Number(number)) if number.is_u64() => return Ok(value),
        (ParameterKind::Number, Value::Number(number)) => match number.as_f64() {
            Some(float) if float >= 0.0 && float.fract() == 0.0 && float < 9e15 => {
                return Ok((float as u64).into());
            }
            Some(_) | None => "a whole number of at least 0".to_owned(),
        },
        (ParameterKind::Number, Value::String(text)) => match text.trim().parse::<u64>() {
            Ok(number) => return Ok(number.into()),
            Err(_) => "a whole number of at least 0".to_owned(),
        },
        (ParameterKind::Flag, Value::Bool(_)) => return Ok(value),
        (ParameterKind::Flag, Value::String(text)) if text == "true" || text == "false" => {
            return Ok((text == "true").into());
        }
        (ParameterKind::OneOf(values), Value::String(text)) if values.contains(&text.as_str()) => {
            return Ok(value);
        }
        (ParameterKind::OneOf(values), _) => format!("one of {}", values.join(", ")),
        (ParameterKind::Text, _) => "a text".to_owned(),
        (ParameterKind::Number, _) => "a whole number of at least 0".to_owned(),
        (ParameterKind::Flag, _) => "true or false".to_owned(),
    };
    let given = cut(&value.to_string(), 60);
    Err(ToolError::message(format!("`{}` of {tool} must be {wanted}, not {given}", parameter.name)))
}
