//! The config file: `~/.config/unspool/config.toml`, or below `$XDG_CONFIG_HOME`, or the path in
//! `UNSPOOL_CONFIG`. Without it everything has its default.
//!
//! ```toml
//! # Further home folders, of other users or machines, whose agents are read too.
//! homes = ["/mnt/laptop/home/me"]
//! # Scan twice a second instead of relying on file-system events: for network homes on a file
//! # system that is not detected as one. UNSPOOL_POLL=1 does the same.
//! poll = true
//! # How many seconds an agent must be silent before its session may count as over.
//! idle_after = 30
//! # What a closed reasoning block hides in the page and in the terminal: "words", or "all" for
//! # its calls too.
//! fold = "words"
//!
//! # Dollars per million tokens; overrides the built-in price list.
//! [prices."house-model"]
//! input = 1.0
//! output = 4.0
//! cache_read = 0.1
//!
//! # Dollars per day: a warning comes at 80 % and at 100 %.
//! [budget]
//! day_usd = 20
//! [budget.projects]
//! "/home/me/app" = 5
//!
//! # Secrets to redact, in addition to the built-in rules (docs/redaction.md).
//! [redaction]
//! # Redact the names of home folders too.
//! homes = true
//! [redaction.rules]
//! ticket = "TICKET-([0-9a-f]{16})"
//!
//! # Rules for agents that `unspool reflect` checks: what an instruction file says, and which calls it
//! # forbids while it is in the prompt.
//! [[reflect.rules]]
//! text = "Use pnpm, never npm."
//! never = 'tool=Bash input~"^npm "'
//!
//! # How `unspool chat` starts agents, in addition to those that it knows (`unspool chat --agents`).
//! [chat]
//! agent = "claude-code"
//! # Minutes that an agent without work outlives the last surface that showed it.
//! linger = 10
//! # Folders below which an agent may work if the browser starts it, besides those of the archive.
//! roots = ["/home/me/src"]
//! # A program that starts every agent, such as a sandbox; the agent's command follows it.
//! wrap = ["bwrap", "--ro-bind", "/", "/", "--bind", "/home/me", "/home/me", "--dev", "/dev"]
//! [chat.agents.house]
//! command = ["house-agent", "--acp"]
//! # MCP servers for every agent: a program, or an address with headers. `${NAME}` is the value of a
//! # variable of the environment.
//! [chat.mcp.tickets]
//! url = "https://tickets.example/mcp"
//! headers = { Authorization = "Bearer ${TICKETS_TOKEN}" }
//!
//! [terminal]
//! # auto, mocha, latte, 16 (the terminal's own colours) or mono.
//! theme = "latte"
//! # Spinners do not move; the mouse is left to the terminal.
//! motion = false
//! mouse = false
//! # Maximum number of parts of a session held in memory.
//! window = 700
//!
//! # Key bindings; `?` shows the actions, docs/terminal.md lists their names.
//! [terminal.keys]
//! next-prompt = ["}", "ctrl-n"]
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use unspool_ingest::lock::DataFolder;
use unspool_ingest::service::Sources;
use unspool_ingest::service::silence::SilencePolicy;
use unspool_ingest::service::watch::ChangeDetection;
use unspool_live::mcp::{McpServer, McpTransport};
use unspool_model::price::{Price, Prices};
use unspool_query::budget::Budgets;
use unspool_query::findings::Reflection;
use unspool_query::reader::Settings;
use unspool_redact::{CustomRule, Rules};
use unspool_sources::discover::Environment;
use unspool_view::finding::CallCheck;
use unspool_view::present::Folding;

const DEFAULT_IDLE_AFTER: Duration = Duration::from_secs(30);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    homes: Vec<PathBuf>,
    prices: BTreeMap<String, Price>,
    poll: bool,
    idle_after: Option<u64>,
    fold: Folding,
    redaction: Redaction,
    budget: Budget,
    reflect: Reflect,
    pub chat: Chat,
    pub terminal: Terminal,
}

/// Agents that `unspool chat` drives.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chat {
    /// The agent that is started if none is named.
    pub agent: Option<String>,
    /// Minutes that an agent without work outlives the last surface that showed it.
    pub linger: Option<u64>,
    /// Folders below which the browser may start agents.
    pub roots: Vec<PathBuf>,
    /// A program that starts every agent.
    pub wrap: Vec<String>,
    /// Commands by agent.
    pub agents: BTreeMap<String, ChatAgent>,
    /// MCP servers by name.
    mcp: BTreeMap<String, ChatServer>,
}

/// An MCP server: a program or an address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ChatServer {
    /// The program and its arguments.
    command: Vec<String>,
    env: BTreeMap<String, String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    /// The server speaks the older protocol of events.
    sse: bool,
}

impl Chat {
    /// The MCP servers for agents.
    // Agents are driven on Unix only.
    #[cfg_attr(not(unix), expect(dead_code))]
    pub fn servers(&self) -> Result<Vec<McpServer>> {
        let server = |(name, server): (&String, &ChatServer)| {
            let ChatServer { command, env, url, headers, sse } = server.clone();
            let transport = match (url, command.is_empty()) {
                (None, false) => McpTransport::Stdio { command, env },
                (Some(url), true) if sse => McpTransport::Sse { url, headers },
                (Some(url), true) => McpTransport::Http { url, headers },
                (Some(_), false) | (None, true) => {
                    bail!("[chat.mcp.{name}] of the config file needs either `command` or `url`")
                }
            };
            Ok(McpServer { name: name.clone(), transport })
        };
        self.mcp.iter().map(server).collect()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatAgent {
    /// The program and its arguments.
    #[cfg_attr(not(unix), expect(dead_code))]
    pub command: Vec<String>,
}

/// Dollars per day, of all projects and of some.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Budget {
    day_usd: Option<f64>,
    projects: BTreeMap<String, f64>,
}

/// What exports redact.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Redaction {
    homes: bool,
    /// A regex for each kind of secret. Group 1, or else the whole match, is replaced.
    rules: BTreeMap<String, String>,
}

/// What `unspool reflect` looks for beside its own rules.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Reflect {
    rules: Vec<ReflectRule>,
}

/// A rule for agents.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReflectRule {
    /// What the prompt says.
    text: String,
    /// The calls that it forbids: `tool=Bash input~"^npm "`.
    never: String,
}

/// Appearance and keys of the terminal application.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Terminal {
    pub theme: Option<String>,
    pub motion: bool,
    pub mouse: bool,
    /// Maximum number of parts of a session held in memory.
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
            format!("{} is not a valid config file; fix it or move it away", path.display())
        })?;
        if let Some((model, _)) = config.prices.iter().find(|(_, price)| !price.is_valid()) {
            bail!(
                "{}: invalid price of {model}: expected dollars per million tokens, 0 or more",
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

/// The folders where agents write their sessions.
pub fn environment(folder: &DataFolder) -> Result<Environment> {
    let Config { homes, .. } = Config::load()?;
    let spools = vec![folder.spool(), folder.streams()];
    let traces = Some(folder.traces());
    Ok(Environment { other_homes: homes, spools, traces, ..Environment::of_process() })
}

/// Token prices: the user's own, then the built-in list.
pub fn prices() -> Result<Prices> {
    Ok(Prices::with(Config::load()?.prices))
}

/// What answers depend on.
pub fn reader_settings() -> Result<Settings> {
    Ok(Settings {
        prices: prices()?,
        rules: redaction()?,
        budgets: budgets()?,
        folding: Config::load()?.fold,
        reflection: Arc::new(reflection()?),
    })
}

/// The budgets. A limit that is not above 0 is a mistake.
pub fn budgets() -> Result<Budgets> {
    let Budget { day_usd, projects } = Config::load()?.budget;
    let limits = day_usd.iter().chain(projects.values());
    if limits.into_iter().any(|limit| !limit.is_finite() || *limit <= 0.0) {
        bail!("invalid limit in [budget] of the config file: expected more than 0 dollars");
    }
    Ok(Budgets { day_usd, projects })
}

/// The redaction rules: the built-in ones and the user's own.
pub fn redaction() -> Result<Rules> {
    let Redaction { homes, rules } = Config::load()?.redaction;
    let own = rules.into_iter().map(|(name, pattern)| CustomRule { name, pattern });
    let rules = Rules::standard().homes(homes).with_custom(&own.collect::<Vec<_>>());
    rules.context("invalid rule in [redaction.rules] of the config file")
}

/// Looks for findings, with the user's own rules for agents.
pub fn reflection() -> Result<Reflection> {
    let check = |(number, rule): (usize, ReflectRule)| {
        CallCheck::new(&rule.text, &rule.never).with_context(|| {
            format!("invalid rule {} in [[reflect.rules]] of the config file", number)
        })
    };
    let rules = Config::load()?.reflect.rules.into_iter();
    let checks = (1..).zip(rules).map(check).collect::<Result<_>>()?;
    Ok(Reflection::new(redaction()?, checks).looking_ahead())
}

/// What a recording process reads from these folders, and how it notices changes.
pub fn sources(folder: &DataFolder, environment: Environment) -> Result<Sources> {
    let silence = silence(folder, &environment)?;
    Ok(Sources { environment, change_detection: change_detection()?, silence })
}

/// When a turn without an end counts as left by its agent.
pub fn silence(folder: &DataFolder, environment: &Environment) -> Result<SilencePolicy> {
    Ok(SilencePolicy::new(idle_after()?, folder, environment))
}

/// How long an agent must be silent before its session may count as over.
pub fn idle_after() -> Result<Duration> {
    Ok(Config::load()?.idle_after.map_or(DEFAULT_IDLE_AFTER, Duration::from_secs))
}

/// How the watch loop detects changes.
pub fn change_detection() -> Result<ChangeDetection> {
    let from_env = std::env::var_os("UNSPOOL_POLL").map(|value| !value.is_empty() && value != "0");
    let poll = match from_env {
        Some(from_env) => from_env,
        None => Config::load()?.poll,
    };
    Ok(if poll { ChangeDetection::Polling } else { ChangeDetection::Events })
}
