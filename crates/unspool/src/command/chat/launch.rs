//! What to start: the agent, its command, its folder, and the session to go on with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use unspool_ingest::process_registry::ProcessRegistry;
use unspool_ingest::report::Progress;
use unspool_live::agents::{BUILT_IN, Choice, choices};
use unspool_live::chat::{ChatSpec, Policy};
use unspool_live::client::{self, ListedChat};
use unspool_query::processes::ProcessList;
use unspool_query::request::{ReadReason, Request};
use unspool_sources::decode::acp::OTHER_PREFIX;
use unspool_sources::decode::prompt_hash;
use unspool_store::blocking::block_on;
use unspool_store::store::{StoredSession, View};

use super::folders;
use crate::archive::{Archive, find};
use crate::config::{self, Config};

/// How many minutes a chat outlives its last client.
const LINGER_MINUTES: u64 = 10;

/// How long a chat outlives its last client, in milliseconds.
pub fn linger() -> Result<u64> {
    let minutes = Config::load()?.chat.linger.unwrap_or(LINGER_MINUTES);
    Ok(minutes.saturating_mul(60_000))
}

/// What to start, as the user said it.
#[derive(Default)]
pub struct Launch {
    pub agent: Option<String>,
    pub project: Option<PathBuf>,
    pub resume: Option<String>,
    pub mode: Option<String>,
    pub model: Option<String>,
    pub command: Vec<String>,
    pub policy: Policy,
    /// How long the chat outlives its last client, in milliseconds. None: until it is ended.
    pub linger: Option<u64>,
    /// Goes on although another program seems to work on the session.
    pub force: bool,
    /// The way to log in first, by the agent's id of it.
    pub log_in: Option<String>,
}

/// All agents that can be chosen.
pub fn agents() -> Result<Vec<Choice>> {
    let configured = Config::load()?.chat.agents;
    let commands: BTreeMap<String, Vec<String>> =
        configured.into_iter().map(|(name, agent)| (name, agent.command)).collect();
    Ok(choices(&commands))
}

impl Launch {
    pub fn spec(&self, archive: &Archive) -> Result<ChatSpec> {
        let resumed = match &self.resume {
            Some(session) => Some(resumed(archive, session, self.force)?),
            None => None,
        };
        let folder = self.folder(resumed.as_ref())?;
        let (agent, command) = if self.command.is_empty() {
            let named = self.agent.clone().or_else(|| Some(resumed.as_ref()?.agent.clone()));
            let agent = choose(named)?;
            // An agent of the config file says itself who it is.
            let is_built_in = BUILT_IN.iter().any(|built_in| built_in.name == agent.name);
            (Some(agent.name).filter(|_| is_built_in), agent.command)
        } else {
            (resumed.as_ref().map(|resumed| resumed.agent.clone()), self.command.clone())
        };
        let (resume, prompts) = match resumed {
            Some(resumed) => (Some(resumed.session), resumed.prompts),
            None => (None, BTreeMap::new()),
        };
        let config = Config::load()?.chat;
        // A host reads them itself; what is wrong with them is said here.
        config.servers()?;
        Ok(ChatSpec {
            agent,
            command: [config.wrap.clone(), command].concat(),
            folder,
            resume,
            mode: self.mode.clone(),
            model: self.model.clone(),
            policy: self.policy,
            prompts,
            linger: self.linger,
            log_in: self.log_in.clone(),
        })
    }

    /// A session goes on where it was: some agents refuse another folder.
    fn folder(&self, resumed: Option<&Resumed>) -> Result<PathBuf> {
        let folder = match (&self.project, resumed.and_then(|resumed| resumed.folder.as_ref())) {
            (Some(folder), _) => folder.clone(),
            (None, Some(folder)) => folder.clone(),
            // Nobody chose the current folder, least of all in the browser.
            (None, None) if resumed.is_some() => bail!(
                "the folder of this session is gone or not known; name one with `unspool chat \
                 --resume SESSION --project DIR`"
            ),
            (None, None) => std::env::current_dir()?,
        };
        if !folder.is_dir() {
            bail!("{} is not a folder; name one with --project DIR", folder.display());
        }
        Ok(folder.canonicalize()?)
    }
}

/// The agent of this name, or the one that is meant if none is named.
fn choose(named: Option<String>) -> Result<Choice> {
    let agents = agents()?;
    let named = named.or(Config::load()?.chat.agent);
    let names = || {
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        names.join(", ")
    };
    let Some(name) = named else {
        let mut installed = agents.iter().filter(|agent| agent.program.is_some());
        return match (installed.next(), installed.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(_), Some(_)) => {
                Err(anyhow!("several agents are installed; choose one with --agent: {}", names()))
            }
            (None, _) => Err(anyhow!(
                "no agent that speaks the Agent Client Protocol was found; `unspool chat --agents` \
                 says how to install one"
            )),
        };
    };
    // A session of an agent of the config file, which may say the same name of itself.
    let own = name.strip_prefix(OTHER_PREFIX).unwrap_or(&name);
    let Some(agent) = agents.iter().find(|agent| agent.name == own) else {
        bail!(
            "there is no agent `{name}`; choose one of {}, or give its command after --",
            names()
        );
    };
    if agent.program.is_none() {
        let install = agent.install.as_deref().map(|how| format!("; install it: {how}"));
        bail!(
            "{} was not found on the PATH, which {} needs{}",
            agent.command[0],
            agent.title,
            install.unwrap_or_default()
        );
    }
    Ok(agent.clone())
}

/// A session to go on with.
pub struct Resumed {
    agent: String,
    session: String,
    folder: Option<PathBuf>,
    /// How often each prompt stands in it.
    pub prompts: BTreeMap<u64, u32>,
}

pub fn resumed(archive: &Archive, session: &str, force: bool) -> Result<Resumed> {
    let view = archive.view()?;
    let stored = find(&view, session)?;
    let head = stored.summary.session.clone();
    if head.parent.is_some() {
        bail!("{session} is the session of a sub-agent; go on with the one that started it");
    }
    // The log may have grown: the count of prompts must be that of the agent.
    let files = block_on(view.source_files(stored.row))?;
    let paths: Vec<PathBuf> =
        files.iter().map(|file| PathBuf::from(&file.path)).filter(|path| path.is_file()).collect();
    if !force {
        let (agent, id) = (&head.agent, &head.agent_session_id);
        let of_session = |chat: &ListedChat| {
            &chat.state.agent == agent && chat.state.session.as_ref() == Some(id)
        };
        let mut chats = client::list(&folders(&archive.folder()?));
        chats.retain(of_session);
        refuse_waiting(&chats, session)?;
        // The host of the new chat refuses a session that another chat drives.
        if chats.is_empty() {
            refuse_open(archive, id, session)?;
        }
        refuse_busy(&paths, &archive.folder()?.streams(), session)?;
    }
    if !paths.is_empty() {
        let request = Request::ReadFiles { paths, reason: ReadReason::Scan };
        archive.writer()?.submit(request, &Progress::default())?;
    }
    let folder = head.facts.project.as_deref().map(Path::new).filter(|folder| folder.is_dir());
    Ok(Resumed {
        folder: folder.map(Path::to_owned),
        prompts: prompts(archive, &stored)?,
        agent: head.agent,
        session: head.agent_session_id,
    })
}

/// Refuses a session whose agent waits for an answer in its own terminal.
fn refuse_waiting(chats: &[ListedChat], session: &str) -> Result<()> {
    if chats.iter().any(|chat| chat.state.answers_only) {
        bail!(
            "this session runs in its own terminal, where it waits for an answer; end it there, or \
             run `unspool chat --resume {session} --force`"
        );
    }
    Ok(())
}

/// Refuses a session that a process holds open, whatever it does there: it may wait for a person who
/// does not answer, and writes nothing.
fn refuse_open(archive: &Archive, agent_session: &str, session: &str) -> Result<()> {
    let folder = archive.folder()?;
    let policy = config::silence(&folder, &config::environment(&folder)?)?;
    let Some(processes) = ProcessList::read() else { return Ok(()) };
    let registry = ProcessRegistry::read(&policy.process_sources, &processes);
    if let Some(process) = registry.living_process(agent_session, &processes) {
        bail!(
            "this session is open in another program (process {process}); end it there, or run \
             `unspool chat --resume {session} --force`"
        );
    }
    Ok(())
}

/// How long after its last line a log is taken for one that is being written.
const BUSY_TIME: Duration = Duration::from_secs(60);

/// Refuses a session whose log another program writes: two agents on one session spoil it. A log
/// that grew while we recorded the wire was written by our own agent.
fn refuse_busy(paths: &[PathBuf], captures: &Path, session: &str) -> Result<()> {
    let age = |path: &Path| path.metadata().and_then(|found| found.modified()).ok()?.elapsed().ok();
    let (ours, logs): (Vec<&PathBuf>, Vec<&PathBuf>) =
        paths.iter().partition(|path| path.starts_with(captures));
    let ages = |paths: Vec<&PathBuf>| paths.into_iter().filter_map(|path| age(path)).min();
    let recorded = ages(ours).unwrap_or(Duration::MAX);
    let Some(age) = ages(logs).filter(|age| *age < BUSY_TIME && *age + BUSY_TIME < recorded) else {
        return Ok(());
    };
    bail!(
        "another program seems to work on this session: its log changed {} s ago; end it there, or \
         run `unspool chat --resume {session} --force`",
        age.as_secs()
    );
}

/// How often each prompt stands in the session with this id of an agent, by its digest.
pub fn prompt_counts(archive: &Archive, session: &str) -> Result<BTreeMap<u64, u32>> {
    prompts(archive, &find(&archive.view()?, session)?)
}

/// How often each prompt stands in a session, by its digest.
fn prompts(archive: &Archive, stored: &StoredSession) -> Result<BTreeMap<u64, u32>> {
    let view = archive.view()?;
    let mut prompts = BTreeMap::new();
    for size in block_on(view.sizes(stored.row))? {
        let head = block_on(view.head(stored.row, size.number))?;
        let text = head.as_ref().and_then(|turn| turn.user.iter().find_map(|body| body.prose()));
        if let Some(text) = text {
            *prompts.entry(prompt_hash(text)).or_default() += 1;
        }
    }
    Ok(prompts)
}
