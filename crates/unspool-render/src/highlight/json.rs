//! A JSON lexer. Most tool input is JSON; it may exceed the grammar's size limit or be truncated.

use super::{SpanBuilder, Token, TokenSpans};

pub fn tokens(text: &str) -> TokenSpans {
    let bytes = text.as_bytes();
    let mut spans = SpanBuilder::default();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let (token, end) = match byte {
            b'"' => {
                let end = string_end(bytes, at);
                (if is_key(bytes, end) { Token::Property } else { Token::String }, end)
            }
            b'-' | b'0'..=b'9' => {
                let is_number = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                (Token::Number, run(bytes, at, is_number))
            }
            b'a'..=b'z' => (Token::Literal, run(bytes, at, u8::is_ascii_alphanumeric)),
            _ => {
                let stops = |byte: &u8| {
                    *byte != b'"'
                        && *byte != b'-'
                        && !byte.is_ascii_digit()
                        && !byte.is_ascii_lowercase()
                };
                (Token::Plain, run(bytes, at, stops))
            }
        };
        spans.add(token, at..end);
        at = end;
    }
    spans.0
}

/// The end of the run of matching bytes from `at`; always at least one byte.
fn run(bytes: &[u8], at: usize, is: impl Fn(&u8) -> bool) -> usize {
    let rest = bytes.get(at + 1..).unwrap_or_default();
    at + 1 + rest.iter().take_while(|byte| is(byte)).count()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

fn is_key(bytes: &[u8], end: usize) -> bool {
    let rest = bytes.get(end..).unwrap_or_default();
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}
