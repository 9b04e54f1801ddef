//! `unspool show`: one session, straight from its file or folder, in the order in which it
//! happened. The store is never opened for a path.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use unspool_core::document::{Completeness, SessionDocument, TurnDocument, settle_as_file};
use unspool_core::session::Transcript;
use unspool_core::telling::Telling;
use unspool_sources::decode::{Ledger, Warning};
use unspool_sources::gather::{GatherError, Gathered, Gathering};

use crate::paint;

/// Show a session in the order in which it happened
#[derive(Args)]
pub struct Show {
    /// A session's log, a stream or hook capture, or a folder with several captures of one session
    path: PathBuf,
    /// Write the session as JSON
    #[arg(long, conflicts_with = "plain")]
    json: bool,
    /// Write plain text without colours
    #[arg(long)]
    plain: bool,
    /// Show only this turn; 0 is what came before the first prompt
    #[arg(long, value_name = "N")]
    turn: Option<u32>,
    /// Show reasoning and folded parts in full, and outputs uncut
    #[arg(long)]
    full: bool,
    /// Columns to use; the terminal's width by default
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
}

#[derive(Serialize)]
struct Document<'a> {
    session: SessionDocument<'a>,
    turns: Vec<TurnDocument<'a>>,
    records: &'a Ledger,
    warnings: &'a [Warning],
}

impl Show {
    pub fn run(self) -> Result<()> {
        let mut gathering = Gathering::default();
        let skipped = read(&mut gathering, &self.path)?;
        let gathered = the_session(&gathering, &self.path)?;
        let mut transcript = gathered.transcript();
        settle_as_file(&mut transcript);
        if let Some(number) = self.turn {
            keep_turn(&mut transcript, number)?;
        }
        let warnings: Vec<Warning> = gathered.warnings.iter().chain(&skipped).cloned().collect();
        let completeness = completeness(gathered, &transcript);
        if self.json {
            return write_json(&transcript, completeness, &gathered.ledger, &warnings);
        }
        for warning in &warnings {
            let line = if warning.line > 0 { format!(":{}", warning.line) } else { String::new() };
            eprintln!("unspool: {}{line}: {}", warning.file, warning.what);
        }
        let style = paint::Style {
            colour: !self.plain && io::stdout().is_terminal() && !no_colour(),
            width: self.width.or_else(paint::terminal_width).unwrap_or(100).max(20),
            full: self.full,
        };
        paint::session(&transcript, &style, &mut io::stdout().lock())?;
        Ok(())
    }
}

fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Reads a file, or every file of a folder. Files that are nothing we know are warnings inside
/// a folder, and an error where they were named.
fn read(gathering: &mut Gathering, path: &Path) -> Result<Vec<Warning>> {
    if !path.exists() {
        bail!(
            "{} does not exist; give the path of a session's log, for example one under \
             ~/.claude/projects",
            path.display()
        );
    }
    if !path.is_dir() {
        gathering.read_file(path, &mut |_| {})?;
        return Ok(Vec::new());
    }
    let mut files = BTreeSet::new();
    find_files(path, &mut files)
        .with_context(|| format!("cannot list the folder {}", path.display()))?;
    let mut skipped = Vec::new();
    for file in files {
        if let Err(error) = gathering.read_file(&file, &mut |_| {}) {
            skipped.push(Warning {
                file: file.to_string_lossy().into_owned(),
                line: 0,
                what: reason(&error).to_owned(),
                bytes: Vec::new(),
            });
        }
    }
    Ok(skipped)
}

/// Why a file inside a folder was passed over, where its name stands beside.
fn reason(error: &GatherError) -> &'static str {
    match error {
        GatherError::Unreadable { .. } => "cannot be read",
        GatherError::PromptHistory { .. } => "a list of typed prompts, not a session",
        GatherError::Unknown { .. } => "nothing that Unspool knows",
        GatherError::Empty { .. } => "empty",
    }
}

fn find_files(folder: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.insert(path);
        }
    }
    Ok(())
}

/// The one session to show: the one that has a log, where hooks also speak of others.
fn the_session<'g>(gathering: &'g Gathering, path: &Path) -> Result<&'g Gathered> {
    let strongest = gathering.sessions.iter().filter_map(|session| session.spine).max();
    let mut found: Vec<&Gathered> =
        gathering.sessions.iter().filter(|session| session.spine == strongest).collect();
    if found.len() > 1 {
        found.retain(|session| !session.is_sub_agent());
    }
    match found.as_slice() {
        [session] => Ok(session),
        [] => match gathering.sessions.first() {
            Some(session) => Ok(session),
            None => bail!(
                "{} holds no session that Unspool knows; it reads Claude Code's session logs, \
                 its stream-json and its hook payloads",
                path.display()
            ),
        },
        several => {
            let ids: Vec<&str> =
                several.iter().map(|session| session.agent_session_id.as_str()).collect();
            bail!(
                "{} holds {} sessions ({}); name the file of one of them",
                path.display(),
                several.len(),
                ids.join(", ")
            )
        }
    }
}

fn keep_turn(transcript: &mut Transcript, number: u32) -> Result<()> {
    let last = transcript.turns.last().map_or(0, |turn| turn.number);
    if !transcript.turns.iter().any(|turn| turn.number == number) {
        bail!("there is no turn {number}; the last one is turn {last}");
    }
    transcript.turns.retain(|turn| turn.number == number);
    Ok(())
}

fn completeness(gathered: &Gathered, transcript: &Transcript) -> Completeness {
    if transcript.turns.is_empty() && gathered.ledger.unreadable > 0 {
        Completeness::Failed
    } else if gathered.spine < Some(Telling::Stream) || gathered.ledger.unreadable > 0 {
        Completeness::Partial
    } else {
        Completeness::Full
    }
}

fn write_json(
    transcript: &Transcript,
    completeness: Completeness,
    records: &Ledger,
    warnings: &[Warning],
) -> Result<()> {
    let document = Document {
        session: SessionDocument { transcript, completeness },
        turns: transcript.turns.iter().map(TurnDocument).collect(),
        records,
        warnings,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, &document).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}
