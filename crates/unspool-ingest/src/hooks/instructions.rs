//! OpenCode has no hooks. It reads the files that its settings list under `instructions` into each
//! prompt, so that adaptations get there by a file. It writes nowhere what it sent.

use std::path::{Path, PathBuf};

use unspool_sources::discover::Environment;

use super::HooksError;
use crate::mcp_config::opencode_settings;
use crate::settings::{self, SettingsPlan, with_listed};

pub const AGENT: &str = "opencode";
const LIST: &str = "instructions";

/// Plans the settings with which OpenCode reads this file, or no longer does.
pub fn plan(
    environment: &Environment,
    file: &Path,
    is_wanted: bool,
) -> Result<SettingsPlan, HooksError> {
    let path = settings_of(environment)?;
    let before =
        settings::read(&path).map_err(|source| HooksError::Read { path: path.clone(), source })?;
    if before.is_none() && !is_wanted {
        return Ok(SettingsPlan { path, before: None, after: None });
    }
    let after = with_listed(before.as_deref(), LIST, &file.to_string_lossy(), is_wanted);
    let after = after.map_err(|what| HooksError::Settings { path: path.clone(), what })?;
    Ok(SettingsPlan { path, before, after: Some(after) })
}

/// True if its settings name the file.
pub fn is_installed(environment: &Environment, file: &Path) -> bool {
    plan(environment, file, true).is_ok_and(|plan| plan.changes_nothing())
}

fn settings_of(environment: &Environment) -> Result<PathBuf, HooksError> {
    opencode_settings(environment).ok_or_else(|| HooksError::Nowhere(AGENT.to_owned()))
}
