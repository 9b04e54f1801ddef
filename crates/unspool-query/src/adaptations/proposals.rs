//! Proposals: changes that somebody thinks would help. Nothing is applied by itself: a person does
//! that. They come from findings by template, from an agent, or from a person.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::adaptation::{Patch, TrialChange};
use unspool_view::finding::Rule;

use super::state::{State, VersionedItem};
use super::{AdaptError, AdaptationStore, Author, FileProblem};
use crate::findings::Findings;

/// Open proposals that are kept; who proposes more has to wait for an answer.
const MAX_OPEN: usize = 100;
/// Places that a proposal names.
const MAX_EVIDENCE: usize = 5;
/// Characters of a reason.
const MAX_WHY_CHARS: usize = 500;

/// A change of an item that waits for a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proposal {
    pub number: u64,
    pub at: Timestamp,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    pub patch: Patch,
    pub who: String,
    pub why: String,
    /// What shows it, as `SESSION` or `SESSION turn N`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    pub state: ProposalState,
    /// Characters that each prompt grows by.
    pub chars: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalState {
    Open,
    Applied,
    Dismissed,
}

/// A proposal without a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewProposal {
    pub id: String,
    pub project: Option<PathBuf>,
    pub patch: Patch,
    pub who: String,
    pub why: String,
    pub evidence: Vec<String>,
}

/// For each rule that found something, the first item that is made for it and is off.
pub fn from_findings(found: &Findings, state: &State) -> Vec<NewProposal> {
    let mut proposals = Vec::new();
    for rule in Rule::ALL {
        let is_for = |versioned: &&VersionedItem| {
            let item = &versioned.item;
            let is_worded = !item.content.trim().is_empty();
            item.rule.as_deref() == Some(rule.name()) && !item.enabled && is_worded
        };
        let Some(versioned) = state.items.iter().find(is_for) else { continue };
        let (mut count, mut opportunities, mut sessions) = (0, 0, 0);
        let mut evidence = Vec::new();
        for session in &found.sessions {
            let Some((_, of)) = session.rules.iter().find(|(one, _)| one == rule) else { continue };
            opportunities += of.opportunities;
            sessions += u64::from(!of.findings.is_empty());
            for finding in &of.findings {
                count += finding.count;
                let first = finding.evidence.first();
                evidence
                    .extend(first.map(|first| format!("{} turn {}", session.session, first.turn)));
            }
        }
        if count == 0 {
            continue;
        }
        evidence.truncate(MAX_EVIDENCE);
        let plural = if sessions == 1 { "" } else { "s" };
        proposals.push(NewProposal {
            id: versioned.item.id.clone(),
            project: versioned.project.clone(),
            patch: Patch { enabled: Some(true), ..Patch::default() },
            who: "template".to_owned(),
            why: format!(
                "{}: {count} of {opportunities} {} in {sessions} session{plural}",
                rule.name(),
                rule.unit()
            ),
            evidence,
        });
    }
    proposals
}

impl AdaptationStore {
    fn proposals_file(&self) -> PathBuf {
        self.folder.join("proposals.json")
    }

    /// All proposals, oldest first.
    pub fn proposals(&self) -> Result<Vec<Proposal>, AdaptError> {
        let file = self.proposals_file();
        let Some(text) = super::catalogue::text_of(&file)? else { return Ok(Vec::new()) };
        serde_json::from_str(&text).map_err(|error| {
            let (line, what) = (error.line(), error.to_string());
            FileProblem { file, line, what }.into()
        })
    }

    /// Adds proposals. One that is open already, or changes nothing, is not added again. Returns
    /// those that are open now.
    pub fn propose(&self, new: &[NewProposal]) -> Result<Vec<Proposal>, AdaptError> {
        let _lock = self.lock()?;
        let mut all = self.proposals()?;
        let mut added = Vec::new();
        for proposal in new {
            let found = self.proposed_item(proposal)?;
            if let Some(problem) = proposal.patch.problem() {
                return Err(AdaptError::Refused(problem));
            }
            let is_same = |one: &&Proposal| {
                one.state == ProposalState::Open
                    && one.id == proposal.id
                    && one.patch == proposal.patch
            };
            if let Some(open) = all.iter().find(is_same) {
                added.push(open.clone());
                continue;
            }
            let open = all.iter().filter(|one| one.state == ProposalState::Open).count();
            if open >= MAX_OPEN {
                let what =
                    format!("{open} proposals wait for an answer; apply or dismiss some first");
                return Err(AdaptError::Refused(what));
            }
            let content = proposal.patch.content.as_ref().unwrap_or(&found.item.content);
            let next = Proposal {
                number: all.iter().map(|one| one.number).max().unwrap_or(0) + 1,
                at: Timestamp::now(),
                id: proposal.id.clone(),
                project: proposal.project.clone(),
                patch: proposal.patch.clone(),
                who: proposal.who.clone(),
                why: proposal.why.chars().filter(|c| !c.is_control()).take(MAX_WHY_CHARS).collect(),
                evidence: proposal.evidence.iter().take(MAX_EVIDENCE).cloned().collect(),
                state: ProposalState::Open,
                chars: content.trim().chars().count(),
            };
            all.push(next.clone());
            added.push(next);
        }
        self.write_proposals(&all)?;
        Ok(added)
    }

    fn proposed_item(&self, proposal: &NewProposal) -> Result<VersionedItem, AdaptError> {
        let current = self.current(proposal.project.as_deref())?;
        let found = current.state.find(&proposal.id, proposal.project.as_deref());
        found.cloned().ok_or_else(|| AdaptError::NotFound(proposal.id.clone()))
    }

    /// Applies an open proposal, as a trial if so wanted.
    pub fn apply(
        &self,
        number: u64,
        trial: Option<TrialChange>,
        who: &str,
    ) -> Result<VersionedItem, AdaptError> {
        let proposal = self.open_proposal(number)?;
        let patch = Patch { trial: trial.or(proposal.patch.trial), ..proposal.patch.clone() };
        let why = format!("proposal {number}: {}", proposal.why);
        let author = Author { who, why: Some(&why) };
        let project = proposal.project.as_deref();
        let versioned = self.update(&proposal.id, project, &patch, None, author)?;
        self.decide(number, ProposalState::Applied)?;
        Ok(versioned)
    }

    pub fn dismiss(&self, number: u64) -> Result<Proposal, AdaptError> {
        let proposal = self.open_proposal(number)?;
        self.decide(number, ProposalState::Dismissed)?;
        Ok(proposal)
    }

    fn open_proposal(&self, number: u64) -> Result<Proposal, AdaptError> {
        let all = self.proposals()?;
        let found = all.into_iter().find(|proposal| proposal.number == number);
        match found {
            Some(proposal) if proposal.state == ProposalState::Open => Ok(proposal),
            Some(_) => Err(AdaptError::Refused(format!("proposal {number} was decided already"))),
            None => Err(AdaptError::Refused(format!(
                "there is no proposal {number}; `unspool adapt proposals` lists them"
            ))),
        }
    }

    fn decide(&self, number: u64, state: ProposalState) -> Result<(), AdaptError> {
        let _lock = self.lock()?;
        let mut all = self.proposals()?;
        let decided = all.iter_mut().filter(|proposal| proposal.number == number);
        decided.for_each(|proposal| proposal.state = state);
        self.write_proposals(&all)
    }

    fn write_proposals(&self, all: &[Proposal]) -> Result<(), AdaptError> {
        let text = serde_json::to_string_pretty(all).unwrap_or_default() + "\n";
        self.write(&self.proposals_file(), text.as_bytes())
    }
}
