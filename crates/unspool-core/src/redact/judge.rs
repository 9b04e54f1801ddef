//! Decides whether an assigned value is a secret. The required randomness depends on the class of
//! the name and on the form of the assignment: a line of an `.env` file needs less evidence than a
//! sentence or source code.

use super::naming::Class;
use super::value::{
    Shape, is_code, is_id, is_number, is_ordinary, is_path, is_placeholder, is_wordy,
};

pub(super) const LONGEST_VALUE: usize = 512;

/// The form of an assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Setting {
    /// `DB_PASSWORD=…`: a constant name, no spaces.
    Environment,
    /// `--password …`
    Option,
    /// `?token=…&`
    Query,
    /// `"password": "…"` and JSON fields.
    Field,
    /// `<password>…</password>`
    Markup,
    /// `password = "…"`
    Literal,
    /// `password: …`, on a line of its own.
    Line,
    /// `password: …`, anywhere.
    Loose,
    /// `the password is …`
    Sentence,
}

impl Setting {
    /// True for forms that occur neither in prose nor in source code.
    fn is_strong(self) -> bool {
        match self {
            Setting::Environment
            | Setting::Option
            | Setting::Query
            | Setting::Field
            | Setting::Markup => true,
            Setting::Literal | Setting::Line | Setting::Loose | Setting::Sentence => false,
        }
    }

    fn is_quoted(self) -> bool {
        match self {
            Setting::Field | Setting::Literal => true,
            Setting::Environment
            | Setting::Option
            | Setting::Query
            | Setting::Markup
            | Setting::Line
            | Setting::Loose
            | Setting::Sentence => false,
        }
    }
}

/// True if the value is a secret.
pub(super) fn is_secret(class: Class, setting: Setting, value: &str) -> bool {
    if value.len() < 4 || value.len() > 2 * LONGEST_VALUE || is_placeholder(value) {
        return false;
    }
    let spaces = value.chars().any(char::is_whitespace);
    if class == Class::Phrase && spaces {
        return value.split_whitespace().count() >= 3 && setting.is_quoted();
    }
    if spaces
        || value.chars().any(char::is_control)
        || is_path(value)
        || is_code(value, setting.is_quoted())
        || is_ordinary(value)
        || is_id(value)
        || is_number(value)
    {
        return false;
    }
    let shape = Shape::of(value);
    let number = shape.digits == shape.length;
    match class {
        Class::Password | Class::Phrase => {
            if number {
                return setting.is_strong() && shape.length >= 4;
            }
            // A capitalised word is a UI label: "Password": "Passwort".
            let label = shape.is_word() && shape.large > 0 && shape.large < shape.length;
            match setting {
                Setting::Environment | Setting::Option => !label || shape.length >= 10,
                Setting::Field | Setting::Query | Setting::Markup | Setting::Line => {
                    shape.length >= 6 && !label
                }
                Setting::Literal => shape.length >= 6 && !shape.is_word() && !is_named(value),
                Setting::Loose => shape.length >= 8 && shape.digits > 0 && shape.letters() > 0,
                Setting::Sentence => is_striking(&shape),
            }
        }
        Class::Secret => {
            let random = shape.is_random() && !is_wordy(value);
            let chosen = shape.length >= 8 && !number && !(shape.is_word() && shape.large > 0);
            match setting {
                Setting::Environment | Setting::Option => !number && shape.length >= 6,
                Setting::Field | Setting::Query | Setting::Markup => {
                    random || (chosen && shape.length >= 10 && !is_named(value))
                }
                Setting::Literal | Setting::Line | Setting::Loose => random,
                Setting::Sentence => random && is_striking(&shape),
            }
        }
        Class::Token | Class::Key => {
            let random = shape.is_random() && !is_wordy(value);
            match setting {
                Setting::Environment | Setting::Option => {
                    !number
                        && shape.length >= 8
                        && (random || (shape.length >= 20 && !is_wordy(value)))
                }
                Setting::Field
                | Setting::Query
                | Setting::Markup
                | Setting::Literal
                | Setting::Line => random,
                Setting::Loose => random && shape.length >= 12,
                Setting::Sentence => random && shape.length >= 12 && is_striking(&shape),
            }
        }
    }
}

/// True for strings that do not occur in ordinary sentences.
fn is_striking(shape: &Shape) -> bool {
    let kinds = [shape.small, shape.large, shape.digits, shape.others];
    let kinds = kinds.iter().filter(|count| **count > 0).count();
    shape.digits > 0
        && shape.letters() > 0
        && (shape.length >= 16 || (shape.length >= 8 && kinds >= 2))
}

/// True for identifiers such as `user_password` and `reset-password`.
fn is_named(value: &str) -> bool {
    is_wordy(value) && value.contains(['-', '_', '.', ':', '/'])
}
