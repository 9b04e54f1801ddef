//! `unspool serve`: the web application, over everything that is recorded on this machine.

mod demo;
mod keeper;

use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use tokio::net::TcpListener;
use unspool_engine::lock::DataFolder;
use unspool_server::{App, Door};

use crate::archive::Archive;
use crate::config;
use keeper::Keeper;

/// Where it listens unless told otherwise.
const PORT: u16 = 7787;

/// Open the web application: every session, live, searchable, linkable
///
/// Reads every source found on this machine and goes on reading while it serves. Prints one line
/// with the address to open; its token lets your browser in and nobody else. Listens on 127.0.0.1
/// only. Ctrl-C ends it.
#[derive(Args)]
pub struct Serve {
    /// The port to listen on; 7787, or any that is free where that one is taken
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Show recorded demo sessions, in an archive of their own, instead of this machine's
    #[arg(long)]
    demo: bool,
    /// Open the address in the browser
    #[arg(long)]
    open: bool,
}

impl Serve {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let folder = archive.folder()?;
        let (archive, environment) = if self.demo {
            let folder = folder.path().join("demo");
            let environment = demo::lay_out(&folder)?;
            (Archive::new(Some(folder)), environment)
        } else {
            (Archive::new(Some(folder.path().to_owned())), config::environment(&folder)?)
        };
        // Makes the archive where there is none, so that there is something to read.
        let keeper = Keeper::begin(archive, environment)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("cannot start")?;
        runtime.block_on(self.serve(keeper))
    }

    async fn serve(self, keeper: Keeper) -> Result<()> {
        let listener = listen(self.port).await?;
        let port = listener.local_addr()?.port();
        let door = Door::new(token(&keeper.folder()?)?, port);
        let address = door.address();
        let app = App::new(keeper.read()?, config::prices()?, door);
        keeper.keep(Arc::clone(&app));
        writeln!(io::stdout(), "{address}")?;
        io::stdout().flush()?;
        if self.open {
            open(&address);
        }
        Ok(unspool_server::serve(app, listener, ended()).await?)
    }
}

/// The secret is kept with the archive, so that pages which are open, and links that were kept, hold
/// when the program is started again. Whoever can read it can read the archive too.
fn token(folder: &DataFolder) -> Result<String> {
    let path = folder.path().join("token");
    let is_one = |token: &str| token.len() == 48 && token.bytes().all(|c| c.is_ascii_hexdigit());
    if let Some(token) = fs::read_to_string(&path).ok().filter(|token| is_one(token)) {
        return Ok(token);
    }
    let token = Door::secret().ok_or_else(|| anyhow!("the system gives no random bytes"))?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(&path)
        .and_then(|mut file| file.write_all(token.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(token)
}

async fn listen(port: Option<u16>) -> Result<TcpListener> {
    let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match port {
        Some(port) => TcpListener::bind(at(port)).await.with_context(|| {
            format!("cannot listen on port {port}; choose another with --port, or leave it out")
        }),
        None => match TcpListener::bind(at(PORT)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(at(0)).await.context("cannot listen on 127.0.0.1"),
        },
    }
}

/// Until somebody ends us.
async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

fn open(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        eprintln!("unspool: no browser could be started; open the address yourself");
    }
}
