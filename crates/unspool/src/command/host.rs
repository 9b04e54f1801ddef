//! `unspool host`: the process that drives one agent. `unspool chat` starts it; nobody types it.

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use unspool_live::host::{self, Connection, HostSpec};
use unspool_live::protocol::{ClientMessage, Command};

use super::chat::folders;
use crate::archive::Archive;
use crate::config::Config;

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
            let connections = with_signal(connections);
            let kept = Some(stored.state);
            // A mistake in the configuration since the start of the chat costs it the servers.
            let mcp = Config::load().and_then(|config| config.chat.servers()).unwrap_or_default();
            let spec = HostSpec { chat: stored.spec, kept, folders, folder, mcp };
            host::run(spec, lock, connections).await
        })?;
        Ok(())
    }
}

/// Adds a client that ends the chat on SIGTERM, like `unspool chat --end`: nothing is left behind.
/// It does not come through the socket, whose file may be gone.
fn with_signal(mut connections: mpsc::Receiver<Connection>) -> mpsc::Receiver<Connection> {
    let (sender, all) = mpsc::channel(8);
    let on_signal = sender.clone();
    tokio::spawn(async move {
        while let Some(connection) = connections.recv().await {
            if sender.send(connection).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        let Ok(mut terminated) = signal(SignalKind::terminate()) else { return };
        terminated.recv().await;
        let (connection, commands, mut messages) = host::connection();
        let end = ClientMessage { number: 0, by: "signal".to_owned(), command: Command::End };
        if on_signal.send(connection).await.is_err() || commands.send(end).await.is_err() {
            return;
        }
        // Connected until the host ends.
        while messages.recv().await.is_some() {}
        drop(commands);
    });
    all
}
