//! Applies a regex rule at a keyword, within limits that keep the search linear.

use regex::Captures;

use super::rules::{Lookbehind, Precedence, RedactionRule};
use super::scan::Scan;
use super::span::SecretSpan;

/// Maximum number of tries of a rule within one run of word characters. Without a limit, text that
/// repeats a key prefix would be scanned to its end each time.
pub(super) const MAX_TRIES_PER_RUN: u8 = 4;

/// Longest beginning of a key that marks of Markdown may split.
const MAX_EMPHASISED_BYTES: usize = 80;

impl<'r> Scan<'r, '_> {
    /// Applies a regex rule at a keyword.
    pub(super) fn match_rule(&mut self, number: u16, rule: &'r RedactionRule, word: usize) {
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
        if rule.every {
            if self.command.0 == number && start < self.command.1 {
                return;
            }
            let command = &self.text[start..end];
            let command = &command[..command.find('\n').unwrap_or(command.len())];
            let end = start + command.len();
            self.command = (number, end);
            for found in rule.regex.captures_iter(command) {
                self.matched(number, rule, (start, end), &found);
            }
        } else if let Some(found) = rule.regex.captures(&self.text[start..end]) {
            self.matched(number, rule, (start, end), &found);
        } else {
            self.emphasis |= rule.precedence == Precedence::ByPattern
                && rule.public_prefix > 3
                && is_emphasised(bytes, word);
        }
    }

    /// Takes the secret of a regex match in the text at `start..end`.
    fn matched(
        &mut self,
        number: u16,
        rule: &'r RedactionRule,
        (start, end): (usize, usize),
        found: &Captures<'_>,
    ) {
        let bytes = self.text.as_bytes();
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
    pub(super) fn begins(&self, at: usize) -> bool {
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
}

/// True if marks of Markdown stand inside the word at an offset: `**ghp_**…`.
fn is_emphasised(bytes: &[u8], word: usize) -> bool {
    let rest = bytes.get(word..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MAX_EMPHASISED_BYTES)];
    let letter = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = rest.iter().take_while(letter).count();
    let marks = rest[length..].iter().take_while(|byte| matches!(byte, b'*' | b'`')).count();
    marks > 0 && rest[length + marks..].iter().take_while(letter).count() >= 8
}
