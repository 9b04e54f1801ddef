//! `unspool mcp`: the MCP server on standard input and output, and its registration with agents.

use std::io::{IsTerminal, stdin};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use unspool_ingest::mcp_config::{McpCommand, agents, plan_install, plan_remove};
use unspool_mcp::{Adaptations, McpServer, Reader, Scope, Settings, serve_stdio};

use super::settings_file::{ask_and_apply, own_program};
use crate::archive::Archive;
use crate::config;

/// The variable in which Claude Code tells the programs that it starts which session it is.
const OWN_SESSION: &str = "CLAUDE_CODE_SESSION_ID";

/// Let agents read recorded sessions: an MCP server on standard input and output
///
/// An agent starts it; `unspool mcp install` writes that into the agent's settings. It reads the
/// archive and changes nothing in it. It tells of the sessions of the project that it was started in, and
/// redacts secrets. A running `unspool serve` has the same server at /mcp. docs/mcp.md lists the
/// tools.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    serve: ServeOptions,
}

#[derive(Args)]
struct ServeOptions {
    /// Tell of all sessions, not only of those of the project in the working folder
    #[arg(long, conflicts_with = "project")]
    all: bool,
    /// Tell of the sessions that ran in this folder or below it, instead of the working folder's
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// Do not replace secrets: the agent, and the provider of its model, get to see them
    #[arg(long)]
    no_redact: bool,
    /// Let the agent change adaptations: texts that agents get in their prompts. Without it, it can
    /// only propose changes
    #[arg(long)]
    allow_edits: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Show what would be written into an agent's settings, and write it if you agree
    Install {
        #[arg(long, value_name = "AGENT", help = format!("The agent: {}", agents().join(", ")))]
        agent: String,
        /// Make the change without asking. A backup of the settings is kept beside them
        #[arg(long)]
        yes: bool,
        /// Remove the server from the agent's settings
        #[arg(long, conflicts_with = "all")]
        remove: bool,
        /// Tell the agent of all sessions, not only of those of the project that it works in
        #[arg(long)]
        all: bool,
    },
}

impl Mcp {
    pub fn run(self, archive: &Archive) -> Result<()> {
        match self.action {
            Some(Action::Install { agent, yes, remove: false, all }) => {
                let environment = config::environment(&archive.folder()?)?;
                let plan = plan_install(&environment, &agent, &command(archive, all)?)?;
                if ask_and_apply(&plan, yes, "the MCP server is already registered")? {
                    stderr_line!("unspool: restart {agent}; it then has the tools of unspool");
                }
                Ok(())
            }
            Some(Action::Install { agent, yes, remove: true, .. }) => {
                let environment = config::environment(&archive.folder()?)?;
                let plan = plan_remove(&environment, &agent)?;
                ask_and_apply(&plan, yes, "the MCP server is not registered").map(drop)
            }
            None => self.serve.run(archive),
        }
    }
}

impl ServeOptions {
    fn run(self, archive: &Archive) -> Result<()> {
        if stdin().is_terminal() {
            bail!(
                "an agent starts this command and speaks JSON-RPC with it; `unspool mcp install \
                 --agent AGENT` registers it with one of {}",
                agents().join(", ")
            );
        }
        let own_session = std::env::var(OWN_SESSION).ok().filter(|id| !id.is_empty());
        let rules = config::redaction()?;
        let settings = Settings {
            rules: (!self.no_redact).then(|| Arc::new(rules)),
            prices: config::prices()?,
            scope: self.scope()?,
            own_session,
            reflection: Arc::new(config::reflection()?),
        };
        let store = super::adapt::store(archive)?;
        let adaptations = Adaptations { store, allows_edits: self.allow_edits };
        let reader = Reader::new(archive.view()?, settings).with_adaptations(adaptations);
        let server = McpServer::new(reader);
        Ok(serve_stdio(server)?)
    }

    fn scope(&self) -> Result<Scope> {
        if self.all {
            return Ok(Scope::All);
        }
        if let Some(folder) = &self.project {
            let folder = std::path::absolute(folder)
                .with_context(|| format!("cannot tell where {} is", folder.display()))?;
            return Ok(Scope::folder(&folder));
        }
        let folder = std::env::current_dir()
            .context("the working folder is gone; name a project with --project, or use --all")?;
        Ok(Scope::of_working_folder(&folder))
    }
}

/// The command for an agent's settings: our full path, because an agent that was started from a
/// desktop has another PATH; with --data if a folder was given.
fn command(archive: &Archive, all: bool) -> Result<McpCommand> {
    let mut arguments = Vec::new();
    if let Some(folder) = archive.named_folder() {
        let folder = std::path::absolute(folder)?;
        arguments.extend(["--data".to_owned(), folder.to_string_lossy().into_owned()]);
    }
    arguments.push("mcp".to_owned());
    arguments.extend(all.then(|| "--all".to_owned()));
    Ok(McpCommand { program: own_program(), arguments })
}
