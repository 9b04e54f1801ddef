//! Claude Code's stream-json: the output of `-p --output-format stream-json`, with or without
//! partial messages, and both directions of the control protocol if a capture has them. It is the
//! live feed: token by token, in true order, without times.
//!
//! This file owns the state of the decoder, the user's messages and the ends of turns. The other
//! frames are decoded in `stream/`.

mod control;
mod model;
mod system;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::part::{Body, Compaction, Data, Notice, SkillLoad};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::injected::separate;
use super::super::mcp_servers::McpServers;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::NAME;
use super::context::{record_name, skill_name};
use super::marks::{Mark, mark};
use super::message::{Blocks, Calls, message_text, reported_cost, user_parts};
use super::result::{ResultDetails, result};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamDecoder {
    calls: Calls,
    /// The user's message for the next turn.
    prompt: Option<(Option<Name>, Vec<Body>)>,
    /// The current turn while it is still empty.
    fresh: Option<Name>,
    message: Option<Arc<str>>,
    /// The open block, and its call id if it is a call.
    open: Option<(u32, Option<Arc<str>>)>,
    /// Block counts, for captures without partial messages.
    blocks: Blocks,
    /// The calls of control protocol requests, by request id.
    requests: BTreeMap<String, Arc<str>>,
    /// The compaction whose summary is the next user message.
    boundary: Option<(Name, Compaction)>,
    retries: u32,
    /// True between two turns.
    idle: bool,
    /// The report of a task between two turns.
    reported: Option<String>,
    #[serde(default)]
    servers: McpServers,
}

impl Decoder for StreamDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let inner = fields.fields("msg");
        let wrapped = fields.has("dir") && fields.has("msg");
        let fields = if wrapped { &inner } else { fields };
        let mut emit = Emitter::new(Feed::Stream, record, fields.text("uuid").as_deref(), out);
        emit.at = fields.time("timestamp");
        // Frames from inside a sub-agent. Its progress comes as task frames instead.
        if fields.has("parent_tool_use_id") {
            return RecordOutcome::left_out("sub-agent");
        }
        match fields.text("type").as_deref() {
            Some("system") => self.system(&mut emit, fields),
            Some("stream_event") => self.stream_event(&mut emit, &fields.fields("event")),
            Some("assistant") => self.assistant(&mut emit, fields),
            Some("user") => self.user(&mut emit, fields),
            Some("result") => self.result(&mut emit, fields),
            Some("control_request") => self.control_request(&mut emit, fields),
            Some("control_response") => self.control_response(&mut emit, fields),
            Some("control_cancel_request") => RecordOutcome::left_out("control_cancel_request"),
            kind => {
                let kind = kind.unwrap_or("frame").to_owned();
                emit.push(EventKind::Part(
                    record_name(fields),
                    Body::Data(Data { kind, payload: fields.whole() }),
                ));
                RecordOutcome::InParts
            }
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl StreamDecoder {
    fn notice(&self, emit: &mut Emitter<'_>, fields: &Fields<'_>, code: &str, text: String) {
        emit.push(EventKind::Part(
            record_name(fields),
            Body::Notice(Notice { code: code.to_owned(), text }),
        ));
    }

    fn user(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let message = fields.fields("message");
        let mut results = 0;
        for block in message.list("content").filter(|block| block.is("type", "tool_result")) {
            results += 1;
            let id = block.text("tool_use_id");
            let details = fields.list("tool_result_meta").find(|meta| meta.text("id") == id);
            let details = ResultDetails {
                structured: fields.raw("tool_use_result"),
                kept: fields.fields("tool_use_result"),
                decision: details.map(|m| m.fields("permission_decision")).unwrap_or_default(),
                denial: details.and_then(|meta| meta.string("non_execution_kind")),
                feedback: None,
            };
            result(emit, &mut self.calls, &block, &details);
        }
        if results > 0 {
            return RecordOutcome::InParts;
        }
        let text = message_text(&message);
        if !fields.has("uuid") {
            // The other direction: a message that the host sent.
            self.input(emit, None, separate(NAME, user_parts(&message)));
            return RecordOutcome::InParts;
        }
        if let Some((name, compaction)) = self.boundary.take() {
            emit.push(EventKind::Part(
                Some(name),
                Body::Compaction(Compaction { summary: text, ..compaction }),
            ));
            return RecordOutcome::InParts;
        }
        match mark(&text) {
            Mark::Interruption => {
                self.notice(emit, fields, "interrupted", text);
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
            }
            Mark::HookFeedback(feedback) => {
                self.notice(emit, fields, "hook-feedback", feedback.to_owned());
            }
            // Written between turns, so it belongs to no turn of the stream.
            Mark::CommandOutput(_) => return RecordOutcome::left_out("command output"),
            Mark::Caveat => return RecordOutcome::Metadata,
            Mark::None if fields.flag("isSynthetic") && text.starts_with("[Image") => {
                return RecordOutcome::left_out("image note");
            }
            Mark::None if fields.flag("isSynthetic") => match skill_name(&text) {
                Some(name) => {
                    let skill = SkillLoad { name, call_id: None, text };
                    emit.push(EventKind::Part(record_name(fields), Body::SkillLoad(skill)));
                }
                None => self.notice(emit, fields, "continuation", text),
            },
            Mark::None
            | Mark::Command(_)
            | Mark::Shell(_)
            | Mark::ShellOutput { .. }
            | Mark::TaskNotification(_) => {
                self.input(emit, record_name(fields), separate(NAME, user_parts(&message)));
            }
        }
        RecordOutcome::InParts
    }

    /// The user's message: replayed right after its turn began, or sent before it begins.
    fn input(&mut self, emit: &mut Emitter<'_>, name: Option<Name>, user: Vec<Body>) {
        match self.fresh.take() {
            Some(fresh) => {
                let names = [fresh].into_iter().chain(name).collect();
                emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
            }
            None => self.prompt = Some((name, user)),
        }
    }

    fn result(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let input = fields.string("result").filter(|text| !text.is_empty());
        let reason = if fields.text("subtype").as_deref() == Some("success") {
            if fields.flag("is_error") { EndReason::Failed(input) } else { EndReason::Completed }
        } else if fields.text("terminal_reason").is_some_and(|why| why.starts_with("aborted")) {
            EndReason::Interrupted
        } else {
            EndReason::Failed(input)
        };
        emit.push(EventKind::TurnEnded(reason));
        let cost = reported_cost(fields, "total_cost_usd");
        let (project, branch, version) = (None, None, None);
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        let models = fields.fields("modelUsage");
        for model in models.names() {
            if let Some(tokens) = models.fields(&model).number("contextWindow") {
                let model = model.into_owned();
                emit.push(EventKind::ContextWindowReported { model, tokens });
            }
        }
        (self.message, self.fresh, self.idle) = (None, None, true);
        RecordOutcome::Metadata
    }
}
