//! The state that counts: all items with what was edited, each with its version, in one small file.
//! Hooks read nothing else. It is the last good state when a catalogue or the edits file is broken.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unspool_model::adaptation::{Assembly, Audience, Item, assemble};

use super::catalogue::{Catalogue, FileProblem, Origin, text_of};
use super::edits::{Edits, key};

/// The version of the file's format.
const FORMAT: u32 = 1;

/// Items with their versions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct State {
    pub(super) format: u32,
    /// Rises whenever an item changes.
    pub version: u64,
    pub items: Vec<VersionedItem>,
}

/// An item as it counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VersionedItem {
    pub item: Item,
    /// Rises whenever the item changes.
    pub version: u64,
    pub sha256: String,
    pub origin: String,
    /// The project whose file has the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
}

impl VersionedItem {
    /// Its key in the edits file.
    pub fn key(&self) -> String {
        match &self.project {
            Some(project) => key(&self.item.id, &Origin::Project(project.clone())),
            None => self.item.id.clone(),
        }
    }
}

impl State {
    /// The state of the file. `None` if there is none, or none that this version can read.
    pub fn read(file: &Path) -> Result<Option<State>, FileProblem> {
        let Some(text) = text_of(file)? else { return Ok(None) };
        let state: Option<State> = serde_json::from_str(&text).ok();
        Ok(state.filter(|state| state.format == FORMAT))
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The state of the catalogues with their edits, after `self`. The versions of what changed rise.
    pub fn next(&self, catalogue: &Catalogue, edits: &Edits) -> State {
        let mut items = Vec::with_capacity(catalogue.items.len());
        let none = Default::default();
        let of_broken = self.items.iter().filter_map(|versioned| {
            let project = versioned.project.as_ref()?;
            let is_broken = catalogue.broken.contains(project);
            is_broken.then(|| (versioned.item.clone(), Origin::Project(project.clone())))
        });
        let of_broken: Vec<(Item, Origin)> = of_broken.collect();
        for (item, origin) in catalogue.items.iter().chain(&of_broken) {
            let key = key(&item.id, origin);
            let item = item.edited(edits.0.get(&key).unwrap_or(&none));
            let sha256 = item.digest();
            let version = match self.by_key(&key) {
                Some(before) if before.sha256 == sha256 => before.version,
                Some(before) => before.version + 1,
                None => 1,
            };
            let (origin, project) =
                (origin.name().to_owned(), origin.project().map(Path::to_owned));
            items.push(VersionedItem { item, version, sha256, origin, project });
        }
        State { format: FORMAT, version: self.version, items }.after(self)
    }

    /// Without the items of projects that nobody edited: they are off, and the file is small. `before`
    /// is what the version continues.
    pub fn keeping_edited_projects(mut self, edits: &Edits, before: &State) -> State {
        let projects: Vec<PathBuf> = edits.projects().collect();
        let is_edited = |project: &PathBuf| projects.contains(project);
        self.items.retain(|versioned| versioned.project.as_ref().is_none_or(is_edited));
        self.after(before)
    }

    /// With the version that follows.
    fn after(mut self, before: &State) -> State {
        let is_equal = before.items == self.items && before.version > 0;
        self.version = if is_equal { before.version } else { before.version + 1 };
        self
    }

    pub fn by_key(&self, key: &str) -> Option<&VersionedItem> {
        self.items.iter().find(|versioned| versioned.key() == key)
    }

    /// The item with this id: that of the project, if there is one.
    pub fn find(&self, id: &str, project: Option<&Path>) -> Option<&VersionedItem> {
        let with_id = || self.items.iter().filter(|versioned| versioned.item.id == id);
        let of_project = |versioned: &&VersionedItem| match (&versioned.project, project) {
            (Some(of), Some(project)) => project.starts_with(of),
            (Some(_) | None, _) => false,
        };
        with_id()
            .find(of_project)
            .or_else(|| with_id().find(|versioned| versioned.project.is_none()))
    }

    /// What an audience gets.
    pub fn assemble(&self, to: &Audience<'_>) -> Assembly {
        assemble(self.items.iter().map(|versioned| &versioned.item), to)
    }

    /// What changed since another state.
    pub fn changed_since<'a>(
        &'a self,
        before: &'a State,
    ) -> impl Iterator<Item = &'a VersionedItem> {
        self.items.iter().filter(|versioned| {
            before.by_key(&versioned.key()).is_none_or(|old| old.sha256 != versioned.sha256)
        })
    }
}
