//! The commands, one file each, and the helpers they share.

#[cfg(unix)]
pub mod acp;
pub mod adapt;
pub mod attach;
pub mod blame;
pub mod changes;
#[cfg(unix)]
pub mod chat;
pub mod commits;
pub mod compare;
pub mod completions;
pub mod db;
pub mod delete;
pub mod doctor;
pub mod export;
pub mod hook;
pub mod hooks;
#[cfg(unix)]
pub mod host;
pub mod import;
pub mod list;
pub mod manual;
pub mod mcp;
pub mod note;
pub mod prompt;
pub mod reflect;
#[cfg(unix)]
pub mod run;
pub mod search;
pub mod serve;
pub mod settings_file;
pub mod share;
pub mod ship;
pub mod show;
pub mod stats;
pub mod sync;
pub mod tag;
pub mod team;
pub mod terminal;

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use jiff::Zoned;
use serde::Serialize;
use unspool_export::export::ExportError;
use unspool_model::price::Prices;
use unspool_query::budget::warnings;
use unspool_sources::decode::Warning;
use unspool_store::blocking::block_on;
use unspool_store::store::View;
use unspool_view::lines::make_visible;
use unspool_view::segment::SegmentRule;

use crate::archive::Archive;
use crate::{paint, terminal_writer};

pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(io_cause).any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// An export names the error of its output in its own.
fn io_cause<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let of_export = cause.downcast_ref().and_then(ExportError::io_error);
    of_export.or_else(|| cause.downcast_ref())
}

/// Prints warnings to stderr, those of one file that say the same as one line. File names are
/// untrusted, so control characters are escaped.
pub fn warn(warnings: &[Warning]) {
    let alike = |a: &Warning, b: &Warning| a.file == b.file && a.what == b.what;
    for group in warnings.chunk_by(alike) {
        let Some(warning) = group.first() else { continue };
        let line = if warning.line > 0 { format!(":{}", warning.line) } else { String::new() };
        let more = match group.len() - 1 {
            0 => String::new(),
            1 => " (and one more line)".to_owned(),
            more => format!(" (and {more} more lines)"),
        };
        let text = format!("{}{line}: {}{more}", warning.file, warning.what);
        stderr_line!("unspool: {}", make_visible(&text));
    }
}

/// Cleans up after chats whose process was killed.
pub fn recover_chats(archive: &Archive) -> Result<()> {
    #[cfg(unix)]
    unspool_live::client::recover(&chat::folders(&archive.folder()?));
    #[cfg(not(unix))]
    let _ = archive;
    Ok(())
}

/// Says on stderr which budgets are nearly spent.
pub fn warn_of_budgets<V: View>(view: &V, prices: &Prices) -> Result<()> {
    let budgets = crate::config::budgets()?;
    for budget in block_on(warnings(view, &budgets, prices, &Zoned::now()))? {
        stderr_line!("unspool: {}", make_visible(&budget.sentence()));
    }
    Ok(())
}

/// What to say if there is no session; `narrow`: a filter is set.
pub fn nothing_found(narrow: bool) -> &'static str {
    match narrow {
        true => "no sessions match; try fewer filters",
        false => "the archive is empty; `unspool sync` fills it",
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
    let mut out = terminal_writer::stdout();
    serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Writes a document as one line.
pub fn write_json_line(document: &impl Serialize) -> Result<()> {
    let mut out = terminal_writer::stdout();
    serde_json::to_writer(&mut out, document).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
