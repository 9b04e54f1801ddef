//! The `event_msg` records of a rollout, written for display: turn boundaries, user messages, token
//! counts, and what Codex itself did. Extends `LogDecoder`.

use unspool_model::event::{EndReason, EventKind};
use unspool_model::part::{Body, Compaction, Data, Failure};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::injected::separate_text;
use super::super::{Emitter, Fields, RecordOutcome};
use super::log::LogDecoder;
use super::metadata::failure;
use super::{compaction_name, failure_name, turn_name};

impl LogDecoder {
    pub(super) fn event(
        &mut self,
        emit: &mut Emitter<'_>,
        record: &Fields<'_>,
        event: &Fields<'_>,
    ) -> RecordOutcome {
        let kind = event.string("type").unwrap_or_default();
        match &*kind {
            "task_started" => self.task_started(emit, record, event),
            "task_complete" => self.task_complete(emit, event),
            "turn_aborted" => {
                self.flush(emit);
                self.name_turn(emit, event.text("turn_id").as_deref());
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
                RecordOutcome::Metadata
            }
            "token_count" => {
                self.token_count(emit, &event.fields("info"));
                RecordOutcome::Metadata
            }
            "item_completed" => self.item(emit, record, event),
            "user_message" => self.user_message(emit, record, event),
            "agent_message" | "agent_reasoning" => {
                let text = event.string("message").or_else(|| event.string("text"));
                self.announce(emit, None, text.unwrap_or_default());
                RecordOutcome::Metadata
            }
            "sub_agent_activity" => {
                super::call::emit_agent_activity(emit, event);
                RecordOutcome::InParts
            }
            "patch_apply_end"
            | "exec_command_end"
            | "mcp_tool_call_end"
            | "view_image_tool_call" => {
                let id = event.text("call_id");
                if kind == "patch_apply_end"
                    && let Some(id) = &id
                {
                    self.own_call(emit, "FileChange", id, event, false);
                }
                self.overlay(emit, id.as_deref(), event)
            }
            "web_search_end" => RecordOutcome::Metadata,
            "context_compacted" => RecordOutcome::Metadata,
            "thread_settings_applied" => RecordOutcome::Metadata,
            "error" => {
                let text = event.string("message").unwrap_or_default();
                emit.push(EventKind::Part(
                    None,
                    Body::Error(Failure { text, ..Failure::default() }),
                ));
                RecordOutcome::InParts
            }
            "turn_diff"
            | "agent_reasoning_section_break"
            | "exec_command_begin"
            | "patch_apply_begin"
            | "web_search_begin"
            | "mcp_tool_call_begin" => RecordOutcome::left_out(format!("event_msg/{kind}")),
            _ => {
                let kind = format!("event_msg/{kind}");
                emit.push(EventKind::Part(None, Body::Data(Data { kind, payload: event.whole() })));
                RecordOutcome::InParts
            }
        }
    }

    fn task_started(
        &mut self,
        emit: &mut Emitter<'_>,
        record: &Fields<'_>,
        event: &Fields<'_>,
    ) -> RecordOutcome {
        let turn = event.text("turn_id");
        let by = event.fields("turn_attribution");
        if let (Some(review), Some(turn)) = (&mut self.review, &turn) {
            review.turn = Some(turn.to_string());
            return RecordOutcome::Metadata;
        }
        let agent = by.has("parent_turn_id") || by.has("initiating_agent_path");
        let trigger = if agent { Trigger::Agent } else { Trigger::User };
        if let Some(turn) = turn {
            self.enter(emit, &turn, trigger, record.number("ordinal"));
        }
        RecordOutcome::Metadata
    }

    fn task_complete(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        self.flush(emit);
        self.name_turn(emit, event.text("turn_id").as_deref());
        let error = event.fields("error");
        let reason = if error.is_object() {
            let failure = failure(&error);
            let why = Some(failure.text.clone());
            self.first(emit, super::call::text_hash("failed", &failure.text));
            emit.push(EventKind::Part(Some(failure_name()), Body::Error(failure)));
            EndReason::Failed(why)
        } else {
            EndReason::Completed
        };
        emit.push(EventKind::TurnEnded(reason));
        self.review = None;
        RecordOutcome::Metadata
    }

    fn user_message(
        &mut self,
        emit: &mut Emitter<'_>,
        record: &Fields<'_>,
        event: &Fields<'_>,
    ) -> RecordOutcome {
        let mut user = Vec::new();
        let text = event.string("message").unwrap_or_default();
        if !text.is_empty() {
            user.extend(separate_text(super::NAME, text));
        }
        let listed = |name| event.read::<Vec<String>>(name).unwrap_or_default();
        for url in listed("images").into_iter().chain(listed("local_images")) {
            user.push(Body::File(super::text::picture(Some(url))));
        }
        // Older versions start a turn with its prompt and give it no id.
        if self.turn.is_none() || self.unnamed > 0 {
            self.unnamed += 1;
            let thread = self.thread.as_deref().unwrap_or_default();
            let turn = format!("{thread}/{}", self.unnamed);
            self.enter(emit, &turn, Trigger::User, record.number("ordinal"));
        }
        self.user(emit, None, user)
    }

    /// Attributes events to the turn that the record names, which need not be the current one.
    pub(super) fn name_turn(&self, emit: &mut Emitter<'_>, turn: Option<&str>) {
        let reviewed = self.review.as_ref().is_some_and(|review| review.turn.as_deref() == turn);
        if let Some(turn) = turn.filter(|_| !reviewed) {
            emit.turn = Some(Name::Prompt(turn.into()));
        }
    }

    /// Running totals, repeated on every change. Each increase belongs to one response.
    fn token_count(&mut self, emit: &mut Emitter<'_>, info: &Fields<'_>) {
        let total = info.fields("total_token_usage");
        let count = |name| total.number(name).unwrap_or(0);
        let value = (count("input_tokens"), count("output_tokens"));
        let grew = self.total.is_none_or(|held| value > held) && value != (0, 0);
        self.total = Some(value);
        let window = info.number("model_context_window");
        if let (Some(tokens), Some(model), true) = (window, self.model.clone(), grew) {
            emit.push(EventKind::ContextWindowReported { model, tokens });
        }
        if grew && !self.records_usage {
            self.usage(emit, &info.fields("last_token_usage"));
        }
    }

    pub(super) fn compacted(
        &mut self,
        emit: &mut Emitter<'_>,
        value: &Fields<'_>,
    ) -> RecordOutcome {
        // The unannounced prose is the summary that Codex requested; this record carries it.
        self.unannounced.clear();
        self.announced.clear();
        // A compaction requested by the user is a turn of its own: one response and no prompt.
        let trigger = if self.prompted || self.steps > 1 { "auto" } else { "manual" };
        if trigger == "manual"
            && let Some(turn) = &self.turn
        {
            let names = vec![turn_name(turn)];
            let (trigger, user) = (Trigger::Command, Vec::new());
            emit.push(EventKind::TurnStarted { names, trigger, user });
        }
        let name = compaction_name(self.compactions);
        self.compactions += 1;
        let compaction = Compaction {
            trigger: Some(trigger.to_owned()),
            summary: value.string("message").unwrap_or_default(),
            ..Compaction::default()
        };
        emit.push(EventKind::Part(Some(name), Body::Compaction(compaction)));
        RecordOutcome::InParts
    }
}
