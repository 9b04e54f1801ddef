//! A query: conditions that must all match. `query_parser.rs` reads them from what the user typed,
//! `lookup.rs` turns them into candidates, `matcher.rs` verifies them against texts.

use memchr::memmem::Finder;

use super::chars::{CharClass, char_class, fold};
use super::tokens::{MAX_INFIX_BYTES, MAX_WORD_BYTES};

/// A query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TextQuery {
    pub(super) conditions: Vec<Condition>,
    pub(super) excluded: Vec<Condition>,
}

/// How a condition matches its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConditionKind {
    /// As a whole word.
    Word,
    /// As the beginning of a word.
    Prefix,
    /// As it is written, with punctuation, and not inside longer words.
    Phrase,
    /// Anywhere, also inside words.
    Fragment,
}

/// A condition that one field of the document must match.
#[derive(Clone, Debug)]
pub struct Condition {
    kind: ConditionKind,
    pub(super) finder: Finder<'static>,
    text: String,
    typed: String,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.text) == (other.kind, &other.text)
    }
}

impl Eq for Condition {}

impl Condition {
    /// Folds the text to lower case.
    pub fn new(kind: ConditionKind, typed: &str) -> Self {
        let text: String = typed.chars().map(fold).collect();
        Condition { kind, finder: Finder::new(&text).into_owned(), text, typed: typed.to_owned() }
    }

    /// How it matches its text.
    pub fn kind(&self) -> ConditionKind {
        self.kind
    }

    /// Its text, in lower case.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its text as the user typed it, without quotes and stars.
    pub fn typed(&self) -> &str {
        &self.typed
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
            ConditionKind::Phrase => words(&self.text)
                .into_iter()
                .map(|(_, word)| Term::new(TermMatch::Whole, word))
                .collect(),
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
