//! How a text gets into a prompt: what our hook prints for each agent, the line that says that it
//! did, and the file that OpenCode reads. That a text was printed does not say that it is in a prompt.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use unspool_model::adaptation::{Audience, TEXT_CHANNEL};

use super::history;
use super::state::State;

/// The file of deliveries is begun anew at this length; the one before it is kept.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// What an agent says to a hook, in the spellings of the agents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct HookPayload {
    #[serde(alias = "sessionId", default)]
    pub session_id: Option<String>,
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    #[serde(default)]
    pub hook_event_name: Option<String>,
}

/// That our hook printed a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delivery {
    pub at: Timestamp,
    pub agent: String,
    /// The agent's own id of the session.
    pub session: Option<String>,
    pub event: String,
    /// The version of the state.
    pub version: u64,
    pub sha256: String,
    pub ids: Vec<String>,
}

/// What the hook prints, and what to note about it. `None` if there is nothing to add.
pub fn answer(
    state: &State,
    agent: &str,
    event: Option<&str>,
    payload: &HookPayload,
    at: Timestamp,
) -> Option<(String, Delivery)> {
    let to = Audience {
        agent: Some(agent),
        channel: Some(TEXT_CHANNEL),
        project: payload.cwd.as_deref(),
        session: payload.session_id.as_deref(),
    };
    let event = payload.hook_event_name.as_deref().or(event)?;
    let assembly = state.assemble(&to);
    let frame = assembly.frame(state.version)?;
    let printed = match agent {
        "copilot" => json!({ "additionalContext": frame }),
        _ => {
            json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": frame } })
        }
    };
    let delivery = Delivery {
        at,
        agent: agent.to_owned(),
        session: payload.session_id.clone(),
        event: event.to_owned(),
        version: state.version,
        sha256: assembly.digest(),
        ids: assembly.included,
    };
    Some((printed.to_string(), delivery))
}

/// The file of deliveries of a data folder.
fn file(data: &Path) -> PathBuf {
    data.join("adaptations/delivered.jsonl")
}

impl Delivery {
    pub fn append(&self, data: &Path) -> io::Result<()> {
        let file = file(data);
        if fs::metadata(&file).is_ok_and(|found| found.len() > MAX_FILE_BYTES) {
            fs::rename(&file, file.with_extension("jsonl.1"))?;
        }
        history::append(&file, &[self])
    }
}

/// What was delivered, oldest first.
pub fn deliveries(data: &Path) -> io::Result<Vec<Delivery>> {
    let file = file(data);
    let (mut all, _) = history::lines(&file.with_extension("jsonl.1"))?;
    all.extend(history::lines::<Delivery>(&file)?.0);
    Ok(all)
}

/// The text for OpenCode, which reads a file and says neither project nor session: what is for a
/// project, or on trial, is not in it.
pub fn instructions(state: &State) -> String {
    let to =
        Audience { agent: Some("opencode"), channel: Some(TEXT_CHANNEL), ..Audience::default() };
    let frame = state.assemble(&to).frame(state.version);
    frame.map(|frame| frame + "\n").unwrap_or_default()
}
