//! Keeps the archive up to date while it is served, and tells the server what is written: by us,
//! or by another process that records. When that one ends, we go on in its place.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::broadcast::error::RecvError;
use unspool_engine::lock::DataFolder;
use unspool_engine::report::Progress;
#[cfg(unix)]
use unspool_engine::socket::{Follower, Message};
use unspool_engine::spool;
use unspool_engine::sync::{Candidate, Known, sync};
use unspool_engine::watch::Watch;
use unspool_server::{App, News};
use unspool_sources::discover::{Environment, discover};
use unspool_store::sqlite::Sqlite;

use crate::archive::{Archive, Recording};
use crate::config;

/// Before something that failed is tried again.
const PAUSE: Duration = Duration::from_secs(2);

pub struct Keeper {
    archive: Archive,
    environment: Environment,
    recording: Option<Recording>,
}

impl Keeper {
    pub fn begin(archive: Archive, environment: Environment) -> Result<Keeper> {
        let recording = archive.record_now()?;
        Ok(Keeper { archive, environment, recording })
    }

    pub fn read(&self) -> Result<Sqlite> {
        self.archive.read()
    }

    pub fn folder(&self) -> Result<DataFolder> {
        self.archive.folder()
    }

    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Goes on for as long as the process lives.
    pub fn keep(mut self, app: Arc<App<Sqlite>>) {
        thread::spawn(move || {
            loop {
                let recording = match self.recording.take() {
                    Some(recording) => Ok(Some(recording)),
                    None => self.archive.record_now(),
                };
                let outcome = match recording {
                    Ok(Some(recording)) => self.record(&recording, &app),
                    Ok(None) => self.follow(&app),
                    Err(error) => Err(error),
                };
                // What was written meanwhile, nobody told us.
                app.tell(News::Missed);
                if let Err(error) = outcome {
                    eprintln!("unspool: {error:#}");
                    thread::sleep(PAUSE);
                }
            }
        });
    }

    fn record(&self, recording: &Recording, app: &Arc<App<Sqlite>>) -> Result<()> {
        let recorder = &recording.recorder;
        let mut written = recorder.subscribe();
        let told = Arc::clone(app);
        thread::spawn(move || {
            loop {
                match written.blocking_recv() {
                    Ok(published) => told.tell(News::written(published)),
                    Err(RecvError::Lagged(_)) => told.tell(News::Missed),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        let mut known = Known::load(recorder)?;
        let found = discover(&self.environment).files;
        let candidates = found.into_iter().map(Candidate::from).collect();
        sync(recorder, &mut known, candidates, &Progress::default())?;
        spool::sweep(&self.archive.folder()?);
        let mut watch = Watch::new(self.environment.clone(), known, config::notice()?);
        recording.open(watch.desk());
        loop {
            watch.take_next(recorder)?;
        }
    }

    #[cfg(unix)]
    fn follow(&self, app: &App<Sqlite>) -> Result<()> {
        let Some(mut follower) = Follower::connect(&self.archive.folder()?)? else {
            // It has begun just now, or is ending.
            thread::sleep(Duration::from_millis(100));
            return Ok(());
        };
        app.tell(News::Missed);
        while let Some(message) = follower.next_message()? {
            match message {
                Message::Written(published) => app.tell(News::written(published)),
                Message::Missed => app.tell(News::Missed),
                Message::Hello(_) | Message::Answered(_) => {}
            }
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn follow(&self, _: &App<Sqlite>) -> Result<()> {
        thread::sleep(PAUSE);
        Ok(())
    }
}
