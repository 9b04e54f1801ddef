//! The processes of this machine, to tell whether an agent is still there. An agent keeps its log
//! closed between writes, so its program and its working folder are what identifies it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A process that started shortly after a write may still have written it: clocks are coarse.
const START_TOLERANCE: Duration = Duration::from_secs(2);

/// The running processes.
#[derive(Debug, Default)]
pub struct ProcessList(Vec<Process>);

#[derive(Debug)]
struct Process {
    /// The program, and the script that it runs if it is an interpreter.
    program: Vec<String>,
    /// None if it may not be read.
    folder: Option<PathBuf>,
    started: Option<SystemTime>,
}

/// The process of an agent that wrote a log.
#[derive(Debug)]
pub struct AgentProcess<'a> {
    pub program: &'a str,
    pub project: Option<&'a Path>,
    /// The log was written at this time. A process that started later did not write it.
    pub started_before: SystemTime,
}

impl ProcessList {
    /// True unless it is certain that there is no such process.
    pub fn has(&self, wanted: &AgentProcess<'_>) -> bool {
        let AgentProcess { program, project, started_before } = *wanted;
        self.0.iter().any(|process| {
            let same_program = process.program.iter().any(|name| name.contains(program));
            // An agent may have changed into a folder of its project, or have been started above.
            let same_folder = match (&process.folder, project) {
                (Some(folder), Some(project)) => {
                    folder.starts_with(project) || project.starts_with(folder)
                }
                (None, _) | (_, None) => true,
            };
            let old =
                process.started.is_none_or(|started| started <= started_before + START_TOLERANCE);
            same_program && same_folder && old
        })
    }

    /// The processes that can be seen. None where they cannot be listed.
    #[cfg(target_os = "linux")]
    pub fn read() -> Option<ProcessList> {
        let booted = linux::boot_time();
        let entries = Path::new("/proc").read_dir().ok()?;
        let processes = entries.flatten().filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            (id != std::process::id()).then(|| linux::process(&entry.path(), booted))?
        });
        let list: Vec<Process> = processes.collect();
        // There is always another process; without one they are hidden from us.
        (!list.is_empty()).then_some(ProcessList(list))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn read() -> Option<ProcessList> {
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    /// The unit of times in /proc/PID/stat, the same on all architectures that Rust supports.
    const TICKS_PER_SECOND: u64 = 100;

    pub fn boot_time() -> Option<SystemTime> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.trim().parse().ok()?))
    }

    pub fn process(folder: &Path, booted: Option<SystemTime>) -> Option<Process> {
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // The name is in parentheses and may itself contain some.
        let (name, fields) = stat.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // A zombie has ended; nobody has asked for its status yet.
        if matches!(fields.first(), Some(&"Z" | &"X")) {
            return None;
        }
        let ticks: Option<u64> = fields.get(19).and_then(|ticks| ticks.parse().ok());
        let since = ticks.map(|ticks| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND));
        let mut program = vec![name.to_owned()];
        let command = std::fs::read(folder.join("cmdline")).unwrap_or_default();
        program.extend(program_of(&command));
        Some(Process {
            program,
            folder: std::fs::read_link(folder.join("cwd")).ok(),
            started: booted.zip(since).map(|(booted, since)| booted + since),
        })
    }
}

/// The first two arguments: the program, and the script of an interpreter.
#[cfg(any(target_os = "linux", test))]
fn program_of(command: &[u8]) -> impl Iterator<Item = String> + '_ {
    let words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.take(2).map(|word| String::from_utf8_lossy(word).into_owned())
}

#[cfg(test)]
#[path = "process_list_tests.rs"]
mod tests;
