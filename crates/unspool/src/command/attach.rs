//! `--attach`: follows a running OpenCode server and records its events as they arrive.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use unspool_core::lines::make_visible;
use unspool_engine::attach::{AttachError, Captured, News, Patience, Server};
use unspool_engine::lock::DataFolder;
use unspool_engine::report::Progress;
use unspool_engine::request::{Done, Request, Why};
use unspool_engine::watch::Watch;
use unspool_sources::discover::Environment;

use super::sync::Telling;
use crate::archive::{Archive, Writing};
use crate::config;

/// A server that is unreachable for this long has ended.
const GONE: Duration = Duration::from_secs(4);
/// How often to check whether the recorder lock is free.
const LOOK: Duration = Duration::from_millis(200);

/// Events of the capture thread.
enum Told {
    Attached,
    Over(Result<Captured, AttachError>),
}

/// Follows servers in the background, in addition to the watched folders.
pub fn begin(folder: &DataFolder, servers: Vec<Server>) {
    for server in servers {
        let folder = folder.clone();
        thread::spawn(move || {
            let ended = server.capture(&folder, Patience::Endless, |news| say(&server, &news));
            if let Err(error) = ended {
                warn(&error.to_string());
            }
        });
    }
}

/// Follows a server until it ends.
pub fn follow(archive: &Archive, server: Server, telling: Telling) -> Result<()> {
    let folder = archive.folder()?;
    let told = capture(&folder, server.clone());
    // Wait for the connection first: an unreachable address must not create an archive.
    match told.recv() {
        Ok(Told::Attached) => {}
        Ok(Told::Over(ended)) => return Ok(ended.map(drop)?),
        Err(_) => return Err(lost()),
    }
    let mut writing = archive.writing()?;
    loop {
        // Another long-running recorder reads the capture as it grows.
        if writing.mine()?.is_some() {
            return record(&folder, &mut writing, &server, &told, telling);
        }
        match told.recv_timeout(LOOK) {
            Ok(Told::Attached) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Told::Over(ended)) => {
                let Captured { events, paths } = ended?;
                let request = Request::Take { paths, why: Why::Named };
                if let Done::Taken(report) = writing.ask(request, &Progress::default())? {
                    telling.line(&report)?;
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
    writing: &mut Writing,
    server: &Server,
    told: &Receiver<Told>,
    telling: Telling,
) -> Result<()> {
    let Some((recording, known)) = writing.mine()? else { return Err(lost()) };
    let streams = folder.streams();
    std::fs::create_dir_all(&streams)?;
    let environment = Environment { spools: vec![streams], ..Environment::default() };
    let mut watch = Watch::new(environment, std::mem::take(known), config::notice()?);
    recording.open(watch.desk());
    let mut over = None;
    loop {
        let report = watch.take_until(&recording.recorder, Instant::now() + LOOK)?;
        if report.records > 0 {
            telling.line(&report)?;
        }
        // After the end, one more pass reads the last events.
        if let Some(ended) = over.take() {
            let Captured { events, .. } = ended?;
            gone(server, events);
            return Ok(());
        }
        for news in told.try_iter() {
            if let Told::Over(ended) = news {
                watch.hurry();
                over = Some(ended);
            }
        }
    }
}

/// Captures the server's events on a background thread.
fn capture(folder: &DataFolder, server: Server) -> Receiver<Told> {
    let (tell, told) = channel();
    let folder = folder.clone();
    thread::spawn(move || {
        let attached = tell.clone();
        let ended = server.capture(&folder, Patience::For(GONE), |news| {
            say(&server, &news);
            // The receiver may have returned.
            let _ = attached.send(Told::Attached);
        });
        let _ = tell.send(Told::Over(ended));
    });
    told
}

fn say(server: &Server, news: &News<'_>) {
    match news {
        News::Attached => warn(&format!("following {}", server.url())),
        News::Lost(error) => warn(&format!("reconnecting: {error}")),
    }
}

fn gone(server: &Server, events: u64) {
    warn(&format!("{} has ended; {events} events were recorded", server.url()));
}

fn warn(text: &str) {
    eprintln!("unspool: {}", make_visible(text));
}

fn lost() -> anyhow::Error {
    anyhow!(
        "the capture thread ended unexpectedly; recorded events are kept: run the command again"
    )
}
