//! `unspool serve`: the web application, over everything that is recorded on this machine.

mod demo;
mod guide;
mod password;
mod secret;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::net::TcpListener;
use unspool_engine::lock::DataFolder;
use unspool_server::{App, Door, News};
use unspool_store::sqlite::Sqlite;

use crate::archive::Archive;
use crate::config;
use crate::keeper::{Heard, Keeper};

/// Where it listens unless told otherwise.
const PORT: u16 = 7787;

/// Open the web application: every session, live, searchable, linkable
///
/// Reads every source found on this machine and goes on reading while it serves. Prints one line
/// with the address to open; its token lets your browser in and nobody else. Listens on 127.0.0.1
/// unless told otherwise, which needs a password. Ctrl-C ends it.
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
    /// Listen on this address instead of 127.0.0.1, for others to reach: 192.168.1.5, or 0.0.0.0
    /// for all of this machine's. Needs a password (--set-password); what is sent is not encrypted
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<IpAddr>,
    /// Also answer under this name: what others call this machine, or the proxy in front of it.
    /// Needs a password. May be given several times
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    /// Ask for a new password (or read a line from standard input), keep its hash in the data
    /// folder, and end
    #[arg(long, conflicts_with_all = ["port", "demo", "open", "listen", "name"])]
    set_password: bool,
}

impl Serve {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let folder = archive.folder()?;
        if self.set_password {
            return password::set(&folder);
        }
        let password = self.password(&folder)?;
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
        runtime.block_on(self.serve(keeper, password))
    }

    /// Whether others than this machine's users can come.
    fn is_elsewhere(&self) -> bool {
        self.listen.is_some_and(|address| !address.is_loopback()) || !self.name.is_empty()
    }

    /// The hash of the password, where one is needed.
    fn password(&self, folder: &DataFolder) -> Result<Option<String>> {
        if !self.is_elsewhere() {
            return Ok(None);
        }
        match password::kept(folder)? {
            Some(password) => Ok(Some(password)),
            None => bail!(
                "others could read everything that agents did here: set a password first with \
                 `unspool serve --set-password`, or leave out --listen and --name"
            ),
        }
    }

    async fn serve(self, keeper: Keeper, password: Option<String>) -> Result<()> {
        let listener = listen(self.listen, self.port).await?;
        let at = listener.local_addr()?;
        let token = secret::token(&keeper.folder()?)?;
        let here = password.is_none();
        let door = match password {
            None => Door::new(token, at.port()),
            Some(password) => {
                warn(at);
                Door::elsewhere(token, at, self.name, password)
            }
        };
        let address = door.address();
        let app = App::new(keeper.read()?, config::prices()?, config::redaction()?, door);
        if !self.demo {
            let folder = keeper.folder()?;
            app.guide(guide::guide(folder.path(), keeper.environment(), here));
        }
        let drawings = keeper.folder()?.path().join("thoughtflow");
        tokio::spawn(unspool_server::artifacts::keep(app.clone(), drawings));
        keep(keeper, &app);
        writeln!(io::stdout(), "{address}")?;
        io::stdout().flush()?;
        if self.open {
            open(&address);
        }
        Ok(unspool_server::serve(app, listener, ended()).await?)
    }
}

/// Keeps the archive up to date, and tells everybody what is written.
fn keep(keeper: Keeper, app: &Arc<App<Sqlite>>) {
    let app = Arc::clone(app);
    keeper.keep(move |heard| match heard {
        Heard::Written(published) => app.tell(News::written(published)),
        Heard::Missed => app.tell(News::Missed),
        Heard::Failed(error) => eprintln!("unspool: {error:#}"),
    });
}

/// Says in plain words what it means to be reached from elsewhere.
fn warn(at: SocketAddr) {
    let (address, port) = (at.ip(), at.port());
    let who = match (address.is_loopback(), address.is_unspecified()) {
        (true, _) => "whoever the proxy in front of it lets through".to_owned(),
        (false, true) => "whoever can reach this machine, at any of its addresses,".to_owned(),
        (false, false) => format!("whoever can reach {address}"),
    };
    eprintln!(
        "unspool: {who} can open this page and try passwords. Nothing is encrypted on the way: \
         who can watch the network can read what you read, and take the password. Where you do not \
         trust the network, leave --listen out and come through an SSH tunnel (ssh -L \
         {port}:127.0.0.1:{port} THIS-MACHINE), or put a proxy with TLS in front and say its name \
         with --name."
    );
}

async fn listen(address: Option<IpAddr>, port: Option<u16>) -> Result<TcpListener> {
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let at = |port: u16| SocketAddr::new(address, port);
    match port {
        Some(port) => TcpListener::bind(at(port)).await.with_context(|| {
            format!(
                "cannot listen on {}; choose another port with --port, or leave it out",
                at(port)
            )
        }),
        None => match TcpListener::bind(at(PORT)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(at(0)).await.with_context(|| {
                format!("cannot listen on {address}; is it an address of this machine?")
            }),
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
