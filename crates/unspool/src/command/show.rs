//! `unspool show`: one session, straight from its file or folder, in the order in which it
//! happened. The store is never opened for a path.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use unspool_core::document::{Completeness, SessionDocument, TurnDocument, settle_as_file};
use unspool_core::lines::visible;
use unspool_core::session::{Transcript, Usage};
use unspool_core::telling::Telling;
use unspool_sources::decode::{Ledger, Warning};
use unspool_sources::gather::{GatherError, Gathered, Gathering};

use crate::paint;

/// Show a session in the order in which it happened
#[derive(Args)]
pub struct Show {
    /// A session's log, a stream or hook capture, a folder with several captures of one session,
    /// or - for standard input
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
    /// Which session, where a file or a folder holds several: the start of its id
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Columns to use, 20 at the least; the terminal's width by default
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..))]
    width: Option<u16>,
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
        let found = the_session(&gathering, &self.path, self.session.as_deref());
        let gathered = found.inspect_err(|_| warn(&skipped))?;
        let mut transcript = gathered.transcript();
        settle_as_file(&mut transcript);
        if let Some(number) = self.turn {
            check_turn(&transcript, number)?;
        }
        let mut warnings: Vec<Warning> =
            gathered.warnings.iter().chain(&skipped).cloned().collect();
        warnings.extend(not_shown(&gathering, gathered, &self.path));
        let completeness = completeness(gathered, &transcript);
        if self.json {
            let turns: Vec<TurnDocument<'_>> = transcript
                .turns
                .iter()
                .filter(|turn| self.turn.is_none_or(|number| turn.number == number))
                .map(|turn| TurnDocument { agent: gathered.agent, turn })
                .collect();
            let agents_usage = agents_usage(&gathering, gathered, &transcript);
            let session = SessionDocument { transcript: &transcript, completeness, agents_usage };
            let records = &gathered.ledger;
            return write_json(&Document { session, turns, records, warnings: &warnings });
        }
        warn(&warnings);
        let width = self.width.map(usize::from).or_else(paint::terminal_width);
        let style = paint::Style {
            colour: !self.plain && io::stdout().is_terminal() && !no_colour(),
            width: width.unwrap_or(100).max(20),
            full: self.full,
        };
        paint::session(&transcript, self.turn, &style, &mut io::stdout().lock())?;
        Ok(())
    }
}

/// Says what a person should know. Names of files are as hostile as what is in them.
fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let line = if warning.line > 0 { format!(":{}", warning.line) } else { String::new() };
        let text = format!("{}{line}: {}", warning.file, warning.what);
        eprintln!("unspool: {}", visible(&text));
    }
}

fn warning(path: &Path, what: String) -> Warning {
    let file = path.to_string_lossy().into_owned();
    Warning { file, line: 0, what, bytes: Vec::new() }
}

/// What the sub-agents of a session used, nested ones included, where their own logs were read.
fn agents_usage(gathering: &Gathering, shown: &Gathered, transcript: &Transcript) -> Usage {
    let mut usage = Usage::default();
    let mut of = vec![transcript.clone()];
    let mut counted = vec![&*shown.agent_session_id];
    while let Some(transcript) = of.pop() {
        for id in transcript.agent_ids() {
            let agent = gathering.sessions.iter().find(|session| session.agent_session_id == id);
            if let Some(agent) = agent.filter(|agent| !counted.contains(&&*agent.agent_session_id))
            {
                counted.push(&agent.agent_session_id);
                usage.add(agent.transcript().usage());
                of.push(agent.transcript());
            }
        }
    }
    usage
}

/// What was read and belongs to other sessions than the one shown.
fn not_shown(gathering: &Gathering, shown: &Gathered, path: &Path) -> Vec<Warning> {
    let others = gathering.sessions.iter().filter(|other| !std::ptr::eq(*other, shown));
    let (agents, others): (Vec<&Gathered>, Vec<&Gathered>) =
        others.partition(|other| other.is_sub_agent());
    let mut warnings: Vec<Warning> = others
        .into_iter()
        .map(|other| {
            let (records, id) = (other.ledger.read, &other.agent_session_id);
            warning(path, format!("{records} records of session {id} are not shown"))
        })
        .collect();
    if !agents.is_empty() {
        let records: u64 = agents.iter().map(|agent| agent.ledger.read).sum();
        let what = format!(
            "{records} records of {} sub-agents are not shown; name the log of one to see it",
            agents.len()
        );
        warnings.push(warning(path, what));
    }
    warnings
}

fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Reads a file, standard input, or every log of a folder. What is nothing we know is a warning
/// inside a folder, and an error where it was named.
fn read(gathering: &mut Gathering, path: &Path) -> Result<Vec<Warning>> {
    if path == Path::new("-") {
        gathering.read(Path::new("standard input"), io::stdin().lock(), &mut |_| {})?;
        return Ok(Vec::new());
    }
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
    let mut skipped = Vec::new();
    find_files(path, &mut files, &mut skipped);
    for file in files {
        if let Err(error) = gathering.read_file(&file, &mut |_| {}) {
            skipped.push(warning(&file, reason(&error)));
        }
    }
    Ok(skipped)
}

/// Why a file inside a folder was passed over, where its name stands beside.
fn reason(error: &GatherError) -> String {
    match error {
        GatherError::Unreadable { source, .. } => format!("cannot be read: {source}"),
        GatherError::PromptHistory { .. } => "a list of typed prompts, not a session".to_owned(),
        GatherError::Unknown { .. } => "nothing that Unspool knows".to_owned(),
        GatherError::Empty { .. } => "empty".to_owned(),
    }
}

/// The logs and captures of a folder: regular files that end in `.jsonl`.
fn find_files(folder: &Path, files: &mut BTreeSet<PathBuf>, skipped: &mut Vec<Warning>) {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) => return skipped.push(warning(folder, format!("cannot be listed: {error}"))),
    };
    for entry in entries.filter_map(|entry| entry.ok()) {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_files(&path, files, skipped);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            if path.is_file() {
                files.insert(path);
            } else {
                skipped.push(warning(&path, "not a file".to_owned()));
            }
        }
    }
}

/// The session to show: the one that was asked for, else the one that has a log, where hooks also
/// speak of others.
fn the_session<'g>(
    gathering: &'g Gathering,
    path: &Path,
    wanted: Option<&str>,
) -> Result<&'g Gathered> {
    let mut found: Vec<&Gathered> = match wanted {
        Some(id) => gathering
            .sessions
            .iter()
            .filter(|session| {
                let ours = session.transcript().session.id.to_string();
                session.agent_session_id.starts_with(id) || ours.starts_with(id)
            })
            .collect(),
        None => {
            let strongest = gathering.sessions.iter().filter_map(|session| session.spine).max();
            gathering.sessions.iter().filter(|session| session.spine == strongest).collect()
        }
    };
    // Sub-agents are shown with their parents, and a session without a turn is hardly meant.
    for keep in [|one: &Gathered| !one.is_sub_agent(), |one: &Gathered| one.has_turns()] {
        if found.len() > 1 && found.iter().any(|session| keep(session)) {
            found.retain(|session| keep(session));
        }
    }
    match found.as_slice() {
        [session] => Ok(session),
        [] if wanted.is_some() && !gathering.sessions.is_empty() => {
            bail!("{} holds no session {}", path.display(), wanted.unwrap_or_default())
        }
        [] => bail!(
            "{} holds no session that Unspool knows; it reads Claude Code's session logs, its \
             stream-json and its hook payloads",
            path.display()
        ),
        several => {
            let ids: Vec<&str> =
                several.iter().map(|session| session.agent_session_id.as_str()).collect();
            bail!(
                "{} holds {} sessions; choose one with --session:\n  {}",
                path.display(),
                several.len(),
                ids.join("\n  ")
            )
        }
    }
}

fn check_turn(transcript: &Transcript, number: u32) -> Result<()> {
    let last = transcript.turns.last().map_or(0, |turn| turn.number);
    if !transcript.turns.iter().any(|turn| turn.number == number) {
        bail!("there is no turn {number}; the last one is turn {last}");
    }
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

fn write_json(document: &Document<'_>) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}
