//! `unspool serve`: the web application over this machine's archive.

pub mod address;
mod chat;
mod onboarding;
mod password;
mod secret;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use unspool_ingest::lock::DataFolder;
use unspool_ingest::service::archive::ArchiveError;
use unspool_ingest::service::{Service, ServiceEvent};
use unspool_query::request::ChangeHandler;
use unspool_server::{
    Adaptations, App, Auth, LoginStore, RemoteAccess, ShareStore, ShipTokens, Shipping,
};
use unspool_store::database::Database;

use self::address::AddressFile;
use crate::archive::{Archive, change_handler};
use crate::artifacts::ARTIFACT_FOLDER;
use crate::demo::write_demo;
use crate::{config, notifier};

/// Where requests of collectors wait, in the data folder.
const UNITS_FOLDER: &str = "units";

/// The port without --port.
const DEFAULT_PORT: u16 = 7787;

/// Serve the web application: all sessions, live, with search and links
///
/// Reads every source found on this machine and keeps reading while it serves. Prints one line with
/// the address to open; the token in it gives access. A browser that opens it stays logged in for 30
/// days. Listens on 127.0.0.1; any other address needs a password. Ctrl-C stops it.
#[derive(Args)]
pub struct Serve {
    /// The port to listen on; by default 7787, or any free port if that is taken
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Show recorded demo sessions from a separate archive instead of this machine's
    #[arg(long)]
    demo: bool,
    /// Let the browser drive agents: start them, send messages, answer their questions. The printed
    /// address lets one browser do so, once and within a minute; Enter prints another
    #[arg(long, conflicts_with = "demo")]
    chat: bool,
    /// Open the browser with a login link that works once, within a minute
    #[arg(long)]
    open: bool,
    /// Listen on this address instead of 127.0.0.1, for other machines to connect: 192.168.1.5, or
    /// 0.0.0.0 for all addresses. Needs a password (--set-password); traffic is not encrypted
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<IpAddr>,
    /// Also accept requests for this host name, of this machine or of a proxy in front of it. Needs
    /// a password. May be given several times
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    /// The IP address of a proxy in front of the server: its X-Forwarded-For header then names the
    /// client whose wrong passwords are counted. May be given several times
    #[arg(long, value_name = "ADDRESS", requires = "name")]
    trusted_proxy: Vec<IpAddr>,
    /// Run this shell command when an agent waits for you or is done; it gets the alert as JSON on
    /// standard input
    #[arg(long, value_name = "COMMAND")]
    notify: Option<String>,
    /// Ask for a new password (or read a line from standard input), store its hash in the data
    /// folder, and exit
    #[arg(long, conflicts_with_all = ["port", "demo", "open", "listen", "name", "notify"])]
    set_password: bool,
    /// Log out every browser, also from running servers, and exit. The token stays valid
    #[arg(long, conflicts_with_all = ["port", "demo", "open", "listen", "name", "set_password"])]
    revoke_logins: bool,
}

impl Serve {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let folder = archive.folder()?;
        if self.set_password {
            return password::set(&folder);
        }
        if self.revoke_logins {
            return revoke_logins(&folder);
        }
        let password = self.password(&folder)?;
        let (archive, environment) = if self.demo {
            let folder = folder.path().join("demo");
            let environment = write_demo(&folder)?;
            (Archive::new(Some(folder)), environment)
        } else {
            (archive.clone(), config::environment(&folder)?)
        };
        // Creates the archive if needed, so that it can be opened for reading.
        let sources = config::sources(&archive.folder()?, environment)?;
        let change_handler = change_handler(archive.clone());
        super::recover_chats(&archive)?;
        let service = Service::begin(archive.clone(), sources)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("cannot start")?;
        runtime.block_on(self.serve(service, &archive, change_handler, password))
    }

    /// True if other machines can connect.
    fn is_remote(&self) -> bool {
        self.listen.is_some_and(|address| !address.is_loopback()) || !self.name.is_empty()
    }

    /// The password hash, if a password is needed.
    fn password(&self, folder: &DataFolder) -> Result<Option<String>> {
        if !self.is_remote() {
            return Ok(None);
        }
        match password::load_hash(folder)? {
            Some(password) => Ok(Some(password)),
            None => bail!(
                "other machines could read every session: set a password first with \
                 `unspool serve --set-password`, or omit --listen and --name"
            ),
        }
    }

    async fn serve(
        self,
        service: Service,
        archive: &Archive,
        change_handler: ChangeHandler,
        password: Option<String>,
    ) -> Result<()> {
        let listener = listen(self.listen, self.port).await?;
        let at = listener.local_addr()?;
        // Links are right without it while the port is the usual one.
        let _address = AddressFile::write(service.folder()?.path(), at).ok();
        let token = secret::token(&service.folder()?)?;
        let logins = LoginStore::in_data_folder(service.folder()?.path());
        let here = password.is_none();
        let auth = match password {
            None => Auth::new(token, at.port(), logins),
            Some(password_hash) => {
                warn(at);
                let (names, trusted_proxies) = (self.name, self.trusted_proxy);
                let access = RemoteAccess { names, trusted_proxies, password_hash };
                Auth::remote(token, at, logins, access)
            }
        };
        let auth = auth.with_shares(ShareStore::in_data_folder(service.folder()?.path()));
        let auth = if self.chat { auth.with_drive() } else { auth };
        let address = auth.address();
        let app = app(&service, auth)?;
        app.change_handler(change_handler);
        if self.chat {
            chat::allow(&app, archive)?;
        }
        app.adaptations(Adaptations {
            store: super::adapt::store(archive)?,
            data: service.folder()?.path().to_owned(),
            // What they say is what agents are told to do: only this machine changes them.
            is_editable: here,
        });
        if !self.demo {
            let folder = service.folder()?;
            app.shipping(shipping(&folder));
            app.onboarding(onboarding::onboarding(folder.path(), service.environment(), here));
        }
        let artifacts = service.folder()?.path().join(ARTIFACT_FOLDER);
        unspool_server::artifacts::spawn(&app, artifacts);
        if let Some(command) = self.notify {
            notifier::spawn(service.view()?, command);
        }
        let gone = ArchiveGone::default();
        let lost = gone.clone();
        service.spawn(move |event| match event {
            ServiceEvent::Gone(error) => lost.set(&error),
            other @ (ServiceEvent::Synced(_) | ServiceEvent::Failed(_)) => report(other),
        });
        writeln!(io::stdout(), "{address}")?;
        io::stdout().flush()?;
        if self.chat {
            chat::print_addresses(&app);
        }
        if self.open {
            open(app.auth.one_time_address());
        }
        let noticed = gone.clone();
        let shutdown = async move {
            tokio::select! {
                () = ended() => {}
                () = noticed.noticed.notified() => {}
            }
        };
        unspool_server::serve(app, listener, shutdown).await?;
        gone.reason.get().map_or(Ok(()), |reason| Err(anyhow!("{reason}; the server has stopped")))
    }
}

/// What collectors of other machines need.
fn shipping(folder: &DataFolder) -> Shipping {
    let units = folder.path().join(UNITS_FOLDER);
    // Of requests that a crash cut off. Their senders send them again.
    let _ = std::fs::remove_dir_all(&units);
    Shipping::new(ShipTokens::in_data_folder(folder.path()), units)
}

/// That the archive is gone, noticed by the recording thread.
#[derive(Clone, Default)]
struct ArchiveGone {
    reason: Arc<OnceLock<String>>,
    noticed: Arc<Notify>,
}

impl ArchiveGone {
    fn set(&self, error: &ArchiveError) {
        let _ = self.reason.set(error.to_string());
        self.noticed.notify_one();
    }
}

/// Ends the logins of all browsers, in the demo too.
fn revoke_logins(folder: &DataFolder) -> Result<()> {
    let mut count = 0;
    for data in [folder.path().to_owned(), folder.path().join("demo")] {
        let ended = LoginStore::in_data_folder(&data).remove_all();
        count += ended.with_context(|| format!("cannot end the logins in {}", data.display()))?;
    }
    stderr_line!(
        "unspool: {count} logins were ended; programs that send the token are not affected"
    );
    Ok(())
}

/// The web application over the archive that the service keeps up to date.
fn app(service: &Service, auth: Auth) -> Result<Arc<App<Database>>> {
    let updates = service.updates().clone();
    Ok(App::new(service.read()?, config::reader_settings()?, auth, updates))
}

/// Reports on stderr what the background service could not read or do.
fn report(event: ServiceEvent) {
    match event {
        ServiceEvent::Synced(report) => super::warn(&report.warnings),
        ServiceEvent::Failed(error) | ServiceEvent::Gone(error) => {
            stderr_line!("unspool: {:#}", anyhow::Error::from(error));
        }
    }
}

/// Warns about the risks of serving other machines.
fn warn(at: SocketAddr) {
    let (address, port) = (at.ip(), at.port());
    let who = match (address.is_loopback(), address.is_unspecified()) {
        (true, _) => "anyone the proxy lets through".to_owned(),
        (false, true) => "anyone who can reach any address of this machine".to_owned(),
        (false, false) => format!("anyone who can reach {address}"),
    };
    stderr_line!(
        "unspool: {who} can open this page and try passwords. Traffic is not encrypted: anyone who \
         can watch the network can read your sessions and the password. On an untrusted network, \
         omit --listen and use an SSH tunnel (ssh -L {port}:127.0.0.1:{port} THIS-MACHINE), or put a \
         TLS proxy in front and give its name with --name."
    );
}

async fn listen(address: Option<IpAddr>, port: Option<u16>) -> Result<TcpListener> {
    let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let at = |port: u16| SocketAddr::new(address, port);
    match port {
        Some(port) => TcpListener::bind(at(port)).await.with_context(|| {
            format!("cannot listen on {}; choose another port with --port, or omit it", at(port))
        }),
        None => match TcpListener::bind(at(DEFAULT_PORT)).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(at(0)).await.with_context(|| {
                format!("cannot listen on {address}; is it an address of this machine?")
            }),
        },
    }
}

/// Completes on Ctrl-C or SIGTERM.
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

/// Opens a browser. Other users see its arguments, so the address must not contain the token.
fn open(one_time_address: Option<String>) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = one_time_address.map(|address| {
        let mut command = Command::new(program);
        command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    });
    if !matches!(started, Some(Ok(_))) {
        stderr_line!("unspool: cannot start a browser; open the address yourself");
    }
}
