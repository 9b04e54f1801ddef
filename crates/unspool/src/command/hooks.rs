//! `unspool hooks`: installs hooks that report what agents' logs leave out.

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use unspool_ingest::hooks::{
    HookOptions, HookStatus, after_install, instructions, plan_install, plan_remove, status,
    supported_agents,
};
use unspool_query::adaptations::Author;
use unspool_sources::agents::{AGENTS, Agent};
use unspool_view::lines::make_visible;

use super::settings_file;
use crate::archive::Archive;
use crate::config;

/// Install or remove an agent's hooks, which report what its logs leave out
///
/// Hooks report permission requests and their answers, tell denied calls from interrupted ones, and
/// report events before the log has them. The change to the agent's settings is shown, and made
/// after you say yes, or with --yes.
#[derive(Args)]
pub struct Hooks {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show what would be written into the agent's settings, and write it after a yes
    Install {
        #[command(flatten)]
        change: Change,
        /// Also answer its permissions and questions from here, while its own dialog stands
        ///
        /// The first answer counts, wherever it is given. Without an answer the dialog stays as it
        /// is: nothing is allowed because time passed. Only for claude-code.
        #[arg(long)]
        answer: bool,
        /// Also add the enabled adaptations to the prompts of new sessions (`unspool adapt`)
        ///
        /// A second hook prints them and returns within milliseconds. OpenCode has no hooks: its
        /// settings get a file with them, and it does not record whether it sent it.
        #[arg(long)]
        adapt: bool,
    },
    /// Show what would be removed from the agent's settings, and remove it after a yes
    Remove(Change),
    /// Show whether hooks are installed
    Status {
        #[arg(long, value_name = "AGENT", help = format!("Only this agent: {}", supported_agents(", ")))]
        agent: Option<String>,
        /// Write the status as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
struct Change {
    #[arg(long, value_name = "AGENT", help = format!("The agent: {}", supported_agents(" or ")))]
    agent: Option<String>,
    /// Make the change. A backup of the settings is kept beside them
    #[arg(long)]
    yes: bool,
}

impl Change {
    fn agent(&self) -> Result<&str> {
        let hint = || anyhow!("say which agent: --agent {}", supported_agents(" or "));
        self.agent.as_deref().ok_or_else(hint)
    }
}

impl Hooks {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let environment = config::environment(&archive.folder()?)?;
        match self.action {
            Action::Install { change, adapt: true, .. }
                if change.agent()? == instructions::AGENT =>
            {
                let store = super::adapt::store(archive)?;
                // The file is there before the settings name it.
                store.reload(Author { who: "file", why: None })?;
                let file = std::path::absolute(store.instructions_file())?;
                let plan = instructions::plan(&environment, &file, true)?;
                settings_file::ask_and_apply(&plan, change.yes, "the file is already listed")?;
                Ok(())
            }
            Action::Install { change, answer, adapt } => {
                let options = HookOptions { answers: answer, adapts: adapt };
                let plan =
                    plan_install(&environment, change.agent()?, &program(archive)?, options)?;
                let nothing = "the hooks are already installed";
                if adapt {
                    settings_file::ask_and_apply(&plan, change.yes, nothing)?;
                } else {
                    settings_file::apply(&plan, change.yes, nothing)?;
                }
                if let Some(next) = after_install(change.agent()?).filter(|_| change.yes) {
                    stderr_line!("unspool: {next}");
                }
                Ok(())
            }
            Action::Remove(change) if change.agent()? == instructions::AGENT => {
                let file = std::path::absolute(super::adapt::store(archive)?.instructions_file())?;
                let plan = instructions::plan(&environment, &file, false)?;
                settings_file::apply(&plan, change.yes, "the file is not listed")?;
                Ok(())
            }
            Action::Remove(change) => {
                let plan = plan_remove(&environment, change.agent()?)?;
                settings_file::apply(&plan, change.yes, "no unspool hooks are installed")?;
                Ok(())
            }
            Action::Status { agent, json } => {
                let mut all = std::collections::BTreeMap::new();
                for Agent { name, .. } in
                    AGENTS.iter().filter(|each| agent.as_deref().is_none_or(|a| a == each.name))
                {
                    all.extend(status(&environment, name).map(|installed| (*name, installed)));
                }
                if all.is_empty() {
                    plan_install(
                        &environment,
                        &agent.unwrap_or_default(),
                        "unspool",
                        HookOptions::default(),
                    )?;
                }
                if json {
                    return super::write_json(&all);
                }
                for (name, installed) in all {
                    let line = match installed {
                        HookStatus::Yes { path, answers, adapts } => {
                            let answers = [", questions can be answered from here"]
                                .into_iter()
                                .filter(|_| answers);
                            let adapts =
                                [", adaptations are delivered"].into_iter().filter(|_| adapts);
                            format!(
                                "installed in {path}{}",
                                answers.chain(adapts).collect::<String>()
                            )
                        }
                        HookStatus::No => "not installed".to_owned(),
                        HookStatus::Other { path, what } => format!("{path}: {what}"),
                    };
                    writeln!(io::stdout(), "{name:<12}{}", make_visible(&line))?;
                }
                Ok(())
            }
        }
    }
}

/// The command that agents run: our full path, because an agent that was started from a desktop has
/// another PATH; with --data if a folder was given, because the agent does not have that setting.
fn program(archive: &Archive) -> Result<String> {
    let program = quoted(&settings_file::own_program());
    Ok(match archive.named_folder() {
        Some(folder) => {
            let folder = std::path::absolute(folder)?;
            format!("{program} --data {}", quoted(&folder.to_string_lossy()))
        }
        None => program,
    })
}

/// Quotes for a shell.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+".contains(letter);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
