//! The lines of a file with the commits that they come from, and these commits with what they
//! changed in it. Lines of the working tree are compared with HEAD here: git would run the filters
//! that the repository names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_view::present::blame::{CommitLine, CommitLines, LineKey, kept_lines};

use super::formatter_runs::{self, RunCommit};
use super::{BlameError, BlameRequest};
use crate::git::blame_output::{self, BlamedLine, LineOrigin};
use crate::git::log::{self, Commit, Follow};
use crate::git::{Repository, normal_path, read_all, read_file};

/// A larger file is no text that people read.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// A file with a zero byte in its beginning is binary, as for git.
const BINARY_CHECK_BYTES: usize = 8000;

/// Where a file is, under all its names.
pub struct FilePlace {
    /// To show: relative to the repository, or absolute.
    pub name: String,
    /// The folders in which the names are: all working trees of the repository.
    pub folders: Vec<PathBuf>,
    /// Its names, relative to these folders.
    pub names: FxHashSet<String>,
}

pub struct FileHistory {
    pub place: FilePlace,
    pub lines: Vec<FileLine>,
    /// Oldest first. What is in no commit is the last one.
    pub commits: Vec<CommitLines>,
    /// How many lines with a text each of them removed.
    pub removed: Vec<FxHashMap<LineKey, usize>>,
}

pub struct FileLine {
    pub text: String,
    pub key: LineKey,
    /// The commit that git names; None if the line is in none.
    pub commit: Option<String>,
    /// Where its text comes from: one line of a commit, or several if a formatter joined them.
    pub origins: Vec<Origin>,
    /// A formatter laid it out anew since.
    pub is_reflowed: bool,
    /// Where git finds it if it ignores white space and follows moved lines, if that is another
    /// place.
    pub earlier: Option<Origin>,
}

/// A line of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// None for a commit that changed no line of the file by itself, such as a merge.
    pub commit: Option<usize>,
    pub number: u32,
}

/// Reads a file and its history.
pub fn read(request: &BlameRequest) -> Result<FileHistory, BlameError> {
    let path = absolute(&request.file)?;
    let folder = existing_folder(&path);
    let Some(repository) = Repository::of(&folder)? else {
        if request.revision.is_some() {
            let what = "it is in no git repository, so it has no revisions; leave out --rev";
            return Err(BlameError::file(&request.file, what));
        }
        return outside_of_git(&path, &request.file);
    };
    let relative = path.strip_prefix(&repository.root).unwrap_or(&path).to_owned();
    let revision = request.revision.as_deref().unwrap_or("HEAD");
    let head = repository.commit(revision)?;
    let committed = match &head {
        Some(commit) => repository.file(commit, &relative)?,
        None => None,
    };
    let current = match &request.revision {
        Some(revision) => {
            let what = format!("there is no such file in {revision}");
            committed.clone().ok_or_else(|| BlameError::file(&request.file, what))?
        }
        None => working_file(&path, &request.file, committed.is_some())?,
    };
    check_text(&current, &request.file)?;
    let text = String::from_utf8_lossy(&current);
    let mut history = match head.filter(|_| committed.is_some()) {
        Some(commit) => committed_history(&repository, &commit, &relative)?,
        None => empty_history(),
    };
    if request.revision.is_none() {
        let old = committed.unwrap_or_default();
        history.add_working_tree(&String::from_utf8_lossy(&old), &text, changed_at(&path));
    }
    let name = relative.to_string_lossy().into_owned();
    history.place.names.insert(name.clone());
    history.place.name = name;
    history.place.folders = repository.working_trees();
    Ok(history)
}

/// The absolute path without symbolic links. The file itself may be gone.
fn absolute(file: &Path) -> Result<PathBuf, BlameError> {
    let path = std::path::absolute(file)
        .map(|path| normal_path(&path))
        .map_err(|error| BlameError::file(file, error.to_string()))?;
    if let Ok(whole) = path.canonicalize() {
        return Ok(whole);
    }
    let folder = existing_folder(&path);
    let rest = path.strip_prefix(&folder).unwrap_or(&path);
    Ok(folder.canonicalize().unwrap_or_else(|_| folder.clone()).join(rest))
}

/// The innermost folder of a path that exists.
fn existing_folder(path: &Path) -> PathBuf {
    let mut folders = path.ancestors().skip(1);
    folders.find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

fn working_file(path: &Path, shown: &Path, is_committed: bool) -> Result<Vec<u8>, BlameError> {
    if path.is_dir() {
        return Err(BlameError::file(shown, "it is a folder; give a file"));
    }
    match read_file(path, MAX_FILE_BYTES) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(too_large(shown)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && is_committed => {
            let what = "it was deleted; `--rev HEAD` reads it from the last commit";
            Err(BlameError::file(shown, what))
        }
        Err(error) => Err(BlameError::file(shown, error.to_string())),
    }
}

fn too_large(shown: &Path) -> BlameError {
    let megabytes = MAX_FILE_BYTES / (1024 * 1024);
    BlameError::file(shown, format!("it is larger than {megabytes} MB"))
}

fn check_text(bytes: &[u8], shown: &Path) -> Result<(), BlameError> {
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(shown));
    }
    if bytes[..bytes.len().min(BINARY_CHECK_BYTES)].contains(&0) {
        return Err(BlameError::file(shown, "it is a binary file, which has no lines"));
    }
    Ok(())
}

/// When a file was last written, in seconds.
fn changed_at(path: &Path) -> i64 {
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(i64::MAX, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn empty_history() -> FileHistory {
    let place = FilePlace { name: String::new(), folders: Vec::new(), names: FxHashSet::default() };
    FileHistory { place, lines: Vec::new(), commits: Vec::new(), removed: Vec::new() }
}

fn outside_of_git(path: &Path, shown: &Path) -> Result<FileHistory, BlameError> {
    let bytes = working_file(path, shown, false)?;
    check_text(&bytes, shown)?;
    let mut history = empty_history();
    history.add_working_tree("", &String::from_utf8_lossy(&bytes), changed_at(path));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    history.place.folders = path.parent().map(Path::to_owned).into_iter().collect();
    history.place.names.insert(name);
    history.place.name = path.to_string_lossy().into_owned();
    Ok(history)
}

fn committed_history(
    repository: &Repository,
    commit: &str,
    path: &Path,
) -> Result<FileHistory, BlameError> {
    let blame = |options: &[&str]| -> Vec<OsString> {
        let words = ["blame", "--porcelain", "--no-textconv"].into_iter();
        let words = words.chain(options.iter().copied()).chain([commit, "--"]);
        words.map(OsString::from).chain([path.as_os_str().to_owned()]).collect()
    };
    let log = log::arguments(&[commit], Follow::Renames, &[path]);
    let [plain, followed, log] = read_all(repository, [blame(&[]), blame(&["-w", "-M"]), log]);
    let mut history = empty_history();
    let mut numbers: FxHashMap<std::sync::Arc<str>, usize> = FxHashMap::default();
    let mut runs: Vec<RunCommit> = Vec::new();
    for Commit { id, files, .. } in log::parse(&log?) {
        for file in files {
            let number = history.commits.len();
            if let Some(run) = file.run {
                let path = file.renamed_from.as_ref().unwrap_or(&file.path).clone();
                runs.push(RunCommit { id: id.to_string(), path, run });
            }
            history.place.names.extend(file.renamed_from);
            history.place.names.insert(file.path);
            numbers.insert(id.clone(), number);
            history.commits.push(file.lines);
            history.removed.push(file.removed);
        }
    }
    let origin = |origin: &LineOrigin| Origin {
        commit: numbers.get(&origin.commit).copied(),
        number: origin.number,
    };
    let followed = blame_output::parse(&followed?);
    for (at, BlamedLine { origin: from, text, .. }) in
        blame_output::parse(&plain?).into_iter().enumerate()
    {
        let earlier = followed.get(at).map(|line| &line.origin).filter(|other| **other != from);
        history.lines.push(FileLine {
            key: LineKey::of(&text),
            text,
            commit: Some(from.commit.to_string()),
            origins: vec![origin(&from)],
            is_reflowed: false,
            earlier: earlier.map(origin),
        });
    }
    if !runs.is_empty() {
        let (commits, lines) = (&history.commits, &mut history.lines);
        let name = path.to_string_lossy();
        formatter_runs::follow(repository, commit, &name, &runs, &numbers, commits, lines)?;
    }
    for line in &mut history.lines {
        line.earlier = line.earlier.filter(|earlier| !line.origins.contains(earlier));
    }
    Ok(history)
}

/// The lines of a text. Their ends may differ between the working tree and a commit.
fn lines_of(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.trim_end_matches('\r')).collect()
}

impl FileHistory {
    /// Replaces the lines of the last commit by those of the working tree. What differs is one more
    /// commit.
    fn add_working_tree(&mut self, old: &str, new: &str, changed_at: i64) {
        let (old_lines, new_lines) = (lines_of(old), lines_of(new));
        let kept = kept_lines(&old_lines, &new_lines);
        let mut earlier: Vec<Option<FileLine>> =
            std::mem::take(&mut self.lines).into_iter().map(Some).collect();
        let number = self.commits.len();
        let mut commit = CommitLines {
            author_time: changed_at,
            committer_time: changed_at,
            lines: Vec::with_capacity(kept.len()),
        };
        for (at, (text, from)) in new.lines().zip(&kept).enumerate() {
            let line = at as u32 + 1;
            commit.lines.push(CommitLine::new(text.to_owned(), line, from.is_none()));
            let committed = from.and_then(|from| earlier.get_mut(from)).and_then(Option::take);
            self.lines.push(committed.unwrap_or_else(|| FileLine {
                text: text.to_owned(),
                key: LineKey::of(text),
                commit: None,
                origins: vec![Origin { commit: Some(number), number: line }],
                is_reflowed: false,
                earlier: None,
            }));
        }
        let mut removed: FxHashMap<LineKey, usize> = FxHashMap::default();
        for line in earlier.iter().flatten() {
            *removed.entry(line.key).or_default() += 1;
        }
        self.commits.push(commit);
        // Lines that were moved or reformatted since the last commit.
        let mut gone: FxHashMap<LineKey, Vec<Origin>> = FxHashMap::default();
        for line in earlier.into_iter().flatten().rev() {
            let origin = line.earlier.or(line.origins.first().copied());
            gone.entry(line.key).or_default().extend(origin);
        }
        let is_new = |line: &&mut FileLine| line.origins.iter().any(|it| it.commit == Some(number));
        for line in self.lines.iter_mut().filter(is_new) {
            line.earlier = gone.get_mut(&line.key).and_then(Vec::pop);
        }
        self.removed.push(removed);
    }
}
