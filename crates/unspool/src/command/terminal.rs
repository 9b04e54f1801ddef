//! `unspool` by itself, and `unspool replay`: the terminal application over all sessions.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use unspool_ingest::service::archive::ArchiveError;
use unspool_ingest::service::{Service, ServiceEvent};
#[cfg(unix)]
use unspool_model::id::SessionId;
use unspool_sources::discover::Environment;
use unspool_store::blocking::block_on;
use unspool_store::store::View;
use unspool_tui::app::{self, AppEnd, AppOptions, FirstSession, ReplayRange};
use unspool_tui::backend::{BackendEvent, Credentials, EventSender, LocalBackend, RemoteBackend};
use unspool_tui::event::AppEvent;
use unspool_tui::keys::Keys;
use unspool_tui::theme::Theme;

use crate::archive::{Archive, change_handler, find, no_turn};
use crate::artifacts;
use crate::config::{self, Config};
use crate::demo::write_demo;

/// True if stdin and stdout are a terminal.
pub fn is_there() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Replay a session or one of its turns with its original timing
///
/// Keys: space pauses, comma and period step by one part, + and - change the speed (1 to 64 times),
/// 0 to 9 jump to that tenth of the session.
#[derive(Args)]
pub struct Replay {
    /// A session of the archive: its id, a unique prefix of it, or the agent's own id
    session: String,
    /// Replay only the turn with this number
    #[arg(long, value_name = "N")]
    turn: Option<u32>,
}

impl Replay {
    pub fn run(self, archive: &Archive, address: Option<&str>) -> Result<()> {
        let replay = Some(self.turn.map_or(ReplayRange::Session, ReplayRange::Turn));
        if let Some(address) = address {
            return connect(address, Some(FirstSession { id: self.session, replay }));
        }
        if !is_there() {
            bail!("replay needs a terminal; `unspool show` prints a session");
        }
        // Report an unknown session or turn before taking over the terminal.
        let view = archive.view()?;
        let stored = find(&view, &self.session)?;
        let sizes = block_on(view.sizes(stored.row))?;
        let mut numbers = sizes.iter().map(|size| size.number);
        if let Some(turn) = self.turn.filter(|turn| !numbers.clone().any(|number| number == *turn))
        {
            bail!(no_turn(turn, &mut numbers));
        }
        let id = stored.summary.session.id.to_string();
        open(archive, Some(FirstSession { id, replay }))
    }
}

/// Opens the application over a running server, on this machine or another.
pub fn connect(address: &str, session: Option<FirstSession>) -> Result<()> {
    if !is_there() {
        bail!("--connect needs a terminal; open {address} in a browser instead");
    }
    let options = options(session)?;
    let (sender, events) = app::events();
    let backend = RemoteBackend::connect(address, Credentials::from_env(), sender.clone())?;
    app::run(&backend, &sender, &events, options, || {})?;
    Ok(())
}

/// Opens the application over this machine's archive.
pub fn open(archive: &Archive, session: Option<FirstSession>) -> Result<()> {
    let can_open_demo = cfg!(unix) && session.is_none();
    let options = AppOptions { can_open_demo, ..options(session)? };
    let environment = config::environment(&archive.folder()?)?;
    match open_with(archive, environment, options)? {
        AppEnd::Quit => Ok(()),
        AppEnd::Demo => begin_again_with_demo(),
    }
}

/// Opens the application over recorded sessions, which have an archive of their own.
pub fn open_demo(archive: &Archive) -> Result<()> {
    if !is_there() {
        bail!("--demo needs a terminal; `unspool serve --demo` shows it in the browser");
    }
    let folder = archive.folder()?.path().join("demo");
    let environment = write_demo(&folder)?;
    let options = AppOptions { name: Some("demo".to_owned()), ..options(None)? };
    open_with(&Archive::new(Some(folder)), environment, options)?;
    Ok(())
}

/// Replaces this process by one with the demo: the threads of this one watch the user's folders.
fn begin_again_with_demo() -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let program = std::env::current_exe().context("cannot find the program")?;
        let mut command = std::process::Command::new(program);
        let error = command.args(std::env::args_os().skip(1)).arg("--demo").exec();
        Err(error).context("cannot open the demo; run `unspool --demo`")
    }
    #[cfg(not(unix))]
    Ok(())
}

/// Opens the application with a chat. `session` is that of a chat which goes on with one.
#[cfg(unix)]
pub fn open_chat(archive: &Archive, chat: String, session: Option<SessionId>) -> Result<()> {
    let options = AppOptions { chat: Some((chat, session)), ..options(None)? };
    open_with(archive, config::environment(&archive.folder()?)?, options)?;
    Ok(())
}

/// Runs the application, and keeps the archive up to date meanwhile.
fn open_with(archive: &Archive, environment: Environment, options: AppOptions) -> Result<AppEnd> {
    let folder = archive.folder()?;
    // Without a notice on waiting: the terminal belongs to the application.
    let archive = Archive::new(Some(folder.path().to_owned()));
    let sources = config::sources(&folder, environment)?;
    super::recover_chats(&archive)?;
    #[cfg(unix)]
    let options = AppOptions { chat_opener: Some(super::chat::opener(&archive)), ..options };
    let service = Service::begin(archive.clone(), sources)?;
    let options = AppOptions { reading: service.is_recording(), ..options };
    let (sender, events) = app::events();
    let (view, updates) = (service.view()?, service.updates().subscribe());
    artifacts::spawn(service.view()?, &folder, service.updates().subscribe())?;
    let settings = config::reader_settings()?;
    let change_handler = change_handler(archive);
    let backend = LocalBackend::new(view, settings, change_handler, updates, sender.clone())
        .context("cannot start")?;
    let (forward, gone) = (sender.clone(), Arc::<OnceLock<ArchiveError>>::default());
    let lost = gone.clone();
    let begin = move || service.spawn(move |event| report(&forward, &lost, event));
    let end = app::run(&backend, &sender, &events, options, begin)?;
    // Said on the terminal that the application has left.
    gone.get().map_or(Ok(end), |error| Err(anyhow!("{error}")))
}

/// Shows in the status line what the background service could not do. Ends the application if the
/// archive is gone, and keeps the reason.
fn report(sender: &EventSender, gone: &OnceLock<ArchiveError>, event: ServiceEvent) {
    match event {
        // The status line has no room for warnings; `unspool sync` prints them.
        // Sending fails only while the application is ending.
        ServiceEvent::Synced(_) => {
            let _ = sender.send(AppEvent::Backend(BackendEvent::Synced));
        }
        ServiceEvent::Failed(error) => {
            let _ = sender.send(AppEvent::Backend(BackendEvent::Synced));
            let reason = format!("{:#}", anyhow::Error::from(error));
            let _ = sender.send(AppEvent::Backend(BackendEvent::ChangeDone(Err(reason))));
        }
        ServiceEvent::Gone(error) => {
            let _ = gone.set(error);
            let _ = sender.send(AppEvent::End);
        }
    }
}

/// Terminal options from the config file and the environment.
fn options(session: Option<FirstSession>) -> Result<AppOptions> {
    let chosen = Config::load()?.terminal;
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let theme = match chosen.theme.as_deref() {
        None | Some("auto") => Theme::detect(variable),
        Some(_) if variable("NO_COLOR").is_some() => Theme::detect(variable),
        Some(name) => Theme::named(name).with_context(|| {
            format!("unknown theme {name}; use auto, mocha, latte, 16 or mono in the config file")
        })?,
    };
    let keys = Keys::new(chosen.keys).context("invalid [terminal.keys] in the config file")?;
    let config::Terminal { motion, mouse, window, .. } = chosen;
    Ok(AppOptions {
        theme,
        keys,
        motion,
        mouse,
        window,
        session,
        name: None,
        can_open_demo: false,
        reading: false,
        chat: None,
        #[cfg(unix)]
        chat_opener: None,
    })
}
