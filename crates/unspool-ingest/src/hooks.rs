//! Installs and removes hooks in the agents' settings, so that agents run `unspool hook`. All other
//! settings keep their bytes and their order. Functions return a plan; nothing is written until the
//! caller carries it out.

pub mod instructions;
pub mod spool;

use std::io;
use std::path::PathBuf;

use serde::Serialize;
use thiserror::Error;
use unspool_sources::agents::{Agent, HookForm, HookSetup};
use unspool_sources::discover::Environment;

use crate::settings::{self, NotSettings, SettingsPlan};

#[derive(Debug, Error)]
pub enum HooksError {
    #[error("hooks are not supported for {0}; they are supported for {agents}", agents = supported_agents(" and "))]
    Agent(String),
    #[error(
        "questions of {0} cannot be answered from here: its dialog would wait for the hook; leave out \
         --answer (docs/chat.md says what other agents allow)"
    )]
    NoAnswers(String),
    #[error(
        "adaptations cannot be delivered to {0}: none of its hooks is known to add to a prompt; they \
         can be for {agents}", agents = adapted_agents()
    )]
    NoAdaptations(String),
    #[error("cannot find the settings of {0}: there is no home folder; set HOME")]
    Nowhere(String),
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} cannot be changed safely ({what}); add the hooks manually")]
    Settings { path: PathBuf, what: NotSettings },
}

/// The hook timeout given to agents. `unspool hook` returns within 50 ms.
const HOOK_TIMEOUT_SECONDS: u32 = 5;
/// How long a hook may wait for an answer. When it is over, the agent's dialog stays as it is.
pub const ANSWER_TIMEOUT_SECONDS: u32 = 24 * 60 * 60;
/// The option of `unspool hook` with which it waits.
const ANSWER_OPTION: &str = " --answer";

/// Whether our hooks are installed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "installed")]
pub enum HookStatus {
    Yes {
        path: String,
        /// Questions can be answered from here.
        answers: bool,
        /// Adaptations are delivered.
        adapts: bool,
    },
    No,
    /// The settings are unreadable, or some hooks are missing.
    Other {
        path: String,
        what: String,
    },
}

/// The names of the agents that have hooks, as a list. `before_last`: ` and `, for example.
pub fn supported_agents(before_last: &str) -> String {
    let names: Vec<&str> = Agent::with_hooks().map(|agent| agent.name).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{}{before_last}{last}", others.join(", "))
        }
        Some(_) | None => names.concat(),
    }
}

/// The names of the agents whose hooks can add to prompts, and OpenCode, which reads a file.
pub fn adapted_agents() -> String {
    let hooked = Agent::with_hooks()
        .filter(|agent| agent.hooks.as_ref().is_some_and(|setup| !setup.adapt_events.is_empty()));
    let mut names: Vec<&str> = hooked.map(|agent| agent.name).collect();
    names.push(instructions::AGENT);
    names.join(", ")
}

/// What the user must still do after the hooks of an agent are installed.
pub fn after_install(agent: &str) -> Option<&'static str> {
    Agent::named(agent)?.hooks.as_ref()?.after_install
}

/// An agent and how it configures hooks.
#[derive(Clone, Copy)]
struct HookedAgent {
    name: &'static str,
    setup: &'static HookSetup,
}

fn agent_of(name: &str) -> Result<HookedAgent, HooksError> {
    let agent = Agent::named(name)
        .and_then(|agent| Some(HookedAgent { name: agent.name, setup: agent.hooks.as_ref()? }));
    agent.ok_or_else(|| HooksError::Agent(name.to_owned()))
}

/// What hooks do beside recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HookOptions {
    /// The hook of a question waits until somebody answers it.
    pub answers: bool,
    /// A second hook adds adaptations to prompts. Without it one that is installed stays.
    pub adapts: bool,
}

/// Plans the settings with which the agent runs `program hook`.
pub fn plan_install(
    environment: &Environment,
    agent: &str,
    program: &str,
    options: HookOptions,
) -> Result<SettingsPlan, HooksError> {
    let HookOptions { answers, adapts } = options;
    let agent = agent_of(agent)?;
    let adapt_events = agent.setup.adapt_events;
    if adapts && adapt_events.is_empty() {
        return Err(HooksError::NoAdaptations(agent.name.to_owned()));
    }
    let answer_event = agent.setup.answer_event.filter(|_| answers);
    if answers && answer_event.is_none() {
        return Err(HooksError::NoAnswers(agent.name.to_owned()));
    }
    let (path, before) = read(environment, agent)?;
    let is_adapted = |text: &String| text.contains(&adapt_mark(agent));
    let adapt_events =
        if adapts || before.as_ref().is_some_and(is_adapted) { adapt_events } else { &[] };
    let after = match agent.setup.form {
        HookForm::OwnFile => {
            let adapted = |event: &str| {
                let adapts = adapt_events.contains(&event);
                adapts.then(|| format!("{program}{} --event {event}", adapt_mark(agent)))
            };
            let commands = |event: &str| {
                [Some(command(agent, program, event)), adapted(event)]
                    .into_iter()
                    .flatten()
                    .collect()
            };
            settings::own(agent.setup.events, commands, HOOK_TIMEOUT_SECONDS)
        }
        HookForm::Settings { second } => {
            let group = |event: &str| {
                let command = command(agent, program, "");
                match answer_event {
                    Some(answered) if answered == event => {
                        let command = format!("{command}{ANSWER_OPTION}");
                        settings::group(&command, ANSWER_TIMEOUT_SECONDS * second)
                    }
                    Some(_) | None => settings::group(&command, HOOK_TIMEOUT_SECONDS * second),
                }
            };
            let groups: Vec<(&str, String)> =
                agent.setup.events.iter().map(|event| (*event, group(event))).collect();
            let adapted = settings::group(
                &format!("{program}{}", adapt_mark(agent)),
                HOOK_TIMEOUT_SECONDS * second,
            );
            let adapted: Vec<(&str, String)> =
                adapt_events.iter().map(|event| (*event, adapted.clone())).collect();
            settings::with_hooks(before.as_deref(), &groups, &mark(agent))
                .and_then(|text| settings::with_hooks(Some(&text), &adapted, &adapt_mark(agent)))
                .map_err(|what| HooksError::Settings { path: path.clone(), what })?
        }
    };
    Ok(SettingsPlan { path, before, after: Some(after) })
}

/// Plans the removal of our hooks.
pub fn plan_remove(environment: &Environment, agent: &str) -> Result<SettingsPlan, HooksError> {
    let agent = agent_of(agent)?;
    let (path, before) = read(environment, agent)?;
    let after = match (agent.setup.form, &before) {
        (HookForm::OwnFile, _) | (_, None) => None,
        (HookForm::Settings { .. }, Some(text)) => Some(
            settings::without_hooks(text, &mark(agent))
                .and_then(|text| settings::without_hooks(&text, &adapt_mark(agent)))
                .map_err(|what| HooksError::Settings { path: path.clone(), what })?,
        ),
    };
    Ok(SettingsPlan { path, before, after })
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
    let text = text.unwrap_or_default();
    let found = text.matches(&mark(agent)).count();
    Some(if found == 0 {
        HookStatus::No
    } else if let Some(gone) = program_of(&text, agent).filter(|program| !program.exists()) {
        let what = format!(
            "the hooks run {}, which no longer exists; `unspool hooks install --agent {}` writes \
             the new path",
            gone.display(),
            agent.name
        );
        HookStatus::Other { path, what }
    } else if found < agent.setup.events.len() {
        let what = format!(
            "{found} of {} hooks are installed; `unspool hooks install --agent {}` adds the others",
            agent.setup.events.len(),
            agent.name
        );
        HookStatus::Other { path, what }
    } else {
        let answers = text.contains(&format!("{}{ANSWER_OPTION}", mark(agent)));
        let adapts = text.contains(&adapt_mark(agent));
        HookStatus::Yes { path, answers, adapts }
    })
}

fn path_of(environment: &Environment, agent: HookedAgent) -> Option<PathBuf> {
    Some(environment.agent_folder(agent.name)?.join(agent.setup.file))
}

fn read(
    environment: &Environment,
    agent: HookedAgent,
) -> Result<(PathBuf, Option<String>), HooksError> {
    let path =
        path_of(environment, agent).ok_or_else(|| HooksError::Nowhere(agent.name.to_owned()))?;
    match settings::read(&path) {
        Ok(text) => Ok((path, text)),
        Err(source) => Err(HooksError::Read { path, source }),
    }
}

/// The program that the hooks run, if they name it with its full path.
fn program_of(settings: &str, agent: HookedAgent) -> Option<PathBuf> {
    let (before, _) = settings.split_once(&mark(agent))?;
    let command = before.rsplit('"').next()?;
    let program = match command.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next()?,
        None => command.split(' ').next()?,
    };
    program.starts_with('/').then(|| PathBuf::from(program))
}

/// The substring that identifies our hook commands, whatever the program's path.
fn mark(agent: HookedAgent) -> String {
    format!(" hook --agent {}", agent.name)
}

/// The same for the hook that adds adaptations.
fn adapt_mark(agent: HookedAgent) -> String {
    format!(" hook --adapt --agent {}", agent.name)
}

fn command(agent: HookedAgent, program: &str, event: &str) -> String {
    let event = if event.is_empty() { String::new() } else { format!(" --event {event}") };
    format!("{program}{}{event}", mark(agent))
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
