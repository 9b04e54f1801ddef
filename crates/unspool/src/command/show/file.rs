//! `show PATH`: decodes a session directly from its file or folder, without opening the archive.

use std::io;
use std::path::Path;

use anyhow::{Result, bail};
use unspool_model::agent::AgentTraits;
use unspool_model::document::settle_as_file;
use unspool_model::provenance::Feed;
use unspool_model::session::Transcript;
use unspool_model::summary::{Completeness, Summary};
use unspool_sources::decode::{RecordCounts, Warning};
use unspool_sources::discover::find_files;
use unspool_sources::in_memory::{DecodedSession, LoadError, SessionSet};
use unspool_sources::read::source::lines_of;
use unspool_sources::read::{own_file, rows};
use unspool_sources::unsupported;
use unspool_view::present::agents::SubagentSessions;
use unspool_view::present::format;

use crate::command::warn;

/// A session decoded from files.
pub struct FromFile {
    pub summary: Summary,
    pub transcript: Transcript,
    /// Its sub-agents whose own logs were read.
    pub subagents: SubagentSessions,
    pub records: RecordCounts,
    pub warnings: Vec<Warning>,
}

/// Reads a session from a file, standard input or a folder.
pub fn load(path: &Path, wanted: Option<&str>) -> Result<FromFile> {
    let mut session_set = SessionSet::default();
    let skipped = read(&mut session_set, path)?;
    let found = the_session(&session_set, path, wanted);
    let decoded_session = found.inspect_err(|_| warn(&skipped))?;
    let mut transcript = decoded_session.transcript();
    settle_as_file(&mut transcript);
    let mut warnings: Vec<Warning> =
        decoded_session.warnings.iter().chain(&skipped).cloned().collect();
    warnings.extend(not_shown(&session_set, decoded_session, path));
    let agents = agents_of(&session_set, decoded_session, &transcript);
    let summary = transcript.summary(completeness(decoded_session, &transcript), &agents);
    transcript.turns.retain(|turn| !turn.is_blank());
    let mut subagents = SubagentSessions::default();
    agents.iter().for_each(|agent| subagents.add(agent));
    Ok(FromFile {
        summary,
        transcript,
        subagents,
        records: decoded_session.record_counts.clone(),
        warnings,
    })
}

fn warning(path: &Path, what: String) -> Warning {
    let file = path.to_string_lossy().into_owned();
    Warning { file, line: 0, what, bytes: Vec::new() }
}

/// The sub-agents of a session whose own logs were read, nested ones included.
fn agents_of(
    session_set: &SessionSet,
    shown: &DecodedSession,
    transcript: &Transcript,
) -> Vec<Transcript> {
    let mut found: Vec<Transcript> = Vec::new();
    let mut names: Vec<String> = transcript.agent_ids().map(str::to_owned).collect();
    let mut taken = vec![shown.agent_session_id.clone()];
    while let Some(id) = names.pop() {
        let agent = session_set.sessions.iter().find(|session| session.agent_session_id == id);
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
fn not_shown(session_set: &SessionSet, shown: &DecodedSession, path: &Path) -> Vec<Warning> {
    let others = session_set.sessions.iter().filter(|other| !std::ptr::eq(*other, shown));
    let (agents, others): (Vec<&DecodedSession>, Vec<&DecodedSession>) =
        others.partition(|other| other.is_sub_agent());
    let mut warnings: Vec<Warning> = others
        .into_iter()
        .map(|other| {
            let (records, id) = (other.record_counts.read, &other.agent_session_id);
            warning(path, format!("{records} records of session {id} are not shown"))
        })
        .collect();
    if !agents.is_empty() {
        let records: u64 = agents.iter().map(|agent| agent.record_counts.read).sum();
        let what = format!(
            "{records} records of {} are not shown; name the log of one to see it",
            format::count(agents.len(), "sub-agent")
        );
        warnings.push(warning(path, what));
    }
    warnings
}

/// Reads a file, standard input, or every log of a folder. An unrecognised file is a warning inside
/// a folder and an error if it was named.
fn read(session_set: &mut SessionSet, path: &Path) -> Result<Vec<Warning>> {
    if path == Path::new("-") {
        let lines = lines_of(io::stdin())?;
        session_set.read(Path::new("standard input"), lines, &mut |_| {})?;
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
        session_set.read_file(path, &mut |_| {})?;
        for more in own_file::beside_log(path) {
            session_set.read_file(&more, &mut |_| {})?;
        }
        return Ok(Vec::new());
    }
    if path.is_file()
        && let Some(what) = unsupported::of_database(path)?
    {
        return Err(LoadError::Unsupported { path: path.to_owned(), what }.into());
    }
    let (files, mut skipped) = find_files(path);
    for file in files {
        if let Err(error) = session_set.read_file(&file, &mut |_| {}) {
            skipped.push(warning(&file, reason(&error)));
        }
    }
    Ok(skipped)
}

/// Why a file inside a folder was skipped, for a warning that names the file.
fn reason(error: &LoadError) -> String {
    match error {
        LoadError::Unreadable { source, .. } => format!("cannot be read: {source}"),
        LoadError::PromptHistory { .. } => "a list of typed prompts, not a session".to_owned(),
        LoadError::Unsupported { what, .. } => unsupported::reason(what),
        LoadError::Unknown { .. } => "unrecognised file format".to_owned(),
        LoadError::Empty { .. } => "empty".to_owned(),
    }
}

/// The session to show: the requested one, else the one with the strongest feed (hooks may also
/// mention other sessions).
fn the_session<'g>(
    session_set: &'g SessionSet,
    path: &Path,
    wanted: Option<&str>,
) -> Result<&'g DecodedSession> {
    let mut found: Vec<&DecodedSession> = match wanted {
        Some(id) => session_set
            .sessions
            .iter()
            .filter(|session| {
                let ours = session.transcript().session.id.to_string();
                session.agent_session_id.starts_with(id) || ours.starts_with(id)
            })
            .collect(),
        None => {
            let strongest = session_set.sessions.iter().filter_map(|session| session.spine).max();
            session_set.sessions.iter().filter(|session| session.spine == strongest).collect()
        }
    };
    // Prefer sessions that are not sub-agents, then sessions with turns.
    for keep in [|one: &DecodedSession| !one.is_sub_agent(), |one: &DecodedSession| one.has_turns()]
    {
        if found.len() > 1 && found.iter().any(|session| keep(session)) {
            found.retain(|session| keep(session));
        }
    }
    match found.as_slice() {
        [session] => Ok(session),
        [] if wanted.is_some() && !session_set.sessions.is_empty() => {
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

fn completeness(decoded_session: &DecodedSession, transcript: &Transcript) -> Completeness {
    if transcript.turns.is_empty() && decoded_session.record_counts.unreadable > 0 {
        Completeness::Failed
    } else if decoded_session.spine < Some(Feed::Stream)
        || decoded_session.record_counts.unreadable > 0
        || AgentTraits::of(decoded_session.agent).log_detail.loss().is_some()
    {
        Completeness::Partial
    } else if transcript.session.facts.outcomes_only {
        Completeness::FinalOnly
    } else {
        Completeness::Full
    }
}
