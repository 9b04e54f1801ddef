//! `unspool run`: starts an agent that writes down what its model calls are sent.
//!
//! The agent takes the place of this process. So nothing stands between it and the terminal, its
//! signals, its job control and its exit code.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;
use clap::error::ErrorKind;
use jiff::Timestamp;
use unspool_ingest::lock::DataFolder;
use unspool_sources::agents::{AGENTS, Agent, TraceValue};
use unspool_view::lines::make_visible;

use crate::archive::Archive;

/// What a shell answers if there is no such program, and if it cannot be started.
const NOT_FOUND: i32 = 127;
const NOT_STARTED: i32 = 126;

/// Start an agent so that it writes down what its model calls are sent
///
/// Sets the variables with which Claude Code, Codex and Copilot CLI write down their
/// prompts, and starts the agent. What they write is in Unspool's own folder, is read by the next sync, and is
/// deleted after 14 days. The agent has the terminal to itself, and its exit code is the command's.
///
///   unspool run -- codex
///   unspool run -- claude --resume
///
/// A variable that you have set yourself stays as it is.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Run {
    /// Record the requests themselves, with a proxy (this version has none)
    #[arg(long, hide = true)]
    wire: bool,
    /// The agent's command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Run {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if self.wire {
            let what = "--wire needs a proxy between the agent and its model, which this version \
                        does not have; without it the agent itself writes down what it sends\n";
            clap::Error::raw(ErrorKind::InvalidValue, what).exit();
        }
        let Some((program, arguments)) = self.command.split_first() else {
            bail!("no program is named; write `unspool run -- codex`");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        match agent_of(program) {
            Some(agent) => {
                if let Err(error) = set_variables(&mut command, agent, &archive.folder()?) {
                    // An agent that cannot be recorded still runs.
                    stderr_line!(
                        "unspool: no folder for the prompts of {}: {error}; it runs without",
                        agent.title
                    );
                }
            }
            None => {
                let name = make_visible(&program.to_string_lossy()).into_owned();
                stderr_line!(
                    "unspool: nothing more can be recorded of {name} than its own logs; known are \
                     {}",
                    traced_programs()
                );
            }
        }
        let error = command.exec();
        std::process::exit(explain(program, &error));
    }
}

/// The agent whose program this is, if it can write down what it sends.
fn agent_of(program: &OsStr) -> Option<&'static Agent> {
    let name = Path::new(program).file_name()?.to_str()?;
    traced_agents().find(|agent| agent.program() == Some(name))
}

fn traced_agents() -> impl Iterator<Item = &'static Agent> {
    AGENTS.iter().filter(|agent| !agent.trace_variables.is_empty())
}

fn traced_programs() -> String {
    let programs: Vec<&str> = traced_agents().filter_map(Agent::program).collect();
    programs.join(", ")
}

/// Sets the variables that the user has not set.
fn set_variables(command: &mut Command, agent: &Agent, folder: &DataFolder) -> io::Result<()> {
    let mut run = None;
    for variable in agent.trace_variables {
        if let Some(own) = std::env::var_os(variable.name) {
            stderr_line!(
                "unspool: {} is set to {}; it stays, so import what is written there",
                variable.name,
                make_visible(&own.to_string_lossy())
            );
            continue;
        }
        if let TraceValue::Text(text) = variable.value {
            command.env(variable.name, text);
            continue;
        }
        let path = match &run {
            Some(path) => path,
            None => run.insert(folder.create_trace(agent.name, Timestamp::now())?),
        };
        let mut value = OsString::new();
        match variable.value {
            TraceValue::Folder => value.push(path),
            TraceValue::FolderAfter(prefix) => {
                value.push(prefix);
                value.push(path);
            }
            TraceValue::File(name) => value.push(path.join(name)),
            TraceValue::Text(text) => value.push(text),
        }
        command.env(variable.name, value);
    }
    Ok(())
}

/// Says why a program did not start. Returns the exit code that a shell gives.
fn explain(program: &OsStr, error: &io::Error) -> i32 {
    let name = make_visible(&program.to_string_lossy()).into_owned();
    if error.kind() == io::ErrorKind::NotFound {
        stderr_line!("unspool: there is no program {name}; is it installed and on the PATH?");
        NOT_FOUND
    } else {
        stderr_line!("unspool: cannot start {name}: {error}");
        NOT_STARTED
    }
}
