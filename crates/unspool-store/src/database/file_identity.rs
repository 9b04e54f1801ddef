//! Notices that the archive's file was deleted, moved or replaced while it is open. The operating
//! system lets a process go on with a deleted file, which nobody else can see and which is lost when
//! the process ends.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::{StoreError, StoreErrorKind};

/// Which file was at a path when it was opened.
#[derive(Clone, Debug)]
pub struct FileIdentity {
    path: PathBuf,
    /// None if there was no file, or if the system does not say.
    file: Option<FileNumber>,
}

/// Device and inode. The same as long as the file exists.
type FileNumber = (u64, u64);

impl FileIdentity {
    pub fn of(path: &Path) -> FileIdentity {
        FileIdentity { path: path.to_owned(), file: file_number(path).ok().flatten() }
    }

    /// Like `of`, for a file that was just opened. Fails if it is gone already.
    pub fn of_open(path: &Path) -> Result<FileIdentity, StoreError> {
        match file_number(path) {
            Err(error) if is_missing(&error) => Err(StoreError::new(StoreErrorKind::Gone).at(path)),
            Ok(_) | Err(_) => Ok(FileIdentity::of(path)),
        }
    }

    /// Fails if another file, or none, is at the path now. Costs one system call.
    pub fn check(&self) -> Result<(), StoreError> {
        let Some(file) = self.file else { return Ok(()) };
        let is_gone = match file_number(&self.path) {
            Ok(found) => found != Some(file),
            // Any other error, such as a lack of permissions, does not mean that it is gone.
            Err(error) => is_missing(&error),
        };
        if is_gone {
            return Err(StoreError::new(StoreErrorKind::Gone).at(&self.path));
        }
        Ok(())
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn file_number(path: &Path) -> io::Result<Option<FileNumber>> {
    use std::os::unix::fs::MetadataExt;
    let found = path.metadata()?;
    Ok(Some((found.dev(), found.ino())))
}

#[cfg(not(unix))]
fn file_number(path: &Path) -> io::Result<Option<FileNumber>> {
    // An open file cannot be deleted there.
    path.metadata().map(|_| None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn another_file_at_the_path_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a/unspool.db"), folder.path().join("other"));
        assert!(FileIdentity::of(&path).check().is_ok(), "there was none");
        assert_eq!(FileIdentity::of_open(&path).unwrap_err().kind(), StoreErrorKind::Gone);
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(&path, "one").unwrap();
        let identity = FileIdentity::of(&path);
        fs::write(&path, "written to").unwrap();
        assert!(identity.check().is_ok());
        fs::rename(&path, &other).unwrap();
        assert_eq!(identity.check().unwrap_err().kind(), StoreErrorKind::Gone);
        fs::write(&path, "another").unwrap();
        let error = identity.check().unwrap_err().to_string();
        assert!(error.contains("unspool.db") && error.contains("replaced"), "{error}");
        fs::rename(&other, &path).unwrap();
        assert!(identity.check().is_ok(), "it is back");
        fs::remove_dir_all(folder.path().join("a")).unwrap();
        assert!(identity.check().is_err());
    }
}
