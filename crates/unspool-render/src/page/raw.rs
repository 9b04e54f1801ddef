//! The records that a part comes from, as they stand in the agent's own file.

use maud::{Markup, html};
use unspool_core::present::{format, json};

use crate::text::safe;

/// One record.
pub struct Record<'a> {
    pub file: Option<String>,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// What it says, or why that cannot be had.
    pub text: Result<&'a str, String>,
}

/// Inside a dialog.
pub fn raw(records: &[Record<'_>], left_out: usize) -> Markup {
    html! {
        h2 { "As its source has it" }
        @for record in records {
            p {
                @if let Some(file) = &record.file { span.path { (safe(file)) } }
                " from byte " (format::number(record.offset))
            }
            @match &record.text {
                Ok(text) => pre tabindex="0" { code { (safe(&json::pretty(text))) } },
                Err(why) => p.tone-warning { (safe(why)) },
            }
        }
        @if records.is_empty() { p { "No record told of it: it follows from others." } }
        @if left_out > 0 { p { "And " (format::count(left_out, "more record")) "." } }
        form method="dialog" { button { "Close" } }
    }
}
