//! Scans one text for secrets and their kinds. Clean text costs one keyword search.

use super::document::{DOCUMENT_KEYWORDS, Found, Progress};
use super::keywords::{KeyForm, KeywordKind};
use super::private_key;
use super::rules::{Precedence, RedactionRule, Rules};
use super::secrets::TAG_CHARS;
use super::span::{SecretSpan, resolve_overlaps, unite};
use super::special;
use super::value_shape::MARK;
use super::visible::VisibleText;

/// Context of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ScanContext<'a> {
    /// The name of the field, if the text is its whole value.
    pub(super) name: Option<&'a str>,
    /// The name is that of the list or object around the text.
    pub(super) listed: bool,
    /// The kind of secret, if the document around it says that the whole text is one.
    pub(super) whole: Option<&'static str>,
    /// An opaque vendor value: only keys with a recognisable format are redacted in it.
    pub(super) opaque: bool,
}

/// True if no rule can match in this text, whether plain or JSON.
pub(super) fn is_clean(rules: &Rules, text: &str) -> bool {
    let Some(words) = &rules.shared.words else { return false };
    rules.own.is_empty()
        && words.find_overlapping_iter(text).all(|found| {
            let keyword_kind = rules.shared.keyword_kinds.get(found.pattern().as_usize());
            !rules.homes && keyword_kind == Some(&KeywordKind::Home)
        })
}

/// The secrets that the structure of JSON reveals, in order.
pub(super) fn documented(rules: &Rules, text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let Some(words) = &rules.shared.documents else { return found };
    let mut documents = Progress::default();
    for word in words.find_overlapping_iter(text) {
        if let Some((_, kind)) = DOCUMENT_KEYWORDS.get(word.pattern().as_usize()) {
            found.extend(documents.secrets(text, *kind, word.start(), word.end()));
        }
    }
    found.sort_unstable();
    found
}

/// The result of a scan.
pub(super) struct Scanned<'r> {
    /// In order, without overlaps.
    pub(super) spans: Vec<SecretSpan<'r>>,
    /// What a reader sees of the text, if that differs from the text.
    pub(super) visible: Option<VisibleText>,
}

/// The secrets of a text, and of what a reader sees of it.
pub(super) fn scan<'r>(rules: &'r Rules, text: &str, context: ScanContext<'_>) -> Scanned<'r> {
    let (mut spans, hidden) = scan_as_is(rules, text, context);
    let visible = match hidden {
        Hidden::Nothing => None,
        Hidden::Characters => VisibleText::of(text),
        Hidden::Emphasis => VisibleText::without_emphasis(text),
    };
    if let Some(visible) = &visible {
        // Without its marks, code is no longer code: only formats count then.
        let opaque = context.opaque || hidden == Hidden::Emphasis;
        let (seen, _) = scan_as_is(rules, &visible.text, ScanContext { opaque, ..context });
        for span in seen {
            let (start, end) = visible.original(span.start, span.end);
            spans.push(SecretSpan { start, end, ..span });
        }
        spans = unite(spans);
    }
    Scanned { spans, visible }
}

/// What splits keys without being seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hidden {
    Nothing,
    /// Terminal escapes, zero-width characters, continued lines.
    Characters,
    /// Marks of Markdown.
    Emphasis,
}

/// The secrets of a text, in order, without overlaps, and what in it is hidden.
fn scan_as_is<'r>(
    rules: &'r Rules,
    text: &str,
    context: ScanContext<'_>,
) -> (Vec<SecretSpan<'r>>, Hidden) {
    let mut scan = Scan {
        rules,
        text,
        found: Vec::new(),
        marks: Vec::new(),
        named_to: 0,
        value_to: 0,
        value_tries: 0,
        cookies_to: 0,
        keys_to: 0,
        lists_to: 0,
        documents: Progress::default(),
        command: (0, 0),
        hidden: false,
        emphasis: false,
        run: (0, 0),
        tries: Vec::new(),
    };
    for rule in rules.own.iter() {
        scan.own(rule);
    }
    if let Some(kind) = context.whole {
        scan.push(0, text.len(), kind, Precedence::ByContext);
    }
    if let Some(name) = context.name {
        scan.field(name, context.listed);
    }
    if let Some(words) = &rules.shared.words {
        for found in words.find_overlapping_iter(text) {
            let Some(keyword_kind) = rules.shared.keyword_kinds.get(found.pattern().as_usize())
            else {
                continue;
            };
            scan.follow(*keyword_kind, found.start(), found.end(), context.opaque);
        }
    }
    let Scan { mut found, marks, hidden, emphasis, .. } = scan;
    let hidden = match (hidden, emphasis) {
        (true, _) => Hidden::Characters,
        (false, true) => Hidden::Emphasis,
        (false, false) => Hidden::Nothing,
    };
    // Never touch an existing replacement.
    found.retain(|span| {
        let after = marks.partition_point(|(_, end)| *end <= span.start);
        let free = marks.get(after).is_none_or(|(start, _)| span.end <= *start);
        // A secret that is part of its own replacement text is an ordinary word.
        let secret = text.get(span.start..span.end).unwrap_or_default();
        free && (secret.len() < 4 || !span.kind.contains(secret) && !MARK.contains(secret))
    });
    (resolve_overlaps(found), hidden)
}

pub(super) struct Scan<'r, 't> {
    pub(super) rules: &'r Rules,
    pub(super) text: &'t str,
    pub(super) found: Vec<SecretSpan<'r>>,
    /// Existing replacements.
    marks: Vec<(usize, usize)>,
    /// End of the last name that was checked.
    pub(super) named_to: usize,
    /// End of the last value, and the number of names checked inside it.
    pub(super) value_to: usize,
    pub(super) value_tries: u8,
    /// End of the last cookie header.
    cookies_to: usize,
    /// End of the last private key.
    keys_to: usize,
    /// End of the last list of secrets.
    pub(super) lists_to: usize,
    documents: Progress,
    /// The last rule for a whole command, and the end of what it read.
    pub(super) command: (u16, usize),
    /// The text has characters that a reader does not see.
    hidden: bool,
    /// A key is split by marks of Markdown.
    pub(super) emphasis: bool,
    /// The current run of word characters.
    pub(super) run: (usize, usize),
    /// Number of tries per rule in this run.
    pub(super) tries: Vec<(u16, u8)>,
}

impl<'r> Scan<'r, '_> {
    pub(super) fn push(&mut self, start: usize, end: usize, kind: &'r str, precedence: Precedence) {
        self.found.push(SecretSpan {
            start,
            end,
            kind,
            public_prefix: 0,
            precedence,
            order: u16::MAX,
        });
    }

    /// Applies a user-defined rule to the whole text.
    fn own(&mut self, rule: &'r RedactionRule) {
        for found in rule.regex.captures_iter(self.text) {
            let Some(secret) = found.name("secret").or(found.get(1)).or(found.get(0)) else {
                continue;
            };
            if !secret.is_empty() {
                self.push(secret.start(), secret.end(), &rule.kind, Precedence::Custom);
            }
        }
    }

    fn follow(&mut self, keyword_kind: KeywordKind, start: usize, end: usize, opaque: bool) {
        match keyword_kind {
            KeywordKind::RedactionRule(at) => {
                let Some(rule) = self.rules.shared.rules.get(usize::from(at)) else { return };
                if !opaque || rule.precedence == Precedence::ByPattern && rule.public_prefix > 3 {
                    self.match_rule(at, rule, start);
                }
            }
            KeywordKind::Escape => {}
            KeywordKind::Mark => {
                if let Some(length) = mark(&self.text[start..]) {
                    self.marks.push((start, start + length));
                }
            }
            KeywordKind::Home => {
                if self.rules.homes
                    && !opaque
                    && let Some((from, to)) = special::home(self.text, start, end)
                {
                    self.push(from, to, "home", Precedence::Custom);
                }
            }
            KeywordKind::PrivateKey(form) => self.private_key(form, start, end),
            KeywordKind::Hidden => self.hidden = true,
            KeywordKind::Cookie if opaque => {}
            KeywordKind::Cookie => {
                // A header may repeat the keyword; parse it once.
                if start >= self.cookies_to
                    && let Some(from) = special::cookie_value(self.text, end)
                {
                    let (found, to) = special::cookies(self.text, from);
                    self.cookies_to = to;
                    for (from, to) in found {
                        self.push(from, to, "cookie", Precedence::ByContext);
                    }
                }
            }
            KeywordKind::Document(_) if opaque => {}
            KeywordKind::Document(kind) => {
                for (from, to, kind) in self.documents.secrets(self.text, kind, start, end) {
                    self.push(from, to, kind, Precedence::ByContext);
                }
            }
            KeywordKind::SessionCookie if opaque => {}
            KeywordKind::SessionCookie => {
                if start >= self.cookies_to
                    && let Some((found, to)) = special::session_cookie(self.text, end)
                {
                    self.cookies_to = to;
                    if let Some((from, to)) = found {
                        self.push(from, to, "cookie", Precedence::ByContext);
                    }
                }
            }
            KeywordKind::Phrase if opaque => {}
            KeywordKind::Phrase => {
                if let Some((from, to)) = special::recovery_phrase(self.text, end) {
                    self.push(from, to, "recovery-phrase", Precedence::ByContext);
                }
            }
            KeywordKind::Name if opaque => {}
            KeywordKind::Name => self.name(start, end),
            KeywordKind::Word if opaque => {}
            KeywordKind::Word => self.word(start, end),
        }
    }

    /// A private key at a keyword. No byte is part of two keys, which keeps the search linear.
    fn private_key(&mut self, form: KeyForm, start: usize, end: usize) {
        if start < self.keys_to {
            return;
        }
        let found = match form {
            KeyForm::Block => private_key::key_block(self.text, start).map(|to| (start, to)),
            KeyForm::Tail => private_key::key_tail(self.text, start, self.keys_to),
            KeyForm::Encoded => private_key::encoded_key(self.text, start).map(|to| (start, to)),
            KeyForm::Putty => private_key::putty_key(self.text, end),
        };
        if let Some((from, to)) = found {
            self.keys_to = to;
            self.push(from, to, "private-key", Precedence::Custom);
        }
    }
}

/// The length of the replacement that the text begins with, if any.
fn mark(text: &str) -> Option<usize> {
    let inner = text.strip_prefix(MARK)?;
    let end = inner.as_bytes().iter().take(64).position(|byte| *byte == b']')?;
    let (kind, number) = inner.get(..end)?.split_once(':')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_tag = number.len() == TAG_CHARS && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_number || is_tag;
    (!kind.is_empty() && kind.bytes().all(plain) && number).then_some(MARK.len() + end + 1)
}
