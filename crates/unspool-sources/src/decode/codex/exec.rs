//! `codex exec --json`: one object per line, without timestamps and with its own item ids
//! (`item_3`). It shares only the thread id with the rollout, so turns, prose and calls are named
//! by content: the n-th occurrence of a content hash.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use unspool_model::assemble::prose_content_hash;
use unspool_model::event::{
    CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::id::digest;
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Failure, Notice, TaskItem, TaskList, TaskState};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::call::{
    COMMAND_TOOL, SEARCH_TOOL, command_input, emit_collab_call, item_end, item_outcome, patch_hash,
    text_hash,
};
use super::failure_name;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecDecoder {
    /// The current turn has a name.
    begun: bool,
    /// Turns started so far, by the hash of their first content.
    turns: BTreeMap<u64, u32>,
    /// Occurrences of each content hash in the turn.
    counts: BTreeMap<u64, u32>,
    calls: BTreeMap<String, CallRef>,
    /// Notices that came before the turn had a name: whether it is a retry, and the text.
    waiting: Vec<(bool, String)>,
}

impl Decoder for ExecDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        let item = fields.fields("item");
        match fields.text("type").as_deref() {
            Some("thread.started") => RecordOutcome::Metadata,
            Some("turn.started") => {
                self.begun = false;
                self.counts.clear();
                self.calls.clear();
                RecordOutcome::Metadata
            }
            Some("item.started") => self.item(&mut emit, &item, false),
            Some("item.updated") => self.item(&mut emit, &item, false),
            Some("item.completed") => self.item(&mut emit, &item, true),
            // Its token counts cover the whole turn; the rollout has them per response.
            Some("turn.completed") => {
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                RecordOutcome::Metadata
            }
            Some("turn.failed") => {
                let why = fields.fields("error").string("message").unwrap_or_default();
                self.begin(&mut emit, text_hash("failed", &why));
                let failure = Failure { text: why.clone(), ..Failure::default() };
                emit.push(EventKind::Part(Some(failure_name()), Body::Error(failure)));
                emit.push(EventKind::TurnEnded(EndReason::Failed(Some(why))));
                RecordOutcome::Metadata
            }
            Some("error") => self.error(&mut emit, fields),
            kind => {
                let kind = kind.unwrap_or("event").to_owned();
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

/// The content hash of a turn, from the hash of its first content.
pub(super) fn turn_hash(first: u64) -> u64 {
    first ^ digest(b"turn")
}

impl ExecDecoder {
    /// Names the turn by its first content and starts it.
    fn begin(&mut self, emit: &mut Emitter<'_>, first: u64) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let words = turn_hash(first);
        let count = self.turns.entry(words).or_default();
        let names = vec![Name::ByContent(words, *count)];
        *count += 1;
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user: Vec::new() });
        for (retry, text) in std::mem::take(&mut self.waiting) {
            self.note(emit, retry, text);
        }
    }

    fn count(&mut self, content: u64) -> u32 {
        let count = self.counts.entry(content).or_default();
        *count += 1;
        *count - 1
    }

    fn say(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        text: String,
    ) -> RecordOutcome {
        if text.trim().is_empty() {
            return RecordOutcome::Metadata;
        }
        let content = prose_content_hash(prose_kind, &text);
        self.begin(emit, content);
        let block = Some(Name::ByContent(content, self.count(content)));
        emit.push(EventKind::ProseCompleted {
            prose_kind,
            block,
            text,
            detail: ProseDetail::default(),
        });
        RecordOutcome::InParts
    }

    fn item(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>, done: bool) -> RecordOutcome {
        let kind = item.string("type").unwrap_or_default();
        match &*kind {
            "agent_message" | "reasoning" => {
                if !done {
                    return RecordOutcome::Metadata;
                }
                let text = item.string("text").unwrap_or_default();
                if kind == "reasoning" {
                    self.say(emit, ProseKind::Reasoning, paragraphs(&text))
                } else {
                    self.say(emit, ProseKind::Text, text)
                }
            }
            "command_execution" => {
                let input = command_input(item);
                let value = input.as_ref().map(Json::value).unwrap_or_default();
                let command = value.get("cmd").and_then(|cmd| cmd.as_str()).unwrap_or_default();
                self.call(emit, item, COMMAND_TOOL, text_hash(COMMAND_TOOL, command), input, done)
            }
            "file_change" => {
                let files: Vec<String> =
                    item.list("changes").filter_map(|change| change.string("path")).collect();
                let hash = patch_hash(files.iter().map(String::as_str));
                self.call(emit, item, super::call::PATCH_TOOL, hash, None, done)
            }
            "web_search" => {
                // The record holds two ids; the second one is the rollout's.
                let hash = unspool_model::assemble::content_hash(
                    SEARCH_TOOL,
                    item.json("action").as_ref(),
                );
                self.call(emit, item, SEARCH_TOOL, hash, item.json("action"), done)
            }
            "collab_tool_call" => {
                let (name, hash, input) = collab_call(item);
                let outcome = self.call(emit, item, &name, hash, input, done);
                if done {
                    emit_collab_call(emit, None, item);
                }
                outcome
            }
            "mcp_tool_call" => {
                let server = item.string("server").unwrap_or_default();
                let name = format!("mcp__{server}__{}", item.text("tool").unwrap_or_default());
                let input = item.json("arguments");
                let hash = unspool_model::assemble::content_hash(&name, input.as_ref());
                self.call(emit, item, &name, hash, input, done)
            }
            "todo_list" => todo_list(emit, item),
            "error" => {
                self.note(emit, false, item.string("message").unwrap_or_default());
                RecordOutcome::InParts
            }
            _ => {
                if !done {
                    return RecordOutcome::Metadata;
                }
                let kind = format!("item/{kind}");
                emit.push(EventKind::Part(None, Body::Data(Data { kind, payload: item.whole() })));
                RecordOutcome::InParts
            }
        }
    }

    fn call(
        &mut self,
        emit: &mut Emitter<'_>,
        item: &Fields<'_>,
        name: &str,
        hash: u64,
        input: Option<Json>,
        done: bool,
    ) -> RecordOutcome {
        let id = item.string("id").unwrap_or_default();
        let call = match self.calls.get(&id) {
            Some(call) => call.clone(),
            None => {
                self.begin(emit, hash);
                let call = CallRef::ByContent(hash, self.count(hash));
                self.calls.insert(id, call.clone());
                emit.push(EventKind::ToolCalled(Box::new(ToolCall {
                    call: call.clone(),
                    parent_call_id: None,
                    name: name.to_owned(),
                    input,
                    content_hash: hash,
                    provider_executed: name == SEARCH_TOOL,
                    title: None,
                    running: true,
                })));
                call
            }
        };
        if done {
            let end = item_end(item).unwrap_or(ToolEnd::Completed);
            let output = item.string("aggregated_output");
            let outcome = ToolOutcome { output, ..item_outcome(item) };
            emit.push(EventKind::ToolEnded { call, end, outcome });
        }
        RecordOutcome::InParts
    }

    /// A retry becomes a notice. A final error is repeated by `turn.failed`.
    fn error(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let text = fields.string("message").unwrap_or_default();
        if !text.starts_with("Reconnecting") {
            return RecordOutcome::Metadata;
        }
        self.note(emit, true, text);
        RecordOutcome::InParts
    }

    /// Emits a notice, or holds it until the turn has a name.
    fn note(&mut self, emit: &mut Emitter<'_>, retry: bool, text: String) {
        if !self.begun {
            return self.waiting.push((retry, text));
        }
        let (code, content) = if retry {
            ("retry", digest(b"retry"))
        } else {
            ("informational", digest(text.as_bytes()))
        };
        let nth = self.count(content ^ digest(b"notice"));
        let notice = Notice { code: code.to_owned(), text };
        emit.push(EventKind::Part(Some(Name::ByContent(content, nth)), Body::Notice(notice)));
    }
}

/// The tool's name in the rollout, its content hash and its input.
fn collab_call(item: &Fields<'_>) -> (String, u64, Option<Json>) {
    let name = match item.text("tool").as_deref() {
        Some("wait") => "wait_agent".to_owned(),
        other => other.unwrap_or("agent").to_owned(),
    };
    let prompt = item.string("prompt");
    let input = prompt.as_ref().map(|prompt| json!({ "message": prompt }));
    let input = input.and_then(|input| Json::parse(&input.to_string()));
    let hash = match &prompt {
        Some(prompt) => text_hash(&name, prompt),
        None => targets(&name, item),
    };
    (name, hash, input)
}

/// The content hash of a call without a prompt: the agents that it targets.
fn targets(name: &str, item: &Fields<'_>) -> u64 {
    let receivers: Vec<String> = item.read("receiver_thread_ids").unwrap_or_default();
    text_hash(name, &receivers.join("\n"))
}

fn todo_list(emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
    let items = item
        .list("items")
        .map(|task| TaskItem {
            id: None,
            text: task.string("text").unwrap_or_default(),
            state: if task.flag("completed") { TaskState::Completed } else { TaskState::Pending },
        })
        .collect();
    let name = item.text("id").map(|id| Name::ByContent(digest(id.as_bytes()), 0));
    emit.push(EventKind::Part(name, Body::TaskList(TaskList { items })));
    RecordOutcome::InParts
}

/// Separates the parts of a reasoning summary by blank lines, as the rollout does. `exec` joins
/// them with one line break; each starts with a bold title.
fn paragraphs(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut blank = true;
    for line in text.split_inclusive('\n') {
        if line.starts_with("**") && !blank {
            output.push('\n');
        }
        blank = line.trim().is_empty();
        output.push_str(line);
    }
    output
}
