//! Findings as JSON: what `unspool reflect --json` and the REST routes write.

use std::collections::BTreeMap;

use serde::Serialize;
use unspool_model::id::SessionId;
use unspool_view::finding::{Cost, Evidence, Finding, Rule};

use super::{Findings, SessionFindings};

/// The findings of one or several sessions.
#[derive(Serialize)]
pub struct FindingsDocument<'a> {
    pub sessions: Vec<SessionFindingsDocument<'a>>,
    /// By rule, in the order of the rules; those over several sessions first.
    pub findings: Vec<FindingDocument<'a>>,
}

/// A session that was looked at.
#[derive(Serialize)]
pub struct SessionFindingsDocument<'a> {
    pub id: SessionId,
    pub agent: &'a str,
    pub title: &'a str,
    pub project: Option<&'a str>,
    pub started_at: Option<String>,
    /// How often each rule could have found something.
    pub opportunities: BTreeMap<&'static str, u64>,
    pub findings: usize,
}

#[derive(Serialize)]
pub struct FindingDocument<'a> {
    pub rule: &'static str,
    pub signature: &'a str,
    pub title: &'a str,
    /// In how many sessions.
    pub sessions: u64,
    pub count: u64,
    pub opportunities: u64,
    pub cost: CostDocument,
    pub evidence: Vec<EvidenceDocument<'a>>,
}

#[derive(Serialize)]
pub struct CostDocument {
    pub calls: Option<u64>,
    pub duration_ms: Option<u64>,
    /// `duration_ms` may include waiting for a person.
    pub may_include_waiting: bool,
    pub tokens: Option<u64>,
    pub tokens_are_estimated: bool,
    pub chars: Option<u64>,
}

#[derive(Serialize)]
pub struct EvidenceDocument<'a> {
    pub session: SessionId,
    pub turn: u32,
    pub step: Option<u32>,
    pub part: Option<String>,
    pub what: &'a str,
}

impl<'a> FindingsDocument<'a> {
    pub fn new(found: &'a Findings) -> FindingsDocument<'a> {
        let mut document = FindingsDocument::of_sessions(found.sessions.iter().map(|it| &**it));
        let across = found.across.iter().map(|shared| FindingDocument {
            sessions: shared.sessions,
            evidence: shared.places.iter().map(|(id, it)| EvidenceDocument::new(*id, it)).collect(),
            ..FindingDocument::new(None, &shared.finding)
        });
        document.findings.splice(0..0, across);
        document.findings.sort_by_key(|finding| Rule::of_name(finding.rule));
        document
    }

    pub fn of_sessions(
        sessions: impl IntoIterator<Item = &'a SessionFindings>,
    ) -> FindingsDocument<'a> {
        let mut document = FindingsDocument { sessions: Vec::new(), findings: Vec::new() };
        for found in sessions {
            document.sessions.push(SessionFindingsDocument::new(found));
            let findings = found.rules.iter().flat_map(|(_, found)| &found.findings);
            let session = Some(found.session);
            document.findings.extend(findings.map(|it| FindingDocument::new(session, it)));
        }
        document
    }
}

impl<'a> SessionFindingsDocument<'a> {
    fn new(found: &'a SessionFindings) -> SessionFindingsDocument<'a> {
        let opportunities = found.rules.iter().filter(|(_, found)| found.opportunities > 0);
        SessionFindingsDocument {
            id: found.session,
            agent: &found.agent,
            title: &found.title,
            project: found.project.as_deref(),
            started_at: unspool_model::document::time(found.started),
            opportunities: opportunities
                .map(|(rule, it)| (rule.name(), it.opportunities))
                .collect(),
            findings: found.count(),
        }
    }
}

impl<'a> FindingDocument<'a> {
    fn new(session: Option<SessionId>, finding: &'a Finding) -> FindingDocument<'a> {
        let Cost { calls, duration_ms, may_include_waiting, tokens, tokens_are_estimated, chars } =
            finding.cost;
        let place = |it: &'a Evidence| session.map(|session| EvidenceDocument::new(session, it));
        FindingDocument {
            rule: finding.rule.name(),
            signature: &finding.signature,
            title: &finding.title,
            sessions: 1,
            count: finding.count,
            opportunities: finding.opportunities,
            cost: CostDocument {
                calls,
                duration_ms,
                may_include_waiting,
                tokens,
                tokens_are_estimated,
                chars,
            },
            evidence: finding.evidence.iter().filter_map(place).collect(),
        }
    }
}

impl<'a> EvidenceDocument<'a> {
    fn new(session: SessionId, evidence: &'a Evidence) -> EvidenceDocument<'a> {
        let Evidence { turn, step, part, what } = evidence;
        let part = part.map(|part| part.to_string());
        EvidenceDocument { session, turn: *turn, step: *step, part, what }
    }
}
