//! The config file: `~/.config/unspool/config.toml` (or below `$XDG_CONFIG_HOME`, or where
//! `UNSPOOL_CONFIG` says). Without it everything has its default.
//!
//! ```toml
//! # Homes of other users or machines whose agents are read as well.
//! homes = ["/mnt/laptop/home/me"]
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use unspool_engine::lock::DataFolder;
use unspool_sources::discover::Environment;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    homes: Vec<PathBuf>,
}

impl Config {
    pub fn load() -> Result<Config> {
        match path() {
            Some(path) => Config::read(&path),
            None => Ok(Config::default()),
        }
    }

    fn read(path: &Path) -> Result<Config> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Config::default());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        toml::from_str(&text).with_context(|| {
            format!("{} is no config file; mend it or move it away", path.display())
        })
    }
}

pub fn path() -> Option<PathBuf> {
    let variable =
        |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("UNSPOOL_CONFIG").or_else(|| {
        let base = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
        Some(base?.join("unspool").join("config.toml"))
    })
}

/// Where agents keep what they write.
pub fn environment(folder: &DataFolder) -> Result<Environment> {
    let Config { homes } = Config::load()?;
    Ok(Environment { other_homes: homes, spool: Some(folder.spool()), ..Environment::of_process() })
}
