//! Captures of standard input. The recorder may be another process, which cannot read our standard
//! input, so `unspool import -` appends every line to a file in the data folder as it arrives and
//! has the recorder read what is new. The recorder reads that file like any log that grows.
//!
//! A capture is kept for a while (`hooks::spool::sweep`), because it is how the same input is
//! recognised when it is piped in again: a new input that begins like a capture continues it. The
//! first record alone would not do. All runs of `codex exec resume` begin with the same one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use unspool_model::id::digest;
use unspool_store::private_file;

use crate::lock::DataFolder;

/// What messages call a capture of standard input.
pub const STDIN_NAME: &str = "standard input";

/// Files of this age count as finished, so that a last line without a line end is read.
const FINISHED_AGE: Duration = Duration::from_secs(120);

impl DataFolder {
    /// The folder of captured standard input. It is not watched: the command that writes a capture
    /// has it read, and reports what was read.
    pub fn stdin_captures(&self) -> PathBuf {
        self.path().join("stdin")
    }
}

/// What to call a file in messages, and what to name a session after that has no id.
pub fn display_name(path: &str) -> &str {
    let path = Path::new(path);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let within = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "stdin");
    let is_capture = within && name.starts_with("stdin-") && name.ends_with(".jsonl");
    if is_capture { STDIN_NAME } else { path.to_str().unwrap_or_default() }
}

/// True if a file is a capture that a running `unspool import -` still writes.
pub fn is_being_written(path: &Path) -> bool {
    let is_capture = path.to_str().is_some_and(|path| display_name(path) == STDIN_NAME);
    is_capture && File::open(path).is_ok_and(|file| file.try_lock_shared().is_err())
}

/// A capture that is being written.
pub struct StdinCapture {
    folder: PathBuf,
    state: State,
    /// The length of what has arrived.
    length: u64,
}

enum State {
    /// Nothing has arrived.
    Empty,
    /// The input is so far the same as these captures.
    Repeating {
        first: u64,
        earlier: Vec<Earlier>,
    },
    Writing(Writing),
}

struct Earlier {
    path: PathBuf,
    text: BufReader<File>,
}

struct Writing {
    path: PathBuf,
    file: File,
}

impl StdinCapture {
    pub fn new(folder: &DataFolder) -> io::Result<StdinCapture> {
        folder.create()?;
        let folder = folder.stdin_captures();
        fs::create_dir_all(&folder)?;
        Ok(StdinCapture { folder, state: State::Empty, length: 0 })
    }

    /// The file to read, and None before anything has arrived.
    pub fn path(&self) -> Option<&Path> {
        match &self.state {
            State::Empty => None,
            State::Repeating { earlier, .. } => earlier.first().map(|earlier| &*earlier.path),
            State::Writing(writing) => Some(&writing.path),
        }
    }

    /// True while the input is the same as an earlier one.
    pub fn is_repeating(&self) -> bool {
        matches!(self.state, State::Repeating { .. })
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Adds what has arrived. The first bytes must contain the first line.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let State::Empty = self.state {
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let first = digest(line);
            self.state = State::Repeating { first, earlier: self.earlier(first)? };
        }
        if let State::Repeating { first, earlier } = &mut self.state {
            let first = *first;
            match compare(std::mem::take(earlier), bytes, self.length)? {
                Compared::Same(same) => {
                    self.state = State::Repeating { first, earlier: same };
                }
                Compared::Longer { path, file, rest } => {
                    let mut writing = Writing { path, file };
                    writing.file.write_all(&bytes[rest..])?;
                    self.state = State::Writing(writing);
                }
                Compared::Other(before) => {
                    let mut writing = self.create(first)?;
                    if let Some(before) = before {
                        io::copy(&mut File::open(before)?.take(self.length), &mut writing.file)?;
                    }
                    writing.file.write_all(bytes)?;
                    self.state = State::Writing(writing);
                }
            }
        } else if let State::Writing(writing) = &mut self.state {
            // A single write, so that a concurrent reader sees whole lines.
            writing.file.write_all(bytes)?;
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Marks the capture as finished: the next read takes a last line without a line end, too.
    pub fn finish(&self) -> io::Result<()> {
        match self.path() {
            Some(path) => {
                let file = OpenOptions::new().append(true).open(path)?;
                file.set_modified(SystemTime::now() - FINISHED_AGE)
            }
            None => Ok(()),
        }
    }

    /// The captures that begin with the same line, and that no other process is writing.
    fn earlier(&self, first: u64) -> io::Result<Vec<Earlier>> {
        let named = format!("stdin-{first:016x}-");
        let mut found = Vec::new();
        for entry in self.folder.read_dir()? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(&named))
                && let Ok(file) = options().open(&path)
                && file.try_lock().is_ok()
            {
                found.push(Earlier { path, text: BufReader::new(file) });
            }
        }
        // The order of a folder is arbitrary.
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn create(&self, first: u64) -> io::Result<Writing> {
        for number in 0.. {
            let path = self.capture_path(first, number);
            match options().create_new(true).open(&path) {
                Ok(file) => {
                    // Fails where locks are unsupported; nothing else writes there.
                    let _ = file.try_lock();
                    return Ok(Writing { path, file });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn capture_path(&self, first: u64, number: u32) -> PathBuf {
        self.folder.join(format!("stdin-{first:016x}-{number}.jsonl"))
    }
}

fn options() -> OpenOptions {
    let mut options = private_file::options();
    options.read(true).append(true);
    options
}

/// How an input compares with earlier captures.
enum Compared {
    /// These captures continue in the same way.
    Same(Vec<Earlier>),
    /// It goes on after the end of a capture, from this byte.
    Longer { path: PathBuf, file: File, rest: usize },
    /// It is no repetition. Its beginning is in this capture.
    Other(Option<PathBuf>),
}

/// Compares the next bytes of the input, which begin at `offset`, with earlier captures.
fn compare(earlier: Vec<Earlier>, bytes: &[u8], offset: u64) -> io::Result<Compared> {
    let mut same = Vec::new();
    let mut longer: Option<(Earlier, usize)> = None;
    let mut differing = None;
    for mut earlier in earlier {
        let mut next = Vec::with_capacity(bytes.len());
        (&mut earlier.text).take(bytes.len() as u64).read_to_end(&mut next)?;
        if !bytes.starts_with(&next) {
            differing = Some(earlier.path);
        } else if next.len() == bytes.len() {
            same.push(earlier);
        } else if longer.as_ref().is_none_or(|(_, rest)| *rest < next.len()) {
            longer = Some((earlier, next.len()));
        }
    }
    if !same.is_empty() {
        return Ok(Compared::Same(same));
    }
    if let Some((Earlier { path, text }, rest)) = longer {
        return Ok(Compared::Longer { path, file: text.into_inner(), rest });
    }
    Ok(Compared::Other(differing.filter(|_| offset > 0)))
}

#[cfg(test)]
#[path = "stdin_capture_tests.rs"]
mod tests;
