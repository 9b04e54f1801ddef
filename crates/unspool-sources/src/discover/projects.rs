//! The folders of projects in which agents keep logs. They come from sessions that are known already:
//! no disk is searched for them.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

/// More folders than this are not looked at: each costs a system call in every scan.
pub const MAX_PROJECTS: usize = 1000;

/// Folders of projects, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Projects(Vec<PathBuf>);

impl Projects {
    /// The working folders of sessions, the most important first, and the repositories around them:
    /// an agent that is started below the root of a repository may keep its log there.
    pub fn around(folders: impl IntoIterator<Item = PathBuf>) -> Projects {
        let mut known = FxHashSet::default();
        let mut projects = Vec::new();
        for folder in folders.into_iter().filter(|folder| folder.is_absolute()) {
            let root = repository_of(&folder).map(Path::to_owned);
            for project in std::iter::once(folder).chain(root) {
                if projects.len() < MAX_PROJECTS && known.insert(project.clone()) {
                    projects.push(project);
                }
            }
        }
        Projects(projects)
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.0
    }
}

/// The root of the repository that a folder is in.
fn repository_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.join(".git").exists())
}
