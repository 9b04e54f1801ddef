//! Droid's stream-json, the output of `droid exec -o stream-json`: whole messages, with the ids of
//! the session file. A frame of reasoning is printed twice.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind};
use unspool_model::id::digest;
use unspool_model::part::{Body, Data, Failure};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Trigger, Usage};

use super::super::claude::message::{Calls, called, started};
use super::super::injected::separate_text;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::task;
use super::tool::{begin_call, emit_result};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StreamDecoder {
    model: Option<String>,
    prompts: PromptNames,
    calls: Calls,
    /// The current model message, and the digests of its prose so far.
    message: Option<Arc<str>>,
    told: Vec<u64>,
    errors: u32,
    /// The digest of the words with which the program ended the run.
    early_end: Option<u64>,
    /// The session has started sub-agents.
    has_agents: bool,
}

impl Decoder for StreamDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        let at = fields.raw("timestamp").and_then(|ms| ms.parse().ok());
        emit.at = at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        match fields.text("type").as_deref() {
            Some("system") if fields.is("subtype", "init") => {
                self.model = fields.string("model");
                let project = fields.string("cwd");
                let (branch, version, cost) = (None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                RecordOutcome::Metadata
            }
            Some("message") if fields.is("role", "user") => self.prompt(&mut emit, fields),
            Some("message") => self.say(&mut emit, fields, ProseKind::Text),
            Some("reasoning") => self.say(&mut emit, fields, ProseKind::Reasoning),
            Some("tool_call") => self.call(&mut emit, fields),
            Some("tool_result") => self.result(&mut emit, fields),
            Some("error") => {
                let text = fields.string("message").unwrap_or_default();
                if self.early_end == Some(digest(text.as_bytes())) {
                    return RecordOutcome::left_out("error that was said before");
                }
                let name = Name::ByContent(digest(b"error frame"), self.errors);
                self.errors += 1;
                let failure = Failure { text, code: fields.string("source"), status: None };
                emit.push(EventKind::Part(Some(name), Body::Error(failure)));
                RecordOutcome::InParts
            }
            Some("completion") => self.complete(&mut emit, fields),
            kind => {
                let data =
                    Data { kind: kind.unwrap_or("frame").to_owned(), payload: fields.whole() };
                emit.push(EventKind::Part(None, Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl StreamDecoder {
    fn prompt(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = fields.text("id").unwrap_or_default().into();
        let text = fields.string("text").unwrap_or_default();
        let (trigger, user) = if id.starts_with(task::COMPLETION_PREFIX) {
            self.has_agents = true;
            (Trigger::Agent, task::report_completion(emit, text))
        } else {
            (Trigger::User, separate_text(super::NAME, text))
        };
        let by_text = self.prompts.next_of(&user);
        let names = [Name::Prompt(id)].into_iter().chain(by_text).collect();
        self.message = None;
        emit.push(EventKind::TurnStarted { names, trigger, user });
        RecordOutcome::InParts
    }

    /// Begins the model call of a frame, if it is new.
    fn step(&mut self, emit: &mut Emitter<'_>, id: Option<Arc<str>>) {
        if id.is_none() || id == self.message {
            return;
        }
        self.message.clone_from(&id);
        self.told.clear();
        if let Some(id) = id {
            let (step, model) = (Name::Message(id), self.model.clone());
            emit.push(EventKind::StepStarted { step, model });
        }
    }

    fn say(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        prose_kind: ProseKind,
    ) -> RecordOutcome {
        let id = fields.text("id").map(Arc::<str>::from);
        let text = fields.string("text").unwrap_or_default();
        if prose_kind == ProseKind::Text && super::is_early_end(&text) {
            let message = id.as_deref().unwrap_or_default();
            let name = super::prose_name(message, prose_kind, &text, &mut Vec::new());
            self.early_end = Some(digest(text.as_bytes()));
            emit.push(EventKind::Part(Some(name), super::early_end(text)));
            return RecordOutcome::InParts;
        }
        self.step(emit, id.clone());
        let before = self.told.len();
        let message = id.as_deref().unwrap_or_default();
        let name = super::prose_name(message, prose_kind, &text, &mut self.told);
        let is_known = self.told[..before].contains(&self.told[before]);
        if prose_kind == ProseKind::Reasoning && is_known {
            return RecordOutcome::left_out("repeated reasoning");
        }
        let block = id.is_some().then_some(name);
        let detail = ProseDetail::default();
        emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        RecordOutcome::InParts
    }

    fn call(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.step(emit, fields.text("messageId").map(Arc::<str>::from));
        let id: Arc<str> = fields.text("id").unwrap_or_default().into();
        let name = fields.string("toolName").unwrap_or_default();
        let input = fields.json("parameters");
        self.has_agents |= name == "Task";
        self.calls.insert(id.clone(), name.clone());
        let content_hash = fields.content_hash(&name, "parameters");
        called(emit, CallRef::Id(id.clone()), &name, input, content_hash, false);
        let input = fields.fields("parameters");
        started(emit, &id, &name, &input);
        begin_call(emit, &id, &name, &input);
        RecordOutcome::InParts
    }

    fn result(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = fields.text("id").unwrap_or_default().into();
        let is_error = fields.flag("isError");
        let error = fields.fields("error").string("message");
        let output = error.or_else(|| fields.string("value")).unwrap_or_default();
        emit_result(emit, &mut self.calls, &id, is_error, output, None);
        RecordOutcome::InParts
    }

    fn complete(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        emit.push(EventKind::TurnEnded(EndReason::Completed));
        let tokens = fields.fields("usage");
        let count = |name: &str| tokens.number(name).unwrap_or(0);
        let usage = Usage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_write: count("cache_creation_input_tokens"),
            ..Usage::default()
        };
        // The sum has the tokens of some sub-agents; the settings file has the session's own.
        if usage != Usage::default() && !self.has_agents {
            emit.turn = Some(Name::Session);
            let (step, model) = (super::session_step(), self.model.clone());
            emit.push(EventKind::StepStarted { step: step.clone(), model });
            emit.push(EventKind::UsageUpdated { step, usage });
        }
        RecordOutcome::Metadata
    }
}
