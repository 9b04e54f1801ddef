//! The raw records of a part from the agent's own file, as the content of a dialog.

use maud::{Markup, html};
use unspool_export::html::text::safe;
use unspool_view::present::{format, json};

/// One record.
pub struct RecordView<'a> {
    pub file: Option<String>,
    /// Byte offset in the file.
    pub offset: u64,
    /// The record, or why it is not available.
    pub text: Result<&'a str, String>,
}

/// The content of the dialog.
pub fn raw(records: &[RecordView<'_>], left_out: usize) -> Markup {
    html! {
        h2 { "Raw records" }
        @for record in records {
            p {
                @if let Some(file) = &record.file { span.path { (safe(file)) } }
                " at byte " (format::number(record.offset))
            }
            @match &record.text {
                Ok(text) => pre tabindex="0" { code { (safe(&json::pretty(text))) } },
                Err(why) => p.tone-warning { (safe(why)) },
            }
        }
        @if records.is_empty() { p { "No record: Unspool derived this part from other parts." } }
        @if left_out > 0 { p { (format::count(left_out, "more record")) " not shown." } }
        form method="dialog" { button { "Close" } }
    }
}
