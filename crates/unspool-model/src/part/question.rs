//! Questions to a person about a tool call, and their answers. Both are fields of the tool part, so
//! that an answer never stands apart from the call that it decides.

use serde::{Deserialize, Serialize};

/// A question to a person about a call. It belongs to the tool part and is not a part itself. It
/// is open while the tool has no [`Answer`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Question {
    pub request_id: Option<String>,
    pub kind: QuestionKind,
    /// Several questions in one request get one combined answer (R-X-09).
    pub items: Vec<QuestionItem>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    /// May this call run?
    Permission,
    /// One or more of the options, or free text.
    Choice,
    Text,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct QuestionItem {
    pub header: Option<String>,
    pub question: String,
    pub options: Vec<QuestionOption>,
    pub multi_select: bool,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct QuestionOption {
    pub label: String,
    pub description: Option<String>,
}

/// The answer to a question.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer {
    pub decision: Decision,
    /// What to show: "allowed once", "Celsius (Recommended)", the person's own words.
    pub text: String,
    /// The answer to each question of the request, by the question's text.
    pub choices: Vec<(String, String)>,
    /// False if no source reported the answer and it was inferred from later events (R-X-18).
    pub observed: bool,
    /// Who answered, if a source says it: a surface of unspool (`browser`, `terminal`), or a `rule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A question that was answered before the call was asked about again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EarlierQuestion {
    pub question: Question,
    pub answer: Answer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    Allowed,
    Denied,
    Answered,
    /// Dismissed, cancelled, or still open when the turn ended.
    Declined,
}

impl Decision {
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allowed => "allowed",
            Decision::Denied => "denied",
            Decision::Answered => "answered",
            Decision::Declined => "declined",
        }
    }
}
