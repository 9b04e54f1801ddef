//! Claude Code's stream-json: the output of `-p --output-format stream-json`, with or without
//! partial messages, and both directions of the control protocol if a capture has them. It is the
//! live feed: token by token, in true order, without times.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_core::event::{AgentEnd, AgentRef, CallRef, EndReason, Event, EventKind, ProseKind};
use unspool_core::part::{Answer, Body, Compaction, Data, Decision, Notice, SkillLoad};
use unspool_core::provenance::{Feed, Name};
use unspool_core::session::Trigger;

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::context::{record_name, refusal, retry, retry_name, skill_name};
use super::marks::{Mark, mark};
use super::message::{Blocks, Calls, block, failure, message_text, request, usage, user_parts};
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
                emit.push(EventKind::DataGiven(
                    record_name(fields),
                    Data { kind, payload: fields.whole() },
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
    fn system(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let subtype = fields.string("subtype").unwrap_or_default();
        match &*subtype {
            "init" => {
                emit.push(EventKind::SessionUpdated {
                    project: fields.string("cwd"),
                    branch: None,
                    version: fields.string("claude_code_version"),
                    cost_usd: None,
                });
                let (name, mut user) = self.prompt.take().unwrap_or_default();
                let mut trigger = Trigger::User;
                // A task that reported between two turns started this one.
                if let Some(text) = self.reported.take().filter(|_| user.is_empty()) {
                    let code = "task-notification".to_owned();
                    user.push(Body::Notice(Notice { code, text }));
                    trigger = Trigger::Agent;
                }
                let names = record_name(fields).into_iter().chain(name).collect();
                self.blocks.forget_but(self.message.take().as_deref());
                self.retries = 0;
                self.fresh = record_name(fields);
                self.idle = false;
                emit.push(EventKind::TurnStarted { names, trigger, user });
                RecordOutcome::Metadata
            }
            "task_started" | "task_progress" | "task_notification" => {
                self.task(emit, &subtype, fields)
            }
            "api_retry" => {
                let why = match (fields.number("error_status"), fields.text("error")) {
                    (Some(status), Some(error)) => format!("{status} {error}"),
                    (Some(status), None) => status.to_string(),
                    (None, error) => error.unwrap_or_default().into_owned(),
                };
                let notice = retry(fields.number("attempt"), fields.number("max_retries"), &why);
                emit.push(EventKind::Noticed(Some(retry_name(self.retries)), notice));
                self.retries += 1;
                RecordOutcome::InParts
            }
            "compact_boundary" => {
                let input = fields.fields("compact_metadata");
                let compaction = Compaction {
                    trigger: input.string("trigger"),
                    tokens_before: input.number("pre_tokens"),
                    tokens_after: input.number("post_tokens"),
                    duration_ms: input.number("duration_ms"),
                    summary: String::new(),
                };
                let name = record_name(fields);
                self.boundary = name.clone().map(|name| (name, compaction.clone()));
                emit.push(EventKind::Compacted(name, compaction));
                RecordOutcome::InParts
            }
            "informational" => {
                let text = fields.string("content").unwrap_or_default();
                self.notice(emit, fields, "informational", text);
                RecordOutcome::InParts
            }
            "model_refusal_no_fallback" => {
                let content = fields.string("content").unwrap_or_default();
                self.notice(emit, fields, "refusal", refusal(fields, content));
                RecordOutcome::InParts
            }
            "permission_denied" => {
                // Denied because no person could be asked: not an answer.
                RecordOutcome::Metadata
            }
            "status"
            | "hook_started"
            | "hook_response"
            | "hook_progress"
            | "thinking_tokens"
            | "background_tasks_changed"
            | "notification"
            | "task_updated" => RecordOutcome::left_out(format!("system/{subtype}")),
            _ => {
                let kind = format!("system/{subtype}");
                emit.push(EventKind::DataGiven(
                    record_name(fields),
                    Data { kind, payload: fields.whole() },
                ));
                RecordOutcome::InParts
            }
        }
    }

    fn notice(&self, emit: &mut Emitter<'_>, fields: &Fields<'_>, code: &str, text: String) {
        emit.push(EventKind::Noticed(record_name(fields), Notice { code: code.to_owned(), text }));
    }

    /// Sub-agents and background commands are tasks; only this session's agents become parts.
    fn task(
        &mut self,
        emit: &mut Emitter<'_>,
        subtype: &str,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        if subtype == "task_notification" && self.idle {
            self.reported = fields.string("summary");
        }
        let ours = fields.text("task_type").is_none_or(|kind| kind == "local_agent");
        if !ours || fields.has("parent_task_id") || fields.flag("owned_by_subagent") {
            return RecordOutcome::left_out(format!("system/{subtype}"));
        }
        let id: Option<Arc<str>> = fields.text("task_id").map(|id| id.into());
        let call: Option<Arc<str>> = fields.text("tool_use_id").map(|id| id.into());
        match subtype {
            "task_started" => emit.push(EventKind::AgentStarted {
                agent: AgentRef { call, id },
                name: fields.string("subagent_type").unwrap_or_default(),
                task: fields.string("description").unwrap_or_default(),
                background: fields.flag("is_backgrounded"),
            }),
            "task_progress" => emit.push(EventKind::AgentProgressed {
                agent: AgentRef { call: None, id },
                activity: fields.string("description"),
                background: false,
            }),
            _ => {
                let end = match fields.text("status").as_deref() {
                    Some("completed") => AgentEnd::Completed,
                    Some("killed" | "stopped" | "cancelled") => AgentEnd::Interrupted,
                    Some(_) | None => AgentEnd::Failed,
                };
                // Without its call: background commands report in the same way.
                emit.push(EventKind::AgentEnded { agent: AgentRef { call: None, id }, end });
            }
        }
        RecordOutcome::InParts
    }

    fn stream_event(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        let index = event.number("index").and_then(|index| u32::try_from(index).ok());
        let index = index.unwrap_or(u32::MAX);
        match event.text("type").as_deref() {
            Some("message_start") => {
                let message = event.fields("message");
                let id: Arc<str> = message.text("id").unwrap_or_default().into();
                self.start_step(emit, &id, message.string("model"));
                self.report_usage(emit, &id, &message.fields("usage"));
            }
            Some("content_block_start") => {
                let content = event.fields("content_block");
                let call = match content.text("type").as_deref() {
                    Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                        content.text("id").map(Arc::<str>::from)
                    }
                    _ => None,
                };
                self.open = Some((index, call.clone()));
                if let Some(call) = call {
                    let name = content.string("name").unwrap_or_default();
                    emit.push(EventKind::ToolInputDelta {
                        call: CallRef::Id(call),
                        name,
                        text: String::new(),
                    });
                } else if content.text("type").as_deref() == Some("redacted_thinking") {
                    let name = self.block_name(index);
                    block(emit, &mut self.calls, name, &content, None);
                }
            }
            Some("content_block_delta") => self.delta(emit, index, &event.fields("delta")),
            Some("content_block_stop") => {
                self.open = None;
                emit.push(EventKind::BlockEnded { block: self.block_name(index) });
            }
            Some("message_delta") => {
                if let Some(id) = self.message.clone() {
                    self.report_usage(emit, &id, &event.fields("usage"));
                    let stop_reason = event.fields("delta").string("stop_reason");
                    if stop_reason.is_some() {
                        emit.push(EventKind::StepEnded { step: Name::Message(id), stop_reason });
                    }
                }
                return RecordOutcome::Metadata;
            }
            Some("message_stop") => return RecordOutcome::Metadata,
            kind => {
                return RecordOutcome::left_out(format!(
                    "stream_event/{}",
                    kind.unwrap_or_default()
                ));
            }
        }
        RecordOutcome::InParts
    }

    fn block_name(&self, index: u32) -> Name {
        Name::Block(self.message.clone().unwrap_or_default(), index)
    }

    fn delta(&mut self, emit: &mut Emitter<'_>, index: u32, delta: &Fields<'_>) {
        let grew = |prose_kind, field: &str| EventKind::ProseDelta {
            prose_kind,
            block: Some(self.block_name(index)),
            text: delta.string(field).unwrap_or_default(),
        };
        match delta.text("type").as_deref() {
            Some("text_delta") => emit.push(grew(ProseKind::Text, "text")),
            Some("thinking_delta") => emit.push(grew(ProseKind::Reasoning, "thinking")),
            Some("input_json_delta") => {
                if let Some((_, Some(call))) = &self.open {
                    let text = delta.string("partial_json").unwrap_or_default();
                    let call = CallRef::Id(call.clone());
                    emit.push(EventKind::ToolInputDelta { call, name: String::new(), text });
                }
            }
            // Signatures and citations come with the complete block.
            _ => {}
        }
    }

    fn start_step(&mut self, emit: &mut Emitter<'_>, id: &Arc<str>, model: Option<String>) {
        if self.message.as_ref() != Some(id) {
            self.message = Some(id.clone());
            self.fresh = None;
            emit.push(EventKind::StepStarted { step: Name::Message(id.clone()), model });
        }
    }

    fn report_usage(&self, emit: &mut Emitter<'_>, id: &Arc<str>, input: &Fields<'_>) {
        emit.push(EventKind::UsageUpdated { step: Name::Message(id.clone()), usage: usage(input) });
    }

    fn assistant(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let message = fields.fields("message");
        if fields.flag("is_api_error_message") || fields.flag("isApiErrorMessage") {
            emit.push(EventKind::Failed(
                record_name(fields),
                failure(fields, message_text(&message)),
            ));
            emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
            return RecordOutcome::InParts;
        }
        let id = message.text("id").unwrap_or_default();
        let id = self.message.clone().filter(|held| **held == *id).unwrap_or_else(|| id.into());
        let synthetic = message.text("model").as_deref() == Some("<synthetic>");
        let live = self.message.as_ref() == Some(&id);
        self.start_step(emit, &id, message.string("model").filter(|_| !synthetic));
        let mut made = false;
        for content in message.list("content") {
            // The complete block is sent before the event that closes it.
            let open = self.open.as_ref().filter(|_| live).map(|(index, _)| *index);
            let index = self.blocks.next(&id, open);
            let name = Name::Block(id.clone(), index);
            made |= block(emit, &mut self.calls, name, &content, None);
        }
        if !synthetic {
            self.report_usage(emit, &id, &message.fields("usage"));
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
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
            self.input(emit, None, user_parts(&message));
            return RecordOutcome::InParts;
        }
        if let Some((name, compaction)) = self.boundary.take() {
            emit.push(EventKind::Compacted(Some(name), Compaction { summary: text, ..compaction }));
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
                    emit.push(EventKind::SkillLoaded(record_name(fields), skill));
                }
                None => self.notice(emit, fields, "continuation", text),
            },
            Mark::None
            | Mark::Command(_)
            | Mark::Shell(_)
            | Mark::ShellOutput { .. }
            | Mark::TaskNotification(_) => {
                self.input(emit, record_name(fields), user_parts(&message));
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
        let cost_usd = fields.read("total_cost_usd");
        let (project, branch, version) = (None, None, None);
        emit.push(EventKind::SessionUpdated { project, branch, version, cost_usd });
        (self.message, self.fresh, self.idle) = (None, None, true);
        RecordOutcome::Metadata
    }

    fn control_request(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let control = fields.fields("request");
        let id = fields.string("request_id").unwrap_or_default();
        let call: Option<Arc<str>> = control.text("tool_use_id").map(|id| id.into());
        match (control.text("subtype").as_deref(), call) {
            (Some("can_use_tool"), Some(call)) => {
                let tool = control.string("tool_name").unwrap_or_default();
                let question = request(Some(id.clone()), &tool, &control.fields("input"));
                self.requests.insert(id, call.clone());
                let (call, requested) = (CallRef::Id(call), true);
                emit.push(EventKind::QuestionAsked { call, tool, question, requested });
                RecordOutcome::InParts
            }
            (subtype, _) => {
                RecordOutcome::left_out(format!("control_request/{}", subtype.unwrap_or_default()))
            }
        }
    }

    fn control_response(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let outer = fields.fields("response");
        let id = outer.string("request_id").unwrap_or_default();
        let Some(call) = self.requests.remove(&id) else {
            return RecordOutcome::left_out("control_response");
        };
        let response = outer.fields("response");
        let choices = super::result::answers(&response.fields("updatedInput"));
        let (decision, text) = if response.text("behavior").as_deref() == Some("deny") {
            (Decision::Denied, response.string("message").unwrap_or_default())
        } else if choices.is_empty() {
            (Decision::Allowed, "allowed once".to_owned())
        } else {
            let text: Vec<&str> = choices.iter().map(|(_, answer)| answer.as_str()).collect();
            (Decision::Answered, text.join(" · "))
        };
        let answer = Answer { decision, text, choices, observed: true };
        emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call), answer });
        RecordOutcome::InParts
    }
}
