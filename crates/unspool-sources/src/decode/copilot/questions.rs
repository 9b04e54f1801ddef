//! Questions to the user: permissions, questions with and without choices, forms and plans. In the
//! log, permissions are records, and a question is a tool call whose result is the answer. In the
//! live stream each is a request with a response. Extends `EventsDecoder`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EventKind, ToolEnd};
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind, QuestionOption};

use super::super::{Emitter, Fields, RecordOutcome};
use super::events::EventsDecoder;

impl EventsDecoder {
    pub(super) fn permission_request(
        &mut self,
        emit: &mut Emitter<'_>,
        data: &Fields<'_>,
    ) -> RecordOutcome {
        let question = data.fields("permissionRequest");
        let Some(id) = question.text("toolCallId").map(Arc::<str>::from) else {
            return RecordOutcome::left_out("permission.requested for no call");
        };
        let tool_name = self.calls.get(&id).cloned();
        let tool = tool_name.or_else(|| question.string("toolName")).unwrap_or_default();
        let item = QuestionItem {
            header: question.string("intention"),
            question: format!("Allow {tool}?"),
            ..QuestionItem::default()
        };
        let (request_id, kind) = (data.string("requestId"), QuestionKind::Permission);
        let question = Question { request_id, kind, items: vec![item] };
        emit.push(EventKind::QuestionAsked {
            call: CallRef::Id(id),
            tool,
            question,
            requested: true,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    pub(super) fn permission_response(
        &mut self,
        emit: &mut Emitter<'_>,
        data: &Fields<'_>,
    ) -> RecordOutcome {
        let Some(id) = data.text("toolCallId").map(Arc::<str>::from) else {
            return RecordOutcome::left_out("permission.completed for no call");
        };
        let result = data.fields("result");
        let kind = result.string("kind").unwrap_or_default();
        let words = result.string("feedback").or_else(|| result.string("reason"));
        let (decision, text) = match &*kind {
            "approved" => (Decision::Allowed, "allowed".to_owned()),
            "cancelled" => (Decision::Declined, words.unwrap_or(kind)),
            _ if kind.starts_with("approve") => {
                let scope = kind.trim_start_matches("approved-").trim_start_matches("approve-");
                (Decision::Allowed, format!("allowed {}", scope.replace('-', " ")))
            }
            _ => (Decision::Denied, words.unwrap_or_else(|| kind.replace('-', " "))),
        };
        let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
        emit.push(EventKind::QuestionAnswered { call: CallRef::Id(id), answer });
        RecordOutcome::InParts
    }

    /// A live question. It repeats the input of the call and adds the id of the request.
    pub(super) fn request(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) -> RecordOutcome {
        let Some(id) = data.text("toolCallId").map(Arc::<str>::from) else {
            return RecordOutcome::left_out("question of no call");
        };
        let Some(question) = question(data) else { return RecordOutcome::Metadata };
        let request_id = data.string("requestId");
        if let Some(request) = request_id.clone() {
            self.live.requests.insert(request, id.clone());
        }
        let tool = self.calls.get(&id).cloned().unwrap_or_default();
        let question = Question { request_id, ..question };
        emit.push(EventKind::QuestionAsked {
            call: CallRef::Id(id),
            tool,
            question,
            requested: false,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    pub(super) fn reply(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) -> RecordOutcome {
        let request = data.string("requestId").unwrap_or_default();
        let Some(call) = self.live.requests.remove(&request) else {
            return RecordOutcome::left_out("answer to no question");
        };
        let form = data.fields("content");
        let choices: Vec<(String, String)> = form
            .entries()
            .filter_map(|(name, value)| {
                let value = form.nodes.get(value)?;
                let shown = form.text_of(value).unwrap_or_else(|| form.source(value).into());
                Some((form.text_of(name)?.into_owned(), shown.into_owned()))
            })
            .collect();
        let filled: Vec<String> = choices.iter().map(|(name, it)| format!("{name}={it}")).collect();
        let text = data
            .string("answer")
            .or_else(|| data.string("selectedAction"))
            .or_else(|| data.string("feedback"))
            .unwrap_or_else(|| filled.join(", "));
        let declined = data.truth("approved") == Some(false)
            || data.text("action").is_some_and(|action| action != "accept");
        let decision = if declined { Decision::Declined } else { Decision::Answered };
        let answer = Answer { decision, text, choices, observed: true, by: None };
        emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call), answer });
        RecordOutcome::InParts
    }
}

/// The question asked by a call of `ask_user` or `exit_plan_mode`.
pub(super) fn question_of_call(tool: &str, input: &Fields<'_>) -> Option<Question> {
    matches!(tool, "ask_user" | "exit_plan_mode").then(|| question(input)).flatten()
}

/// Parses a question, a form or a plan, from the input of a call or from a live request.
fn question(input: &Fields<'_>) -> Option<Question> {
    let choices = |name: &str| {
        let labels: Vec<String> = input.read(name).unwrap_or_default();
        labels.into_iter().map(option).collect::<Vec<_>>()
    };
    let items = if let Some(question) = input.string("question") {
        vec![QuestionItem { question, options: choices("choices"), ..QuestionItem::default() }]
    } else if let Some(summary) = input.string("summary") {
        let header = Some("Plan".to_owned());
        let options = choices("actions");
        vec![QuestionItem { header, question: summary, options, multi_select: false }]
    } else {
        form(input)?
    };
    let is_choice = items.iter().any(|item| !item.options.is_empty());
    let kind = if is_choice { QuestionKind::Choice } else { QuestionKind::Text };
    Some(Question { request_id: None, kind, items })
}

/// A form: one question per field.
fn form(input: &Fields<'_>) -> Option<Vec<QuestionItem>> {
    let message = input.string("message")?;
    let schema = input.fields("requestedSchema").fields("properties");
    let mut items: Vec<QuestionItem> = schema
        .entries()
        .filter_map(|(name, _)| {
            let name = schema.text_of(name)?;
            let field = schema.fields(&name);
            let labels: Vec<String> = field.read("enum").unwrap_or_default();
            Some(QuestionItem {
                header: Some(message.clone()),
                question: field.string("title").unwrap_or_else(|| name.into_owned()),
                options: labels.into_iter().map(option).collect(),
                multi_select: false,
            })
        })
        .collect();
    if items.is_empty() {
        items.push(QuestionItem { question: message, ..QuestionItem::default() });
    }
    Some(items)
}

fn option(label: String) -> QuestionOption {
    QuestionOption { label, description: None }
}

/// The user's answer, from the result of the question tool, without the phrases that Copilot
/// puts around it.
pub(super) fn answer_of_call(tool: &str, end: ToolEnd, data: &Fields<'_>) -> Option<Answer> {
    let result = data.fields("result");
    let output = result.string("content").filter(|_| end == ToolEnd::Completed)?;
    let text = match tool {
        "ask_user" => {
            let prefixes = ["User selected: ", "User responded: "];
            prefixes.iter().find_map(|words| output.strip_prefix(words))?.to_owned()
        }
        "exit_plan_mode" => {
            output.strip_prefix("Plan approved")?;
            let shown = result.string("detailedContent").unwrap_or(output);
            shown.lines().next().unwrap_or_default().trim_start_matches("✅ ").to_owned()
        }
        _ => return None,
    };
    let (decision, choices) = (Decision::Answered, Vec::new());
    Some(Answer { decision, text, choices, observed: true, by: None })
}
