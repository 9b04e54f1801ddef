//! The objects that answers are made of. A field is an id or a number of ours, a word of the program,
//! or a text, and every text goes through the `Exit`: no tool can tell a text that did not.

use jiff::Timestamp;
use serde_json::{Map, Value};
use unspool_model::document;
use unspool_model::id::{PartId, SessionId, TurnId};

use crate::exit::Exit;

/// The longest text in a field that is not the subject of its answer: a title, a path, a name.
const MAX_FIELD_CHARS: usize = 400;
/// Titles without a name are cut after this many characters of the prompt, perhaps inside a secret.
const CUT_TITLE_CHARS: usize = 120;

/// Ids that Unspool derives: digests, which hold nothing of an agent.
pub trait OwnId: std::fmt::Display {}
impl OwnId for SessionId {}
impl OwnId for TurnId {}
impl OwnId for PartId {}

/// What may leave: made only by an [`Item`].
#[derive(Clone, PartialEq, Debug)]
pub struct SafeValue(Value);

impl SafeValue {
    pub fn into_value(self) -> Value {
        self.0
    }
}

/// An object under construction. Absent values are left out.
#[derive(Default)]
pub struct Item {
    fields: Map<String, Value>,
}

impl Item {
    pub fn new() -> Item {
        Item::default()
    }

    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    pub fn id(&mut self, name: &str, id: &impl OwnId) -> &mut Item {
        self.put(name, id.to_string());
        self
    }

    /// A word of the program, or a sentence.
    pub fn word(&mut self, name: &str, word: &'static str) -> &mut Item {
        self.put(name, word);
        self
    }

    pub fn number(&mut self, name: &str, number: impl Into<u64>) -> &mut Item {
        self.put(name, number.into());
        self
    }

    pub fn number_if(&mut self, name: &str, number: Option<impl Into<u64>>) -> &mut Item {
        if let Some(number) = number {
            self.number(name, number);
        }
        self
    }

    /// A count, left out if it is 0.
    pub fn count(&mut self, name: &str, number: u64) -> &mut Item {
        self.number_if(name, (number > 0).then_some(number))
    }

    pub fn amount(&mut self, name: &str, number: Option<f64>) -> &mut Item {
        if let Some(number) = number {
            self.put(name, number);
        }
        self
    }

    /// Left out if it is false.
    pub fn flag(&mut self, name: &str, flag: bool) -> &mut Item {
        if flag {
            self.put(name, true);
        }
        self
    }

    pub fn time(&mut self, name: &str, at: Option<Timestamp>) -> &mut Item {
        if let Some(at) = document::time(at) {
            self.put(name, at);
        }
        self
    }

    pub fn milliseconds(&mut self, name: &str, at: Option<i64>) -> &mut Item {
        self.time(name, at.and_then(|at| Timestamp::from_millisecond(at).ok()))
    }

    /// A short text of an agent or a user: a path, a name.
    pub fn field(&mut self, exit: &mut Exit<'_>, name: &str, text: Option<&str>) -> &mut Item {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.put(name, cut(&exit.text(text), MAX_FIELD_CHARS));
        }
        self
    }

    /// The title of a session. Without its last word if it was cut from a prompt: half a secret is
    /// none that a rule knows.
    pub fn title(&mut self, exit: &mut Exit<'_>, title: Option<&str>) -> &mut Item {
        let Some(title) = title else { return self };
        let whole = if title.chars().count() < CUT_TITLE_CHARS {
            title.to_owned()
        } else {
            format!("{}…", title.trim_end_matches(|c: char| !c.is_whitespace()))
        };
        self.field(exit, "title", Some(&whole))
    }

    pub fn fields<'t>(
        &mut self,
        exit: &mut Exit<'_>,
        name: &str,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> &mut Item {
        let texts: Vec<Value> =
            texts.into_iter().map(|text| cut(&exit.text(text), MAX_FIELD_CHARS).into()).collect();
        if !texts.is_empty() {
            self.put(name, texts);
        }
        self
    }

    /// The beginning of a text. Says how long it is if that is not all of it.
    pub fn text(&mut self, exit: &mut Exit<'_>, name: &str, text: &str, most: usize) -> &mut Item {
        if text.is_empty() {
            return self;
        }
        let text = exit.text(text);
        let chars = text.chars().count();
        if chars > most {
            self.put(&format!("{name}_chars"), chars);
        }
        self.put(name, cut(&text, most));
        self
    }

    /// A piece of a text that an [`Exit`] has released.
    pub fn piece(&mut self, name: &str, piece: &TextPiece) -> &mut Item {
        self.put(name, piece.text.as_str());
        self
    }

    pub fn list(&mut self, name: &str, items: Vec<SafeValue>) -> &mut Item {
        if !items.is_empty() {
            self.put(name, items.into_iter().map(SafeValue::into_value).collect::<Vec<_>>());
        }
        self
    }

    pub fn object(&mut self, name: &str, object: SafeValue) -> &mut Item {
        self.put(name, object.into_value());
        self
    }

    /// The object with only these fields.
    pub fn only(&mut self, names: &[&str]) -> SafeValue {
        self.fields.retain(|name, _| names.contains(&name.as_str()));
        self.done()
    }

    /// The length of its JSON so far.
    pub fn chars(&self) -> usize {
        let fields = self.fields.iter();
        fields.map(|(name, value)| name.len() + value.to_string().chars().count() + 4).sum()
    }

    pub fn done(&mut self) -> SafeValue {
        SafeValue(Value::Object(std::mem::take(&mut self.fields)))
    }
}

/// A piece of a released text, cut so that its JSON fits into a room.
pub struct TextPiece {
    text: String,
    /// Characters of the text before and behind it.
    pub from: usize,
    pub next: Option<usize>,
    /// Of the whole text.
    pub chars: usize,
}

impl TextPiece {
    /// The text from a character on, with at most `room` characters as JSON. At least one character:
    /// a reader always gets on.
    pub fn of(exit: &mut Exit<'_>, text: &str, from: usize, room: usize) -> TextPiece {
        let text = exit.text(text);
        let chars = text.chars().count();
        let mut used = 0;
        let mut piece = String::new();
        let mut taken = 0;
        for c in text.chars().skip(from) {
            used += json_chars(c);
            if used > room && taken > 0 {
                break;
            }
            piece.push(c);
            taken += 1;
        }
        let end = from.saturating_add(taken);
        TextPiece { text: piece, from, next: (end < chars).then_some(end), chars }
    }
}

/// The characters that JSON needs for one.
fn json_chars(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\t' | '\r' | '\u{8}' | '\u{c}' => 2,
        '\u{0}'..='\u{1f}' => 6,
        _ => 1,
    }
}

/// The beginning of a text, with an ellipsis if that is not all.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{kept}…")
        }
    }
}
