//! Questions to the user: permissions, and questions of the model. Only the server's events record
//! permissions; the database shows them only as refused calls. Extends `OpenCodeDecoder`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EventKind};
use unspool_model::part::{
    Answer, Body, Decision, Notice, Question, QuestionItem, QuestionKind, QuestionOption,
};
use unspool_model::provenance::Name;

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::tool::call_of;

/// A request that has no answer yet.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingRequest {
    call: Arc<str>,
    /// The texts of its questions.
    questions: Vec<String>,
}

impl OpenCodeDecoder {
    /// Finds the call that a request refers to, and sets its turn.
    fn locate_call(&mut self, emit: &mut Emitter<'_>, body: &Fields<'_>) -> Option<Arc<str>> {
        let tool = body.fields(if body.has("tool") { "tool" } else { "source" });
        let (message, call) = (tool.text("messageID")?, tool.text("callID")?);
        let turn = self.held(&message).and_then(|held| held.turn.clone());
        emit.turn = turn.map(Name::Prompt).or_else(|| self.turn_name());
        Some(call_of(&message, &call))
    }

    pub(super) fn permission_request(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let request_id = body.string("id");
        let tool = body.string("permission").or_else(|| body.string("action")).unwrap_or_default();
        let question = format!("Allow {tool}?");
        let Some(call) = self.locate_call(emit, body) else {
            let name = request_id.map(|id| Name::Record(id.into()));
            let notice = Notice { code: "permission".to_owned(), text: question };
            emit.push(EventKind::Part(name, Body::Notice(notice)));
            return RecordOutcome::InParts;
        };
        if let Some(id) = &request_id {
            let request = PendingRequest { call: call.clone(), questions: Vec::new() };
            self.requests.insert(id.clone(), request);
        }
        let items = vec![QuestionItem { question, ..QuestionItem::default() }];
        let question = Question { request_id, kind: QuestionKind::Permission, items };
        emit.push(EventKind::QuestionAsked {
            call: CallRef::Id(call),
            tool,
            question,
            requested: true,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    pub(super) fn permission_reply(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let reply = body.text("reply").unwrap_or_default();
        let (decision, text) = match &*reply {
            "once" => (Decision::Allowed, "allowed once"),
            "always" => (Decision::Allowed, "always allowed"),
            _ => (Decision::Denied, "denied"),
        };
        self.emit_answer(emit, body, |_| Answer {
            decision,
            text: text.to_owned(),
            choices: Vec::new(),
            observed: true,
            by: None,
        })
    }

    pub(super) fn question_request(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let pending_questions =
            self.locate_call(emit, body).zip(questions(body, body.string("id")));
        let Some((call, question)) = pending_questions else {
            return RecordOutcome::left_out("question.asked");
        };
        if let Some(id) = &question.request_id {
            let questions = question.items.iter().map(|item| item.question.clone()).collect();
            self.requests.insert(id.clone(), PendingRequest { call: call.clone(), questions });
        }
        let tool = "question".to_owned();
        emit.push(EventKind::QuestionAsked {
            call: CallRef::Id(call),
            tool,
            question,
            requested: true,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    pub(super) fn question_reply(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let answer_labels: Vec<Vec<String>> = body.read("answers").unwrap_or_default();
        self.emit_answer(emit, body, |request| answers(&request.questions, &answer_labels))
    }

    pub(super) fn question_rejection(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        self.emit_answer(emit, body, |_| dismissal())
    }

    /// Kilo suggests what to do next. The call runs until the user chooses or dismisses it.
    pub(super) fn suggestion(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let question = suggestion(body, body.string("id"));
        let Some((call, question)) = self.locate_call(emit, body).zip(question) else {
            return RecordOutcome::left_out("suggestion.shown");
        };
        let (call, tool, requested) = (CallRef::Id(call), "suggest".to_owned(), false);
        emit.push(EventKind::QuestionAsked { call, tool, question, requested, inferred: false });
        RecordOutcome::InParts
    }

    fn emit_answer(
        &mut self,
        emit: &mut Emitter<'_>,
        body: &Fields<'_>,
        answer: impl FnOnce(&PendingRequest) -> Answer,
    ) -> RecordOutcome {
        let id = body.text("requestID").unwrap_or_default();
        let Some(request) = self.requests.remove(&*id) else {
            return RecordOutcome::left_out("answer without its question");
        };
        let answer = answer(&request);
        emit.push(EventKind::QuestionAnswered { call: CallRef::Id(request.call), answer });
        RecordOutcome::InParts
    }
}

/// The answer of a user who dismissed a question.
pub(super) fn dismissal() -> Answer {
    Answer {
        decision: Decision::Declined,
        text: "dismissed".to_owned(),
        choices: Vec::new(),
        observed: true,
        by: None,
    }
}

/// The suggestion of a call or an event, as a question.
pub(super) fn suggestion(from: &Fields<'_>, request_id: Option<String>) -> Option<Question> {
    let text = from.string("suggest").or_else(|| from.string("text"))?;
    let option = |action: Fields<'_>| QuestionOption {
        label: action.string("label").unwrap_or_default(),
        description: action.string("description"),
    };
    let options = from.list("actions").map(option).collect();
    let item = QuestionItem { question: text, options, ..QuestionItem::default() };
    Some(Question { request_id, kind: QuestionKind::Choice, items: vec![item] })
}

/// Parses the questions of a call or a request.
pub(super) fn questions(from: &Fields<'_>, request_id: Option<String>) -> Option<Question> {
    let options = |item: &Fields<'_>| {
        let option = |option: Fields<'_>| QuestionOption {
            label: option.string("label").unwrap_or_default(),
            description: option.string("description"),
        };
        item.list("options").map(option).collect()
    };
    let items: Vec<QuestionItem> = from
        .list("questions")
        .map(|item| QuestionItem {
            header: item.string("header"),
            question: item.string("question").unwrap_or_default(),
            options: options(&item),
            multi_select: item.flag("multiple"),
        })
        .collect();
    let kind = QuestionKind::Choice;
    (!items.is_empty()).then_some(Question { request_id, kind, items })
}

/// Pairs the answers with the questions, in order.
pub(super) fn answers(questions: &[String], answer_labels: &[Vec<String>]) -> Answer {
    let answer_labels: Vec<String> = answer_labels.iter().map(|labels| labels.join(", ")).collect();
    Answer {
        decision: Decision::Answered,
        text: answer_labels.join("; "),
        choices: questions.iter().cloned().zip(answer_labels).collect(),
        observed: true,
        by: None,
    }
}

impl OpenCodeDecoder {
    /// Remembers the questions of a version 2 call, by call id.
    pub(super) fn pending_questions(&mut self, call: &Arc<str>, questions: Vec<String>) {
        self.requests.insert(call.to_string(), PendingRequest { call: call.clone(), questions });
    }

    pub(super) fn questions_of(&mut self, call: &str) -> Option<Vec<String>> {
        self.requests.remove(call).map(|request| request.questions)
    }
}
