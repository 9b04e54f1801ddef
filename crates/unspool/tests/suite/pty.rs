//! A program in a pseudo-terminal: its output is parsed into a screen, and keys can be sent to it.
//! Used by tests, benchmarks and the screenshot example.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

pub struct Pty {
    pub child: Box<dyn Child + Send + Sync>,
    pub screen: vt100::Parser,
    /// All output of the program.
    pub raw: Vec<u8>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    chunks: Receiver<Vec<u8>>,
}

// Not every file that includes this uses all of it.
#[allow(dead_code)]
impl Pty {
    pub fn open(command: CommandBuilder, (cols, rows): (u16, u16)) -> Pty {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).unwrap();
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let mut output = pty.master.try_clone_reader().unwrap();
        let (sender, chunks) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer.get(..count).unwrap_or_default().to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = pty.master.take_writer().unwrap();
        let screen = vt100::Parser::new(some(rows), some(cols), 0);
        Pty { child, screen, raw: Vec::new(), master: pty.master, keys, chunks }
    }

    /// Processes the next output, waiting up to `wait`.
    pub fn take(&mut self, wait: Duration) -> Result<(), RecvTimeoutError> {
        let bytes = self.chunks.recv_timeout(wait)?;
        self.screen.process(&bytes);
        self.raw.extend(bytes);
        Ok(())
    }

    /// Processes all output so far.
    pub fn drain(&mut self) {
        while self.take(Duration::ZERO).is_ok() {}
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.screen.screen_mut().set_size(some(rows), some(cols));
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }
}

fn some(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
