//! Commits and the sessions whose lines they hold.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::SessionId;
use unspool_store::store::{EditedFiles, StoreError, StoredSession, View};
use unspool_view::present::blame::{CommitLines, Confidence, claim_lines};
use unspool_view::present::changes::StandingCommit;

use super::BlameError;
use super::edits::load_edits;
use super::file_history::FilePlace;
use crate::git::log::{self, Commit, Follow};
use crate::git::{GitError, Repository, normal_path};

/// A commit and the sessions that wrote some of its lines.
pub struct CommitShares {
    pub id: Arc<str>,
    /// Seconds since 1970.
    pub author_time: i64,
    pub author: String,
    pub subject: String,
    /// The lines that it added.
    pub added: usize,
    /// Most lines first.
    pub sessions: Vec<SessionShare>,
}

/// How many lines of a commit a session wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionShare {
    pub session: SessionId,
    pub lines: usize,
    /// Those of them with the exact text of an edit.
    pub exact: usize,
}

/// The commits that hold lines of a session.
pub struct SessionCommits {
    /// The sessions that count: the session and its sub-agents.
    pub sessions: Vec<SessionId>,
    /// Newest first.
    pub commits: Vec<CommitShares>,
    /// Edited files that are in no repository of this machine.
    pub outside: Vec<String>,
}

/// The commits that hold lines that a session or its sub-agents wrote, in all repositories in which
/// it edited files.
pub async fn session_commits<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<SessionCommits, BlameError> {
    let subagents = view.subagents(stored.row).await?.into_iter().map(|agent| agent.session);
    let agents = view.sessions_by_id(subagents.collect()).await?;
    let all = || std::iter::once(stored).chain(&agents);
    let sessions: Vec<SessionId> = all().map(|stored| stored.summary.session.id).collect();
    let rows = all().map(|stored| stored.row).collect();
    let (files, outside) = files_by_repository(view, rows).await?;
    let mut commits = Vec::new();
    for (repository, paths) in files {
        let Some(head) = repository.commit("HEAD")? else { continue };
        let mut found = shares(view, &repository, &head, paths, None).await?;
        for commit in &mut found {
            commit.sessions.retain(|share| sessions.contains(&share.session));
        }
        found.retain(|commit| !commit.sessions.is_empty());
        // Only the session's files were read; the commit may have others.
        let ids: Vec<&str> = found.iter().map(|commit| &*commit.id).collect();
        let added = added_lines(&repository, &ids)?;
        for commit in &mut found {
            commit.added = added.get(&commit.id).copied().unwrap_or(commit.added);
        }
        commits.extend(found);
    }
    commits.sort_by_key(|commit| std::cmp::Reverse(commit.author_time));
    Ok(SessionCommits { sessions, commits, outside })
}

/// The commits of a range as git names it, newest first, with the sessions that made them.
pub async fn range_commits<V: View>(
    view: &V,
    folder: &Path,
    range: &str,
) -> Result<Vec<CommitShares>, BlameError> {
    let what = "it is in no git repository";
    let repository = Repository::of(folder)?.ok_or_else(|| BlameError::file(folder, what))?;
    let arguments = ["rev-list", "--no-merges", "--topo-order", "--end-of-options", range, "--"];
    let ids = repository.read(&arguments.map(OsStr::new)).map_err(|error| unknown(error, range))?;
    let ids: Vec<String> = String::from_utf8_lossy(&ids).lines().map(str::to_owned).collect();
    let Some(newest) = ids.first() else { return Ok(Vec::new()) };
    let wanted: FxHashSet<&str> = ids.iter().map(String::as_str).collect();
    let log = read_log(&repository, &[range], &[])?;
    let files = log.iter().flat_map(|commit| &commit.files);
    let paths: FxHashSet<String> = files.map(|file| file.path.clone()).collect();
    let mut found = shares(view, &repository, newest, paths, Some(&wanted)).await?;
    let order: FxHashMap<&str, usize> =
        ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    found.sort_by_key(|commit| order.get(&*commit.id).copied());
    Ok(found)
}

fn unknown(error: GitError, range: &str) -> BlameError {
    match error {
        GitError::Failed { .. } => GitError::Failed {
            what: "rev-list".to_owned(),
            message: format!("{range} is no range of commits; give one such as `main~5..main`"),
        }
        .into(),
        GitError::NotStarted(_) => error.into(),
    }
}

fn read_log(
    repository: &Repository,
    revisions: &[&str],
    paths: &[&Path],
) -> Result<Vec<Commit>, GitError> {
    let arguments = log::arguments(revisions, Follow::Nothing, paths);
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    Ok(log::parse(&repository.read(&arguments)?))
}

/// The commits of these files up to `head`, and which sessions wrote how many of their lines.
async fn shares<V: View>(
    view: &V,
    repository: &Repository,
    head: &str,
    paths: FxHashSet<String>,
    wanted: Option<&FxHashSet<&str>>,
) -> Result<Vec<CommitShares>, BlameError> {
    let mut paths: Vec<String> = paths.into_iter().collect();
    paths.sort_unstable();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&Path> = paths.iter().map(Path::new).collect();
    let commits = read_log(repository, &[head], &names)?;
    let mut found: Vec<CommitShares> = Vec::with_capacity(commits.len());
    let mut by_path: BTreeMap<String, Vec<(usize, CommitLines)>> = BTreeMap::new();
    for commit in commits {
        let number = found.len();
        found.push(CommitShares {
            id: commit.id,
            author_time: commit.author_time,
            author: commit.author,
            subject: commit.subject,
            added: commit.files.iter().map(|file| file.added).sum(),
            sessions: Vec::new(),
        });
        for file in commit.files {
            by_path.entry(file.path).or_default().push((number, file.lines));
        }
    }
    let folders = repository.working_trees();
    let mut counts: FxHashMap<(usize, SessionId), (usize, usize)> = FxHashMap::default();
    for (path, history) in by_path {
        let place = FilePlace {
            name: path.clone(),
            folders: folders.clone(),
            names: std::iter::once(path).collect(),
        };
        let (edits, timed) = load_edits(view, &place).await?;
        let (numbers, mut lines): (Vec<usize>, Vec<CommitLines>) = history.into_iter().unzip();
        claim_lines(timed, &mut lines);
        for (number, lines) in numbers.into_iter().zip(&lines) {
            for claim in lines.lines.iter().filter_map(|line| line.claim) {
                let count = counts.entry((number, edits[claim.edit].session)).or_default();
                count.0 += 1;
                count.1 += usize::from(claim.confidence == Confidence::Exact);
            }
        }
    }
    for ((number, session), (lines, exact)) in counts {
        found[number].sessions.push(SessionShare { session, lines, exact });
    }
    for commit in &mut found {
        commit.sessions.sort_by_key(|share| (std::cmp::Reverse(share.lines), share.session));
    }
    if let Some(wanted) = wanted {
        found.retain(|commit| wanted.contains(&*commit.id));
    }
    found.reverse();
    Ok(found)
}

/// The lines that commits added, in all files.
fn added_lines(
    repository: &Repository,
    ids: &[&str],
) -> Result<FxHashMap<Arc<str>, usize>, GitError> {
    let mut found: FxHashMap<Arc<str>, usize> = FxHashMap::default();
    // A command line is limited.
    for some in ids.chunks(500) {
        let options = [
            "log",
            "--no-walk",
            "--numstat",
            "-M",
            "--no-ext-diff",
            "--no-textconv",
            "--format=%x01%H",
        ];
        let arguments = options.iter().chain(some).chain(&["--"]);
        let output = repository.read(&arguments.map(OsStr::new).collect::<Vec<_>>())?;
        let mut id: Arc<str> = Arc::from("");
        for line in String::from_utf8_lossy(&output).lines() {
            if let Some(next) = line.strip_prefix('\u{1}') {
                id = Arc::from(next);
            } else if let Some(added) =
                line.split('\t').next().and_then(|it| it.parse::<usize>().ok())
            {
                *found.entry(id.clone()).or_default() += added;
            }
        }
    }
    Ok(found)
}

/// The files that sessions edited, by their repositories, and those in none.
async fn files_by_repository<V: View>(
    view: &V,
    rows: Vec<unspool_store::rows::RowId>,
) -> Result<(Vec<(Repository, FxHashSet<String>)>, Vec<String>), BlameError> {
    let calls = view.edited_files(EditedFiles::OfSessions(rows)).await?;
    let mut folders: FxHashMap<PathBuf, Option<PathBuf>> = FxHashMap::default();
    let mut files: BTreeMap<PathBuf, FxHashSet<String>> = BTreeMap::new();
    let mut outside: Vec<String> = Vec::new();
    for call in calls {
        let project = call.project.as_deref().map(Path::new).unwrap_or(Path::new(""));
        let path = normal_path(&project.join(&call.path));
        let folder = path.ancestors().skip(1).find(|folder| folder.is_dir());
        let folder = folder.filter(|_| path.is_absolute()).unwrap_or(Path::new("/")).to_owned();
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let root = match folders.get(&real) {
            Some(root) => root.clone(),
            None => {
                let root = Repository::of(&real).ok().flatten().map(|repository| repository.root);
                folders.insert(real.clone(), root.clone());
                root
            }
        };
        let whole = real.join(path.strip_prefix(&folder).unwrap_or(&path));
        match root.as_ref().and_then(|root| whole.strip_prefix(root).ok()) {
            Some(inside) => {
                let name = inside.to_string_lossy().into_owned();
                files.entry(root.unwrap_or_default()).or_default().insert(name);
            }
            None if outside.contains(&call.path) => {}
            None => outside.push(call.path),
        }
    }
    let files = files.into_iter().map(|(root, names)| (Repository { root }, names)).collect();
    Ok((files, outside))
}

impl SessionCommits {
    /// A commit with the lines of it that the session wrote.
    pub fn standing(commit: &CommitShares) -> StandingCommit {
        StandingCommit {
            id: commit.id.to_string(),
            author: commit.author.clone(),
            at: Timestamp::from_second(commit.author_time).ok(),
            subject: commit.subject.clone(),
            added: commit.added,
            lines: commit.sessions.iter().map(|share| share.lines).sum(),
            exact: commit.sessions.iter().map(|share| share.exact).sum(),
        }
    }
}

/// The titles of sessions, to show.
pub async fn titles<V: View>(
    view: &V,
    commits: &[CommitShares],
) -> Result<FxHashMap<SessionId, (String, Option<String>)>, StoreError> {
    let shares = commits.iter().flat_map(|commit| &commit.sessions);
    let mut ids: Vec<SessionId> = shares.map(|share| share.session).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = view.sessions_by_id(ids).await?;
    Ok(found
        .into_iter()
        .map(|stored| {
            let summary = stored.summary;
            (summary.session.id, (summary.session.agent, summary.title))
        })
        .collect())
}
