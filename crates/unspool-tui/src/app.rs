//! The main loop: receives events from the backend, the terminal and signals, passes them to
//! `State`, runs the effects it returns, and draws. Events are taken in batches of limited
//! duration, so that keys are handled between two frames however many events arrive.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use unspool_model::id::SessionId;
use unspool_store::replace_file::replace_file;

use crate::backend::{Backend, EventSender};
use crate::chat::ChatRequest;
#[cfg(unix)]
use crate::chat::link::{ChatOpener, Links};
use crate::editor;
use crate::event::AppEvent;
use crate::highlight_cache::HighlightThread;
use crate::keys::Keys;
pub use crate::replay::ReplayRange;
use crate::screen::TerminalScreen;
use crate::state::{Effect, State};
use crate::theme::Theme;

/// The minimum time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);
/// How long events are taken before the next frame is drawn.
const BATCH_DURATION: Duration = Duration::from_millis(6);
/// The smallest window: fewer entries would leave no room to scroll.
const MIN_WINDOW_ENTRIES: usize = 100;
/// The longest wait for an event.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Options from the configuration and the command line.
pub struct AppOptions {
    pub theme: Theme,
    pub keys: Keys,
    pub motion: bool,
    pub mouse: bool,
    /// The most entries of a session held in memory.
    pub window: usize,
    pub session: Option<FirstSession>,
    /// What the status line calls the archive, if it is not that of this machine.
    pub name: Option<String>,
    /// An empty list offers the demo.
    pub can_open_demo: bool,
    /// What is on this machine is read after the first frame; the backend says when that is done.
    pub reading: bool,
    /// The chat to begin with, and the archive's id of its session, if it has one.
    pub chat: Option<(String, Option<SessionId>)>,
    /// Finds and starts the hosts of chats. None if agents cannot be driven from here.
    #[cfg(unix)]
    pub chat_opener: Option<ChatOpener>,
}

/// Why the application ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppEnd {
    Quit,
    /// The user chose the demo: the caller opens it.
    Demo,
}

/// The session to begin with, and what to replay of it.
pub struct FirstSession {
    /// Its id, a unique prefix of it, or the agent's own id.
    pub id: String,
    pub replay: Option<ReplayRange>,
}

/// The channel on which all events arrive.
pub fn events() -> (EventSender, Receiver<AppEvent>) {
    mpsc::channel()
}

/// Runs until the user quits or chooses the demo. Calls `on_first_frame` once the first frame is drawn.
pub fn run(
    backend: &dyn Backend,
    sender: &EventSender,
    events: &Receiver<AppEvent>,
    options: AppOptions,
    on_first_frame: impl FnOnce(),
) -> io::Result<AppEnd> {
    let AppOptions { theme, keys, motion, mouse, window, session, chat, .. } = options;
    #[cfg(unix)]
    let can_chat = options.chat_opener.is_some();
    #[cfg(unix)]
    let mut links = Links::new(options.chat_opener, sender.clone());
    #[cfg(not(unix))]
    let (can_chat, mut links) = (false, Links);
    let mut screen = TerminalScreen::take(mouse)?;
    let (mut state, effects) = State::new(keys, crossterm::terminal::size()?, Instant::now());
    (state.motion, state.mouse, state.can_chat) = (motion, mouse, can_chat);
    (state.can_open_demo, state.reading) = (options.can_open_demo, options.reading);
    state.name = options.name.or_else(|| backend.name().map(str::to_owned));
    let highlight_thread = HighlightThread::start(sender.clone());
    state.view_options.colours = Some(Rc::new(highlight_thread.colours().clone()));
    state.view_options.window = window.max(MIN_WINDOW_ENTRIES);
    run_effects(effects, &mut state, &mut screen, backend, &mut links)?;
    let effects = open_first(&mut state, session, chat);
    run_effects(effects, &mut state, &mut screen, backend, &mut links)?;
    // Wait briefly for the first response, so that the first frame is not empty.
    if let Ok(event) = events.recv_timeout(Duration::from_millis(40)) {
        let effects = state.take(event, Instant::now());
        run_effects(effects, &mut state, &mut screen, backend, &mut links)?;
    }
    state.tick(Instant::now());
    screen.draw(&state, &theme)?;
    state.note_drawn(Instant::now());
    spawn_input_thread(sender.clone());
    on_first_frame();
    let mut drawn = Instant::now();
    let mut dirty = true;
    loop {
        let now = Instant::now();
        if dirty && now >= drawn + FRAME_INTERVAL {
            screen.draw(&state, &theme)?;
            (drawn, dirty) = (Instant::now(), false);
            state.note_drawn(drawn);
        }
        let due = if dirty { Some(drawn + FRAME_INTERVAL) } else { state.wake() };
        let wait = due
            .map_or(IDLE_TIMEOUT, |due| due.saturating_duration_since(Instant::now()))
            .min(IDLE_TIMEOUT);
        let mut next = match events.recv_timeout(wait) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(AppEnd::Quit),
        };
        let until = Instant::now() + BATCH_DURATION;
        if next.is_none() {
            let effects = state.tick(Instant::now());
            dirty = true;
            let step = run_effects(effects, &mut state, &mut screen, backend, &mut links)?;
            if let NextStep::End(end) = step {
                links.close();
                return Ok(end);
            }
        }
        while let Some(event) = next {
            let effects = state.take(event, Instant::now());
            dirty = true;
            let step = run_effects(effects, &mut state, &mut screen, backend, &mut links)?;
            if let NextStep::End(end) = step {
                links.close();
                return Ok(end);
            }
            next = if Instant::now() < until { events.try_recv().ok() } else { None };
        }
    }
}

/// Opens the session or the chat that the command line names.
fn open_first(
    state: &mut State,
    session: Option<FirstSession>,
    chat: Option<(String, Option<SessionId>)>,
) -> Vec<Effect> {
    let mut effects = Vec::new();
    effects.extend(session.map(|FirstSession { id, replay }| state.open_named(&id, replay)));
    if let Some((chat, session)) = chat {
        effects.extend(session.map(|id| state.open_named(&id.to_string(), None)));
        effects.extend(state.open_chat(ChatRequest::Attach(chat), session));
    }
    effects
}

/// Held while keys are read. An editor that the application starts must get its keys.
static KEYBOARD: Mutex<()> = Mutex::new(());
/// True while an editor runs or waits for the keyboard.
static EDITING: AtomicBool = AtomicBool::new(false);
/// How long an editor waits for the keyboard at most.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

#[derive(PartialEq, Eq)]
enum NextStep {
    Continue,
    End(AppEnd),
}

fn run_effects(
    effects: Vec<Effect>,
    state: &mut State,
    screen: &mut TerminalScreen,
    backend: &dyn Backend,
    links: &mut Links,
) -> io::Result<NextStep> {
    for effect in effects {
        match effect {
            Effect::Query(number, query) => backend.send_query(number, query),
            Effect::Change(request) => backend.change(request),
            Effect::Copy(text) => screen.copy(&text)?,
            Effect::Save { name, text } => match replace_file(Path::new(&name), text.as_bytes()) {
                Ok(()) => state.set_status(format!("exported to {name}")),
                Err(error) => state.set_status(format!("✕ cannot write {name}: {error}")),
            },
            Effect::Edit { path, line } => edit(&path, line, state, screen)?,
            Effect::Alert(alert) => screen.alert(&alert)?,
            Effect::Mouse(mouse) => screen.set_mouse(mouse)?,
            Effect::Chat(link, effect) => links.run(link, effect),
            Effect::Redraw => screen.redraw()?,
            Effect::Suspend => screen.suspend()?,
            Effect::Demo => return Ok(NextStep::End(AppEnd::Demo)),
            Effect::Quit => return Ok(NextStep::End(AppEnd::Quit)),
        }
    }
    Ok(NextStep::Continue)
}

/// Runs the user's editor in place of the application.
fn edit(path: &str, line: u64, state: &mut State, screen: &mut TerminalScreen) -> io::Result<()> {
    let path = Path::new(path);
    if !path.is_absolute() || !path.is_file() {
        state.set_status(format!("✕ {} no longer exists on this machine", path.display()));
        return Ok(());
    }
    EDITING.store(true, Ordering::SeqCst);
    let keyboard = KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = screen.run(&mut editor::command(path, line));
    EDITING.store(false, Ordering::SeqCst);
    drop(keyboard);
    if let Err(error) = ran? {
        state.set_status(format!("✕ cannot start the editor: {error}; set EDITOR"));
    }
    Ok(())
}

/// Starts the thread that reads keys and the mouse, and the one that waits for signals.
fn spawn_input_thread(sender: EventSender) {
    spawn_signal_thread(sender.clone());
    thread::spawn(move || {
        loop {
            let read = {
                let _reading = KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner);
                match crossterm::event::poll(POLL_INTERVAL) {
                    Ok(false) => None,
                    Ok(true) => Some(crossterm::event::read()),
                    Err(error) => Some(Err(error)),
                }
            };
            while EDITING.load(Ordering::SeqCst) {
                thread::sleep(POLL_INTERVAL / 4);
            }
            let Some(read) = read else { continue };
            let event = match read {
                Ok(crossterm::event::Event::Key(key)) => AppEvent::Key(key, Instant::now()),
                Ok(crossterm::event::Event::Mouse(mouse)) => AppEvent::Mouse(mouse),
                Ok(crossterm::event::Event::Paste(text)) => AppEvent::Paste(text),
                Ok(crossterm::event::Event::Resize(width, height)) => {
                    AppEvent::Resize(width, height)
                }
                Ok(crossterm::event::Event::FocusGained) => AppEvent::Focus(true),
                Ok(crossterm::event::Event::FocusLost) => AppEvent::Focus(false),
                // The terminal is gone.
                Err(_) => AppEvent::End,
            };
            let ended = matches!(event, AppEvent::End);
            if sender.send(event).is_err() || ended {
                return;
            }
        }
    });
}

/// SIGTERM, SIGHUP and SIGINT end the application like `q`.
#[cfg(unix)]
fn spawn_signal_thread(sender: EventSender) {
    use tokio::signal::unix::{SignalKind, signal};
    thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
            return;
        };
        runtime.block_on(async {
            let (Ok(mut terminated), Ok(mut hung_up), Ok(mut interrupted)) = (
                signal(SignalKind::terminate()),
                signal(SignalKind::hangup()),
                signal(SignalKind::interrupt()),
            ) else {
                return;
            };
            tokio::select! {
                _ = terminated.recv() => {}
                _ = hung_up.recv() => {}
                _ = interrupted.recv() => {}
            }
            let _ = sender.send(AppEvent::End);
        });
    });
}

#[cfg(not(unix))]
fn spawn_signal_thread(_: EventSender) {}

/// Agents are not driven on this system.
#[cfg(not(unix))]
struct Links;

#[cfg(not(unix))]
impl Links {
    fn run(&mut self, _: crate::chat::LinkId, _: crate::chat::ChatEffect) {}

    fn close(self) {}
}
