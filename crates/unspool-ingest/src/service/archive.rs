//! Locates and opens the archive: for reading, which is always possible, or for recording, which
//! only one process may do at a time.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use unspool_query::request::Request;
use unspool_store::database::{Database, DatabaseView};
use unspool_store::postgres::Address;
use unspool_store::store::{Store, StoreError, StoreErrorKind, Viewer};

use crate::lock::{DataFolder, RecorderLock};
use crate::recorder::Recorder;
use crate::report::Progress;
use crate::service::request::{RequestError, RequestOutcome, execute};
use crate::service::request_queue::RequestQueue;
#[cfg(unix)]
use crate::service::socket::{Publisher, SocketReply, forward_request};
use crate::sync::received::ReceiveError;
use crate::sync::{FileStates, SyncError};

#[derive(Debug, Error)]
pub enum ArchiveError {
    #[error("cannot find a home folder for the archive; choose a folder with --data DIR")]
    NoHome,
    #[error("cannot use {} for the archive; choose another folder with --data DIR", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error(
        "another unspool is recording (process {0}), and this command needs exclusive access; stop \
         that process and run the command again"
    )]
    InUse(u32),
    /// The recorder process could not carry out a request.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sync(#[from] SyncError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ArchiveError {
    /// True if another process has written to an archive on a server meanwhile. Nothing was written;
    /// a new recorder knows what is there now.
    pub fn is_overtaken(&self) -> bool {
        let (ArchiveError::Store(store)
        | ArchiveError::Sync(SyncError::Store(store))
        | ArchiveError::Request(
            RequestError::Store(store)
            | RequestError::Sync(SyncError::Store(store))
            | RequestError::Receive(ReceiveError::Sync(SyncError::Store(store))),
        )) = self
        else {
            return false;
        };
        store.kind() == StoreErrorKind::Overtaken
    }
}

/// How often work is begun again that another process has overtaken.
pub const MAX_OVERTAKEN: usize = 6;

/// The archive of this user.
#[derive(Clone, Debug)]
pub struct Archive {
    data: Option<PathBuf>,
    /// The server that has the archive; without one it is in a file of the data folder.
    store: Option<Address>,
    waiting: Waiting,
}

/// The recorder and its lock. Fields drop in order: the lock is released last.
pub struct Recording {
    pub recorder: Recorder<Database>,
    #[cfg(unix)]
    publisher: Option<Publisher>,
    pub(crate) folder: DataFolder,
    _lock: RecorderLock,
}

impl Archive {
    pub fn new(data: Option<PathBuf>) -> Archive {
        Archive { data, store: None, waiting: Waiting { notify: || {}, notified: false } }
    }

    /// The same user's archive on a server, if one is given.
    pub fn on_server(self, store: Option<Address>) -> Archive {
        Archive { store, ..self }
    }

    /// The archive in the file of the data folder.
    pub fn in_file(&self) -> Archive {
        Archive { store: None, ..self.clone() }
    }

    /// The server that has the archive.
    pub fn server(&self) -> Option<&Address> {
        self.store.as_ref()
    }

    /// Calls `notify` once whenever an operation has to wait for another process.
    pub fn on_wait(self, notify: fn()) -> Archive {
        Archive { waiting: Waiting { notify, ..self.waiting }, ..self }
    }

    /// The data folder given by --data or UNSPOOL_DATA.
    pub fn named_folder(&self) -> Option<PathBuf> {
        self.data.clone().filter(|data| !data.as_os_str().is_empty())
    }

    pub fn folder(&self) -> Result<DataFolder, ArchiveError> {
        let folder = self.named_folder().or_else(default_folder).ok_or(ArchiveError::NoHome)?;
        // Files are stored by absolute path, however the folder was named.
        let folder = DataFolder::new(std::path::absolute(folder)?);
        Ok(match &self.store {
            // Its own lock, socket and links: another process may record into the file meanwhile.
            Some(address) => folder.of_server(&address.to_string()),
            None => folder,
        })
    }

    /// Opens the archive for reading.
    pub fn read(&self) -> Result<Database, ArchiveError> {
        Ok(match &self.store {
            Some(address) => Database::open_on_server_to_read(address)?,
            None => Database::open_to_read(&self.folder()?.database())?,
        })
    }

    /// Opens the archive for writing; creates it if needed. The caller must hold the recorder lock.
    fn open_to_write(&self, folder: &DataFolder) -> Result<Database, StoreError> {
        match &self.store {
            Some(address) => Database::open_on_server(address),
            None => Database::open(&folder.database()),
        }
    }

    /// What the user sees of the archive.
    pub fn view(&self) -> Result<DatabaseView, ArchiveError> {
        Ok(self.read()?.view(Viewer::Sole))
    }

    /// Opens an existing archive for maintenance. A running recorder cannot do this on our behalf,
    /// so it fails at once if a long-running one holds the lock.
    pub fn record_alone(&self) -> Result<Recording, ArchiveError> {
        drop(self.read()?);
        let folder = self.create()?;
        let mut waiting = self.waiting;
        loop {
            if let Some(recording) = self.try_record(&folder)? {
                return Ok(recording);
            }
            if let Some(process) = long_lived(&folder) {
                return Err(ArchiveError::InUse(process));
            }
            waiting.pause();
        }
    }

    /// Opens the archive for recording; creates it if needed. Waits while another process records.
    pub fn record(&self) -> Result<Recording, ArchiveError> {
        if let Some(recording) = self.record_now()? {
            return Ok(recording);
        }
        let folder = self.folder()?;
        let mut waiting = self.waiting;
        waiting.notify();
        let lock = folder.wait_to_record().map_err(|error| unusable(&folder, error))?;
        Recording::begin(self.open_to_write(&folder)?, folder, lock)
    }

    /// Opens the archive for recording. None if another process records.
    pub fn record_now(&self) -> Result<Option<Recording>, ArchiveError> {
        self.try_record(&self.create()?)
    }

    fn try_record(&self, folder: &DataFolder) -> Result<Option<Recording>, ArchiveError> {
        let lock = folder.try_record().map_err(|error| unusable(folder, error))?;
        let Some(lock) = lock else { return Ok(None) };
        Recording::begin(self.open_to_write(folder)?, folder.clone(), lock).map(Some)
    }

    /// For write requests, executed here or by the recorder process.
    pub fn writer(&self) -> Result<Writer, ArchiveError> {
        Ok(Writer { archive: self.clone(), folder: self.create()?, own_recording: None })
    }

    fn create(&self) -> Result<DataFolder, ArchiveError> {
        let folder = self.folder()?;
        folder.create().map_err(|error| unusable(&folder, error))?;
        Ok(folder)
    }
}

fn unusable(folder: &DataFolder, source: io::Error) -> ArchiveError {
    ArchiveError::Folder { path: folder.path().to_owned(), source }
}

/// The process id of a long-running recorder, if there is one.
#[cfg(unix)]
fn long_lived(folder: &DataFolder) -> Option<u32> {
    let hello = crate::service::socket::recorder_hello(folder).ok().flatten()?;
    hello.long_lived.then_some(hello.process)
}

#[cfg(not(unix))]
fn long_lived(_: &DataFolder) -> Option<u32> {
    None
}

/// Waits for a short-lived recorder and says so once.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    notify: fn(),
    notified: bool,
}

impl Waiting {
    fn notify(&mut self) {
        if !std::mem::replace(&mut self.notified, true) {
            (self.notify)();
        }
    }

    fn pause(&mut self) {
        self.notify();
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Recording {
    fn begin(
        store: Database,
        folder: DataFolder,
        lock: RecorderLock,
    ) -> Result<Recording, ArchiveError> {
        let recorder = Recorder::new(store)?;
        Ok(Recording {
            // Without a socket (unsupported file system) nothing can follow; recording works.
            #[cfg(unix)]
            publisher: Publisher::start(&folder, recorder.clone()).ok(),
            recorder,
            folder,
            _lock: lock,
        })
    }

    /// Starts accepting requests from other processes.
    pub fn open(&self, request_queue: RequestQueue) {
        #[cfg(unix)]
        if let Some(publisher) = &self.publisher {
            publisher.open(request_queue);
        }
        #[cfg(not(unix))]
        drop(request_queue);
    }
}

/// Sends write requests to whichever process records.
pub struct Writer {
    archive: Archive,
    folder: DataFolder,
    /// Set from the first request on, if no other process records.
    own_recording: Option<(Recording, FileStates)>,
}

impl Writer {
    /// Executes a request. Waits for a short-lived recorder to finish; forwards the request to a
    /// long-running one.
    pub fn submit(
        &mut self,
        request: Request,
        progress: &Progress,
    ) -> Result<RequestOutcome, ArchiveError> {
        let mut waiting = self.archive.waiting;
        let mut overtaken = 0;
        loop {
            if let Some((recording, file_states)) = self.own_recording()? {
                let again = request.clone();
                let done = execute(&recording.recorder, file_states, again, progress, None);
                match done.map_err(ArchiveError::from) {
                    Err(error) if error.is_overtaken() && overtaken < MAX_OVERTAKEN => {
                        overtaken += 1;
                        self.release();
                        continue;
                    }
                    done => return done,
                }
            }
            #[cfg(unix)]
            match forward_request(&self.folder, &request)? {
                SocketReply::Completed(done) => return Ok(done),
                SocketReply::Failed(what) => return Err(ArchiveError::Refused(what)),
                SocketReply::Unavailable => {}
            }
            waiting.pause();
        }
    }

    /// Our own recorder, if this process can hold the lock.
    pub fn own_recording(&mut self) -> Result<Option<&mut (Recording, FileStates)>, ArchiveError> {
        if self.own_recording.is_none() {
            let Some(recording) = self.archive.try_record(&self.folder)? else { return Ok(None) };
            let file_states = FileStates::load(&recording.recorder)?;
            self.own_recording = Some((recording, file_states));
        }
        Ok(self.own_recording.as_mut())
    }

    /// Lets another process record, if this one does. The next request finds out again who records.
    pub fn release(&mut self) {
        self.own_recording = None;
    }
}

fn default_folder() -> Option<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) { variable("LOCALAPPDATA") } else { variable("XDG_DATA_HOME") };
    let base = base.or_else(|| Some(variable("HOME")?.join(".local").join("share")));
    base.map(|base| base.join("unspool"))
}
