//! The recording process. [`Recording::run`] syncs everything that is found and then what agents
//! write. [`Service`] runs it in the background of an application and publishes every write as an
//! `Update` of `unspool-query`. While another process records, it follows that process through the
//! change socket, and takes over when it ends.

pub mod archive;
mod inbox;
mod missing_folders;
pub mod projects;
mod remote_folder;
pub mod request;
pub mod request_queue;
pub mod silence;
#[cfg(unix)]
pub mod socket;
pub mod watch;

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use unspool_query::live::{Subscription, Update, Updates};
use unspool_sources::discover::{Discovery, Environment};
use unspool_store::database::{Database, DatabaseView, FileIdentity};
use unspool_store::store::{Store, Viewer};

use crate::hooks::spool;
use crate::lock::DataFolder;
use crate::report::{Progress, SyncReport};
use crate::service::archive::{Archive, ArchiveError, Recording};
use crate::service::projects::projects_of_sessions;
use crate::service::silence::{SilenceCheck, SilencePolicy};
#[cfg(unix)]
use crate::service::socket::Follower;
use crate::service::watch::{ChangeDetection, Watch};
use crate::sync::{FileCandidate, FileStates, SyncError, sync};
use crate::traces;

/// Delay before a retry after a failure.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Delay before looking again for a recorder that is starting or ending.
#[cfg(unix)]
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// What a recording process reads, and how it notices changes.
#[derive(Clone, Debug)]
pub struct Sources {
    pub environment: Environment,
    pub change_detection: ChangeDetection,
    pub silence: SilencePolicy,
}

/// The progress of a recording process.
#[derive(Debug)]
pub enum RecordEvent {
    /// The sources were searched; this many files are read next.
    Discovered { files: usize },
    /// Everything that was found is read.
    Synced(SyncReport),
    /// Agents wrote more, and it was read.
    Grown(SyncReport),
}

impl Recording {
    /// Ingests everything that was discovered.
    pub fn sync(
        &self,
        file_states: &mut FileStates,
        discovered: Discovery,
        progress: &Progress,
    ) -> Result<SyncReport, SyncError> {
        let candidates = discovered.files.into_iter().map(FileCandidate::from).collect();
        let mut report = sync(&self.recorder, file_states, candidates, progress)?;
        report.warnings.extend(discovered.warnings);
        spool::sweep(&self.folder);
        traces::sweep(&self.folder);
        Ok(report)
    }

    /// Ingests the logs in the folders of projects, which are known from the sessions that were
    /// ingested so far.
    pub fn sync_projects(
        &self,
        file_states: &mut FileStates,
        environment: &Environment,
        progress: &Progress,
    ) -> Result<SyncReport, SyncError> {
        let projects = projects_of_sessions(&self.recorder.store().view(Viewer::Sole))?;
        let found = Environment { projects, ..environment.clone() }.logs_in_projects();
        let candidates = found.into_iter().map(FileCandidate::from).collect();
        sync(&self.recorder, file_states, candidates, progress)
    }

    /// Ends the turns whose agent is gone.
    pub fn end_lost_turns(&self, policy: SilencePolicy) -> Result<(), SyncError> {
        Ok(SilenceCheck::new(&self.recorder, policy)?.run(&self.recorder)?)
    }

    /// Ingests everything, then accepts requests and ingests what agents write, until something
    /// fails or `report` does.
    pub fn run<E: From<SyncError>>(
        &self,
        sources: &Sources,
        progress: &Progress,
        mut report: impl FnMut(RecordEvent) -> Result<(), E>,
    ) -> Result<Infallible, E> {
        let Sources { environment, change_detection, silence } = sources.clone();
        let file_states = FileStates::load(&self.recorder).map_err(SyncError::from)?;
        // Watched from the start: the first payload of a hook shall not wait for a scan.
        let _ = std::fs::create_dir_all(self.folder.spool());
        let mut watch = Watch::new(environment, file_states, change_detection);
        let discovered = watch.discover();
        report(RecordEvent::Discovered { files: discovered.files.len() })?;
        let synced = watch.take_discovered(&self.recorder, discovered, progress)?;
        spool::sweep(&self.folder);
        traces::sweep(&self.folder);
        report(RecordEvent::Synced(synced))?;
        let silence = SilenceCheck::new(&self.recorder, silence).map_err(SyncError::from)?;
        let mut watch = watch.with_silence_check(silence);
        self.open(watch.request_queue());
        loop {
            let grown = watch.take_next(&self.recorder)?;
            if grown.records > 0 {
                report(RecordEvent::Grown(grown))?;
            }
        }
    }
}

/// What a service reports. The application decides where to show it: the terminal may be its own.
#[derive(Debug)]
pub enum ServiceEvent {
    /// Files were read.
    Synced(SyncReport),
    /// Recording or following failed and will be retried.
    Failed(ArchiveError),
    /// The archive was deleted, moved or replaced. The service has ended, and the application should
    /// end too: what it shows is no longer there.
    Gone(ArchiveError),
}

/// Called from the service's thread.
type Listener = Arc<dyn Fn(ServiceEvent) + Send + Sync>;

/// Keeps the archive up to date in the background and publishes every write as an update.
pub struct Service {
    archive: Archive,
    sources: Sources,
    updates: Updates,
    recording: Option<Recording>,
    /// Of the file of the archive, if it is in one, to notice that it is gone.
    identity: Option<FileIdentity>,
}

/// How long the process that records may take to create the archive.
const CREATION_LIMIT: Duration = Duration::from_secs(10);

/// Waits until the archive is there: the process that records may just be creating it.
fn wait_for_archive(archive: &Archive) -> Result<(), ArchiveError> {
    let begun = Instant::now();
    loop {
        match archive.read() {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() >= CREATION_LIMIT => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

impl Service {
    /// Opens the archive and creates it if needed. Records nothing yet.
    pub fn begin(archive: Archive, sources: Sources) -> Result<Service, ArchiveError> {
        let recording = archive.record_now()?;
        if recording.is_none() {
            wait_for_archive(&archive)?;
        }
        let identity = match archive.server() {
            Some(_) => None,
            None => Some(FileIdentity::of_open(&archive.folder()?.database())?),
        };
        Ok(Service { archive, sources, updates: Updates::default(), recording, identity })
    }

    pub fn read(&self) -> Result<Database, ArchiveError> {
        self.archive.read()
    }

    pub fn view(&self) -> Result<DatabaseView, ArchiveError> {
        self.archive.view()
    }

    pub fn folder(&self) -> Result<DataFolder, ArchiveError> {
        self.archive.folder()
    }

    /// True if it records, false if it follows another process that does.
    pub fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    pub fn environment(&self) -> &Environment {
        &self.sources.environment
    }

    /// Where every write is published, by this process or another.
    pub fn updates(&self) -> &Updates {
        &self.updates
    }

    /// Runs until the process ends or the archive is gone.
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
                    Ok(None) => self.follow(),
                    Err(error) => Err(error),
                };
                // Writes during the switch were not reported.
                self.updates.publish(Update::Lagged);
                // Do not make a new archive beside readers of the old one.
                if let Some(Err(gone)) = self.identity.as_ref().map(FileIdentity::check) {
                    tracing::error!(error = %gone, "the archive is gone");
                    notify(ServiceEvent::Gone(gone.into()));
                    return;
                }
                if let Err(error) = outcome {
                    tracing::error!(%error, "recording failed");
                    notify(ServiceEvent::Failed(error));
                    thread::sleep(RETRY_PAUSE);
                }
            }
        });
    }

    fn record(&self, recording: &Recording, notify: &Listener) -> Result<(), ArchiveError> {
        let mut subscription = Subscription::from(recording.recorder.subscribe());
        let updates = self.updates.clone();
        thread::spawn(move || {
            while let Some(update) = subscription.next_blocking() {
                updates.publish(update);
            }
        });
        let report = |event| {
            match event {
                RecordEvent::Discovered { .. } => {}
                RecordEvent::Synced(report) | RecordEvent::Grown(report) => {
                    notify(ServiceEvent::Synced(report));
                }
            }
            Ok::<(), ArchiveError>(())
        };
        match recording.run(&self.sources, &Progress::default(), report)? {}
    }

    #[cfg(unix)]
    fn follow(&self) -> Result<(), ArchiveError> {
        let Some(follower) = Follower::connect(&self.archive.folder()?)? else {
            thread::sleep(CONNECT_PAUSE);
            return Ok(());
        };
        // Writes before the connection were not reported.
        self.updates.publish(Update::Lagged);
        Ok(follower.relay(&self.updates)?)
    }

    #[cfg(not(unix))]
    fn follow(&self) -> Result<(), ArchiveError> {
        thread::sleep(RETRY_PAUSE);
        Ok(())
    }
}
