//! `--attach`: follows a running OpenCode server and records its events as they arrive.

#[cfg(unix)]
mod answer;

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use unspool_ingest::attach::{AttachError, AttachEvent, CaptureResult, OpencodeServer, RetryLimit};
use unspool_ingest::lock::DataFolder;
use unspool_ingest::report::Progress;
use unspool_ingest::service::request::RequestOutcome;
use unspool_ingest::service::watch::Watch;
use unspool_query::request::{ReadReason, Request};
use unspool_sources::discover::Environment;
use unspool_view::lines::make_visible;

use super::sync::ReportFormat;
use crate::archive::{Archive, Writer};
use crate::config;
#[cfg(unix)]
use answer::Questions;

/// A server that is unreachable for this long has ended.
const GONE_AFTER: Duration = Duration::from_secs(4);
/// How often to check whether the recorder lock is free.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Events of the capture thread.
enum CaptureEvent {
    Attached,
    Ended(Result<CaptureResult, AttachError>),
}

/// Without sockets nobody can answer.
#[cfg(not(unix))]
struct Questions;

#[cfg(not(unix))]
impl Questions {
    fn new(_: &OpencodeServer, _: &DataFolder) -> Questions {
        Questions
    }

    fn take(&self, _: &AttachEvent<'_>) {}
}

/// Follows servers in the background, in addition to the watched folders.
pub fn begin(folder: &DataFolder, servers: Vec<OpencodeServer>) {
    for server in servers {
        let folder = folder.clone();
        thread::spawn(move || {
            let questions = Questions::new(&server, &folder);
            let ended = server.capture(&folder, RetryLimit::Forever, |event| {
                say(&server, &event);
                questions.take(&event);
            });
            if let Err(error) = ended {
                warn(&error.to_string());
            }
        });
    }
}

/// Follows a server until it ends.
pub fn follow(archive: &Archive, server: OpencodeServer, format: ReportFormat) -> Result<()> {
    let folder = archive.folder()?;
    let capture_events = capture(&folder, server.clone());
    // Wait for the connection first: an unreachable address must not create an archive.
    match capture_events.recv() {
        Ok(CaptureEvent::Attached) => {}
        Ok(CaptureEvent::Ended(ended)) => return Ok(ended.map(drop)?),
        Err(_) => return Err(lost()),
    }
    let mut writer = archive.writer()?;
    loop {
        // Another long-running recorder reads the capture as it grows.
        if writer.own_recording()?.is_some() {
            return record(&folder, &mut writer, &server, &capture_events, format);
        }
        match capture_events.recv_timeout(CHECK_INTERVAL) {
            Ok(CaptureEvent::Attached) | Err(RecvTimeoutError::Timeout) => {}
            Ok(CaptureEvent::Ended(ended)) => {
                let CaptureResult { events, paths } = ended?;
                let request = Request::ReadFiles { paths, reason: ReadReason::Named };
                if let RequestOutcome::Synced(report) =
                    writer.submit(request, &Progress::default())?
                {
                    format.line(&report)?;
                }
                gone(&server, events);
                return Ok(());
            }
            Err(RecvTimeoutError::Disconnected) => return Err(lost()),
        }
    }
}

/// Records the capture as a long-running recorder: others may follow and send requests.
fn record(
    folder: &DataFolder,
    writer: &mut Writer,
    server: &OpencodeServer,
    capture_events: &Receiver<CaptureEvent>,
    format: ReportFormat,
) -> Result<()> {
    let Some((recording, file_states)) = writer.own_recording()? else { return Err(lost()) };
    let streams = folder.streams();
    std::fs::create_dir_all(&streams)?;
    let environment = Environment { spools: vec![streams], ..Environment::default() };
    let mut watch =
        Watch::new(environment, std::mem::take(file_states), config::change_detection()?);
    recording.open(watch.request_queue());
    let mut over = None;
    loop {
        let report = watch.take_until(&recording.recorder, Instant::now() + CHECK_INTERVAL)?;
        if report.records > 0 {
            format.line(&report)?;
        }
        // After the end, one more pass reads the last events.
        if let Some(ended) = over.take() {
            let CaptureResult { events, .. } = ended?;
            gone(server, events);
            return Ok(());
        }
        for event in capture_events.try_iter() {
            if let CaptureEvent::Ended(ended) = event {
                watch.hurry();
                over = Some(ended);
            }
        }
    }
}

/// Captures the server's events on a background thread.
fn capture(folder: &DataFolder, server: OpencodeServer) -> Receiver<CaptureEvent> {
    let (sender, capture_events) = channel();
    let folder = folder.clone();
    thread::spawn(move || {
        let attached = sender.clone();
        let questions = Questions::new(&server, &folder);
        let ended = server.capture(&folder, RetryLimit::For(GONE_AFTER), |event| {
            say(&server, &event);
            questions.take(&event);
            if matches!(event, AttachEvent::Attached) {
                // The receiver may have returned.
                let _ = attached.send(CaptureEvent::Attached);
            }
        });
        let _ = sender.send(CaptureEvent::Ended(ended));
    });
    capture_events
}

fn say(server: &OpencodeServer, event: &AttachEvent<'_>) {
    match event {
        AttachEvent::Attached => warn(&format!("following {}", server.url())),
        AttachEvent::Lost(error) => warn(&format!("reconnecting: {error}")),
        AttachEvent::Received(_) | AttachEvent::Disconnected => {}
    }
}

fn gone(server: &OpencodeServer, events: u64) {
    warn(&format!("{} has ended; {events} events were recorded", server.url()));
}

fn warn(text: &str) {
    stderr_line!("unspool: {}", make_visible(text));
}

fn lost() -> anyhow::Error {
    anyhow!(
        "the capture thread ended unexpectedly; recorded events are kept: run the command again"
    )
}
