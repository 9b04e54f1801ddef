//! `unspool acp`: records what an editor and its agent say to each other.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use unspool_live::proxy::{Proxy, ProxySpec};

use super::chat::prompt_counts;
use crate::archive::Archive;

/// Record an agent that an editor drives
///
/// Put it in front of the agent's command in the editor's settings. It passes every byte on in both
/// directions, and records the session: its permissions, its questions, and every word as it came.
///
///   unspool acp -- gemini --acp
///
/// In Zed's settings:
///
///   "agent_servers": {
///     "Gemini, recorded": {"command": "unspool", "args": ["acp", "--", "gemini", "--acp"]}
///   }
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Acp {
    /// The agent's command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Acp {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let program = self.command.first().cloned().unwrap_or_default();
        let counted = archive.clone();
        let spec = ProxySpec {
            command: self.command,
            folder: std::env::current_dir().unwrap_or_default(),
            captures: archive.folder()?.streams(),
            count_prompts: Arc::new(move |session| {
                prompt_counts(&counted, session).unwrap_or_else(|_| BTreeMap::new())
            }),
        };
        // Before the agent starts: a signal must never end this process alone.
        let process = Arc::new(AtomicU32::new(0));
        pass_signals_on(process.clone())?;
        let proxy = Proxy::start(spec)
            .with_context(|| format!("cannot start {program}; is it installed and on the PATH?"))?;
        process.store(proxy.process, Ordering::Relaxed);
        let status = proxy.exit.recv().context("the agent's end was not seen")?;
        proxy.finish(status);
        let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
        // Not by returning: a thread reads standard input, which cannot be stopped.
        std::process::exit(code);
    }
}

/// Passes signals on to the agent, whose end ends this process too.
fn pass_signals_on(process: Arc<AtomicU32>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let signals = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
            let [Ok(mut terminate), Ok(mut hang_up), Ok(mut interrupt)] = signals.map(signal)
            else {
                return;
            };
            loop {
                let passed = tokio::select! {
                    _ = terminate.recv() => Signal::TERM,
                    _ = hang_up.recv() => Signal::HUP,
                    _ = interrupt.recv() => Signal::INT,
                };
                // It is about to start.
                while process.load(Ordering::Relaxed) == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let process = i32::try_from(process.load(Ordering::Relaxed)).ok();
                if let Some(process) = process.and_then(Pid::from_raw) {
                    let _ = kill_process(process, passed);
                }
            }
        });
    });
    Ok(())
}
