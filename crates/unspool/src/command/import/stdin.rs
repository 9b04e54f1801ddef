//! `unspool import -`: records standard input while it arrives. A thread reads lines and appends
//! them to a capture (`StdinCapture`); after each burst the recorder, in this process or another,
//! reads what is new. A document makes sense only as a whole, so it is read at its end.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use unspool_ingest::lock::DataFolder;
use unspool_ingest::report::{Progress, SyncReport};
use unspool_ingest::stdin_capture::{STDIN_NAME, StdinCapture};
use unspool_query::request::{ReadReason, Request};
use unspool_sources::read::source::TextStream;

use super::synced;
use crate::archive::Writer;

/// Lines that arrive in this time after the first are read together.
const MAX_COALESCE_DELAY: Duration = Duration::from_millis(20);
/// After this long without input, another process may record.
const RELEASE_AFTER: Duration = Duration::from_millis(250);
/// How long to wait for the last lines of a producer that was interrupted together with us.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);
/// How many events may wait. A producer that is faster than the recorder has to wait.
const MAX_QUEUED: usize = 64;

/// What happens to standard input.
enum StdinEvent {
    /// It is one document.
    Document(Box<dyn Read + Send>),
    /// Whole lines.
    Lines(Vec<u8>),
    /// The end, with a last line that may be cut off.
    End { rest: Vec<u8>, error: Option<io::Error> },
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Records standard input until it ends.
pub fn import(
    folder: &DataFolder,
    writer: &mut Writer,
    reason: ReadReason,
    progress: &Progress,
) -> Result<SyncReport> {
    let (sender, events) = sync_channel(MAX_QUEUED);
    spawn_interrupt_thread(sender.clone());
    thread::spawn(move || read(&sender));
    let capture = StdinCapture::new(folder)?;
    let report = SyncReport::default();
    let mut import = StdinImport { folder, writer, reason, progress, capture, report, due: 0 };
    import.run(&events)?;
    Ok(import.report)
}

struct StdinImport<'a> {
    folder: &'a DataFolder,
    writer: &'a mut Writer,
    reason: ReadReason,
    progress: &'a Progress,
    capture: StdinCapture,
    report: SyncReport,
    /// Below this length the capture is not read again.
    due: u64,
}

/// Whether more is to come.
enum Progressed {
    More,
    Over,
}

impl StdinImport<'_> {
    fn run(&mut self, events: &Receiver<StdinEvent>) -> Result<()> {
        let mut deadline: Option<Instant> = None;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let wait = left.map_or(RELEASE_AFTER, |left| left.min(RELEASE_AFTER));
            match events.recv_timeout(wait) {
                Ok(StdinEvent::Interrupted) if deadline.is_none() => {
                    deadline = Some(Instant::now() + INTERRUPT_GRACE);
                }
                // Pressed twice.
                Ok(StdinEvent::Interrupted) | Err(RecvTimeoutError::Disconnected) => {
                    return self.finish();
                }
                Ok(event) => {
                    if let Progressed::Over = self.take_burst(event, events)? {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) if left.is_some_and(|left| left.is_zero()) => {
                    return self.finish();
                }
                Err(RecvTimeoutError::Timeout) => self.writer.release(),
            }
        }
    }

    /// Takes an event and those right after it, then has the new lines read.
    fn take_burst(
        &mut self,
        first: StdinEvent,
        events: &Receiver<StdinEvent>,
    ) -> Result<Progressed> {
        let begun = Instant::now();
        let mut next = Some(first);
        while let Some(event) = next {
            match event {
                StdinEvent::Lines(lines) => self.capture.append(&lines)?,
                StdinEvent::Document(document) => return self.read_document(document),
                StdinEvent::End { rest, error } => {
                    if !rest.is_empty() {
                        self.capture.append(&rest)?;
                    }
                    self.finish()?;
                    // What arrived before the error is recorded.
                    return error.map_or(Ok(Progressed::Over), |error| Err(error.into()));
                }
                StdinEvent::Interrupted => {
                    self.finish()?;
                    return Ok(Progressed::Over);
                }
            }
            next = if begun.elapsed() < MAX_COALESCE_DELAY { events.try_recv().ok() } else { None };
        }
        self.read_new()?;
        Ok(Progressed::More)
    }

    fn read_new(&mut self) -> Result<()> {
        // Restoring reads a file completely, so it happens once, at the end.
        let restores = self.reason == ReadReason::Restore;
        if restores || self.capture.is_repeating() || self.capture.length() < self.due {
            return Ok(());
        }
        let mut taken = self.submit(ReadReason::Scan)?;
        if taken.records == 0 {
            // No record has named its session yet, so the next read begins at the start again.
            // Doubling the length keeps the sum of all reads linear.
            self.due = self.capture.length() * 2;
        }
        // Whether the format is unknown is only certain at the end.
        taken.warnings.retain(|warning| warning.line > 0);
        self.add(taken);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.capture.path().is_none() {
            return self.read_document(Box::new(io::empty())).map(drop);
        }
        self.capture.finish()?;
        let taken = self.submit(self.reason)?;
        self.add(taken);
        Ok(())
    }

    fn submit(&mut self, reason: ReadReason) -> Result<SyncReport> {
        let paths = self.capture.path().map(ToOwned::to_owned).into_iter().collect();
        Ok(synced(self.writer.submit(Request::ReadFiles { paths, reason }, self.progress)?))
    }

    /// Adds a report, without the warnings of lines that were read again.
    fn add(&mut self, mut taken: SyncReport) {
        let known = &self.report.warnings;
        taken.warnings.retain(|warning| !known.contains(warning));
        self.report.add(taken);
    }

    /// Copies a document to its end and has it read.
    fn read_document(&mut self, mut document: Box<dyn Read + Send>) -> Result<Progressed> {
        // The recorder may be another process, which cannot read our standard input.
        let mut handover = self.folder.create_handover_text()?;
        io::copy(&mut document, &mut handover.file)?;
        let (name, text_file) = (STDIN_NAME.to_owned(), handover.path.clone());
        let request = Request::ReadText { name, text_file, reason: self.reason };
        let taken = synced(self.writer.submit(request, self.progress)?);
        self.add(taken);
        Ok(Progressed::Over)
    }
}

/// Reads standard input to its end. A failed send means that nobody waits for more.
fn read(sender: &SyncSender<StdinEvent>) {
    let mut lines = match TextStream::open(io::stdin()) {
        Ok(stream) if stream.is_document() => {
            let _ = sender.send(StdinEvent::Document(stream.into_text()));
            return;
        }
        Ok(stream) => stream.into_lines(),
        Err(error) => {
            let _ = sender.send(StdinEvent::End { rest: Vec::new(), error: Some(error) });
            return;
        }
    };
    let mut buffer = vec![0; 64 * 1024];
    let mut rest = Vec::new();
    loop {
        match lines.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome @ (Ok(0) | Err(_)) => {
                let _ = sender.send(StdinEvent::End { rest, error: outcome.err() });
                return;
            }
            Ok(length) => {
                // Only the new bytes can hold a line end.
                let new = &buffer[..length];
                let Some(end) = new.iter().rposition(|byte| *byte == b'\n') else {
                    rest.extend_from_slice(new);
                    continue;
                };
                rest.extend_from_slice(&new[..=end]);
                let whole = std::mem::replace(&mut rest, new[end + 1..].to_vec());
                if sender.send(StdinEvent::Lines(whole)).is_err() {
                    return;
                }
            }
        }
    }
}

/// Reports Ctrl-C instead of ending the process: in a pipeline it reaches the producer as well,
/// whose last lines are still to come.
fn spawn_interrupt_thread(sender: SyncSender<StdinEvent>) {
    thread::spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
            return;
        };
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if sender.send(StdinEvent::Interrupted).is_err() {
                    return;
                }
            }
        });
    });
}
