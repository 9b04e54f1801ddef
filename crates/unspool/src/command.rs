//! The commands, one file each, and the helpers they share.

pub mod attach;
pub mod db;
pub mod delete;
pub mod doctor;
pub mod export;
pub mod hook;
pub mod hooks;
pub mod import;
pub mod list;
pub mod search;
pub mod serve;
pub mod show;
pub mod stats;
pub mod sync;
pub mod tag;
pub mod terminal;

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use serde::Serialize;
use unspool_sources::decode::Warning;
use unspool_view::block::is_bidi;
use unspool_view::lines::make_visible;
use unspool_view::segment::SegmentRule;

use crate::paint;

pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints warnings to stderr. File names are untrusted, so control characters are escaped.
pub fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let line = if warning.line > 0 { format!(":{}", warning.line) } else { String::new() };
        let text = format!("{}{line}: {}", warning.file, warning.what);
        eprintln!("unspool: {}", make_visible(&text));
    }
}

fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// How to paint on standard output.
pub fn style(width: Option<u16>, plain: bool, full: bool) -> paint::Style {
    let width = width.map(usize::from).or_else(paint::terminal_width);
    paint::Style {
        colour: !plain && io::stdout().is_terminal() && !no_colour(),
        width: width.unwrap_or(100).max(20),
        full,
        rule: SegmentRule::Default,
    }
}

pub fn write_json(document: &impl Serialize) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if io::stdout().is_terminal() {
        let text = serde_json::to_string_pretty(document).map_err(io::Error::from)?;
        out.write_all(escape_invisible(&text).as_bytes())?;
    } else {
        serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
    }
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// JSON with the characters as escapes that a terminal would execute or that disguise text. JSON
/// itself escapes only the first 32; these are inside strings as well.
fn escape_invisible(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}') || is_bidi(c) {
            out.push_str(&format!("\\u{:04x}", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape_invisible;

    #[test]
    fn json_for_a_terminal_has_no_control_characters_and_the_same_value() {
        let value = serde_json::json!({ "a\u{9b}31m": "x\u{202e}y\u{7f}é✓\u{1b}", "n": 1 });
        let text = escape_invisible(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
        assert!(text.contains("é✓"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
