//! What can be answered to an open question, the same on every surface.

use serde_json::Value;

use crate::form::{FieldChoice, FieldKind, FormField};
use crate::protocol::{OpenQuestion, PermissionKind, PermissionOption, RequestedInput, UserAnswer};

impl FormField {
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
