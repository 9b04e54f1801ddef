//! Syntax highlighting: tokens for any surface, and HTML for pages. Never changes a character
//! (R-001-38). Texts that are too long or in an unknown language are not highlighted.

mod json;

use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use maud::{Markup, PreEscaped, html};
use rustc_hash::FxHashMap;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};
use syntect::util::LinesWithEndings;
use unspool_model::id::digest;
use unspool_view::lines::{Token, TokenSpans};

use crate::html::text::safe;

/// Longer texts are not highlighted: a page must not wait for it.
const MAX_TEXT_BYTES: usize = 24 * 1024;
const MAX_LINE_BYTES: usize = 800;
/// Size limit of the HTML cache. Cached because a growing text is painted again and again.
const MAX_CACHE_BYTES: usize = 16 * 1024 * 1024;

fn class(token: Token) -> Option<&'static str> {
    match token {
        Token::Plain => None,
        Token::Keyword => Some("hl-k"),
        Token::String => Some("hl-s"),
        Token::Comment => Some("hl-c"),
        Token::Number => Some("hl-n"),
        Token::Literal => Some("hl-l"),
        Token::Function => Some("hl-f"),
        Token::Type => Some("hl-t"),
        Token::Tag => Some("hl-g"),
        Token::Attribute => Some("hl-a"),
        Token::Property => Some("hl-p"),
    }
}

/// The tokens of a text; they cover all of it. `None` if it cannot be highlighted.
pub fn tokens(language: &str, text: &str) -> Option<TokenSpans> {
    if matches!(language, "json" | "jsonc" | "jsonl") {
        return Some(json::tokens(text));
    }
    if text.len() > MAX_TEXT_BYTES || text.lines().any(|line| line.len() > MAX_LINE_BYTES) {
        return None;
    }
    let syntax = SYNTAXES.find_syntax_by_token(language)?;
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut spans = SpanBuilder::default();
    let mut start = 0;
    for line in LinesWithEndings::from(text) {
        let mut at = 0;
        for (end, change) in state.parse_line(line, &SYNTAXES).ok()? {
            spans.add(token_of(&stack), start + at..start + end);
            at = end;
            stack.apply(&change).ok()?;
        }
        spans.add(token_of(&stack), start + at..start + line.len());
        start += line.len();
    }
    Some(spans.0)
}

/// Loads the most common grammars ahead of time.
pub fn warm_up() {
    for language in
        ["typescript", "rust", "python", "sh", "javascript", "go", "toml", "yaml", "html"]
    {
        tokens(language, "let x = \"y\"; // 1\n");
    }
}

/// Collects token spans and merges adjacent ones of the same kind.
#[derive(Default)]
struct SpanBuilder(TokenSpans);

impl SpanBuilder {
    fn add(&mut self, token: Token, range: Range<usize>) {
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some((last, held)) if *last == token && held.end == range.start => {
                held.end = range.end;
            }
            Some(_) | None => self.0.push((token, range)),
        }
    }
}

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Token kinds by scope prefix; the first match wins.
const SCOPE_TOKENS: &[(&str, Token)] = &[
    ("comment", Token::Comment),
    ("string", Token::String),
    ("constant.numeric", Token::Number),
    ("constant", Token::Literal),
    ("keyword.operator", Token::Plain),
    ("keyword", Token::Keyword),
    ("storage", Token::Keyword),
    ("entity.name.function", Token::Function),
    ("support.function", Token::Function),
    ("variable.function", Token::Function),
    ("entity.name.tag", Token::Tag),
    ("entity.other.attribute-name", Token::Attribute),
    ("entity.name.section", Token::Keyword),
    ("entity.name", Token::Type),
    ("support.type.property-name", Token::Property),
    ("support.type", Token::Type),
    ("support.class", Token::Type),
    ("markup.heading", Token::Keyword),
    ("markup.inserted", Token::String),
    ("markup.deleted", Token::Number),
];

static SELECTORS: LazyLock<Vec<(Scope, Token)>> = LazyLock::new(|| {
    let selector = |(name, token): &(&str, Token)| Some((Scope::new(name).ok()?, *token));
    SCOPE_TOKENS.iter().filter_map(selector).collect()
});

fn token_of(stack: &ScopeStack) -> Token {
    let scopes = stack.as_slice().iter().rev();
    let of = |scope: &Scope| {
        let fits = |(selector, _): &&(Scope, Token)| selector.is_prefix_of(*scope);
        SELECTORS.iter().find(fits).map(|(_, token)| *token)
    };
    scopes.filter_map(of).next().unwrap_or(Token::Plain)
}

#[derive(Default)]
struct HtmlCache {
    entries: FxHashMap<u64, Arc<str>>,
    bytes: usize,
}

static HTML_CACHE: LazyLock<Mutex<HtmlCache>> = LazyLock::new(Mutex::default);

/// Paints highlighted code as HTML.
pub fn paint(language: Option<&str>, text: &str) -> Markup {
    let Some(language) = language.map(str::to_ascii_lowercase) else {
        return html! { (safe(text)) };
    };
    let key = digest(text.as_bytes()) ^ digest(language.as_bytes()).rotate_left(7);
    let held = HTML_CACHE.lock().unwrap_or_else(PoisonError::into_inner).entries.get(&key).cloned();
    if let Some(held) = held {
        return PreEscaped(held.to_string());
    }
    let Some(tokens) = tokens(&language, text) else { return html! { (safe(text)) } };
    let painted = html! {
        @for (token, range) in tokens {
            @let text = text.get(range).unwrap_or_default();
            @match class(token) {
                Some(class) => span class=(class) { (safe(text)) },
                None => (safe(text)),
            }
        }
    };
    let mut cache = HTML_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.bytes > MAX_CACHE_BYTES {
        *cache = HtmlCache::default();
    }
    cache.bytes += painted.0.len();
    cache.entries.insert(key, Arc::from(painted.0.as_str()));
    painted
}

#[cfg(test)]
#[path = "highlight_tests.rs"]
mod tests;
