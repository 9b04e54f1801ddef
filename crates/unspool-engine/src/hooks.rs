//! Installs and removes hooks in the agents' settings, so that agents run `unspool hook`. All other
//! settings keep their bytes and their order. Functions return a plan; nothing is written until the
//! caller carries it out.

mod settings;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;
use unspool_sources::discover::Environment;

pub use settings::NotSettings;

#[derive(Debug, Error)]
pub enum HooksError {
    #[error("no hooks are supported for {0}; supported are claude-code, codex, copilot and gemini")]
    Agent(String),
    #[error("cannot find the settings of {0}: there is no home folder; set HOME")]
    Nowhere(String),
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("{path} cannot be changed safely ({what}); add the hooks by hand")]
    Settings { path: PathBuf, what: NotSettings },
}

/// How one agent configures hooks.
struct Agent {
    name: &'static str,
    /// The file, in the agent's folder.
    file: &'static str,
    form: Form,
    /// The events that carry information missing from logs.
    events: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Part of the agent's settings: groups of hooks by event. `second` is the timeout value of one
    /// second.
    Settings { second: u32 },
    /// A separate file for our hooks.
    Own,
}

static AGENTS: &[Agent] = &[
    Agent {
        name: "claude-code",
        file: "settings.json",
        form: Form::Settings { second: 1 },
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "StopFailure",
            "SessionEnd",
        ],
    },
    Agent {
        name: "codex",
        file: "hooks.json",
        form: Form::Settings { second: 1 },
        events: &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "SubagentStart",
            "SubagentStop",
            "Stop",
        ],
    },
    Agent {
        name: "copilot",
        file: "hooks/unspool.json",
        form: Form::Own,
        events: &[
            "sessionStart",
            "userPromptSubmitted",
            "preToolUse",
            "permissionRequest",
            "postToolUse",
            "postToolUseFailure",
            "errorOccurred",
            "subagentStart",
            "subagentStop",
            "agentStop",
            "sessionEnd",
        ],
    },
    Agent {
        name: "gemini",
        file: "settings.json",
        form: Form::Settings { second: 1000 },
        events: &[
            "SessionStart",
            "BeforeAgent",
            "BeforeTool",
            "AfterTool",
            "AfterAgent",
            "SessionEnd",
        ],
    },
];

/// The hook timeout given to agents. `unspool hook` returns within 50 ms.
const HOOK_TIMEOUT_SECONDS: u32 = 5;

/// Whether our hooks are installed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "installed")]
pub enum HookStatus {
    Yes {
        path: String,
    },
    No,
    /// The settings are unreadable, or some hooks are missing.
    Other {
        path: String,
        what: String,
    },
}

/// A planned change of an agent's settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HooksPlan {
    pub path: PathBuf,
    /// None if the file does not exist.
    pub before: Option<String>,
    /// None to delete the file.
    pub after: Option<String>,
}

impl HooksPlan {
    pub fn changes_nothing(&self) -> bool {
        self.before == self.after
    }

    /// Applies the change. Returns the path of the backup.
    pub fn carry_out(&self) -> Result<Option<PathBuf>, HooksError> {
        let failed = |source| HooksError::Write { path: self.path.clone(), source };
        let backup = match &self.before {
            Some(before) => {
                let backup = backup_path(&self.path);
                fs::write(&backup, before).map_err(failed)?;
                Some(backup)
            }
            None => None,
        };
        match &self.after {
            Some(after) => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder).map_err(failed)?;
                }
                write_atomically(&self.path, after).map_err(failed)?;
            }
            None => fs::remove_file(&self.path).map_err(failed)?,
        }
        Ok(backup)
    }
}

/// Replaces a file atomically and keeps its permissions.
fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    // Write through a symlink instead of replacing it.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let new = path.with_extension("unspool-new");
    fs::write(&new, text)?;
    if let Ok(metadata) = path.metadata() {
        fs::set_permissions(&new, metadata.permissions())?;
    }
    fs::rename(&new, &path)
}

/// A backup path that does not exist yet.
fn backup_path(path: &Path) -> PathBuf {
    let named = |nth: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if nth == 0 {
            ".before-unspool".to_owned()
        } else {
            format!(".before-unspool-{nth}")
        });
        PathBuf::from(name)
    };
    (0..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}

fn agent_of(name: &str) -> Result<&'static Agent, HooksError> {
    AGENTS.iter().find(|agent| agent.name == name).ok_or_else(|| HooksError::Agent(name.to_owned()))
}

/// Plans the settings with which the agent runs `program hook`.
pub fn plan_install(
    environment: &Environment,
    agent: &str,
    program: &str,
) -> Result<HooksPlan, HooksError> {
    let agent = agent_of(agent)?;
    let (path, before) = read(environment, agent)?;
    let after = match agent.form {
        Form::Own => settings::own(
            agent.events,
            |event| command(agent, program, event),
            HOOK_TIMEOUT_SECONDS,
        ),
        Form::Settings { second } => {
            let group =
                settings::group(&command(agent, program, ""), HOOK_TIMEOUT_SECONDS * second);
            settings::with_hooks(before.as_deref(), agent.events, &group, &mark(agent))
                .map_err(|what| HooksError::Settings { path: path.clone(), what })?
        }
    };
    Ok(HooksPlan { path, before, after: Some(after) })
}

/// Plans the removal of our hooks.
pub fn plan_remove(environment: &Environment, agent: &str) -> Result<HooksPlan, HooksError> {
    let agent = agent_of(agent)?;
    let (path, before) = read(environment, agent)?;
    let after = match (agent.form, &before) {
        (Form::Own, _) | (_, None) => None,
        (Form::Settings { .. }, Some(text)) => Some(
            settings::without_hooks(text, &mark(agent))
                .map_err(|what| HooksError::Settings { path: path.clone(), what })?,
        ),
    };
    Ok(HooksPlan { path, before, after })
}

/// Whether an agent's hooks are installed. None for agents without hooks.
pub fn status(environment: &Environment, agent: &str) -> Option<HookStatus> {
    let agent = agent_of(agent).ok()?;
    let (path, text) = match read(environment, agent) {
        Ok(read) => read,
        Err(error) => {
            let path = path_of(environment, agent).unwrap_or_default().display().to_string();
            return Some(HookStatus::Other { path, what: error.to_string() });
        }
    };
    let path = path.display().to_string();
    let found = text.map_or(0, |text| text.matches(&mark(agent)).count());
    Some(if found == 0 {
        HookStatus::No
    } else if found < agent.events.len() {
        let what = format!(
            "{found} of {} hooks are installed; `unspool hooks install --agent {}` adds the others",
            agent.events.len(),
            agent.name
        );
        HookStatus::Other { path, what }
    } else {
        HookStatus::Yes { path }
    })
}

fn path_of(environment: &Environment, agent: &Agent) -> Option<PathBuf> {
    Some(environment.agent_folder(agent.name)?.join(agent.file))
}

fn read(environment: &Environment, agent: &Agent) -> Result<(PathBuf, Option<String>), HooksError> {
    let path =
        path_of(environment, agent).ok_or_else(|| HooksError::Nowhere(agent.name.to_owned()))?;
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, Some(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((path, None)),
        Err(source) => Err(HooksError::Read { path, source }),
    }
}

/// The substring that identifies our hook commands, whatever the program's path.
fn mark(agent: &Agent) -> String {
    format!(" hook --agent {}", agent.name)
}

fn command(agent: &Agent, program: &str, event: &str) -> String {
    let event = if event.is_empty() { String::new() } else { format!(" --event {event}") };
    format!("{program}{}{event}", mark(agent))
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
