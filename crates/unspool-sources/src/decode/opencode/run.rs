//! The output of `opencode run --format json`. It prints parts when they are complete, so not in
//! the order in which they began. Within a message, ids have that order (except across a clock
//! wrap), so the parts of a step are buffered and sorted when the step ends.

use unspool_model::event::{EndReason, EventKind};
use unspool_model::part::Body;
use unspool_model::provenance::Name;

use super::super::{Emitter, Fields, JsonOutline, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::message::failure;
use super::{time_of, wrap_side};

impl OpenCodeDecoder {
    pub(super) fn printed(&mut self, emit: &mut Emitter<'_>, line: &Fields<'_>) -> RecordOutcome {
        emit.at = time_of(line, "timestamp");
        let part = line.fields("part");
        match line.text("type").as_deref() {
            Some("error") => {
                self.flush_printed(emit);
                let error = line.fields("error");
                let name = self.messages.last().map(super::message::Message::error_name);
                emit.turn = self.turn_name();
                emit.push(EventKind::Part(name, Body::Error(failure(&error))));
                emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
                RecordOutcome::InParts
            }
            Some("step_start") => {
                self.flush_printed(emit);
                self.part(emit, &part)
            }
            Some("step_finish") => {
                self.flush_printed(emit);
                let outcome = self.part(emit, &part);
                if part.text("reason").is_some_and(|reason| reason != "tool-calls") {
                    emit.turn = self.turn_name();
                    emit.push(EventKind::TurnEnded(EndReason::Completed));
                }
                outcome
            }
            Some(_) if part.is_object() => {
                let raw = line.raw("part").unwrap_or_default().to_owned();
                let id = part.string("id").unwrap_or_default();
                let wrap_side = wrap_side(&part.text("messageID").unwrap_or_default(), &id);
                self.printed.push((wrap_side, id, raw));
                RecordOutcome::InParts
            }
            kind => self.unknown(emit, kind.unwrap_or("line"), line, line),
        }
    }

    /// Decodes the buffered parts in order.
    fn flush_printed(&mut self, emit: &mut Emitter<'_>) {
        let mut printed = std::mem::take(&mut self.printed);
        printed.sort();
        let mut outline = JsonOutline::default();
        for (_, _, raw) in printed {
            if let Ok(part) = outline.read(&raw) {
                self.part(emit, &part);
            }
        }
        emit.turn = self.turn_name().filter(|name| *name != Name::Preamble);
    }
}
