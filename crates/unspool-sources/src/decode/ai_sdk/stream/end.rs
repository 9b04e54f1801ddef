//! The metadata of a streamed message and its end: open prose is closed, and the model, the usage
//! and the unmapped fields are emitted. Extends `Message`.

use serde_json::Value;
use unspool_model::event::{EndReason, EventKind};
use unspool_model::json::Json;

use super::Message;
use crate::decode::ai_sdk::document::emit_unmapped;
use crate::decode::ai_sdk::message::{model, usage};
use crate::decode::{Emitter, Fields};

impl Message {
    pub(super) fn take_metadata(&mut self, fields: &Fields<'_>) {
        if let Some(incoming) = fields.json("messageMetadata") {
            merge(&mut self.metadata, incoming.value());
        }
    }

    pub(super) fn finish(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        self.take_metadata(fields);
        let reason = fields.string("finishReason");
        if let (Some(step), Some(_)) = (self.step.clone(), &reason) {
            emit.push(EventKind::StepEnded { step, stop_reason: reason.clone() });
        }
        self.close(emit);
        let open = self.tools.values().any(|tool| !tool.over);
        let end = match reason.as_deref() {
            Some("error") => EndReason::Failed(None),
            Some("interrupted") => EndReason::Interrupted,
            // An approval is pending or a client-side tool is running: the message will continue.
            _ if open => return,
            _ => EndReason::Completed,
        };
        emit.push(EventKind::TurnEnded(end));
    }

    /// Ends all open prose and emits the unmapped fields.
    pub(super) fn close(&mut self, emit: &mut Emitter<'_>) {
        for prose in std::mem::take(&mut self.open).into_values() {
            prose.end(emit, &mut self.rest, Vec::new());
        }
        self.emit_unmapped(emit);
    }

    fn emit_unmapped(&mut self, emit: &mut Emitter<'_>) {
        // Metadata may change until the end, so the model is known only now.
        if let Some(model) = model(&self.metadata) {
            for step in self.steps.clone() {
                emit.push(EventKind::StepStarted { step, model: Some(model.clone()) });
            }
        }
        if let Some(usage) = usage(&self.metadata) {
            self.need_step(emit);
            if let Some(step) = self.step.clone() {
                emit.push(EventKind::UsageUpdated { step, usage });
            }
        }
        if !self.metadata.is_null() {
            self.rest.keep_field("metadata", Json::from(self.metadata.clone()));
        }
        emit_unmapped(emit, &self.part_names, &self.rest);
    }
}

/// Merges objects field by field and replaces anything else.
fn merge(held: &mut Value, incoming: Value) {
    match (held, incoming) {
        (Value::Object(held), Value::Object(incoming)) => {
            for (name, value) in incoming {
                match held.get_mut(&name) {
                    Some(held) => merge(held, value),
                    None => {
                        held.insert(name, value);
                    }
                }
            }
        }
        (held, incoming) => *held = incoming,
    }
}
