//! The JSON of a call's questions and answers.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::part::{Answer, EarlierQuestion, Question, QuestionKind, Tool};

/// A question.
pub struct QuestionDocument<'a>(pub &'a Question);

impl Serialize for QuestionDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = match self.0.kind {
            QuestionKind::Permission => "permission",
            QuestionKind::Choice => "choice",
            QuestionKind::Text => "text",
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("request_id", &self.0.request_id)?;
        map.serialize_entry("kind", kind)?;
        map.serialize_entry("items", &self.0.items)?;
        map.end()
    }
}

/// An answer.
pub struct AnswerDocument<'a>(pub &'a Answer);

impl Serialize for AnswerDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let choices: BTreeMap<&str, &str> = self
            .0
            .choices
            .iter()
            .map(|(question, answer)| (question.as_str(), answer.as_str()))
            .collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("decision", self.0.decision.name())?;
        map.serialize_entry("text", &self.0.text)?;
        map.serialize_entry("choices", &choices)?;
        map.serialize_entry("observed", &self.0.observed)?;
        if let Some(by) = &self.0.by {
            map.serialize_entry("by", by)?;
        }
        map.end()
    }
}

/// The questions before the newest one of a call; None if there are none, so that the field is
/// absent.
pub fn earlier_questions(tool: &Tool) -> Option<Vec<EarlierQuestionDocument<'_>>> {
    let earlier = tool.earlier.iter().map(EarlierQuestionDocument);
    (!tool.earlier.is_empty()).then(|| earlier.collect())
}

/// A question with its answer, from before the call was asked about again.
pub struct EarlierQuestionDocument<'a>(pub &'a EarlierQuestion);

impl Serialize for EarlierQuestionDocument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("question", &QuestionDocument(&self.0.question))?;
        map.serialize_entry("answer", &AnswerDocument(&self.0.answer))?;
        map.end()
    }
}
