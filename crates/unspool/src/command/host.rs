//! `unspool host`: the process that drives one agent. `unspool chat` starts it; nobody types it.

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use unspool_live::client::attach;
use unspool_live::host::folder::ChatFolder;
use unspool_live::host::{self, HostSpec};
use unspool_live::protocol::{ClientMessage, Command};

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
            tokio::spawn(end_on_signal(folder.clone()));
            let spec = HostSpec { chat: stored.spec, kept, folders, folder };
            host::run(spec, lock, connections).await
        })?;
        Ok(())
    }
}

/// SIGTERM ends the agent like `unspool chat --end`: nothing is left behind.
async fn end_on_signal(folder: ChatFolder) {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return };
    terminated.recv().await;
    let Ok(attached) = attach(&folder).await else { return };
    let command = Command::End;
    let _ =
        attached.commands.send(ClientMessage { number: 0, by: "signal".to_owned(), command }).await;
    // The connection stays open until the host ends.
    std::future::pending::<()>().await;
    drop(attached);
}
