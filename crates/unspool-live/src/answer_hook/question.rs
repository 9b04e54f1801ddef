//! The question of a `PermissionRequest` hook of Claude Code, and the decision that the hook prints.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::chat::{MAX_SUBJECT_BYTES, ValidAnswer};
use crate::form::FormField;
use crate::protocol::{OpenQuestion, PermissionKind, PermissionOption, RequestedInput};

/// The event that can be answered.
pub const ANSWERABLE_EVENT: &str = "PermissionRequest";
/// The tool whose input is questions to a person.
const QUESTION_TOOL: &str = "AskUserQuestion";
/// A hook asks one question.
const QUESTION_ID: &str = "0";
const ALLOW: &str = "allow";
const DENY: &str = "deny";
/// A longer command is not repeated in the question.
const MAX_TITLE: usize = 200;

/// What the hook was asked.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct HookQuestion {
    #[serde(rename = "session_id")]
    pub session: String,
    #[serde(rename = "cwd", default)]
    pub folder: PathBuf,
    /// The log of the session.
    #[serde(rename = "transcript_path", default)]
    pub log: Option<PathBuf>,
    #[serde(rename = "prompt_id", default)]
    pub prompt: Option<String>,
    /// The sub-agent that asks.
    #[serde(rename = "agent_id", default)]
    pub sub_agent: Option<String>,
    #[serde(rename = "tool_name")]
    pub tool: String,
    #[serde(rename = "tool_input", default)]
    pub input: Value,
    /// The payload does not name the call; `watch::find_call` does.
    #[serde(rename = "tool_use_id", default)]
    pub call: Option<String>,
    #[serde(rename = "hook_event_name")]
    pub event: String,
}

/// What the hook prints, and what is recorded about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// For the agent.
    pub output: Value,
    /// `allow`, `deny` or `answer`.
    pub kind: &'static str,
    /// What the agent is told with a refusal.
    pub message: Option<String>,
    /// The answers by question, for those of `AskUserQuestion`.
    pub answers: Option<Map<String, Value>>,
}

impl HookQuestion {
    /// The question of a payload, unless it is of another event.
    pub fn of_payload(payload: &str) -> Option<HookQuestion> {
        let question: HookQuestion = serde_json::from_str(payload).ok()?;
        (question.event == ANSWERABLE_EVENT).then_some(question)
    }

    pub(super) fn asks_person(&self) -> bool {
        self.tool == QUESTION_TOOL && !self.questions().is_empty()
    }

    fn questions(&self) -> &[Value] {
        self.input["questions"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The question as clients show it.
    pub fn open(&self, since: u64) -> OpenQuestion {
        let (text, kind, subject) = if self.asks_person() {
            let fields: Vec<FormField> = self.questions().iter().enumerate().map(field).collect();
            let text = match fields.as_slice() {
                [field] => field.text.clone(),
                [] | [_, ..] => format!("{} questions", fields.len()),
            };
            (text, RequestedInput::Form(fields), Value::Null)
        } else {
            let option = |id: &str, label: &str, kind| PermissionOption {
                id: id.to_owned(),
                label: label.to_owned(),
                kind,
            };
            let options = vec![
                option(ALLOW, "Yes", PermissionKind::AllowOnce),
                option(DENY, "No", PermissionKind::RejectOnce),
            ];
            let text = format!("Allow {}?", self.title());
            (text, RequestedInput::Permission(options), self.subject())
        };
        OpenQuestion {
            id: QUESTION_ID.to_owned(),
            request: QUESTION_ID.into(),
            session: self.session.clone(),
            call: self.call.clone(),
            text,
            kind,
            subject,
            since,
        }
    }

    fn title(&self) -> String {
        let text = |name: &str| self.input[name].as_str().filter(|text| text.len() <= MAX_TITLE);
        if let Some(command) = text("command").filter(|command| !command.contains('\n')) {
            return format!("`{command}`");
        }
        match text("file_path").or_else(|| text("notebook_path")) {
            Some(path) => format!("{} of {path}", self.tool),
            None => self.tool.clone(),
        }
    }

    /// What the call gets, in the shape of the Agent Client Protocol, which surfaces show already.
    fn subject(&self) -> Value {
        let size = self.input.to_string().len();
        if size > MAX_SUBJECT_BYTES {
            return json!({"title": self.tool, "omitted_bytes": size});
        }
        let path = &self.input["file_path"];
        let diff = |old: &Value, new: &Value| {
            let (old, new) = (old.as_str().unwrap_or_default(), new.as_str().unwrap_or_default());
            json!({"type": "diff", "path": path, "oldText": old, "newText": new})
        };
        let edits = |one: &Value| diff(&one["old_string"], &one["new_string"]);
        let content: Vec<Value> = match self.tool.as_str() {
            "Edit" => vec![edits(&self.input)],
            "MultiEdit" => {
                self.input["edits"].as_array().into_iter().flatten().map(edits).collect()
            }
            "Write" => vec![diff(&Value::Null, &self.input["content"])],
            _ => Vec::new(),
        };
        let mut input = self.input.clone();
        // What the diffs show.
        if let Some(input) = input.as_object_mut().filter(|_| !content.is_empty()) {
            input.retain(|name, _| {
                !["old_string", "new_string", "edits", "content"].contains(&name.as_str())
            });
        }
        json!({"title": self.tool, "rawInput": input, "content": content})
    }

    /// The decision that an answer becomes. `words` are what the person wrote beside it.
    pub fn decide(&self, answer: &ValidAnswer<'_>, words: Option<&str>) -> Decision {
        match answer {
            ValidAnswer::Option(option) if option.id == ALLOW => Decision {
                output: output(json!({"behavior": "allow"})),
                kind: "allow",
                message: None,
                answers: None,
            },
            ValidAnswer::Form(content) => self.answered(content),
            ValidAnswer::Option(_) => deny(words, "The user refused this call."),
            ValidAnswer::Declined if self.asks_person() => {
                deny(words, "The user declined to answer these questions.")
            }
            ValidAnswer::Declined => deny(words, "The user refused this call."),
        }
    }

    fn answered(&self, content: &Value) -> Decision {
        let mut answers = Map::new();
        for (at, question) in self.questions().iter().enumerate() {
            let field = field((at, question));
            let texts = field.texts(content);
            if !texts.is_empty() {
                answers.insert(field.text, Value::from(texts.join(", ")));
            }
        }
        let mut input = self.input.clone();
        input["answers"] = Value::Object(answers.clone());
        Decision {
            output: output(json!({"behavior": "allow", "updatedInput": input})),
            kind: "answer",
            message: None,
            answers: Some(answers),
        }
    }
}

/// The field of the n-th question.
fn field((at, question): (usize, &Value)) -> FormField {
    FormField::of_question(at, question, question["multiSelect"] == Value::Bool(true), true)
}

fn deny(words: Option<&str>, default: &str) -> Decision {
    let words = words.map(str::trim).filter(|words| !words.is_empty());
    let message = words.unwrap_or(default);
    Decision {
        output: output(json!({"behavior": "deny", "message": message})),
        kind: "deny",
        message: Some(message.to_owned()),
        answers: None,
    }
}

fn output(decision: Value) -> Value {
    let event = ANSWERABLE_EVENT;
    json!({"hookSpecificOutput": {"hookEventName": event, "decision": decision}})
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
