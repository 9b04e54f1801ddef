//! Parses incomplete JSON as AI SDK clients do: the tool input shown while the model writes it. The
//! SDK's rule has quirks (the exponent of a number is ignored until something valid follows it).
//! They are reproduced, since a client that follows a stream must get the value of an export.

use serde_json::Value;
use unspool_core::json::{Json, mended};

/// The value of the text so far, if any.
pub fn value(text: &str) -> Option<Json> {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok().map(|_| Json::checked(text));
    let text = mended(text);
    read(&text).or_else(|| read(&completed(&text)))
}

/// Parser states. The stack below the top holds the states to return to.
#[derive(Clone, Copy, PartialEq, Debug)]
enum At {
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
    stack: Vec<At>,
    /// The length of the prefix that is valid once open values are closed.
    valid: usize,
}

/// The valid prefix with all open values closed.
fn completed(text: &str) -> String {
    let mut reader = Reader { text, stack: vec![At::Root], valid: 0 };
    for (at, c) in text.char_indices() {
        reader.step(at, c);
    }
    let mut whole = text[..reader.valid].to_owned();
    for open in reader.stack.iter().rev() {
        match open {
            At::Text => whole.push('"'),
            At::Word(from) => {
                let begun = &text[*from..];
                whole.push_str(word(begun).map_or("", |word| &word[begun.len()..]));
            }
            At::ObjectStart | At::Key | At::Colon | At::FieldValue | At::FieldEnd | At::NextKey => {
                whole.push('}');
            }
            At::ListStart | At::ItemEnd | At::NextItem => whole.push(']'),
            At::Root | At::End | At::Escape | At::Digits(_) | At::Number => {}
        }
    }
    whole
}

impl Reader<'_> {
    fn step(&mut self, at: usize, c: char) {
        let Some(state) = self.stack.last().copied() else { return };
        let behind = at + c.len_utf8();
        match (state, c) {
            (At::Root, c) => self.value(at, c, At::End),
            (At::FieldValue, c) => self.value(at, c, At::FieldEnd),
            (At::ListStart, ']') | (At::ItemEnd, ']') => self.close(behind),
            (At::ListStart | At::NextItem, c) => {
                if state == At::ListStart {
                    self.valid = behind;
                }
                self.value(at, c, At::ItemEnd);
            }
            (At::ItemEnd, ',') => self.turn(At::NextItem),
            (At::ItemEnd, _) => self.valid = behind,
            (At::ObjectStart | At::FieldEnd, '}') => self.close(behind),
            (At::ObjectStart | At::NextKey, '"') => self.turn(At::Key),
            (At::Key, '"') => self.turn(At::Colon),
            (At::Colon, ':') => self.turn(At::FieldValue),
            (At::FieldEnd, ',') => self.turn(At::NextKey),
            (At::Text, '"') => self.close(behind),
            (At::Text, '\\') => self.stack.push(At::Escape),
            (At::Text, _) => self.valid = behind,
            (At::Escape, 'u') => self.turn(At::Digits(4)),
            (At::Escape, _) | (At::Digits(1), _) => self.close(behind),
            (At::Digits(missing), _) => self.turn(At::Digits(missing.saturating_sub(1))),
            (At::Number, '0'..='9') => self.valid = behind,
            (At::Number, '-' | '.' | 'e' | 'E') => {}
            (At::Number, c) => self.leave(at, c),
            (At::Word(from), c) if word(&self.text[from..behind]).is_none() => self.leave(at, c),
            (At::Word(_), _) => self.valid = behind,
            (At::End | At::ObjectStart | At::NextKey | At::Key | At::Colon | At::FieldEnd, _) => {}
        }
    }

    fn turn(&mut self, to: At) {
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
            Some(At::FieldEnd) => matches!(c, ',' | '}'),
            Some(At::ItemEnd) => matches!(c, ',' | ']'),
            Some(_) | None => false,
        };
        if goes_on {
            self.step(at, c);
        }
    }

    /// Starts a value; `after` is the state that follows it.
    fn value(&mut self, at: usize, c: char, after: At) {
        let inside = match c {
            '"' => At::Text,
            't' | 'f' | 'n' => At::Word(at),
            '-' | '0'..='9' => At::Number,
            '{' => At::ObjectStart,
            '[' => At::ListStart,
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
