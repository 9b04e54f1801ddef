//! Answers: one JSON object with a list, bounded in characters. What does not fit is left for the
//! next answer, which a client asks for with the cursor `next`.

use serde_json::{Map, Value};

use crate::item::{SafeValue, cut};

/// The longest answer in characters of its JSON, unless a client asks for another length.
pub const DEFAULT_LIMIT: usize = 8_000;
pub const MIN_LIMIT: usize = 2_000;
pub const MAX_LIMIT: usize = 40_000;

/// Room for the fields that end an answer, and for the longest cursor.
const END_CHARS: usize = 160;
/// The lengths to which the texts of an item are cut until it fits.
const CUTS: [usize; 6] = [1000, 400, 160, 60, 20, 4];

/// A finished answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    document: Value,
}

impl Answer {
    pub fn into_document(self) -> Value {
        self.document
    }

    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The length that is limited.
    pub fn chars(&self) -> usize {
        chars(&self.document)
    }
}

/// An answer under construction.
pub struct AnswerBuilder {
    limit: usize,
    head: Map<String, Value>,
    list: &'static str,
    items: Vec<Value>,
    used: usize,
}

impl AnswerBuilder {
    /// An answer with these fields, and items in the field `list`.
    pub fn new(limit: usize, head: SafeValue, list: &'static str) -> AnswerBuilder {
        let room = limit.saturating_sub(END_CHARS + list.len()) / 2;
        let head = shrink(head.into_value(), room);
        let used = chars(&head) + list.len() + 6 + END_CHARS;
        let head = if let Value::Object(fields) = head { fields } else { Map::new() };
        AnswerBuilder { limit, head, list, items: Vec::new(), used }
    }

    /// The characters that are left.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.used + 1)
    }

    /// Adds an item. False if it does not fit: the answer is full. The first item always fits, with
    /// shorter texts if it must, so that a client gets on.
    #[must_use]
    pub fn push(&mut self, item: SafeValue) -> bool {
        let mut item = item.into_value();
        let mut length = chars(&item);
        if length > self.room() {
            if !self.items.is_empty() {
                return false;
            }
            item = shrink(item, self.room());
            length = chars(&item);
        }
        self.used += length + 1;
        self.items.push(item);
        true
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The answer. `next`: the cursor behind its last item, if there are more.
    pub fn finish(self, next: Option<String>) -> Answer {
        let mut document = self.head;
        document.insert(self.list.to_owned(), Value::Array(self.items));
        document.insert("truncated".to_owned(), next.is_some().into());
        document.insert("next".to_owned(), next.map_or(Value::Null, Value::from));
        Answer { document: Value::Object(document) }
    }
}

/// The value with texts short enough for a room. Names and numbers are few, and stay.
fn shrink(mut value: Value, room: usize) -> Value {
    for most in CUTS {
        if chars(&value) <= room {
            return value;
        }
        cut_texts(&mut value, most);
    }
    if chars(&value) > room {
        cut_lists(&mut value);
    }
    value
}

fn cut_texts(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if !is_id(text) => *text = cut(text, most),
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, most)),
        Value::Object(fields) => fields.values_mut().for_each(|field| cut_texts(field, most)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Half an id leads nowhere.
fn is_id(text: &str) -> bool {
    text.len() <= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn cut_lists(value: &mut Value) {
    match value {
        Value::Array(items) => items.clear(),
        Value::Object(fields) => fields.values_mut().for_each(cut_lists),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The length of a value's JSON in characters.
fn chars(value: &Value) -> usize {
    value.to_string().chars().count()
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
