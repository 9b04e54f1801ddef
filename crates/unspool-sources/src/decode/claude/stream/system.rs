//! The `system` frames of stream-json: the start of a turn, tasks, retries, compactions and
//! notices. Extends `StreamDecoder`.

use std::sync::Arc;

use unspool_model::event::{AgentEnd, AgentRef, EventKind};
use unspool_model::part::{Body, Compaction, Data, Notice};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::StreamDecoder;
use crate::decode::claude::context::{record_name, refusal, retry, retry_name};
use crate::decode::{Emitter, Fields, RecordOutcome};

impl StreamDecoder {
    pub(super) fn system(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let subtype = fields.string("subtype").unwrap_or_default();
        match &*subtype {
            "init" => self.init(emit, fields),
            "task_started" | "task_progress" | "task_notification" => {
                self.task(emit, &subtype, fields)
            }
            "api_retry" => self.api_retry(emit, fields),
            "compact_boundary" => self.compact_boundary(emit, fields),
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
                emit.push(EventKind::Part(
                    record_name(fields),
                    Body::Data(Data { kind, payload: fields.whole() }),
                ));
                RecordOutcome::InParts
            }
        }
    }

    /// Starts a turn: each one begins with an `init` frame.
    fn init(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        emit.push(EventKind::SessionUpdated {
            project: fields.string("cwd"),
            branch: None,
            version: fields.string("claude_code_version"),
            cost: None,
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
        match self.servers.start(fields) {
            Some(snapshot) => {
                let name = fields.text("uuid").map(|id| Name::Record(format!("{id}/mcp").into()));
                emit.push(EventKind::Part(name, snapshot));
                RecordOutcome::InParts
            }
            None => RecordOutcome::Metadata,
        }
    }

    fn api_retry(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let why = match (fields.number("error_status"), fields.text("error")) {
            (Some(status), Some(error)) => format!("{status} {error}"),
            (Some(status), None) => status.to_string(),
            (None, error) => error.unwrap_or_default().into_owned(),
        };
        let notice = retry(fields.number("attempt"), fields.number("max_retries"), &why);
        emit.push(EventKind::Part(Some(retry_name(self.retries)), Body::Notice(notice)));
        self.retries += 1;
        RecordOutcome::InParts
    }

    fn compact_boundary(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
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
        emit.push(EventKind::Part(name, Body::Compaction(compaction)));
        RecordOutcome::InParts
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
}
