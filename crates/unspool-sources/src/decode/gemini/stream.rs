//! Gemini's stream-json, the output of `-p -o stream-json`. It has no thoughts and only call ids.
//! Its tool results are the displayed ones, often empty. It reports how a turn ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, Event, EventKind, ProseKind, ToolEnd, ToolOutcome};
use unspool_model::part::{Body, Data, Failure, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::injected::separate_text;
use super::super::prompt_hash;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::tool::emit_call;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamDecoder {
    /// Occurrences of each prompt text.
    #[serde(rename = "alike")]
    prompt_names: PromptNames,
    /// The number of the current model call in the turn.
    step: u32,
    /// Its calls have ended: the next record belongs to the next model call.
    answered: bool,
    /// The number of the current text piece: a call between two texts separates them.
    #[serde(default)]
    piece: u32,
    /// It wrote text and then made a call, so more text starts a new piece.
    #[serde(default)]
    parted: bool,
    #[serde(default)]
    spoke: bool,
    /// Trailing white space of its text so far: the chat file omits it unless more text follows.
    space: String,
    errors: u32,
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
        match fields.text("type").as_deref() {
            Some("init") => {
                let (project, branch, version, cost) = (None, None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                RecordOutcome::Metadata
            }
            Some("message") => self.message(&mut emit, fields),
            Some("tool_use") => {
                self.advance_step(&mut emit);
                self.parted = self.spoke;
                let id: Arc<str> = fields.text("tool_id").unwrap_or_default().into();
                emit_call(&mut emit, &id, fields, "parameters", true);
                RecordOutcome::InParts
            }
            Some("tool_result") => self.result_of(&mut emit, fields),
            Some("error") => {
                let text = fields.string("message").unwrap_or_default();
                let is_error = !fields.is("severity", "warning");
                self.errors += 1;
                let name = Some(Name::ByContent(prompt_hash("error"), self.errors));
                emit.push(if is_error {
                    EventKind::Part(name, Body::Error(Failure { text, ..Failure::default() }))
                } else {
                    EventKind::Part(name, Body::Notice(Notice { code: "warning".to_owned(), text }))
                });
                RecordOutcome::InParts
            }
            Some("result") => self.result(&mut emit, fields),
            kind => {
                let kind = kind.unwrap_or("frame").to_owned();
                emit.push(EventKind::Part(
                    None,
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
    fn message(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let text = fields.string("content").unwrap_or_default();
        if fields.is("role", "user") {
            let user = separate_text(super::NAME, text);
            let names = self.prompt_names.next_of(&user).into_iter().collect();
            (self.step, self.answered) = (0, false);
            self.begin();
            emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
            return RecordOutcome::InParts;
        }
        self.advance_step(emit);
        if self.parted && !text.trim().is_empty() {
            emit.push(EventKind::BlockEnded { block: self.block() });
            self.piece += 1;
            self.parted = false;
            self.space.clear();
        }
        let mut text = std::mem::take(&mut self.space) + &text;
        self.space = text.split_off(text.trim_end().len());
        if !text.is_empty() {
            let block = Some(self.block());
            self.spoke = true;
            emit.push(EventKind::ProseDelta { prose_kind: ProseKind::Text, block, text });
        }
        RecordOutcome::InParts
    }

    /// Moves to the next model call if the calls of this one have ended.
    fn advance_step(&mut self, emit: &mut Emitter<'_>) {
        if std::mem::take(&mut self.answered) {
            emit.push(EventKind::BlockEnded { block: self.block() });
            self.step += 1;
            self.begin();
        }
    }

    /// Resets the state for a new model call.
    fn begin(&mut self) {
        (self.piece, self.parted, self.spoke) = (0, false, false);
        self.space.clear();
    }

    /// The name of the current text piece.
    fn block(&self) -> Name {
        super::piece_name(self.step, self.piece)
    }

    fn result_of(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.answered = true;
        let id: Arc<str> = fields.text("tool_id").unwrap_or_default().into();
        let failed = !fields.is("status", "success");
        let end = if failed { ToolEnd::Failed } else { ToolEnd::Completed };
        let error = fields.fields("error").string("message");
        let shown = fields.string("output").filter(|text| !text.is_empty());
        let output = error.filter(|_| failed).or(shown);
        let outcome = ToolOutcome { output, ..ToolOutcome::default() };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
        RecordOutcome::InParts
    }

    fn result(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        emit.push(EventKind::BlockEnded { block: self.block() });
        if fields.is("status", "success") {
            emit.push(EventKind::TurnEnded(EndReason::Completed));
            return RecordOutcome::Metadata;
        }
        let error = fields.fields("error");
        let failure = Failure {
            code: error.string("type").filter(|kind| kind != "unknown"),
            status: None,
            text: error.string("message").unwrap_or_default(),
        };
        emit.push(EventKind::Part(
            Some(Name::ByContent(prompt_hash("error"), 0)),
            Body::Error(failure),
        ));
        emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
        RecordOutcome::InParts
    }
}
