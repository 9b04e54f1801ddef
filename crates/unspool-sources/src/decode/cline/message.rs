//! Messages of a conversation: prompts, what Cline tells the model, and replies. Extends
//! `LogDecoder`.

use std::sync::Arc;

use jiff::Timestamp;
use unspool_model::event::{
    AgentRef, CallRef, EndReason, EventKind, ProseDetail, ProseKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::part::{
    Body, Data, Failure, File, Notice, Question, QuestionItem, QuestionKind, QuestionOption, Text,
};
use unspool_model::provenance::Name;
use unspool_model::session::{Trigger, Usage};

use super::super::claude::tag;
use super::super::injected::separate;
use super::super::{Emitter, Fields, RecordOutcome};
use super::log::LogDecoder;

/// How messages begin that Cline writes in the user's name without a mark.
const CONTINUATIONS: [&str; 2] =
    ["[TASK RESUMPTION]", "The user approved switching to act mode. Continue"];
const TEAM_REPORT: &str = "System-delivered teammate async run updates:";

impl LogDecoder {
    pub(super) fn user(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        key: &Arc<str>,
    ) -> RecordOutcome {
        let mut results = 0;
        for block in message.list("content").filter(|block| block.is("type", "tool_result")) {
            results += 1;
            self.result(emit, &block);
        }
        if results > 0 {
            return RecordOutcome::InParts;
        }
        let metadata = message.fields("metadata");
        let kind = metadata.string("kind");
        // A run that the user did not start, or a note about the conversation.
        if metadata.number("userRunSpan") == Some(0) || kind.is_some() {
            let code = kind.unwrap_or_else(|| "continuation".to_owned());
            let notice = Notice { code, text: text_of(message) };
            let name = Some(Name::Record(key.clone()));
            emit.push(EventKind::Part(name, Body::Notice(notice)));
            return RecordOutcome::InParts;
        }
        self.prompt(emit, message, key);
        RecordOutcome::InParts
    }

    fn prompt(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>, key: &Arc<str>) {
        let mut mode = None;
        let mut user = Vec::new();
        if let Some(text) = message.string("content") {
            user.push(Body::Text(Text { text: strip_input_mark(&text).0, ..Text::default() }));
        }
        for block in message.list("content") {
            user.push(match block.text("type").as_deref() {
                Some("text") => {
                    let (text, notice) =
                        strip_input_mark(&block.string("text").unwrap_or_default());
                    mode = mode.or(notice);
                    Body::Text(Text { text, ..Text::default() })
                }
                Some("image" | "file" | "media") => Body::File(file(&block)),
                kind => Body::Data(Data {
                    kind: kind.unwrap_or("block").to_owned(),
                    payload: block.whole(),
                }),
            });
        }
        let user = separate(super::NAME, user);
        let words = user.iter().find_map(Body::prose).unwrap_or_default();
        let trigger = if self.is_agent || words.starts_with(TEAM_REPORT) {
            Trigger::Agent
        } else if CONTINUATIONS.iter().any(|start| words.starts_with(start)) {
            Trigger::Continuation
        } else {
            Trigger::User
        };
        let name = Name::Prompt(key.clone());
        self.begin(name.clone());
        emit.push(EventKind::TurnStarted { names: vec![name], trigger, user });
        if self.inherited {
            emit.push(EventKind::TurnInherited);
        }
        if let Some(text) = mode {
            let notice = Notice { code: "mode".to_owned(), text };
            let name = Name::Record(format!("{key}/mode").into());
            emit.push(EventKind::Part(Some(name), Body::Notice(notice)));
        }
    }

    pub(super) fn assistant(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        key: &Arc<str>,
    ) -> RecordOutcome {
        let metadata = message.fields("metadata");
        if metadata.is("displayRole", "error") {
            let failure = Failure { text: text_of(message), ..Failure::default() };
            let name = Some(Name::Record(key.clone()));
            emit.push(EventKind::Part(name, Body::Error(failure)));
            self.end(emit, EndReason::Failed(None));
            return RecordOutcome::InParts;
        }
        let step = Name::Message(key.clone());
        let model = message.fields("modelInfo").string("id");
        emit.push(EventKind::StepStarted { step: step.clone(), model });
        let mut calls = 0;
        for (nth, block) in message.list("content").enumerate() {
            calls += usize::from(block.is("type", "tool_use"));
            let name = Name::Block(key.clone(), u32::try_from(nth).unwrap_or(u32::MAX));
            self.block(emit, &block, name);
        }
        for activity in metadata.list("modelToolActivities") {
            provider_call(emit, &activity);
        }
        let metrics = message.fields("metrics");
        if metrics.is_object() {
            if !self.inherited {
                let usage = usage(&metrics);
                emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
                self.cost.report(emit, metrics.read("cost"), usage);
            }
            emit.push(EventKind::StepEnded { step, stop_reason: None });
            // Without counts the stream was cut, and an error follows.
            if calls == 0 {
                self.end(emit, EndReason::Completed);
            }
        }
        RecordOutcome::InParts
    }

    fn block(&mut self, emit: &mut Emitter<'_>, block: &Fields<'_>, name: Name) {
        let name = Some(name);
        match block.text("type").as_deref() {
            Some("text") => {
                let text = block.string("text").unwrap_or_default();
                let (prose_kind, detail) = (ProseKind::Text, ProseDetail::default());
                emit.push(EventKind::ProseCompleted { prose_kind, block: name, text, detail });
            }
            Some(kind @ ("thinking" | "redacted_thinking")) => {
                let redacted = kind == "redacted_thinking";
                let text = block.string("thinking").filter(|_| !redacted).unwrap_or_default();
                let signature = block.string("signature").or_else(|| block.string("data"));
                let detail = ProseDetail { signature, redacted, ..ProseDetail::default() };
                let prose_kind = ProseKind::Reasoning;
                emit.push(EventKind::ProseCompleted { prose_kind, block: name, text, detail });
            }
            Some("tool_use") => self.call(emit, block),
            Some("image" | "file" | "media") => {
                emit.push(EventKind::Part(name, Body::File(file(block))));
            }
            kind => {
                let kind = kind.unwrap_or("block").to_owned();
                let data = Data { kind, payload: block.whole() };
                emit.push(EventKind::Part(name, Body::Data(data)));
            }
        }
    }

    fn call(&mut self, emit: &mut Emitter<'_>, block: &Fields<'_>) {
        let id: Arc<str> = block.text("id").unwrap_or_default().into();
        let name = block.string("name").unwrap_or_default();
        self.calls.insert(id.clone(), name.clone());
        emit_use(emit, id, name, block);
    }
}

/// Emits a call of the model, and what it means: a sub-agent, a question.
pub(super) fn emit_use(emit: &mut Emitter<'_>, id: Arc<str>, name: String, block: &Fields<'_>) {
    emit_call(emit, &id, &name, block, "input");
    let input = block.fields("input");
    match &*name {
        "spawn_agent" | "team_run_task" => emit.push(EventKind::AgentStarted {
            agent: AgentRef { call: Some(id), id: None },
            name: input.string("agentId").unwrap_or_else(|| "agent".to_owned()),
            task: input.string("task").unwrap_or_default(),
            background: input.is("runMode", "async"),
        }),
        "ask_question" => {
            let labels: Vec<String> = input.read("options").unwrap_or_default();
            let option = |label| QuestionOption { label, description: None };
            let item = QuestionItem {
                question: input.string("question").unwrap_or_default(),
                options: labels.into_iter().map(option).collect(),
                ..QuestionItem::default()
            };
            let (request_id, kind) = (None, QuestionKind::Choice);
            let question = Question { request_id, kind, items: vec![item] };
            let (call, requested) = (CallRef::Id(id), false);
            emit.push(EventKind::QuestionAsked {
                call,
                tool: name,
                question,
                requested,
                inferred: false,
            });
        }
        _ => {}
    }
}

/// Emits a call, from any feed.
pub(super) fn emit_call(
    emit: &mut Emitter<'_>,
    id: &Arc<str>,
    name: &str,
    call: &Fields<'_>,
    input: &str,
) {
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(id.clone()),
        parent_call_id: None,
        name: name.to_owned(),
        input: call.json(input),
        content_hash: call.content_hash(name, input),
        provider_executed: false,
        title: None,
        running: true,
    })));
}

/// A tool that the provider ran. Its place among the texts is lost.
fn provider_call(emit: &mut Emitter<'_>, activity: &Fields<'_>) {
    let id: Arc<str> = activity.text("toolCallId").unwrap_or_default().into();
    let name = activity.string("toolName").unwrap_or_default();
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(id.clone()),
        parent_call_id: None,
        name: name.clone(),
        input: activity.json("input"),
        content_hash: activity.content_hash(&name, "input"),
        provider_executed: true,
        title: None,
        running: true,
    })));
    let outcome = ToolOutcome {
        output: activity.string("output"),
        result: activity.json("output").filter(|_| !activity.is_text("output")),
        ..ToolOutcome::default()
    };
    let (call, end) = (CallRef::Id(id), ToolEnd::Completed);
    emit.push(EventKind::ToolEnded { call, end, outcome });
}

/// What the user typed, without the mark that Cline puts around it, and the note about a change of
/// the mode inside the mark.
pub(super) fn strip_input_mark(text: &str) -> (String, Option<String>) {
    let inner = text
        .strip_prefix("<user_input")
        .and_then(|rest| rest.split_once('>'))
        .and_then(|(_, rest)| rest.strip_suffix("</user_input>"));
    let inner = inner.unwrap_or(text);
    match tag(inner, "mode_notice").filter(|_| inner.starts_with("<mode_notice>")) {
        Some(notice) => {
            let rest = inner.split_once("</mode_notice>").map_or("", |(_, rest)| rest);
            (rest.trim_start_matches('\n').to_owned(), Some(notice.to_owned()))
        }
        None => (inner.to_owned(), None),
    }
}

/// All texts of a message.
fn text_of(message: &Fields<'_>) -> String {
    let texts: Vec<String> =
        message.list("content").filter_map(|block| block.string("text")).collect();
    message.string("content").unwrap_or_else(|| texts.join("\n"))
}

/// `inputTokens` includes what was read from the cache and what was written to it.
pub(super) fn usage(metrics: &Fields<'_>) -> Usage {
    let count = |name: &str| metrics.number(name).unwrap_or(0);
    let (cache_read, cache_write) = (count("cacheReadTokens"), count("cacheWriteTokens"));
    Usage {
        input: count("inputTokens").saturating_sub(cache_read).saturating_sub(cache_write),
        output: count("outputTokens"),
        cache_read,
        cache_write,
        ..Usage::default()
    }
}

fn file(block: &Fields<'_>) -> File {
    let media_type = block.string("mediaType").or_else(|| block.string("media_type"));
    let kind = media_type.as_deref().unwrap_or("application/octet-stream");
    let url = block.text("data").map(|data| format!("data:{kind};base64,{data}"));
    let name = block.string("path").or_else(|| block.string("name"));
    File { name, media_type, url, text: block.string("content") }
}

/// When a message was written.
pub(super) fn time_of(message: &Fields<'_>) -> Option<Timestamp> {
    let time = i64::try_from(message.number("ts")?).ok()?;
    Timestamp::from_millisecond(time).ok()
}
