//! Walks through a folder for the files with one ending: one listing for each folder and one look
//! at the stamp of each file.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use super::Stamp;
use crate::decode::Warning;

/// What to do with links to folders. Links to files are files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Follow,
    Leave,
}

#[derive(Default)]
pub(super) struct Walked {
    pub files: Vec<(PathBuf, Stamp)>,
    pub warnings: Vec<Warning>,
    folders: Vec<PathBuf>,
    links: Vec<PathBuf>,
}

pub(super) fn walk(root: &Path, extension: &str, follow: Links) -> Walked {
    let mut walked = Walked::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        walked.list(&folder, extension, &mut folders);
        walked.folders.push(folder);
    }
    walked.resolve(extension, follow);
    walked
}

impl Walked {
    /// Sorts what is in a folder into files, links and folders.
    fn list(&mut self, folder: &Path, extension: &str, folders: &mut Vec<PathBuf>) {
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) => return self.cannot_list(folder, &error),
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) if kind.is_dir() => folders.push(entry.path()),
                Ok((kind, entry)) if kind.is_symlink() => self.links.push(entry.path()),
                Ok((kind, entry)) if has_extension(Path::new(&entry.file_name()), extension) => {
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
            Ok(metadata) => self.files.push((entry.path(), Stamp::of(&metadata))),
            // Deleted since the folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.warn(&entry.path(), format!("cannot be read: {error}")),
        }
    }

    /// Follows links, after everything that is really there, so that nothing is found twice: not
    /// a file that a link leads to as well, and not a folder that holds a link to itself.
    fn resolve(&mut self, extension: &str, follow: Links) {
        if self.links.is_empty() {
            return;
        }
        let walked = std::mem::take(&mut self.folders);
        let mut seen: FxHashSet<PathBuf> =
            walked.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        // Where walks began. A link to a folder above one would lead through the whole disk.
        let mut starts: Vec<PathBuf> =
            walked.first().and_then(|root| root.canonicalize().ok()).into_iter().collect();
        while let Some(link) = self.links.pop() {
            let log = has_extension(&link, extension);
            match link.canonicalize().and_then(|target| Ok((fs::metadata(&target)?, target))) {
                Ok((metadata, target)) if metadata.is_dir() && follow == Links::Follow => {
                    if !starts.iter().any(|start| start.starts_with(&target)) {
                        starts.push(target.clone());
                        self.walk_target(target, extension, &mut seen);
                    }
                }
                Ok((metadata, target)) if metadata.is_file() && log => {
                    if target.parent().is_none_or(|folder| !seen.contains(folder)) {
                        self.files.push((link, Stamp::of(&metadata)));
                    }
                }
                Ok(_) | Err(_) if log => self.warn(&link, "not a file".to_owned()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn walk_target(&mut self, target: PathBuf, extension: &str, seen: &mut FxHashSet<PathBuf>) {
        let mut folders = vec![target];
        while let Some(folder) = folders.pop() {
            if !seen.contains(&folder) {
                self.list(&folder, extension, &mut folders);
                seen.insert(folder);
            }
        }
    }

    fn cannot_list(&mut self, folder: &Path, error: &io::Error) {
        self.warn(folder, format!("cannot be listed: {error}"));
    }

    fn warn(&mut self, path: &Path, what: String) {
        let file = path.to_string_lossy().into_owned();
        self.warnings.push(Warning { file, line: 0, what, bytes: Vec::new() });
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|held| held == extension)
}
