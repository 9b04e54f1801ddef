//! Locates and opens the archive: for reading, which is always possible, or for recording, which
//! only one process may do at a time.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use unspool_engine::lock::{DataFolder, RecorderLock};
use unspool_engine::report::Progress;
use unspool_engine::request::{Request, RequestOutcome, carry_out};
use unspool_engine::request_queue::RequestQueue;
#[cfg(unix)]
use unspool_engine::socket::{Publisher, SocketReply, forward_request};
use unspool_engine::sync::FileStates;
use unspool_store::blocking::block_on;
use unspool_store::recorder::Recorder;
use unspool_store::sqlite::Sqlite;
use unspool_store::store::{Store, StoredSession};

/// The archive of this user.
pub struct Archive {
    data: Option<PathBuf>,
}

/// The recorder and its lock. Fields drop in order: the lock is released last.
pub struct Recording {
    pub recorder: Recorder<Sqlite>,
    #[cfg(unix)]
    publisher: Option<Publisher>,
    _lock: RecorderLock,
}

impl Archive {
    pub fn new(data: Option<PathBuf>) -> Archive {
        Archive { data }
    }

    /// The data folder given by --data or UNSPOOL_DATA.
    pub fn named_folder(&self) -> Option<PathBuf> {
        self.data.clone().filter(|data| !data.as_os_str().is_empty())
    }

    pub fn folder(&self) -> Result<DataFolder> {
        let folder = self.named_folder().or_else(default_folder).ok_or_else(|| {
            anyhow!("there is no home folder for the archive; choose a folder with --data DIR")
        })?;
        // Files are stored by absolute path, however the folder was named.
        Ok(DataFolder::new(std::path::absolute(folder)?))
    }

    /// Opens the archive for reading.
    pub fn read(&self) -> Result<Sqlite> {
        Ok(Sqlite::open_to_read(&self.folder()?.database())?)
    }

    /// Opens an existing archive for maintenance. A running recorder cannot do this on our behalf,
    /// so it fails at once if a long-running one holds the lock.
    pub fn record_alone(&self) -> Result<Recording> {
        drop(self.read()?);
        let folder = self.folder()?;
        let mut waiting = Waiting::default();
        loop {
            if let Some(lock) = folder.try_record().with_context(|| cannot_use(&folder))? {
                return Recording::begin(&folder, lock);
            }
            if let Some(process) = long_lived(&folder) {
                bail!(
                    "another unspool is recording (process {process}), and this command needs the \
                     archive to itself; end that process and run it again"
                );
            }
            waiting.pause();
        }
    }

    /// Opens the archive for recording; creates it if needed. Waits while another process records.
    pub fn record(&self) -> Result<Recording> {
        let folder = self.folder()?;
        let context = || cannot_use(&folder);
        folder.create().with_context(context)?;
        let lock = match folder.try_record().with_context(context)? {
            Some(lock) => lock,
            None => {
                Waiting::default().say();
                folder.wait_to_record().with_context(context)?
            }
        };
        Recording::begin(&folder, lock)
    }

    /// Opens the archive for recording. None if another process records.
    pub fn record_now(&self) -> Result<Option<Recording>> {
        let folder = self.folder()?;
        folder.create().with_context(|| cannot_use(&folder))?;
        let lock = folder.try_record().with_context(|| cannot_use(&folder))?;
        lock.map(|lock| Recording::begin(&folder, lock)).transpose()
    }

    /// For write requests, executed here or by the recorder process.
    pub fn writer(&self) -> Result<Writer> {
        let folder = self.folder()?;
        folder.create().with_context(|| cannot_use(&folder))?;
        Ok(Writer { folder, own_recording: None })
    }
}

fn cannot_use(folder: &DataFolder) -> String {
    let path = folder.path().display();
    format!("cannot use {path} for the archive; choose another folder with --data DIR")
}

/// The process id of a long-running recorder, if there is one.
#[cfg(unix)]
fn long_lived(folder: &DataFolder) -> Option<u32> {
    let hello = unspool_engine::socket::recorder_hello(folder).ok().flatten()?;
    hello.long_lived.then_some(hello.process)
}

#[cfg(not(unix))]
fn long_lived(_: &DataFolder) -> Option<u32> {
    None
}

/// Waits for a short-lived recorder and says so once.
#[derive(Default)]
struct Waiting {
    said: bool,
}

impl Waiting {
    fn say(&mut self) {
        if stderr().is_terminal() && !self.said {
            eprintln!("unspool: another unspool is recording; waiting for it to finish");
        }
        self.said = true;
    }

    fn pause(&mut self) {
        self.say();
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Recording {
    fn begin(folder: &DataFolder, lock: RecorderLock) -> Result<Recording> {
        let recorder = Recorder::new(Sqlite::open(&folder.database())?)?;
        Ok(Recording {
            // Without a socket (unsupported file system) nothing can follow; recording works.
            #[cfg(unix)]
            publisher: Publisher::start(folder, recorder.clone()).ok(),
            recorder,
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
    folder: DataFolder,
    /// Set from the first request on, if no other process records.
    own_recording: Option<(Recording, FileStates)>,
}

impl Writer {
    /// Executes a request. Waits for a short-lived recorder to finish; forwards the request to a
    /// long-running one.
    pub fn submit(&mut self, request: Request, progress: &Progress) -> Result<RequestOutcome> {
        let mut waiting = Waiting::default();
        loop {
            if let Some((recording, file_states)) = self.own_recording()? {
                return Ok(carry_out(&recording.recorder, file_states, request, progress)?);
            }
            #[cfg(unix)]
            match forward_request(&self.folder, &request)? {
                SocketReply::Completed(done) => return Ok(done),
                SocketReply::Failed(what) => bail!("{what}"),
                SocketReply::Unavailable => {}
            }
            waiting.pause();
        }
    }

    /// Our own recorder, if this process can hold the lock.
    pub fn own_recording(&mut self) -> Result<Option<&mut (Recording, FileStates)>> {
        if self.own_recording.is_none() {
            let folder = &self.folder;
            let Some(lock) = folder.try_record().with_context(|| cannot_use(folder))? else {
                return Ok(None);
            };
            let recording = Recording::begin(folder, lock)?;
            let file_states = FileStates::load(&recording.recorder)?;
            self.own_recording = Some((recording, file_states));
        }
        Ok(self.own_recording.as_mut())
    }
}

fn default_folder() -> Option<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) { variable("LOCALAPPDATA") } else { variable("XDG_DATA_HOME") };
    let base = base.or_else(|| Some(variable("HOME")?.join(".local").join("share")));
    base.map(|base| base.join("unspool"))
}

/// Finds one session by our id, a unique prefix of it, or the agent's own id.
pub fn find(store: &Sqlite, text: &str) -> Result<StoredSession> {
    let mut found = block_on(store.find(text.to_owned()))?;
    if found.len() > 1 {
        let ids: Vec<String> = found
            .iter()
            .map(|stored| {
                let session = &stored.summary.session;
                format!("{}  {}", session.id, stored.summary.title.as_deref().unwrap_or_default())
            })
            .collect();
        bail!(
            "{text} matches {} sessions; give more of the id:\n  {}",
            ids.len(),
            ids.join("\n  ")
        );
    }
    found.pop().ok_or_else(|| {
        anyhow!("there is no session {text} in the archive; `unspool list` shows all sessions")
    })
}
