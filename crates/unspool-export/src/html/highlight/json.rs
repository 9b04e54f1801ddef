//! Highlights JSON with the shared lexer. Most tool input is JSON; it may exceed the grammar's size
//! limit or be truncated.

use unspool_model::json::{Lexer, TokenKind};

use super::{SpanBuilder, Token, TokenSpans};

pub fn tokens(text: &str) -> TokenSpans {
    let mut spans = SpanBuilder::default();
    let mut lexer = Lexer::new(text);
    while let Some(found) = lexer.next() {
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
