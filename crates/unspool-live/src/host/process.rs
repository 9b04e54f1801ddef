//! The agent's process: its own group, its last words, and an end that leaves nothing behind.
//! Agents are wrappers of wrappers (`npx`, `node`, the agent); ending only the first is the usual way
//! to leak the others.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::chat::Exit;
use crate::host::folder::StoredProcess;

/// How long an agent may take to end after its standard input is closed.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// How long its processes may take to end after SIGTERM.
const TERM_TIME: Duration = Duration::from_secs(3);
/// How much of standard error is kept, and how much of it is shown.
const MAX_STDERR: usize = 64 * 1024;
const SHOWN_LINES: usize = 12;

/// Has the id of the chat in the environment of the agent and of all that it starts.
pub const CHAT_VARIABLE: &str = "UNSPOOL_CHAT";

/// A running agent.
pub struct AgentProcess {
    child: Child,
    group: Pid,
    /// The chat's id, which all its processes inherit.
    chat: String,
    stderr: Arc<Mutex<Vec<u8>>>,
}

/// The ends of the pipes to an agent.
pub struct AgentPipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
}

impl AgentProcess {
    /// Starts an agent in a group of its own, without a shell.
    pub fn start(
        command: &[String],
        folder: &Path,
        chat: &str,
    ) -> io::Result<(AgentProcess, AgentPipes)> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env(CHAT_VARIABLE, chat)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let missing = || io::Error::other("the agent has no pipes");
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err(missing()) };
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = id.ok_or_else(missing)?;
        let kept = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(keep_last(stderr, kept.clone()));
        let process = AgentProcess { child, group, chat: chat.to_owned(), stderr: kept };
        Ok((process, AgentPipes { stdin, stdout }))
    }

    pub fn stored(&self) -> StoredProcess {
        let group = self.group.as_raw_nonzero().get().unsigned_abs();
        StoredProcess { group, started: start_time(group) }
    }

    /// Waits until the agent ends by itself.
    pub async fn wait(&mut self) -> io::Result<()> {
        self.child.wait().await.map(drop)
    }

    /// Ends the agent and all processes that it started. The caller has closed its standard input.
    pub async fn stop(&mut self) -> Exit {
        let ended = timeout(CLOSE_TIME, self.child.wait()).await;
        if ended.is_err() || self.group_lives() {
            // The group may be gone by now.
            let _ = kill_process_group(self.group, Signal::TERM);
            let deadline = Instant::now() + TERM_TIME;
            while Instant::now() < deadline {
                let ended = timeout(Duration::from_millis(50), self.child.wait()).await;
                if ended.is_ok() && !self.group_lives() {
                    break;
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait().await.ok();
        self.kill_orphans().await;
        let (code, signal) = match status {
            Some(status) => (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)),
            None => (None, None),
        };
        Exit { code, signal, stderr: self.last_words() }
    }

    /// True while a process of the group lives. Dead ones that became ours are reaped.
    fn group_lives(&self) -> bool {
        while matches!(waitpgid(self.group, WaitOptions::NOHANG), Ok(Some(_))) {}
        test_kill_process_group(self.group).is_ok()
    }

    /// Kills what left the group: such processes become ours when their parents end.
    async fn kill_orphans(&self) {
        for _ in 0..50 {
            let _ = self.group_lives();
            let orphans = children(std::process::id(), &self.chat);
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                if let Some(pid) = i32::try_from(orphan).ok().and_then(Pid::from_raw) {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                    let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// The last lines of standard error.
    pub fn last_words(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }
}

async fn keep_last(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..read]);
        if kept.len() > MAX_STDERR {
            let drop = kept.len() - MAX_STDERR;
            kept.drain(..drop);
        }
    }
}

/// Makes orphans of the agent ours, so that they can be found.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends what a host left behind: the agent's group if it is still the same, and every process that
/// has inherited the mark of the chat.
pub fn kill_left_processes(process: StoredProcess, chat: &str) {
    for id in marked_processes(chat) {
        if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    let same = process.started.is_some() && start_time(process.group) == process.started;
    let pid = i32::try_from(process.group).ok().and_then(Pid::from_raw);
    if let (true, Some(pid)) = (same, pid) {
        let _ = kill_process_group(pid, Signal::KILL);
        // They are gone a moment later; whoever reaps them may take longer.
        for _ in 0..50 {
            if test_kill_process_group(pid).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A process of now, so that it can be told from a later one of the same id.
pub fn identify(process: u32) -> StoredProcess {
    StoredProcess { group: process, started: start_time(process) }
}

/// True while this very process runs.
pub fn is_running(process: StoredProcess) -> bool {
    let pid = i32::try_from(process.group).ok().and_then(Pid::from_raw);
    // A signal to somebody else's process is not permitted, but the process is there.
    let exists = pid.is_some_and(|pid| {
        !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
    });
    exists && !is_dead(process.group) && start_time(process.group) == process.started
}

/// True for a process that has ended and that nobody has waited for.
#[cfg(target_os = "linux")]
fn is_dead(process: u32) -> bool {
    stat_fields(process).is_none_or(|fields| fields.first().is_some_and(|state| state == "Z"))
}

#[cfg(not(target_os = "linux"))]
fn is_dead(_: u32) -> bool {
    false
}

/// All processes with the mark of a chat.
#[cfg(target_os = "linux")]
fn marked_processes(chat: &str) -> Vec<u32> {
    process_ids().filter(|id| is_marked(*id, chat)).collect()
}

#[cfg(not(target_os = "linux"))]
fn marked_processes(_: &str) -> Vec<u32> {
    Vec::new()
}

#[cfg(target_os = "linux")]
fn process_ids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
}

/// When a process started, in ticks since the machine did.
#[cfg(target_os = "linux")]
fn start_time(process: u32) -> Option<u64> {
    stat_fields(process)?.get(19)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn start_time(_: u32) -> Option<u64> {
    None
}

/// The fields of `/proc/<id>/stat` after the name, which may hold anything.
#[cfg(target_os = "linux")]
fn stat_fields(process: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// The children of a process that carry the mark of the chat of this agent. Other children are the
/// caller's own.
#[cfg(target_os = "linux")]
fn children(parent: u32, chat: &str) -> Vec<u32> {
    let parent = parent.to_string();
    process_ids()
        .filter(|id| {
            let fields = stat_fields(*id).unwrap_or_default();
            let is_child = fields.get(1).is_some_and(|of| *of == parent);
            let is_dead = fields.first().is_some_and(|state| state == "Z");
            is_child && !is_dead && is_marked(*id, chat)
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn children(_: u32, _: &str) -> Vec<u32> {
    Vec::new()
}

/// True if a process has inherited the environment of an agent of ours.
#[cfg(target_os = "linux")]
fn is_marked(process: u32, chat: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let mark = format!("{CHAT_VARIABLE}={chat}");
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}

/// True if a process is the agent or was started by it: it must not answer its own questions.
#[cfg(target_os = "linux")]
pub fn is_below(process: u32, agent: StoredProcess, chat: &str) -> bool {
    let mut at = process;
    for _ in 0..64 {
        if at == agent.group {
            return true;
        }
        let parent = stat_fields(at).and_then(|fields| fields.get(1)?.parse().ok());
        match parent {
            Some(parent) if parent > 1 => at = parent,
            Some(_) | None => break,
        }
    }
    is_marked(process, chat)
}

#[cfg(not(target_os = "linux"))]
pub fn is_below(_: u32, _: StoredProcess, _: &str) -> bool {
    false
}
