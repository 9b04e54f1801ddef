//! `session/update`: prose, calls, plans, and what the session itself is.

use unspool_model::event::{EventKind, ProseKind};
use unspool_model::part::{Body, Data, File, Notice, TaskItem, TaskList, TaskState};
use unspool_model::provenance::Name;
use unspool_model::session::{Title, TitleOrigin, Trigger};

use super::super::{Emitter, Fields, RecordOutcome};
use super::adapter::{Adapter, ChunkName};
use super::decoder::AcpDecoder;

impl AcpDecoder {
    pub(super) fn update(&mut self, emit: &mut Emitter<'_>, update: &Fields<'_>) -> RecordOutcome {
        let kind = update.string("sessionUpdate").unwrap_or_default();
        match &*kind {
            "agent_message_chunk" => self.chunk(emit, ProseKind::Text, update),
            "agent_thought_chunk" => self.chunk(emit, ProseKind::Reasoning, update),
            "user_message_chunk" => self.repeated_prompt(update),
            "tool_call" | "tool_call_update" if self.repeats => RecordOutcome::left_out("history"),
            "tool_call" | "tool_call_update" => self.call(emit, update),
            "plan" => self.plan(emit, update),
            "usage_update" => {
                // Claude Code names who began the turn when the turn is complete.
                self.complete |= update.fields("_meta").has("_claude/origin");
                RecordOutcome::Metadata
            }
            "session_info_update" => {
                if let Some(text) = update.string("title") {
                    let origin = TitleOrigin::Prompt;
                    emit.push(EventKind::TitleSet(Title { text, origin }));
                }
                RecordOutcome::Metadata
            }
            "available_commands_update" => {
                if self.repeats && self.open {
                    self.end_repetition();
                    self.repeats = false;
                }
                RecordOutcome::left_out("available_commands_update")
            }
            "current_mode_update" | "config_option_update" => RecordOutcome::Metadata,
            "notice" => {
                let text = [update.string("title"), update.string("description")];
                let text = text.into_iter().flatten().collect::<Vec<_>>().join("\n");
                let code = update.string("severity").unwrap_or_else(|| "notice".to_owned());
                emit.push(EventKind::Part(None, Body::Notice(Notice { code, text })));
                RecordOutcome::InParts
            }
            "compaction_update" | "compaction_summary_chunk" if self.adapter.has_log() => {
                RecordOutcome::left_out(kind)
            }
            "compaction_update" | "compaction_summary_chunk" => self.compaction(emit, update),
            _ => {
                let payload = update.whole();
                emit.push(EventKind::Part(None, Body::Data(Data { kind, payload })));
                RecordOutcome::InParts
            }
        }
    }

    fn chunk(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        update: &Fields<'_>,
    ) -> RecordOutcome {
        if self.repeats {
            return RecordOutcome::left_out("history");
        }
        if self.adapter.mixes_prose() && self.runs_agent() {
            return RecordOutcome::left_out("prose while a sub-agent runs");
        }
        let content = update.fields("content");
        if !content.is("type", "text") {
            self.go_on(emit);
            let kind = content.string("type").unwrap_or_else(|| "content".to_owned());
            let payload = content.whole();
            emit.push(EventKind::Part(None, Body::Data(Data { kind, payload })));
            return RecordOutcome::InParts;
        }
        self.go_on(emit);
        let id = update.text("messageId");
        let name = id.as_deref().map(|id| (id, self.adapter.chunk_name(prose_kind, id)));
        let block = match name {
            Some((id, ChunkName::Step(step))) => {
                if self.step.as_deref() != Some(id) {
                    self.step = Some(id.to_owned());
                    emit.push(EventKind::StepStarted { step, model: None });
                }
                None
            }
            Some((_, ChunkName::Block(block))) => Some(block),
            Some((_, ChunkName::None)) | None => None,
        };
        if self.block != block {
            self.end_block(emit);
            self.block.clone_from(&block);
        }
        let text = content.string("text").unwrap_or_default();
        if prose_kind == ProseKind::Text && self.adapter.error_words(&text).is_some() {
            self.possible_error = Some(text);
            return RecordOutcome::InParts;
        }
        emit.push(EventKind::ProseDelta { prose_kind, block, text });
        RecordOutcome::InParts
    }

    /// Anything but more of a named block ends the block.
    pub(super) fn end_block(&mut self, emit: &mut Emitter<'_>) {
        if let Some(block) = self.block.take() {
            emit.push(EventKind::BlockEnded { block });
        }
    }

    /// Output of the agent after its turn was complete is a turn that the agent began itself.
    pub(super) fn go_on(&mut self, emit: &mut Emitter<'_>) {
        if self.complete && self.open {
            self.begin(emit, Vec::new(), Trigger::Agent, Vec::new());
        }
    }

    /// Part of a prompt in the history that the agent repeats.
    fn repeated_prompt(&mut self, update: &Fields<'_>) -> RecordOutcome {
        if !self.repeats {
            return RecordOutcome::Metadata;
        }
        // Each chunk is a message of its own here: agents repeat whole messages.
        self.end_repetition();
        self.repeated = update.fields("content").string("text").unwrap_or_default();
        RecordOutcome::left_out("history")
    }

    fn plan(&mut self, emit: &mut Emitter<'_>, update: &Fields<'_>) -> RecordOutcome {
        if self.adapter != Adapter::Other {
            return RecordOutcome::left_out("plan");
        }
        self.end_block(emit);
        let item = |entry: Fields<'_>| TaskItem {
            id: None,
            text: entry.string("content").unwrap_or_default(),
            state: match entry.text("status").as_deref() {
                Some("completed") => TaskState::Completed,
                Some("in_progress") => TaskState::Running,
                Some("cancelled") => TaskState::Cancelled,
                Some(_) | None => TaskState::Pending,
            },
        };
        let items = update.list("entries").map(item).collect();
        emit.push(EventKind::Part(None::<Name>, Body::TaskList(TaskList { items })));
        RecordOutcome::InParts
    }
}

/// A part of a prompt that is no text.
pub(super) fn attached(block: &Fields<'_>) -> Body {
    let resource = block.fields("resource");
    let from = if resource.is_object() { resource } else { *block };
    let media_type = from.string("mimeType");
    let data = block.text("data").zip(media_type.as_deref());
    let data = data.map(|(data, kind)| format!("data:{kind};base64,{data}"));
    let url = from.string("uri").or(data);
    Body::File(File { name: block.string("name"), media_type, url, text: from.string("text") })
}
