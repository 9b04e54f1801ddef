//! Cuts one line of a text around its matches, for a list of search results.

use std::ops::Range;

use super::chars::extends_grapheme;

/// A line of a text with marked matches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snippet {
    /// No control characters, no line feeds, no bidirectional overrides; `…` where it was cut.
    pub text: String,
    /// The byte ranges of the matches, in order.
    pub ranges: Vec<Range<usize>>,
}

const ELLIPSIS: char = '…';

/// The line of about `width` characters that contains the most matches. `ranges` are the matches
/// that `TextQuery::ranges` found in the text.
pub fn snippet(text: &str, ranges: &[Range<usize>], width: usize) -> Snippet {
    let width = width.max(1);
    let cluster = densest(text, ranges, width);
    let window = window(text, cluster, width);
    let shown = text.get(window.clone()).unwrap_or_default();
    let mut snippet = Snippet::default();
    if window.start > 0 {
        snippet.text.push(ELLIPSIS);
    }
    let first = ranges.partition_point(|range| range.end <= window.start);
    let mut ranges = ranges.get(first..).unwrap_or_default().iter().peekable();
    let mut open = None;
    let mut blank = snippet.text.is_empty();
    for (at, character) in shown.char_indices() {
        let at = window.start + at;
        if let Some(start) = open
            && ranges.peek().is_none_or(|range| range.end <= at)
        {
            close(&mut snippet, start);
            open = None;
            ranges.next();
        }
        // Skip ranges that ended before this character, so that odd ranges mark nothing extra.
        while ranges.peek().is_some_and(|range| range.end <= at) {
            ranges.next();
        }
        let space = is_space(character);
        if open.is_none() && !(space && blank) && ranges.peek().is_some_and(|it| it.start <= at) {
            open = Some(snippet.text.len());
        }
        if !space {
            snippet.text.push(character);
        } else if !blank {
            snippet.text.push(' ');
        }
        blank = space;
    }
    if let Some(start) = open {
        close(&mut snippet, start);
    }
    if window.end < text.len() {
        snippet.text.push(ELLIPSIS);
    }
    snippet
}

fn close(snippet: &mut Snippet, start: usize) {
    if start < snippet.text.len() {
        snippet.ranges.push(start..snippet.text.len());
    }
}

/// True for characters that collapse into one space.
fn is_space(character: char) -> bool {
    let steers = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_whitespace() || character.is_control() || steers
}

/// The range of text with the most matches within `width`. Measured in bytes, which for most texts
/// equals characters.
fn densest(text: &str, ranges: &[Range<usize>], width: usize) -> Range<usize> {
    let mut best = 0..0;
    let mut most = 0;
    let mut last = 0;
    for (first, range) in ranges.iter().enumerate() {
        last = last.max(first);
        while ranges.get(last + 1).is_some_and(|next| next.end.saturating_sub(range.start) <= width)
        {
            last += 1;
        }
        let count = last + 1 - first;
        if count > most {
            most = count;
            best = range.start..ranges.get(last).map_or(range.end, |last| last.end);
        }
    }
    let start = text.floor_char_boundary(best.start);
    start..text.floor_char_boundary(best.end).max(start)
}

/// A window of `width` characters centred on the cluster.
fn window(text: &str, cluster: Range<usize>, width: usize) -> Range<usize> {
    let (before, rest) = text.split_at(cluster.start);
    let inside = rest.get(..cluster.len()).unwrap_or(rest).chars().take(width).count();
    let margin = (width - inside) / 2;
    let start = before.char_indices().rev().take(margin).last().map_or(cluster.start, |(at, _)| at);
    let lead = before.get(start..).map_or(0, |lead| lead.chars().count());
    let tail = width - lead.min(width);
    let end = rest.char_indices().nth(tail).map_or(text.len(), |(at, _)| cluster.start + at);
    // Use the width that is left over after the cluster before it.
    let behind = text.get(cluster.start..end).map_or(0, |it| it.chars().count());
    let spare = width.saturating_sub(lead + behind);
    let start = text
        .get(..start)
        .and_then(|before| before.char_indices().rev().take(spare).last())
        .map_or(start, |(at, _)| at);
    snap_to_grapheme(text, start, Snap::Backward)..snap_to_grapheme(text, end, Snap::Forward)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Snap {
    Backward,
    Forward,
}

/// The nearest position that does not split a grapheme. Gives up after 16 characters, because
/// combining marks can be stacked without limit.
fn snap_to_grapheme(text: &str, mut at: usize, side: Snap) -> usize {
    for _ in 0..16 {
        let (before, behind) = text.split_at(at);
        let (Some(one), Some(other)) = (before.chars().next_back(), behind.chars().next()) else {
            return at;
        };
        if !extends_grapheme(one, other) {
            return at;
        }
        at = match side {
            Snap::Backward => at - one.len_utf8(),
            Snap::Forward => at + other.len_utf8(),
        };
    }
    at
}
