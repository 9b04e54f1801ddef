//! The `system` records of a session log: telemetry, titles, commands, compactions and rewinds.
//! Extends `LogDecoder`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EndReason, EventKind, ToolEnd, ToolOutcome};
use unspool_model::id::{SessionId, digest};
use unspool_model::part::{Body, Compaction, Failure, Notice, Text};
use unspool_model::provenance::Name;
use unspool_model::session::{Parent, Title, TitleOrigin, Trigger, Usage};

use super::super::super::{Emitter, Fields, RecordOutcome};
use super::super::tool::{Status, emit_permission};
use super::super::{failure_name, text_of};
use super::{LogDecoder, record_name};

/// How the prompt ids of model calls for a compaction begin.
const COMPACTION_PROMPT: &str = "compress-";
/// How the names of agents begin that keep the program's memory. They have no logs.
const MEMORY_AGENT: &str = "managed-auto-memory-";

impl LogDecoder {
    pub(super) fn system(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let payload = fields.fields("systemPayload");
        let subtype = fields.text("subtype").unwrap_or_default();
        match &*subtype {
            "ui_telemetry" => self.telemetry(emit, fields, &payload.fields("uiEvent")),
            "custom_title" => {
                let manual = payload.is("titleSource", "manual");
                let origin = if manual { TitleOrigin::Custom } else { TitleOrigin::Generated };
                if let Some(text) = payload.string("customTitle") {
                    emit.push(EventKind::TitleSet(Title { text, origin }));
                }
                RecordOutcome::Metadata
            }
            "chat_compression" => self.compression(emit, fields, &payload),
            "slash_command" => self.command(emit, fields, &payload),
            "rewind" => {
                self.rewind(emit, fields);
                self.running = false;
                RecordOutcome::Metadata
            }
            "parent_session" => {
                if let Some(parent) = payload.text("parentSessionId") {
                    let session = SessionId::of(super::super::NAME, &parent);
                    let parent = Parent { session, call_id: None, kind: None };
                    emit.push(EventKind::StartedBy(parent));
                }
                RecordOutcome::Metadata
            }
            // The files are in the prompt that follows.
            "at_command"
            | "session_model"
            | "session_source"
            | "user_text_elements"
            | "agent_launch_prompt"
            | "agent_session_ready"
            | "branch_checkpoint" => RecordOutcome::Metadata,
            "attribution_snapshot" | "file_history_snapshot" => {
                RecordOutcome::left_out(format!("system/{subtype}"))
            }
            _ => self.data(emit, &format!("system/{subtype}"), fields),
        }
    }

    /// Telemetry of model calls and tools. Sub-agents and the memory extractor report here as well,
    /// under prompt ids of their own.
    fn telemetry(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        event: &Fields<'_>,
    ) -> RecordOutcome {
        let session = fields.text("sessionId").unwrap_or_default();
        let own = format!("{session}########");
        let is_own = event.text("prompt_id").is_some_and(|id| id.starts_with(&own));
        let name = event.text("event.name").unwrap_or_default();
        if &*name == "qwen-code.api_response" && self.program_call(emit, fields, event) {
            return RecordOutcome::Metadata;
        }
        if !is_own || event.has("subagent_name") {
            return RecordOutcome::left_out(format!("{name} of another agent"));
        }
        match &*name {
            "qwen-code.api_response" => {
                // The reply before it was cut, and is not written: the model was asked again.
                if std::mem::replace(&mut self.responded, true) {
                    self.steps = self.steps.saturating_add(1);
                    self.note_retry(emit);
                }
                RecordOutcome::Metadata
            }
            "qwen-code.tool_call" => {
                self.end_tool(emit, event);
                RecordOutcome::Metadata
            }
            "qwen-code.api_error" => self.failed_request(emit, event),
            name => RecordOutcome::left_out(name),
        }
    }

    /// A model call of the program itself: for a compaction, or of an agent that keeps its memory and
    /// has no log. False if it is the model's or a sub-agent's, whose logs have its tokens.
    fn program_call(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        event: &Fields<'_>,
    ) -> bool {
        let starts = |name: &str, start: &str| {
            event.text(name).is_some_and(|value| value.starts_with(start))
        };
        let is_compaction = starts("prompt_id", COMPACTION_PROMPT);
        if !is_compaction && !starts("subagent_name", MEMORY_AGENT) {
            return false;
        }
        // The origin of a fork counts what was copied.
        if fields.has("forkedFrom") {
            return true;
        }
        let count = |name: &str| event.number(name).unwrap_or(0);
        let cache_read = count("cached_content_token_count");
        let usage = Usage {
            input: count("input_token_count").saturating_sub(cache_read),
            output: count("output_token_count"),
            cache_read,
            reasoning: count("thoughts_token_count"),
            ..Usage::default()
        };
        let step = Name::Message(fields.text("uuid").unwrap_or_default().into());
        let model = event.string("model");
        if is_compaction {
            self.compaction_calls.push((step, model, usage));
        } else {
            let turn = emit.turn.replace(Name::Session);
            emit.push(EventKind::StepStarted { step: step.clone(), model });
            emit.push(EventKind::UsageUpdated { step, usage });
            emit.turn = turn;
        }
        true
    }

    /// Reports the model calls for a compaction in the current turn.
    pub(super) fn report_compaction_calls(&mut self, emit: &mut Emitter<'_>) {
        for (step, model, usage) in std::mem::take(&mut self.compaction_calls) {
            emit.push(EventKind::StepStarted { step: step.clone(), model });
            emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
            emit.push(EventKind::StepEnded { step, stop_reason: None });
        }
    }

    /// A tool has ended. Its result is written when all calls of its reply have ended.
    fn end_tool(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) {
        let Some(id) = event.text("call_id").map(Arc::<str>::from) else { return };
        let Some(tool) = self.calls.get(&id).cloned() else { return };
        let decision = event.text("decision").unwrap_or_default();
        emit_permission(emit, &id, &tool, &decision);
        let Some(end) = Status::of_telemetry(event).end() else { return };
        let duration_ms = event.number("duration_ms").filter(|_| end != ToolEnd::Denied);
        let outcome = ToolOutcome { duration_ms, ..ToolOutcome::default() };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
    }

    /// A request failed. If Qwen Code sends it again, the turn goes on with the reply.
    fn failed_request(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        let text = event.string("error_message").unwrap_or_default();
        let count = self.failures.entry(digest(text.as_bytes())).or_default();
        let name = failure_name(&text, *count);
        *count += 1;
        self.name_by_content(emit, "failure", &text);
        let (code, status) = (event.string("error_type"), event.number("status_code"));
        emit.push(EventKind::Part(Some(name), Body::Error(Failure { code, status, text })));
        self.end(emit, EndReason::Failed(None));
        RecordOutcome::InParts
    }

    fn compression(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        payload: &Fields<'_>,
    ) -> RecordOutcome {
        let info = payload.fields("info");
        let trigger = info.string("triggerReason");
        // The command that asked for it is written after it.
        if trigger.as_deref() == Some("manual") && !self.running {
            self.start_after_compaction(emit, fields, Trigger::Command, "", Vec::new());
            (self.by_summary, self.is_command) = (true, true);
        }
        self.report_compaction_calls(emit);
        let mut history = payload.list("compressedHistory");
        let summary = history.find(|message| message.is("role", "user")).map(|m| text_of(&m));
        let compaction = Compaction {
            trigger,
            tokens_before: info.number("originalTokenCount"),
            tokens_after: info.number("newTokenCount"),
            duration_ms: None,
            summary: summary.unwrap_or_default(),
        };
        emit.push(EventKind::Part(record_name(fields), Body::Compaction(compaction)));
        RecordOutcome::InParts
    }

    /// A command that the user typed, and then what it answered. While the model works it is a note
    /// in the current turn, otherwise a turn.
    fn command(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        payload: &Fields<'_>,
    ) -> RecordOutcome {
        let text = payload.string("rawCommand").unwrap_or_default();
        let note = |emit: &mut Emitter<'_>, code: &str, text: String| {
            let notice = Notice { code: code.to_owned(), text };
            emit.push(EventKind::Part(record_name(fields), Body::Notice(notice)));
        };
        if payload.is("phase", "result") {
            let items = payload.list("outputHistoryItems");
            let texts: Vec<String> = items.filter_map(|item| item.string("text")).collect();
            let is_empty = texts.is_empty();
            if !is_empty {
                note(emit, "command-output", texts.join("\n"));
            }
            if self.is_command {
                self.end(emit, EndReason::Completed);
            }
            return if is_empty { RecordOutcome::Metadata } else { RecordOutcome::InParts };
        }
        if payload.flag("hiddenInvocation") {
            return RecordOutcome::Metadata;
        }
        if payload.flag("sentToModel") {
            self.by_command = true;
            return RecordOutcome::Metadata;
        }
        let user = vec![Body::Text(Text { text: text.clone(), ..Text::default() })];
        if std::mem::take(&mut self.by_summary) {
            let names = self.tree.current().cloned().into_iter().collect();
            emit.push(EventKind::TurnStarted { names, trigger: Trigger::Command, user });
        } else if self.running {
            note(emit, "command", text);
        } else {
            self.start(emit, fields, Trigger::Command, "", user);
            self.is_command = true;
        }
        RecordOutcome::InParts
    }
}
