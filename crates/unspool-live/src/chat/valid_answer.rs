//! Whether an answer fits its question: on its way to an agent that we drive, and to one that runs in
//! its own terminal.

use serde_json::Value;

use crate::form;
use crate::protocol::{OpenQuestion, PermissionOption, RequestedInput, UserAnswer};

/// An answer that comes sooner was not read: the key was pressed for something else (milliseconds).
pub const MIN_READING_TIME: u64 = 150;

/// An answer that fits its question.
#[derive(Clone, PartialEq, Debug)]
pub enum ValidAnswer<'a> {
    Option(&'a PermissionOption),
    /// The content of a form.
    Form(Value),
    Declined,
}

impl ValidAnswer<'_> {
    /// The answer in a few words, for those who come late.
    pub fn label(&self) -> String {
        match self {
            ValidAnswer::Option(option) => format!("{} ({})", option.kind.word(), option.label),
            ValidAnswer::Form(content) => describe(content),
            ValidAnswer::Declined => "declined".to_owned(),
        }
    }
}

/// Checks an answer to an open question. The error is a sentence for whoever answered.
pub fn validate<'a>(
    open: &'a OpenQuestion,
    answer: &UserAnswer,
    now: u64,
) -> Result<ValidAnswer<'a>, String> {
    if *answer == UserAnswer::Discuss {
        return validate(open, &open.refusal(), now);
    }
    // To decline needs no reading.
    if now < open.since + MIN_READING_TIME && *answer != UserAnswer::Decline {
        return Err("the question has just come; answer again".to_owned());
    }
    match (&open.kind, answer) {
        (RequestedInput::Permission(options), UserAnswer::Option(chosen)) => {
            let option = options.iter().find(|option| option.id == *chosen);
            option
                .map(ValidAnswer::Option)
                .ok_or_else(|| "the agent does not offer this option".to_owned())
        }
        (RequestedInput::Form(fields), UserAnswer::Form(values)) => {
            form::content(fields, values).map(ValidAnswer::Form)
        }
        (
            RequestedInput::Permission(_) | RequestedInput::Form(_),
            UserAnswer::Decline | UserAnswer::Discuss,
        ) => Ok(ValidAnswer::Declined),
        (RequestedInput::Permission(_), UserAnswer::Form(_)) => {
            Err("this is a permission: choose one of its options".to_owned())
        }
        (RequestedInput::Form(_), UserAnswer::Option(_)) => {
            Err("this is a form: give the values of its fields".to_owned())
        }
    }
}

/// The values of an accepted form, for those who come late.
fn describe(content: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = content.as_object().into_iter().flatten().map(|(_, value)| text(value));
    values.collect::<Vec<_>>().join(", ")
}
