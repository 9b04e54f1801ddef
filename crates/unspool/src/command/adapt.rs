//! `unspool adapt`: texts that agents get in their prompts, and what is known about each: enabled,
//! delivered, seen.

mod edit;
mod paint;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use unspool_model::adaptation::{Patch, TEXT_CHANNEL, TrialChange};
use unspool_query::adaptations::{
    AdaptationDocument, AdaptationStore, AdaptationsDocument, Author, Facts, HistoryDocument,
    ListFilter, NewProposal, PreviewDocument, ProposalState, USER_FILE, deliveries, facts,
    from_findings,
};
use unspool_query::findings::SessionFindings;
use unspool_store::blocking::block_on;
use unspool_store::store::SessionFilter;

use crate::archive::Archive;
use crate::config;

/// Texts that agents get in their prompts: list, change and preview them
///
/// An adaptation is a text with a fixed id. It comes with Unspool, from adaptations.toml beside the
/// config file, or from .unspool/adaptations.toml of a project, and is off until you enable it. Hooks
/// deliver it (`unspool hooks install --agent AGENT --adapt`). What was enabled, delivered and seen in
/// prompts are three facts, and `show` tells them apart.
#[derive(Args)]
pub struct Adapt {
    #[command(subcommand)]
    action: Action,
    /// The project whose own adaptations count; by default the working folder's
    #[arg(long, global = true, value_name = "FOLDER")]
    project: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Action {
    /// List the adaptations
    List(List),
    /// Show an adaptation: its text, and where it was delivered and seen
    Show(Show),
    /// Edit the text of an adaptation in your editor ($VISUAL or $EDITOR)
    Edit { id: String },
    /// Enable adaptations
    Enable {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Disable adaptations: no prompt gets them from now on
    Disable {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Change what you name and keep the rest
    Update(Update),
    /// Take over what was changed in the files by hand
    Reload,
    /// Show what an agent gets now
    Preview(Preview),
    /// Show the versions of an adaptation, who made them and why
    History {
        id: String,
        /// Write them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Propose changes: for what `unspool reflect` finds, or one of your own
    Propose(Propose),
    /// List the proposals that wait for you
    Proposals {
        /// The decided ones too
        #[arg(long)]
        all: bool,
        /// Write them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Apply a proposal
    Apply {
        #[arg(value_name = "N")]
        number: u64,
        /// In half of the sessions, so that `unspool reflect verify` can compare them
        #[arg(long, value_enum)]
        trial: Option<TrialOption>,
    },
    /// Dismiss a proposal
    Dismiss {
        #[arg(value_name = "N")]
        number: u64,
    },
}

#[derive(Args)]
struct List {
    /// Only those for this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only those for this channel
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only the enabled ones
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Only the disabled ones
    #[arg(long)]
    disabled: bool,
    /// Write them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Show {
    id: String,
    /// Write it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Update {
    id: String,
    /// The new text; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    content: Option<String>,
    /// The new title
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// `half` includes it in half of the sessions, `all` ends that
    #[arg(long, value_enum)]
    trial: Option<TrialOption>,
    /// Refuse the change if the adaptation has another version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

#[derive(Args)]
struct Preview {
    /// The agent: claude-code, codex, …
    #[arg(long, value_name = "AGENT")]
    agent: String,
    /// The channel
    #[arg(long, value_name = "CHANNEL", default_value = TEXT_CHANNEL)]
    channel: String,
    /// Write it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Propose {
    /// The adaptation to change; without it, one is proposed for each rule that found something
    #[arg(value_name = "ID", requires = "why")]
    id: Option<String>,
    /// The text; `-` reads it from standard input. Without it, enabling is proposed
    #[arg(long, value_name = "TEXT", requires = "id")]
    content: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Only findings of sessions that ended at this time or later: yesterday, 7d, 2w
    #[arg(long, value_name = "TIME", conflicts_with = "id")]
    since: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum TrialOption {
    Half,
    All,
}

impl From<TrialOption> for TrialChange {
    fn from(option: TrialOption) -> TrialChange {
        match option {
            TrialOption::Half => TrialChange::Half,
            TrialOption::All => TrialChange::All,
        }
    }
}

/// An adaptation and what is known about it.
#[derive(Serialize)]
struct ShowDocument<'a> {
    #[serde(flatten)]
    item: AdaptationDocument<'a>,
    facts: &'a Facts,
}

const BY_HAND: Author<'static> = Author { who: "cli", why: None };

/// The adaptations of the archive's folder.
pub fn store(archive: &Archive) -> Result<AdaptationStore> {
    let user = config::path().and_then(|path| Some(path.parent()?.join(USER_FILE)));
    Ok(AdaptationStore::new(archive.folder()?.path(), user))
}

/// Sessions that pass a filter, with what was found in them and what their prompts have. None if there
/// is no archive yet.
pub fn sessions_of(archive: &Archive, filter: SessionFilter) -> Result<Vec<Arc<SessionFindings>>> {
    if !archive.folder()?.database().exists() {
        return Ok(Vec::new());
    }
    let view = archive.view()?;
    Ok(block_on(config::reflection()?.over(&view, filter, |_| ()))?.sessions)
}

impl Adapt {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let store = store(archive)?;
        let project = match &self.project {
            Some(folder) => Some(std::path::absolute(folder)?),
            None => std::env::current_dir().ok(),
        };
        let project = project.as_deref();
        match self.action {
            Action::List(list) => list.run(&store, project),
            Action::Show(show) => show.run(archive, &store, project),
            Action::Edit { id } => edit::run(&store, &id, project),
            Action::Enable { ids } => switch(&store, project, &ids, true),
            Action::Disable { ids } => switch(&store, project, &ids, false),
            Action::Update(update) => update.run(&store, project),
            Action::Reload => {
                let changed = store.reload(Author { who: "file", why: None })?;
                let current = store.current(project)?;
                paint::warn(&current);
                paint::reloaded(&changed, current.state.version)
            }
            Action::Preview(preview) => preview.run(&store, project),
            Action::History { id, json } => {
                let versions = store.history(&id, project)?;
                if json {
                    return super::write_json(&HistoryDocument { id: &id, versions: &versions });
                }
                paint::history(&versions)
            }
            Action::Propose(propose) => propose.run(archive, &store, project),
            Action::Proposals { all, json } => {
                let mut proposals = store.proposals()?;
                proposals.retain(|proposal| all || proposal.state == ProposalState::Open);
                if json {
                    return super::write_json(&proposals);
                }
                paint::proposals(&proposals)
            }
            Action::Apply { number, trial } => {
                let versioned = store.apply(number, trial.map(Into::into), "cli")?;
                paint::changed(&versioned)?;
                paint::delivery_hint(true)
            }
            Action::Dismiss { number } => {
                let dismissed = store.dismiss(number)?;
                writeln!(io::stdout(), "dismissed proposal {number} for {}", dismissed.id)?;
                Ok(())
            }
        }
    }
}

/// Enables or disables adaptations.
fn switch(
    store: &AdaptationStore,
    project: Option<&Path>,
    ids: &[String],
    enabled: bool,
) -> Result<()> {
    let patch = Patch { enabled: Some(enabled), ..Patch::default() };
    for id in ids {
        let versioned = store.update(id, project, &patch, None, BY_HAND)?;
        paint::changed(&versioned)?;
    }
    paint::delivery_hint(enabled)
}

impl Show {
    fn run(self, archive: &Archive, store: &AdaptationStore, project: Option<&Path>) -> Result<()> {
        let current = store.current(project)?;
        paint::warn(&current);
        let Some(versioned) = current.state.find(&self.id, project) else {
            bail!("not_found: there is no adaptation {}; `unspool adapt list` shows all", self.id)
        };
        let history = store.history(&self.id, project)?;
        let since = history.iter().find(|change| change.enabled).map(|change| change.at);
        let sessions = match since.map(Timestamp::as_millisecond) {
            Some(since) => {
                let since = Some(since);
                sessions_of(archive, SessionFilter { since, ..SessionFilter::default() })?
            }
            None => Vec::new(),
        };
        let delivered = deliveries(archive.folder()?.path())?;
        let facts = facts(&self.id, &history, &delivered, &sessions);
        if self.json {
            let item = AdaptationDocument::new(versioned);
            return super::write_json(&ShowDocument { item, facts: &facts });
        }
        paint::item(versioned, &facts)
    }
}

impl Update {
    fn run(self, store: &AdaptationStore, project: Option<&Path>) -> Result<()> {
        let content = self.content.map(text).transpose()?;
        let trial = self.trial.map(Into::into);
        let patch = Patch { title: self.title, content, trial, ..Patch::default() };
        if patch.is_empty() {
            bail!("nothing to change; give --content, --title or --trial");
        }
        let author = Author { who: "cli", why: self.why.as_deref() };
        let versioned = store.update(&self.id, project, &patch, self.version, author)?;
        paint::changed(&versioned)
    }
}

impl Preview {
    fn run(self, store: &AdaptationStore, project: Option<&Path>) -> Result<()> {
        let current = store.current(project)?;
        let document = PreviewDocument::new(&current.state, &self.agent, &self.channel, project);
        if self.json {
            return super::write_json(&document);
        }
        paint::warn(&current);
        paint::preview(&document)
    }
}

impl List {
    fn run(self, store: &AdaptationStore, project: Option<&Path>) -> Result<()> {
        let current = store.current(project)?;
        let document = AdaptationsDocument::new(&current, &self.filter());
        if self.json {
            return super::write_json(&document);
        }
        paint::list(&document)
    }

    fn filter(&self) -> ListFilter<'_> {
        ListFilter {
            agent: self.agent.as_deref(),
            channel: self.channel.as_deref(),
            tag: self.tag.as_deref(),
            enabled: (self.enabled || self.disabled).then_some(self.enabled),
        }
    }
}

impl Propose {
    fn run(self, archive: &Archive, store: &AdaptationStore, project: Option<&Path>) -> Result<()> {
        let current = store.current(project)?;
        let new = match self.id {
            Some(id) => {
                let content = self.content.map(text).transpose()?;
                let found = current.state.find(&id, project);
                let project = found.and_then(|versioned| versioned.project.clone());
                let patch = Patch { content, enabled: Some(true), ..Patch::default() };
                let (who, why) = ("person".to_owned(), self.why.unwrap_or_default());
                vec![NewProposal { id, project, patch, who, why, evidence: Vec::new() }]
            }
            None => {
                let since =
                    self.since.as_deref().map(unspool_query::times::parse_time).transpose()?;
                let filter = SessionFilter { since, ..SessionFilter::default() };
                let view = archive.view()?;
                let found = block_on(config::reflection()?.over(&view, filter, |_| ()))?;
                from_findings(&found, &current.state)
            }
        };
        let proposals = store.propose(&new)?;
        paint::proposals(&proposals)
    }
}

/// A text of the command line, or of standard input.
fn text(argument: String) -> Result<String> {
    if argument != "-" {
        return Ok(argument);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("cannot read the text from standard input")?;
    Ok(text.trim().to_owned())
}
