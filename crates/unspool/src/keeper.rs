//! The background service of `serve` and the terminal application. It records if no other process
//! does, and otherwise follows the recorder through the change socket; when that process ends, it
//! takes over. Every write is passed to a listener.

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
use unspool_sources::discover::{Environment, discover};
use unspool_store::recorder::ChangeSet;
use unspool_store::sqlite::Sqlite;

use crate::archive::{Archive, Recording};
use crate::config;

/// Delay before a retry after a failure.
const PAUSE: Duration = Duration::from_secs(2);

/// What the listener receives.
#[derive(Debug)]
pub enum Heard {
    Written(ChangeSet),
    /// Writes were missed, or another program wrote without publishing: reload.
    Missed,
    /// Recording or following failed and will be retried. The listener reports it, because the
    /// terminal may belong to the application.
    Failed(anyhow::Error),
}

/// Called from several threads.
type Tell = Arc<dyn Fn(Heard) + Send + Sync>;

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

    /// Runs until the process ends.
    pub fn keep(mut self, tell: impl Fn(Heard) + Send + Sync + 'static) {
        let tell: Tell = Arc::new(tell);
        thread::spawn(move || {
            loop {
                let recording = match self.recording.take() {
                    Some(recording) => Ok(Some(recording)),
                    None => self.archive.record_now(),
                };
                let outcome = match recording {
                    Ok(Some(recording)) => self.record(&recording, &tell),
                    Ok(None) => self.follow(&tell),
                    Err(error) => Err(error),
                };
                // Writes during the switch were not reported.
                tell(Heard::Missed);
                if let Err(error) = outcome {
                    tell(Heard::Failed(error));
                    thread::sleep(PAUSE);
                }
            }
        });
    }

    fn record(&self, recording: &Recording, tell: &Tell) -> Result<()> {
        let recorder = &recording.recorder;
        let mut written = recorder.subscribe();
        let tell = Arc::clone(tell);
        thread::spawn(move || {
            loop {
                match written.blocking_recv() {
                    Ok(published) => tell(Heard::Written(published)),
                    Err(RecvError::Lagged(_)) => tell(Heard::Missed),
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
    fn follow(&self, tell: &Tell) -> Result<()> {
        let Some(mut follower) = Follower::connect(&self.archive.folder()?)? else {
            // The recorder is starting or ending.
            thread::sleep(Duration::from_millis(100));
            return Ok(());
        };
        tell(Heard::Missed);
        while let Some(message) = follower.next_message()? {
            match message {
                Message::Written(published) => tell(Heard::Written(published)),
                Message::Missed => tell(Heard::Missed),
                Message::Hello(_) | Message::Answered(_) => {}
            }
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn follow(&self, _: &Tell) -> Result<()> {
        thread::sleep(PAUSE);
        Ok(())
    }
}
