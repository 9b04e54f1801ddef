//! The one JSON lexer for text that may be cut off or malformed. It accepts any text: its tokens
//! cover all of it. `StringState` is its rule for strings and escapes, for readers that get a text
//! byte by byte.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// A string with its quotes.
    String,
    /// A string whose closing quote is missing.
    OpenString,
    Number,
    /// `true`, `false`, `null`, or another word in lower case.
    Word,
    /// One of `{`, `}`, `[`, `]`, `,` and `:`.
    Punctuation(u8),
    /// White space, and whatever is not JSON.
    Other,
}

/// A token and the bytes that it covers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub range: Range<usize>,
}

impl Token {
    /// The range of a string without its quotes; `None` for other tokens.
    pub fn content(&self) -> Option<Range<usize>> {
        let Range { start, end } = self.range;
        match self.kind {
            TokenKind::String => Some(start + 1..end - 1),
            TokenKind::OpenString => Some(start + 1..end),
            TokenKind::Number | TokenKind::Word | TokenKind::Punctuation(_) | TokenKind::Other => {
                None
            }
        }
    }
}

/// Splits a text into tokens.
#[derive(Clone, Debug)]
pub struct Lexer<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { bytes: text.as_bytes(), at: 0 }
    }

    /// True if a colon follows: the string before it is a key.
    pub fn is_before_colon(&self) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
    }

    /// The end of the run of matching bytes that begins with the current byte.
    fn run(&self, is: impl Fn(&u8) -> bool) -> usize {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        self.at + 1 + rest.iter().take_while(|byte| is(byte)).count()
    }

    fn string(&self) -> (TokenKind, usize) {
        let mut state = StringState::default();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        for (nth, byte) in rest.iter().enumerate() {
            state.take(*byte);
            if !state.is_inside() {
                return (TokenKind::String, self.at + nth + 1);
            }
        }
        (TokenKind::OpenString, self.bytes.len())
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let byte = *self.bytes.get(self.at)?;
        let (kind, end) = match byte {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => {
                let is_number = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                (TokenKind::Number, self.run(is_number))
            }
            b'a'..=b'z' => (TokenKind::Word, self.run(u8::is_ascii_alphanumeric)),
            _ if is_punctuation(byte) => (TokenKind::Punctuation(byte), self.at + 1),
            _ => (TokenKind::Other, self.run(|byte| !begins_token(*byte))),
        };
        let range = self.at..end;
        self.at = end;
        Some(Token { kind, range })
    }
}

fn is_punctuation(byte: u8) -> bool {
    matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b':')
}

fn begins_token(byte: u8) -> bool {
    matches!(byte, b'"' | b'-' | b'0'..=b'9' | b'a'..=b'z') || is_punctuation(byte)
}

/// Whether a reader of JSON is inside a string.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StringState {
    inside: bool,
    escaped: bool,
}

impl StringState {
    /// True between the opening and the closing quote.
    pub fn is_inside(self) -> bool {
        self.inside
    }

    /// Takes the next byte.
    pub fn take(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = self.inside,
            b'"' => self.inside = !self.inside,
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
