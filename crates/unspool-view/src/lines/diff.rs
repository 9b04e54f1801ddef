//! Layout of diffs: line numbers, +/- marks, and highlighted changed words.

use super::blocks::{line_limit, more_line, wrap_limited};
use super::wrap::{Break, clip};
use super::{Frame, Line, Style, TextRole};
use crate::block::{Diff, DiffKind, DiffLine};

pub fn lay(diff: &Diff, frame: &Frame<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(path) = diff.path.as_deref().filter(|_| frame.names_files) {
        lines.push(clip(Line::of(path, Style::role(TextRole::Path).strong()), frame.width));
    }
    let limit = line_limit(frame).unwrap_or(usize::MAX);
    let total: usize = diff.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let all = || diff.hunks.iter().flat_map(|hunk| &hunk.lines);
    let digits = all().filter_map(number).max().map_or(0, |number| number.to_string().len());
    let mut at = 0;
    for (index, hunk) in diff.hunks.iter().enumerate() {
        if index > 0 {
            lines.push(Line::of("⋯", Style::gutter()));
        }
        for line in &hunk.lines {
            if lines.len() >= limit && at + 1 < total {
                lines.push(more_line(total - at, "line"));
                return lines;
            }
            let room = limit - lines.len().min(limit);
            lines.extend(lay_line(line, digits, room, frame));
            at += 1;
        }
    }
    lines
}

fn number(line: &DiffLine) -> Option<u64> {
    line.new.or(line.old)
}

fn lay_line(line: &DiffLine, digits: usize, room: usize, frame: &Frame<'_>) -> Vec<Line> {
    let (mark, role, word) = match line.kind {
        DiffKind::Context => ("  ", TextRole::Plain, TextRole::Plain),
        DiffKind::Added => ("+ ", TextRole::Added, TextRole::AddedWord),
        DiffKind::Removed => ("- ", TextRole::Removed, TextRole::RemovedWord),
    };
    let numbers = match (digits, number(line)) {
        (0, _) => String::new(),
        (_, Some(number)) => format!("{number:>digits$} "),
        (_, None) => " ".repeat(digits + 1),
    };
    let is_context = line.kind == DiffKind::Context;
    let style = |role| Style { dim: frame.base.dim || is_context, ..Style::role(role) };
    let hang = " ".repeat(numbers.len());
    frame.inside((&numbers, Style::gutter()), (&hang, Style::default()), |frame| {
        frame.inside((mark, style(role)), ("  ", style(role)), |frame| {
            let mut text = Line::default();
            for span in &line.spans {
                text.push(&span.text, style(if span.changed { word } else { role }));
            }
            wrap_limited(text, frame.width, room, Break::Anywhere)
        })
    })
}
