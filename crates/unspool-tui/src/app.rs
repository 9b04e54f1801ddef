//! The main loop: receives events from the backend, the terminal and signals, passes them to
//! `State`, runs the effects it returns, and draws. Events are taken in batches of limited
//! duration, so that keys are handled between two frames however many events arrive.

use std::io;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::colours::Painter;
use crate::event::Event;
use crate::keys::Keys;
use crate::link::{Ear, Link};
use crate::screen::Screen;
use crate::state::{Deed, State};
use crate::theme::Theme;

/// The minimum time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// How long events are taken before the next frame is drawn.
const BATCH: Duration = Duration::from_millis(6);
/// The smallest window: fewer entries would leave no room to scroll.
const LEAST: usize = 100;
/// The longest wait for an event.
const IDLE: Duration = Duration::from_secs(1);

/// Options from the configuration and the command line.
pub struct Options {
    pub theme: Theme,
    pub keys: Keys,
    pub motion: bool,
    pub mouse: bool,
    /// The most entries of a session held in memory.
    pub window: usize,
    /// The session to begin with, and whether to replay it.
    pub session: Option<(String, bool)>,
}

/// The channel on which all events arrive.
pub fn events() -> (Ear, Receiver<Event>) {
    mpsc::channel()
}

/// Runs until the user quits. Calls `on_first_frame` once the first frame is drawn.
pub fn run(
    link: &dyn Link,
    ear: &Ear,
    events: &Receiver<Event>,
    options: Options,
    begun: impl FnOnce(),
) -> io::Result<()> {
    let Options { theme, keys, motion, mouse, window, session } = options;
    let mut screen = Screen::take(mouse)?;
    let (mut state, deeds) = State::new(keys, crossterm::terminal::size()?, Instant::now());
    (state.motion, state.mouse) = (motion, mouse);
    state.name = link.name().map(str::to_owned);
    let painter = Painter::start(ear.clone());
    state.manner.colours = Some(Rc::new(painter.colours().clone()));
    state.manner.window = window.max(LEAST);
    perform(deeds, &mut state, &mut screen, link)?;
    if let Some((id, replay)) = session {
        let deed = state.open_named(&id, replay);
        perform(vec![deed], &mut state, &mut screen, link)?;
    }
    // Wait briefly for the first response, so that the first frame is not empty.
    if let Ok(event) = events.recv_timeout(Duration::from_millis(40)) {
        let deeds = state.take(event, Instant::now());
        perform(deeds, &mut state, &mut screen, link)?;
    }
    state.tick(Instant::now());
    screen.draw(&state, &theme)?;
    listen(ear.clone());
    begun();
    let mut drawn = Instant::now();
    let mut dirty = true;
    loop {
        let now = Instant::now();
        if dirty && now >= drawn + FRAME {
            screen.draw(&state, &theme)?;
            (drawn, dirty) = (Instant::now(), false);
        }
        let due = if dirty { Some(drawn + FRAME) } else { state.wake() };
        let wait = due.map_or(IDLE, |due| due.saturating_duration_since(Instant::now())).min(IDLE);
        let mut next = match events.recv_timeout(wait) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let until = Instant::now() + BATCH;
        if next.is_none() {
            let deeds = state.tick(Instant::now());
            dirty = true;
            if perform(deeds, &mut state, &mut screen, link)? == Flow::Over {
                return Ok(());
            }
        }
        while let Some(event) = next {
            let deeds = state.take(event, Instant::now());
            dirty = true;
            if perform(deeds, &mut state, &mut screen, link)? == Flow::Over {
                return Ok(());
            }
            next = if Instant::now() < until { events.try_recv().ok() } else { None };
        }
    }
}

#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Over,
}

fn perform(
    deeds: Vec<Deed>,
    state: &mut State,
    screen: &mut Screen,
    link: &dyn Link,
) -> io::Result<Flow> {
    for deed in deeds {
        match deed {
            Deed::Ask(number, wish) => link.ask(number, wish),
            Deed::Change(request) => link.change(request),
            Deed::Copy(text) => screen.copy(&text)?,
            Deed::Save { name, text } => match std::fs::write(&name, text) {
                Ok(()) => state.say(format!("written to {name}")),
                Err(error) => state.say(format!("✕ cannot write {name}: {error}")),
            },
            Deed::Mouse(mouse) => screen.set_mouse(mouse)?,
            Deed::Redraw => screen.redraw()?,
            Deed::Suspend => screen.suspend()?,
            Deed::Quit => return Ok(Flow::Over),
        }
    }
    Ok(Flow::On)
}

/// Starts the thread that reads keys and the mouse, and the one that waits for signals.
fn listen(ear: Ear) {
    signals(ear.clone());
    thread::spawn(move || {
        loop {
            let event = match crossterm::event::read() {
                Ok(crossterm::event::Event::Key(key)) => Event::Key(key),
                Ok(crossterm::event::Event::Mouse(mouse)) => Event::Mouse(mouse),
                Ok(crossterm::event::Event::Paste(text)) => Event::Paste(text),
                Ok(crossterm::event::Event::Resize(width, height)) => Event::Resize(width, height),
                Ok(crossterm::event::Event::FocusGained | crossterm::event::Event::FocusLost) => {
                    continue;
                }
                // The terminal is gone.
                Err(_) => Event::End,
            };
            let over = matches!(event, Event::End);
            if ear.send(event).is_err() || over {
                return;
            }
        }
    });
}

/// SIGTERM, SIGHUP and SIGINT end the application like `q`.
#[cfg(unix)]
fn signals(ear: Ear) {
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
            let _ = ear.send(Event::End);
        });
    });
}

#[cfg(not(unix))]
fn signals(_: Ear) {}
