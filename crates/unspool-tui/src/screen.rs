//! The terminal in raw mode and on the alternate screen: acquired, drawn to, and always restored,
//! also by a panic and by suspending.

use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use unspool_query::attention::Alert;

use crate::paint::Links;
use crate::state::State;
use crate::theme::Theme;
use crate::view;

/// True while the terminal is acquired.
static ACQUIRED: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

type Out = BufWriter<AcquiredStdout>;

/// Standard output that discards writes once the terminal is restored. After a panic in the middle
/// of a frame, the buffered rest of the frame would otherwise overwrite the panic message.
struct AcquiredStdout(Stdout);

impl Write for AcquiredStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if ACQUIRED.load(Ordering::SeqCst) { self.0.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The acquired terminal. Restored on drop.
///
/// Not ratatui's `Terminal`, for OSC 8 links: they are written after the cells of the frame, from
/// that frame's buffer and inside the same synchronized update. `Terminal::draw` swaps its buffers
/// and flushes before it returns. (Its `resize` would do for a changed size; only its `clear` must
/// not be called, because that waits for the terminal to answer where the cursor is.)
pub struct TerminalScreen {
    backend: CrosstermBackend<Out>,
    /// The drawn frame, and the next one.
    current: Buffer,
    next: Buffer,
    links: Links,
    mouse: bool,
}

impl TerminalScreen {
    pub fn take(mouse: bool) -> io::Result<TerminalScreen> {
        // Restore the terminal before the panic message is printed.
        PANIC_HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                restore_terminal();
                usual(info);
            }));
        });
        let out = BufWriter::with_capacity(64 * 1024, AcquiredStdout(io::stdout()));
        let mut screen = TerminalScreen {
            backend: CrosstermBackend::new(out),
            current: Buffer::default(),
            next: Buffer::default(),
            links: Links::default(),
            mouse,
        };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        ACQUIRED.store(true, Ordering::SeqCst);
        let out = &mut self.backend;
        queue!(out, EnterAlternateScreen, EnableBracketedPaste, EnableFocusChange, cursor::Hide)?;
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
        if self.current.area != area {
            self.clear(area)?;
        }
        self.next.reset();
        let links = view::draw(state, theme, area, &mut self.next);
        self.backend.draw(self.current.diff_iter(&self.next))?;
        self.links.write(&mut self.backend, &links, &self.next)?;
        std::mem::swap(&mut self.current, &mut self.next);
        queue!(self.backend, EndSynchronizedUpdate)?;
        Write::flush(&mut self.backend)
    }

    fn clear(&mut self, area: Rect) -> io::Result<()> {
        self.links.forget();
        (self.current, self.next) = (Buffer::empty(area), Buffer::empty(area));
        queue!(self.backend, Clear(ClearType::All))
    }

    /// Redraws everything with the next frame: the terminal's content is unknown.
    pub fn redraw(&mut self) -> io::Result<()> {
        let area = self.current.area;
        self.clear(area)
    }

    pub fn set_mouse(&mut self, mouse: bool) -> io::Result<()> {
        self.mouse = mouse;
        let out = &mut self.backend;
        if mouse { execute!(out, EnableMouseCapture) } else { execute!(out, DisableMouseCapture) }
    }

    /// Copies to the clipboard of the terminal's user, also over SSH (OSC 52).
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(&mut self.backend, CopyToClipboard::to_clipboard_from(text))
    }

    /// Rings the bell and asks the terminal to show a notification. One of the two sequences, as
    /// some terminals know both and would show it twice.
    pub fn alert(&mut self, alert: &Alert) -> io::Result<()> {
        let plain = |text: &str| {
            let text: String = text.chars().filter(|c| !c.is_control()).collect();
            // The separator of the sequence.
            text.replace(';', ",")
        };
        let (headline, text) = (plain(&alert.headline()), plain(alert.text()));
        let terminal = std::env::var("TERM").unwrap_or_default();
        if terminal.starts_with("foot") || terminal.starts_with("rxvt") {
            write!(self.backend, "\x07\x1b]777;notify;{headline};{text}\x1b\\")?;
        } else {
            write!(self.backend, "\x07\x1b]9;{headline}: {text}\x1b\\")?;
        }
        Write::flush(&mut self.backend)
    }

    /// Gives the terminal to a program until it ends.
    pub fn run(&mut self, command: &mut Command) -> io::Result<io::Result<()>> {
        restore_terminal();
        let ran = command.status().map(drop);
        self.enter()?;
        Ok(ran)
    }

    /// Stops the process, as Ctrl-Z should, and resumes when it is continued.
    #[cfg(unix)]
    pub fn suspend(&mut self) -> io::Result<()> {
        use rustix::process::{Signal, getpid, kill_process};
        restore_terminal();
        kill_process(getpid(), Signal::TSTP)?;
        self.enter()
    }

    #[cfg(not(unix))]
    pub fn suspend(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Restores the terminal. Errors are ignored: nothing can be done about them here.
fn restore_terminal() {
    if ACQUIRED.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(
            out,
            EndSynchronizedUpdate,
            DisableMouseCapture,
            DisableBracketedPaste,
            DisableFocusChange,
            LeaveAlternateScreen,
            cursor::Show
        );
        let _ = disable_raw_mode();
    }
}
