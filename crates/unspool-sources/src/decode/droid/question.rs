//! The `AskUser` tool. Questions and answers are lines of text, each after a mark: `1. [question]`,
//! `[topic]`, `[option]`, and in the result `[answer]`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EventKind};
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind, QuestionOption};

use super::super::{Emitter, Fields};

pub(super) const ASK_TOOL: &str = "AskUser";

pub(super) fn ask(emit: &mut Emitter<'_>, call: &Arc<str>, input: &Fields<'_>) {
    let text = input.text("questionnaire").unwrap_or_default();
    let mut items: Vec<QuestionItem> = Vec::new();
    for line in text.lines() {
        if let Some(question) = question_of(line) {
            items.push(QuestionItem { question, ..QuestionItem::default() });
        } else if let Some(item) = items.last_mut() {
            if let Some(topic) = line.trim().strip_prefix("[topic]") {
                item.header = Some(topic.trim().to_owned());
            } else if let Some(option) = line.trim().strip_prefix("[option]") {
                let label = option.trim().to_owned();
                item.options.push(QuestionOption { label, description: None });
            }
        }
    }
    if items.is_empty() {
        return;
    }
    let question = Question { request_id: None, kind: QuestionKind::Choice, items };
    let (call, tool) = (CallRef::Id(call.clone()), ASK_TOOL.to_owned());
    emit.push(EventKind::QuestionAsked { call, tool, question, requested: true, inferred: false });
}

/// Reads the answers from the result of the call.
pub(super) fn answer(emit: &mut Emitter<'_>, call: &Arc<str>, output: &str) {
    let mut choices: Vec<(String, String)> = Vec::new();
    let mut asked = None;
    for line in output.lines() {
        if let Some(question) = question_of(line) {
            asked = Some(question);
        } else if let Some(answer) = line.trim().strip_prefix("[answer]") {
            choices.push((asked.take().unwrap_or_default(), answer.trim().to_owned()));
        }
    }
    if choices.is_empty() {
        return;
    }
    let texts: Vec<&str> = choices.iter().map(|(_, answer)| answer.as_str()).collect();
    let (decision, text) = (Decision::Answered, texts.join(" · "));
    let answer = Answer { decision, text, choices, observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call.clone()), answer });
}

/// The question of a line `1. [question] …`.
fn question_of(line: &str) -> Option<String> {
    let line = line.trim();
    let numbered = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let rest = numbered.strip_prefix('.').unwrap_or(line).trim_start();
    Some(rest.strip_prefix("[question]")?.trim().to_owned())
}
