//! Imports a table of agents from an application's database: each agent's log if it has one, and
//! otherwise its prompt and result (R-001-12, R-001-27, R-001-29).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use unspool_sources::application_agents::{self, AgentRun, TableError};
use unspool_sources::decode::Warning;
use unspool_store::store::Store;

use crate::recorder::Recorder;
use crate::report::{Progress, SyncReport};
use crate::sync::{FileCandidate, FileStates, SyncError, ingest_streams, sync, warning};

#[derive(Debug, Error)]
pub enum ImportError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Sync(#[from] SyncError),
}

/// The report of an imported agent table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentTableReport {
    /// Rows of the table.
    pub agents: u64,
    /// Agents whose log was read.
    pub with_log: u64,
    /// Agents imported from prompt and result only.
    pub final_only: u64,
    #[serde(flatten)]
    pub report: SyncReport,
}

/// Imports the agents of a database. A repeated import adds only what is new.
pub fn import<S: Store>(
    recorder: &Recorder<S>,
    database: &Path,
    progress: &Progress,
) -> Result<AgentTableReport, ImportError> {
    let agents = application_agents::read(database)?;
    let failed = |error| ImportError::Sync(SyncError::Store(error));
    let logs: Vec<Option<PathBuf>> = agents.iter().map(|agent| log_of(database, agent)).collect();
    let found: BTreeSet<PathBuf> =
        logs.iter().flatten().filter(|path| path.is_file()).cloned().collect();
    let candidates = found.iter().map(|path| FileCandidate::of(path)).collect();
    let mut report =
        sync(recorder, &mut FileStates::load(recorder).map_err(failed)?, candidates, progress)?;
    // An unrecognised or missing log becomes a warning, and the agent's prompt and result are
    // imported instead.
    let refused: BTreeSet<PathBuf> = report
        .warnings
        .iter()
        .filter(|warning| warning.line == 0)
        .map(|warning| PathBuf::from(&warning.file))
        .collect();
    let mut imported =
        AgentTableReport { agents: agents.len() as u64, ..AgentTableReport::default() };
    let mut lines = Vec::new();
    for (agent, log) in agents.iter().zip(logs) {
        match log {
            Some(log) if found.contains(&log) && !refused.contains(&log) => {
                imported.with_log += 1;
                continue;
            }
            Some(log) if !found.contains(&log) => {
                report.warnings.push(missing(&log, agent));
            }
            Some(_) | None => {}
        }
        if agent.has_prompt {
            imported.final_only += 1;
            let session = session_of(database, agent);
            let name = format!("{} (agent {})", database.display(), agent.id);
            lines.push((name, agent.line(&session) + "\n"));
        }
    }
    let taken = ingest_streams(recorder, lines, progress)?;
    // Unchanged rows are decoded again too; report records and bytes only if something is new.
    let news = taken.sessions + taken.turns + taken.parts > 0;
    let quiet = SyncReport { records: 0, bytes: 0, ..taken.clone() };
    report.add(if news { taken } else { quiet });
    Ok(AgentTableReport { report, ..imported })
}

fn missing(log: &Path, agent: &AgentRun) -> Warning {
    let instead = match agent.has_prompt {
        true => "its prompt and result were imported instead",
        false => "it has no prompt either",
    };
    warning(log, format!("the log of agent {} does not exist; {instead}", agent.id))
}

/// The path of an agent's log. A relative path is resolved against the database's folder.
fn log_of(database: &Path, agent: &AgentRun) -> Option<PathBuf> {
    let log = agent.log.as_ref()?;
    if let (Ok(rest), Some(home)) = (log.strip_prefix("~"), std::env::home_dir()) {
        return Some(home.join(rest));
    }
    let beside = database.parent().map(|folder| folder.join(log));
    let path = beside.filter(|path| path.exists()).unwrap_or_else(|| log.clone());
    std::path::absolute(path).ok()
}

/// The session id of an agent: its id, prefixed with the database name if it is only a number.
fn session_of(database: &Path, agent: &AgentRun) -> String {
    if !agent.id.bytes().all(|byte| byte.is_ascii_digit()) {
        return agent.id.clone();
    }
    let stem = database.file_stem().unwrap_or_default().to_string_lossy();
    format!("{stem}-{}", agent.id)
}
