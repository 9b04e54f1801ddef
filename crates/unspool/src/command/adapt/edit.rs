//! Edits the text of an adaptation in the user's editor.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use unspool_model::adaptation::Patch;
use unspool_query::adaptations::{AdaptationStore, Author};

use unspool_store::{private_file, replace_file::replace_file};

use super::paint;

pub fn run(store: &AdaptationStore, id: &str, project: Option<&Path>) -> Result<()> {
    let current = store.current(project)?;
    paint::warn(&current);
    let Some(versioned) = current.state.find(id, project) else {
        bail!("not_found: there is no adaptation {id}; `unspool adapt list` shows all");
    };
    let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = variable("VISUAL").or_else(|| variable("EDITOR"));
    let editor = editor
        .context("no editor is set; set EDITOR, or use `unspool adapt update ID --content -`")?;
    // Beside the edits, where only the user may read.
    let path = store.edits_file().with_file_name(format!("edit-{}.md", std::process::id()));
    let _file = EditedFile::new(path.clone(), &versioned.item.content)?;
    // Editors are named with options: `code --wait`.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or_default();
    let status = Command::new(program).args(words).arg(&path).status();
    let status = status.with_context(|| format!("cannot start the editor `{editor}`"))?;
    if !status.success() {
        bail!("the editor ended with an error; nothing was changed");
    }
    let content = fs::read_to_string(&path).context("cannot read what the editor wrote")?;
    let content = content.trim().to_owned();
    if content == versioned.item.content.trim() {
        stderr_line!("unspool: nothing was changed");
        return Ok(());
    }
    let patch = Patch { content: Some(content), ..Patch::default() };
    let author = Author { who: "cli", why: None };
    // Another change meanwhile is not overwritten.
    let versioned = store.update(id, project, &patch, Some(versioned.version), author)?;
    paint::changed(&versioned)
}

/// A file for the editor, which goes when it is dropped.
struct EditedFile(PathBuf);

impl EditedFile {
    fn new(path: PathBuf, content: &str) -> Result<EditedFile> {
        if let Some(folder) = path.parent() {
            private_file::folders().recursive(true).create(folder)?;
        }
        replace_file(&path, format!("{content}\n").as_bytes())?;
        Ok(EditedFile(path))
    }
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
