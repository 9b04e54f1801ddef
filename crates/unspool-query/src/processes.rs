//! The processes of this machine: whether an agent is still there, and whether a command that it
//! asked for is running. Agents write nothing while a permission is open and nothing when they are
//! killed, so only their processes tell.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustc_hash::FxHashMap;
use sysinfo::{
    Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, ThreadKind, UpdateKind,
};

/// A process that started shortly after a write may still have written it: clocks are coarse.
const START_TOLERANCE: Duration = Duration::from_secs(2);
/// How long a list is used again.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A shorter command is part of too many command lines.
const MIN_COMMAND_CHARS: usize = 2;
/// Shells that stand between an agent and what it starts.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ash", "cmd.exe"];
/// Programs whose second word is the program that counts.
const INTERPRETERS: [&str; 6] = ["node", "bun", "deno", "python", "python3", "ruby"];
/// Codex leaves a server and its watcher behind, in the folder where it was started.
const DAEMON_WORDS: [&str; 2] = ["--managed-daemon", "pid-update-loop"];
/// A longer chain of parents is a loop.
const MAX_PARENTS: usize = 64;

/// The running processes.
#[derive(Debug, Default)]
pub struct ProcessList(FxHashMap<u32, Process>);

#[derive(Debug)]
struct Process {
    parent: Option<u32>,
    /// The program, and the script that it runs if it is an interpreter.
    program: Vec<String>,
    /// The letters and digits of the command line.
    command: String,
    /// It outlives the agent that started it.
    is_daemon: bool,
    /// None if it may not be read.
    folder: Option<PathBuf>,
    started: SystemTime,
}

/// The process of an agent that wrote a log.
#[derive(Debug)]
pub struct AgentProcess<'a> {
    pub program: &'a str,
    pub project: Option<&'a Path>,
    /// The log was written at this time. A process that started later did not write it.
    pub started_before: SystemTime,
}

/// An agent, to look for what it runs.
#[derive(Clone, Copy, Debug)]
pub struct RunningAgent<'a> {
    pub program: &'a str,
    pub project: Option<&'a Path>,
}

impl ProcessList {
    /// True unless it is certain that there is no such process. `others` are processes of other
    /// sessions.
    pub fn has(&self, wanted: &AgentProcess<'_>, others: &[u32]) -> bool {
        let AgentProcess { program, project, started_before } = *wanted;
        self.0.iter().any(|(id, process)| {
            let same_folder = process.is_in(project);
            let old = process.started <= started_before + START_TOLERANCE;
            process.is_program(program)
                && same_folder
                && old
                && !process.is_daemon
                && !self.belongs_to(*id, program, others)
        })
    }

    /// True if a process is one of these, or one that these were started from or have started, of the
    /// same program: agents are often started by a launcher of their own name.
    fn belongs_to(&self, id: u32, program: &str, owners: &[u32]) -> bool {
        let chain = |from: u32| {
            let parent = |id: &u32| {
                let parent = self.0.get(id)?.parent?;
                self.0.get(&parent)?.is_program(program).then_some(parent)
            };
            std::iter::successors(Some(from), parent).take(MAX_PARENTS)
        };
        chain(id).any(|id| owners.contains(&id))
            || owners.iter().any(|one| chain(*one).any(|up| up == id))
    }

    /// The processes of a program, and when each started.
    pub fn of_program(&self, program: &str) -> impl Iterator<Item = (u32, SystemTime)> {
        let own = self.0.iter().filter(|(_, process)| process.is_program(program));
        own.filter(|(_, process)| !process.is_daemon).map(|(id, process)| (*id, process.started))
    }

    /// True if this process is there and is the one that was seen at `seen`: ids are used again.
    pub fn is_alive(&self, id: u32, seen: SystemTime) -> bool {
        self.0.get(&id).is_some_and(|process| process.started <= seen + START_TOLERANCE)
    }

    /// True if a process below the agent of this project runs the command, and has since it was
    /// requested. Agents give commands to a shell, with quotes and more around them, so letters and
    /// digits count.
    pub fn runs(&self, agent: &RunningAgent<'_>, command: &str, requested: SystemTime) -> bool {
        let command = letters_and_digits(command);
        command.len() >= MIN_COMMAND_CHARS
            && self.below(agent).any(|process| {
                process.started + START_TOLERANCE >= requested && process.command.contains(&command)
            })
    }

    /// True if the agent of this project started a process at this time or later: a shell may
    /// replace itself by its command, with the words expanded. Where several agents run in the
    /// project, the process may be another one's, so only `runs` tells.
    pub fn has_child_since(&self, agent: &RunningAgent<'_>, since: SystemTime) -> bool {
        self.is_alone(agent) && self.below(agent).any(|process| process.started >= since)
    }

    /// True if there is at most one such agent in its project.
    fn is_alone(&self, agent: &RunningAgent<'_>) -> bool {
        let RunningAgent { program, project } = *agent;
        let is_agent = |process: &Process| {
            process.is_program(program) && process.is_in(project) && !process.is_daemon
        };
        let is_first =
            |process: &&Process| is_agent(process) && !self.parents(process).any(is_agent);
        self.0.values().filter(is_first).take(2).count() < 2
    }

    fn below<'a>(&'a self, agent: &'a RunningAgent<'_>) -> impl Iterator<Item = &'a Process> {
        let RunningAgent { program, project } = *agent;
        self.0.values().filter(move |process| {
            let mut parents = self.parents(process);
            // A daemon of the agent runs commands too; its own folder says nothing.
            parents.any(|parent| parent.is_program(program) && parent.is_in(project))
                && !process.is_program(program)
        })
    }

    fn parents<'a>(&'a self, process: &'a Process) -> impl Iterator<Item = &'a Process> {
        let parent = |process: &&Process| process.parent.and_then(|id| self.0.get(&id));
        std::iter::successors(parent(&process), move |process| parent(process)).take(MAX_PARENTS)
    }

    /// The processes, listed at most once a second. None where they cannot be listed.
    pub fn latest() -> Option<Arc<ProcessList>> {
        static LATEST: Mutex<Option<(Instant, Arc<ProcessList>)>> = Mutex::new(None);
        let mut latest = LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, list)) = &*latest
            && read.elapsed() < MAX_AGE
        {
            return Some(list.clone());
        }
        let list = Arc::new(ProcessList::read()?);
        *latest = Some((Instant::now(), list.clone()));
        Some(list)
    }

    /// The processes that can be seen. None where they cannot be listed.
    pub fn read() -> Option<ProcessList> {
        let mut system = System::new().ok()?;
        let kind = ProcessRefreshKind::nothing()
            .without_tasks()
            .with_cmd(UpdateKind::Always)
            .with_cwd(UpdateKind::Always);
        system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
        let own = std::process::id();
        let processes = system.processes().iter().filter_map(|(id, process)| {
            let ended = matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead);
            let thread = matches!(process.thread_kind(), Some(ThreadKind::Userland));
            (id.as_u32() != own && !ended && !thread).then(|| (id.as_u32(), Process::of(process)))
        });
        let list: FxHashMap<u32, Process> = processes.collect();
        // There is always another process; without one they are hidden from us.
        (!list.is_empty()).then_some(ProcessList(list))
    }
}

impl Process {
    fn of(process: &sysinfo::Process) -> Process {
        let words: Vec<String> =
            process.cmd().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let name = process.name().to_string_lossy().into_owned();
        let first = words.first().map(|word| last_component(word)).unwrap_or_default();
        let interprets = INTERPRETERS.contains(&first) || INTERPRETERS.contains(&name.as_str());
        let count = if interprets { 2 } else { 1 };
        let program = std::iter::once(name).chain(words.iter().take(count).cloned()).collect();
        Process {
            parent: process.parent().map(Pid::as_u32),
            program,
            command: words.iter().map(|word| letters_and_digits(word)).collect(),
            is_daemon: words.iter().any(|word| DAEMON_WORDS.contains(&word.as_str())),
            folder: process.cwd().filter(|cwd| !cwd.as_os_str().is_empty()).map(Path::to_owned),
            started: SystemTime::UNIX_EPOCH + Duration::from_secs(process.start_time()),
        }
    }

    /// True if a component of its program's path is the name, or begins with it: `claude`,
    /// `claude-code/cli.js`, `gemini.js`.
    fn is_program(&self, program: &str) -> bool {
        let is = |component: &str| {
            let rest = component.strip_prefix(program);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        };
        self.program.iter().any(|name| name.split(['/', '\\']).any(is))
    }

    /// An agent may have changed into a folder of its project, or have been started above it.
    fn is_in(&self, project: Option<&Path>) -> bool {
        match (&self.folder, project) {
            (Some(folder), Some(project)) => {
                folder.starts_with(project) || project.starts_with(folder)
            }
            (None, _) | (_, None) => true,
        }
    }
}

fn last_component(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The process that runs a hook: our nearest ancestor that is no shell.
pub fn hook_caller() -> Option<u32> {
    let mut system = System::new().ok()?;
    let kind = ProcessRefreshKind::nothing().without_tasks();
    let mut id = sysinfo::get_current_pid().ok()?;
    for _ in 0..MAX_PARENTS {
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[id]), false, kind);
        let parent = system.process(id)?.parent()?;
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[parent]), false, kind);
        let name = system.process(parent)?.name().to_string_lossy().into_owned();
        if !SHELLS.contains(&name.as_str()) {
            return Some(parent.as_u32());
        }
        id = parent;
    }
    None
}

/// The name of this machine.
pub fn machine_name() -> Option<String> {
    sysinfo::System::host_name().ok().filter(|name| !name.is_empty())
}

fn letters_and_digits(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
