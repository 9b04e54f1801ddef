//! `--attach`: what a running OpenCode server tells, as it tells it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use unspool_core::lines::visible;
use unspool_engine::attach::{AttachError, Captured, News, Patience, Server};
use unspool_engine::lock::DataFolder;
use unspool_engine::report::Progress;
use unspool_engine::request::{Done, Request, Why};
use unspool_engine::watch::Watch;
use unspool_sources::discover::Environment;

use super::sync::Telling;
use crate::archive::{Archive, Writing};
use crate::config;

/// A server that is gone for so long has ended.
const GONE: Duration = Duration::from_secs(4);
/// How often to look whether nobody records any more.
const LOOK: Duration = Duration::from_millis(200);

/// What a capture has to say while it goes on.
enum Told {
    Attached,
    Over(Result<Captured, AttachError>),
}

/// Follows servers from now on, beside whatever else is watched.
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
    // An address at which nobody answers leaves no trace.
    match told.recv() {
        Ok(Told::Attached) => {}
        Ok(Told::Over(ended)) => return Ok(ended.map(drop)?),
        Err(_) => return Err(lost()),
    }
    let mut writing = archive.writing()?;
    loop {
        // Where another process goes on recording, it reads the capture as it grows.
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

/// Records what is captured, as whoever records for long: others may follow and ask.
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
        // What came last is looked at once more.
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

/// Takes down what the server tells, on a thread of its own.
fn capture(folder: &DataFolder, server: Server) -> Receiver<Told> {
    let (tell, told) = channel();
    let folder = folder.clone();
    thread::spawn(move || {
        let attached = tell.clone();
        let ended = server.capture(&folder, Patience::For(GONE), |news| {
            say(&server, &news);
            // Nobody waits for it any more.
            let _ = attached.send(Told::Attached);
        });
        let _ = tell.send(Told::Over(ended));
    });
    told
}

fn say(server: &Server, news: &News<'_>) {
    match news {
        News::Attached => warn(&format!("following {}", server.url())),
        News::Lost(error) => warn(&format!("trying again: {error}")),
    }
}

fn gone(server: &Server, events: u64) {
    warn(&format!("{} is gone; it told {events} events", server.url()));
}

fn warn(text: &str) {
    eprintln!("unspool: {}", visible(text));
}

fn lost() -> anyhow::Error {
    anyhow!("the thread that follows the server has ended; what it told is kept: run it again")
}
