//! Decides whether an assigned value is a secret. The required randomness depends on the class of
//! the name and on the form of the assignment: a line of an `.env` file needs less evidence than a
//! sentence or source code.

use super::secret_name::SecretClass;
use super::value_shape::{
    Shape, is_code, is_id, is_jumbled, is_number, is_ordinary, is_path, is_placeholder, is_wordy,
};

/// Beginnings of words that follow the word for a password without being one.
#[rustfmt::skip]
const REMARKS: &[&str] = &[
    "actual", "abgelauf", "aktuell", "anterior", "antigu", "atual", "caduc", "chang", "confirm",
    "desactiv", "erforder", "expir", "falsch", "fehl", "forgot", "geheim", "haettest", "incorrec",
    "incorret", "inval", "modifi", "necess", "nicht", "nouve", "nuev", "obligat", "obrigat",
    "oblig", "oubli", "olvid", "passwor", "requer", "requi", "richiest", "secret", "scadut",
    "vergess", "verges", "verplicht", "wiederhol", "zurueck", "sbagliat", "errat", "mancant",
];

pub(super) const MAX_VALUE_BYTES: usize = 512;
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The form of an assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AssignmentKind {
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
    /// `set("password", "…")`
    Argument,
    /// `user=bob password=…`, without spaces around the sign.
    Pair,
    /// `password: …`, on a line of its own.
    Line,
    /// `password: …`, anywhere.
    Loose,
    /// `password   …`, in columns.
    Table,
    /// `the password is …`
    Sentence,
    /// `the password is "…"`
    Quoted,
}

impl AssignmentKind {
    /// True for forms that occur neither in prose nor in source code.
    fn is_strong(self) -> bool {
        match self {
            AssignmentKind::Environment
            | AssignmentKind::Option
            | AssignmentKind::Query
            | AssignmentKind::Field
            | AssignmentKind::Markup => true,
            AssignmentKind::Literal
            | AssignmentKind::Argument
            | AssignmentKind::Pair
            | AssignmentKind::Line
            | AssignmentKind::Loose
            | AssignmentKind::Table
            | AssignmentKind::Quoted
            | AssignmentKind::Sentence => false,
        }
    }

    fn is_quoted(self) -> bool {
        match self {
            AssignmentKind::Field
            | AssignmentKind::Literal
            | AssignmentKind::Argument
            | AssignmentKind::Quoted => true,
            AssignmentKind::Environment
            | AssignmentKind::Option
            | AssignmentKind::Query
            | AssignmentKind::Pair
            | AssignmentKind::Markup
            | AssignmentKind::Line
            | AssignmentKind::Loose
            | AssignmentKind::Table
            | AssignmentKind::Sentence => false,
        }
    }
}

/// True if the value is a secret.
pub(super) fn is_secret(class: SecretClass, assignment: AssignmentKind, value: &str) -> bool {
    if value.len() > 2 * MAX_VALUE_BYTES {
        // A session token may be this long; its beginning decides.
        return value.len() <= MAX_TOKEN_BYTES
            && value.bytes().all(is_token_byte)
            && is_secret(class, assignment, &value[..MAX_VALUE_BYTES]);
    }
    if value.len() < 4 || is_placeholder(value) {
        return false;
    }
    let spaces = value.chars().any(char::is_whitespace);
    if class == SecretClass::Phrase && spaces {
        let quoted = assignment.is_quoted() || assignment == AssignmentKind::Environment;
        return value.split_whitespace().count() >= 3 && quoted;
    }
    if spaces
        || value.chars().any(char::is_control)
        || is_path(value)
        || is_code(value, assignment.is_quoted())
        || is_ordinary(value)
        || is_id(value)
        || is_number(value)
    {
        return false;
    }
    let shape = Shape::of(value);
    match class {
        SecretClass::Password | SecretClass::Phrase => is_password(assignment, value, &shape),
        SecretClass::Secret => is_named_secret(assignment, value, &shape),
        SecretClass::Token | SecretClass::Key => is_token(assignment, value, &shape),
    }
}

fn is_password(assignment: AssignmentKind, value: &str, shape: &Shape) -> bool {
    if shape.digits == shape.length {
        return assignment.is_strong() && shape.length >= 4;
    }
    // A capitalised word is a UI label: "Password": "Passwort".
    let mixed = shape.uppercase > 0 && shape.uppercase < shape.length;
    let label = shape.is_word() && mixed && !is_scrambled(value, shape);
    match assignment {
        AssignmentKind::Environment | AssignmentKind::Option => !label || shape.length >= 10,
        AssignmentKind::Field
        | AssignmentKind::Query
        | AssignmentKind::Markup
        | AssignmentKind::Line => shape.length >= 6 && !label,
        AssignmentKind::Literal => {
            let chosen = shape.length >= 8 && shape.uppercase == 0;
            let chosen = (!shape.is_word() || chosen) && !is_named(value);
            shape.length >= 6 && chosen || is_scrambled(value, shape)
        }
        AssignmentKind::Argument => {
            let chosen = !shape.is_word() && !is_named(value);
            shape.length >= 6 && chosen || is_scrambled(value, shape)
        }
        AssignmentKind::Pair => shape.length >= 6 && !label && !is_named(value),
        AssignmentKind::Loose => shape.length >= 8 && shape.digits > 0 && shape.letters() > 0,
        AssignmentKind::Table => is_conspicuous(shape) && !is_wordy(value),
        AssignmentKind::Sentence => is_conspicuous(shape) || is_chosen(value, shape),
        AssignmentKind::Quoted => {
            is_conspicuous(shape) || shape.length >= 8 && !label && !is_named(value)
        }
    }
}

/// Looks machine-generated, and not like words.
fn is_generated(value: &str, shape: &Shape) -> bool {
    (shape.is_random() || is_scrambled(value, shape)) && !is_wordy(value)
}

/// Letters that form no words. A generator may happen to use no digit.
fn is_scrambled(value: &str, shape: &Shape) -> bool {
    shape.length >= 12 && shape.is_word() && is_jumbled(value)
}

fn is_named_secret(assignment: AssignmentKind, value: &str, shape: &Shape) -> bool {
    let number = shape.digits == shape.length;
    let random = is_generated(value, shape);
    let chosen = shape.length >= 8 && !number && !(shape.is_word() && shape.uppercase > 0);
    match assignment {
        AssignmentKind::Environment | AssignmentKind::Option => !number && shape.length >= 6,
        AssignmentKind::Field | AssignmentKind::Query | AssignmentKind::Markup => {
            random || (chosen && shape.length >= 10 && !is_named(value))
        }
        AssignmentKind::Literal
        | AssignmentKind::Argument
        | AssignmentKind::Pair
        | AssignmentKind::Line
        | AssignmentKind::Loose => random,
        AssignmentKind::Table => random && shape.length >= 16,
        AssignmentKind::Sentence | AssignmentKind::Quoted => random && is_conspicuous(shape),
    }
}

fn is_token(assignment: AssignmentKind, value: &str, shape: &Shape) -> bool {
    let number = shape.digits == shape.length;
    let random = is_generated(value, shape);
    match assignment {
        AssignmentKind::Environment | AssignmentKind::Option => {
            !number && shape.length >= 8 && (random || (shape.length >= 20 && !is_wordy(value)))
        }
        AssignmentKind::Field
        | AssignmentKind::Query
        | AssignmentKind::Markup
        | AssignmentKind::Literal
        | AssignmentKind::Argument
        | AssignmentKind::Pair
        | AssignmentKind::Line => random,
        AssignmentKind::Loose => random && shape.length >= 12,
        AssignmentKind::Table => random && shape.length >= 16 && is_conspicuous(shape),
        AssignmentKind::Sentence | AssignmentKind::Quoted => {
            random && shape.length >= 12 && is_conspicuous(shape)
        }
    }
}

/// True if an element of a list with a secret name is a secret. A list has no name for each element,
/// and lists of words, of names and of the tokens of a language are common.
pub(super) fn is_listed_secret(class: SecretClass, value: &str) -> bool {
    if !is_secret(class, AssignmentKind::Field, value) || is_named(value) {
        return false;
    }
    let shape = Shape::of(value);
    match class {
        SecretClass::Password | SecretClass::Phrase => {
            shape.digits > 0 && shape.letters() > 0 || shape.length >= 10
        }
        SecretClass::Secret | SecretClass::Token | SecretClass::Key => {
            shape.is_random() && shape.length >= 12 && !is_wordy(value)
        }
    }
}

/// True if a text begins with an application password of Google: `abcd efgh ijkl mnop`. Four words
/// of four letters are no password; hardly any word has three consonants in a row.
pub(super) fn is_app_password(text: &str) -> bool {
    let Some(bytes) = text.as_bytes().get(..19) else { return false };
    let shaped = bytes.iter().enumerate().all(|(at, byte)| match at % 5 {
        4 => *byte == b' ',
        _ => byte.is_ascii_lowercase(),
    });
    let longer = text.as_bytes().get(19).is_some_and(|byte| byte.is_ascii_alphanumeric());
    let vowel = |byte: &u8| b"aeiouy ".contains(byte);
    let jumbled = || bytes.windows(3).any(|three| !three.iter().any(vowel));
    shaped && !longer && jumbled()
}

/// Words of sentences about passwords.
#[rustfmt::skip]
const SENTENCE_WORDS: &[&str] = &[
    "a", "an", "and", "are", "at", "be", "between", "can", "char", "characters", "chars", "contain",
    "digit", "digits", "enter", "for", "has", "in", "invalid", "is", "least", "length", "long", "more",
    "must", "not", "of", "on", "or", "password", "please", "should", "than", "the", "to", "type",
    "use", "with", "your",
];

/// True for a password of several words that a person chose: it has a digit and reads like no sentence.
pub(super) fn is_chosen_phrase(value: &str) -> bool {
    let shape = Shape::of(value);
    let sentence = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        SENTENCE_WORDS.iter().any(|other| other.eq_ignore_ascii_case(word))
    };
    let words = value.split(' ').filter(|word| !word.is_empty());
    shape.length >= 12
        && shape.digits > 0
        && shape.letters() >= 4
        && (2..=8).contains(&words.clone().count())
        && !words.clone().any(sentence)
        && !value.chars().any(char::is_control)
        && !value.contains(['$', '(', '{', '<', ':', '=', '/', '-'])
        && !is_placeholder(value)
}

/// True for a value without digits that a person chose, after the word for a password in another
/// language.
pub(super) fn is_chosen_abroad(assignment: AssignmentKind, value: &str) -> bool {
    let shape = Shape::of(value);
    if !value.is_ascii() || !is_secret(SecretClass::Password, AssignmentKind::Field, value) {
        return false;
    }
    let mixed = shape.uppercase > 0 && shape.lowercase > 0 && shape.others > 0;
    let word = shape.is_word() && shape.uppercase == 0 && shape.length >= 8 && !is_remark(value);
    match assignment {
        AssignmentKind::Line | AssignmentKind::Field | AssignmentKind::Environment => mixed || word,
        AssignmentKind::Sentence | AssignmentKind::Quoted | AssignmentKind::Loose => mixed,
        AssignmentKind::Option
        | AssignmentKind::Query
        | AssignmentKind::Markup
        | AssignmentKind::Literal
        | AssignmentKind::Argument
        | AssignmentKind::Pair
        | AssignmentKind::Table => false,
    }
}

/// True for words that say something about a password: required, wrong, forgotten, too short.
fn is_remark(value: &str) -> bool {
    REMARKS.iter().any(|stem| value.starts_with(stem))
}

/// True for a password in a sentence that is no word of it: it has a sign inside, or it is longer
/// than words are.
fn is_chosen(value: &str, shape: &Shape) -> bool {
    let sign = |byte: u8| byte.is_ascii_punctuation() && !b"-_.,:/'()[]<>`\"*\\".contains(&byte);
    let marked = shape.length >= 8
        && value.is_ascii()
        && shape.letters() >= 4
        && value.bytes().skip(1).any(sign)
        && !value.contains(['(', '<', '[', '*']);
    let ends = ["ly", "ed", "ing", "ion", "able", "ible", "al", "ive", "ent", "ous", "ity", "ness"];
    let word = shape.is_word() && shape.uppercase == 0 && shape.length >= 14;
    marked || word && !ends.iter().any(|end| value.ends_with(end))
}

/// True for bytes of base64, hexadecimal digits and JSON web tokens.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_-.".contains(&byte)
}

/// True for strings that do not occur in ordinary sentences.
fn is_conspicuous(shape: &Shape) -> bool {
    let kinds = [shape.lowercase, shape.uppercase, shape.digits, shape.others];
    let kinds = kinds.iter().filter(|count| **count > 0).count();
    shape.digits > 0
        && shape.letters() > 0
        && (shape.length >= 16 || (shape.length >= 8 && kinds >= 2))
}

/// True for identifiers such as `user_password` and `reset-password`.
fn is_named(value: &str) -> bool {
    is_wordy(value) && value.contains(['-', '_', '.', ':', '/'])
}
