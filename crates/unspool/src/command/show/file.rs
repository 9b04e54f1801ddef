//! `show PATH`: decodes a session directly from its file or folder, without opening the archive.

use std::io;
use std::path::Path;

use anyhow::{Result, bail};
use unspool_core::document::settle_as_file;
use unspool_core::present::agents::SubagentSessions;
use unspool_core::session::Transcript;
use unspool_core::summary::{Completeness, Summary};
use unspool_core::telling::Telling;
use unspool_sources::decode::{Ledger, Warning};
use unspool_sources::discover::find_files;
use unspool_sources::gather::{GatherError, Gathered, Gathering};
use unspool_sources::read::source::lines_of;
use unspool_sources::read::{beside, rows};

use crate::command::warn;

/// A session decoded from files.
pub struct FromFile {
    pub summary: Summary,
    pub transcript: Transcript,
    /// Its sub-agents whose own logs were read.
    pub subagents: SubagentSessions,
    pub records: Ledger,
    pub warnings: Vec<Warning>,
}

/// Reads a session from a file, standard input or a folder.
pub fn load(path: &Path, wanted: Option<&str>) -> Result<FromFile> {
    let mut gathering = Gathering::default();
    let skipped = read(&mut gathering, path)?;
    let found = the_session(&gathering, path, wanted);
    let gathered = found.inspect_err(|_| warn(&skipped))?;
    let mut transcript = gathered.transcript();
    settle_as_file(&mut transcript);
    let mut warnings: Vec<Warning> = gathered.warnings.iter().chain(&skipped).cloned().collect();
    warnings.extend(not_shown(&gathering, gathered, path));
    let agents = agents_of(&gathering, gathered, &transcript);
    let summary = transcript.summary(completeness(gathered, &transcript), &agents);
    let mut subagents = SubagentSessions::default();
    agents.iter().for_each(|agent| subagents.add(agent));
    Ok(FromFile { summary, transcript, subagents, records: gathered.ledger.clone(), warnings })
}

fn warning(path: &Path, what: String) -> Warning {
    let file = path.to_string_lossy().into_owned();
    Warning { file, line: 0, what, bytes: Vec::new() }
}

/// The sub-agents of a session whose own logs were read, nested ones included.
fn agents_of(gathering: &Gathering, shown: &Gathered, transcript: &Transcript) -> Vec<Transcript> {
    let mut found: Vec<Transcript> = Vec::new();
    let mut names: Vec<String> = transcript.agent_ids().map(str::to_owned).collect();
    let mut taken = vec![shown.agent_session_id.clone()];
    while let Some(id) = names.pop() {
        let agent = gathering.sessions.iter().find(|session| session.agent_session_id == id);
        if let Some(agent) = agent.filter(|agent| !taken.contains(&agent.agent_session_id)) {
            taken.push(agent.agent_session_id.clone());
            let transcript = agent.transcript();
            names.extend(transcript.agent_ids().map(str::to_owned));
            found.push(transcript);
        }
    }
    found
}

/// Warnings about records that belong to other sessions.
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

/// Reads a file, standard input, or every log of a folder. An unrecognised file is a warning inside
/// a folder and an error if it was named.
fn read(gathering: &mut Gathering, path: &Path) -> Result<Vec<Warning>> {
    if path == Path::new("-") {
        let lines = lines_of(io::stdin())?;
        gathering.read(Path::new("standard input"), lines, &mut |_| {})?;
        return Ok(Vec::new());
    }
    if !rows::exists(path) {
        bail!(
            "{} does not exist; give the path of a session's log, for example one under \
             ~/.claude/projects",
            path.display()
        );
    }
    // A database may hold any number of sessions, as a folder does.
    let many = path.is_dir() || path.extension().is_some_and(|end| end == "db");
    if !many {
        gathering.read_file(path, &mut |_| {})?;
        if let Some(more) = beside::of_log(path) {
            gathering.read_file(&more, &mut |_| {})?;
        }
        return Ok(Vec::new());
    }
    let (files, mut skipped) = find_files(path);
    for file in files {
        if let Err(error) = gathering.read_file(&file, &mut |_| {}) {
            skipped.push(warning(&file, reason(&error)));
        }
    }
    Ok(skipped)
}

/// Why a file inside a folder was skipped, for a warning that names the file.
fn reason(error: &GatherError) -> String {
    match error {
        GatherError::Unreadable { source, .. } => format!("cannot be read: {source}"),
        GatherError::PromptHistory { .. } => "a list of typed prompts, not a session".to_owned(),
        GatherError::Unknown { .. } => "unrecognised file format".to_owned(),
        GatherError::Empty { .. } => "empty".to_owned(),
    }
}

/// The session to show: the requested one, else the one with the strongest feed (hooks may also
/// mention other sessions).
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
    // Prefer sessions that are not sub-agents, then sessions with turns.
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
            "{} holds no session in a supported format; `unspool import --help` lists the formats",
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

fn completeness(gathered: &Gathered, transcript: &Transcript) -> Completeness {
    if transcript.turns.is_empty() && gathered.ledger.unreadable > 0 {
        Completeness::Failed
    } else if gathered.spine < Some(Telling::Stream) || gathered.ledger.unreadable > 0 {
        Completeness::Partial
    } else if transcript.session.facts.outcomes_only {
        Completeness::FinalOnly
    } else {
        Completeness::Full
    }
}
