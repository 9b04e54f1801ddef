//! The rules by which secrets are known: those that every export has, and those that a person
//! adds. Compiled once; a [`super::Redactor`] reads them.

use std::fmt;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::{Regex, RegexBuilder};

use super::providers::{PROVIDERS, Provider};
use super::value::MARK;

/// Words that begin something worth a look, beside those of the providers: whoever adds a
/// special case adds the word that leads to it.
const SPECIALS: &[(&str, Lead)] = &[
    ("-----begin ", Lead::Block),
    ("cookie", Lead::Cookie),
    ("secret", Lead::Name),
    ("token", Lead::Name),
    ("passw", Lead::Name),
    ("passphrase", Lead::Name),
    ("passcode", Lead::Name),
    ("pass=", Lead::Name),
    ("pass:", Lead::Name),
    ("pass\"", Lead::Name),
    ("_pass", Lead::Name),
    ("pwd", Lead::Name),
    ("apikey", Lead::Name),
    ("accesskey", Lead::Name),
    ("privatekey", Lead::Name),
    ("accountkey", Lead::Name),
    ("signingkey", Lead::Name),
    ("encryptionkey", Lead::Name),
    ("masterkey", Lead::Name),
    ("_key", Lead::Name),
    ("-key", Lead::Name),
    (" key", Lead::Name),
    ("credential", Lead::Name),
    ("auth", Lead::Name),
    ("mnemonic", Lead::Name),
    (MARK, Lead::Mark),
    // Inside JSON these may hide any of the words above.
    ("\\/", Lead::Escape),
    ("\\u00", Lead::Escape),
];

const HOMES: &[&str] = &["/home/", "/users/", "\\users\\", "-home-", "-users-"];

/// What a word that was found leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lead {
    /// A rule with a regex, by its place in the list.
    Rule(u16),
    /// A block of a private key.
    Block,
    Cookie,
    /// Part of a name whose value is secret.
    Name,
    Home,
    /// What stands for a secret.
    Mark,
    /// JSON wrote a character in another way.
    Escape,
}

/// One kind of secret that is known by its looks.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `github-token`.
    pub(super) kind: String,
    pub(super) regex: Regex,
    /// How many characters at the beginning say nothing that is not public.
    pub(super) open: usize,
    pub(super) check: Check,
    pub(super) back: Back,
    /// Whether it may begin in the middle of a word.
    pub(super) anywhere: bool,
    /// How much of the text it is shown.
    pub(super) window: usize,
    pub(super) weight: Weight,
}

impl Rule {
    /// The name that stands in the text instead of the secret.
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

/// Which of two that overlap is taken: the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Weight {
    Own,
    /// Told by its looks.
    Known,
    /// Told by where it stands.
    Placed,
    /// Told by its name.
    Named,
}

impl Weight {
    pub(super) const ALL: [Weight; 4] = [Weight::Own, Weight::Known, Weight::Placed, Weight::Named];
}

/// What stands before the word that leads to a rule, and belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Back {
    Nothing,
    /// So many letters, digits and signs.
    Letters(usize),
    Digits(usize),
}

/// What must hold beside the regex.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Check {
    /// The regex says it all.
    None,
    /// Letters and digits, as no word has them.
    Mixed,
    /// Large and small letters and digits.
    Random,
    /// Somebody chose it: anything that is no placeholder.
    Chosen,
    /// The base 64 of `user:password`.
    Pair,
}

/// A rule of a person's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnRule {
    /// Small letters, digits and hyphens: it stands in the text instead of the secret.
    pub name: String,
    /// A regex. Its group 1, or the group `secret`, is what is replaced; without one, all of it.
    pub pattern: String,
}

/// A rule that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleError {
    pub name: String,
    pub why: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the redaction rule '{}' cannot be used: {}", self.name, self.why)
    }
}

impl std::error::Error for RuleError {}

/// All rules of an export. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(super) shared: Arc<Shared>,
    pub(super) own: Arc<[Rule]>,
    pub(super) homes: bool,
}

/// What all exports have in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) rules: Vec<Rule>,
    /// Finds the words that lead to a rule, in one pass. Nothing else looks at clean text.
    pub(super) words: Option<AhoCorasick>,
    /// What each of its patterns leads to.
    pub(super) leads: Vec<Lead>,
}

static SHARED: LazyLock<Arc<Shared>> = LazyLock::new(|| Arc::new(Shared::compile()));

impl Rules {
    /// The rules that every export has.
    pub fn standard() -> Rules {
        Rules { shared: SHARED.clone(), own: Arc::from([]), homes: false }
    }

    /// These and rules of a person's own, which come first.
    pub fn with_own(self, own: &[OwnRule]) -> Result<Rules, RuleError> {
        let mut rules = self.own.to_vec();
        for rule in own {
            rules.push(rule.compile()?);
        }
        Ok(Rules { own: rules.into(), ..self })
    }

    /// Whether names of home folders are replaced as well.
    pub fn homes(self, homes: bool) -> Rules {
        Rules { homes, ..self }
    }

    /// The rules that know a secret by its looks.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.own.iter().chain(&self.shared.rules)
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::standard()
    }
}

impl OwnRule {
    fn compile(&self) -> Result<Rule, RuleError> {
        let wrong = |why: String| RuleError { name: self.name.clone(), why };
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if self.name.is_empty() || self.name.len() > 40 || !self.name.bytes().all(plain) {
            return Err(wrong(
                "its name must be 1 to 40 small letters, digits and hyphens, because it stands in \
                 the text instead of the secret"
                    .to_owned(),
            ));
        }
        let regex = RegexBuilder::new(&self.pattern)
            .size_limit(1 << 22)
            .build()
            .map_err(|error| wrong(format!("its pattern is no regular expression: {error}")))?;
        if regex.is_match("") {
            return Err(wrong("its pattern matches nothing at all, so everywhere".to_owned()));
        }
        Ok(Rule {
            kind: self.name.clone(),
            regex,
            open: 0,
            check: Check::None,
            back: Back::Nothing,
            anywhere: true,
            window: 0,
            weight: Weight::Own,
        })
    }
}

impl Shared {
    fn compile() -> Shared {
        let mut rules = Vec::with_capacity(PROVIDERS.len());
        let mut words: Vec<&str> = Vec::new();
        let mut leads = Vec::new();
        for provider in PROVIDERS {
            // A test compiles each of them, so that none is left out here.
            let Some(rule) = provider.compile() else { continue };
            for word in provider.words {
                words.push(word);
                leads.push(Lead::Rule(rules.len() as u16));
            }
            rules.push(rule);
        }
        let homes = HOMES.iter().map(|word| (*word, Lead::Home));
        for (word, lead) in SPECIALS.iter().copied().chain(homes) {
            words.push(word);
            leads.push(lead);
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            // Fails only where there are billions of states.
            .ok();
        Shared { rules, words, leads }
    }
}

impl Provider {
    pub(super) fn compile(&self) -> Option<Rule> {
        let regex = Regex::new(&format!("^(?:{})", self.pattern)).ok()?;
        Some(Rule {
            kind: self.kind.to_owned(),
            regex,
            open: self.open,
            check: self.check,
            back: self.back,
            anywhere: self.anywhere,
            window: self.window,
            weight: self.weight,
        })
    }
}
