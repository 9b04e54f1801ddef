//! Adaptations as JSON, for the command line, REST and MCP.

use std::path::Path;

use serde::Serialize;
use unspool_model::adaptation::{Audience, Scope, Trial};

use super::Current;
use super::history::Change;
use super::state::{State, VersionedItem};

/// What to list. Absent: all.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListFilter<'a> {
    pub agent: Option<&'a str>,
    pub channel: Option<&'a str>,
    pub tag: Option<&'a str>,
    pub enabled: Option<bool>,
}

/// All adaptations (R-002-35).
#[derive(Debug, Serialize)]
pub struct AdaptationsDocument<'a> {
    /// Of the whole state; agents get it in the frame.
    pub version: u64,
    /// Files were changed, and agents get that only after `reload`.
    pub reload_needed: bool,
    pub problems: Vec<String>,
    pub items: Vec<AdaptationDocument<'a>>,
}

#[derive(Debug, Serialize)]
pub struct AdaptationDocument<'a> {
    pub id: &'a str,
    /// The version to name when changing it.
    pub version: u64,
    pub sha256: &'a str,
    pub title: &'a str,
    pub content: &'a str,
    pub enabled: bool,
    pub trial: Option<Trial>,
    pub scope: &'a Scope,
    pub tags: &'a [String],
    /// The rule of findings that it is to make fewer.
    pub rule: Option<&'a str>,
    pub never: Option<&'a str>,
    /// `shipped`, `user` or `project`.
    pub origin: &'a str,
    pub project: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct PreviewDocument {
    pub agent: String,
    pub channel: String,
    pub project: Option<String>,
    pub version: u64,
    pub sha256: String,
    pub included_ids: Vec<String>,
    /// Items that would make the text longer than agents take.
    pub left_out_ids: Vec<String>,
    /// Included in half of the sessions only.
    pub on_trial_ids: Vec<String>,
    pub text: String,
    /// What the agent gets; `null` if nothing is added.
    pub frame: Option<String>,
    /// Characters that each prompt grows by.
    pub chars: usize,
}

#[derive(Debug, Serialize)]
pub struct HistoryDocument<'a> {
    pub id: &'a str,
    pub versions: &'a [Change],
}

impl ListFilter<'_> {
    pub fn has(&self, versioned: &VersionedItem) -> bool {
        let item = &versioned.item;
        self.agent.is_none_or(|agent| item.scope.has_agent(Some(agent)))
            && self.channel.is_none_or(|channel| item.scope.has_channel(Some(channel)))
            && self.tag.is_none_or(|tag| item.tags.iter().any(|one| one == tag))
            && self.enabled.is_none_or(|enabled| item.enabled == enabled)
    }
}

impl<'a> AdaptationsDocument<'a> {
    pub fn new(current: &'a Current, filter: &ListFilter<'_>) -> AdaptationsDocument<'a> {
        let items = current.state.items.iter().filter(|versioned| filter.has(versioned));
        AdaptationsDocument {
            version: current.state.version,
            reload_needed: current.is_pending,
            problems: current.problems.iter().map(ToString::to_string).collect(),
            items: items.map(AdaptationDocument::new).collect(),
        }
    }
}

impl<'a> AdaptationDocument<'a> {
    pub fn new(versioned: &'a VersionedItem) -> AdaptationDocument<'a> {
        let item = &versioned.item;
        AdaptationDocument {
            id: &item.id,
            version: versioned.version,
            sha256: &versioned.sha256,
            title: &item.title,
            content: &item.content,
            enabled: item.enabled,
            trial: item.trial,
            scope: &item.scope,
            tags: &item.tags,
            rule: item.rule.as_deref(),
            never: item.never.as_deref(),
            origin: &versioned.origin,
            project: versioned.project.as_ref().map(|path| path.display().to_string()),
        }
    }
}

impl PreviewDocument {
    /// What the agent gets in a session of a trial, and of what only half of the sessions get.
    pub fn new(
        state: &State,
        agent: &str,
        channel: &str,
        project: Option<&Path>,
    ) -> PreviewDocument {
        let to = Audience { agent: Some(agent), channel: Some(channel), project, session: None };
        let assembly = state.assemble(&to);
        let frame = assembly.frame(state.version);
        let on_trial = state.items.iter().filter(|versioned| {
            let item = &versioned.item;
            item.enabled
                && item.trial.is_some()
                && item.scope.matches(to.agent, to.channel, project)
        });
        PreviewDocument {
            agent: agent.to_owned(),
            channel: channel.to_owned(),
            project: project.map(|path| path.display().to_string()),
            version: state.version,
            sha256: assembly.digest(),
            chars: frame.as_ref().map_or(0, |frame| frame.chars().count()),
            on_trial_ids: on_trial.map(|versioned| versioned.item.id.clone()).collect(),
            included_ids: assembly.included,
            left_out_ids: assembly.left_out,
            text: assembly.text,
            frame,
        }
    }
}
