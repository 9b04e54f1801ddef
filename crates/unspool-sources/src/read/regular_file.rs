//! Opens regular files only. A pipe in the place of a log would block the reader for ever, and a
//! device would never end.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to read. Fails for a pipe, a device or a socket, and does not wait for its writer.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() || metadata.is_dir() {
        return Ok(file);
    }
    let what = "not a regular file; pass its content on standard input (`unspool import -`)";
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::open_regular;

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.jsonl");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let error = open_regular(path).unwrap_err().to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
    }
}
