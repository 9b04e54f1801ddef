//! Asks git about a repository, and never writes to it. A repository is hostile: its configuration
//! names programs (hooks, filters, text converters, pagers), and none of them may run.

pub mod blame_output;
pub mod log;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum GitError {
    #[error("git cannot be started; is it installed? ({0})")]
    NotStarted(io::Error),
    #[error("git {what} failed: {message}")]
    Failed { what: String, message: String },
}

/// A repository with its working tree.
pub struct Repository {
    /// The working tree, as git names it: without symbolic links.
    pub root: PathBuf,
}

/// Settings that start programs or change the output.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.pager=cat",
    "color.ui=false",
    "log.showSignature=false",
    "log.showRoot=true",
    "log.follow=false",
    "log.mailmap=false",
    "blame.ignoreRevsFile=",
    "diff.orderFile=/dev/null",
    "diff.relative=false",
];

/// Variables of a caller's repository. A path of the user decides, not these.
const FOREIGN_VARIABLES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_TRACE",
];

fn command(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["--no-pager", "--literal-pathspecs"]);
    git.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    FOREIGN_VARIABLES.iter().for_each(|name| {
        git.env_remove(name);
    });
    git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
    // A partial clone must not fetch what it lacks.
    git.env("GIT_NO_LAZY_FETCH", "1").env("LC_ALL", "C");
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    git
}

fn run(folder: &Path, arguments: &[&OsStr]) -> Result<Vec<u8>, GitError> {
    let what = arguments.first().map(|name| name.to_string_lossy().into_owned());
    let output = command(folder).args(arguments).output().map_err(GitError::NotStarted)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(GitError::Failed { what: what.unwrap_or_default(), message })
}

impl GitError {
    fn says(&self, words: &str) -> bool {
        matches!(self, GitError::Failed { message, .. } if message.contains(words))
    }
}

impl Repository {
    /// The repository whose working tree has this folder; None if there is none.
    pub fn of(folder: &Path) -> Result<Option<Repository>, GitError> {
        let arguments = ["rev-parse", "--show-toplevel"].map(OsStr::new);
        match run(folder, &arguments) {
            Ok(output) => Ok(Some(Repository { root: path_of(output.trim_ascii_end()) })),
            Err(error) if error.says("not a git repository") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What git writes on standard output.
    pub fn read(&self, arguments: &[&OsStr]) -> Result<Vec<u8>, GitError> {
        run(&self.root, arguments)
    }

    /// The addresses of its remotes, as host and path: `github.com/acme/app`.
    pub fn remotes(&self) -> Vec<String> {
        let arguments = ["config", "--get-regexp", "^remote\\..*\\.url$"].map(OsStr::new);
        let output = self.read(&arguments).unwrap_or_default();
        let lines = String::from_utf8_lossy(&output).into_owned();
        let urls = lines.lines().filter_map(|line| line.split_once(' '));
        urls.map(|(_, url)| host_and_path(url)).collect()
    }

    /// The folders of all working trees of the repository.
    pub fn working_trees(&self) -> Vec<PathBuf> {
        let arguments = ["worktree", "list", "--porcelain", "-z"].map(OsStr::new);
        let output = self.read(&arguments).unwrap_or_default();
        let fields = output.split(|byte| *byte == 0);
        let mut found: Vec<PathBuf> =
            fields.filter_map(|field| Some(path_of(field.strip_prefix(b"worktree ")?))).collect();
        if !found.contains(&self.root) {
            found.push(self.root.clone());
        }
        found
    }

    /// The id of a commit. None if the repository has no commits and `revision` is HEAD.
    pub fn commit(&self, revision: &str) -> Result<Option<String>, GitError> {
        let name = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        match self.read(&arguments.map(OsStr::new)) {
            Ok(output) => Ok(Some(String::from_utf8_lossy(output.trim_ascii()).into_owned())),
            Err(GitError::Failed { .. }) if revision == "HEAD" => Ok(None),
            Err(GitError::Failed { .. }) => Err(GitError::Failed {
                what: "rev-parse".to_owned(),
                message: format!("there is no commit {revision} in {}", self.root.display()),
            }),
            Err(error) => Err(error),
        }
    }

    /// Whether a commit has a file.
    pub fn has_file(&self, commit: &str, path: &Path) -> bool {
        let mut name = OsString::from(format!("{commit}:"));
        name.push(path);
        self.read(&[OsStr::new("cat-file"), OsStr::new("-e"), &name]).is_ok()
    }

    /// A file of a commit; None if the commit does not have it.
    pub fn file(&self, commit: &str, path: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let mut name = OsString::from(format!("{commit}:"));
        name.push(path);
        let arguments = [OsStr::new("cat-file"), OsStr::new("blob"), &name];
        match self.read(&arguments) {
            Ok(output) => Ok(Some(output)),
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What became of a file that a commit does not have.
pub enum Fate {
    /// No earlier commit has it either.
    NeverThere,
    Deleted,
    /// It has this name since.
    Renamed(PathBuf),
}

impl Repository {
    /// What became of a file that `commit` does not have.
    pub fn fate(&self, commit: &str, path: &Path) -> Result<Fate, GitError> {
        let options = ["log", "-1", "--diff-filter=D", "--no-renames", "--format=%H", commit, "--"];
        let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        arguments.push(path.as_os_str());
        let output = self.read(&arguments)?;
        let removed = String::from_utf8_lossy(output.trim_ascii()).into_owned();
        if removed.is_empty() {
            return Ok(Fate::NeverThere);
        }
        let options = ["diff-tree", "-r", "-M", "-z", "--name-status", "--diff-filter=R", &removed];
        let output = self.read(&options.map(OsStr::new))?;
        // `<commit>`, then `R<likeness>`, the old and the new name of each file.
        let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        let renames = fields.get(1..).unwrap_or_default().chunks_exact(3);
        let renamed = renames.map(|rename| (path_of(rename[1]), path_of(rename[2])));
        let mut renamed = renamed.filter(|(from, _)| from == path);
        Ok(renamed.next().map_or(Fate::Deleted, |(_, to)| Fate::Renamed(to)))
    }
}

/// The host and the path of a remote, without user, scheme and `.git`.
fn host_and_path(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let url = url.strip_suffix(".git").unwrap_or(url);
    let (is_scp, rest) = match url.split_once("://") {
        Some((_, rest)) => (false, rest),
        None => (true, url),
    };
    let (host, path) = match is_scp {
        // `git@github.com:acme/app`; a path without a colon stays as it is.
        true => rest.split_once(':').unwrap_or((rest, "")),
        false => rest.split_once('/').unwrap_or((rest, "")),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = if is_scp { host } else { host.split(':').next().unwrap_or(host) };
    match path {
        "" => host.to_owned(),
        path => format!("{host}/{}", path.trim_start_matches('/')),
    }
}

/// Runs commands at the same time.
pub fn read_all<const COUNT: usize>(
    repository: &Repository,
    commands: [Vec<OsString>; COUNT],
) -> [Result<Vec<u8>, GitError>; COUNT] {
    let one = |arguments: &Vec<OsString>| {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
        repository.read(&arguments)
    };
    std::thread::scope(|scope| {
        let threads = commands.each_ref().map(|command| scope.spawn(move || one(command)));
        threads.map(|thread| {
            thread.join().unwrap_or_else(|_| {
                Err(GitError::NotStarted(io::Error::other("the thread that reads it ended")))
            })
        })
    })
}

/// Reads a file up to a size. None if it is larger.
pub fn read_file(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Without `.` and `..`, without looking at the disk.
pub fn normal_path(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normal.push(component);
            }
        }
    }
    normal
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// A name as git writes it: quoted in the manner of C if it has special characters.
fn unquote(name: &[u8]) -> String {
    let Some(inner) = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")) else {
        return String::from_utf8_lossy(name).into_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'v') => bytes.push(11),
            Some(b'f') => bytes.push(12),
            Some(digit @ b'0'..=b'3') => {
                let more = rest.by_ref().take(2).map(|digit| u32::from(digit.wrapping_sub(b'0')));
                let value = more.fold(u32::from(digit - b'0'), |value, digit| value * 8 + digit);
                bytes.push(value as u8);
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
