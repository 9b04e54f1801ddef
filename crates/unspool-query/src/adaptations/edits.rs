//! The edits file: what was changed about items of the catalogues, by id. An item of a project has
//! the key `ID@FOLDER`. The file may be edited by hand; `reload` then takes it over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unspool_model::adaptation::Edit;

use super::catalogue::{FileProblem, Origin, text_of};

/// Edits by key, in their order. Those of ids that no catalogue has are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edits(pub BTreeMap<String, Edit>);

/// The key of an item.
pub fn key(id: &str, origin: &Origin) -> String {
    match origin.project() {
        Some(project) => format!("{id}@{}", project.display()),
        None => id.to_owned(),
    }
}

impl Edits {
    /// Reads the file. It is empty if there is none.
    pub fn read(file: &Path) -> Result<Edits, FileProblem> {
        let Some(text) = text_of(file)? else { return Ok(Edits::default()) };
        if text.trim().is_empty() {
            return Ok(Edits::default());
        }
        let edits: BTreeMap<String, Edit> = serde_json::from_str(&text).map_err(|error| {
            FileProblem { file: file.to_owned(), line: error.line(), what: error.to_string() }
        })?;
        for (key, edit) in &edits {
            let patch = unspool_model::adaptation::Patch {
                title: edit.title.clone(),
                content: edit.content.clone(),
                ..Default::default()
            };
            if let Some(problem) = patch.problem() {
                let quoted = format!("\"{key}\"");
                let line = text.lines().position(|line| line.contains(&quoted));
                return Err(FileProblem {
                    file: file.to_owned(),
                    line: line.map_or(0, |line| line + 1),
                    what: format!("`{key}`: {problem}"),
                });
            }
        }
        Ok(Edits(edits))
    }

    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(&self.0).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The projects whose items were edited.
    pub fn projects(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let folders = self.0.keys().filter_map(|key| key.split_once('@'));
        folders.map(|(_, folder)| PathBuf::from(folder)).filter(|folder| folder.is_absolute())
    }
}
