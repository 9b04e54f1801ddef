//! `item_completed` events of a rollout: items for display. An item with the id of a model item
//! refines it; the others become parts of their own. Extends `LogDecoder`.

use std::sync::Arc;

use unspool_model::event::{CallRef, EventKind};
use unspool_model::part::{Body, Data};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::{Emitter, Fields, RecordOutcome};
use super::call::{
    COMMAND_TOOL, PATCH_TOOL, command_input, emit_agent_activity, emit_call, emit_call_with_hash,
    emit_collab_call, item_end, item_outcome, patch_hash,
};
use super::log::LogDecoder;
use super::review::Review;
use super::text::{content_text, user_parts};

impl LogDecoder {
    pub(super) fn item(
        &mut self,
        emit: &mut Emitter<'_>,
        record: &Fields<'_>,
        event: &Fields<'_>,
    ) -> RecordOutcome {
        let item = event.fields("item");
        let kind = item.string("type").unwrap_or_default();
        let id = item.string("id").unwrap_or_default();
        let reviewed = self.enter_item_turn(emit, record, event);
        match &*kind {
            "UserMessage" => {
                self.flush(emit);
                // The prompt of the reviewer repeats the review request.
                if reviewed {
                    return RecordOutcome::Metadata;
                }
                self.user(emit, Some(&id), user_parts(&item))
            }
            "AgentMessage" => {
                self.announce(emit, Some(&id), content_text(&item, "content"));
                RecordOutcome::Metadata
            }
            "Reasoning" if reviewed => {
                let texts: Vec<String> = item.read("summary_text").unwrap_or_default();
                let detail = Default::default();
                let prose_kind = unspool_model::event::ProseKind::Reasoning;
                super::response::say(emit, prose_kind, &id, texts.join("\n\n"), detail);
                RecordOutcome::InParts
            }
            "Reasoning" => {
                let texts: Vec<String> = item.read("summary_text").unwrap_or_default();
                self.announce(emit, Some(&id), texts.join("\n\n"));
                RecordOutcome::Metadata
            }
            "Plan" => {
                self.flush(emit);
                self.plan = Some((id, item.string("text").unwrap_or_default()));
                RecordOutcome::InParts
            }
            "ContextCompaction" => RecordOutcome::Metadata,
            "EnteredReviewMode" => {
                self.flush(emit);
                self.prompt_review(emit, &item);
                self.review = Some(Review::begin(emit, &item));
                RecordOutcome::InParts
            }
            "ExitedReviewMode" => {
                if let Some(review) = self.review.take() {
                    review.end(emit, &item);
                }
                RecordOutcome::InParts
            }
            "WebSearch" => RecordOutcome::Metadata,
            "SubAgentActivity" => {
                self.flush(emit);
                emit_agent_activity(emit, &item);
                RecordOutcome::InParts
            }
            "CollabAgentToolCall" => {
                self.flush(emit);
                emit_collab_call(emit, Some(&id), &item);
                self.overlay(emit, Some(&id), &item)
            }
            "CommandExecution" | "FileChange" | "ImageView" | "McpToolCall" | "DynamicToolCall"
            | "ImageGeneration" => {
                self.flush(emit);
                self.own_call(emit, &kind, &id, &item, reviewed);
                self.overlay(emit, Some(&id), &item)
            }
            _ => {
                self.flush(emit);
                let kind = format!("item/{kind}");
                let name = Some(Name::Record(id.into()));
                emit.push(EventKind::Part(name, Body::Data(Data { kind, payload: item.whole() })));
                RecordOutcome::InParts
            }
        }
    }

    /// Attributes events to the turn of an item. Returns true if the item is in a review.
    fn enter_item_turn(
        &mut self,
        emit: &mut Emitter<'_>,
        record: &Fields<'_>,
        event: &Fields<'_>,
    ) -> bool {
        let turn = event.string("turn_id");
        let thread = event.string("thread_id");
        let reviewed = self.review.as_ref().is_some_and(|review| review.turn == turn);
        if let Some(turn) = turn.as_deref().filter(|_| !reviewed) {
            // A review starts its turn without a `task_started`.
            self.enter(emit, turn, Trigger::User, record.number("ordinal"));
        }
        self.name_turn(emit, turn.as_deref());
        if reviewed && let (Some(review), Some(thread)) = (&mut self.review, &thread) {
            review.set_reviewer(emit, thread);
        }
        reviewed
    }

    /// Uses the review's hint as the prompt of the turn.
    fn prompt_review(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) {
        let hint = item.string("user_facing_hint");
        let hint = hint.or_else(|| item.fields("target").string("instructions"));
        let text = hint.unwrap_or_default();
        let text = unspool_model::part::Text { text, ..Default::default() };
        self.user(emit, None, vec![unspool_model::part::Body::Text(text)]);
    }

    /// Emits a call that has no model item: in a script, in a review, or typed by the user.
    pub(super) fn own_call(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        id: &str,
        item: &Fields<'_>,
        reviewed: bool,
    ) {
        let nested = id.starts_with("exec-");
        let typed = item.is("source", "user_shell");
        if self.calls.contains_key(id) || !(nested || reviewed || typed) {
            return;
        }
        let parent = match &self.review {
            Some(review) if reviewed => Some(review.call.clone()),
            Some(_) | None => self.scripts.last().filter(|_| nested).cloned(),
        };
        let (name, input) = match kind {
            "CommandExecution" => (COMMAND_TOOL.to_owned(), command_input(item)),
            "FileChange" => (PATCH_TOOL.to_owned(), None),
            "ImageView" => ("view_image".to_owned(), item.json("path")),
            _ => (item.string("tool").unwrap_or_else(|| kind.to_owned()), item.json("arguments")),
        };
        let id: Arc<str> = id.into();
        if kind == "FileChange" {
            let files: Vec<_> = item.fields("changes").names().collect();
            let hash = patch_hash(files.iter().map(|file| &**file));
            return emit_call_with_hash(emit, &id, parent.as_ref(), &name, input, hash);
        }
        emit_call(emit, &id, parent.as_ref(), &name, input);
    }

    /// Applies the outcome in an item to its call.
    pub(super) fn overlay(
        &mut self,
        emit: &mut Emitter<'_>,
        id: Option<&str>,
        item: &Fields<'_>,
    ) -> RecordOutcome {
        let Some(id) = id else { return RecordOutcome::left_out("item without a call") };
        let call = CallRef::Id(id.into());
        let mut outcome = item_outcome(item);
        let held = self.calls.get_mut(id);
        let ended = held.as_ref().is_some_and(|open| open.ended);
        if held.is_none() {
            // No `function_call_output` will follow.
            outcome.output = item.string("aggregated_output").or_else(|| item.string("stdout"));
        }
        let runs = held.as_ref().is_some_and(|open| open.runs.is_some());
        if runs {
            // The model was sent only the beginning.
            outcome.output = item.string("aggregated_output");
        }
        if let Some(open) = held {
            open.ended = true;
        }
        if runs || ended {
            self.calls.remove(id);
        }
        match item_end(item).filter(|_| !ended) {
            Some(end) => emit.push(EventKind::ToolEnded { call, end, outcome }),
            None => emit.push(EventKind::ToolRefined { call, outcome }),
        }
        RecordOutcome::InParts
    }
}
