//! The config file: `~/.config/unspool/config.toml` (or below `$XDG_CONFIG_HOME`, or where
//! `UNSPOOL_CONFIG` says). Without it everything has its default.
//!
//! ```toml
//! # Homes of other users or machines whose agents are read as well.
//! homes = ["/mnt/laptop/home/me"]
//! # Look at everything twice a second instead of waiting to be told: for homes on a network whose
//! # file system is none of those that are known for it. UNSPOOL_POLL=1 says the same.
//! poll = true
//!
//! # Dollars for a million tokens; stands before the list of prices that comes with the program.
//! [prices."house-model"]
//! input = 1.0
//! output = 4.0
//! cache_read = 0.1
//!
//! # What is a secret, beside what every export knows (docs/redaction.md).
//! [redaction]
//! # Also the names of home folders.
//! homes = true
//! [redaction.rules]
//! ticket = "TICKET-([0-9a-f]{16})"
//!
//! [terminal]
//! # auto, mocha, latte, 16 (the terminal's own colours) or mono.
//! theme = "latte"
//! # Glyphs of what runs do not move; the mouse stays the terminal's.
//! motion = false
//! mouse = false
//! # Of a long session so many parts are held at a time; the archive has the rest.
//! window = 700
//!
//! # Other keys for an action; `?` shows the actions, docs/terminal.md their names.
//! [terminal.keys]
//! next-prompt = ["}", "ctrl-n"]
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use unspool_core::price::{Price, Prices};
use unspool_core::redact::{OwnRule, Rules};
use unspool_engine::lock::DataFolder;
use unspool_engine::watch::Notice;
use unspool_sources::discover::Environment;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    homes: Vec<PathBuf>,
    prices: BTreeMap<String, Price>,
    poll: bool,
    redaction: Redaction,
    pub terminal: Terminal,
}

/// What is taken out of what is exported.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Redaction {
    homes: bool,
    /// A regex for each kind of secret. Its group 1, or else all of it, is replaced.
    rules: BTreeMap<String, String>,
}

/// How the terminal application looks and which keys it has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Terminal {
    pub theme: Option<String>,
    pub motion: bool,
    pub mouse: bool,
    /// So many pieces of a session are held at most.
    pub window: usize,
    pub keys: BTreeMap<String, Vec<String>>,
}

impl Default for Terminal {
    fn default() -> Terminal {
        Terminal { theme: None, motion: true, mouse: true, window: 700, keys: BTreeMap::new() }
    }
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
        let config: Config = toml::from_str(&text).with_context(|| {
            format!("{} is no config file; mend it or move it away", path.display())
        })?;
        if let Some((model, _)) = config.prices.iter().find(|(_, price)| !price.is_sane()) {
            bail!(
                "{}: the price of {model} is none; give dollars for a million tokens, 0 or more",
                path.display()
            );
        }
        Ok(config)
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
    let Config { homes, .. } = Config::load()?;
    let spools = vec![folder.spool(), folder.streams()];
    Ok(Environment { other_homes: homes, spools, ..Environment::of_process() })
}

/// What tokens cost: the user's prices, and the list behind them.
pub fn prices() -> Result<Prices> {
    Ok(Prices::with(Config::load()?.prices))
}

/// What is a secret: the user's rules, and those that every export has.
pub fn redaction() -> Result<Rules> {
    let Redaction { homes, rules } = Config::load()?.redaction;
    let own = rules.into_iter().map(|(name, pattern)| OwnRule { name, pattern });
    let rules = Rules::standard().homes(homes).with_own(&own.collect::<Vec<_>>());
    rules.context("mend it below [redaction.rules] in the config file")
}

/// How `sync --watch` comes to know of changes.
pub fn notice() -> Result<Notice> {
    let asked = std::env::var_os("UNSPOOL_POLL").map(|value| !value.is_empty() && value != "0");
    let poll = match asked {
        Some(asked) => asked,
        None => Config::load()?.poll,
    };
    Ok(if poll { Notice::Polled } else { Notice::Told })
}
