//! The folders of projects that the archive knows. Discovery looks for logs there.

use std::path::PathBuf;

use unspool_sources::discover::{MAX_PROJECTS, Projects};
use unspool_store::blocking::block_on;
use unspool_store::store::{StoreError, View};

/// The folders of the projects of all sessions.
pub fn projects_of_sessions(view: &impl View) -> Result<Projects, StoreError> {
    let limit = u32::try_from(MAX_PROJECTS).unwrap_or(u32::MAX);
    let folders = block_on(view.project_folders(limit))?;
    Ok(Projects::around(folders.into_iter().map(PathBuf::from)))
}
