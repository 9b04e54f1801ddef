//! Checks values that are assigned to a secret name, in a text and as a field of JSON.

use super::assignment::{is_constant, value_of};
use super::list::{listed_values, opens_list};
use super::matching::MAX_TRIES_PER_RUN;
use super::rules::Precedence;
use super::scan::Scan;
use super::secret_name::{SecretClass, classify, is_foreign, name_around, singular};
use super::special;
use super::value_shape::Shape;
use super::verdict::{
    AssignmentKind, MAX_VALUE_BYTES, is_app_password, is_chosen_abroad, is_chosen_phrase,
    is_listed_secret, is_secret, is_token_byte,
};

/// Longest words between a word for a password and a colon.
const MAX_QUALIFIER_CHARACTERS: usize = 30;

impl Scan<'_, '_> {
    /// Checks the value assigned to a secret name.
    pub(super) fn name(&mut self, start: usize, end: usize) {
        if start < self.named_to {
            return;
        }
        let Some((from, to)) = name_around(self.text, start, end) else { return };
        let Some(name) = self.text.get(from..to) else { return };
        let class = classify(name);
        if start >= self.lists_to
            && opens_list(self.text.as_bytes(), to)
            && let Some(class) = class.or_else(|| classify(singular(name)))
        {
            self.list(class, to);
        }
        if let Some(class) = class {
            self.assigned(class, start, (from, to));
        }
    }

    /// Checks the elements of a list or an object with a secret name.
    fn list(&mut self, class: SecretClass, to: usize) {
        let Some((values, end)) = listed_values(self.text, to) else { return };
        self.lists_to = end;
        for (from, to) in values {
            if self.text.get(from..to).is_some_and(|value| is_listed_secret(class, value)) {
                self.push(from, to, class.kind(), Precedence::ByName);
            }
        }
    }

    /// Checks the value assigned to a word for a password that is no ASCII name.
    pub(super) fn word(&mut self, start: usize, end: usize) {
        let end = qualified(self.text, start, end);
        let longer = self.text.as_bytes().get(end).is_some_and(u8::is_ascii_alphanumeric);
        if start >= self.named_to && self.begins(start) && !longer {
            self.assigned(SecretClass::Password, start, (start, end));
        }
    }

    /// Checks the value assigned to the name at `from..to`.
    fn assigned(&mut self, class: SecretClass, start: usize, (from, to): (usize, usize)) {
        self.named_to = to;
        if start < self.value_to {
            self.value_tries = self.value_tries.saturating_add(1);
            if self.value_tries > MAX_TRIES_PER_RUN {
                return;
            }
        }
        let Some(value) = value_of(self.text, from, to) else { return };
        let text = &self.text[value.start..value.end];
        let after = self.text.get(value.start..).unwrap_or_default();
        if class == SecretClass::Password && is_app_password(after) {
            self.push(value.start, value.start + 19, class.kind(), Precedence::ByName);
            return;
        }
        // The words of other languages also occur in prose and labels, and as initials.
        let is_label = || Shape::of(text).digits == 0 && is_foreign(&self.text[from..to]);
        // Only quotes after `=` hold spaces. After a colon it would be a label.
        let before = &self.text[to..value.start];
        let is_phrase = || {
            class == SecretClass::Password
                && value.assignment == AssignmentKind::Environment
                && before.starts_with('=')
                && is_chosen_phrase(text)
        };
        let is_secret = match is_label() {
            true => is_chosen_abroad(value.assignment, text),
            false => is_secret(class, value.assignment, text) || is_phrase(),
        };
        let mut end = value.end;
        // The limit of a value cut it off: a session token may be longer.
        if is_secret && end - value.start >= MAX_VALUE_BYTES {
            let rest = self.text.as_bytes()[end..].iter();
            end += rest.take_while(|byte| is_token_byte(**byte)).count();
        }
        if start >= self.value_to {
            (self.value_to, self.value_tries) = (end, 0);
        }
        if is_secret {
            self.push(value.start, end, class.kind(), Precedence::ByName);
        }
    }

    /// Checks a text that is the whole value of a field.
    pub(super) fn field(&mut self, name: &str, listed: bool) {
        let text = self.text;
        let trimmed = text.trim();
        let start = text.len() - text.trim_start().len();
        if name.len() <= 64 && name.to_ascii_lowercase().ends_with("cookie") {
            for (from, to) in special::cookies(text, start).0 {
                self.push(from, to, "cookie", Precedence::ByContext);
            }
        }
        if listed {
            if let Some(class) = classify(name).or_else(|| classify(singular(name)))
                && is_listed_secret(class, trimmed)
            {
                self.push(start, start + trimmed.len(), class.kind(), Precedence::ByName);
            }
        } else if let Some(class) = classify(name) {
            let constant = is_constant(name);
            let assignment = match name.starts_with('-') {
                true => AssignmentKind::Option,
                false if constant => AssignmentKind::Environment,
                false => AssignmentKind::Field,
            };
            let app_password =
                class == SecretClass::Password && trimmed.len() == 19 && is_app_password(trimmed);
            if app_password || is_secret(class, assignment, trimmed) {
                self.push(start, start + trimmed.len(), class.kind(), Precedence::ByName);
            } else if class == SecretClass::Key {
                self.scheme(start, trimmed);
            }
        }
    }

    /// The value of an authorization header: `Token …`, `ApiKey …`.
    fn scheme(&mut self, start: usize, value: &str) {
        if let Some((scheme, secret)) = value.split_once(' ')
            && scheme.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
            && is_secret(SecretClass::Token, AssignmentKind::Field, secret)
        {
            let from = start + scheme.len() + 1;
            self.push(from, from + secret.len(), SecretClass::Token.kind(), Precedence::ByName);
        }
    }
}

/// The end of a name that begins with a word for a password and continues, in a script other than
/// Latin, with whose password it is: "Пароль пользователя: …". Only a colon after it shows that.
fn qualified(text: &str, start: usize, end: usize) -> usize {
    let latin = text.as_bytes().get(start).is_none_or(u8::is_ascii);
    let rest = text.get(end..).filter(|rest| !latin && rest.starts_with(' ')).unwrap_or_default();
    let continues = |letter: &char| !letter.is_ascii() && *letter != '：' || *letter == ' ';
    let length: usize =
        rest.chars().take(MAX_QUALIFIER_CHARACTERS).take_while(continues).map(char::len_utf8).sum();
    let word = rest.get(..length).unwrap_or_default().trim_end();
    let colon = rest.get(length..).is_some_and(|rest| rest.starts_with([':', '：']));
    if colon { end + word.len() } else { end }
}
