//! Paints diffs as unified HTML tables with marked words.

use maud::{Markup, html};
use unspool_view::block::{Diff, DiffKind, DiffLine};

use crate::html::text::safe;

pub fn paint(diff: &Diff) -> Markup {
    let (added, removed) = diff.counts();
    let lines = diff.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    html! {
        figure.diff.long[super::is_long(lines)] {
            figcaption {
                @if let Some(path) = &diff.path { span.path { (safe(path)) } }
                span.counts {
                    @if added > 0 { span.tone-added { "+" (added) } }
                    @if removed > 0 { span.tone-removed { "−" (removed) } }
                }
            }
            div.scroll tabindex="0" {
                table.lines {
                    @for hunk in &diff.hunks {
                        tbody { @for line in &hunk.lines { (paint_line(line)) } }
                    }
                }
            }
            (super::whole(lines))
        }
    }
}

fn paint_line(line: &DiffLine) -> Markup {
    let (class, sign, name) = match line.kind {
        DiffKind::Context => ("context", " ", None),
        DiffKind::Added => ("added", "+", Some("added")),
        DiffKind::Removed => ("removed", "−", Some("removed")),
    };
    let number = |at: Option<u64>| at.map(|at| at.to_string()).unwrap_or_default();
    html! {
        tr class=(class) {
            td.number data-line=(number(line.old)) {}
            td.number data-line=(number(line.new)) {}
            td.sign data-sign=(sign) aria-label=[name] {}
            td.line {
                @for span in &line.spans {
                    @if span.changed { mark { (safe(&span.text)) } } @else { (safe(&span.text)) }
                }
            }
        }
    }
}
