//! Gemini's hook payloads. They have ids of neither prompts nor calls, so they are matched with the
//! chat by content. Calls of a sub-agent carry the parent's session id and look like the parent's
//! own, so tool hooks are ignored while a sub-agent runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, Event, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::part::{Question, QuestionItem, QuestionKind};
use unspool_model::provenance::Feed;
use unspool_model::session::Trigger;

use super::super::injected::separate_text;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};

/// The fields of an input that a permission prompt repeats.
const ABOUT: [&str; 3] = ["command", "file_path", "path"];

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HooksDecoder {
    /// Occurrences of each prompt text.
    #[serde(rename = "alike")]
    prompt_names: PromptNames,
    /// Open calls of this turn, by content hash of tool and input, oldest first.
    open: BTreeMap<u64, Vec<CallRef>>,
    /// Those of them that may ask for permission, with their tools and what they are about: a
    /// command or a file.
    #[serde(default)]
    asking: Vec<AskingCall>,
    /// Calls of this turn so far, by content hash.
    counts: BTreeMap<u64, u32>,
    /// How many sub-agents are running.
    agents: u32,
}

#[derive(Clone, Serialize, Deserialize)]
struct AskingCall {
    call: CallRef,
    tool: String,
    about: String,
}

impl Decoder for HooksDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let payload = fields.fields("payload");
        // Read the event name from the payload: the wrapper's may be empty.
        let event = payload.string("hook_event_name").unwrap_or_default();
        let mut emit = Emitter::new(Feed::Hooks, record, None, out);
        emit.at = payload.time("timestamp");
        match &*event {
            "SessionStart" => {
                let (branch, version, cost) = (None, None, None);
                let project = payload.string("cwd");
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                if payload.is("source", "resume") {
                    emit.push(EventKind::SessionResumed);
                }
                RecordOutcome::Metadata
            }
            "SessionEnd" => {
                emit.push(EventKind::SessionEnded);
                RecordOutcome::Metadata
            }
            "BeforeAgent" => self.prompt(&mut emit, &payload),
            "AfterAgent" => {
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                RecordOutcome::Metadata
            }
            "BeforeTool" => self.tool_starts(&mut emit, &payload),
            "AfterTool" => self.tool_ends(&mut emit, &payload),
            "Notification" if payload.is("notification_type", "ToolPermission") => {
                self.permission(&mut emit, &payload)
            }
            _ => RecordOutcome::left_out(format!("hook/{event}")),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl HooksDecoder {
    fn prompt(&mut self, emit: &mut Emitter<'_>, payload: &Fields<'_>) -> RecordOutcome {
        let text = payload.string("prompt").unwrap_or_default();
        self.open.clear();
        self.asking.clear();
        self.counts.clear();
        self.agents = 0;
        let user = separate_text(super::NAME, text);
        let names = self.prompt_names.next_of(&user).into_iter().collect();
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
        RecordOutcome::InParts
    }

    fn tool_starts(&mut self, emit: &mut Emitter<'_>, payload: &Fields<'_>) -> RecordOutcome {
        let name = payload.string("tool_name").unwrap_or_default();
        let starts_agent = name == "invoke_agent";
        if self.agents > 0 && !starts_agent {
            return RecordOutcome::left_out("hook/BeforeTool while a sub-agent runs");
        }
        self.agents += u32::from(starts_agent);
        let content_hash = payload.content_hash(&name, "tool_input");
        let count = self.counts.entry(content_hash).or_default();
        *count += 1;
        let call = CallRef::ByContent(content_hash, *count - 1);
        self.open.entry(content_hash).or_default().push(call.clone());
        let input = payload.fields("tool_input");
        let about = ABOUT.iter().find_map(|field| input.string(field)).unwrap_or_default();
        self.asking.push(AskingCall { call: call.clone(), tool: name.clone(), about });
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call,
            parent_call_id: None,
            name,
            input: payload.json("tool_input"),
            content_hash,
            provider_executed: false,
            title: None,
            running: true,
        })));
        RecordOutcome::InParts
    }

    /// A permission prompt is drawn. Its payload names no call: it is the one about the same command
    /// or file, else the last.
    fn permission(&mut self, emit: &mut Emitter<'_>, payload: &Fields<'_>) -> RecordOutcome {
        if self.agents > 0 {
            return RecordOutcome::left_out("hook/Notification while a sub-agent runs");
        }
        let details = payload.fields("details");
        let about = details.string("command").or_else(|| details.string("filePath"));
        let about = about.unwrap_or_default();
        let is_same = |asking: &&AskingCall| {
            !asking.about.is_empty() && about.ends_with(asking.about.as_str())
        };
        let found = self.asking.iter().find(is_same).or(self.asking.last());
        let Some(AskingCall { call, tool, .. }) = found.cloned() else {
            return RecordOutcome::left_out("hook/Notification of no call");
        };
        // Each call asks once.
        self.asking.retain(|asking| asking.call != call);
        let item = QuestionItem { question: format!("Allow {tool}?"), ..QuestionItem::default() };
        let question =
            Question { request_id: None, kind: QuestionKind::Permission, items: vec![item] };
        emit.push(EventKind::QuestionAsked {
            call,
            tool,
            question,
            requested: true,
            inferred: false,
        });
        RecordOutcome::InParts
    }

    fn tool_ends(&mut self, emit: &mut Emitter<'_>, payload: &Fields<'_>) -> RecordOutcome {
        let name = payload.text("tool_name").unwrap_or_default();
        let content_hash = payload.content_hash(&name, "tool_input");
        let open = self.open.get_mut(&content_hash).filter(|open| !open.is_empty());
        let Some(call) = open.map(|open| open.remove(0)) else {
            return RecordOutcome::left_out("hook/AfterTool of no call");
        };
        if name == "invoke_agent" {
            self.agents = self.agents.saturating_sub(1);
        }
        self.asking.retain(|asking| asking.call != call);
        let response = payload.fields("tool_response");
        let error = response.fields("error").string("message");
        let end = if error.is_some() { ToolEnd::Failed } else { ToolEnd::Completed };
        let output = error.or_else(|| response.string("llmContent"));
        emit.push(EventKind::ToolEnded {
            call,
            end,
            outcome: ToolOutcome { output, ..ToolOutcome::default() },
        });
        RecordOutcome::InParts
    }
}
