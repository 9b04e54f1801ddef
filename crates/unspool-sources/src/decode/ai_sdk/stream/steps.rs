//! The steps of a streamed message and the prose in them: starts, deltas, ends, and steps that are
//! discarded and begun again. Extends `Message`.

use unspool_model::event::{EventKind, ProseKind};
use unspool_model::json::Json;
use unspool_model::part::{Body, Notice};

use super::Message;
use crate::decode::ai_sdk::message::prose_kind_name;
use crate::decode::ai_sdk::part_names::PartNames;
use crate::decode::ai_sdk::prose::Prose;
use crate::decode::{Emitter, Fields};

impl Message {
    pub(super) fn start_step(&mut self, emit: &mut Emitter<'_>) {
        let step = self.part_names.step();
        self.step = Some(step.clone());
        self.before = Some((self.part_names.clone(), self.parts));
        self.used.clear();
        self.spent.clear();
        self.steps.push(step.clone());
        emit.push(EventKind::StepStarted { step, model: None });
    }

    pub(super) fn need_step(&mut self, emit: &mut Emitter<'_>) {
        if self.step.is_none() {
            self.start_step(emit);
        }
    }

    /// Discards the step so far. Its parts were displayed, so they stay until the next attempt
    /// replaces them.
    pub(super) fn reset_step(&mut self, emit: &mut Emitter<'_>) {
        self.open.clear();
        self.spent.append(&mut self.used);
        (self.part_names, self.parts) =
            self.before.clone().unwrap_or_else(|| (PartNames::of(&self.id), 0));
        self.rest.truncate(self.parts);
        let parts = self.parts;
        self.tools.retain(|_, tool| tool.index < parts);
        self.resets = self.resets.saturating_add(1);
        let name = self.part_names.own("reset", &self.resets.to_string());
        let text = "The step was thrown away and begun again".to_owned();
        emit.push(EventKind::Part(
            Some(name),
            Body::Notice(Notice { code: "retry".to_owned(), text }),
        ));
    }

    pub(super) fn start_prose(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        fields: &Fields<'_>,
    ) {
        self.need_step(emit);
        let name = self.part_names.part(prose_kind_name(prose_kind));
        let quiet = self.spent.contains(&name);
        self.used.push(name.clone());
        let id = fields.text("id").unwrap_or_default();
        let index = self.parts;
        self.parts += 1;
        if prose_kind == ProseKind::Reasoning {
            self.rest.keep(index, "id", Json::string(&id));
        }
        let (text, half) = (String::new(), String::new());
        let mut prose = Prose { prose_kind, name, text, index, metadata: None, half, quiet };
        prose.attach(fields);
        // An open part with the same id is never closed.
        self.open.insert(format!("{} {id}", prose_kind_name(prose_kind)), prose);
    }

    pub(super) fn grow(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        fields: &Fields<'_>,
    ) {
        let id = fields.text("id").unwrap_or_default();
        let key = format!("{} {id}", prose_kind_name(prose_kind));
        if !self.open.contains_key(&key) {
            self.start_prose(emit, prose_kind, fields);
        }
        let Some(prose) = self.open.get_mut(&key) else { return };
        prose.attach(fields);
        let text = prose.take(fields.raw("delta").unwrap_or_default());
        if text.is_empty() {
            return;
        }
        prose.text.push_str(&text);
        if !prose.is_quiet() {
            emit.push(EventKind::ProseDelta { prose_kind, block: Some(prose.name.clone()), text });
        }
    }

    pub(super) fn end_prose(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        fields: &Fields<'_>,
    ) {
        let id = fields.text("id").unwrap_or_default();
        if let Some(mut prose) = self.open.remove(&format!("{} {id}", prose_kind_name(prose_kind)))
        {
            prose.attach(fields);
            let citations = fields.read("citations");
            if citations.is_none() {
                self.rest.keep_present(prose.index, fields, "citations");
            }
            prose.end(emit, &mut self.rest, citations.unwrap_or_default());
        }
    }
}
