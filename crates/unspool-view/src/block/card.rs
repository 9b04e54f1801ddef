//! Cards: tool calls, with the question that a call asks. A question is also a block of its own.

use serde::{Deserialize, Serialize};

use super::{Badge, Block, Decision, Icon, QuestionKind, Span};

/// A tool call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Card {
    pub badge: Badge,
    pub icon: Icon,
    pub title: String,
    /// One line.
    pub summary: Vec<Span>,
    pub duration_ms: Option<u64>,
    /// The body is visible by default.
    pub open: bool,
    /// The answered questions before `question`, oldest first. Drawn above it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Question>,
    /// Drawn directly below the head, above the body (R-003-12).
    pub question: Option<Question>,
    pub body: Vec<Block>,
}

/// A question to the user. It is open until it has an answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Question {
    pub kind: QuestionKind,
    /// The call waits for the answer.
    #[serde(default)]
    pub open: bool,
    pub items: Vec<QuestionItem>,
    pub answer: Option<Answer>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuestionItem {
    pub header: Option<String>,
    pub question: String,
    pub options: Vec<QuestionOption>,
    pub multi_select: bool,
    /// The user's answer to this question.
    pub answer: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuestionOption {
    pub label: String,
    pub description: Option<String>,
    pub chosen: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub decision: Decision,
    pub text: String,
    /// False if the answer was inferred from later events.
    pub observed: bool,
    /// Nobody answered: the call was cut off.
    #[serde(default)]
    pub missing: bool,
    /// Who answered, in words, if a source says it.
    #[serde(default)]
    pub answered_by: Option<String>,
}
