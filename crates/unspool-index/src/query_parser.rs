//! Reads what the user typed as a query.
//!
//! ```text
//! alpha beta        both words, anywhere
//! alph*             a word with this prefix
//! "to be, or"       this exact fragment, also inside words
//! src/main.rs       a phrase, because of its punctuation: as it is written
//! *alph             a fragment, possibly inside a word
//! rm -rf build      a phrase, because of its flag: a command line is searched as it is written
//! alpha -gamma      not this word; likewise alpha -gam* and alpha -"a fragment"
//! alpha NOT gamma   not this word, whatever it looks like
//! ```
//!
//! A word behind a `-` is excluded, unless the `-` makes it a flag (`is_flag`), the query is a
//! command line (`is_command_line`), or nothing is before it. The words beside a flag, up to the
//! next quote, star or exclusion, are one phrase with it. `NOT` excludes what follows, unless it is
//! the first or the last word or a word in capitals follows, as in SQL (`NOT NULL`).
//!
//! No query is an error. Case is ignored. An unclosed quote extends to the end of the query. Only a
//! quote before white space or the end closes, so a quoted fragment may contain quotes
//! (`"key":"value"`).

use super::chars::{CharClass, char_class};
use super::query::{Condition, ConditionKind, TextQuery, words};

/// Conditions beyond this number are ignored.
const MAX_CONDITIONS: usize = 64;

/// The longest word behind a single `-` that is a flag: `-rf`, `-la`, `-C`, `-O2`, `-jar`.
const MAX_FLAG_CHARS: usize = 3;

/// Commands with longer flags behind a single `-`: `find . -name`, `tar -xzvf`, `gcc -Wall`. A query
/// that begins with one is a command line.
const SINGLE_DASH_COMMANDS: &[&str] = &[
    "cc",
    "clang",
    "clang++",
    "curl",
    "ffmpeg",
    "find",
    "g++",
    "gcc",
    "go",
    "java",
    "javac",
    "kill",
    "ls",
    "netstat",
    "openssl",
    "powershell",
    "ps",
    "pwsh",
    "rsync",
    "set",
    "ss",
    "tar",
    "terraform",
];

/// Another way to read what was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherReading {
    pub kind: OtherReadingKind,
    /// A query that has only this reading.
    pub query: String,
}

/// What another reading does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherReadingKind {
    /// It excludes words that were read as flags.
    Exclusion,
    /// It searches for everything as it is written.
    AsWritten,
    /// It searches for the pieces of a command line, anywhere in a part.
    Pieces,
}

/// What was typed, up to the next white space or closing quote.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Token<'t> {
    /// Without the quotes, and without the `-` before a quote.
    text: &'t str,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Quoted,
    /// `-"a fragment"`.
    ExcludedQuote,
    Starred,
    /// `-alph*`.
    ExcludedPrefix,
    /// `-alpha`, and it is an exclusion.
    Excluded,
    /// `NOT`, and it is an operator.
    Not,
    /// Makes the words beside it a phrase: `-rf`, `--all`, `NOT` before a word in capitals.
    Flag,
    Plain,
}

impl TextQuery {
    /// Reads a query as typed by the user.
    pub fn parse(typed: &str) -> TextQuery {
        let mut query = TextQuery::default();
        let tokens = tokens(typed);
        let mut rest = tokens.as_slice();
        while let Some((first, behind)) = rest.split_first() {
            let (stretch, behind_stretch) = split_stretch(rest);
            if stretch.iter().any(|token| token.shape == Shape::Flag) {
                let phrase = Condition::new(ConditionKind::Phrase, &join(stretch));
                query.add(false, Some(phrase));
                rest = behind_stretch;
            } else if !stretch.is_empty() {
                stretch.iter().for_each(|token| query.add(false, token.condition()));
                rest = behind_stretch;
            } else if let (Shape::Not, Some((next, behind))) = (first.shape, behind.split_first()) {
                query.add(true, next.condition());
                rest = behind;
            } else {
                query.add(first.is_exclusion(), first.condition());
                rest = behind;
            }
        }
        query
    }

    fn add(&mut self, excluded: bool, condition: Option<Condition>) {
        if self.conditions.len() + self.excluded.len() < MAX_CONDITIONS {
            let list = if excluded { &mut self.excluded } else { &mut self.conditions };
            list.extend(condition.filter(|condition| !list.contains(condition)));
        }
    }

    /// Other ways to read what was typed, the likeliest first. None if there is only one.
    pub fn other_readings(typed: &str) -> Vec<OtherReading> {
        let tokens = tokens(typed);
        let flags = tokens.iter().any(|token| token.shape == Shape::Flag);
        let reading = |kind, query: Option<String>| Some(OtherReading { kind, query: query? });
        let all = if flags {
            let pieces = reading(OtherReadingKind::Pieces, pieces(&tokens));
            [reading(OtherReadingKind::Exclusion, exclusion(&tokens)), pieces]
        } else {
            [reading(OtherReadingKind::AsWritten, as_written(&tokens)), None]
        };
        all.into_iter().flatten().collect()
    }
}

impl Token<'_> {
    /// True if it excludes itself.
    fn is_exclusion(self) -> bool {
        matches!(self.shape, Shape::ExcludedQuote | Shape::ExcludedPrefix | Shape::Excluded)
    }

    /// Its text as a condition; None for a quote of white space only.
    fn condition(self) -> Option<Condition> {
        match self.shape {
            Shape::Quoted | Shape::ExcludedQuote => (!self.text.trim().is_empty())
                .then(|| Condition::new(ConditionKind::Fragment, self.text)),
            Shape::Excluded | Shape::ExcludedPrefix => {
                Some(unquoted(self.text.strip_prefix('-').unwrap_or(self.text)))
            }
            Shape::Starred | Shape::Not | Shape::Flag | Shape::Plain => Some(unquoted(self.text)),
        }
    }

    /// As it was typed.
    fn typed(self) -> String {
        match self.shape {
            Shape::Quoted => format!("\"{}\"", self.text),
            Shape::ExcludedQuote => format!("-\"{}\"", self.text),
            Shape::Starred
            | Shape::ExcludedPrefix
            | Shape::Excluded
            | Shape::Not
            | Shape::Flag
            | Shape::Plain => self.text.to_owned(),
        }
    }
}

// ── Tokens ──────────────────────────────────────────────────────────────────────────────────

fn tokens(typed: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut rest = typed.trim_start();
    while !rest.is_empty() {
        let (token, behind) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_token(quoted, Shape::Quoted)
        } else if let Some(quoted) = rest.strip_prefix("-\"") {
            quoted_token(quoted, Shape::ExcludedQuote)
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (text, behind) = rest.split_at(end);
            (Token { text, shape: Shape::Plain }, behind)
        };
        rest = behind.trim_start();
        tokens.push(token);
    }
    let command_line = is_command_line(&tokens);
    for at in 0..tokens.len() {
        let shape = shape_at(&tokens, at, command_line);
        if let Some(token) = tokens.get_mut(at) {
            token.shape = shape;
        }
    }
    tokens
}

/// The fragment after an opening quote, and the rest of the query.
fn quoted_token(quoted: &str, shape: Shape) -> (Token<'_>, &str) {
    let closes = |at: &usize| quoted[at + 1..].chars().next().is_none_or(char::is_whitespace);
    let end = memchr::memchr_iter(b'"', quoted.as_bytes()).find(closes);
    let (text, behind) = match end {
        Some(end) => (&quoted[..end], &quoted[end + 1..]),
        None => (quoted, ""),
    };
    (Token { text, shape }, behind)
}

fn shape_at(tokens: &[Token<'_>], at: usize, command_line: bool) -> Shape {
    let Some(Token { text, shape }) = tokens.get(at).copied() else { return Shape::Plain };
    if shape != Shape::Plain {
        return shape;
    }
    let first = at == 0;
    let dashed = dashed_word(text);
    let stem = text.trim_matches('*');
    if stem != text && dashed.is_some_and(|word| is_one_word(word.trim_end_matches('*'))) {
        return Shape::ExcludedPrefix;
    }
    if stem != text && has_word(stem) {
        return Shape::Starred;
    }
    if is_flag(text) || (dashed.is_some() && (first || command_line)) {
        return Shape::Flag;
    }
    if dashed.is_some() {
        return Shape::Excluded;
    }
    match tokens.get(at + 1) {
        Some(next) if text == "NOT" && next.shape == Shape::Plain && is_in_capitals(next.text) => {
            Shape::Flag
        }
        Some(_) if text == "NOT" && !first => Shape::Not,
        Some(_) | None => Shape::Plain,
    }
}

/// The word behind a single `-`. A `-` before punctuation is no more than that: `->`, `-`.
fn dashed_word(text: &str) -> Option<&str> {
    let word = text.strip_prefix('-')?;
    word.chars().next().is_some_and(|it| char_class(it) != CharClass::Separator).then_some(word)
}

/// True for `--save-dev`, `-rf`, `-std=c++20` and `-273.15`.
fn is_flag(text: &str) -> bool {
    if let Some(word) = text.strip_prefix("--") {
        return word.chars().next().is_some_and(|it| it.is_ascii_alphanumeric());
    }
    let Some(word) = dashed_word(text) else { return false };
    let is_short =
        word.len() <= MAX_FLAG_CHARS && word.chars().all(|it| it.is_ascii_alphanumeric());
    is_short || word.contains('=') || word.starts_with(|it: char| it.is_ascii_digit())
}

/// True if one of the words is a flag for certain, or the first is a command with long flags.
fn is_command_line(tokens: &[Token<'_>]) -> bool {
    let mut plain = tokens.iter().filter(|token| token.shape == Shape::Plain);
    let first = tokens.first().filter(|token| token.shape == Shape::Plain);
    first.is_some_and(|token| SINGLE_DASH_COMMANDS.contains(&token.text))
        || plain.any(|token| is_flag(token.text))
}

fn is_in_capitals(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)
}

/// A condition without quotes or white space.
fn unquoted(typed: &str) -> Condition {
    let stem = typed.trim_matches('*');
    let one = is_one_word(stem);
    if typed == stem {
        Condition::new(if one { ConditionKind::Word } else { ConditionKind::Phrase }, typed)
    } else if one && typed.starts_with(stem) {
        Condition::new(ConditionKind::Prefix, stem)
    } else if has_word(stem) {
        Condition::new(ConditionKind::Fragment, stem)
    } else {
        Condition::new(ConditionKind::Fragment, typed)
    }
}

fn is_one_word(text: &str) -> bool {
    matches!(words(text).as_slice(), [(_, word)] if word.len() == text.len())
}

fn has_word(text: &str) -> bool {
    text.chars().any(|it| char_class(it) != CharClass::Separator)
}

// ── Command lines and other readings ────────────────────────────────────────────────────────

/// Splits off the first tokens, up to the next quote, star or exclusion.
fn split_stretch<'s, 't>(tokens: &'s [Token<'t>]) -> (&'s [Token<'t>], &'s [Token<'t>]) {
    let is_text = |token: &&Token<'_>| matches!(token.shape, Shape::Flag | Shape::Plain);
    tokens.split_at(tokens.iter().take_while(is_text).count())
}

fn join(tokens: &[Token<'_>]) -> String {
    let texts: Vec<&str> = tokens.iter().map(|token| token.text).collect();
    texts.join(" ")
}

/// Quotes a text. None if the quotes in it would end it early.
fn quote(text: &str) -> Option<String> {
    (!text.contains('"')).then(|| format!("\"{text}\""))
}

/// The single-dash flags, and the word after `NOT`, as exclusions behind everything else.
fn exclusion(tokens: &[Token<'_>]) -> Option<String> {
    let (mut wanted, mut excluded) = (Vec::new(), Vec::new());
    let mut rest = tokens.iter();
    while let Some(token) = rest.next() {
        match (token.shape, dashed_word(token.text)) {
            (Shape::Flag, Some(word)) => excluded.push(format!("NOT {}", lower_case(word))),
            (Shape::Flag, None) if token.text == "NOT" => {
                excluded.extend(rest.next().map(|next| format!("NOT {}", lower_case(next.text))));
            }
            (_, _) => wanted.push(token.typed()),
        }
    }
    let is_reading = !wanted.is_empty() && !excluded.is_empty();
    wanted.extend(excluded);
    is_reading.then(|| wanted.join(" "))
}

/// A word in capitals behind `NOT` would be text.
fn lower_case(word: &str) -> String {
    if is_in_capitals(word) { word.to_lowercase() } else { word.to_owned() }
}

/// Each flag in quotes with the word before it, all other words alone.
fn pieces(tokens: &[Token<'_>]) -> Option<String> {
    let mut groups: Vec<Vec<Token<'_>>> = Vec::new();
    for token in tokens {
        let is_text = |token: &Token<'_>| matches!(token.shape, Shape::Flag | Shape::Plain);
        let before = groups.last_mut().filter(|group| group.last().is_some_and(is_text));
        match before {
            Some(group) if token.shape == Shape::Flag => group.push(*token),
            // What `NOT` negates in SQL belongs to it.
            Some(group) if is_text(token) && group.last().is_some_and(|it| it.text == "NOT") => {
                group.push(*token);
            }
            Some(_) | None => groups.push(vec![*token]),
        }
    }
    let typed = groups.iter().map(|group| match group.as_slice() {
        [one] if one.shape != Shape::Flag => Some(one.typed()),
        many => quote(&join(many)),
    });
    let pieces = typed.collect::<Option<Vec<String>>>()?;
    (pieces.len() > 1).then(|| pieces.join(" "))
}

/// All words in one pair of quotes.
fn as_written(tokens: &[Token<'_>]) -> Option<String> {
    let are_words = tokens
        .iter()
        .all(|token| matches!(token.shape, Shape::Plain | Shape::Excluded | Shape::Not));
    (are_words && tokens.len() > 1).then(|| quote(&join(tokens)))?
}
