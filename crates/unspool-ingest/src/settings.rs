//! Agents' settings files: what is planned to change in one, and the change itself. Hooks and the MCP
//! server are installed this way. Nothing is written until the caller carries out a plan.

mod entry;
mod hooks;
mod object;
mod toml_table;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use unspool_sources::read::regular_file::open_regular;
use unspool_store::replace_file::{FileReplacement, replace_file};

pub use entry::{with_entry, with_listed, without_entry};
pub use hooks::{group, own, with_hooks, without_hooks};
pub use object::NotSettings;
pub use toml_table::{with_table, without_table};

/// That a settings file could not be written.
#[derive(Debug, Error)]
#[error("cannot write {path}")]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

/// The text of a settings file; `None` if there is none.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    match open_regular(path).and_then(io::read_to_string) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A planned change of an agent's settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsPlan {
    pub path: PathBuf,
    /// None if the file does not exist.
    pub before: Option<String>,
    /// None to delete the file.
    pub after: Option<String>,
}

impl SettingsPlan {
    pub fn changes_nothing(&self) -> bool {
        self.before == self.after
    }

    /// Applies the change. Returns the path of the backup.
    pub fn apply(&self) -> Result<Option<PathBuf>, WriteError> {
        let failed = |source| WriteError { path: self.path.clone(), source };
        let backup = match &self.before {
            Some(before) => {
                let backup = backup_path(&self.path);
                copy_settings(&self.path, before, &backup).map_err(failed)?;
                Some(backup)
            }
            None => None,
        };
        match &self.after {
            Some(after) => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder).map_err(failed)?;
                }
                replace_file(&self.path, after.as_bytes()).map_err(failed)?;
            }
            None => fs::remove_file(&self.path).map_err(failed)?,
        }
        Ok(backup)
    }
}

/// Settings may hold keys: the backup may be read by those who may read the settings.
fn copy_settings(settings: &Path, text: &str, backup: &Path) -> io::Result<()> {
    let permissions = settings.metadata()?.permissions();
    let mut out = FileReplacement::begin(backup)?.with_permissions(permissions);
    out.write_all(text.as_bytes())?;
    out.commit()
}

/// A backup path that does not exist yet.
fn backup_path(path: &Path) -> PathBuf {
    let named = |nth: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if nth == 0 {
            ".before-unspool".to_owned()
        } else {
            format!(".before-unspool-{nth}")
        });
        PathBuf::from(name)
    };
    (0..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0))
}
