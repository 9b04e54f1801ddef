//! Registers the MCP server in the agents' settings, so that agents start `unspool mcp`. Functions
//! return a plan; nothing is written until the caller carries it out.

use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};
use thiserror::Error;
use unspool_sources::discover::Environment;

use crate::settings::{
    self, NotSettings, SettingsPlan, with_entry, with_table, without_entry, without_table,
};

/// The name of the server in every agent's settings.
const SERVER: &str = "unspool";

#[derive(Debug, Error)]
pub enum McpConfigError {
    #[error(
        "the MCP server cannot be registered with {0}; it can be with {agents}. Other clients start \
         the command `unspool mcp` (docs/mcp.md)",
        agents = AGENTS.map(|agent| agent.name).join(", ")
    )]
    Agent(String),
    #[error("cannot find the settings of {0}: there is no home folder; set HOME")]
    Nowhere(&'static str),
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} cannot be changed safely ({what}); add the server by hand:\n{entry}")]
    Settings { path: PathBuf, what: NotSettings, entry: String },
}

/// An agent that has MCP servers in a settings file.
struct McpAgent {
    name: &'static str,
    file: fn(&Environment) -> Option<PathBuf>,
    form: Form,
}

/// Where a server stands in the settings, and how it is written.
#[derive(Clone, Copy)]
enum Form {
    Json { section: &'static str, entry: fn(&McpCommand) -> Value },
    Toml { section: &'static str },
}

const AGENTS: [McpAgent; 5] = [
    McpAgent {
        name: "claude-code",
        // Beside the folder of its settings, unless a variable names that folder.
        file: |environment| match environment.variables.get("CLAUDE_CONFIG_DIR") {
            Some(folder) => Some(folder.join(".claude.json")),
            None => Some(environment.home.as_ref()?.join(".claude.json")),
        },
        form: Form::Json { section: "mcpServers", entry: typed_entry },
    },
    McpAgent {
        name: "codex",
        file: |environment| Some(environment.agent_folder("codex")?.join("config.toml")),
        form: Form::Toml { section: "mcp_servers" },
    },
    McpAgent {
        name: "gemini",
        file: |environment| Some(environment.agent_folder("gemini")?.join("settings.json")),
        form: Form::Json { section: "mcpServers", entry: plain_entry },
    },
    McpAgent {
        name: "copilot",
        file: |environment| Some(environment.agent_folder("copilot")?.join("mcp-config.json")),
        form: Form::Json { section: "mcpServers", entry: copilot_entry },
    },
    McpAgent {
        name: "opencode",
        file: opencode_settings,
        form: Form::Json { section: "mcp", entry: opencode_entry },
    },
];

/// The settings of OpenCode.
pub fn opencode_settings(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.home.as_ref()?.join(".config/opencode");
    let names = ["opencode.jsonc", "opencode.json"];
    let existing = names.map(|name| folder.join(name)).into_iter().find(|path| path.exists());
    Some(existing.unwrap_or_else(|| folder.join("opencode.json")))
}

/// The names of the agents that the server can be registered with.
pub fn agents() -> [&'static str; 5] {
    AGENTS.map(|agent| agent.name)
}

/// The command that an agent starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpCommand {
    pub program: String,
    pub arguments: Vec<String>,
}

fn plain_entry(command: &McpCommand) -> Value {
    json!({ "command": command.program, "args": command.arguments })
}

fn typed_entry(command: &McpCommand) -> Value {
    json!({ "type": "stdio", "command": command.program, "args": command.arguments })
}

fn copilot_entry(command: &McpCommand) -> Value {
    json!({
        "type": "local",
        "command": command.program,
        "args": command.arguments,
        "tools": ["*"],
    })
}

fn opencode_entry(command: &McpCommand) -> Value {
    let words: Vec<&String> = std::iter::once(&command.program).chain(&command.arguments).collect();
    json!({ "type": "local", "command": words, "enabled": true })
}

fn toml_lines(command: &McpCommand) -> String {
    let list = toml::Value::from(command.arguments.clone());
    format!("command = {}\nargs = {list}\n", toml::Value::from(command.program.as_str()))
}

fn agent_of(name: &str) -> Result<&'static McpAgent, McpConfigError> {
    let found = AGENTS.iter().find(|agent| agent.name == name);
    found.ok_or_else(|| McpConfigError::Agent(name.to_owned()))
}

fn read(
    environment: &Environment,
    agent: &McpAgent,
) -> Result<(PathBuf, Option<String>), McpConfigError> {
    let path = (agent.file)(environment).ok_or(McpConfigError::Nowhere(agent.name))?;
    match settings::read(&path) {
        Ok(text) => Ok((path, text)),
        Err(source) => Err(McpConfigError::Read { path, source }),
    }
}

/// Plans the settings with which the agent starts the command.
pub fn plan_install(
    environment: &Environment,
    agent: &str,
    command: &McpCommand,
) -> Result<SettingsPlan, McpConfigError> {
    let agent = agent_of(agent)?;
    let (path, before) = read(environment, agent)?;
    let (after, entry) = match agent.form {
        Form::Json { section, entry } => {
            let entry = entry(command).to_string();
            let after = with_entry(before.as_deref(), section, SERVER, &entry);
            (after, format!("{{ \"{section}\": {{ \"{SERVER}\": {entry} }} }}"))
        }
        Form::Toml { section } => {
            let lines = toml_lines(command);
            let after = with_table(before.as_deref(), section, SERVER, &lines);
            (after, format!("[{section}.{SERVER}]\n{lines}"))
        }
    };
    match after {
        Ok(after) => Ok(SettingsPlan { path, before, after: Some(after) }),
        Err(what) => Err(McpConfigError::Settings { path, what, entry }),
    }
}

/// Plans the removal of the server.
pub fn plan_remove(environment: &Environment, agent: &str) -> Result<SettingsPlan, McpConfigError> {
    let agent = agent_of(agent)?;
    let (path, before) = read(environment, agent)?;
    let after = match &before {
        None => Ok(None),
        Some(text) => match agent.form {
            Form::Json { section, .. } => without_entry(text, section, SERVER).map(Some),
            Form::Toml { section } => without_table(text, section, SERVER).map(Some),
        },
    };
    match after {
        Ok(after) => Ok(SettingsPlan { path, before, after }),
        Err(what) => {
            let entry = "(remove what is named unspool)".to_owned();
            Err(McpConfigError::Settings { path, what, entry })
        }
    }
}

#[cfg(test)]
#[path = "mcp_config_tests.rs"]
mod tests;
