//! What became of the lines of a session: the commits that they ended in, and which still stand at
//! HEAD. The lines are those of the session's changes; there is no second diff.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_store::store::{StoredSession, View};
use unspool_view::present::changes::{Changes, FileChange, FileStanding, HeadLine, Standing};

use super::commits::{SessionCommits, session_commits};
use super::{Attribution, BlameError, BlameRequest, attribute};
use crate::git::{Fate, GitError, Repository, normal_path, read_file};

/// Files beyond this number are not compared with git: each takes several calls of it.
const MAX_FILES: usize = 200;
/// A larger file is no text that people read.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// So many times a file may have been renamed since.
const MAX_RENAMES: usize = 8;

/// What git has of the changes of a session, and edited files that are in no repository of this
/// machine.
pub struct SessionStanding {
    pub standing: Standing,
    pub outside: Vec<String>,
}

/// Asks git about the changes of a session. All its commits are found, also if `changes` are those
/// of one turn.
pub async fn standing<V: View>(
    view: &V,
    stored: &StoredSession,
    changes: &Changes,
) -> Result<SessionStanding, BlameError> {
    let SessionCommits { sessions, commits, outside } = session_commits(view, stored).await?;
    let commits = commits.iter().map(SessionCommits::standing).collect();
    let mut repositories = Repositories::default();
    let mut files = Vec::with_capacity(changes.files.len());
    for (at, file) in changes.files.iter().enumerate() {
        files.push(match at < MAX_FILES {
            true => file_standing(view, file, &sessions, &mut repositories).await?,
            false => None,
        });
    }
    Ok(SessionStanding { standing: Standing { commits, files }, outside })
}

/// The repositories of folders, and their commits at HEAD.
#[derive(Default)]
struct Repositories(FxHashMap<PathBuf, Option<(PathBuf, String)>>);

impl Repositories {
    /// The repository of a file, its commit at HEAD, and the name of the file in it.
    fn of(&mut self, path: &Path) -> Option<(Repository, String, PathBuf)> {
        let path = normal_path(path);
        let folder = path.ancestors().skip(1).find(|folder| folder.is_dir())?;
        let real = folder.canonicalize().ok()?;
        let name = real.join(path.strip_prefix(folder).ok()?);
        let known = self.0.entry(real).or_insert_with_key(|folder| {
            let repository = Repository::of(folder).ok().flatten()?;
            let head = repository.commit("HEAD").ok().flatten()?;
            Some((repository.root, head))
        });
        let (root, head) = known.clone()?;
        let name = name.strip_prefix(&root).ok()?.to_owned();
        Some((Repository { root }, head, name))
    }
}

async fn file_standing<V: View>(
    view: &V,
    file: &FileChange,
    sessions: &[SessionId],
    repositories: &mut Repositories,
) -> Result<Option<FileStanding>, BlameError> {
    let path = Path::new(&file.path);
    let found = if path.is_absolute() { repositories.of(path) } else { None };
    let Some((repository, head, name)) = found else { return Ok(None) };
    let (committed, name) = match at_head(&repository, &head, name)? {
        AtHead::Named(name) => (true, name),
        AtHead::Removed(name) => (false, name),
        AtHead::Never(name) if repository.root.join(&name).is_file() => (false, name),
        AtHead::Never(_) => return Ok(None),
    };
    let path = repository.root.join(&name);
    let attribution = match committed {
        true => {
            let request = BlameRequest { file: path.clone(), revision: Some(head), lines: None };
            match attribute(view, &request).await {
                Ok(attribution) => Some(attribution),
                // It is binary or too large.
                Err(BlameError::File { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        false => None,
    };
    let lines = attribution.as_ref().map(|found| head_lines(found, sessions)).unwrap_or_default();
    let on_disk = read_file(&path, MAX_FILE_BYTES).ok().flatten().unwrap_or_default();
    let standing = FileStanding::new(&file.diff, &lines, &String::from_utf8_lossy(&on_disk));
    Ok(Some(FileStanding { path: file.path.clone(), name: file.name.clone(), ..standing }))
}

/// The lines of a file, and the commits of those that the sessions wrote.
fn head_lines<'a>(found: &'a Attribution, sessions: &[SessionId]) -> Vec<HeadLine<'a>> {
    let lines = found.history.lines.iter().zip(&found.claims);
    let is_own = |edit: usize| sessions.contains(&found.found[edit].session);
    let one = lines.map(|(line, claim)| HeadLine {
        text: &line.text,
        commit: line.commit.as_deref().filter(|_| claim.is_some_and(|claim| is_own(claim.edit))),
    });
    one.collect()
}

/// A file at HEAD, by its name in the repository.
enum AtHead {
    Named(PathBuf),
    /// A commit removed it.
    Removed(PathBuf),
    /// No commit has it.
    Never(PathBuf),
}

fn at_head(repository: &Repository, head: &str, mut name: PathBuf) -> Result<AtHead, GitError> {
    for _ in 0..MAX_RENAMES {
        if repository.has_file(head, &name) {
            return Ok(AtHead::Named(name));
        }
        match repository.fate(head, &name)? {
            Fate::Renamed(to) => name = to,
            Fate::Deleted => return Ok(AtHead::Removed(name)),
            Fate::NeverThere => return Ok(AtHead::Never(name)),
        }
    }
    Ok(AtHead::Removed(name))
}
