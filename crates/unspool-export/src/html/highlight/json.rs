//! Highlights JSON with the shared lexer. Most tool input is JSON; it may exceed the grammar's size
//! limit or be truncated.

use unspool_model::json::{Lexer, TokenKind};

use super::{SpanBuilder, Token, TokenSpans};

/// What follows this much text has no colours: markup around every number takes many times the
/// space of the number.
const MAX_COLOURED_BYTES: usize = 512 * 1024;

pub fn tokens(text: &str) -> TokenSpans {
    let mut spans = SpanBuilder::default();
    let mut lexer = Lexer::new(text);
    while let Some(found) = lexer.next() {
        if found.range.start > MAX_COLOURED_BYTES {
            spans.add(Token::Plain, found.range.start..text.len());
            break;
        }
        let token = match found.kind {
            TokenKind::String | TokenKind::OpenString if lexer.is_before_colon() => Token::Property,
            TokenKind::String | TokenKind::OpenString => Token::String,
            TokenKind::Number => Token::Number,
            TokenKind::Word => Token::Literal,
            TokenKind::Punctuation(_) | TokenKind::Other => Token::Plain,
        };
        spans.add(token, found.range);
    }
    spans.0
}
