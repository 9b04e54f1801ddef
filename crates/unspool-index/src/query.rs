//! Parses a query into conditions that must all match. `lookup.rs` turns them into candidates,
//! `matcher.rs` verifies them against texts.
//!
//! ```text
//! alpha beta      both words, anywhere
//! alph*           a word with this prefix
//! "to be, or"     this exact fragment, also inside words
//! src/main.rs     a fragment as well, because of its punctuation
//! *alph           a fragment, possibly inside a word
//! -alpha          not this word; likewise -alph* and -"a fragment"
//! --flag, ->      not an exclusion: fragments
//! ```
//!
//! No query is an error. Case is ignored. An unclosed quote extends to the end of the query. Only a
//! quote before white space or the end closes, so a quoted fragment may contain quotes
//! (`"key":"value"`).

use memchr::memmem::Finder;

use super::chars::{CharClass, char_class, fold};
use super::tokens::{MAX_INFIX_BYTES, MAX_WORD_BYTES};

/// Conditions beyond this number are ignored.
const MAX_CONDITIONS: usize = 64;

/// A query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TextQuery {
    conditions: Vec<Condition>,
    excluded: Vec<Condition>,
}

/// How a condition matches its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConditionKind {
    /// As a whole word.
    Word,
    /// As the beginning of a word.
    Prefix,
    /// Anywhere, also inside words.
    Fragment,
}

/// A condition that one field of the document must match.
#[derive(Clone, Debug)]
pub struct Condition {
    kind: ConditionKind,
    pub(super) finder: Finder<'static>,
    text: String,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.text) == (other.kind, &other.text)
    }
}

impl Eq for Condition {}

impl Condition {
    /// Folds `text` to lower case.
    pub fn new(kind: ConditionKind, text: &str) -> Self {
        let text: String = text.chars().map(fold).collect();
        Condition { kind, finder: Finder::new(&text).into_owned(), text }
    }

    /// How it matches its text.
    pub fn kind(&self) -> ConditionKind {
        self.kind
    }

    /// Its text, in lower case.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if the index can narrow it down. A fragment of punctuation only has no words.
    pub fn has_words(&self) -> bool {
        self.text.chars().any(|character| char_class(character) != CharClass::Separator)
    }

    /// The dictionary terms that a matching document must have.
    pub(super) fn terms(&self) -> Vec<Term> {
        match self.kind {
            ConditionKind::Word => vec![Term::new(TermMatch::Whole, &self.text)],
            ConditionKind::Prefix => vec![Term::new(TermMatch::Prefix, &self.text)],
            ConditionKind::Fragment => self.fragment_terms(),
        }
    }

    /// Inner words of a fragment are whole words. Its first word may be the end of a longer word
    /// and its last the beginning of one, unless punctuation precedes or follows it.
    fn fragment_terms(&self) -> Vec<Term> {
        words(&self.text)
            .into_iter()
            .map(|(start, word)| {
                let alone =
                    word.chars().all(|character| char_class(character) == CharClass::Standalone);
                let before = start == 0 && !alone;
                let behind = start + word.len() == self.text.len() && !alone;
                let term_match = match (before, behind) {
                    (false, false) => TermMatch::Whole,
                    (false, true) => TermMatch::Prefix,
                    (true, false) => TermMatch::Suffix,
                    (true, true) => TermMatch::Infix,
                };
                Term::new(term_match, word)
            })
            .collect()
    }
}

impl TextQuery {
    /// Parses a query as typed by the user.
    pub fn parse(typed: &str) -> TextQuery {
        let mut query = TextQuery::default();
        let mut rest = typed.trim_start();
        while !rest.is_empty() && query.conditions.len() + query.excluded.len() < MAX_CONDITIONS {
            let (excluded, behind) = strip_exclusion(rest);
            let (condition, behind) = match behind.strip_prefix('"') {
                Some(quoted) => parse_quoted(quoted),
                None => {
                    let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
                    let (typed, behind) = behind.split_at(end);
                    (Some(parse_unquoted(typed)), behind)
                }
            };
            rest = behind.trim_start();
            let list = if excluded { &mut query.excluded } else { &mut query.conditions };
            list.extend(condition.filter(|condition| !list.contains(condition)));
        }
        query
    }

    /// The conditions that must match.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// The conditions that must not match.
    pub fn excluded(&self) -> &[Condition] {
        &self.excluded
    }

    /// True if there are no conditions. Then everything matches.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.excluded.is_empty()
    }

    /// The same query with every word as a fragment, so that it also matches inside longer words.
    pub fn widened(&self) -> TextQuery {
        let mut query = self.clone();
        for index in 0..query.conditions.len() {
            query.widen(index);
        }
        query
    }

    /// Turns a condition into a fragment.
    pub(super) fn widen(&mut self, index: usize) {
        if let Some(condition) = self.conditions.get_mut(index) {
            condition.kind = ConditionKind::Fragment;
        }
    }
}

/// Strips the `-` of an exclusion, if there is one. A `-` before punctuation is no exclusion:
/// `--flag`, `->` and `-` are fragments.
fn strip_exclusion(typed: &str) -> (bool, &str) {
    let behind = typed.strip_prefix('-').unwrap_or_default();
    let next = behind.chars().next();
    match next.is_some_and(|it| it == '"' || char_class(it) != CharClass::Separator) {
        true => (true, behind),
        false => (false, typed),
    }
}

/// Parses the fragment after an opening quote. Returns it and the rest of the query; None for
/// white space only.
fn parse_quoted(quoted: &str) -> (Option<Condition>, &str) {
    let closes = |at: &usize| quoted[at + 1..].chars().next().is_none_or(char::is_whitespace);
    let end = memchr::memchr_iter(b'"', quoted.as_bytes()).find(closes);
    let (text, behind) = match end {
        Some(end) => (&quoted[..end], &quoted[end + 1..]),
        None => (quoted, ""),
    };
    let blank = text.trim().is_empty();
    ((!blank).then(|| Condition::new(ConditionKind::Fragment, text)), behind)
}

/// Parses a condition without quotes or white space.
fn parse_unquoted(typed: &str) -> Condition {
    let starless = typed.trim_matches('*');
    let one = one_word(starless);
    if typed == starless {
        Condition::new(if one { ConditionKind::Word } else { ConditionKind::Fragment }, typed)
    } else if one && typed.starts_with(starless) {
        Condition::new(ConditionKind::Prefix, starless)
    } else if starless.chars().any(|it| char_class(it) != CharClass::Separator) {
        Condition::new(ConditionKind::Fragment, starless)
    } else {
        Condition::new(ConditionKind::Fragment, typed)
    }
}

fn one_word(text: &str) -> bool {
    matches!(words(text).as_slice(), [(_, word)] if word.len() == text.len())
}

/// The words of a text, unfolded, with their positions.
pub(super) fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        let char_class = char_class(character);
        if char_class != CharClass::WordChar
            && let Some(start) = start.take()
        {
            words.push((start, &text[start..at]));
        }
        match char_class {
            CharClass::WordChar => start = start.or(Some(at)),
            CharClass::Standalone => words.push((at, &text[at..at + character.len_utf8()])),
            CharClass::Separator => {}
        }
    }
    words
}

/// A pattern for words of the dictionary. A matching document has at least one such word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Term {
    pub(super) term_match: TermMatch,
    pub(super) word: String,
}

/// How a term matches words of the dictionary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum TermMatch {
    Whole,
    Prefix,
    Suffix,
    Infix,
}

impl Term {
    /// The dictionary holds long words in pieces, so the term is cut to what one piece is certain
    /// to contain.
    fn new(term_match: TermMatch, word: &str) -> Term {
        let word = match term_match {
            TermMatch::Whole | TermMatch::Prefix => {
                &word[..word.floor_char_boundary(MAX_WORD_BYTES)]
            }
            TermMatch::Infix => &word[..word.floor_char_boundary(MAX_INFIX_BYTES)],
            TermMatch::Suffix => {
                &word[word.ceil_char_boundary(word.len().saturating_sub(MAX_INFIX_BYTES))..]
            }
        };
        Term { term_match, word: word.to_owned() }
    }

    /// The bytes to search for among words separated by line feeds.
    pub(super) fn pattern(&self) -> Vec<u8> {
        let (before, behind) = match self.term_match {
            TermMatch::Whole => ("\n", "\n"),
            TermMatch::Prefix => ("\n", ""),
            TermMatch::Suffix => ("", "\n"),
            TermMatch::Infix => ("", ""),
        };
        [before, &self.word, behind].concat().into_bytes()
    }
}
