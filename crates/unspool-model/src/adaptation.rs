//! Adaptations: texts that are added to the prompts of agents, each for a scope and each switched on
//! or off by itself. Here is what they are and how a prompt's text is put together from them; files,
//! versions and history are `unspool_query::adaptations`.

mod assembly;

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::sha256;

pub use assembly::{Assembly, Audience, MAX_FRAME_CHARS, assemble};

/// Characters of one text. Agents cut what a hook adds, and a prompt is no place for a manual.
pub const MAX_CONTENT_CHARS: usize = 4000;
/// Characters of a title or an id.
pub const MAX_TITLE_CHARS: usize = 120;
const MAX_ID_CHARS: usize = 64;
/// The channel of agents that are driven by typing.
pub const TEXT_CHANNEL: &str = "text";

/// One text with its id, which never changes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    pub id: String,
    pub title: String,
    #[serde(default)]
    pub content: String,
    #[serde(default)]
    pub scope: Scope,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default)]
    pub enabled: bool,
    /// Included in every session, or in half of them to see what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    /// The rule of findings that it is to make fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The calls that it forbids, for `rule-ignored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never: Option<String>,
}

/// Where an item applies. A list that is not empty restricts it; `global` lifts all restrictions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scope {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<String>,
    /// Folders; what is below them belongs to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub global: bool,
}

/// How an experiment divides sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trial {
    /// In every other session, by a digest of the session's id.
    Half,
}

/// What a person, a program or an agent changed about an item. Absent fields are as in the catalogue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    pub updated_at: Option<Timestamp>,
}

/// A change to make: fields that are absent stay as they are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `half` begins a trial, `all` ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialChange>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialChange {
    Half,
    All,
}

impl Patch {
    pub fn is_empty(&self) -> bool {
        *self == Patch::default()
    }

    /// Why it must not be made.
    pub fn problem(&self) -> Option<String> {
        let title = self.title.as_deref().and_then(title_problem);
        title.or_else(|| self.content.as_deref().and_then(content_problem))
    }

    /// The edit with this change.
    pub fn apply(&self, edit: &mut Edit, now: Timestamp) {
        if let Some(title) = &self.title {
            edit.title = Some(title.clone());
        }
        if let Some(content) = &self.content {
            edit.content = Some(content.clone());
        }
        if let Some(enabled) = self.enabled {
            edit.enabled = Some(enabled);
        }
        match self.trial {
            Some(TrialChange::Half) => edit.trial = Some(Trial::Half),
            Some(TrialChange::All) => edit.trial = None,
            None => {}
        }
        edit.updated_at = Some(now);
    }
}

impl Item {
    /// The item with what was edited.
    pub fn edited(&self, edit: &Edit) -> Item {
        Item {
            title: edit.title.clone().unwrap_or_else(|| self.title.clone()),
            content: edit.content.clone().unwrap_or_else(|| self.content.clone()),
            enabled: edit.enabled.unwrap_or(self.enabled),
            trial: edit.trial.or(self.trial),
            ..self.clone()
        }
    }

    /// Identifies what it says and where it applies.
    pub fn digest(&self) -> String {
        sha256(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Why it cannot be in a catalogue.
    pub fn problem(&self) -> Option<String> {
        if !is_id(&self.id) {
            return Some(format!(
                "`{}` is no id: use at most {MAX_ID_CHARS} letters, digits, dots and dashes",
                self.id
            ));
        }
        title_problem(&self.title).or_else(|| content_problem(&self.content))
    }
}

impl Scope {
    /// True if an item with this scope is for that audience. Whoever is not known is in no list.
    pub fn matches(
        &self,
        agent: Option<&str>,
        channel: Option<&str>,
        project: Option<&Path>,
    ) -> bool {
        let is_below = |path: &Path| self.projects.iter().any(|folder| path.starts_with(folder));
        let is_here = self.projects.is_empty() || project.is_some_and(is_below);
        self.global || self.has_agent(agent) && self.has_channel(channel) && is_here
    }

    pub fn has_agent(&self, agent: Option<&str>) -> bool {
        self.global || is_in(&self.agents, agent)
    }

    pub fn has_channel(&self, channel: Option<&str>) -> bool {
        self.global || is_in(&self.channels, channel)
    }
}

fn is_in(list: &[String], one: Option<&str>) -> bool {
    list.is_empty() || one.is_some_and(|one| list.iter().any(|each| each == one))
}

/// True for what an id may be: it stands in frames, which a program takes apart.
pub fn is_id(id: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    !id.is_empty() && id.len() <= MAX_ID_CHARS && id.chars().all(is_letter)
}

fn title_problem(title: &str) -> Option<String> {
    if title.trim().is_empty() {
        return Some("it has no title".to_owned());
    }
    let long = title.chars().count() > MAX_TITLE_CHARS || title.contains(['\n', '\r']);
    long.then(|| format!("its title is not one line of at most {MAX_TITLE_CHARS} characters"))
        .or_else(|| hidden_problem(title))
}

fn content_problem(content: &str) -> Option<String> {
    let chars = content.chars().count();
    if chars > MAX_CONTENT_CHARS {
        return Some(format!(
            "its text has {chars} characters; at most {MAX_CONTENT_CHARS} are possible"
        ));
    }
    if content.contains("unspool-adaptations") {
        return Some("its text contains the tag that marks adaptations in prompts".to_owned());
    }
    hidden_problem(content)
}

/// A text that a person approves must not have what a person cannot see.
fn hidden_problem(text: &str) -> Option<String> {
    let is_hidden = |c: &char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    let hidden = text.chars().find(is_hidden)?;
    Some(format!("its text has a character that is not visible: U+{:04X}", u32::from(hidden)))
}

#[cfg(test)]
#[path = "adaptation_tests.rs"]
mod tests;
