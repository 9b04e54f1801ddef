//! Questions to the user: the question attached to any call, and the tools that only ask.

use serde::Deserialize;
use serde_json::Value;
use unspool_model::part::{Decision, QuestionKind, Tool};

use super::call::{CardContent, ParsedCall};
use crate::block::{Answer, Question, QuestionItem, QuestionOption, Span};
use crate::present::format;

/// The question attached to a call, with its answer.
pub fn overlay(call: &ParsedCall) -> Option<Question> {
    let tool = call.tool;
    let answer = tool.answer.as_ref();
    let Some(question) = &tool.question else {
        // No feed recorded the question: a permission that was granted or denied.
        let answer = answer.filter(|_| question_input(&call.input).is_empty())?;
        let answer = Some(block_answer(answer));
        return Some(Question {
            kind: QuestionKind::Permission,
            open: false,
            items: Vec::new(),
            answer,
        });
    };
    Some(attached(question, answer))
}

/// The questions that were answered before the call was asked about again.
pub fn earlier(tool: &Tool) -> Vec<Question> {
    let earlier = tool.earlier.iter();
    earlier.map(|earlier| attached(&earlier.question, Some(&earlier.answer))).collect()
}

fn attached(
    question: &unspool_model::part::Question,
    answer: Option<&unspool_model::part::Answer>,
) -> Question {
    let choices = answer.map(|answer| answer.choices.as_slice()).unwrap_or_default();
    let items = question.items.iter().map(|item| {
        let given = choices.iter().find(|(question_input, _)| *question_input == item.question);
        let given = given.map(|(_, given)| given.clone());
        let options = item.options.iter().map(|option| QuestionOption {
            label: option.label.clone(),
            description: option.description.clone(),
            chosen: is_chosen(given.as_deref(), &option.label),
        });
        QuestionItem {
            header: item.header.clone(),
            question: item.question.clone(),
            options: options.collect(),
            multi_select: item.multi_select,
            answer: given.clone(),
        }
    });
    let items = items.collect();
    Question { kind: question.kind, open: false, items, answer: answer.map(block_answer) }
}

fn block_answer(answer: &unspool_model::part::Answer) -> Answer {
    let (decision, text) = (answer.decision, answer.text.clone());
    let answered_by = answer.by.as_deref().and_then(answered_by);
    Answer { decision, text, observed: answer.observed, missing: false, answered_by }
}

/// Who answered, in words. An interruption is no answer of anybody, and the turn shows it.
fn answered_by(by: &str) -> Option<String> {
    match by {
        "" | "interruption" | "end of the turn" => None,
        "rule" => Some("answered by a rule".to_owned()),
        "command line" => Some("answered on the command line".to_owned()),
        place => Some(format!("answered in the {}", format::first_line(place, 40))),
    }
}

/// Multiple chosen labels are joined with ", ".
fn is_chosen(given: Option<&str>, label: &str) -> bool {
    given.is_some_and(|given| given == label || given.split(", ").any(|one| one == label))
}

#[derive(Deserialize)]
struct QuestionInput {
    question: String,
    header: Option<String>,
    #[serde(default)]
    options: Vec<OptionInput>,
    #[serde(default, rename = "multiSelect", alias = "multiple")]
    multi_select: bool,
}

#[derive(Deserialize)]
struct OptionInput {
    label: String,
    description: Option<String>,
}

/// Parses the questions of an input: a list, or one question with its choices (Copilot).
fn question_input(input: &Value) -> Vec<QuestionInput> {
    if let Some(list) = input.get("questions") {
        return Vec::deserialize(list).unwrap_or_default();
    }
    let Some(question) = input.get("question").and_then(Value::as_str) else {
        return Vec::new();
    };
    let choices = input.get("choices").and_then(Value::as_array).into_iter().flatten();
    let options = choices.filter_map(|choice| {
        Some(OptionInput { label: choice.as_str()?.to_owned(), description: None })
    });
    let options = options.collect();
    vec![QuestionInput {
        question: question.to_owned(),
        header: None,
        options,
        multi_select: false,
    }]
}

/// A call of Droid, whose questions are lines of text that its decoder reads.
fn card_of_question(call: &ParsedCall) -> Option<CardContent> {
    call.input.get("questionnaire")?;
    let first = &call.tool.question.as_ref()?.items.first()?.question;
    Some(CardContent::new(call.name(), vec![Span::plain(super::line(first))]))
}

/// AskUserQuestion: questions from the input, answers from the result.
pub fn question(call: &ParsedCall) -> CardContent {
    let question_input = question_input(&call.input);
    let answers = call.result.get("answers");
    let given = |question: &str| {
        let recorded = call.tool.answer.as_ref().and_then(|answer| {
            let choice =
                answer.choices.iter().find(|(question_input, _)| question_input == question)?;
            Some(choice.1.clone())
        });
        recorded.or_else(|| Some(answers?.get(question)?.as_str()?.to_owned()))
    };
    let items: Vec<QuestionItem> = question_input
        .into_iter()
        .map(|question_input| {
            let answer = given(&question_input.question);
            let options = question_input.options.into_iter().map(|option| QuestionOption {
                chosen: is_chosen(answer.as_deref(), &option.label),
                label: option.label,
                description: option.description,
            });
            QuestionItem {
                header: question_input.header,
                options: options.collect(),
                question: question_input.question,
                multi_select: question_input.multi_select,
                answer,
            }
        })
        .collect();
    let Some(first) = items.first() else {
        return card_of_question(call).unwrap_or_else(|| super::generic::unknown(call));
    };
    let more = items.len() - 1;
    let mut summary = vec![Span::plain(super::line(&first.question))];
    if more > 0 {
        summary.push(Span::plain(format!("  +{}", format::count(more, "question"))).dim());
    }
    let answer = call.tool.answer.as_ref().map(block_answer).or_else(|| {
        answers.and_then(Value::as_object)?;
        let texts: Vec<&str> = items.iter().filter_map(|item| item.answer.as_deref()).collect();
        let (decision, text) = (Decision::Answered, texts.join(", "));
        Some(Answer { decision, text, observed: true, missing: false, answered_by: None })
    });
    // The call ended without an answer.
    let answer = answer.or_else(|| {
        let (decision, text) = (Decision::Declined, String::new());
        call.is_failed().then_some(Answer {
            decision,
            text,
            observed: false,
            missing: false,
            answered_by: None,
        })
    });
    let mut shown = CardContent::new(call.name(), summary);
    shown.question = Some(Question { kind: QuestionKind::Choice, open: false, items, answer });
    shown
}
