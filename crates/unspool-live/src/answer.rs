//! What can be answered to an open question, the same on every surface.

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
