//! The order of the pieces of a step. The format has none: reasoning stands before text, and text
//! before calls, which is how providers that separate them send them. `extra.unspool.parts` of our
//! own exports has the order, and the lengths of the texts that were joined.

use super::super::Fields;
use super::content::{Piece, pieces};

/// What our exports put between two texts of a step.
const SEPARATOR: &str = "\n\n";

/// One piece of a step.
pub(super) enum Entry<'a> {
    /// Text or reasoning, with its entry of `parts`.
    Text(String, Fields<'a>),
    Reasoning(String, Fields<'a>),
    Content(Piece),
    /// The n-th call of the step.
    Call(usize),
    /// A part that is in `parts` whole, or one of another kind whose text is the message.
    Part(Fields<'a>, Option<String>),
}

/// The pieces of a step. Texts that do not fit their lengths, because a person or a program changed
/// them, stay together in the order of the format.
pub(super) fn entries<'a>(fields: &Fields<'a>) -> Vec<Entry<'a>> {
    let own = fields.fields("extra").fields("unspool");
    let calls = fields.list("tool_calls").count();
    by_parts(fields, &own, calls).unwrap_or_else(|| in_plain_order(fields, &own, calls))
}

fn by_parts<'a>(fields: &Fields<'a>, own: &Fields<'a>, calls: usize) -> Option<Vec<Entry<'a>>> {
    own.list("parts").next()?;
    let message = fields.text("message")?;
    let thoughts = fields.text("reasoning_content").unwrap_or_default();
    let (mut said, mut thought) = (Cutter::new(&message), Cutter::new(&thoughts));
    let (mut entries, mut next_call, mut has_text) = (Vec::new(), 0, false);
    for part in own.list("parts") {
        let length = part.number("chars").map(|chars| usize::try_from(chars).unwrap_or(usize::MAX));
        let entry = match (part.text("kind").as_deref(), length) {
            (Some("reasoning"), Some(length)) => Entry::Reasoning(thought.cut(length)?, part),
            (Some("text"), Some(length)) => {
                has_text = true;
                Entry::Text(said.cut(length)?, part)
            }
            (Some("tool"), None) => {
                next_call += 1;
                Entry::Call(next_call - 1)
            }
            (_, Some(length)) => {
                has_text = true;
                Entry::Part(part, Some(said.cut(length)?))
            }
            (_, None) => Entry::Part(part, None),
        };
        entries.push(entry);
    }
    // The message of a system step for a part of another kind is a label.
    let is_label = !has_text && !fields.is("source", "agent");
    let is_whole = thought.is_done() && (said.is_done() || is_label) && next_call == calls;
    is_whole.then_some(entries)
}

fn in_plain_order<'a>(fields: &Fields<'a>, own: &Fields<'a>, calls: usize) -> Vec<Entry<'a>> {
    let thoughts = fields.string("reasoning_content").filter(|text| !text.is_empty());
    let thoughts = thoughts.map(|text| Entry::Reasoning(text, Fields::default()));
    let content = pieces(fields, "message").into_iter().map(Entry::Content);
    let whole = own.list("parts").filter(|part| !part.has("chars") && !part.is("kind", "tool"));
    let whole = whole.map(|part| Entry::Part(part, None));
    thoughts.into_iter().chain(content).chain((0..calls).map(Entry::Call)).chain(whole).collect()
}

/// Cuts a text that was joined.
struct Cutter<'t> {
    rest: &'t str,
    is_begun: bool,
}

impl<'t> Cutter<'t> {
    fn new(text: &'t str) -> Cutter<'t> {
        Cutter { rest: text, is_begun: false }
    }

    /// The next text of this many characters. None if there is none.
    fn cut(&mut self, length: usize) -> Option<String> {
        if length == 0 {
            return Some(String::new());
        }
        if std::mem::replace(&mut self.is_begun, true) {
            self.rest = self.rest.strip_prefix(SEPARATOR)?;
        }
        let mut ends = self.rest.char_indices().map(|(at, letter)| at + letter.len_utf8());
        let (text, rest) = self.rest.split_at(ends.nth(length - 1)?);
        self.rest = rest;
        Some(text.to_owned())
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}
