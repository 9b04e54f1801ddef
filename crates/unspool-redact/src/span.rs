//! A secret in a text, and what happens where several rules find the same one.

use super::rules::Precedence;

/// A secret in a text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct SecretSpan<'r> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'r str,
    /// Length of the public prefix in bytes.
    pub(super) public_prefix: usize,
    pub(super) precedence: Precedence,
    /// Index of the rule: the first rule wins a tie.
    pub(super) order: u16,
}

/// Resolves overlaps by precedence.
pub(super) fn resolve_overlaps(mut found: Vec<SecretSpan<'_>>) -> Vec<SecretSpan<'_>> {
    if found.len() < 2 {
        return found;
    }
    found.sort_by_key(|span| (span.precedence, span.start, usize::MAX - span.end, span.order));
    let mut settled: Vec<SecretSpan<'_>> = Vec::with_capacity(found.len());
    for precedence in Precedence::ALL {
        let mut merged: Vec<SecretSpan<'_>> = Vec::with_capacity(found.len());
        let mut kept = settled.iter().copied().peekable();
        for span in found.iter().filter(|span| span.precedence == precedence) {
            while let Some(before) = kept.next_if(|kept| kept.end <= span.start) {
                merged.push(before);
            }
            let behind = merged.last().is_none_or(|last| last.end <= span.start);
            if behind && kept.peek().is_none_or(|next| span.end <= next.start) {
                merged.push(*span);
            }
        }
        merged.extend(kept);
        settled = merged;
    }
    settled
}

/// Unites overlapping matches of the text and of its visible form: either may cover more.
pub(super) fn unite(mut spans: Vec<SecretSpan<'_>>) -> Vec<SecretSpan<'_>> {
    spans.sort_by_key(|span| (span.start, span.precedence, usize::MAX - span.end));
    let mut united: Vec<SecretSpan<'_>> = Vec::with_capacity(spans.len());
    for span in spans {
        match united.last_mut().filter(|last| span.start < last.end) {
            Some(last) => {
                let end = last.end.max(span.end);
                if span.precedence < last.precedence {
                    *last = SecretSpan { start: last.start, public_prefix: 0, ..span };
                }
                last.end = end;
            }
            None => united.push(span),
        }
    }
    united
}
