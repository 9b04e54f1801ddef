//! Syntax highlighting of code lines. The caller provides a `Highlighter` as the source of tokens:
//! loading a grammar may take 100 ms, and layout must not block. A lookup returns the tokens that
//! are ready.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use unicode_segmentation::GraphemeCursor;

use super::{Line, Style, TextRole};
use crate::block::Code;

/// Token kinds.
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

/// Token kinds by byte range, in order. Uncovered text is plain.
pub type TokenSpans = Vec<(Token, Range<usize>)>;

/// Source of tokens; may compute them in the background.
pub trait Highlighter: Debug {
    /// The tokens of a text, or `None` if they are not available yet.
    fn of(&self, language: &str, text: &str) -> Option<Arc<TokenSpans>>;
}

/// The tokens of one code block, consumed line by line.
pub struct HighlightedCode {
    spans: Option<Arc<TokenSpans>>,
    /// Index of the first token that may still be needed. Lines must be requested in order.
    next: usize,
}

impl HighlightedCode {
    pub fn of(code: &Code, colours: Option<&dyn Highlighter>) -> HighlightedCode {
        let spans = match (&code.language, colours) {
            (Some(language), Some(colours)) => colours.of(language, &code.text),
            (_, _) => None,
        };
        HighlightedCode { spans, next: 0 }
    }

    /// The highlighted line that starts at byte `start` of the block. Highlighting changes neither
    /// the text nor the line breaks: a token ends only between graphemes.
    pub fn line(&mut self, start: usize, text: &str, base: &Style) -> Line {
        let Some(spans) = &self.spans else { return Line::of(text, base.clone()) };
        let mut line = Line::default();
        let mut at = 0;
        while at < text.len() {
            let found = spans.get(self.next);
            match found {
                Some((_, range)) if range.end <= start + at => self.next += 1,
                Some((token, range)) if range.start <= start + at => {
                    let end = grapheme_end(text, range.end - start);
                    line.push(text.get(at..end).unwrap_or_default(), token_style(*token, base));
                    at = end;
                }
                Some((_, range)) => {
                    let end = grapheme_end(text, range.start - start);
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

fn token_style(token: Token, base: &Style) -> Style {
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
        | Token::Property => Style { role: TextRole::Token(token), ..base.clone() },
    }
}

/// The first grapheme boundary at or after byte `at`.
fn grapheme_end(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let mut at = at;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    // Fast path: between two ASCII characters there is always a boundary.
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
