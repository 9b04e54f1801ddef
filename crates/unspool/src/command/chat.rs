//! `unspool chat`: drives an agent that speaks the Agent Client Protocol.

mod detach;
mod headless;
mod launch;
mod manage;
mod open;
mod transcript;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use unspool_ingest::lock::DataFolder;
use unspool_live::chat::Policy;
use unspool_live::host::folder::ChatFolders;
use unspool_live::host::process::CHAT_VARIABLE;

use crate::archive::Archive;
use launch::Launch;
pub use launch::{agents, prompt_counts};
pub use manage::forget;
pub use open::opener;

/// Drive an agent: chat with it in the terminal, or send it one message
///
/// Works with every agent that speaks the Agent Client Protocol (ACP). `unspool chat --agents` lists
/// those that unspool knows and says how to install them; any other is named after `--`:
///
///   unspool chat
///   unspool chat -p "why does the build fail?" --agent codex
///   unspool chat -p "list the tests" -- my-agent --acp
///
/// Everything is recorded in the archive, as one more account of the session that the agent's own
/// log has.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Chat {
    /// Send this message, print the reply and end; - reads the message from standard input
    #[arg(short, long, value_name = "TEXT", conflicts_with_all = ["agents", "list", "end"])]
    prompt: Option<String>,
    /// The agent: claude-code, codex, copilot, gemini, opencode, qwen, droid, kilo, or one of the config file
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The folder in which the agent works [default: the current one]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Go on with this session: its id, a unique prefix of it, or the agent's own id
    #[arg(long, value_name = "SESSION")]
    resume: Option<String>,
    /// Go on although another program seems to work on the session
    #[arg(long, requires = "resume")]
    force: bool,
    /// The agent's mode, by name, such as plan
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// The model, by name
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Log in first, in one of the ways that the agent names when it asks for it
    #[arg(long, value_name = "METHOD")]
    log_in: Option<String>,
    /// Who answers when the agent asks for permission
    #[arg(long, value_name = "RULE", default_value = "deny", requires = "prompt")]
    permissions: Permissions,
    /// Write each event as a line of JSON
    #[arg(long)]
    json: bool,
    /// Interrupt the agent after this many seconds
    #[arg(long, value_name = "SECONDS", requires = "prompt")]
    timeout: Option<u64>,
    /// Send the message and return: the agent goes on in the background
    #[arg(long, requires = "prompt", conflicts_with = "timeout")]
    detach: bool,
    /// List the agents that can be started
    #[arg(long)]
    agents: bool,
    /// List the chats that run
    #[arg(long, conflicts_with = "agents")]
    list: bool,
    /// End a chat and its agent
    #[arg(long, value_name = "CHAT", conflicts_with_all = ["agents", "list"])]
    end: Option<String>,
    /// The command of another agent
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "agent")]
    command: Vec<String>,
}

/// The rule for permissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Permissions {
    /// Refuse everything
    Deny,
    /// Allow calls that only read or search, by what the agent says about them; refuse all others
    AllowReads,
    /// Allow everything
    Allow,
    /// With --json: answers are read from standard input
    Ask,
}

impl Permissions {
    fn policy(self) -> Policy {
        match self {
            Permissions::Deny => Policy::Deny,
            Permissions::AllowReads => Policy::AllowReads,
            Permissions::Allow => Policy::Allow,
            Permissions::Ask => Policy::Ask,
        }
    }
}

impl Chat {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if self.agents {
            return manage::agents(self.json);
        }
        super::recover_chats(archive)?;
        if self.list {
            return manage::list(archive, self.json);
        }
        if let Some(chat) = &self.end {
            return manage::end(archive, chat);
        }
        if std::env::var_os(CHAT_VARIABLE).is_some() {
            bail!("an agent that unspool drives cannot start a chat of its own");
        }
        if self.prompt.is_none() {
            return open::run(&self, archive);
        }
        if self.permissions == Permissions::Ask && !self.json {
            bail!("--permissions ask needs --json: answers are read from standard input");
        }
        if self.permissions == Permissions::Ask && self.prompt.as_deref() == Some("-") {
            bail!("standard input can hold the message or the answers, not both");
        }
        headless::run(self, archive)
    }
}

impl Chat {
    fn launch(&self, policy: Policy) -> Result<Launch> {
        let lingers = self.prompt.is_none() || self.detach;
        Ok(Launch {
            agent: self.agent.clone(),
            project: self.project.clone(),
            resume: self.resume.clone(),
            mode: self.mode.clone(),
            model: self.model.clone(),
            command: self.command.clone(),
            policy,
            linger: if lingers { Some(launch::linger()?) } else { None },
            force: self.force,
            log_in: self.log_in.clone(),
        })
    }
}

/// The folders of chats in a data folder.
pub fn folders(data: &DataFolder) -> ChatFolders {
    ChatFolders {
        chats: data.path().join("chats"),
        captures: data.streams(),
        processes: data.processes(),
    }
}
