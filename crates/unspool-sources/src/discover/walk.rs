//! Walks a folder tree for logs, with one directory listing per folder and one `stat` per file.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use unspool_model::source::FileStamp;

use super::file_stamp;
use crate::decode::Warning;

/// How to treat symlinks to folders. Symlinks to files count as files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SymlinkPolicy {
    Follow,
    Ignore,
}

#[derive(Default)]
pub(super) struct WalkResult {
    pub files: Vec<(PathBuf, FileStamp)>,
    pub warnings: Vec<Warning>,
    folders: Vec<PathBuf>,
    links: Vec<PathBuf>,
}

/// How deep to search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SearchDepth {
    /// Only the folder itself.
    TopLevel,
    /// The folder and everything below it.
    Recursive,
}

/// True if a path is a log.
type IsLog = fn(&Path) -> bool;

pub(super) fn walk(
    root: &Path,
    is_log: IsLog,
    depth: SearchDepth,
    symlinks: SymlinkPolicy,
) -> WalkResult {
    let mut walked = WalkResult::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        walked.list(&folder, is_log, &mut folders);
        walked.folders.push(folder);
        if depth == SearchDepth::TopLevel {
            folders.clear();
        }
    }
    walked.resolve(is_log, symlinks);
    walked
}

impl WalkResult {
    /// Sorts the entries of a folder into files, symlinks and folders.
    fn list(&mut self, folder: &Path, is_log: IsLog, folders: &mut Vec<PathBuf>) {
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) => return self.cannot_list(folder, &error),
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) if kind.is_dir() => folders.push(entry.path()),
                Ok((kind, entry)) if kind.is_symlink() => self.links.push(entry.path()),
                Ok((kind, entry)) if is_log(&entry.path()) => {
                    if kind.is_file() {
                        self.file(&entry);
                    } else {
                        self.warn(&entry.path(), "not a file".to_owned());
                    }
                }
                Ok(_) => {}
                Err(error) => self.cannot_list(folder, &error),
            }
        }
    }

    fn file(&mut self, entry: &DirEntry) {
        match entry.metadata() {
            Ok(metadata) => self.files.push((entry.path(), file_stamp(&metadata))),
            // Deleted after the folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.warn(&entry.path(), format!("cannot be read: {error}")),
        }
    }

    /// Follows symlinks after all real entries, so that nothing is found twice: neither a file
    /// that a symlink also leads to, nor a folder that links to itself.
    fn resolve(&mut self, is_log: IsLog, symlinks: SymlinkPolicy) {
        if self.links.is_empty() {
            return;
        }
        let walked = std::mem::take(&mut self.folders);
        let mut seen: FxHashSet<PathBuf> =
            walked.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        // The roots walked so far. A symlink to a parent of one could lead through the whole disk.
        let mut starts: Vec<PathBuf> =
            walked.first().and_then(|root| root.canonicalize().ok()).into_iter().collect();
        while let Some(link) = self.links.pop() {
            let log = is_log(&link);
            match link.canonicalize().and_then(|target| Ok((fs::metadata(&target)?, target))) {
                Ok((metadata, target))
                    if metadata.is_dir() && symlinks == SymlinkPolicy::Follow =>
                {
                    if !starts.iter().any(|start| start.starts_with(&target)) {
                        starts.push(target.clone());
                        self.walk_target(target, is_log, &mut seen);
                    }
                }
                Ok((metadata, target)) if metadata.is_file() && log => {
                    if target.parent().is_none_or(|folder| !seen.contains(folder)) {
                        self.files.push((link, file_stamp(&metadata)));
                    }
                }
                Ok(_) | Err(_) if log => self.warn(&link, "not a file".to_owned()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn walk_target(&mut self, target: PathBuf, is_log: IsLog, seen: &mut FxHashSet<PathBuf>) {
        let mut folders = vec![target];
        while let Some(folder) = folders.pop() {
            if !seen.contains(&folder) {
                self.list(&folder, is_log, &mut folders);
                seen.insert(folder);
            }
        }
    }

    fn cannot_list(&mut self, folder: &Path, error: &io::Error) {
        self.warn(folder, format!("cannot be listed: {error}"));
    }

    pub(super) fn warn(&mut self, path: &Path, what: String) {
        let file = path.to_string_lossy().into_owned();
        self.warnings.push(Warning { file, line: 0, what, bytes: Vec::new() });
    }
}
