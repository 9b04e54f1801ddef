//! Colours of code, which somebody else finds: reading a grammar may take a tenth of a second, and
//! whoever lays out must not wait. A lookup gives what is known by now.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use unicode_segmentation::GraphemeCursor;

use super::{Line, Role, Style};
use crate::block::Code;

/// What a stretch of code is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Token {
    Plain,
    Keyword,
    String,
    Comment,
    Number,
    Literal,
    Function,
    Type,
    Tag,
    Attribute,
    /// The name of a field.
    Property,
}

/// The stretches of a text in their order, by bytes. What no stretch covers is plain.
pub type Stretches = Vec<(Token, Range<usize>)>;

/// Knows colours, or will.
pub trait Colours: Debug {
    /// The stretches of a text in a language, where they are known.
    fn of(&self, language: &str, text: &str) -> Option<Arc<Stretches>>;
}

/// The colours of one block of code, line after line.
pub struct Coloured {
    stretches: Option<Arc<Stretches>>,
    /// The first stretch that may still be seen: lines are asked for in their order.
    next: usize,
}

impl Coloured {
    pub fn of(code: &Code, colours: Option<&dyn Colours>) -> Coloured {
        let stretches = match (&code.language, colours) {
            (Some(language), Some(colours)) => colours.of(language, &code.text),
            (_, _) => None,
        };
        Coloured { stretches, next: 0 }
    }

    /// A line of the text that starts at a byte of it. No colour changes what the line says or how
    /// it breaks: stretches end between signs.
    pub fn line(&mut self, start: usize, text: &str, base: &Style) -> Line {
        let Some(stretches) = &self.stretches else { return Line::of(text, base.clone()) };
        let mut line = Line::default();
        let mut at = 0;
        while at < text.len() {
            let found = stretches.get(self.next);
            match found {
                Some((_, range)) if range.end <= start + at => self.next += 1,
                Some((token, range)) if range.start <= start + at => {
                    let end = sign_end(text, range.end - start);
                    line.push(text.get(at..end).unwrap_or_default(), styled(*token, base));
                    at = end;
                }
                Some((_, range)) => {
                    let end = sign_end(text, range.start - start);
                    line.push(text.get(at..end).unwrap_or_default(), base.clone());
                    at = end;
                }
                None => {
                    line.push(text.get(at..).unwrap_or_default(), base.clone());
                    at = text.len();
                }
            }
        }
        line
    }
}

fn styled(token: Token, base: &Style) -> Style {
    match token {
        Token::Plain => base.clone(),
        Token::Keyword
        | Token::String
        | Token::Comment
        | Token::Number
        | Token::Literal
        | Token::Function
        | Token::Type
        | Token::Tag
        | Token::Attribute
        | Token::Property => Style { role: Role::Token(token), ..base.clone() },
    }
}

/// The end of the sign that a byte stands in or behind.
fn sign_end(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let mut at = at;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    // Almost always two ASCII characters meet here, and no sign spans those.
    let is_ascii = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii);
    if at == 0 || (is_ascii(at) && is_ascii(at - 1)) {
        return at;
    }
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(true) => at,
        Ok(false) | Err(_) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
    }
}
