//! `unspool blame`: which session wrote each line of a file.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use unspool_query::blame::{Blame as Lines, BlameRequest, LineEdit, blame};
use unspool_store::blocking::block_on;
use unspool_view::lines::make_visible;
use unspool_view::present::blame::Confidence;

use crate::archive::Archive;
use crate::terminal_writer;

/// Show which session wrote each line of a file
///
/// Git says which commit a line comes from; the logs of the agents say who wrote it. A line
/// without a session was written by a person, or by an agent whose log is not in the archive.
#[derive(Args)]
pub struct Blame {
    /// A file, with a line (`src/main.rs:12`) or lines (`src/main.rs:12-20`)
    #[arg(value_name = "FILE[:LINE|:FROM-TO]")]
    file: PathBuf,
    /// The file in this revision of git, instead of the working tree
    #[arg(long, value_name = "REVISION")]
    rev: Option<String>,
    /// Write the lines as JSON
    #[arg(long)]
    json: bool,
}

impl Blame {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let view = archive.view()?;
        let (file, lines) = file_and_lines(self.file)?;
        let request = BlameRequest { file, revision: self.rev, lines };
        let found = block_on(blame(&view, request))?;
        if self.json {
            return super::write_json(&found.document());
        }
        write_lines(&found)
    }
}

/// Splits `FILE:12-20`. A file whose name ends like that is taken as it is.
fn file_and_lines(argument: PathBuf) -> Result<(PathBuf, Option<(u32, u32)>)> {
    let Some(text) = argument.to_str().filter(|_| !argument.exists()) else {
        return Ok((argument, None));
    };
    let Some((file, lines)) = text.rsplit_once(':') else { return Ok((argument, None)) };
    if lines.is_empty() || !lines.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok((argument, None));
    }
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let number = |text: &str| {
        text.parse::<u32>().with_context(|| {
            format!("{lines} is no line of a file; give `FILE:12` or `FILE:12-20`")
        })
    };
    let (first, last) = (number(first)?, number(last)?);
    if first == 0 || last < first {
        bail!("{lines} is no range of lines; the first line is 1, and the last one comes after it");
    }
    Ok((PathBuf::from(file), Some((first, last))))
}

fn write_lines(found: &Lines) -> Result<()> {
    let mut out = io::BufWriter::new(terminal_writer::stdout());
    let heads: Vec<String> = found.edits.iter().map(head).collect();
    let width = heads.iter().map(|head| head.chars().count()).max().unwrap_or(0);
    let digits = found.lines.last().map_or(1, |line| line.line.to_string().len());
    for line in &found.lines {
        let (head, sure) = match line.edit {
            Some((edit, confidence)) => (heads[edit].as_str(), mark(confidence)),
            None => ("", ' '),
        };
        let text = make_visible(line.text.trim_end_matches('\r'));
        writeln!(out, "{head:width$} {sure} {:>digits$}  {text}", line.line)?;
    }
    let used: Vec<&LineEdit> = found.edits.iter().collect();
    out.flush()?;
    let mut talk: Vec<String> = Vec::new();
    for edit in used {
        let prompt = edit.prompt.as_deref().unwrap_or("no prompt in the log");
        let model = edit.model.as_deref().unwrap_or("unknown model");
        let at = edit.at.map(|at| at.strftime("%Y-%m-%d %H:%M UTC ").to_string());
        let line = format!(
            "{}  {} {}, turn {}: {prompt}",
            short(edit),
            at.unwrap_or_default(),
            model,
            edit.turn
        );
        if talk.last() != Some(&line) && !talk.contains(&line) {
            talk.push(line);
        }
    }
    talk.iter().for_each(|line| stderr_line!("{}", make_visible(line)));
    Ok(())
}

/// How sure it is, in one character.
fn mark(confidence: Confidence) -> char {
    match confidence {
        Confidence::Exact => '=',
        Confidence::Moved => '~',
    }
}

/// The first characters of an id, which `unspool show` takes.
fn short(edit: &LineEdit) -> String {
    edit.session.to_string().chars().take(8).collect()
}

fn head(edit: &LineEdit) -> String {
    make_visible(&format!("{} {}:{}", short(edit), edit.agent, edit.turn)).into_owned()
}
