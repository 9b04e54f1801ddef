//! Redacts secrets in exports: keys, tokens, passwords, private keys. Each becomes
//! `[redacted:kind:number]`. One secret has the same replacement everywhere in an export, including
//! places where only another occurrence identifies it as a secret.
//!
//! [`Rules`] are compiled once. A [`Redactor`] holds the state of one export: it walks sessions,
//! turns and parts and lists the replacements, never the secrets, in its [`RedactionReport`].
//!
//! ```
//! use unspool_redact::{Redactor, Rules};
//!
//! let rules = Rules::standard();
//! let mut redactor = Redactor::new(&rules);
//! let text = redactor.text("export DB_PASSWORD=correct7horse");
//! assert_eq!(text, "export DB_PASSWORD=[redacted:password:1]");
//! ```

mod assignment;
mod commands;
mod contexts;
mod declaration;
mod document;
mod json;
mod key_line;
mod key_prefix;
mod keywords;
mod line;
mod list;
mod matching;
mod named;
mod pair;
mod private_key;
mod providers;
mod quote;
mod redacted;
mod report;
mod rules;
mod scan;
mod secret_name;
mod secrets;
mod sentence;
mod span;
mod special;
mod structure;
mod value_shape;
mod verdict;
mod visible;
mod walk;
mod walk_prompt;
mod walk_question;

use std::borrow::Cow;
use std::sync::Arc;

pub use redacted::Redacted;
pub use report::{Location, Owner, RedactedSecret, RedactionReport};
pub use rules::{CustomRule, RedactionRule, RuleError, Rules};

use scan::{ScanContext, Scanned, is_clean, scan};
use secrets::{SecretTable, merge};
use unspool_model::json::Json;

/// A replacement may make adjacent text look like a secret, so scanning repeats. Two rounds have
/// been enough in practice; this is only a safety bound.
const MAX_ROUNDS: usize = 6;

/// The secrets that a first pass over a session found, to be redacted in a later answer about it
/// without another pass. Nobody outside this crate can read them.
#[derive(Clone, Default)]
pub struct CollectedSecrets(SecretTable);

/// The redaction state of one export.
pub struct Redactor<'r> {
    /// `None` if the redactor is off.
    rules: Option<&'r Rules>,
    secrets: SecretTable,
    report: RedactionReport,
    /// Location of the text being scanned.
    location: Location,
    /// Collect secrets without replacing them: the first of two passes.
    collecting: bool,
    /// The secret found last of those that were replaced.
    newest: Option<usize>,
}

/// A byte range and the index of the secret that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Edit {
    start: usize,
    end: usize,
    secret: usize,
}

/// A replaced byte range and the length of its replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shift {
    start: usize,
    end: usize,
    length: usize,
}

impl<'r> Redactor<'r> {
    pub fn new(rules: &'r Rules) -> Redactor<'r> {
        Redactor::with(Some(rules))
    }

    /// A redactor that changes nothing: for the owner's own views, and for exports with an explicit
    /// `--no-redact` or `redact=false`.
    pub fn off() -> Redactor<'r> {
        Redactor::with(None)
    }

    fn with(rules: Option<&'r Rules>) -> Redactor<'r> {
        Redactor {
            rules,
            secrets: SecretTable::default(),
            report: RedactionReport::default(),
            location: Location::default(),
            collecting: false,
            newest: None,
        }
    }

    /// A redactor for text that leaves in pieces, some of them more than once: a replacement is
    /// `[redacted:kind:tag]`, where the tag depends on the secret and this key alone.
    pub fn tagging(rules: &'r Rules, key: Arc<str>) -> Redactor<'r> {
        Redactor { secrets: SecretTable::tagged(key), ..Redactor::with(Some(rules)) }
    }

    /// From now on it only learns secrets and counts no replacements, or no longer so.
    pub fn collect(&mut self, collecting: bool) {
        self.collecting = collecting;
    }

    /// How many secrets it knows.
    pub fn secrets(&self) -> usize {
        self.secrets.count()
    }

    /// True if it replaces a secret in this line that it did not know when it knew so many.
    pub fn is_outdated(&mut self, line: &str, secrets: usize) -> bool {
        self.newest = None;
        self.line(line);
        self.newest.is_some_and(|newest| newest >= secrets)
    }

    /// Redacts a line of a log: JSON, a member of an indented JSON document, or else text.
    pub fn line<'t>(&mut self, line: &'t str) -> Cow<'t, str> {
        let replaced = match line.trim_start().chars().next() {
            Some('{' | '[') => self.line_as_json(line),
            Some('"') => match self.line_as_json(&format!("{{{line}}}")) {
                None => None,
                Some(whole) => {
                    let member = whole.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                    let Some(member) = member else { return self.text(line) };
                    Some(member.to_owned())
                }
            },
            Some(_) | None => return self.text(line),
        };
        replaced.map_or(Cow::Borrowed(line), Cow::Owned)
    }

    fn line_as_json(&mut self, line: &str) -> Option<String> {
        self.location = Location::default();
        self.replaced_json(line, "")
    }

    /// A redactor that knows these secrets from the start. Off without rules.
    pub fn resume(rules: Option<&'r Rules>, secrets: CollectedSecrets) -> Redactor<'r> {
        Redactor { secrets: secrets.0, ..Redactor::with(rules) }
    }

    /// What it knows, for [`Redactor::resume`].
    pub fn into_secrets(mut self) -> CollectedSecrets {
        self.secrets.begin_report();
        CollectedSecrets(self.secrets)
    }

    pub fn is_off(&self) -> bool {
        self.rules.is_none()
    }

    /// The replacements since the last call.
    pub fn take_report(&mut self) -> RedactionReport {
        self.secrets.begin_report();
        std::mem::take(&mut self.report)
    }

    /// The replacements so far.
    pub fn report(&self) -> &RedactionReport {
        &self.report
    }

    /// Redacts a text without context.
    pub fn text<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        self.location = Location::default();
        match self.replaced(text, ScanContext::default(), &mut |_| {}) {
            Some(text) => Cow::Owned(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Redacts JSON without context. Everything but the strings that hold secrets stays
    /// byte-identical.
    pub fn json(&mut self, json: &Json) -> Json {
        self.location = Location::default();
        self.replaced_json(json.text(), "")
            .map_or_else(|| json.clone(), |text| Json::checked(&text))
    }

    /// The redacted text, or `None` if it has no secrets. Calls `on_edits` after each round.
    fn replaced(
        &mut self,
        text: &str,
        context: ScanContext<'_>,
        on_edits: &mut dyn FnMut(&[Shift]),
    ) -> Option<String> {
        let mut current: Option<String> = None;
        for _ in 0..MAX_ROUNDS {
            let text = current.as_deref().unwrap_or(text);
            let edits = self.edits(text, context);
            if edits.is_empty() {
                break;
            }
            let mut out = String::with_capacity(text.len());
            let mut shifted = Vec::with_capacity(edits.len());
            let mut copied = 0;
            for edit in &edits {
                out.push_str(text.get(copied..edit.start).unwrap_or_default());
                let begin = out.len();
                self.secrets.mark(edit.secret, &mut out);
                shifted.push(Shift { start: edit.start, end: edit.end, length: out.len() - begin });
                copied = edit.end;
            }
            out.push_str(text.get(copied..).unwrap_or_default());
            self.count(&edits);
            on_edits(&shifted);
            current = Some(out);
        }
        current
    }

    fn count(&mut self, edits: &[Edit]) {
        self.newest = edits.iter().map(|edit| edit.secret).chain(self.newest).max();
        if self.collecting {
            return;
        }
        for edit in edits {
            self.secrets.report(edit.secret, &self.location, &mut self.report);
        }
    }

    /// The replacements to make in a text, in order.
    fn edits(&mut self, text: &str, context: ScanContext<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let Some(rules) = self.rules else { return edits };
        let Scanned { spans, visible } = scan(rules, text, context);
        for span in spans {
            let Some(secret) = text.get(span.start..span.end) else { continue };
            // A coloured or emphasised key is the same key.
            let seen = visible.as_ref().and_then(|visible| visible.seen(secret));
            let secret = seen.as_ref().map_or(secret, |seen| &seen.text);
            let secret = self.secrets.intern(span.kind, secret, span.public_prefix);
            edits.push(Edit { start: span.start, end: span.end, secret });
        }
        if !context.opaque {
            self.secrets.sweep(text, &mut edits);
        }
        if let Some(visible) = visible.filter(|_| !context.opaque) {
            let mut swept = Vec::new();
            self.secrets.sweep(&visible.text, &mut swept);
            for edit in &mut swept {
                (edit.start, edit.end) = visible.original(edit.start, edit.end);
            }
            merge(&mut edits, swept);
        }
        edits
    }

    /// True if a text cannot hold any secret. Costs one pass.
    fn is_clean(&self, text: &str) -> bool {
        self.secrets.is_empty() && self.rules.is_none_or(|rules| is_clean(rules, text))
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;

#[cfg(test)]
mod tagging_tests;
