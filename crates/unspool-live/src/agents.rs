//! The agents that we know how to start, and where to find them on this machine. Only local
//! configuration names programs: no client ever sends a command line.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// An agent that speaks the protocol, by itself or through an adapter.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInAgent {
    /// Its name in the archive.
    pub name: &'static str,
    pub title: &'static str,
    /// The program and its arguments.
    pub command: &'static [&'static str],
    pub install: &'static str,
}

pub const BUILT_IN: &[BuiltInAgent] = &[
    BuiltInAgent {
        name: "claude-code",
        title: "Claude Code",
        command: &["claude-agent-acp"],
        install: "npm install -g @agentclientprotocol/claude-agent-acp (needs Node 22)",
    },
    BuiltInAgent {
        name: "codex",
        title: "Codex",
        command: &["codex-acp"],
        install: "npm install -g @agentclientprotocol/codex-acp",
    },
    BuiltInAgent {
        name: "copilot",
        title: "GitHub Copilot CLI",
        command: &["copilot", "--acp"],
        install: "npm install -g @github/copilot",
    },
    BuiltInAgent {
        name: "gemini",
        title: "Gemini CLI",
        command: &["gemini", "--acp"],
        install: "npm install -g @google/gemini-cli",
    },
    BuiltInAgent {
        name: "opencode",
        title: "OpenCode",
        command: &["opencode", "acp"],
        install: "npm install -g opencode-ai",
    },
    BuiltInAgent {
        name: "qwen",
        title: "Qwen Code",
        command: &["qwen", "--acp"],
        install: "npm install -g @qwen-code/qwen-code",
    },
    BuiltInAgent {
        name: "droid",
        title: "Factory Droid",
        command: &["droid", "exec", "--output-format", "acp"],
        install: "npm install -g droid",
    },
    BuiltInAgent {
        name: "kilo",
        title: "Kilo Code",
        command: &["kilo", "acp"],
        install: "npm install -g @kilocode/cli",
    },
];

/// An agent that can be chosen, and whether it can be started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Choice {
    pub name: String,
    pub title: String,
    pub command: Vec<String>,
    /// The program, if it is there.
    pub program: Option<PathBuf>,
    pub install: Option<String>,
}

/// All agents: ours, and those that the user configured, which replace ours of the same name.
pub fn choices(configured: &BTreeMap<String, Vec<String>>) -> Vec<Choice> {
    let own = |name: &str| configured.get(name).filter(|command| !command.is_empty());
    let mut choices: Vec<Choice> = BUILT_IN
        .iter()
        .map(|agent| {
            let listed = || agent.command.iter().map(|word| (*word).to_owned()).collect();
            let command = own(agent.name).cloned().unwrap_or_else(listed);
            Choice {
                program: find_program(&command[0]),
                name: agent.name.to_owned(),
                title: agent.title.to_owned(),
                command,
                install: Some(agent.install.to_owned()),
            }
        })
        .collect();
    let others = configured.iter().filter(|(name, command)| {
        !command.is_empty() && BUILT_IN.iter().all(|agent| agent.name != name.as_str())
    });
    choices.extend(others.map(|(name, command)| Choice {
        program: find_program(&command[0]),
        name: name.clone(),
        title: name.clone(),
        command: command.clone(),
        install: None,
    }));
    choices
}

/// The program that a name or a path means, as a shell would find it.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return is_program(path).then(|| path.to_owned());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file() || path.with_extension("cmd").is_file()
}

/// How to install what a command needs, for a sentence about a program that is missing.
pub fn install_hint(program: &str) -> Option<&'static str> {
    let name = Path::new(program).file_name()?.to_str()?;
    BUILT_IN.iter().find(|agent| agent.command[0] == name).map(|agent| agent.install)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_commands_replace_ours_and_add_others() {
        let configured = BTreeMap::from([
            ("gemini".to_owned(), vec!["/opt/gemini".to_owned(), "--acp".to_owned()]),
            ("house".to_owned(), vec!["house-agent".to_owned()]),
            ("empty".to_owned(), vec![]),
        ]);
        let choices = choices(&configured);
        assert_eq!(choices.len(), BUILT_IN.len() + 1);
        let of = |name: &str| choices.iter().find(|choice| choice.name == name).unwrap();
        assert_eq!(of("gemini").command, ["/opt/gemini", "--acp"]);
        assert_eq!(of("house").command, ["house-agent"]);
        assert_eq!(of("codex").command, ["codex-acp"]);
        assert_eq!(of("house").program, None);
    }

    #[test]
    fn names_of_built_in_agents_are_those_of_the_archive() {
        for agent in BUILT_IN {
            assert!(unspool_sources::agents::Agent::named(agent.name).is_some(), "{}", agent.name);
        }
    }
}
