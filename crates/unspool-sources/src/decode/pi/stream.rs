//! The events of `pi --mode json`, and both directions of `pi --mode rpc`. They have every word as
//! it came, the output of running tools, and questions of extensions. What Pi calls a turn here is
//! one model call.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, Event, EventKind, ProseKind};
use unspool_model::part::{
    Answer, Body, Compaction, Data, Decision, Notice, Question, QuestionItem, QuestionKind,
    QuestionOption,
};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Title, TitleOrigin};

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, SessionContext, SideChain};
use super::conversation::{Conversation, time_of};
use super::log::summary_name;
use super::result::{nested, text_of};

/// The answer with which an extension is told to block a call.
const NO: &str = "No";

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StreamDecoder {
    conversation: Conversation,
    project: Option<String>,
    /// The calls that run, with the length of the output so far.
    outputs: BTreeMap<Arc<str>, usize>,
    /// Calls in the order in which they started to run: a question is of the last one.
    started: Vec<Arc<str>>,
    /// The calls of open questions, by request.
    requests: BTreeMap<String, Arc<str>>,
    /// The calls whose question was answered with `No`.
    negated: BTreeSet<Arc<str>>,
    follows: Option<SideChain>,
}

impl Decoder for StreamDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        // The log of the parent reports whose sub-agent it is.
        if self.follows.take().is_some() || self.conversation.is_agent {
            return self.conversation.messages(&mut emit, fields);
        }
        if super::is_head(fields) {
            self.conversation.session = fields.text("id").unwrap_or_default().into();
            emit.at = fields.time("timestamp");
            let (branch, version, cost) = (None, None, None);
            self.project = fields.string("cwd");
            let project = self.project.clone();
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
            return RecordOutcome::Metadata;
        }
        self.event(&mut emit, &super::event_of(fields))
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn nested<'a>(&self, session: &str, fields: &Fields<'a>) -> Vec<(SideChain, Fields<'a>)> {
        let event = super::event_of(fields);
        if event.is("type", "message_end") {
            nested(session, &event.fields("message"))
        } else {
            Vec::new()
        }
    }

    fn session_context(&self) -> Option<SessionContext> {
        Some(SessionContext { project: self.project.clone(), branch: None, version: None })
    }

    fn begin_side_chain(&mut self, chain: &SideChain) {
        self.conversation.is_agent = true;
        self.conversation.session = chain.id.clone();
        self.follows = Some(chain.clone());
    }
}

impl StreamDecoder {
    fn event(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        let message = event.fields("message");
        match event.text("type").as_deref() {
            Some("message_start") => {
                emit.at = time_of(&message);
                if let Some(key) = reply_key(&message) {
                    self.conversation.start_reply(emit, &message, &key);
                }
                RecordOutcome::Metadata
            }
            Some("message_update") => self.update(emit, event, &message),
            Some("message_end") => {
                emit.at = time_of(&message);
                if let Some(call) = message.text("toolCallId") {
                    self.stop(&call);
                }
                self.conversation.message(emit, &message, "").0
            }
            Some("tool_execution_start") => {
                let call: Arc<str> = event.text("toolCallId").unwrap_or_default().into();
                self.started.push(call.clone());
                self.outputs.insert(call.clone(), 0);
                emit.push(EventKind::ToolStarted { call: CallRef::Id(call) });
                RecordOutcome::InParts
            }
            Some("tool_execution_update") => self.output(emit, event),
            // The message with the result follows when all calls of the reply have ended.
            Some("tool_execution_end") => {
                let call = event.text("toolCallId").unwrap_or_default();
                self.stop(&call);
                self.end_execution(emit, &call, event)
            }
            Some("compaction_end") => compaction(emit, event),
            Some("auto_retry_start") => {
                let attempt = event.number("attempt").unwrap_or(1);
                let why = event.string("errorMessage").unwrap_or_default();
                let text = format!("Retry, attempt {attempt}: {why}");
                self.conversation.report_retry(emit, Some(text));
                RecordOutcome::InParts
            }
            Some("session_info_changed") => {
                if let Some(text) = event.string("name").filter(|name| !name.is_empty()) {
                    let origin = TitleOrigin::Custom;
                    emit.push(EventKind::TitleSet(Title { text, origin }));
                }
                RecordOutcome::Metadata
            }
            Some("extension_ui_request") => self.request(emit, event),
            Some("extension_ui_response") => self.response(emit, event),
            // They repeat the messages of a model call, or of all of them.
            // An entry that was appended is in the file.
            Some(kind @ ("turn_end" | "agent_end" | "entry_appended")) => {
                RecordOutcome::left_out(kind)
            }
            Some(
                "agent_start"
                | "agent_settled"
                | "turn_start"
                | "queue_update"
                | "compaction_start"
                | "auto_retry_end"
                | "thinking_level_changed"
                | "response"
                | "prompt"
                | "steer"
                | "follow_up"
                | "abort",
            ) => RecordOutcome::Metadata,
            // Requests of the client, and events of newer versions.
            Some(kind) if event.has("id") => RecordOutcome::left_out(kind),
            kind => {
                let kind = kind.unwrap_or("event").to_owned();
                let data = Data { kind, payload: event.whole() };
                emit.push(EventKind::Part(None, Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    fn update(
        &mut self,
        emit: &mut Emitter<'_>,
        event: &Fields<'_>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let change = event.fields("assistantMessageEvent");
        let prose_kind = match change.text("type").as_deref() {
            Some("text_delta") => ProseKind::Text,
            Some("thinking_delta") => ProseKind::Reasoning,
            _ => return RecordOutcome::Metadata,
        };
        let index = change.number("contentIndex").and_then(|at| u32::try_from(at).ok());
        let (Some(key), Some(index)) = (reply_key(message), index) else {
            return RecordOutcome::left_out("message_update");
        };
        let text = change.string("delta").unwrap_or_default();
        let block = Some(Name::Block(key, index));
        emit.push(EventKind::ProseDelta { prose_kind, block, text });
        RecordOutcome::InParts
    }

    /// The output of a running tool, repeated as a whole.
    fn output(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        let call: Arc<str> = event.text("toolCallId").unwrap_or_default().into();
        let output = text_of(&event.fields("partialResult"));
        let Some(length) = self.outputs.get_mut(&call).filter(|_| event.is("toolName", "bash"))
        else {
            return RecordOutcome::Metadata;
        };
        // Once it is long, only its end is repeated.
        let Some(more) = output.get(*length..).filter(|more| !more.is_empty()) else {
            return RecordOutcome::Metadata;
        };
        *length = output.len();
        let text = more.to_owned();
        emit.push(EventKind::ToolOutputDelta { call: CallRef::Id(call), text });
        RecordOutcome::InParts
    }

    fn end_execution(
        &mut self,
        emit: &mut Emitter<'_>,
        call: &str,
        event: &Fields<'_>,
    ) -> RecordOutcome {
        let held = self.conversation.calls.get(call).cloned();
        // An extension that asks with a list whether a call may run, and then blocks it.
        if self.negated.remove(call) && event.flag("isError") {
            let (decision, text) = (Decision::Denied, NO.to_owned());
            let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
            emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call.into()), answer });
        }
        let result = event.fields("result");
        let outcome = self.conversation.end_call_with(emit, call, &result, event.flag("isError"));
        if let Some(tool) = held {
            // The message of the result follows.
            self.conversation.calls.insert(call.into(), tool);
        }
        outcome
    }

    fn stop(&mut self, call: &str) {
        self.outputs.remove(call);
        self.started.retain(|held| **held != *call);
    }

    /// A question of an extension. It does not say about which call; that one runs.
    fn request(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        let id = event.string("id").unwrap_or_default();
        let title = event.string("title").or_else(|| event.string("message")).unwrap_or_default();
        let kind = match event.text("method").as_deref() {
            Some("select") => QuestionKind::Choice,
            Some("confirm") => QuestionKind::Permission,
            Some("input" | "editor") => QuestionKind::Text,
            // Notifications and widgets.
            method => {
                let method = method.unwrap_or_default();
                return RecordOutcome::left_out(format!("extension_ui_request/{method}"));
            }
        };
        let Some(call) = self.started.last().cloned() else {
            let notice = Notice { code: "question".to_owned(), text: title };
            let name = Some(Name::Record(id.into()));
            emit.push(EventKind::Part(name, Body::Notice(notice)));
            return RecordOutcome::InParts;
        };
        let labels: Vec<String> = event.read("options").unwrap_or_default();
        let option = |label| QuestionOption { label, description: None };
        let options = labels.into_iter().map(option).collect();
        let item = QuestionItem { question: title, options, ..QuestionItem::default() };
        let question = Question { request_id: Some(id.clone()), kind, items: vec![item] };
        let tool = self.conversation.calls.get(&call).cloned().unwrap_or_default();
        self.requests.insert(id, call.clone());
        let (call, requested) = (CallRef::Id(call), false);
        emit.push(EventKind::QuestionAsked { call, tool, question, requested, inferred: false });
        RecordOutcome::InParts
    }

    fn response(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        let call = self.requests.remove(&event.string("id").unwrap_or_default());
        let Some(call) = call else { return RecordOutcome::Metadata };
        let value = event.string("value");
        if value.as_deref() == Some(NO) {
            self.negated.insert(call.clone());
        }
        let (decision, text) = match (value, event.truth("confirmed")) {
            (Some(value), _) => (Decision::Answered, value),
            (None, Some(true)) => (Decision::Allowed, "allowed".to_owned()),
            (None, Some(false)) => (Decision::Denied, String::new()),
            (None, None) => (Decision::Declined, String::new()),
        };
        let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
        emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call), answer });
        RecordOutcome::InParts
    }
}

/// The name of a reply, if the message is one.
fn reply_key(message: &Fields<'_>) -> Option<Arc<str>> {
    let time = message.number("timestamp").filter(|_| message.is("role", "assistant"))?;
    Some(time.to_string().into())
}

/// The summary that takes the place of older messages.
fn compaction(emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
    let result = event.fields("result");
    let Some(summary) = result.string("summary") else { return RecordOutcome::Metadata };
    let compaction = Compaction {
        trigger: event.string("reason"),
        tokens_before: result.number("tokensBefore"),
        summary: summary.clone(),
        ..Compaction::default()
    };
    emit.push(EventKind::Part(Some(summary_name(&summary)), Body::Compaction(compaction)));
    RecordOutcome::InParts
}
