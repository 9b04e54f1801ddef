//! Events of version 2 of the API: `session.next.…`. Texts are numbered within each message, there
//! are no parts, and the input of calls is streamed. Extends `OpenCodeDecoder`.

use std::sync::Arc;

use unspool_model::event::{
    CallRef, EndReason, EventKind, ProseDetail, ProseKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::part::{Body, File, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::message::{failure, usage};
use super::questions::{answers, questions};
use super::tool::{call_of, tasks, tasks_name};

impl OpenCodeDecoder {
    pub(super) fn next(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let message: Arc<str> = body.text("assistantMessageID").unwrap_or_default().into();
        let call = || call_of(&message, &body.text("callID").unwrap_or_default());
        match kind {
            "prompted" => self.prompted(emit, body),
            // `prompted` repeats it when the model receives it.
            "prompt.admitted" => RecordOutcome::Metadata,
            "step.started" => {
                let model = body.fields("model").string("id");
                emit.push(EventKind::StepStarted { step: Name::Message(message), model });
                RecordOutcome::Metadata
            }
            "step.ended" => {
                let step = Name::Message(message);
                let usage = usage(&body.fields("tokens"));
                emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
                let stop_reason = body.string("finish");
                let done = stop_reason.as_deref().is_some_and(|finish| finish != "tool-calls");
                emit.push(EventKind::StepEnded { step, stop_reason });
                if done {
                    emit.push(EventKind::TurnEnded(EndReason::Completed));
                    self.ended = true;
                }
                RecordOutcome::Metadata
            }
            "step.failed" => {
                let name = Name::Record(format!("{message}/error").into());
                emit.push(EventKind::Part(Some(name), Body::Error(failure(&body.fields("error")))));
                emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
                RecordOutcome::InParts
            }
            "text.started" | "reasoning.started" => {
                emit.push(EventKind::BlockStarted { block: block(&message, body) });
                RecordOutcome::Metadata
            }
            "text.delta" | "reasoning.delta" => {
                let text = body.string("delta").unwrap_or_default();
                let (prose_kind, block) = (prose_kind(kind), Some(block(&message, body)));
                emit.push(EventKind::ProseDelta { prose_kind, block, text });
                RecordOutcome::InParts
            }
            "text.ended" | "reasoning.ended" => {
                let text = body.string("text").unwrap_or_default();
                let (prose_kind, block) = (prose_kind(kind), Some(block(&message, body)));
                emit.push(EventKind::ProseCompleted {
                    prose_kind,
                    block,
                    text,
                    detail: ProseDetail::default(),
                });
                RecordOutcome::InParts
            }
            "tool.input.started" | "tool.input.delta" => {
                let name = body.string("name").unwrap_or_default();
                let text = body.string("delta").unwrap_or_default();
                emit.push(EventKind::ToolInputDelta { call: CallRef::Id(call()), name, text });
                RecordOutcome::InParts
            }
            // `tool.called` follows with the complete input.
            "tool.input.ended" => RecordOutcome::Metadata,
            "tool.called" => self.next_called(emit, call(), body),
            "tool.success" => self.next_succeeded(emit, call(), body),
            "tool.failed" => self.next_failed(emit, call(), body),
            "tool.progress" => RecordOutcome::left_out(format!("session.next.{kind}")),
            _ => self.unknown(emit, &format!("session.next.{kind}"), body, body),
        }
    }

    /// The model receives a prompt: a turn begins, even if the last one has not ended.
    fn prompted(&mut self, emit: &mut Emitter<'_>, body: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = body.text("messageID").unwrap_or_default().into();
        let prompt = body.fields("prompt");
        let text = prompt.string("text").filter(|text| !text.is_empty());
        let text = text.map(|text| Body::Text(Text { text, ..Text::default() }));
        let files = prompt.list("files").map(|file| {
            Body::File(File {
                name: file.string("name").or_else(|| file.string("filename")),
                media_type: file.string("mime"),
                url: file.string("uri").or_else(|| file.string("url")),
                text: None,
            })
        });
        let user = text.into_iter().chain(files).collect();
        emit.turn = None;
        let names = vec![Name::Prompt(id.clone())];
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
        self.turn = Some(id);
        self.ended = false;
        RecordOutcome::InParts
    }

    fn next_called(
        &mut self,
        emit: &mut Emitter<'_>,
        call: Arc<str>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let name = body.string("tool").unwrap_or_default();
        let input = body.fields("input");
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(call.clone()),
            parent_call_id: None,
            name: name.clone(),
            input: body.json("input"),
            content_hash: body.content_hash(&name, "input"),
            provider_executed: body.fields("provider").flag("executed"),
            title: None,
            running: true,
        })));
        // Reserve the task list's place right after its call: the list arrives when the call ends.
        if name == "todowrite" {
            emit.push(EventKind::BlockStarted { block: tasks_name(&call) });
        }
        if name == "question"
            && let Some(question) = questions(&input, None)
        {
            // The answers refer to the questions by order only.
            let pending_questions =
                question.items.iter().map(|item| item.question.clone()).collect();
            self.pending_questions(&call, pending_questions);
            let (call, requested) = (CallRef::Id(call), false);
            emit.push(EventKind::QuestionAsked {
                call,
                tool: name,
                question,
                requested,
                inferred: false,
            });
        }
        RecordOutcome::InParts
    }

    fn next_succeeded(
        &mut self,
        emit: &mut Emitter<'_>,
        call: Arc<str>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        let structured = body.fields("structured");
        let answer_labels: Vec<Vec<String>> = structured.read("answers").unwrap_or_default();
        if let Some(questions) = self.questions_of(&call).filter(|_| !answer_labels.is_empty()) {
            let answer = answers(&questions, &answer_labels);
            emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call.clone()), answer });
        }
        let texts: Vec<String> =
            body.list("content").filter_map(|content| content.string("text")).collect();
        let outcome = ToolOutcome {
            output: Some(texts.join("\n")),
            result: body.json("structured"),
            exit_code: structured.read("exit"),
            duration_ms: None,
        };
        let end = ToolEnd::Completed;
        emit.push(EventKind::ToolEnded { call: CallRef::Id(call.clone()), end, outcome });
        // The record does not repeat the tool's name.
        if structured.has("todos") {
            tasks(emit, &call, &structured);
        }
        let files = body.list("content").filter(|content| content.is("type", "file"));
        for (nth, given) in files.enumerate() {
            let name = Name::Record(format!("{call}/{nth}").into());
            let file = File {
                name: given.string("name").or_else(|| given.string("filename")),
                media_type: given.string("mime"),
                url: given.string("uri").or_else(|| given.string("url")),
                text: None,
            };
            emit.push(EventKind::Part(Some(name), Body::File(file)));
        }
        RecordOutcome::InParts
    }

    fn next_failed(
        &mut self,
        emit: &mut Emitter<'_>,
        call: Arc<str>,
        body: &Fields<'_>,
    ) -> RecordOutcome {
        self.questions_of(&call);
        let error = body.fields("error").string("message").unwrap_or_default();
        // Refusing one call interrupts all of them, as stopping the turn does.
        let stopped = error == "Tool execution interrupted";
        let end = if stopped { ToolEnd::Rejected } else { ToolEnd::Failed };
        let outcome = ToolOutcome {
            output: Some(error),
            result: body.json("result"),
            exit_code: None,
            duration_ms: None,
        };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(call), end, outcome });
        if stopped {
            emit.push(EventKind::TurnEnded(EndReason::Interrupted));
            self.ended = true;
        }
        RecordOutcome::InParts
    }
}

fn prose_kind(kind: &str) -> ProseKind {
    if kind.starts_with("text") { ProseKind::Text } else { ProseKind::Reasoning }
}

/// The name of a text. Its id is unique only within its message.
fn block(message: &str, body: &Fields<'_>) -> Name {
    let id = body.text("textID").or_else(|| body.text("reasoningID")).unwrap_or_default();
    Name::Block(format!("{message}/{id}").into(), 0)
}
