//! The secrets of one export: their numbering, and the search for their other occurrences.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use rustc_hash::FxHashMap;
use unspool_model::id::sha256;

use super::Edit;
use super::report::{Location, RedactedSecret, RedactionReport};
use super::value_shape::{MARK, Shape, is_ordinary, is_wordy};

/// Maximum number of secrets to search for everywhere; hostile text may contain more.
const MAX_SWEPT_SECRETS: usize = 4096;
/// Number of new secrets to search for one by one before the automaton is rebuilt.
const MAX_UNINDEXED_SECRETS: usize = 16;
/// The length of a tag: enough to tell secrets apart, too little to confirm a guess.
pub(super) const TAG_CHARS: usize = 6;
/// Shorter secrets match whole words only: they may be part of a longer word by chance.
const MIN_SUBSTRING_BYTES: usize = 16;

#[derive(Clone, Default)]
pub(super) struct SecretTable {
    secrets: Vec<Secret>,
    /// Index of each secret, by its identity.
    places: FxHashMap<String, usize>,
    numbers: FxHashMap<String, u32>,
    /// Indices of the secrets to search for everywhere.
    swept: Vec<usize>,
    /// Finds the first `built` entries of `swept`.
    automaton: Option<AhoCorasick>,
    /// Number of secrets in the automaton.
    built: usize,
    /// Replacements have a tag made with this key instead of a number.
    tag_key: Option<Arc<str>>,
}

#[derive(Clone)]
struct Secret {
    text: String,
    /// Its replacement.
    mark: String,
    /// Its report entry, and the index in the report once it has been replaced.
    report_entry: RedactedSecret,
    reported: Option<usize>,
}

impl SecretTable {
    pub(super) fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Writes the replacement of a secret.
    pub(super) fn mark(&self, secret: usize, out: &mut String) {
        if let Some(secret) = self.secrets.get(secret) {
            out.push_str(&secret.mark);
        }
    }

    /// The index of a secret; adds it if it is new.
    pub(super) fn intern(&mut self, kind: &str, secret: &str, public_prefix: usize) -> usize {
        let identity = identity(kind, secret);
        if let Some(place) = self.places.get(identity.as_ref()) {
            return *place;
        }
        let place = self.secrets.len();
        let tag = self.tag_key.as_ref().map(|key| tag(key, &identity));
        self.places.insert(identity.into_owned(), place);
        let number = self.numbers.entry(kind.to_owned()).or_default();
        *number += 1;
        let mark = format!("{MARK}{kind}:{}]", tag.unwrap_or_else(|| number.to_string()));
        let shown = secret.get(..public_prefix).filter(|shown| !shown.is_empty());
        let mut hint = shown.map(|shown| format!("{shown}… ")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(hint, "({} characters)", secret.chars().count());
        let report_entry = RedactedSecret {
            kind: kind.to_owned(),
            number: *number,
            count: 0,
            places: Vec::new(),
            hint,
        };
        if self.swept.len() < MAX_SWEPT_SECRETS && is_distinctive(kind, secret) {
            self.swept.push(place);
        }
        self.secrets.push(Secret { text: secret.to_owned(), mark, report_entry, reported: None });
        place
    }

    pub(super) fn tagged(key: Arc<str>) -> SecretTable {
        SecretTable { tag_key: Some(key), ..SecretTable::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.secrets.len()
    }

    /// The next report has entries of its own.
    pub(super) fn begin_report(&mut self) {
        self.secrets.iter_mut().for_each(|secret| secret.reported = None);
    }

    /// Records a replacement in the report.
    pub(super) fn report(
        &mut self,
        secret: usize,
        location: &Location,
        report: &mut RedactionReport,
    ) {
        let Some(secret) = self.secrets.get_mut(secret) else { return };
        let at = *secret.reported.get_or_insert_with(|| {
            report.secrets.push(secret.report_entry.clone());
            report.secrets.len() - 1
        });
        if let Some(report_entry) = report.secrets.get_mut(at) {
            report_entry.record_at(location);
        }
    }

    /// Adds occurrences of secrets that no rule matched.
    pub(super) fn sweep(&mut self, text: &str, edits: &mut Vec<Edit>) {
        if self.swept.is_empty() {
            return;
        }
        if self.swept.len() - self.built > MAX_UNINDEXED_SECRETS {
            let texts = self.swept.iter().filter_map(|at| self.secrets.get(*at));
            self.automaton = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(texts.map(|secret| &secret.text))
                .ok();
            self.built = if self.automaton.is_some() { self.swept.len() } else { self.built };
        }
        let mut found: Vec<Edit> = Vec::new();
        for swept in self.automaton.iter().flat_map(|automaton| automaton.find_iter(text)) {
            if let Some(secret) = self.swept.get(swept.pattern().as_usize()) {
                found.push(Edit { start: swept.start(), end: swept.end(), secret: *secret });
            }
        }
        for place in self.swept.get(self.built..).unwrap_or_default() {
            let Some(secret) = self.secrets.get(*place) else { continue };
            for (start, piece) in text.match_indices(secret.text.as_str()) {
                found.push(Edit { start, end: start + piece.len(), secret: *place });
            }
        }
        found.retain(|edit| is_whole_word(text, *edit));
        if found.is_empty() {
            return;
        }
        found.sort_by_key(|edit| (edit.start, usize::MAX - edit.end));
        merge(edits, found);
    }

    #[cfg(test)]
    pub(super) fn secrets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secrets.iter().map(|secret| (secret.mark.as_str(), secret.text.as_str()))
    }
}

/// Merges swept occurrences into the edits. Where they overlap, the match of a rule wins.
pub(super) fn merge(edits: &mut Vec<Edit>, found: Vec<Edit>) {
    let mut merged: Vec<Edit> = Vec::with_capacity(edits.len() + found.len());
    let mut kept = edits.iter().copied().peekable();
    for edit in found {
        while let Some(before) = kept.next_if(|kept| kept.end <= edit.start) {
            merged.push(before);
        }
        let behind = merged.last().is_none_or(|last| last.end <= edit.start);
        if behind && kept.peek().is_none_or(|next| edit.end <= next.start) {
            merged.push(edit);
        }
    }
    merged.extend(kept);
    *edits = merged;
}

/// True if the secret is specific enough to search for without context. A password that is an
/// ordinary word may occur anywhere.
fn is_distinctive(kind: &str, secret: &str) -> bool {
    let shape = Shape::of(secret);
    // A part of the mark would be found in every mark.
    if kind == "home" || is_ordinary(secret) || secret.contains(MARK) || MARK.contains(secret) {
        return false;
    }
    let mixed = shape.digits > 0 && shape.letters() > 0 || shape.others > 0 && shape.letters() > 0;
    shape.length >= 8 && mixed && !(is_wordy(secret) && shape.digits == 0)
}

fn is_whole_word(text: &str, edit: Edit) -> bool {
    if edit.end - edit.start >= MIN_SUBSTRING_BYTES {
        return true;
    }
    let bytes = text.as_bytes();
    let word = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at)).is_some_and(|byte| byte.is_ascii_alphanumeric())
    };
    !word(edit.start.checked_sub(1)) && !word(Some(edit.end))
}

/// A keyed digest of a secret (HMAC in its nested form), so that a secret has the same tag whenever
/// it is sent, and nobody without the key can try guesses.
fn tag(key: &str, identity: &str) -> String {
    let inner = sha256(format!("{key}\0{identity}").as_bytes());
    let mut tag = sha256(format!("{key}\0{inner}").as_bytes());
    tag.truncate(TAG_CHARS);
    tag
}

/// The identity of a secret. Line ends in private keys and the path syntax of home folders are
/// ignored.
fn identity<'a>(kind: &str, secret: &'a str) -> Cow<'a, str> {
    match kind {
        "private-key" => {
            let lines = secret.replace("\\n", "").replace("\\r", "");
            let kept = lines.chars().filter(|c| c.is_ascii_alphanumeric() || "+/=".contains(*c));
            Cow::Owned(kept.collect())
        }
        "home" => {
            let name = secret.rsplit(['/', '\\', '-']).next().unwrap_or(secret);
            Cow::Owned(format!("home {name}"))
        }
        _ => Cow::Borrowed(secret),
    }
}
