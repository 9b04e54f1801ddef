//! Qwen Code's stream-json: the output of `-o stream-json`, with or without partial messages. The
//! frames have Claude Code's shape, but each group of blocks of one kind is a message of its own
//! with a new id, and no frame has a prompt. Only call ids are those of the log.
//!
//! A turn is named by its first content (`stream/turn.rs`), so its first block is emitted when it is
//! complete; later ones are emitted word by word. Counts are left to the log.

mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind, ToolEnd,
    ToolOutcome,
};
use unspool_model::id::digest;
use unspool_model::part::{Body, Data, Failure, Notice};
use unspool_model::provenance::{Feed, Name};

use super::super::mcp_servers::McpServers;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::log::RETRY_TEXT;
use super::tool::emit_call;
use super::{agent_session, failure_name, prose_name, retry_name};

/// What Qwen Code writes in the model's place if a request failed.
const FAILURE_START: &str = "[API Error: ";

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StreamDecoder {
    /// The current turn has a name.
    begun: bool,
    /// The hash of the first content that it is named by.
    first: Option<u64>,
    /// It has a reply that the log has, too: one with counts, or calls.
    in_log: bool,
    /// All its replies so far were cut, and the log has none of them: its first content is that of
    /// the next one.
    begins_again: bool,
    /// The model is being asked again. Several frames may say so.
    retrying: bool,
    /// The report of a background agent that the next turn begins with.
    reported: Option<String>,
    prompts: PromptNames,
    /// Turns so far, by the hash of their first content.
    firsts: BTreeMap<u64, u32>,
    /// The number of the model call in the turn, from 1.
    step: u32,
    /// The model call is over: what follows is of the next one.
    step_over: bool,
    /// Prose of the model call so far: reasoning and text.
    prose: [u32; 2],
    /// The text of the open block so far, and how much of it was emitted.
    open: Option<OpenBlock>,
    /// What the open message had written before the model was asked to go on.
    prefix: String,
    retries: u32,
    failures: BTreeMap<u64, u32>,
    servers: McpServers,
    /// The MCP servers that the next turn begins with.
    snapshot: Option<Body>,
}

#[derive(Serialize, Deserialize)]
struct OpenBlock {
    prose_kind: ProseKind,
    text: String,
    emitted: usize,
}

impl Decoder for StreamDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        emit.at = fields.time("timestamp");
        // Sub-agents have their own logs.
        if fields.has("parent_tool_use_id") {
            return RecordOutcome::left_out("sub-agent");
        }
        match fields.text("type").as_deref() {
            Some("system") => self.system(&mut emit, fields),
            Some("stream_event") => self.stream_event(&mut emit, &fields.fields("event")),
            Some("assistant") => self.assistant(&mut emit, fields),
            Some("user") => self.user(&mut emit, fields),
            Some("result") => self.result(&mut emit, fields),
            kind => data(&mut emit, kind.unwrap_or("frame"), fields),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl StreamDecoder {
    fn system(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let subtype = fields.text("subtype").unwrap_or_default();
        let data_of = fields.fields("data");
        let agent = |call: bool| AgentRef {
            call: data_of.text("tool_use_id").filter(|_| call).map(|id| id.into()),
            id: data_of.text("task_id").map(|id| {
                agent_session(&fields.text("session_id").unwrap_or_default(), &id).into()
            }),
        };
        match &*subtype {
            "init" => {
                emit.push(EventKind::SessionUpdated {
                    project: fields.string("cwd"),
                    branch: None,
                    version: fields.string("qwen_code_version"),
                    cost: None,
                });
                self.next_turn();
                let changed = self.servers.start(fields);
                let is_shown = changed.is_some();
                self.snapshot = changed.or(self.snapshot.take());
                if is_shown { RecordOutcome::InParts } else { RecordOutcome::Metadata }
            }
            "task_started" => {
                emit.push(EventKind::AgentStarted {
                    agent: agent(true),
                    name: data_of.string("subagent_type").unwrap_or_else(|| "agent".to_owned()),
                    task: data_of.string("description").unwrap_or_default(),
                    background: true,
                });
                RecordOutcome::InParts
            }
            "task_notification" => {
                let end = match data_of.text("status").as_deref() {
                    Some("completed") => AgentEnd::Completed,
                    Some("killed" | "stopped" | "cancelled") => AgentEnd::Interrupted,
                    Some(_) | None => AgentEnd::Failed,
                };
                // Without its call: commands in the background report in the same way.
                emit.push(EventKind::AgentEnded { agent: agent(false), end });
                RecordOutcome::InParts
            }
            "retry" => self.retry(emit, &data_of),
            _ => data(emit, &format!("system/{subtype}"), fields),
        }
    }

    /// The model is asked again, or to go on: the log has a reply for each.
    fn retry(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) -> RecordOutcome {
        if std::mem::replace(&mut self.retrying, true) {
            return RecordOutcome::Metadata;
        }
        self.close(emit);
        self.in_log |= data.flag("preserveText");
        self.begins_again = self.first.is_some() && !self.in_log;
        if data.flag("preserveText") {
            // The message goes on, and will be repeated with what it had.
            self.prefix = self.prefix_of_message();
        }
        self.step_over = true;
        if self.begun {
            let notice = Notice { code: "retry".to_owned(), text: RETRY_TEXT.to_owned() };
            emit.push(EventKind::Part(Some(retry_name(self.retries)), Body::Notice(notice)));
            self.retries += 1;
        }
        RecordOutcome::InParts
    }

    fn prefix_of_message(&mut self) -> String {
        let open = self.open.take();
        std::mem::take(&mut self.prefix) + &open.map(|open| open.text).unwrap_or_default()
    }

    fn stream_event(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        match event.text("type").as_deref() {
            Some("message_start") => {
                (self.open, self.prefix) = (None, String::new());
                RecordOutcome::Metadata
            }
            // Blocks are emitted when they have words, and calls when they are complete.
            Some("content_block_start" | "content_block_stop") => RecordOutcome::Metadata,
            Some("content_block_delta") => self.delta(emit, &event.fields("delta")),
            Some("message_stop") => {
                self.step_over = true;
                RecordOutcome::Metadata
            }
            kind => RecordOutcome::left_out(format!("stream_event/{}", kind.unwrap_or_default())),
        }
    }

    fn delta(&mut self, emit: &mut Emitter<'_>, delta: &Fields<'_>) -> RecordOutcome {
        let (prose_kind, field) = match delta.text("type").as_deref() {
            Some("text_delta") => (ProseKind::Text, "text"),
            Some("thinking_delta") => (ProseKind::Reasoning, "thinking"),
            // The input of a call comes with the call.
            _ => return RecordOutcome::Metadata,
        };
        let text = delta.string(field).unwrap_or_default();
        if self.open.as_ref().is_none_or(|open| open.prose_kind != prose_kind) {
            self.open = Some(OpenBlock { prose_kind, text: String::new(), emitted: 0 });
        }
        // The content that names the turn is emitted when it is complete.
        let is_named = self.begun && !self.begins_again;
        let Some(open) = &mut self.open else { return RecordOutcome::Metadata };
        open.text.push_str(&text);
        let may_be_failure =
            open.text.starts_with(FAILURE_START) || FAILURE_START.starts_with(&*open.text);
        if !is_named || may_be_failure {
            return RecordOutcome::InParts;
        }
        let text = open.text[open.emitted..].to_owned();
        open.emitted = open.text.len();
        self.advance();
        let block = Some(self.block(prose_kind));
        emit.push(EventKind::ProseDelta { prose_kind, block, text });
        RecordOutcome::InParts
    }

    /// A complete group of blocks.
    fn assistant(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let session = fields.text("session_id").unwrap_or_default();
        let (message, mut made) = (fields.fields("message"), false);
        self.in_log |=
            message.fields("usage").number("input_tokens").is_some_and(|count| count > 0);
        for block in message.list("content") {
            match block.text("type").as_deref() {
                Some("text") => made |= self.say(emit, ProseKind::Text, &block, "text"),
                Some("thinking") => {
                    made |= self.say(emit, ProseKind::Reasoning, &block, "thinking");
                }
                Some("tool_use") => {
                    let id: Arc<str> = block.text("id").unwrap_or_default().into();
                    self.begin(emit, "call", &id);
                    self.advance();
                    self.in_log = true;
                    emit_call(emit, &session, &id, &block, "input");
                    made = true;
                }
                kind => {
                    data(emit, kind.unwrap_or("block"), &block);
                    made = true;
                }
            }
        }
        self.open = None;
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn say(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        block: &Fields<'_>,
        field: &str,
    ) -> bool {
        let text = block.string(field).unwrap_or_default();
        let text = match text.strip_prefix(&*std::mem::take(&mut self.prefix)) {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        if text.trim().is_empty() {
            return false;
        }
        let failure = text.strip_prefix(FAILURE_START).and_then(|text| text.strip_suffix(']'));
        if let Some(failure) = failure.filter(|_| prose_kind == ProseKind::Text) {
            self.begin(emit, "failure", failure);
            let count = self.failures.entry(digest(failure.as_bytes())).or_default();
            let name = failure_name(failure, *count);
            *count += 1;
            let failure = Failure { text: failure.to_owned(), ..Failure::default() };
            emit.push(EventKind::Part(Some(name), Body::Error(failure)));
            return true;
        }
        self.complete(emit, prose_kind, text, block.string("signature"));
        true
    }

    fn complete(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        text: String,
        signature: Option<String>,
    ) {
        let (kind, at) = match prose_kind {
            ProseKind::Reasoning => ("reasoning", 0),
            ProseKind::Text => ("text", 1),
        };
        self.begin(emit, kind, &text);
        self.advance();
        let block = Some(self.block(prose_kind));
        self.prose[at] += 1;
        let signature = signature.filter(|text| !text.is_empty());
        let detail = ProseDetail { signature, ..ProseDetail::default() };
        emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
    }

    /// Completes the open block with what it has: no frame will.
    fn close(&mut self, emit: &mut Emitter<'_>) {
        let open = self.open.as_ref().filter(|open| !open.text.trim().is_empty());
        if let Some((prose_kind, text)) = open.map(|open| (open.prose_kind, open.text.clone())) {
            self.complete(emit, prose_kind, text, None);
        }
    }

    fn block(&self, prose_kind: ProseKind) -> Name {
        let at = usize::from(prose_kind == ProseKind::Text);
        prose_name(prose_kind, self.step, self.prose[at])
    }

    fn user(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let mut made = false;
        for block in fields.fields("message").list("content") {
            match block.text("type").as_deref() {
                Some("tool_result") => {
                    let id: Arc<str> = block.text("tool_use_id").unwrap_or_default().into();
                    let failed = block.flag("is_error");
                    let end = if failed { ToolEnd::Failed } else { ToolEnd::Completed };
                    let outcome =
                        ToolOutcome { output: block.string("content"), ..ToolOutcome::default() };
                    emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
                    self.step_over = true;
                }
                // The report of a background agent, which starts a turn.
                Some("text") => {
                    self.next_turn();
                    self.reported = block.string("text");
                }
                kind => {
                    data(emit, kind.unwrap_or("block"), &block);
                }
            }
            made = true;
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn result(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.close(emit);
        for denied in fields.list("permission_denials") {
            let Some(id) = denied.text("tool_use_id") else { continue };
            let (call, end) = (CallRef::Id(id.into()), ToolEnd::Denied);
            let outcome = ToolOutcome::default();
            emit.push(EventKind::ToolEnded { call, end, outcome });
        }
        if self.begun {
            let failed = fields.flag("is_error") || !fields.is("subtype", "success");
            // The message is the last text of the model.
            let reason = if failed { EndReason::Failed(None) } else { EndReason::Completed };
            emit.push(EventKind::TurnEnded(reason));
        }
        self.next_turn();
        RecordOutcome::Metadata
    }
}

fn data(emit: &mut Emitter<'_>, kind: &str, fields: &Fields<'_>) -> RecordOutcome {
    let data = Data { kind: kind.to_owned(), payload: fields.whole() };
    emit.push(EventKind::Part(None, Body::Data(data)));
    RecordOutcome::InParts
}
