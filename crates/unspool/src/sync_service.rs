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
use unspool_engine::socket::{Follower, SocketMessage};
use unspool_engine::spool;
use unspool_engine::sync::{FileCandidate, FileStates, sync};
use unspool_engine::watch::Watch;
use unspool_sources::discover::{Environment, discover};
use unspool_store::recorder::ChangeSet;
use unspool_store::sqlite::Sqlite;

use crate::archive::{Archive, Recording};
use crate::config;

/// Delay before a retry after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// What the listener receives.
#[derive(Debug)]
pub enum ServiceEvent {
    Written(ChangeSet),
    /// Writes were missed, or another program wrote without publishing: reload.
    Lagged,
    /// Recording or following failed and will be retried. The listener reports it, because the
    /// terminal may belong to the application.
    Failed(anyhow::Error),
}

/// Called from several threads.
type Listener = Arc<dyn Fn(ServiceEvent) + Send + Sync>;

pub struct SyncService {
    archive: Archive,
    environment: Environment,
    recording: Option<Recording>,
}

impl SyncService {
    pub fn begin(archive: Archive, environment: Environment) -> Result<SyncService> {
        let recording = archive.record_now()?;
        Ok(SyncService { archive, environment, recording })
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
    pub fn spawn(mut self, notify: impl Fn(ServiceEvent) + Send + Sync + 'static) {
        let notify: Listener = Arc::new(notify);
        thread::spawn(move || {
            loop {
                let recording = match self.recording.take() {
                    Some(recording) => Ok(Some(recording)),
                    None => self.archive.record_now(),
                };
                let outcome = match recording {
                    Ok(Some(recording)) => self.record(&recording, &notify),
                    Ok(None) => self.follow(&notify),
                    Err(error) => Err(error),
                };
                // Writes during the switch were not reported.
                notify(ServiceEvent::Lagged);
                if let Err(error) = outcome {
                    notify(ServiceEvent::Failed(error));
                    thread::sleep(RETRY_PAUSE);
                }
            }
        });
    }

    fn record(&self, recording: &Recording, notify: &Listener) -> Result<()> {
        let recorder = &recording.recorder;
        let mut written = recorder.subscribe();
        let notify = Arc::clone(notify);
        thread::spawn(move || {
            loop {
                match written.blocking_recv() {
                    Ok(published) => notify(ServiceEvent::Written(published)),
                    Err(RecvError::Lagged(_)) => notify(ServiceEvent::Lagged),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        let mut file_states = FileStates::load(recorder)?;
        let found = discover(&self.environment).files;
        let candidates = found.into_iter().map(FileCandidate::from).collect();
        sync(recorder, &mut file_states, candidates, &Progress::default())?;
        spool::sweep(&self.archive.folder()?);
        let mut watch =
            Watch::new(self.environment.clone(), file_states, config::change_detection()?);
        recording.open(watch.request_queue());
        loop {
            watch.take_next(recorder)?;
        }
    }

    #[cfg(unix)]
    fn follow(&self, notify: &Listener) -> Result<()> {
        let Some(mut follower) = Follower::connect(&self.archive.folder()?)? else {
            // The recorder is starting or ending.
            thread::sleep(Duration::from_millis(100));
            return Ok(());
        };
        notify(ServiceEvent::Lagged);
        while let Some(message) = follower.next_message()? {
            match message {
                SocketMessage::Written(published) => notify(ServiceEvent::Written(published)),
                SocketMessage::Lagged => notify(ServiceEvent::Lagged),
                SocketMessage::Hello(_) | SocketMessage::Reply(_) => {}
            }
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn follow(&self, _: &Listener) -> Result<()> {
        thread::sleep(RETRY_PAUSE);
        Ok(())
    }
}
