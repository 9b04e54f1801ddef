//! The lines of a file with the commits that they come from, and these commits with what they
//! changed in it. Lines of the working tree are compared with HEAD here: git would run the filters
//! that the repository names.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_view::present::blame::{Base, Content, Reflow, Version, VersionLine, kept_lines};

use super::{BlameError, BlameRequest};
use crate::git::blame_output::{self, BlamedLine};
use crate::git::log::{self, Commit, CommitFile, Follow};
use crate::git::{GitError, Repository, normal_path, read_all, read_file};

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
    /// How the file came to these lines: each version after those that it was made from.
    pub versions: Vec<Version>,
}

pub struct FileLine {
    pub text: String,
    /// The commit that git names; None if the line is in none.
    pub commit: Option<String>,
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
    FileHistory { place, lines: Vec::new(), versions: Vec::new() }
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
    let blame = ["blame", "--porcelain", "--no-textconv", commit, "--"].map(OsString::from);
    let blame = blame.into_iter().chain([path.as_os_str().to_owned()]).collect();
    let mut name = OsString::from(format!("{commit}:"));
    name.push(path);
    let blob = ["rev-parse", "--verify", "--end-of-options"].map(OsString::from);
    let blob = blob.into_iter().chain([name]).collect();
    let log = log::arguments(&[commit], Follow::Renames, &[path]);
    let [blame, log, blob] = read_all(repository, [blame, log, blob]);
    let mut history = empty_history();
    let mut versions = Versions { repository, by_blob: FxHashMap::default(), found: Vec::new() };
    for Commit { files, author_time, committer_time, .. } in log::parse(&log?) {
        for file in files {
            versions.add(&file, author_time.max(committer_time))?;
            history.place.names.extend(file.renamed_from);
            history.place.names.insert(file.path);
        }
    }
    // What a merge made is in no commit of the log.
    let base = versions.base(String::from_utf8_lossy(blob?.trim_ascii()).as_ref())?;
    versions.found.push(Version {
        base,
        content: Content::Changes(Vec::new()),
        added: Vec::new(),
        time: i64::MIN,
        reflow: None,
    });
    history.versions = versions.found;
    let lines = blame_output::parse(&blame?).into_iter();
    let line = |line: BlamedLine| FileLine {
        text: line.text,
        commit: Some(line.origin.commit.to_string()),
    };
    history.lines = lines.map(line).collect();
    Ok(history)
}

/// The versions that commits made.
struct Versions<'a> {
    repository: &'a Repository,
    /// The last version with a text.
    by_blob: FxHashMap<String, usize>,
    found: Vec<Version>,
}

impl Versions<'_> {
    fn add(&mut self, file: &CommitFile, time: i64) -> Result<(), GitError> {
        let Some((old, new)) = &file.blobs else { return Ok(()) };
        let base = self.base(old)?;
        let content = match file.replaced.is_empty() {
            // Git shows no lines of a binary file.
            true => Content::Whole(self.lines(new)?),
            false => Content::Changes(file.changes()),
        };
        let reflow = file.run.clone().map(|run| -> Reflow {
            Box::new(move |line| {
                let before = run.before(u32::try_from(line + 1).unwrap_or(u32::MAX));
                before.map_or(0..0, |it| it.first as usize - 1..it.last as usize)
            })
        });
        self.by_blob.insert(new.clone(), self.found.len());
        self.found.push(Version { base, content, added: file.added_keys(), time, reflow });
        Ok(())
    }

    fn base(&self, blob: &str) -> Result<Base, GitError> {
        if blob.bytes().all(|byte| byte == b'0') {
            return Ok(Base::Empty);
        }
        Ok(match self.by_blob.get(blob) {
            Some(version) => Base::Version(*version),
            None => Base::Merged(self.lines(blob)?),
        })
    }

    fn lines(&self, blob: &str) -> Result<Vec<VersionLine>, GitError> {
        if blob.bytes().all(|byte| byte == b'0') {
            return Ok(Vec::new());
        }
        let text = self.repository.read(&["cat-file", "blob", blob].map(OsStr::new))?;
        Ok(String::from_utf8_lossy(&text).lines().map(VersionLine::of).collect())
    }
}

/// The lines of a text. Their ends may differ between the working tree and a commit.
fn lines_of(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.trim_end_matches('\r')).collect()
}

impl FileHistory {
    /// Replaces the lines of the last commit by those of the working tree. What differs is one more
    /// version.
    fn add_working_tree(&mut self, old: &str, new: &str, changed_at: i64) {
        let kept = kept_lines(&lines_of(old), &lines_of(new));
        let mut earlier: Vec<Option<FileLine>> =
            std::mem::take(&mut self.lines).into_iter().map(Some).collect();
        for (text, from) in new.lines().zip(&kept) {
            let committed = from.and_then(|from| earlier.get_mut(from)).and_then(Option::take);
            let new_line = || FileLine { text: text.to_owned(), commit: None };
            self.lines.push(committed.unwrap_or_else(new_line));
        }
        let base = self.versions.len().checked_sub(1).map_or(Base::Empty, Base::Version);
        self.versions.push(Version {
            base,
            content: Content::Whole(new.lines().map(VersionLine::of).collect()),
            added: Vec::new(),
            time: changed_at,
            reflow: None,
        });
    }
}
