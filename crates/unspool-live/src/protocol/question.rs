//! Questions of an agent, and their answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use unspool_model::agent::own_call_id;
use unspool_sources::decode::acp::form_request;

use crate::form::FormField;
use crate::wire::RequestId;

/// A question of the agent that nobody has answered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Our number of the question. The agent's ids may come again, and an answer must not be taken
    /// for another question.
    pub id: String,
    /// The agent's request.
    pub request: RequestId,
    pub session: String,
    /// The call that it is about, by the agent's id.
    pub call: Option<String>,
    pub text: String,
    pub kind: RequestedInput,
    /// What it is about, as the agent describes it: command, diff, file.
    pub subject: Value,
    /// When it came, in milliseconds.
    pub since: u64,
}

impl OpenQuestion {
    /// True if it is about a call of the archive.
    pub fn is_about(&self, agent: &str, call: &str) -> bool {
        match &self.call {
            Some(own) => own_call_id(agent, call) == own,
            None => {
                form_request(call).is_some_and(|id| id == self.request.as_json().trim_matches('"'))
            }
        }
    }
}

/// Who answers in the dialog of the agent itself, as `by` of an answer.
pub const AGENT_TERMINAL: &str = "agent's terminal";
/// What such an answer is, where nothing more is known.
pub const ANSWERED: &str = "answered";

/// An answer that was given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GivenAnswer {
    /// Counts the answers of the chat.
    pub number: u64,
    pub question: String,
    pub text: String,
    /// A surface, or `rule`.
    pub by: String,
    pub answer: String,
}

impl GivenAnswer {
    /// Who answered what, for the surface of this kind that did not.
    pub fn sentence(&self, surface: &str) -> String {
        let place = if self.by == AGENT_TERMINAL { "in" } else { "by" };
        let answer = Some(&self.answer).filter(|answer| *answer != ANSWERED);
        let answer = answer.map(|answer| format!(": {answer}")).unwrap_or_default();
        format!("answered {place} {}{answer}", other_surface(&self.by, surface))
    }
}

/// Who did something, for a surface that did not do it: `the browser`, or `another browser` for one.
pub fn other_surface(by: &str, surface: &str) -> String {
    let article = if by == surface { "another" } else { "the" };
    format!("{article} {by}")
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedInput {
    Permission(Vec<PermissionOption>),
    Form(Vec<FormField>),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PermissionOption {
    pub id: String,
    /// The agent's label.
    pub label: String,
    /// What the agent says it does. The person sees our word for it.
    pub kind: PermissionKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    /// The agent names no kind that we know: neither yes nor no.
    Other,
}

impl PermissionKind {
    pub fn allows(self) -> bool {
        matches!(self, PermissionKind::AllowOnce | PermissionKind::AllowAlways)
    }

    pub fn refuses(self) -> bool {
        matches!(self, PermissionKind::RejectOnce | PermissionKind::RejectAlways)
    }

    /// Our word for it.
    pub fn word(self) -> &'static str {
        match self {
            PermissionKind::AllowOnce => "allow once",
            PermissionKind::AllowAlways => "always allow",
            PermissionKind::RejectOnce => "refuse",
            PermissionKind::RejectAlways => "always refuse",
            PermissionKind::Other => "other",
        }
    }
}
