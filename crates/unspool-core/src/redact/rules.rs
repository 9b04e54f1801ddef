//! Redaction rules: the built-in ones and the user's own. Compiled once and used by
//! [`super::Redactor`].

use std::fmt;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::{Regex, RegexBuilder};

use super::providers::{PROVIDERS, Provider};
use super::value_shape::MARK;

/// Keywords that trigger a check, in addition to those of the providers. A new special case needs
/// its keyword here.
const SPECIAL_KEYWORDS: &[(&str, KeywordKind)] = &[
    ("-----begin ", KeywordKind::Block),
    ("cookie", KeywordKind::Cookie),
    ("secret", KeywordKind::Name),
    ("token", KeywordKind::Name),
    ("passw", KeywordKind::Name),
    ("passphrase", KeywordKind::Name),
    ("passcode", KeywordKind::Name),
    ("pass=", KeywordKind::Name),
    ("pass:", KeywordKind::Name),
    ("pass\"", KeywordKind::Name),
    ("_pass", KeywordKind::Name),
    ("pwd", KeywordKind::Name),
    ("apikey", KeywordKind::Name),
    ("accesskey", KeywordKind::Name),
    ("privatekey", KeywordKind::Name),
    ("accountkey", KeywordKind::Name),
    ("signingkey", KeywordKind::Name),
    ("encryptionkey", KeywordKind::Name),
    ("masterkey", KeywordKind::Name),
    ("_key", KeywordKind::Name),
    ("-key", KeywordKind::Name),
    (" key", KeywordKind::Name),
    ("credential", KeywordKind::Name),
    ("auth", KeywordKind::Name),
    ("mnemonic", KeywordKind::Name),
    (MARK, KeywordKind::Mark),
    // In JSON, these escapes may hide any of the keywords above.
    ("\\/", KeywordKind::Escape),
    ("\\u00", KeywordKind::Escape),
];

const HOME_KEYWORDS: &[&str] = &["/home/", "/users/", "\\users\\", "-home-", "-users-"];

/// The check that a keyword triggers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeywordKind {
    /// A regex rule, by index.
    RedactionRule(u16),
    /// A private key block.
    Block,
    Cookie,
    /// Part of a name whose value may be a secret.
    Name,
    Home,
    /// An existing replacement.
    Mark,
    /// A JSON escape.
    Escape,
}

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
    /// Bytes of text passed to the regex.
    pub(super) window: usize,
    pub(super) precedence: Precedence,
}

impl RedactionRule {
    /// The kind, as in `[redacted:kind:number]`.
    pub fn kind(&self) -> &str {
        &self.kind
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
    pub(super) shared: Arc<Shared>,
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
}

static SHARED: LazyLock<Arc<Shared>> = LazyLock::new(|| Arc::new(Shared::compile()));

impl Rules {
    /// The built-in rules.
    pub fn standard() -> Rules {
        Rules { shared: SHARED.clone(), own: Arc::from([]), homes: false }
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
        for provider in PROVIDERS {
            // A test compiles every provider, so none is skipped here.
            let Some(rule) = provider.compile() else { continue };
            for word in provider.words {
                words.push(word);
                keyword_kinds.push(KeywordKind::RedactionRule(rules.len() as u16));
            }
            rules.push(rule);
        }
        let homes = HOME_KEYWORDS.iter().map(|word| (*word, KeywordKind::Home));
        for (word, keyword_kind) in SPECIAL_KEYWORDS.iter().copied().chain(homes) {
            words.push(word);
            keyword_kinds.push(keyword_kind);
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            // Fails only with billions of states.
            .ok();
        Shared { rules, words, keyword_kinds }
    }
}

impl Provider {
    pub(super) fn compile(&self) -> Option<RedactionRule> {
        let regex = Regex::new(&format!("^(?:{})", self.pattern)).ok()?;
        Some(RedactionRule {
            kind: self.kind.to_owned(),
            regex,
            public_prefix: self.public_prefix,
            check: self.check,
            lookbehind: self.lookbehind,
            anywhere: self.anywhere,
            window: self.window,
            precedence: self.precedence,
        })
    }
}
