//! Where the archive lies, and opening it: to read, which is always possible, or to record, which
//! one process at a time may do.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use unspool_engine::lock::{DataFolder, RecorderLock};
#[cfg(unix)]
use unspool_engine::socket::Publisher;
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, StoredSession};
use unspool_store::recorder::Recorder;
use unspool_store::sqlite::Sqlite;

/// The archive of this user.
pub struct Archive {
    data: Option<PathBuf>,
}

/// The right to write, with what is written to. The lock goes last.
pub struct Recording {
    pub recorder: Recorder<Sqlite>,
    #[cfg(unix)]
    _publisher: Option<Publisher>,
    _lock: RecorderLock,
}

impl Archive {
    pub fn new(data: Option<PathBuf>) -> Archive {
        Archive { data }
    }

    pub fn folder(&self) -> Result<DataFolder> {
        let folder = self.data.clone().filter(|data| !data.as_os_str().is_empty());
        folder.or_else(default_folder).map(DataFolder::new).ok_or_else(|| {
            anyhow!("there is no home folder to keep the archive in; say where with --data DIR")
        })
    }

    /// Opens the archive to read it.
    pub fn read(&self) -> Result<Sqlite> {
        Ok(Sqlite::open_to_read(&self.folder()?.database())?)
    }

    /// The same for an archive that must be there already.
    pub fn record_existing(&self) -> Result<Recording> {
        drop(self.read()?);
        self.record()
    }

    /// Opens the archive to write to it; makes it if there is none. Waits for a process that
    /// writes just now.
    pub fn record(&self) -> Result<Recording> {
        let folder = self.folder()?;
        let path = folder.path().display().to_string();
        let context =
            || format!("cannot use {path} for the archive; choose another folder with --data DIR");
        folder.create().with_context(context)?;
        let lock = match folder.try_record().with_context(context)? {
            Some(lock) => lock,
            None => {
                if stderr().is_terminal() {
                    eprintln!("unspool: another unspool is recording; waiting for it to finish");
                }
                folder.wait_to_record().with_context(context)?
            }
        };
        let recorder = Recorder::new(Sqlite::open(&folder.database())?)?;
        Ok(Recording {
            // Nobody can follow where there can be no socket; recording goes on without.
            #[cfg(unix)]
            _publisher: Publisher::start(&folder, recorder.clone()).ok(),
            recorder,
            _lock: lock,
        })
    }
}

fn default_folder() -> Option<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) { variable("LOCALAPPDATA") } else { variable("XDG_DATA_HOME") };
    let base = base.or_else(|| Some(variable("HOME")?.join(".local").join("share")));
    base.map(|base| base.join("unspool"))
}

/// The one session that a person means: our id, a unique start of it, or the agent's own id.
pub fn find(store: &Sqlite, text: &str) -> Result<StoredSession> {
    let mut found = wait(store.find(text.to_owned()))?;
    if found.len() > 1 {
        let ids: Vec<String> = found
            .iter()
            .map(|stored| {
                let session = &stored.summary.session;
                format!("{}  {}", session.id, stored.summary.title.as_deref().unwrap_or_default())
            })
            .collect();
        bail!(
            "{text} may be one of {} sessions; say more of its id:\n  {}",
            ids.len(),
            ids.join("\n  ")
        );
    }
    found.pop().ok_or_else(|| {
        anyhow!("there is no session {text} in the archive; `unspool list` shows what there is")
    })
}
