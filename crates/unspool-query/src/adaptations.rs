//! Adaptations of one data folder: catalogues, edits, versions and history (docs/learning.md). The
//! pure part is `unspool_model::adaptation`. Three facts are kept apart: *enabled* is in the state
//! here, *delivered* is what our hook printed (`delivery`), *seen* is what a recorded prompt has.
//!
//! Every change is made under a lock on a file, reads the files again and replaces them at once, so
//! that changes of several processes lose nothing. These files are no part of the archive: they are
//! what a person decided, and a rebuild must not touch them.

mod catalogue;
mod delivery;
mod document;
mod edits;
mod facts;
mod history;
mod proposals;
mod state;
mod verify;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use thiserror::Error;
use unspool_model::adaptation::Patch;
use unspool_store::private_file;
use unspool_store::replace_file::replace_file;

pub use catalogue::{FileProblem, Origin};
pub use delivery::{Delivery, HookPayload, answer as hook_answer, deliveries};
pub use document::{
    AdaptationDocument, AdaptationsDocument, HistoryDocument, ListFilter, PreviewDocument,
};
pub use facts::{Facts, facts};
pub use history::Change;
pub use proposals::{NewProposal, Proposal, ProposalState, from_findings};
pub use state::{State, VersionedItem};
pub use verify::{ArmDocument, Question, Verification, verify};

use catalogue::Catalogue;
use edits::Edits;

/// The name of the user's catalogue, beside the config file.
pub const USER_FILE: &str = "adaptations.toml";

const FOLDER: &str = "adaptations";
const STATE_FILE: &str = "now.json";

#[derive(Debug, Error)]
pub enum AdaptError {
    #[error("not_found: there is no adaptation {0}; `unspool adapt list` shows all")]
    NotFound(String),
    #[error(
        "{id} has version {current}, not {expected}: somebody changed it meanwhile; look at it \
         again and make the change on top"
    )]
    Conflict { id: String, expected: u64, current: u64 },
    #[error("the change is refused: {0}")]
    Refused(String),
    #[error("{0}; nothing was changed, the last good state counts")]
    Broken(#[from] FileProblem),
    #[error("cannot read or write {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// Who makes a change and why, for the history.
#[derive(Clone, Copy, Debug)]
pub struct Author<'a> {
    pub who: &'a str,
    pub why: Option<&'a str>,
}

/// The state that counts, and what is wrong with the files.
#[derive(Clone, Debug)]
pub struct Current {
    pub state: State,
    /// What was left out, and the file that is broken.
    pub problems: Vec<FileProblem>,
    /// Files were changed since the last `reload`: agents get the state before that.
    pub is_pending: bool,
}

/// The adaptations of a data folder.
#[derive(Clone, Debug)]
pub struct AdaptationStore {
    folder: PathBuf,
    /// The user's catalogue.
    user: Option<PathBuf>,
}

/// The file that hooks read, in a data folder.
pub fn state_file(data: &Path) -> PathBuf {
    data.join(FOLDER).join(STATE_FILE)
}

impl AdaptationStore {
    pub fn new(data: &Path, user: Option<PathBuf>) -> AdaptationStore {
        AdaptationStore { folder: data.join(FOLDER), user }
    }

    pub fn edits_file(&self) -> PathBuf {
        self.folder.join("edits.json")
    }

    /// The file that hooks read.
    pub fn state_file(&self) -> PathBuf {
        self.folder.join(STATE_FILE)
    }

    /// The file that OpenCode's `instructions` name.
    pub fn instructions_file(&self) -> PathBuf {
        self.folder.join("opencode.md")
    }

    fn history_file(&self) -> PathBuf {
        self.folder.join("history.jsonl")
    }

    /// The state as the files say it now, without writing anything. `project`: its file is read too.
    pub fn current(&self, project: Option<&Path>) -> Result<Current, AdaptError> {
        let stored = self.stored()?;
        let before = stored.clone().unwrap_or_default();
        match self.files(project) {
            Ok((catalogue, edits)) => {
                let state = before.next(&catalogue, &edits);
                let lasting = state.clone().keeping_edited_projects(&edits, &before);
                let is_pending = match &stored {
                    Some(before) => lasting != *before,
                    None => state.items.iter().any(|versioned| versioned.item.enabled),
                };
                let problems = with_unknown(catalogue.warnings, &state, &edits, &self.edits_file());
                // Agents still get the version before.
                let version = before.version.max(1);
                Ok(Current { state: State { version, ..state }, problems, is_pending })
            }
            Err(broken) => match stored {
                Some(state) => Ok(Current { state, problems: vec![broken], is_pending: false }),
                None => Err(broken.into()),
            },
        }
    }

    /// Takes over what changed in the files. Returns the keys of the items that changed.
    pub fn reload(&self, author: Author<'_>) -> Result<Vec<String>, AdaptError> {
        let _lock = self.lock()?;
        let before = self.stored()?.unwrap_or_default();
        let (catalogue, edits) = self.files(None)?;
        let state = self.commit(&before, &before.next(&catalogue, &edits), author)?;
        // What is off from the beginning did not change.
        let is_news = |versioned: &&VersionedItem| before.version > 0 || versioned.item.enabled;
        Ok(state.changed_since(&before).filter(is_news).map(VersionedItem::key).collect())
    }

    /// Changes an item (R-002-33, R-002-34). `expected`: the version that the change was made for.
    pub fn update(
        &self,
        id: &str,
        project: Option<&Path>,
        patch: &Patch,
        expected: Option<u64>,
        author: Author<'_>,
    ) -> Result<VersionedItem, AdaptError> {
        if let Some(problem) = patch.problem() {
            return Err(AdaptError::Refused(problem));
        }
        let _lock = self.lock()?;
        let (catalogue, mut edits) = self.files(project)?;
        // What was changed in the files belongs to whoever changed them.
        let stored = self.stored()?.unwrap_or_default();
        let by_file = Author { who: "file", why: None };
        let stored = self.commit(
            &stored,
            &stored.next(&catalogue, &edits).keeping_edited_projects(&edits, &stored),
            by_file,
        )?;
        let before = stored.next(&catalogue, &edits);
        let not_found = || AdaptError::NotFound(id.to_owned());
        let found = before.find(id, project).ok_or_else(not_found)?;
        if let Some(expected) = expected.filter(|expected| *expected != found.version) {
            let (id, current) = (id.to_owned(), found.version);
            return Err(AdaptError::Conflict { id, expected, current });
        }
        let key = found.key();
        patch.apply(edits.0.entry(key.clone()).or_default(), Timestamp::now());
        self.write(&self.edits_file(), edits.text().as_bytes())?;
        let next = before.next(&catalogue, &edits).keeping_edited_projects(&edits, &stored);
        let state = self.commit(&stored, &next, author)?;
        state.by_key(&key).cloned().ok_or_else(not_found)
    }

    /// The versions of an item, oldest first.
    pub fn history(&self, id: &str, project: Option<&Path>) -> Result<Vec<Change>, AdaptError> {
        let current = self.current(project)?;
        let found = current.state.find(id, project);
        let key = found.ok_or_else(|| AdaptError::NotFound(id.to_owned()))?.key();
        let mut changes = self.all_changes()?;
        changes.retain(|change| change.key == key);
        Ok(changes)
    }

    /// All changes, oldest first. A version that a crash wrote twice counts once.
    pub fn all_changes(&self) -> Result<Vec<Change>, AdaptError> {
        let file = self.history_file();
        let read = history::lines(&file).map_err(|source| AdaptError::Io { path: file, source });
        let (mut changes, _) = read?;
        let mut seen = std::collections::BTreeSet::new();
        changes.retain(|change: &Change| seen.insert((change.key.clone(), change.version)));
        Ok(changes)
    }

    /// The state that hooks read.
    fn stored(&self) -> Result<Option<State>, AdaptError> {
        Ok(State::read(&self.state_file())?)
    }

    fn files(&self, project: Option<&Path>) -> Result<(Catalogue, Edits), FileProblem> {
        let edits = Edits::read(&self.edits_file())?;
        let mut projects: Vec<PathBuf> = edits.projects().collect();
        projects.extend(project.and_then(project_folder));
        projects.sort();
        projects.dedup();
        Ok((catalogue::read(self.user.as_deref(), &projects)?, edits))
    }

    /// Writes the next state, if it is another one. What is written last is what hooks read.
    fn commit(
        &self,
        before: &State,
        next: &State,
        author: Author<'_>,
    ) -> Result<State, AdaptError> {
        if next == before {
            return Ok(next.clone());
        }
        let now = Timestamp::now();
        let change = |versioned| Change::of(versioned, next.version, now, author.who, author.why);
        // What is off from the beginning is what everybody has, and nobody's change.
        let is_news = |versioned: &&VersionedItem| versioned.version > 1 || versioned.item.enabled;
        let changes: Vec<Change> = next.changed_since(before).filter(is_news).map(change).collect();
        let failed = |path: PathBuf| |source| AdaptError::Io { path, source };
        history::append(&self.history_file(), &changes).map_err(failed(self.history_file()))?;
        self.write(&self.instructions_file(), delivery::instructions(next).as_bytes())?;
        self.write(&self.state_file(), next.text().as_bytes())?;
        Ok(next.clone())
    }

    fn write(&self, file: &Path, content: &[u8]) -> Result<(), AdaptError> {
        let failed = |source| AdaptError::Io { path: file.to_owned(), source };
        replace_file(file, content).map_err(failed)
    }

    fn lock(&self) -> Result<File, AdaptError> {
        let path = self.folder.join("lock");
        let take = || {
            private_file::folders().recursive(true).create(&self.folder)?;
            let mut options = private_file::options();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        take().map_err(|source| AdaptError::Io { path: path.clone(), source })
    }
}

/// The folder at or above this one that has a catalogue.
fn project_folder(folder: &Path) -> Option<PathBuf> {
    folder
        .ancestors()
        .find(|folder| folder.join(".unspool/adaptations.toml").is_file())
        .map(Path::to_owned)
}

/// Adds a warning for each edit of an id that no catalogue has. The edit is kept.
fn with_unknown(
    mut problems: Vec<FileProblem>,
    state: &State,
    edits: &Edits,
    file: &Path,
) -> Vec<FileProblem> {
    let unknown = edits.0.keys().filter(|key| state.by_key(key).is_none());
    problems.extend(unknown.map(|key| FileProblem {
        file: file.to_owned(),
        line: 0,
        what: format!("there is no adaptation `{key}`; its edits are kept and do nothing"),
    }));
    problems
}

#[cfg(test)]
#[path = "adaptations_tests.rs"]
mod tests;
