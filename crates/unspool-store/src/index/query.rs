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

use super::letters::{Role, fold, role};
use super::tokens::{INSIDE, LONGEST};

/// Conditions beyond this number are ignored.
const CONDITIONS: usize = 64;

/// A query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query {
    conditions: Vec<Condition>,
    excluded: Vec<Condition>,
}

/// How a condition matches its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
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
    kind: Kind,
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
    pub fn new(kind: Kind, text: &str) -> Self {
        let text: String = text.chars().map(fold).collect();
        Condition { kind, finder: Finder::new(&text).into_owned(), text }
    }

    /// How it matches its text.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its text, in lower case.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if the index can narrow it down. A fragment of punctuation only has no words.
    pub fn has_words(&self) -> bool {
        self.text.chars().any(|character| role(character) != Role::Breaks)
    }

    /// The dictionary terms that a matching document must have.
    pub(super) fn needs(&self) -> Vec<Need> {
        match self.kind {
            Kind::Word => vec![Need::new(Reach::Whole, &self.text)],
            Kind::Prefix => vec![Need::new(Reach::Start, &self.text)],
            Kind::Fragment => self.needs_of_fragment(),
        }
    }

    /// Inner words of a fragment are whole words. Its first word may be the end of a longer word
    /// and its last the beginning of one, unless punctuation precedes or follows it.
    fn needs_of_fragment(&self) -> Vec<Need> {
        words(&self.text)
            .into_iter()
            .map(|(start, word)| {
                let alone = word.chars().all(|character| role(character) == Role::Alone);
                let before = start == 0 && !alone;
                let behind = start + word.len() == self.text.len() && !alone;
                let reach = match (before, behind) {
                    (false, false) => Reach::Whole,
                    (false, true) => Reach::Start,
                    (true, false) => Reach::End,
                    (true, true) => Reach::Inside,
                };
                Need::new(reach, word)
            })
            .collect()
    }
}

impl Query {
    /// Parses a query as typed by the user.
    pub fn parse(typed: &str) -> Query {
        let mut query = Query::default();
        let mut rest = typed.trim_start();
        while !rest.is_empty() && query.conditions.len() + query.excluded.len() < CONDITIONS {
            let (excluded, behind) = exclusion(rest);
            let (condition, behind) = match behind.strip_prefix('"') {
                Some(quoted) => quote(quoted),
                None => {
                    let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
                    let (typed, behind) = behind.split_at(end);
                    (Some(bare(typed)), behind)
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
    pub fn widened(&self) -> Query {
        let mut query = self.clone();
        for index in 0..query.conditions.len() {
            query.widen(index);
        }
        query
    }

    /// Turns a condition into a fragment.
    pub(super) fn widen(&mut self, index: usize) {
        if let Some(condition) = self.conditions.get_mut(index) {
            condition.kind = Kind::Fragment;
        }
    }
}

/// Strips the `-` of an exclusion, if there is one. A `-` before punctuation is no exclusion:
/// `--flag`, `->` and `-` are fragments.
fn exclusion(typed: &str) -> (bool, &str) {
    let behind = typed.strip_prefix('-').unwrap_or_default();
    let next = behind.chars().next();
    match next.is_some_and(|it| it == '"' || role(it) != Role::Breaks) {
        true => (true, behind),
        false => (false, typed),
    }
}

/// Parses the fragment after an opening quote. Returns it and the rest of the query; None for
/// white space only.
fn quote(quoted: &str) -> (Option<Condition>, &str) {
    let closes = |at: &usize| quoted[at + 1..].chars().next().is_none_or(char::is_whitespace);
    let end = memchr::memchr_iter(b'"', quoted.as_bytes()).find(closes);
    let (text, behind) = match end {
        Some(end) => (&quoted[..end], &quoted[end + 1..]),
        None => (quoted, ""),
    };
    let blank = text.trim().is_empty();
    ((!blank).then(|| Condition::new(Kind::Fragment, text)), behind)
}

/// Parses a condition without quotes or white space.
fn bare(typed: &str) -> Condition {
    let starless = typed.trim_matches('*');
    let one = one_word(starless);
    if typed == starless {
        Condition::new(if one { Kind::Word } else { Kind::Fragment }, typed)
    } else if one && typed.starts_with(starless) {
        Condition::new(Kind::Prefix, starless)
    } else if starless.chars().any(|it| role(it) != Role::Breaks) {
        Condition::new(Kind::Fragment, starless)
    } else {
        Condition::new(Kind::Fragment, typed)
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
        let role = role(character);
        if role != Role::Joins
            && let Some(start) = start.take()
        {
            words.push((start, &text[start..at]));
        }
        match role {
            Role::Joins => start = start.or(Some(at)),
            Role::Alone => words.push((at, &text[at..at + character.len_utf8()])),
            Role::Breaks => {}
        }
    }
    words
}

/// A pattern for words of the dictionary. A matching document has at least one such word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub(super) reach: Reach,
    pub(super) word: String,
}

/// How a term matches words of the dictionary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Reach {
    Whole,
    Start,
    End,
    Inside,
}

impl Need {
    /// The dictionary holds long words in pieces, so the term is cut to what one piece is certain
    /// to contain.
    fn new(reach: Reach, word: &str) -> Need {
        let word = match reach {
            Reach::Whole | Reach::Start => &word[..word.floor_char_boundary(LONGEST)],
            Reach::Inside => &word[..word.floor_char_boundary(INSIDE)],
            Reach::End => &word[word.ceil_char_boundary(word.len().saturating_sub(INSIDE))..],
        };
        Need { reach, word: word.to_owned() }
    }

    /// The bytes to search for among words separated by line feeds.
    pub(super) fn pattern(&self) -> Vec<u8> {
        let (before, behind) = match self.reach {
            Reach::Whole => ("\n", "\n"),
            Reach::Start => ("\n", ""),
            Reach::End => ("", "\n"),
            Reach::Inside => ("", ""),
        };
        [before, &self.word, behind].concat().into_bytes()
    }
}
