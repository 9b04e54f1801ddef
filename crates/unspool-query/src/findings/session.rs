//! What a session says, for lists, pages and comparisons.

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_model::id::SessionId;
use unspool_view::finding::{Found, Rule, Shared};

use crate::prompts::SeenAdaptations;

/// What a session says, redacted.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionFindings {
    pub session: SessionId,
    /// The agent's own id of the session.
    pub agent_session: String,
    pub agent: String,
    pub title: String,
    pub project: Option<String>,
    pub started: Option<Timestamp>,
    pub sub_agent: bool,
    pub ended: Option<Timestamp>,
    /// The models that answered, most calls first, and the version of the agent.
    pub models: Vec<String>,
    pub version: Option<String>,
    /// The adaptations in its prompts.
    pub adaptations: SeenAdaptations,
    /// By rule, in the order of `Rule::ALL`.
    pub rules: Vec<(Rule, Found)>,
    /// What counts only together with other sessions.
    pub(super) shared: Shared,
}

impl SessionFindings {
    /// A session with these findings, of which nothing else matters.
    #[cfg(test)]
    pub fn for_tests(
        session: SessionId,
        started: Timestamp,
        rules: Vec<(Rule, Found)>,
        adaptations: SeenAdaptations,
    ) -> SessionFindings {
        SessionFindings {
            session,
            agent_session: session.to_string(),
            agent: "claude-code".to_owned(),
            title: "Untitled".to_owned(),
            project: Some("/home/dev/app".to_owned()),
            started: Some(started),
            ended: None,
            sub_agent: false,
            models: vec!["model".to_owned()],
            version: Some("1".to_owned()),
            adaptations,
            rules,
            shared: Shared::default(),
        }
    }

    /// The number of findings.
    pub fn count(&self) -> usize {
        self.rules.iter().map(|(_, found)| found.findings.len()).sum()
    }
}

/// The names, the most frequent first.
pub fn most_first(counts: FxHashMap<String, u64>) -> Vec<String> {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|(a, one), (b, other)| other.cmp(one).then(a.cmp(b)));
    counts.into_iter().map(|(name, _)| name).collect()
}
