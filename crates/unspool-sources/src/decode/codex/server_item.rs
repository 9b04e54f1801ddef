//! Items of the app-server protocol. Each is started and completed under its id in the rollout.
//! Extends `ServerDecoder`.

use std::sync::Arc;

use serde_json::json;
use unspool_model::event::{CallRef, EventKind, ProseDetail, ProseKind, ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::{Body, Compaction, Data, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::{Emitter, Fields, RecordOutcome};
use super::call::{
    COMMAND_TOOL, PATCH_TOOL, SEARCH_TOOL, command_input, emit_agent_activity, emit_call,
    emit_collab_call, item_end, item_outcome,
};
use super::response::say;
use super::review::Review;
use super::server::ServerDecoder;
use super::{compaction_name, turn_name};

/// Which of the two messages about an item it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemPhase {
    Started,
    Completed,
}

impl ServerDecoder {
    pub(super) fn item(
        &mut self,
        emit: &mut Emitter<'_>,
        item: &Fields<'_>,
        phase: ItemPhase,
    ) -> RecordOutcome {
        let done = phase == ItemPhase::Completed;
        let kind = item.string("type").unwrap_or_default();
        let id: Arc<str> = item.text("id").unwrap_or_default().into();
        if kind == "userMessage" {
            // The prompt of the reviewer repeats the review request.
            return if done && self.review.is_none() {
                self.user(emit, item)
            } else {
                RecordOutcome::Metadata
            };
        }
        if !done {
            self.step(emit);
        }
        match &*kind {
            "agentMessage" | "plan" => {
                if done {
                    let text = item.string("text").unwrap_or_default();
                    say(emit, ProseKind::Text, &id, text, ProseDetail::default());
                }
            }
            "reasoning" => {
                if done {
                    reasoning(emit, item, &id);
                }
            }
            "contextCompaction" => {
                if done {
                    return RecordOutcome::Metadata;
                }
                self.compaction(emit);
            }
            "enteredReviewMode" => {
                if done {
                    return RecordOutcome::Metadata;
                }
                self.review_begins(emit, item);
            }
            "exitedReviewMode" => {
                if let Some(review) = self.review.take_if(|_| done) {
                    review.end(emit, item);
                }
            }
            "subAgentActivity" => {
                if done {
                    return RecordOutcome::Metadata;
                }
                agent_activity(emit, item, id);
            }
            _ => return self.call_item(emit, &kind, id, item, phase),
        }
        RecordOutcome::InParts
    }

    /// An item that is a call, or of an unknown type.
    fn call_item(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        id: Arc<str>,
        item: &Fields<'_>,
        phase: ItemPhase,
    ) -> RecordOutcome {
        let done = phase == ItemPhase::Completed;
        match kind {
            "collabAgentToolCall" => {
                let (name, input) = collab_call(item);
                self.emit_call(emit, &id, &name, input, phase);
                if done {
                    emit_collab_call(emit, Some(&id), item);
                    self.emit_end(emit, &id, item);
                }
            }
            "commandExecution" => {
                self.emit_call(emit, &id, COMMAND_TOOL, command_input(item), phase);
                self.emit_end(emit, &id, item);
            }
            "fileChange" => {
                self.emit_call(emit, &id, PATCH_TOOL, None, phase);
                self.emit_end(emit, &id, item);
            }
            "imageView" => {
                let path = item.string("path").unwrap_or_default();
                let input = Json::parse(&json!({ "path": path }).to_string());
                self.emit_call(emit, &id, "view_image", input, phase);
                if done {
                    self.emit_end(emit, &id, item);
                }
            }
            "webSearch" => {
                self.emit_call(emit, &id, SEARCH_TOOL, item.json("action"), phase);
                if done {
                    let (call, end) = (CallRef::Id(id), ToolEnd::Completed);
                    emit.push(EventKind::ToolEnded { call, end, outcome: ToolOutcome::default() });
                }
            }
            "mcpToolCall" | "dynamicToolCall" => {
                self.emit_call(emit, &id, &extension_tool(item), item.json("arguments"), phase);
                self.emit_end(emit, &id, item);
            }
            _ => {
                if !done {
                    return RecordOutcome::Metadata;
                }
                let kind = format!("item/{kind}");
                let name = Some(Name::Record(id));
                emit.push(EventKind::Part(name, Body::Data(Data { kind, payload: item.whole() })));
            }
        }
        RecordOutcome::InParts
    }

    /// Emits a call. A call that fails at once has only an `item/completed`, so it is emitted then.
    fn emit_call(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        name: &str,
        input: Option<Json>,
        phase: ItemPhase,
    ) {
        let parent = self.review.as_ref().map(|review| review.call.clone());
        if phase == ItemPhase::Started || parent.is_none() {
            emit_call(emit, id, parent.as_ref(), name, input);
        }
    }

    fn emit_end(&mut self, emit: &mut Emitter<'_>, id: &Arc<str>, item: &Fields<'_>) {
        let Some(end) = item_end(item) else { return };
        let mut outcome = item_outcome(item);
        outcome.output = item.string("aggregatedOutput");
        emit.push(EventKind::ToolEnded { call: CallRef::Id(id.clone()), end, outcome });
    }

    fn compaction(&mut self, emit: &mut Emitter<'_>) {
        let trigger = if self.prompted { "auto" } else { "manual" };
        if let Some(turn) = self.turn.as_ref().filter(|_| !self.prompted) {
            let (names, user) = (vec![turn_name(turn)], Vec::new());
            emit.push(EventKind::TurnStarted { names, trigger: Trigger::Command, user });
        }
        let name = compaction_name(self.compactions);
        self.compactions += 1;
        let trigger = Some(trigger.to_owned());
        let compaction = Compaction { trigger, ..Compaction::default() };
        emit.push(EventKind::Part(Some(name), Body::Compaction(compaction)));
    }

    fn review_begins(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) {
        if let Some(turn) = self.turn.clone().filter(|_| !self.prompted) {
            self.prompted = true;
            let text = item.string("review").unwrap_or_default();
            let user = vec![Body::Text(Text { text, ..Text::default() })];
            let names = vec![turn_name(&turn)];
            emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
        }
        self.review = Some(Review::begin(emit, item));
    }
}

fn reasoning(emit: &mut Emitter<'_>, item: &Fields<'_>, id: &Arc<str>) {
    let read = |name| item.read::<Vec<String>>(name).unwrap_or_default();
    let mut text = read("summary").join("\n\n");
    if text.is_empty() {
        text = read("content").join("");
    }
    let detail = ProseDetail { redacted: text.is_empty(), ..ProseDetail::default() };
    say(emit, ProseKind::Reasoning, id, text, detail);
}

fn agent_activity(emit: &mut Emitter<'_>, item: &Fields<'_>, id: Arc<str>) {
    let started = item.is("kind", "started");
    if started {
        let path = item.string("agentPath").unwrap_or_default();
        let input = Json::parse(&json!({ "task_name": path }).to_string());
        emit_call(emit, &id, None, "spawn_agent", input);
    }
    emit_agent_activity(emit, item);
    if started {
        let (call, end) = (CallRef::Id(id), ToolEnd::Completed);
        emit.push(EventKind::ToolEnded { call, end, outcome: ToolOutcome::default() });
    }
}

/// The tool's name in the rollout, and its input.
fn collab_call(item: &Fields<'_>) -> (String, Option<Json>) {
    let name = match item.text("tool").as_deref() {
        Some("spawnAgent") => "spawn_agent".to_owned(),
        Some("wait") => "wait_agent".to_owned(),
        Some("sendInput") => "send_input".to_owned(),
        Some("closeAgent") => "close_agent".to_owned(),
        Some("resumeAgent") => "resume_agent".to_owned(),
        other => other.unwrap_or("agent").to_owned(),
    };
    let input = item.string("prompt").map(|prompt| json!({ "message": prompt }));
    let input = input.unwrap_or_else(|| json!({}));
    (name, Json::parse(&input.to_string()))
}

/// The name of a tool of an MCP server, or of one that the client provides.
fn extension_tool(item: &Fields<'_>) -> String {
    match item.string("server") {
        Some(server) => format!("mcp__{server}__{}", item.text("tool").unwrap_or_default()),
        None => item.string("tool").unwrap_or_default(),
    }
}
