//! Redaction rules: the built-in ones and the user's own. Compiled once and used by
//! [`crate::Redactor`].

use std::fmt;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::{Regex, RegexBuilder};

use super::commands::COMMANDS;
use super::contexts::CONTEXTS;
use super::document::DOCUMENT_KEYWORDS;
use super::keywords::{
    HOME_KEYWORDS, KeywordKind, PASSWORD_WORDS, PHRASE_KEYWORDS, SESSION_COOKIES, SPECIAL_KEYWORDS,
};
use super::providers::{PROVIDERS, Provider};
use super::value_shape::{Shape, decode_base64, is_jumbled, is_path, is_placeholder, is_sample};
use super::visible::HIDDEN_KEYWORDS;

/// A regex rule for one kind of secret.
#[derive(Clone, Debug)]
pub struct RedactionRule {
    /// `github-token`.
    pub(super) kind: String,
    pub(super) regex: Regex,
    /// Length of the public prefix in bytes.
    pub(super) public_prefix: usize,
    pub(super) check: Check,
    pub(super) lookbehind: Lookbehind,
    /// It may begin in the middle of a word.
    pub(super) anywhere: bool,
    /// The regex is searched for in the rest of the command.
    pub(super) every: bool,
    /// Bytes of text passed to the regex.
    pub(super) window: usize,
    pub(super) precedence: Precedence,
}

impl RedactionRule {
    /// The kind, as in `[redacted:kind:number]`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Evaluates the additional condition on a match.
    pub(super) fn passes(&self, secret: &str) -> bool {
        let body = secret.get(self.public_prefix.min(secret.len())..).unwrap_or_default();
        let shape = Shape::of(body);
        match self.check {
            Check::None => !is_sample(body),
            Check::Mixed => {
                let mixed = shape.digits > 0 && shape.letters() > 0;
                let letters = shape.is_word() && shape.length >= 16 && is_jumbled(body);
                !is_sample(body) && (mixed || letters)
            }
            Check::Random => {
                !is_sample(body)
                    && shape.digits > 0
                    && shape.lowercase > 0
                    && shape.uppercase > 0
                    && shape.entropy >= 3.0
            }
            Check::Chosen => {
                let words = ["password", "pass", "pwd", "secret", "token", "pw", "passwd"];
                !is_placeholder(secret)
                    && !is_path(secret)
                    && !words.iter().any(|word| secret.eq_ignore_ascii_case(word))
            }
            Check::BasicAuthPair => decode_base64(secret).is_some_and(|pair| {
                let text = str::from_utf8(&pair).unwrap_or_default();
                text.contains(':') && !text.chars().any(char::is_control)
            }),
        }
    }
}

/// Precedence of overlapping matches, highest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Precedence {
    Custom,
    /// Recognised by format.
    ByPattern,
    /// Recognised by context.
    ByContext,
    /// Recognised by the name that it is assigned to.
    ByName,
}

impl Precedence {
    pub(super) const ALL: [Precedence; 4] =
        [Precedence::Custom, Precedence::ByPattern, Precedence::ByContext, Precedence::ByName];
}

/// Text before the keyword that belongs to the match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lookbehind {
    Nothing,
    /// Up to this many letters, digits and signs.
    Letters(usize),
    Digits(usize),
    /// The line, up to this many bytes. The pattern may begin anywhere in it.
    Line(usize),
}

/// Additional condition on a regex match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Check {
    /// No condition.
    None,
    /// Both letters and digits.
    Mixed,
    /// Upper-case and lower-case letters and digits.
    Random,
    /// Chosen by a person: anything but a placeholder.
    Chosen,
    /// Base64 of `user:password`.
    BasicAuthPair,
}

/// A user-defined rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CustomRule {
    /// Lower-case letters, digits and hyphens: it becomes the kind in `[redacted:kind:number]`.
    pub name: String,
    /// A regex. Replaces group `secret`, else group 1, else the whole match.
    pub pattern: String,
}

/// An invalid user-defined rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleError {
    pub name: String,
    pub why: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid redaction rule '{}': {}", self.name, self.why)
    }
}

impl std::error::Error for RuleError {}

/// All rules of an export. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(super) shared: &'static LazyLock<Shared>,
    pub(super) own: Arc<[RedactionRule]>,
    pub(super) homes: bool,
}

/// The built-in rules.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rules: Vec<RedactionRule>,
    /// Finds all keywords in one pass. Text without keywords needs no other check.
    pub(super) words: Option<AhoCorasick>,
    /// The check that each keyword triggers.
    pub(super) keyword_kinds: Vec<KeywordKind>,
    /// Finds the [`DOCUMENT_KEYWORDS`] alone.
    pub(super) documents: Option<AhoCorasick>,
}

/// Compiled by the first text: a program that redacts nothing does not pay for it.
static SHARED: LazyLock<Shared> = LazyLock::new(Shared::compile);

impl Rules {
    /// The built-in rules.
    pub fn standard() -> Rules {
        Rules { shared: &SHARED, own: Arc::from([]), homes: false }
    }

    /// Adds user-defined rules, which take precedence.
    pub fn with_custom(self, own: &[CustomRule]) -> Result<Rules, RuleError> {
        let mut rules = self.own.to_vec();
        for rule in own {
            rules.push(rule.compile()?);
        }
        Ok(Rules { own: rules.into(), ..self })
    }

    /// Sets whether home folder names are redacted.
    pub fn homes(self, homes: bool) -> Rules {
        Rules { homes, ..self }
    }

    /// All regex rules.
    pub fn rules(&self) -> impl Iterator<Item = &RedactionRule> {
        self.own.iter().chain(&self.shared.rules)
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::standard()
    }
}

impl CustomRule {
    fn compile(&self) -> Result<RedactionRule, RuleError> {
        let wrong = |why: String| RuleError { name: self.name.clone(), why };
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty() || self.name.len() > 40 || !self.name.bytes().all(plain) {
            return Err(wrong(
                "the name must be 1 to 40 lower-case letters, digits and hyphens, because it \
                 appears in the text instead of the secret"
                    .to_owned(),
            ));
        }
        let regex = RegexBuilder::new(&self.pattern)
            .size_limit(1 << 22)
            .build()
            .map_err(|error| wrong(format!("invalid regular expression: {error}")))?;
        if regex.is_match("") {
            return Err(wrong("the pattern matches the empty string".to_owned()));
        }
        Ok(RedactionRule {
            kind: self.name.clone(),
            regex,
            public_prefix: 0,
            check: Check::None,
            lookbehind: Lookbehind::Nothing,
            anywhere: true,
            every: false,
            window: 0,
            precedence: Precedence::Custom,
        })
    }
}

impl Shared {
    fn compile() -> Shared {
        let mut rules = Vec::with_capacity(PROVIDERS.len());
        let mut words: Vec<&str> = Vec::new();
        let mut keyword_kinds = Vec::new();
        for provider in PROVIDERS.iter().chain(COMMANDS).chain(CONTEXTS) {
            // A test compiles every provider, so none is skipped here.
            let Some(rule) = provider.compile() else { continue };
            for word in provider.words {
                words.push(word);
                keyword_kinds.push(KeywordKind::RedactionRule(rules.len() as u16));
            }
            rules.push(rule);
        }
        let homes = HOME_KEYWORDS.iter().map(|word| (*word, KeywordKind::Home));
        let hidden = HIDDEN_KEYWORDS.iter().map(|word| (*word, KeywordKind::Hidden));
        let passwords = PASSWORD_WORDS.iter().map(|word| (*word, KeywordKind::Word));
        let special = SPECIAL_KEYWORDS.iter().copied();
        let documents =
            DOCUMENT_KEYWORDS.iter().map(|(word, kind)| (*word, KeywordKind::Document(*kind)));
        let phrases = PHRASE_KEYWORDS.iter().map(|word| (*word, KeywordKind::Phrase));
        let cookies = SESSION_COOKIES.iter().map(|word| (*word, KeywordKind::SessionCookie));
        let more = documents.chain(phrases).chain(cookies);
        for (word, keyword_kind) in special.chain(homes).chain(hidden).chain(passwords).chain(more)
        {
            words.push(word);
            keyword_kinds.push(keyword_kind);
        }
        let documents: Vec<&str> = DOCUMENT_KEYWORDS.iter().map(|(word, _)| *word).collect();
        Shared { rules, words: search(&words), keyword_kinds, documents: search(&documents) }
    }
}

fn search(words: &[&str]) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        // Fails only with billions of states.
        .ok()
}

impl Provider {
    pub(super) fn compile(&self) -> Option<RedactionRule> {
        let start = match self.lookbehind {
            _ if self.every => "",
            Lookbehind::Line(_) => "",
            Lookbehind::Nothing | Lookbehind::Letters(_) | Lookbehind::Digits(_) => "^",
        };
        let regex = Regex::new(&format!("{start}(?:{})", self.pattern)).ok()?;
        Some(RedactionRule {
            kind: self.kind.to_owned(),
            regex,
            public_prefix: self.public_prefix,
            check: self.check,
            lookbehind: self.lookbehind,
            anywhere: self.anywhere,
            every: self.every,
            window: self.window,
            precedence: self.precedence,
        })
    }
}
