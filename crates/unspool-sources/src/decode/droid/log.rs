//! Droid's session file: `~/.factory/sessions/<folder>/<session>.jsonl`. One record is a message: a
//! prompt, all blocks of one model call, or the results of all its calls. The first line describes
//! the session and is rewritten in place when the title changes; the file is then read again, so
//! every part has the id of its record as its name.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind, ToolEnd};
use unspool_model::id::{SessionId, sha256};
use unspool_model::json::Json;
use unspool_model::part::{
    Answer, Body, Compaction, ContextInfo, Data, Decision, Failure, Notice, TaskItem, TaskList,
    TaskState,
};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{ForkedFrom, Parent, Title, TitleOrigin, Trigger};

use super::super::claude::message::{Calls, block, message_text, user_parts};
use super::super::claude::result::content_text;
use super::super::injected::{is_injected, separate};
use super::super::permission::report_refusal;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::tool::{begin_call, emit_result};
use super::{early_end, hook_run, is_early_end, prose_name, question, settings, task};

/// What the model is told after a person stopped it while it wrote.
const STOPPED: &str = "Request interrupted by user";

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogDecoder {
    /// The session is a sub-agent's.
    sub_agent: bool,
    /// The last message that a fork copied, until it has come.
    fork_point: Option<Arc<str>>,
    calls: Calls,
    prompts: PromptNames,
    /// The id of the current prompt.
    prompt: Option<Arc<str>>,
    /// Calls of this turn that a person stopped, with their tools: the end of the turn says whether
    /// that was an answer to a question.
    stopped: Vec<(Arc<str>, String)>,
    /// The model is told that a person stopped it while it wrote. Over ACP the end of the turn then
    /// says `completed`.
    was_stopped: bool,
    /// A call has the task list that is repeated in a record of its own.
    has_listed: bool,
    /// The last text of this turn that only the user saw: if the turn fails, it says why.
    message_to_user: Option<(Arc<str>, String)>,
    /// What the model is told before the next prompt.
    context: Vec<ContextInfo>,
}

impl Decoder for LogDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let id = fields.text("id").filter(|_| !fields.is("type", "session_start"));
        let mut emit = Emitter::new(Feed::Log, record, id.as_deref(), out);
        emit.at = fields.time("timestamp");
        let id: Arc<str> = id.unwrap_or_default().into();
        match fields.text("type").as_deref() {
            Some("session_start") => self.start_session(&mut emit, fields),
            Some("message") => {
                let outcome = self.message(&mut emit, &id, &fields.fields("message"));
                if self.fork_point.as_ref() == Some(&id) {
                    self.fork_point = None;
                }
                outcome
            }
            Some("todo_state") if std::mem::take(&mut self.has_listed) => {
                RecordOutcome::left_out("list of the call before")
            }
            Some("todo_state") => {
                let todos = fields.fields("todos");
                let items = todos.list("todos").map(|item| task_item(&item)).collect();
                let list = TaskList { items };
                emit.push(EventKind::Part(Some(Name::Record(id)), Body::TaskList(list)));
                RecordOutcome::InParts
            }
            Some("compaction_state") => {
                let compaction = Compaction {
                    tokens_after: fields.number("summaryTokens"),
                    summary: fields.string("summaryText").unwrap_or_default(),
                    ..Compaction::default()
                };
                emit.push(EventKind::Part(Some(Name::Record(id)), Body::Compaction(compaction)));
                RecordOutcome::InParts
            }
            Some("agent_turn_outcome") => self.end_turn(&mut emit, fields),
            None if fields.is("droid", settings::RECORD) => settings::settings(&mut emit, fields),
            kind => {
                let data =
                    Data { kind: kind.unwrap_or("record").to_owned(), payload: fields.whole() };
                let name = Some(Name::Record(id)).filter(|_| fields.has("id"));
                emit.push(EventKind::Part(name, Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.prompt.clone().map(Name::Prompt)
    }
}

impl LogDecoder {
    fn start_session(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let project = fields.string("cwd");
        let (branch, version, cost) = (None, None, None);
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        if let Some(caller) = fields.text("callingSessionId") {
            self.sub_agent = true;
            let session = SessionId::of(super::NAME, &caller);
            let call_id = fields.string("callingToolUseId");
            emit.push(EventKind::StartedBy(Parent { session, call_id, kind: None }));
        } else if let Some(origin) = fields.text("parent") {
            // A fork, or the session that continues after a compaction.
            let session = SessionId::of(super::NAME, &origin);
            emit.push(EventKind::BranchedOff(ForkedFrom { session, turn: None }));
            self.fork_point = fields.text("forkedAtMessageId").map(|id| id.as_ref().into());
        }
        let title = fields.string("title").or_else(|| fields.string("sessionTitle"));
        // The title of a session without a prompt.
        let title = title.filter(|text| !text.trim().is_empty() && text != "New Session");
        if let Some(text) = title {
            let is_custom = fields.flag("isSessionTitleManuallySet") && !self.sub_agent;
            let origin = if is_custom { TitleOrigin::Custom } else { TitleOrigin::Generated };
            emit.push(EventKind::TitleSet(Title { text, origin }));
        }
        RecordOutcome::Metadata
    }

    fn message(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        if message.has("hookEventName") {
            return hook_run::hook_run(emit, id, message);
        }
        if message.is("role", "assistant") {
            return self.assistant(emit, id, message);
        }
        if message.list("content").any(|block| block.is("type", "tool_result")) {
            return self.results(emit, message);
        }
        let text = message_text(message);
        if id.starts_with(task::COMPLETION_PREFIX) {
            let user = task::report_completion(emit, text);
            self.start_turn(emit, id, Trigger::Agent, user);
            return RecordOutcome::InParts;
        }
        let user = separate(super::NAME, user_parts(message));
        if id.starts_with("context-") || is_injected(&user) {
            let content = Json::string(&text);
            let (kind, sha256) = ("context".to_owned(), sha256(content.text().as_bytes()));
            emit.push(EventKind::SnapshotTaken { kind, sha256, content });
            if id.starts_with("context-") {
                self.context.push(ContextInfo { title: "Session context".to_owned(), text });
            }
            return RecordOutcome::Metadata;
        }
        let name = Some(Name::Record(id.clone()));
        match message.text("visibility").as_deref() {
            Some("llm_only") => {
                self.was_stopped |= text == STOPPED;
                let info = ContextInfo { title: "Told to the model".to_owned(), text };
                emit.push(EventKind::Part(name, Body::ContextInfo(info)));
            }
            Some("user_only") => {
                self.message_to_user = Some((id.clone(), text.clone()));
                let notice = Notice { code: "informational".to_owned(), text };
                emit.push(EventKind::Part(name, Body::Notice(notice)));
            }
            Some(_) | None => {
                let trigger = if self.sub_agent { Trigger::Agent } else { Trigger::User };
                self.start_turn(emit, id, trigger, user);
            }
        }
        RecordOutcome::InParts
    }

    fn start_turn(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        trigger: Trigger,
        user: Vec<Body>,
    ) {
        // What a fork copied is not counted: its other feeds begin with the first prompt of its own.
        let by_text = if self.fork_point.is_none() { self.prompts.next_of(&user) } else { None };
        let names = [Name::Prompt(id.clone())].into_iter().chain(by_text).collect();
        self.prompt = Some(id.clone());
        self.stopped.clear();
        self.was_stopped = false;
        self.message_to_user = None;
        let context = std::mem::take(&mut self.context).into_iter().map(Body::ContextInfo);
        let user = context.chain(user).collect();
        emit.push(EventKind::TurnStarted { names, trigger, user });
        if self.fork_point.is_some() {
            emit.push(EventKind::TurnInherited);
        }
    }

    fn assistant(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        // Without a model these are the program's own words in the model's place.
        let model = message.string("modelId");
        let is_program = model.is_none() && !message.has("openaiMessageId");
        let step = Some(Name::Message(id.clone())).filter(|_| !is_program);
        if let Some(step) = step.clone() {
            emit.push(EventKind::StepStarted { step, model });
        }
        let mut prose = Vec::new();
        let mut made = false;
        for (index, content) in (0..).zip(message.list("content")) {
            made = true;
            match content.text("type").as_deref() {
                Some("thinking") => {
                    let text = content.text("thinking").unwrap_or_default();
                    think(emit, prose_name(id, ProseKind::Reasoning, &text, &mut prose), &content);
                }
                Some("text") => {
                    let text = content.text("text").unwrap_or_default();
                    let name = prose_name(id, ProseKind::Text, &text, &mut prose);
                    if is_program && is_early_end(&text) {
                        emit.push(EventKind::Part(Some(name), early_end(text.into_owned())));
                        continue;
                    }
                    block(emit, &mut self.calls, name, &content, None);
                }
                Some(_) | None => {
                    let name = Name::Block(id.clone(), index);
                    block(emit, &mut self.calls, name, &content, None);
                }
            }
            if content.is("type", "tool_use") {
                let call: Arc<str> = content.text("id").unwrap_or_default().into();
                let tool = content.text("name").unwrap_or_default();
                self.has_listed |= tool == "TodoWrite";
                begin_call(emit, &call, &tool, &content.fields("input"));
            }
        }
        if let Some(step) = step {
            emit.push(EventKind::StepEnded { step, stop_reason: None });
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn results(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>) -> RecordOutcome {
        for block in message.list("content").filter(|block| block.is("type", "tool_result")) {
            let id: Arc<str> = block.text("tool_use_id").unwrap_or_default().into();
            let tool = self.calls.get(&id).cloned().unwrap_or_default();
            let content = block.json("content").filter(|_| !block.is_text("content"));
            let (is_error, output) = (block.flag("is_error"), content_text(&block));
            let end = emit_result(emit, &mut self.calls, &id, is_error, output, content);
            if end == ToolEnd::Rejected {
                self.stopped.push((id, tool));
            }
        }
        RecordOutcome::InParts
    }

    fn end_turn(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        emit.turn = fields.text("turnId").map(|id| Name::Prompt(id.as_ref().into()));
        let reason = fields.string("reason").unwrap_or_default();
        let end = match &*reason {
            "completed" if self.was_stopped => EndReason::Interrupted,
            "completed" | "spec_handoff" | "permission_rejected" => EndReason::Completed,
            "cancelled" | "process_exit" => EndReason::Interrupted,
            _ if fields.is("resultKind", "structured") => EndReason::Completed,
            _ => EndReason::Failed(None),
        };
        // Esc cancels the turn as well; an answer leaves it complete.
        let stopped = std::mem::take(&mut self.stopped);
        if end == EndReason::Completed {
            stopped.into_iter().for_each(|(call, tool)| deny(emit, call, &tool));
        }
        if matches!(end, EndReason::Failed(_)) {
            let said = self.message_to_user.take();
            let (name, text) = match said {
                Some((id, text)) => (id, text),
                None => (format!("outcome/{reason}").into(), reason.replace('_', " ")),
            };
            let failure = Failure { code: Some(reason), status: None, text };
            emit.push(EventKind::Part(Some(Name::Record(name)), Body::Error(failure)));
        }
        emit.push(EventKind::TurnEnded(end));
        RecordOutcome::Metadata
    }
}

/// A person refused the call in the agent's own dialog, which the file does not mention.
fn deny(emit: &mut Emitter<'_>, call: Arc<str>, tool: &str) {
    let call = CallRef::Id(call);
    if tool != question::ASK_TOOL {
        return report_refusal(emit, call, tool, "denied".to_owned());
    }
    let (decision, text) = (Decision::Declined, "declined".to_owned());
    let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call, answer });
}

fn think(emit: &mut Emitter<'_>, name: Name, content: &Fields<'_>) {
    // Chat completions have no signatures; there the field names the source of the text.
    let signature = content.string("signature").filter(|text| {
        !text.is_empty() && !content.is("signatureProvider", "generic-chat-completion-api")
    });
    let duration_ms = content.number("durationMs");
    let detail = ProseDetail { signature, duration_ms, ..ProseDetail::default() };
    let (prose_kind, block) = (ProseKind::Reasoning, Some(name));
    let text = content.string("thinking").unwrap_or_default();
    emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
}

fn task_item(item: &Fields<'_>) -> TaskItem {
    TaskItem {
        id: item.string("id"),
        text: item.string("content").unwrap_or_default(),
        state: match item.text("status").as_deref() {
            Some("completed") => TaskState::Completed,
            Some("in_progress") => TaskState::Running,
            Some("cancelled") => TaskState::Cancelled,
            Some(_) | None => TaskState::Pending,
        },
    }
}
