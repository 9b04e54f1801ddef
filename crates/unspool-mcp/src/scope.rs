//! Which sessions a client may see: those of one project, or all.

use std::path::{Path, PathBuf};

/// The sessions that a client may see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    All,
    /// Those that ran in this folder or below it.
    Folder(String),
}

impl Scope {
    /// The project that a working folder belongs to: the repository around it, else the folder.
    pub fn of_working_folder(folder: &Path) -> Scope {
        let repository = folder.ancestors().find(|ancestor| ancestor.join(".git").exists());
        Scope::folder(repository.unwrap_or(folder))
    }

    /// The sessions of this folder.
    pub fn folder(folder: &Path) -> Scope {
        // Logs have the path that the agent saw, which may lead through links.
        let folder: PathBuf = folder.components().collect();
        Scope::Folder(folder.to_string_lossy().into_owned())
    }

    /// True if it has sessions of this project.
    pub fn has(&self, project: Option<&str>) -> bool {
        let Scope::Folder(folder) = self else { return true };
        let below = project.and_then(|project| project.strip_prefix(folder.as_str()));
        below.is_some_and(|below| {
            below.is_empty() || below.starts_with(['/', '\\']) || folder.ends_with(['/', '\\'])
        })
    }

    /// What the store can filter by: every path that it has contains this.
    pub fn folder_path(&self) -> Option<&str> {
        match self {
            Scope::All => None,
            Scope::Folder(folder) => Some(folder),
        }
    }

    /// For sentences: `in /home/me/project`, `in the archive`.
    pub fn words(&self) -> String {
        match self {
            Scope::All => "in the archive".to_owned(),
            Scope::Folder(folder) => format!("of the project {folder}"),
        }
    }
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
