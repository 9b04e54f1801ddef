//! What is told only while it happens: deltas, output as it is printed, requests to a person,
//! retries, idleness.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_core::event::{Call, EndReason, Voice, What};
use unspool_core::session::{Title, TitleOrigin};

use super::super::{Emit, Fate, Fields};
use super::events::{EventsDecoder, Told};

/// What the live telling remembers of the step that it is in.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Live {
    /// What is being said: prose, with what the source calls its block, or a tool's input.
    open: Option<Open>,
    /// How many blocks of reasoning and of text have begun.
    begun: [u32; 2],
    /// The stream broke off and is asked for again.
    cut: bool,
    /// How much of each call's output has been told: it is repeated from its start each time.
    pub printed: BTreeMap<Arc<str>, usize>,
    /// The calls that requests ask about.
    pub requests: BTreeMap<String, Arc<str>>,
}

#[derive(PartialEq, Serialize, Deserialize)]
enum Open {
    Prose(Voice, String),
    Tool,
}

impl Live {
    /// A step begins.
    pub fn begin(&mut self) {
        (self.open, self.begun, self.cut) = (None, [0; 2], false);
    }

    /// The number of the block that prose goes to.
    fn nth(&mut self, voice: Voice, id: &str) -> u32 {
        let open = Open::Prose(voice, id.to_owned());
        let begun = match voice {
            Voice::Reasoning => &mut self.begun[0],
            Voice::Text => &mut self.begun[1],
        };
        if self.open.as_ref() != Some(&open) {
            *begun += 1;
            self.open = Some(open);
        }
        begun.saturating_sub(1)
    }
}

impl EventsDecoder {
    pub(super) fn live(&mut self, emit: &mut Emit<'_>, event: &Told<'_>) -> Fate {
        let data = &event.data;
        match &*event.kind {
            "assistant.message_delta" => self.grow(emit, Voice::Text, "messageId", data),
            "assistant.reasoning_delta" => self.grow(emit, Voice::Reasoning, "reasoningId", data),
            "assistant.tool_call_delta" => self.grow_input(emit, data),
            "tool.execution_partial_result" => self.print(emit, data),
            "assistant.usage" => self.usage(emit, data),
            "user_input.requested" | "elicitation.requested" | "exit_plan_mode.requested" => {
                self.request(emit, data)
            }
            "user_input.completed" | "elicitation.completed" | "exit_plan_mode.completed" => {
                self.reply(emit, data)
            }
            "assistant.turn_retry" => {
                // What was said before the break is said again, and the message replaces it when
                // it is whole. Growing on would put one behind the other.
                self.live.cut = true;
                let why = data.string("reason").unwrap_or_default().replace('_', " ");
                self.notice(emit, event, "retry", format!("Retrying: {why}"))
            }
            "session.warning" => {
                let text = data.string("message").unwrap_or_default();
                self.notice(emit, event, "informational", text)
            }
            "session.title_changed" => {
                if let Some(text) = data.string("title").filter(|title| !title.is_empty()) {
                    let origin = TitleOrigin::Generated;
                    emit.push(What::TitleTold(Title { text, origin }));
                }
                Fate::Metadata
            }
            "assistant.idle" | "session.idle" => {
                let aborted = data.flag("aborted");
                let reason = if aborted { EndReason::Interrupted } else { EndReason::Completed };
                emit.push(What::TurnEnded(reason));
                Fate::Metadata
            }
            // The message that comes with it, or before it, says the same.
            "assistant.message_start" | "assistant.reasoning" | "agent.interrupted" => {
                Fate::Metadata
            }
            // The part of the output that is new; the whole is told beside it.
            "tool.shell_output"
            | "assistant.streaming_delta"
            | "assistant.intent"
            | "pending_messages.modified"
            | "sandbox.decision"
            | "session.background_tasks_changed"
            | "session.info"
            | "session.managed_settings_resolved"
            | "session.mcp_servers_loaded"
            | "session.mcp_server_status_changed"
            | "session.skills_loaded"
            | "session.todos_changed"
            | "session.tools_updated"
            | "session.usage_info" => Fate::left_out(&*event.kind),
            _ => self.unknown(emit, event),
        }
    }

    fn grow(&mut self, emit: &mut Emit<'_>, voice: Voice, id: &str, data: &Fields<'_>) -> Fate {
        if self.live.cut {
            return Fate::left_out("delta after a retry");
        }
        let nth = self.live.nth(voice, &data.text(id).unwrap_or_default());
        let text = data.string("deltaContent").unwrap_or_default();
        emit.push(What::Grew { voice, block: self.step.block(voice, nth), text });
        Fate::InParts
    }

    fn grow_input(&mut self, emit: &mut Emit<'_>, data: &Fields<'_>) -> Fate {
        let Some(id) = data.text("toolCallId").filter(|_| !self.live.cut) else {
            return Fate::left_out("delta after a retry");
        };
        self.live.open = Some(Open::Tool);
        let name = data.string("toolName").unwrap_or_default();
        let text = data.string("inputDelta").unwrap_or_default();
        emit.push(What::ToolInputGrew { call: Call::Id(id.into()), name, text });
        Fate::InParts
    }

    /// Output so far. It is cut in the middle when it is long, and then nothing more is told
    /// until the result comes.
    fn print(&mut self, emit: &mut Emit<'_>, data: &Fields<'_>) -> Fate {
        let id: Arc<str> = data.text("toolCallId").unwrap_or_default().into();
        let output = data.string("partialOutput").unwrap_or_default();
        if !self.calls.contains_key(&id) {
            return Fate::left_out("output of no call");
        }
        let told = self.live.printed.entry(id.clone()).or_default();
        let Some(text) = output.get(*told..).filter(|text| !text.is_empty()) else {
            return Fate::Metadata;
        };
        let text = text.to_owned();
        *told = output.len();
        emit.push(What::ToolOutputGrew { call: Call::Id(id), text });
        Fate::InParts
    }
}
