//! What can be answered to an open question, the same on every surface.

use serde_json::Value;

use crate::chat::update::{cut, label};
use crate::chat::{MAX_OPTIONS, MAX_QUESTION_BYTES};
use crate::form::{FieldChoice, FieldKind, FormField};
use crate::protocol::{OpenQuestion, PermissionKind, PermissionOption, RequestedInput, UserAnswer};

impl FormField {
    /// The field of the n-th question of a tool that asks people: Claude Code and OpenCode write
    /// `question` and `options` alike.
    pub fn of_question(
        at: usize,
        question: &Value,
        several: bool,
        takes_own_words: bool,
    ) -> FormField {
        let text = |value: &Value| cut(value.as_str().unwrap_or_default(), MAX_QUESTION_BYTES);
        let choice = |option: &Value| FieldChoice {
            value: text(&option["label"]),
            label: text(&option["label"]),
            description: option["description"].as_str().map(label),
        };
        let options = question["options"].as_array().into_iter().flatten().take(MAX_OPTIONS);
        FormField {
            name: at.to_string(),
            text: text(&question["question"]),
            kind: if several { FieldKind::Several } else { FieldKind::One },
            choices: options.map(choice).collect(),
            required: true,
            own_words: takes_own_words.then(|| format!("{at}_custom")),
        }
    }

    /// The choices that are offered. A switch offers yes and no.
    pub fn offered_choices(&self) -> Vec<FieldChoice> {
        if self.kind == FieldKind::Switch {
            let choice = |word: &str| FieldChoice {
                value: word.to_owned(),
                label: word.to_owned(),
                description: None,
            };
            return vec![choice("yes"), choice("no")];
        }
        self.choices.clone()
    }

    /// The answer to this field in the content of a form: what was chosen. Own words stand beside it,
    /// or for it where only one is chosen.
    pub fn texts(&self, content: &Value) -> Vec<String> {
        let own = self.own_words.as_ref().and_then(|name| content[name].as_str());
        let value = &content[&self.name];
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let chosen = values.iter().filter_map(Value::as_str);
        match (self.kind == FieldKind::Several, own) {
            (false, Some(own)) => vec![own.to_owned()],
            (_, own) => chosen.chain(own).map(str::to_owned).collect(),
        }
    }

    /// True if text can be typed: as the answer, or as own words beside the choices.
    pub fn takes_text(&self) -> bool {
        self.own_words.is_some()
            || matches!(self.kind, FieldKind::Text | FieldKind::Number | FieldKind::Integer)
    }
}

impl OpenQuestion {
    /// The answer of somebody who wants to talk first: no.
    pub fn refusal(&self) -> UserAnswer {
        let RequestedInput::Permission(options) = &self.kind else { return UserAnswer::Decline };
        let once = |option: &&PermissionOption| option.kind == PermissionKind::RejectOnce;
        match options.iter().find(once) {
            Some(option) => UserAnswer::Option(option.id.clone()),
            None => UserAnswer::Decline,
        }
    }
}
