//! Continue's session document, `~/.continue/sessions/<session>.json`. The reader gives the fields
//! before the history, each item of the history, and the fields after it as one record each. The
//! document is rewritten in place as a whole, and a compaction replaces the history by one item with
//! the summary. What was read before stays: nothing here removes anything.
//!
//! Items have no ids. A turn is named by its position, its text and the compaction before it, so
//! that a prompt which is typed again after a compaction is another turn. Its model calls are named
//! by their number in the turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{
    CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind, ToolEnd, ToolOutcome,
};
use unspool_model::id::digest;
use unspool_model::part::{Body, Compaction, Data, File, Text};
use unspool_model::price::ReportedCost;
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Title, TitleOrigin, Trigger};

use super::super::claude::message::message_text;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::tool::{emit_call, emit_request};
use super::usage::CallUsage;

/// How the id of a command begins that the user ran with `!`.
const SHELL_PREFIX: &str = "shell-";

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SessionDecoder {
    /// The number of the next item.
    index: u32,
    /// A digest of the summary that the history begins with.
    compaction: u64,
    turn: Option<Arc<str>>,
    /// The number of the next model call in the turn.
    step: u32,
    /// The last turn is over: its calls have their tokens, as the document has their sum.
    at_rest: bool,
    usage: CallUsage,
}

impl Decoder for SessionDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        if !fields.has("message") {
            return self.document(&mut emit, fields);
        }
        let message = fields.fields("message");
        let outcome = match message.text("role").as_deref() {
            Some("user") => self.user(&mut emit, fields, &message),
            Some("assistant") => self.assistant(&mut emit, fields, &message),
            Some("thinking") => self.thinking(&mut emit, &message),
            Some("tool") => {
                let id = message.text("toolCallId").unwrap_or_default();
                let (call, end) = (CallRef::Id(id.as_ref().into()), ToolEnd::Completed);
                let output = Some(message_text(&message));
                let outcome = ToolOutcome { output, ..ToolOutcome::default() };
                emit.push(EventKind::ToolEnded { call, end, outcome });
                RecordOutcome::InParts
            }
            Some("system") => RecordOutcome::left_out("system"),
            kind => {
                let data =
                    Data { kind: kind.unwrap_or("item").to_owned(), payload: fields.whole() };
                emit.push(EventKind::Part(None, Body::Data(data)));
                RecordOutcome::InParts
            }
        };
        self.index += 1;
        outcome
    }

    fn replace(&mut self, former: &str) {
        let former = serde_json::from_str::<SessionDecoder>(former);
        self.usage.replace(former.ok().map(|former| former.usage));
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.turn.clone().map(Name::Prompt)
    }
}

impl SessionDecoder {
    /// The fields around the history.
    fn document(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let usage = fields.fields("usage");
        let cost = usage.read("totalCost").map(ReportedCost::of_all);
        let project = fields.text("workspaceDirectory").map(|path| super::project(&path));
        if project.is_some() || cost.is_some() {
            let (branch, version) = (None, None);
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        }
        // Until the agent has asked the model for a title.
        let title = fields.string("title").filter(|text| text != "Untitled Session");
        if let Some(text) = title.filter(|text| !text.trim().is_empty()) {
            let origin = TitleOrigin::Generated;
            emit.push(EventKind::TitleSet(Title { text, origin }));
        }
        self.usage.set_session(&usage);
        if self.index > 0 {
            self.usage.report(emit, self.compaction, self.at_rest);
        }
        RecordOutcome::Metadata
    }

    fn start_turn(
        &mut self,
        emit: &mut Emitter<'_>,
        id: Arc<str>,
        trigger: Trigger,
        user: Vec<Body>,
    ) {
        self.turn = Some(id.clone());
        self.step = 0;
        self.at_rest = trigger == Trigger::Command && self.at_rest;
        emit.push(EventKind::TurnStarted { names: vec![Name::Prompt(id)], trigger, user });
    }

    fn user(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let text = message_text(message);
        let content = digest(text.as_bytes());
        let id = format!("{:016x}/{}/{content:016x}", self.compaction, self.index);
        let mut user = vec![Body::Text(Text { text, ..Text::default() })];
        for part in message.list("content").filter(|part| part.is("type", "imageUrl")) {
            let url = part.fields("imageUrl").string("url");
            user.push(Body::File(File { url, ..File::default() }));
        }
        for item in fields.list("contextItems") {
            let (name, text) = (item.string("name"), item.string("content"));
            user.push(Body::File(File { name, text, ..File::default() }));
        }
        self.start_turn(emit, id.into(), Trigger::User, user);
        RecordOutcome::InParts
    }

    fn assistant(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        if let Some(summary) = fields.string("conversationSummary") {
            return self.compact(emit, summary);
        }
        let is_shell =
            |call: Fields<'_>| call.text("id").is_some_and(|id| id.starts_with(SHELL_PREFIX));
        if message.list("toolCalls").any(is_shell) {
            return self.shell(emit, fields, message);
        }
        let step = self.step_id();
        self.step += 1;
        let name = Name::Message(step.clone());
        let model = message.fields("usage").string("model");
        emit.push(EventKind::StepStarted { step: name.clone(), model });
        let text = message_text(message);
        let mut made = !text.trim().is_empty();
        if made {
            let (prose_kind, detail) = (ProseKind::Text, ProseDetail::default());
            let block = Some(Name::Block(step, 1));
            emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        }
        let calls = self.calls(emit, fields, message);
        made |= calls.made;
        if message.has("usage") {
            let turn = self.turn.clone().map(Name::Prompt);
            self.usage.add(turn, name.clone(), &message.fields("usage"));
        }
        emit.push(EventKind::StepEnded { step: name, stop_reason: None });
        // After a refused call the model is not asked again.
        let is_last = !calls.made || calls.denied;
        self.at_rest = is_last && message.has("usage");
        if is_last {
            emit.push(EventKind::TurnEnded(EndReason::Completed));
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn calls(&self, emit: &mut Emitter<'_>, fields: &Fields<'_>, message: &Fields<'_>) -> Calls {
        let mut calls = Calls::default();
        for call in message.list("toolCalls") {
            calls.made = true;
            let id = call.text("id").unwrap_or_default();
            let mut states = fields.list("toolCallStates");
            match states.find(|state| state.text("toolCallId").as_deref() == Some(&*id)) {
                Some(state) => calls.denied |= emit_call(emit, &state),
                None => emit_request(emit, &id.as_ref().into(), &call, None, false),
            }
        }
        calls
    }

    /// A command that the user ran: the program writes it in the model's place.
    fn shell(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let state = fields.list("toolCallStates").next().unwrap_or_default();
        let command = state.fields("parsedArgs").string("command").unwrap_or_default();
        let id = state.text("toolCallId").unwrap_or_default();
        let user = vec![Body::Text(Text { text: format!("! {command}"), ..Text::default() })];
        self.start_turn(emit, id.as_ref().into(), Trigger::Command, user);
        self.calls(emit, fields, message);
        if state.is("status", "done") || state.is("status", "errored") {
            emit.push(EventKind::TurnEnded(EndReason::Completed));
        }
        RecordOutcome::InParts
    }

    /// The history so far was replaced by a summary. At the beginning of a document everything
    /// before it is gone from the file; it is a turn of its own, after what was read earlier.
    fn compact(&mut self, emit: &mut Emitter<'_>, summary: String) -> RecordOutcome {
        let id: Arc<str> = format!("compaction/{:016x}", digest(summary.as_bytes())).into();
        let is_first = self.index == 0;
        if is_first {
            self.compaction = digest(summary.as_bytes());
            self.start_turn(emit, id.clone(), Trigger::Command, Vec::new());
            self.at_rest = true;
        }
        let compaction = Compaction { summary, ..Compaction::default() };
        emit.push(EventKind::Part(Some(Name::Record(id)), Body::Compaction(compaction)));
        if is_first {
            emit.push(EventKind::TurnEnded(EndReason::Completed));
        }
        RecordOutcome::InParts
    }

    /// Reasoning is an item of its own, before its model call. Only editors write it.
    fn thinking(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>) -> RecordOutcome {
        let step = self.step_id();
        emit.push(EventKind::StepStarted { step: Name::Message(step.clone()), model: None });
        let redacted = message.string("redactedThinking");
        let detail = ProseDetail {
            redacted: redacted.is_some(),
            signature: message.string("signature").or(redacted),
            ..ProseDetail::default()
        };
        let (prose_kind, block) = (ProseKind::Reasoning, Some(Name::Block(step, 0)));
        let text = message_text(message);
        emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        RecordOutcome::InParts
    }

    fn step_id(&self) -> Arc<str> {
        let turn = self.turn.as_deref().unwrap_or("start");
        format!("{turn}/{}", self.step).into()
    }
}

/// What the calls of an item say about the turn.
#[derive(Default)]
struct Calls {
    made: bool,
    denied: bool,
}
