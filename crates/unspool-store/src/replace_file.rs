//! Writes a file of the user: an export, an artifact, an agent's settings, a report. The old content
//! stays until the new one is complete, and only the owner may read a new file, because it has what
//! agents read and wrote.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// How many links may lead to the target, as in Linux.
const MAX_LINKS: usize = 40;

/// A file that is being written. Nothing is replaced until `commit`; dropping it changes nothing.
pub struct FileReplacement {
    target: PathBuf,
    out: Out,
}

enum Out {
    /// A new file beside the target, renamed over it by `commit`.
    Temporary { file: BufWriter<NamedTempFile>, permissions: Option<Permissions> },
    /// A device, a pipe or a socket: written to, since a rename would destroy it.
    Direct(BufWriter<File>),
}

impl FileReplacement {
    /// Begins to replace the file that `path` leads to, through links. The file keeps its mode; a
    /// new one is the owner's alone.
    pub fn begin(path: &Path) -> io::Result<FileReplacement> {
        let target = resolve(path)?;
        let permissions = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&target)?;
                return Ok(FileReplacement { target, out: Out::Direct(BufWriter::new(file)) });
            }
            // A rename would replace it nevertheless, which nobody expects of a protected file.
            Ok(found) if found.permissions().readonly() => {
                let what = "the file is read-only; make it writable or choose another one";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
            Ok(found) => Some(found.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        // A random name, created exclusively and with mode 0600.
        let file = tempfile::Builder::new()
            .prefix(".unspool-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        let out = Out::Temporary { file: BufWriter::new(file), permissions };
        Ok(FileReplacement { target, out })
    }

    /// Gives the new file the mode of another one: for a copy.
    pub fn with_permissions(mut self, of: Permissions) -> FileReplacement {
        if let Out::Temporary { permissions, .. } = &mut self.out {
            *permissions = Some(of);
        }
        self
    }

    /// True if the target already has what was written.
    pub fn changes_nothing(&mut self) -> io::Result<bool> {
        self.flush()?;
        let Out::Temporary { file, .. } = &self.out else { return Ok(false) };
        match File::open(&self.target) {
            Ok(old) => have_equal_content(file.get_ref().reopen()?, old),
            Err(_) => Ok(false),
        }
    }

    pub fn commit(self) -> io::Result<()> {
        match self.out {
            Out::Direct(mut file) => file.flush(),
            Out::Temporary { file, permissions } => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                if let Some(permissions) = permissions {
                    file.as_file().set_permissions(permissions)?;
                }
                file.as_file().sync_all()?;
                file.persist(&self.target).map_err(|error| error.error)?;
                Ok(())
            }
        }
    }
}

impl Write for FileReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Out::Temporary { file, .. } => file.write(bytes),
            Out::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Temporary { file, .. } => file.flush(),
            Out::Direct(file) => file.flush(),
        }
    }
}

/// Replaces the content of a file.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = FileReplacement::begin(path)?;
    file.write_all(content)?;
    file.commit()
}

/// Where a path leads, also if the last link points to nothing yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().map_or_else(|| to.clone(), |folder| folder.join(&to)),
            // Not a link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

fn have_equal_content(one: impl Read, other: impl Read) -> io::Result<bool> {
    let (mut one, mut other) = (io::BufReader::new(one).bytes(), io::BufReader::new(other).bytes());
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (a, b) if a != b => return Ok(false),
            _ => {}
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
#[path = "replace_file_tests.rs"]
mod tests;
