//! Scans one text for secrets and their kinds. Clean text costs one keyword search.

use super::assignment::{is_constant, value_of};
use super::private_key;
use super::rules::{KeyForm, KeywordKind, Lookbehind, Precedence, RedactionRule, Rules};
use super::secret_name::{SecretClass, classify, is_foreign, name_around};
use super::span::{SecretSpan, resolve_overlaps, unite};
use super::special;
use super::value_shape::{MARK, Shape};
use super::verdict::{AssignmentKind, MAX_VALUE_BYTES, is_secret, is_token_byte};
use super::visible::VisibleText;

/// Maximum number of tries of a rule within one run of word characters. Without a limit, text that
/// repeats a key prefix would be scanned to its end each time.
const MAX_TRIES_PER_RUN: u8 = 4;

/// Context of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ScanContext<'a> {
    /// The name of the field, if the text is its whole value.
    pub(super) name: Option<&'a str>,
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
    let visible = if hidden { VisibleText::of(text) } else { None };
    if let Some(visible) = &visible {
        let (seen, _) = scan_as_is(rules, &visible.text, context);
        for span in seen {
            let (start, end) = visible.original(span.start, span.end);
            spans.push(SecretSpan { start, end, ..span });
        }
        spans = unite(spans);
    }
    Scanned { spans, visible }
}

/// The secrets of a text, in order, without overlaps, and whether something in it is hidden.
fn scan_as_is<'r>(
    rules: &'r Rules,
    text: &str,
    context: ScanContext<'_>,
) -> (Vec<SecretSpan<'r>>, bool) {
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
        hidden: false,
        run: (0, 0),
        tries: Vec::new(),
    };
    for rule in rules.own.iter() {
        scan.own(rule);
    }
    if let Some(name) = context.name {
        scan.field(name);
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
    let Scan { mut found, marks, hidden, .. } = scan;
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

struct Scan<'r, 't> {
    rules: &'r Rules,
    text: &'t str,
    found: Vec<SecretSpan<'r>>,
    /// Existing replacements.
    marks: Vec<(usize, usize)>,
    /// End of the last name that was checked.
    named_to: usize,
    /// End of the last value, and the number of names checked inside it.
    value_to: usize,
    value_tries: u8,
    /// End of the last cookie header.
    cookies_to: usize,
    /// End of the last private key.
    keys_to: usize,
    /// The text has characters that a reader does not see.
    hidden: bool,
    /// The current run of word characters.
    run: (usize, usize),
    /// Number of tries per rule in this run.
    tries: Vec<(u16, u8)>,
}

impl<'r> Scan<'r, '_> {
    fn push(&mut self, start: usize, end: usize, kind: &'r str, precedence: Precedence) {
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

    /// Applies a regex rule at a keyword.
    fn match_rule(&mut self, number: u16, rule: &'r RedactionRule, word: usize) {
        let bytes = self.text.as_bytes();
        let before = bytes.get(..word).unwrap_or_default().iter().rev();
        let letter = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.~*".contains(byte);
        let start = word
            - match rule.lookbehind {
                Lookbehind::Nothing => 0,
                Lookbehind::Letters(most) => before.take(most).take_while(letter).count(),
                Lookbehind::Digits(most) => {
                    before.take(most).take_while(|b| b.is_ascii_digit()).count()
                }
                Lookbehind::Line(most) => before.take(most).take_while(|b| **b != b'\n').count(),
            };
        let start = self.text.ceil_char_boundary(start);
        if !rule.anywhere && !self.begins(start) || !self.may_try(number, word) {
            return;
        }
        let end = self.text.floor_char_boundary(start.saturating_add(rule.window));
        let Some(found) = rule.regex.captures(&self.text[start..end]) else { return };
        // Patterns have a group for a quoted value and one for a value without quotes.
        let group = found.iter().skip(1).flatten().next();
        let Some(secret) = group.or(found.get(0)) else { return };
        let (from, mut to) = (start + secret.start(), start + secret.end());
        // The window cut the match off: extend it.
        if to == end && rule.precedence == Precedence::ByPattern {
            to += bytes[to..]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || b"_-.=+/".contains(b))
                .count();
        }
        // Exclude trailing punctuation.
        while to > from
            && rule.precedence != Precedence::ByPattern
            && matches!(bytes[to - 1], b'.' | b',' | b';' | b')' | b':')
        {
            to -= 1;
        }
        if rule.passes(&self.text[from..to]) {
            let public_prefix = if secret.start() == 0 { rule.public_prefix } else { 0 };
            self.found.push(SecretSpan {
                start: from,
                end: to,
                kind: &rule.kind,
                public_prefix,
                precedence: rule.precedence,
                order: number,
            });
        }
    }

    /// True if a word may begin here, i.e. not inside another word.
    fn begins(&self, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        let before = |lookbehind: usize| {
            at.checked_sub(lookbehind).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ')
        };
        if !before(1).is_ascii_alphanumeric() {
            return true;
        }
        let escaped = before(2) == b'\\' && matches!(before(1), b'n' | b'r' | b't');
        let percent =
            before(3) == b'%' && before(2).is_ascii_hexdigit() && before(1).is_ascii_hexdigit();
        // The end of an ANSI colour (ESC [ 3 2 m), raw or as escaped by JSON.
        let colour = before(1) == b'm' && {
            let digits = bytes[..at - 1]
                .iter()
                .rev()
                .take(12)
                .take_while(|b| b.is_ascii_digit() || **b == b';');
            before(digits.count() + 2) == b'['
        };
        escaped || percent || colour
    }

    fn may_try(&mut self, rule: u16, at: usize) -> bool {
        if at >= self.run.1 {
            let bytes = self.text.as_bytes().get(at..).unwrap_or_default();
            let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            let length = bytes.iter().take_while(|byte| belongs(byte)).count();
            self.run = (at, at + length);
            self.tries.clear();
        }
        if let Some((_, tries)) = self.tries.iter_mut().find(|(other, _)| *other == rule) {
            *tries = tries.saturating_add(1);
            return *tries <= MAX_TRIES_PER_RUN;
        }
        self.tries.push((rule, 1));
        true
    }

    /// Checks the value assigned to a secret name.
    fn name(&mut self, start: usize, end: usize) {
        if start < self.named_to {
            return;
        }
        let Some((from, to)) = name_around(self.text, start, end) else { return };
        let Some(class) = self.text.get(from..to).and_then(classify) else { return };
        self.assigned(class, start, (from, to));
    }

    /// Checks the value assigned to a word for a password that is no ASCII name.
    fn word(&mut self, start: usize, end: usize) {
        let bytes = self.text.as_bytes();
        let letter = |at: Option<usize>| {
            at.and_then(|at| bytes.get(at)).is_some_and(|byte| byte.is_ascii_alphanumeric())
        };
        if start >= self.named_to && !letter(start.checked_sub(1)) && !letter(Some(end)) {
            self.assigned(SecretClass::Password, start, (start, end));
        }
    }

    /// Checks the value assigned to the name at `from..to`.
    fn assigned(&mut self, class: SecretClass, start: usize, (from, to): (usize, usize)) {
        self.named_to = to;
        if start < self.value_to {
            self.value_tries = self.value_tries.saturating_add(1);
            if self.value_tries > MAX_TRIES_PER_RUN {
                return;
            }
        }
        let Some(value) = value_of(self.text, from, to) else { return };
        let text = &self.text[value.start..value.end];
        // The words of other languages also occur in prose and labels, and as initials.
        let is_label = || Shape::of(text).digits == 0 && is_foreign(&self.text[from..to]);
        let is_secret = is_secret(class, value.assignment, text) && !is_label();
        let mut end = value.end;
        // The limit of a value cut it off: a session token may be longer.
        if is_secret && end - value.start >= MAX_VALUE_BYTES {
            let rest = self.text.as_bytes()[end..].iter();
            end += rest.take_while(|byte| is_token_byte(**byte)).count();
        }
        if start >= self.value_to {
            (self.value_to, self.value_tries) = (end, 0);
        }
        if is_secret {
            self.push(value.start, end, class.kind(), Precedence::ByName);
        }
    }

    /// Checks a text that is the whole value of a field.
    fn field(&mut self, name: &str) {
        let text = self.text;
        let trimmed = text.trim();
        let start = text.len() - text.trim_start().len();
        if name.len() <= 64 && name.to_ascii_lowercase().ends_with("cookie") {
            for (from, to) in special::cookies(text, start).0 {
                self.push(from, to, "cookie", Precedence::ByContext);
            }
        }
        if let Some(class) = classify(name) {
            let constant = is_constant(name);
            let assignment = match name.starts_with('-') {
                true => AssignmentKind::Option,
                false if constant => AssignmentKind::Environment,
                false => AssignmentKind::Field,
            };
            if is_secret(class, assignment, trimmed) {
                self.push(start, start + trimmed.len(), class.kind(), Precedence::ByName);
            } else if class == SecretClass::Key {
                self.scheme(start, trimmed);
            }
        }
    }

    /// The value of an authorization header: `Token …`, `ApiKey …`.
    fn scheme(&mut self, start: usize, value: &str) {
        if let Some((scheme, secret)) = value.split_once(' ')
            && scheme.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
            && is_secret(SecretClass::Token, AssignmentKind::Field, secret)
        {
            let from = start + scheme.len() + 1;
            self.push(from, from + secret.len(), SecretClass::Token.kind(), Precedence::ByName);
        }
    }
}

/// The length of the replacement that the text begins with, if any.
fn mark(text: &str) -> Option<usize> {
    let inner = text.strip_prefix(MARK)?;
    let end = inner.as_bytes().iter().take(64).position(|byte| *byte == b']')?;
    let (kind, number) = inner.get(..end)?.split_once(':')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (!kind.is_empty() && kind.bytes().all(plain) && number).then_some(MARK.len() + end + 1)
}
