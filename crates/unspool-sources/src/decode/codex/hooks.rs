//! Codex's hook payloads and the argument of `notify`. Payloads come bare or in a wrapper with the
//! time of arrival (`{"event","t","payload"}`, ours `{"event","at","payload"}`). Turn and call ids
//! are those of the rollout.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind, ToolEnd,
    ToolOutcome,
};
use unspool_model::json::Json;
use unspool_model::part::{Body, Compaction, Question, QuestionItem, QuestionKind};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::injected::separate_text;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::call::{COMMAND_TOOL, PATCH_TOOL, emit_call};
use super::{compaction_name, payload, turn_name};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HooksDecoder {
    turn: Option<Arc<str>>,
    prompted: bool,
    compactions: u32,
    /// The open calls of this turn, by hash of tool and input.
    #[serde(default)]
    open: BTreeMap<u64, Vec<Arc<str>>>,
}

impl Decoder for HooksDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Hooks, record, None, out);
        let came = fields.read::<f64>("t").map(|seconds| (seconds * 1000.0) as i64);
        let came = came.and_then(|at| Timestamp::from_millisecond(at).ok());
        emit.at = came.or_else(|| fields.time("at"));
        if fields.is("type", "agent-turn-complete") {
            return self.notify(&mut emit, fields);
        }
        let payload = payload(fields);
        let event = payload.string("hook_event_name").unwrap_or_default();
        let of_parent = matches!(&*event, "SubagentStart" | "SubagentStop");
        if let Some(turn) = payload.text("turn_id").filter(|_| !of_parent) {
            self.enter(&mut emit, &turn);
        }
        match &*event {
            "SessionStart" => {
                let project = payload.string("cwd");
                let (branch, version, cost) = (None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                if payload.is("source", "resume") {
                    emit.push(EventKind::SessionResumed);
                }
                RecordOutcome::Metadata
            }
            "UserPromptSubmit" => {
                self.prompt(&mut emit, payload.string("prompt").unwrap_or_default())
            }
            "PreToolUse" => {
                let id: Arc<str> = payload.text("tool_use_id").unwrap_or_default().into();
                let (name, input) = tool(&payload);
                let hash = payload.content_hash(&name, "tool_input");
                self.open.entry(hash).or_default().push(id.clone());
                emit_call(&mut emit, &id, None, &name, input);
                RecordOutcome::InParts
            }
            "PostToolUse" => {
                let id: Arc<str> = payload.text("tool_use_id").unwrap_or_default().into();
                self.open.values_mut().for_each(|open| open.retain(|open| *open != id));
                self.open.retain(|_, open| !open.is_empty());
                let call = CallRef::Id(id);
                let output = payload.string("tool_response");
                let result = payload.json("tool_response").filter(|_| output.is_none());
                let outcome = ToolOutcome { output, result, ..ToolOutcome::default() };
                emit.push(EventKind::ToolEnded { call, end: ToolEnd::Completed, outcome });
                RecordOutcome::InParts
            }
            "PermissionRequest" => self.permission_request(&mut emit, &payload),
            "SubagentStop" => {
                let id = payload.text("agent_id").map(Into::into);
                let agent = AgentRef { call: None, id };
                emit.push(EventKind::AgentEnded { agent, end: AgentEnd::Completed });
                RecordOutcome::InParts
            }
            "PreCompact" => {
                let name = compaction_name(self.compactions);
                self.compactions += 1;
                let trigger = payload.string("trigger");
                let compaction = Compaction { trigger, ..Compaction::default() };
                emit.push(EventKind::Part(Some(name), Body::Compaction(compaction)));
                RecordOutcome::InParts
            }
            "Stop" => {
                self.reply(&mut emit, payload.string("last_assistant_message"));
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                RecordOutcome::Metadata
            }
            _ => RecordOutcome::left_out(format!("hook/{event}")),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl HooksDecoder {
    fn enter(&mut self, emit: &mut Emitter<'_>, turn: &str) {
        if self.turn.as_deref() != Some(turn) {
            self.turn = Some(turn.into());
            self.prompted = false;
            self.compactions = 0;
            self.open.clear();
        }
        emit.turn = self.turn.as_ref().map(turn_name);
    }

    fn prompt(&mut self, emit: &mut Emitter<'_>, text: String) -> RecordOutcome {
        if self.prompted {
            // An interjection: the rollout's id for it is not in the payload.
            return RecordOutcome::left_out("hook/UserPromptSubmit in a turn");
        }
        self.prompted = true;
        let names = self.turn.iter().map(turn_name).collect();
        let user = separate_text(super::NAME, text);
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
        RecordOutcome::InParts
    }

    /// The last assistant message of a turn. The assembler merges it with the rollout's by content.
    fn reply(&self, emit: &mut Emitter<'_>, text: Option<String>) {
        let name = self.turn.as_ref().map(|turn| Name::Record(format!("{turn}/reply").into()));
        if let (Some(block), Some(text)) = (name, text.filter(|text| !text.trim().is_empty())) {
            let (prose_kind, detail) = (ProseKind::Text, ProseDetail::default());
            emit.push(EventKind::ProseCompleted { prose_kind, block: Some(block), text, detail });
        }
    }

    fn permission_request(
        &mut self,
        emit: &mut Emitter<'_>,
        payload: &Fields<'_>,
    ) -> RecordOutcome {
        let (tool, _) = tool(payload);
        // A request names no call: it is about the latest open one with this tool and input.
        let hash = payload.content_hash(&tool, "tool_input");
        let open = || self.open.get(&hash)?.last().cloned();
        let Some(id) = payload.text("tool_use_id").map(Into::into).or_else(open) else {
            return RecordOutcome::left_out("hook/PermissionRequest without a call");
        };
        let item = QuestionItem { question: format!("Allow {tool}?"), ..QuestionItem::default() };
        let (kind, items) = (QuestionKind::Permission, vec![item]);
        let question = Question { request_id: None, kind, items };
        let (call, requested) = (CallRef::Id(id), true);
        emit.push(EventKind::QuestionAsked { call, tool, question, requested, inferred: false });
        RecordOutcome::InParts
    }

    /// Handles `notify`: a turn is complete.
    fn notify(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.enter(emit, &fields.text("turn-id").unwrap_or_default());
        let said: Vec<String> = fields.read("input-messages").unwrap_or_default();
        if let Some(text) = said.into_iter().next().filter(|_| !self.prompted) {
            self.prompt(emit, text);
        }
        self.reply(emit, fields.string("last-assistant-message"));
        emit.push(EventKind::TurnEnded(EndReason::Completed));
        RecordOutcome::InParts
    }
}

/// The tool and its input in the rollout's form. Hooks call the command tool `Bash`, and prefix
/// tool names with their namespace, without a separator.
fn tool(payload: &Fields<'_>) -> (String, Option<Json>) {
    let name = payload.string("tool_name").unwrap_or_default();
    let input = payload.json("tool_input");
    let command = payload.fields("tool_input").string("command");
    match (&*name, command) {
        ("Bash", Some(command)) => {
            let input = Json::parse(&json!({ "cmd": command }).to_string());
            (COMMAND_TOOL.to_owned(), input)
        }
        (PATCH_TOOL, Some(patch)) => (name, Some(Json::string(&patch))),
        _ => {
            let namespaces = ["collaboration", "multi_agent_v1"];
            let bare = namespaces.iter().find_map(|space| name.strip_prefix(space));
            (bare.filter(|bare| !bare.is_empty()).unwrap_or(&name).to_owned(), input)
        }
    }
}
