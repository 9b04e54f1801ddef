//! Claude Code's hook payloads. Hooks run ahead of the log and hold what it omits: permission
//! requests, tool durations, and text while it is written. They are merged with the log by prompt
//! id and call id, or by content in versions that omit ids.

mod dialect;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EndReason, Event, EventKind, ProseKind, ToolEnd, ToolOutcome,
};
use unspool_model::id::SessionId;
use unspool_model::part::{Answer, Body, Decision, Interjection, Question, Text};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Parent, Trigger};
use unspool_model::tools::AsksUser;

use super::super::injected::separate_text;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::context::task_report;
use super::log::interjection_hash;
use super::marks::{Mark, mark};
use super::message::{called, request};
use super::result::{answers, report_agent, response_text};
pub(in crate::decode) use dialect::HookDialect;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::decode) struct HooksDecoder {
    #[serde(default, skip_serializing_if = "HookDialect::is_default")]
    dialect: HookDialect,
    prompt: Option<Arc<str>>,
    begun: bool,
    /// How often each prompt text was seen, by hash.
    #[serde(rename = "alike")]
    prompts: PromptNames,
    interjections: BTreeMap<u64, u32>,
    /// The open calls of this turn, by hash of tool and input, oldest first.
    open: BTreeMap<u64, Vec<CallRef>>,
    /// The number of calls of this turn, by hash of tool and input.
    counts: BTreeMap<u64, u32>,
    /// Calls with a permission request.
    #[serde(rename = "asked")]
    permission_requested: Vec<CallRef>,
    /// The parent of this sub-agent was reported.
    named_parent: bool,
    /// The open calls of this turn with their tools, in order. Only for an agent that asks with
    /// notifications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open_tools: Vec<(CallRef, String)>,
    /// A prompt has come, and its turn has not ended. Only for an agent that does not report all
    /// prompts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_in_turn: bool,
}

impl Decoder for HooksDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        // `unspool hook` wraps the payload.
        let (inner, at) = (fields.fields("payload"), fields.time("at"));
        let fields = if fields.is("agent", self.dialect.agent()) { &inner } else { fields };
        let event = fields.string("hook_event_name").unwrap_or_default();
        if self.dialect.hides_prompts() && !self.is_in_reported_turn(&event) {
            return RecordOutcome::left_out(format!("hook/{event} without its prompt"));
        }
        let mut emit = Emitter::new(Feed::Hooks, record, None, out);
        emit.at = at.or_else(|| fields.time("timestamp"));
        if !self.named_parent && super::is_inside_agent(fields, &event) {
            self.named_parent = true;
            self.report_parent(&mut emit, fields);
        }
        let prompt = self.dialect.prompt_id(fields, &event);
        if prompt != self.prompt && event != "UserPromptSubmit" && event.contains("Tool") {
            self.turn(prompt.clone());
        }
        emit.turn = prompt.clone().map(|id| self.dialect.prompt_name(id));
        match &*event {
            "SessionStart" => {
                let project = fields.string("cwd");
                let (branch, version, cost) = (None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                if fields.is("source", "resume") {
                    emit.push(EventKind::SessionResumed);
                }
                RecordOutcome::Metadata
            }
            "SessionEnd" => {
                // After `/clear` the program continues in another session.
                emit.push(EventKind::SessionEnded);
                RecordOutcome::Metadata
            }
            "UserPromptSubmit" => self.prompt(&mut emit, fields, prompt),
            "PreToolUse" => self.tool_starts(&mut emit, fields),
            "PostToolUse" => {
                self.tool_ends(&mut emit, fields, ToolEnd::Completed);
                RecordOutcome::InParts
            }
            "PostToolUseFailure" => {
                let interrupted = fields.flag("is_interrupt");
                let end = if interrupted { ToolEnd::Interrupted } else { ToolEnd::Failed };
                self.tool_ends(&mut emit, fields, end);
                RecordOutcome::InParts
            }
            "PermissionRequest" => self.permission(&mut emit, fields),
            "Notification"
                if self.dialect.asks_by_notification()
                    && fields.is("notification_type", "permission_prompt") =>
            {
                self.permission_notification(&mut emit, fields)
            }
            super::ANSWER_EVENT => self.answered(&mut emit, fields),
            "MessageDisplay" => self.text(&mut emit, fields),
            "Stop" => {
                // A refused call has no other end.
                self.open_tools.clear();
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                RecordOutcome::Metadata
            }
            "StopFailure" => {
                emit.push(EventKind::TurnEnded(EndReason::Failed(fields.string("error"))));
                RecordOutcome::Metadata
            }
            "SubagentStop" => self.agent_stops(&mut emit, fields),
            _ => RecordOutcome::left_out(format!("hook/{event}")),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl HooksDecoder {
    pub fn of(dialect: HookDialect) -> HooksDecoder {
        HooksDecoder { dialect, ..HooksDecoder::default() }
    }

    /// False for an event of a turn whose prompt was not reported: nothing else in the event says
    /// which turn that is.
    fn is_in_reported_turn(&mut self, event: &str) -> bool {
        let was_in_turn = self.is_in_turn;
        match event {
            "UserPromptSubmit" => self.is_in_turn = true,
            "SessionStart" | "Stop" => self.is_in_turn = false,
            _ => {}
        }
        was_in_turn || matches!(event, "UserPromptSubmit" | "SessionStart" | "SessionEnd")
    }

    /// Reports the parent of a sub-agent. For nested agents the payload names the outermost
    /// session, as the log does.
    fn report_parent(&self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        if let Some(parent) = fields.text("session_id") {
            let session = SessionId::of(self.dialect.agent(), &parent);
            let kind = fields.string("agent_type").filter(|kind| !kind.is_empty());
            emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind }));
        }
    }

    fn turn(&mut self, prompt: Option<Arc<str>>) {
        self.prompt = prompt;
        self.begun = true;
        self.interjections.clear();
        self.open.clear();
        self.counts.clear();
        self.permission_requested.clear();
        self.open_tools.clear();
    }

    fn prompt(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        prompt: Option<Arc<str>>,
    ) -> RecordOutcome {
        let text = fields.string("prompt").unwrap_or_default();
        // Qwen Code reports every request, also one that only carries the results of calls.
        if self.dialect == HookDialect::QwenCode && text.is_empty() {
            return RecordOutcome::left_out("hook/UserPromptSubmit without a prompt");
        }
        if self.begun && prompt.is_some() && prompt == self.prompt {
            // The same prompt id again: typed while the turn ran.
            let words = interjection_hash(&text);
            let count = self.interjections.entry(words).or_default();
            *count += 1;
            let name = Name::ByContent(words, *count - 1);
            emit.push(EventKind::Part(Some(name), Body::Interjection(Interjection { text })));
            return RecordOutcome::InParts;
        }
        self.turn(prompt.clone());
        let words = |text: String| vec![Body::Text(Text { text, ..Text::default() })];
        let (trigger, user) = match mark(&text) {
            Mark::TaskNotification(report) => (Trigger::Agent, task_report(report)),
            Mark::Command(command) => (Trigger::Command, words(command)),
            Mark::Shell(command) => (Trigger::Command, words(format!("! {command}"))),
            Mark::None if text.starts_with('/') => (Trigger::Command, words(text)),
            Mark::Interruption
            | Mark::CommandOutput(_)
            | Mark::ShellOutput { .. }
            | Mark::HookFeedback(_)
            | Mark::Caveat
            | Mark::None => (Trigger::User, separate_text(self.dialect.agent(), text)),
        };
        let alike = self.prompts.next_of(&user);
        let named = prompt.map(|id| self.dialect.prompt_name(id));
        let names = named.into_iter().chain(alike).collect();
        emit.turn = None;
        emit.push(EventKind::TurnStarted { names, trigger, user });
        RecordOutcome::InParts
    }

    /// The call of a payload. Versions before 2.1.20 omit its id.
    fn call(&mut self, fields: &Fields<'_>, hash: u64) -> CallRef {
        match fields.text(self.dialect.call_id()) {
            Some(id) => CallRef::Id(id.into()),
            None => {
                let count = self.counts.entry(hash).or_default();
                *count += 1;
                CallRef::ByContent(hash, *count - 1)
            }
        }
    }

    fn tool_starts(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let tool = fields.string("tool_name").unwrap_or_default();
        let hash = fields.content_hash(&tool, "tool_input");
        let call = self.call(fields, hash);
        self.open.entry(hash).or_default().push(call.clone());
        if self.dialect.asks_by_notification() {
            self.open_tools.push((call.clone(), tool.clone()));
        }
        called(emit, call.clone(), &tool, fields.json("tool_input"), hash, false);
        if let CallRef::Id(id) = &call
            && fields.has("tool_input")
        {
            self.dialect.started(emit, id, &tool, fields);
        }
        RecordOutcome::InParts
    }

    fn tool_ends(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, end: ToolEnd) {
        let tool = fields.string("tool_name").unwrap_or_default();
        let hash = fields.content_hash(&tool, "tool_input");
        let call = match fields.text(self.dialect.call_id()) {
            Some(id) => {
                let call = CallRef::Id(id.into());
                // No permission request can follow.
                if let Some(open) = self.open.get_mut(&hash) {
                    open.retain(|held| *held != call);
                }
                call
            }
            None => match self.open.get_mut(&hash).filter(|open| !open.is_empty()) {
                Some(open) => open.remove(0),
                None => self.call(fields, hash),
            },
        };
        self.open_tools.retain(|(held, _)| *held != call);
        let kept = fields.fields("tool_response");
        if let CallRef::Id(id) = &call
            && kept.is_object()
        {
            report_agent(emit, id, &tool, &kept);
            let choices = answers(&kept);
            if !choices.is_empty() {
                let text: Vec<&str> = choices.iter().map(|(_, text)| text.as_str()).collect();
                let (decision, text) = (Decision::Answered, text.join(" · "));
                let answer = Answer { decision, text, choices, observed: true, by: None };
                emit.push(EventKind::QuestionAnswered { call: call.clone(), answer });
            }
        }
        let output = match end {
            ToolEnd::Completed => response_text(fields),
            ToolEnd::Failed | ToolEnd::Denied | ToolEnd::Interrupted | ToolEnd::Rejected => {
                fields.string("error")
            }
        };
        let result = fields.json("tool_response");
        let outcome = ToolOutcome {
            output,
            result,
            exit_code: None,
            duration_ms: fields.number("duration_ms"),
        };
        emit.push(EventKind::ToolEnded { call, end, outcome });
    }

    /// A permission request names no call: take the oldest open call with this tool and input that
    /// has no request yet.
    fn permission(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let tool = fields.string("tool_name").unwrap_or_default();
        let hash = fields.content_hash(&tool, "tool_input");
        let open = self.open.get(&hash).map(Vec::as_slice).unwrap_or_default();
        let call = match open.iter().find(|call| !self.permission_requested.contains(call)).cloned()
        {
            Some(call) => call,
            None => self.call(fields, hash),
        };
        self.permission_requested.push(call.clone());
        let question = request(None, &tool, &fields.fields("tool_input"));
        push_request(emit, call, tool, question);
        RecordOutcome::InParts
    }

    /// "needs permission to execute 1 tool(s)": the number of calls, and not which. The hook of a
    /// call runs before the agent asks, so it is about the latest calls that need a permission.
    fn permission_notification(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let text = fields.text("message").unwrap_or_default();
        let count = text.split_whitespace().find_map(|word| word.parse::<usize>().ok());
        let is_waiting = |(call, tool): &&(CallRef, String)| {
            let asks = matches!(AsksUser::of(tool), AsksUser::Always | AsksUser::Usually);
            asks && !self.permission_requested.contains(call)
        };
        let latest = self.open_tools.iter().rev().filter(is_waiting).take(count.unwrap_or(1));
        let mut asked: Vec<(CallRef, String)> = latest.cloned().collect();
        asked.reverse();
        if asked.is_empty() {
            return RecordOutcome::left_out("hook/Notification");
        }
        for (call, tool) in asked {
            self.permission_requested.push(call.clone());
            let question = request(None, &tool, &Fields::default());
            push_request(emit, call, tool, question);
        }
        RecordOutcome::InParts
    }

    /// An answer that was given through `unspool hook --answer`. No other source says who gave it.
    fn answered(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let tool = fields.string("tool_name").unwrap_or_default();
        let hash = fields.content_hash(&tool, "tool_input");
        let open = self.open.get(&hash).map(Vec::as_slice).unwrap_or_default();
        let asked = open.iter().find(|call| self.permission_requested.contains(call));
        let call = match (fields.text(self.dialect.call_id()), asked) {
            (Some(id), _) => CallRef::Id(id.into()),
            (None, Some(call)) => call.clone(),
            (None, None) => CallRef::ByContent(
                hash,
                self.counts.get(&hash).map_or(0, |count| count.saturating_sub(1)),
            ),
        };
        let by = fields.string("by");
        let choices = answers(fields);
        let (decision, text) = match fields.text("decision").as_deref() {
            Some("allow") => (Decision::Allowed, "allowed once".to_owned()),
            Some("answer") => {
                let text: Vec<&str> = choices.iter().map(|(_, text)| text.as_str()).collect();
                (Decision::Answered, text.join(" · "))
            }
            _ => (Decision::Denied, fields.string("message").unwrap_or_default()),
        };
        let answer = Answer { decision, text, choices, observed: true, by };
        emit.push(EventKind::QuestionAnswered { call, answer });
        RecordOutcome::InParts
    }

    /// Displayed text, under an id that occurs in no other feed.
    fn text(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let Some(id) = fields.text("message_id") else {
            return RecordOutcome::left_out("hook/MessageDisplay");
        };
        let block = Name::Record(id.into());
        let text = fields.string("delta").unwrap_or_default();
        let (prose_kind, named) = (ProseKind::Text, Some(block.clone()));
        emit.push(EventKind::ProseDelta { prose_kind, block: named, text });
        if fields.flag("final") {
            emit.push(EventKind::BlockEnded { block });
        }
        RecordOutcome::InParts
    }

    fn agent_stops(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        // Compaction runs as an agent without a type and without a transcript.
        if fields.text("agent_type").is_none_or(|kind| kind.is_empty()) {
            return RecordOutcome::left_out("hook/SubagentStop of a compaction");
        }
        let agent = AgentRef { call: None, id: self.dialect.agent_id(fields) };
        emit.push(EventKind::AgentEnded { agent, end: AgentEnd::Completed });
        RecordOutcome::InParts
    }
}

/// The agent asks whether a call may run.
fn push_request(emit: &mut Emitter<'_>, call: CallRef, tool: String, question: Question) {
    let (requested, inferred) = (true, false);
    emit.push(EventKind::QuestionAsked { call, tool, question, requested, inferred });
}
