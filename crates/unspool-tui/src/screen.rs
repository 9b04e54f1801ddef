//! The terminal: taken, and given back as it was, whatever happens.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::paint::Links;
use crate::state::State;
use crate::theme::Theme;
use crate::view;

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

type Out = BufWriter<Taken>;

/// The terminal as long as it is ours: what still waits to be drawn when it is given back, by a
/// panic in the middle of a frame, would wipe away what is said of the panic.
struct Taken(Stdout);

impl Write for Taken {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if TAKEN.load(Ordering::SeqCst) { self.0.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The terminal while it is ours. It is given back when this goes.
///
/// Not ratatui's `Terminal`: that one asks the terminal where its cursor is whenever the screen is
/// cleared, and waits two seconds for one that does not answer.
pub struct Screen {
    backend: CrosstermBackend<Out>,
    /// What is on the terminal, and what will be.
    shown: Buffer,
    next: Buffer,
    links: Links,
    mouse: bool,
}

impl Screen {
    pub fn take(mouse: bool) -> io::Result<Screen> {
        // What is said of a panic is to be read where the terminal is as it was.
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                give_back();
                usual(info);
            }));
        });
        let out = BufWriter::with_capacity(64 * 1024, Taken(io::stdout()));
        let mut screen = Screen {
            backend: CrosstermBackend::new(out),
            shown: Buffer::default(),
            next: Buffer::default(),
            links: Links::default(),
            mouse,
        };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        let out = &mut self.backend;
        queue!(out, EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)?;
        if self.mouse {
            queue!(out, EnableMouseCapture)?;
        }
        Write::flush(out)?;
        self.redraw()
    }

    pub fn draw(&mut self, state: &State, theme: &Theme) -> io::Result<()> {
        let (width, height) = state.size;
        let area = Rect::new(0, 0, width, height);
        queue!(self.backend, BeginSynchronizedUpdate)?;
        if self.shown.area != area {
            self.clear(area)?;
        }
        self.next.reset();
        let links = view::draw(state, theme, area, &mut self.next);
        self.backend.draw(self.shown.diff_iter(&self.next))?;
        self.links.write(&mut self.backend, &links, &self.next)?;
        std::mem::swap(&mut self.shown, &mut self.next);
        queue!(self.backend, EndSynchronizedUpdate)?;
        Write::flush(&mut self.backend)
    }

    fn clear(&mut self, area: Rect) -> io::Result<()> {
        self.links.forget();
        (self.shown, self.next) = (Buffer::empty(area), Buffer::empty(area));
        queue!(self.backend, Clear(ClearType::All))
    }

    /// What is on the terminal may be anything: all of it is drawn next time.
    pub fn redraw(&mut self) -> io::Result<()> {
        let area = self.shown.area;
        self.clear(area)
    }

    pub fn set_mouse(&mut self, mouse: bool) -> io::Result<()> {
        self.mouse = mouse;
        let out = &mut self.backend;
        if mouse { execute!(out, EnableMouseCapture) } else { execute!(out, DisableMouseCapture) }
    }

    /// Into the clipboard of who sits at the terminal, over SSH too (OSC 52).
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(&mut self.backend, CopyToClipboard::to_clipboard_from(text))
    }

    /// Stops, as Ctrl-Z asks for, and goes on when somebody brings us back.
    #[cfg(unix)]
    pub fn suspend(&mut self) -> io::Result<()> {
        use rustix::process::{Signal, getpid, kill_process};
        give_back();
        kill_process(getpid(), Signal::TSTP)?;
        self.enter()
    }

    #[cfg(not(unix))]
    pub fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back as it was. Nothing here can be helped when it fails.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(
            out,
            EndSynchronizedUpdate,
            DisableMouseCapture,
            DisableBracketedPaste,
            LeaveAlternateScreen,
            cursor::Show
        );
        let _ = disable_raw_mode();
    }
}
