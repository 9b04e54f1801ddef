//! Parses incomplete JSON as AI SDK clients do: the tool input shown while the model writes it. The
//! SDK's rule has quirks (the exponent of a number is ignored until something valid follows it).
//! They are reproduced, since a client that follows a stream must get the value of an export.

use serde_json::Value;
use unspool_model::json::{Json, replace_lone_surrogates};

/// The value of the text so far, if any.
pub fn value(text: &str) -> Option<Json> {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok().map(|_| Json::checked(text));
    let text = replace_lone_surrogates(text);
    read(&text).or_else(|| read(&completed(&text)))
}

/// Parser states. The stack below the top holds the states to return to.
#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Root,
    /// After the top-level value.
    End,
    Text,
    Escape,
    /// How many digits of `\uXXXX` are missing.
    Digits(u8),
    Number,
    /// The offset where a word (`true`) starts.
    Word(usize),
    ObjectStart,
    Key,
    Colon,
    FieldValue,
    FieldEnd,
    /// Behind a comma in an object.
    NextKey,
    ListStart,
    ItemEnd,
    /// Behind a comma in a list.
    NextItem,
}

const WORDS: [&str; 3] = ["true", "false", "null"];

fn word(begun: &str) -> Option<&'static str> {
    WORDS.into_iter().find(|word| word.starts_with(begun))
}

struct Reader<'t> {
    text: &'t str,
    stack: Vec<State>,
    /// The length of the prefix that is valid once open values are closed.
    valid: usize,
}

/// The valid prefix with all open values closed.
fn completed(text: &str) -> String {
    let mut reader = Reader { text, stack: vec![State::Root], valid: 0 };
    for (at, c) in text.char_indices() {
        reader.step(at, c);
    }
    let mut whole = text[..reader.valid].to_owned();
    for open in reader.stack.iter().rev() {
        match open {
            State::Text => whole.push('"'),
            State::Word(from) => {
                let begun = &text[*from..];
                whole.push_str(word(begun).map_or("", |word| &word[begun.len()..]));
            }
            State::ObjectStart
            | State::Key
            | State::Colon
            | State::FieldValue
            | State::FieldEnd
            | State::NextKey => {
                whole.push('}');
            }
            State::ListStart | State::ItemEnd | State::NextItem => whole.push(']'),
            State::Root | State::End | State::Escape | State::Digits(_) | State::Number => {}
        }
    }
    whole
}

impl Reader<'_> {
    fn step(&mut self, at: usize, c: char) {
        let Some(state) = self.stack.last().copied() else { return };
        let behind = at + c.len_utf8();
        match (state, c) {
            (State::Root, c) => self.value(at, c, State::End),
            (State::FieldValue, c) => self.value(at, c, State::FieldEnd),
            (State::ListStart, ']') | (State::ItemEnd, ']') => self.close(behind),
            (State::ListStart | State::NextItem, c) => {
                if state == State::ListStart {
                    self.valid = behind;
                }
                self.value(at, c, State::ItemEnd);
            }
            (State::ItemEnd, ',') => self.turn(State::NextItem),
            (State::ItemEnd, _) => self.valid = behind,
            (State::ObjectStart | State::FieldEnd, '}') => self.close(behind),
            (State::ObjectStart | State::NextKey, '"') => self.turn(State::Key),
            (State::Key, '"') => self.turn(State::Colon),
            (State::Colon, ':') => self.turn(State::FieldValue),
            (State::FieldEnd, ',') => self.turn(State::NextKey),
            (State::Text, '"') => self.close(behind),
            (State::Text, '\\') => self.stack.push(State::Escape),
            (State::Text, _) => self.valid = behind,
            (State::Escape, 'u') => self.turn(State::Digits(4)),
            (State::Escape, _) | (State::Digits(1), _) => self.close(behind),
            (State::Digits(missing), _) => self.turn(State::Digits(missing.saturating_sub(1))),
            (State::Number, '0'..='9') => self.valid = behind,
            (State::Number, '-' | '.' | 'e' | 'E') => {}
            (State::Number, c) => self.leave(at, c),
            (State::Word(from), c) if word(&self.text[from..behind]).is_none() => self.leave(at, c),
            (State::Word(_), _) => self.valid = behind,
            (
                State::End
                | State::ObjectStart
                | State::NextKey
                | State::Key
                | State::Colon
                | State::FieldEnd,
                _,
            ) => {}
        }
    }

    fn turn(&mut self, to: State) {
        self.stack.pop();
        self.stack.push(to);
    }

    fn close(&mut self, behind: usize) {
        self.valid = behind;
        self.stack.pop();
    }

    /// The character that ends a number or word belongs to the enclosing value: pass it on.
    fn leave(&mut self, at: usize, c: char) {
        self.stack.pop();
        let goes_on = match self.stack.last() {
            Some(State::FieldEnd) => matches!(c, ',' | '}'),
            Some(State::ItemEnd) => matches!(c, ',' | ']'),
            Some(_) | None => false,
        };
        if goes_on {
            self.step(at, c);
        }
    }

    /// Starts a value; `after` is the state that follows it.
    fn value(&mut self, at: usize, c: char, after: State) {
        let inside = match c {
            '"' => State::Text,
            't' | 'f' | 'n' => State::Word(at),
            '-' | '0'..='9' => State::Number,
            '{' => State::ObjectStart,
            '[' => State::ListStart,
            _ => return,
        };
        if c != '-' {
            self.valid = at + 1;
        }
        self.turn(after);
        self.stack.push(inside);
    }
}

#[cfg(test)]
#[path = "partial_tests.rs"]
mod tests;
