//! What a tool is: a name, a description that says when to use it, parameters as data, and a function.

use serde_json::{Map, Value, json};
use thiserror::Error;
use unspool_export::export::ExportError;
use unspool_store::store::{StoreError, View};

use crate::answer::{Answer, DEFAULT_LIMIT, MAX_LIMIT, MIN_LIMIT};
use crate::arguments::Arguments;
use crate::reader::Reader;

/// A tool of the server. It reads the archive and never writes to it.
pub struct Tool<V: View> {
    pub name: &'static str,
    pub title: &'static str,
    /// For the model: what it answers and when to call it.
    pub description: &'static str,
    /// Its own parameters. Every tool also has `limit`.
    pub parameters: &'static [Parameter],
    pub run: fn(&Reader<V>, &Arguments) -> Result<Answer, ToolError>,
}

/// A parameter of a tool.
pub struct Parameter {
    pub name: &'static str,
    pub kind: ParameterKind,
    pub description: &'static str,
    pub required: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    Text,
    /// A whole number of at least 0.
    Number,
    Flag,
    OneOf(&'static [&'static str]),
}

impl Parameter {
    pub const fn text(name: &'static str, description: &'static str) -> Parameter {
        Parameter { name, kind: ParameterKind::Text, description, required: false }
    }

    pub const fn number(name: &'static str, description: &'static str) -> Parameter {
        Parameter { name, kind: ParameterKind::Number, description, required: false }
    }

    pub const fn flag(name: &'static str, description: &'static str) -> Parameter {
        Parameter { name, kind: ParameterKind::Flag, description, required: false }
    }

    pub const fn one_of(
        name: &'static str,
        values: &'static [&'static str],
        description: &'static str,
    ) -> Parameter {
        Parameter { name, kind: ParameterKind::OneOf(values), description, required: false }
    }

    pub const fn required(self) -> Parameter {
        Parameter { required: true, ..self }
    }

    fn schema(&self) -> Value {
        match self.kind {
            ParameterKind::Text => json!({ "type": "string", "description": self.description }),
            ParameterKind::Number => {
                json!({ "type": "integer", "minimum": 0, "description": self.description })
            }
            ParameterKind::Flag => json!({ "type": "boolean", "description": self.description }),
            ParameterKind::OneOf(values) => {
                json!({ "type": "string", "enum": values, "description": self.description })
            }
        }
    }
}

/// Parameters that several tools have.
pub const SESSION: Parameter = Parameter::text(
    "session",
    "Id of a session, or a unique prefix of it. Without it: your own session, if it is known, else \
     the newest one of this project.",
);
pub const AFTER: Parameter =
    Parameter::text("after", "The cursor `next` of the answer before, to go on behind it.");
pub const PROJECT: Parameter =
    Parameter::text("project", "Only sessions whose project folder contains this text.");
pub const AGENT: Parameter =
    Parameter::text("agent", "Only sessions of this agent: claude-code, codex, gemini, …");
pub const SINCE: Parameter = Parameter::text(
    "since",
    "From this time on: 2026-05-31, yesterday, 36h, 7d, 2w, or a time such as 2026-05-31T10:00Z.",
);
pub const UNTIL: Parameter = Parameter::text("until", "Before this time.");
/// A parameter of every tool.
pub const LIMIT: Parameter = Parameter::number(
    "limit",
    "The longest answer in characters: 2000 to 40000, 8000 by default. What does not fit comes with \
     the cursor `next`.",
);

impl<V: View> Tool<V> {
    /// Its parameters, with those that every tool has.
    pub fn all_parameters(&self) -> impl Iterator<Item = &'static Parameter> + use<V> {
        self.parameters.iter().chain([&LIMIT])
    }

    /// The JSON schema of its arguments.
    pub fn input_schema(&self) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required: Vec<&str> = Vec::new();
        for parameter in self.all_parameters() {
            let mut schema = parameter.schema();
            if parameter.name == LIMIT.name
                && let Value::Object(schema) = &mut schema
            {
                schema.insert("minimum".to_owned(), MIN_LIMIT.into());
                schema.insert("maximum".to_owned(), MAX_LIMIT.into());
                schema.insert("default".to_owned(), DEFAULT_LIMIT.into());
            }
            properties.insert(parameter.name.to_owned(), schema);
            if parameter.required {
                required.push(parameter.name);
            }
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema.insert("additionalProperties".to_owned(), false.into());
        schema
    }

    /// The JSON schema of every answer.
    pub fn output_schema() -> Map<String, Value> {
        let schema = json!({
            "type": "object",
            "properties": {
                "truncated": {
                    "type": "boolean",
                    "description": "There is more: call again with `after` set to `next`.",
                },
                "next": { "type": ["string", "null"] },
            },
            "required": ["truncated", "next"],
        });
        if let Value::Object(schema) = schema { schema } else { Map::new() }
    }
}

/// Why a tool has no answer, in a sentence that says what to do.
#[derive(Debug, Error)]
pub enum ToolError {
    /// The arguments are wrong, or nothing is there.
    #[error("{0}")]
    Message(String),
    #[error("cannot read the archive: {0}")]
    Store(#[from] StoreError),
    #[error("cannot read the session: {0}")]
    Export(#[from] ExportError),
}

impl ToolError {
    pub fn message(what: impl Into<String>) -> ToolError {
        ToolError::Message(what.into())
    }
}
