//! `unspool host`: the process that drives one agent. `unspool chat` starts it; nobody types it.

use anyhow::{Context, Result, bail};
use clap::Args;
use unspool_live::host::{self, HostSpec};

use super::chat::folders;
use crate::archive::Archive;

/// Drive one agent for `unspool chat`
#[derive(Args)]
#[command(hide = true)]
pub struct Host {
    /// The chat, whose folder says what to start
    chat: String,
}

impl Host {
    pub fn run(self, archive: &Archive) -> Result<()> {
        // Away from the terminal of whoever started the chat: closing it must not end the agent.
        let _ = rustix::process::setsid();
        let folders = folders(&archive.folder()?);
        let Some(folder) = folders.find(&self.chat) else {
            bail!("there is no chat {}; start one with `unspool chat`", self.chat);
        };
        let stored = folder.read().context("the chat has no state that can be read")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            // Before the socket: a second host must not take it away from the first.
            let lock = host::lock(&folder).await?;
            let connections = host::socket::listen(&folder)?;
            let kept = Some(stored.state);
            let spec = HostSpec { chat: stored.spec, kept, folders, folder };
            host::run(spec, lock, connections).await
        })?;
        Ok(())
    }
}
