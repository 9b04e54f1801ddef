//! Verifies a query against texts and finds the matching ranges. Texts are folded to lower case
//! character by character, so every position in the folded text maps to one in the original, even
//! where the lower case has another length.

use std::borrow::Cow;
use std::ops::Range;

use super::chars::{fold, in_same_word};
use super::query::{Condition, ConditionKind, TextQuery};

/// Matches a query against the fields of a document, one after the other.
pub struct Matcher<'q> {
    query: &'q TextQuery,
    missing: Vec<&'q Condition>,
    hit_excluded: bool,
}

impl<'q> Matcher<'q> {
    pub fn new(query: &'q TextQuery) -> Self {
        Matcher { query, missing: query.conditions().iter().collect(), hit_excluded: false }
    }

    /// Adds a field. Returns the ranges in which the conditions match.
    pub fn add_field(&mut self, field: &str) -> Vec<Range<usize>> {
        let folded = Folded::of(field);
        self.hit_excluded |= self.query.excluded().iter().any(|condition| condition.holds(&folded));
        self.missing.retain(|condition| !condition.holds(&folded));
        self.query.ranges_in(&folded)
    }

    /// True if each condition matches one of the fields so far and no exclusion matches any.
    pub fn holds(&self) -> bool {
        self.missing.is_empty() && !self.hit_excluded
    }

    /// True if further fields cannot change the result.
    pub fn is_decided(&self) -> bool {
        self.hit_excluded || (self.missing.is_empty() && self.query.excluded().is_empty())
    }
}

impl TextQuery {
    /// True if each condition matches one of the fields and no exclusion matches any.
    pub fn matches(&self, fields: &[&str]) -> bool {
        let mut matcher = Matcher::new(self);
        for field in fields {
            if matcher.is_decided() {
                break;
            }
            matcher.add_field(field);
        }
        matcher.holds()
    }

    /// The byte ranges in which the conditions match, on character boundaries and in order.
    /// Overlapping matches are merged.
    pub fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        self.ranges_in(&Folded::of(text))
    }

    fn ranges_in(&self, folded: &Folded<'_>) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = self
            .conditions()
            .iter()
            .flat_map(|condition| condition.hits(folded))
            .map(|hit| folded.original(hit.start)..folded.original(hit.end))
            .collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        ranges.dedup_by(|next, range| {
            let overlap = next.start < range.end;
            if overlap {
                range.end = range.end.max(next.end);
            }
            overlap
        });
        ranges
    }
}

impl Condition {
    fn holds(&self, folded: &Folded<'_>) -> bool {
        self.hits(folded).next().is_some()
    }

    /// Its matches in the folded text.
    fn hits<'a>(&'a self, folded: &'a Folded<'_>) -> impl Iterator<Item = Range<usize>> + 'a {
        let text = folded.text.as_ref();
        let (start, end) = match self.kind() {
            ConditionKind::Word | ConditionKind::Phrase => (true, true),
            ConditionKind::Prefix => (true, false),
            ConditionKind::Fragment => (false, false),
        };
        let whole = move |hit: &Range<usize>| {
            (!start || !inside(text, hit.start)) && (!end || !inside(text, hit.end))
        };
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let at = from + self.finder.find(text.as_bytes().get(from..)?)?;
                let hit = at..at + self.text().len();
                if whole(&hit) {
                    from = hit.end.max(at + 1);
                    return Some(hit);
                }
                // A rejected match of a phrase may overlap an accepted one: `a a` in `xa a a`.
                from = at + 1;
            }
        })
    }
}

/// True if a position is inside a word.
fn inside(text: &str, at: usize) -> bool {
    let Some((before, behind)) = text.split_at_checked(at) else { return false };
    in_same_word(before.chars().next_back(), behind.chars().next())
}

/// A text in lower case with a mapping to the original positions.
struct Folded<'a> {
    text: Cow<'a, str>,
    /// Positions after characters whose lower case has another length: in the folded text and in
    /// the original.
    offset_changes: Vec<(usize, usize)>,
}

impl<'a> Folded<'a> {
    fn of(text: &'a str) -> Self {
        if text.is_ascii() {
            let capitals = text.bytes().any(|byte| byte.is_ascii_uppercase());
            let text =
                if capitals { Cow::Owned(text.to_ascii_lowercase()) } else { Cow::Borrowed(text) };
            return Folded { text, offset_changes: Vec::new() };
        }
        let mut folded = String::with_capacity(text.len());
        let mut offset_changes = Vec::new();
        let mut rest = text;
        while let Some(wide) = rest.bytes().position(|byte| !byte.is_ascii()) {
            let (plain, behind) = rest.split_at(wide);
            push_lower(&mut folded, plain);
            rest = behind;
            while let Some(character) = rest.chars().next().filter(|it| !it.is_ascii()) {
                let lower = fold(character);
                folded.push(lower);
                rest = &rest[character.len_utf8()..];
                if lower.len_utf8() != character.len_utf8() {
                    offset_changes.push((folded.len(), text.len() - rest.len()));
                }
            }
        }
        push_lower(&mut folded, rest);
        Folded { text: Cow::Owned(folded), offset_changes }
    }

    /// The position in the original text.
    fn original(&self, at: usize) -> usize {
        let drift = self.offset_changes.partition_point(|(folded, _)| *folded <= at);
        match drift.checked_sub(1).and_then(|index| self.offset_changes.get(index)) {
            Some((folded, original)) => at - folded + original,
            None => at,
        }
    }
}

fn push_lower(folded: &mut String, plain: &str) {
    let start = folded.len();
    folded.push_str(plain);
    folded[start..].make_ascii_lowercase();
}
