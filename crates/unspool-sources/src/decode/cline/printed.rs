//! What `cline --json` prints: every word as it came, the output of running commands, and the tokens
//! of each model call. No line names the session, or says what the user asked. While sub-agents run,
//! their lines stand between those of the session, and nothing tells them apart: the conversations of
//! the sub-agents have what is left out here.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind};
use unspool_model::part::{Body, Failure, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::cost_sum::CostSum;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::message::{emit_use, usage};
use super::result::{end_call, starts_agent};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PrintedDecoder {
    turns: u32,
    /// The number of the model call.
    steps: u32,
    /// The kinds of prose of the model call, in the order of their first word.
    blocks: Vec<String>,
    /// The calls that run, and those of them that are sub-agents.
    calls: BTreeSet<Arc<str>>,
    agents: BTreeSet<Arc<str>>,
    /// A sub-agent has begun: lines may be of any agent.
    is_mixed: bool,
    cost: CostSum,
}

impl Decoder for PrintedDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        emit.at = fields.time("ts");
        if self.turns > 0 {
            emit.turn = self.turn();
        }
        match fields.text("type").as_deref() {
            Some("hook_event") => self.hook(&mut emit, fields),
            Some("agent_event") => self.event(&mut emit, &fields.fields("event")),
            Some("run_result") => {
                let reason = match fields.text("finishReason").as_deref() {
                    Some("completed") => EndReason::Completed,
                    Some("aborted") => EndReason::Interrupted,
                    _ => {
                        let text = fields.string("text").unwrap_or_default();
                        let failure = Failure { text, ..Failure::default() };
                        emit.push(EventKind::Part(None, Body::Error(failure)));
                        EndReason::Failed(None)
                    }
                };
                emit.push(EventKind::TurnEnded(reason));
                RecordOutcome::InParts
            }
            Some("run_aborted") => {
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
                RecordOutcome::InParts
            }
            kind => RecordOutcome::left_out(kind.unwrap_or("record").to_owned()),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        (self.turns > 0).then(|| Name::Prompt(format!("printed-{}", self.turns).into()))
    }
}

impl PrintedDecoder {
    /// A prompt begins a run of the agent that no other agent started.
    fn hook(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let name = fields.text("hookEventName").unwrap_or_default();
        if name != "agent_start" || fields.is_text("parentAgentId") {
            return RecordOutcome::left_out(format!("hook/{name}"));
        }
        self.turns += 1;
        self.agents.clear();
        self.calls.clear();
        self.is_mixed = false;
        let names: Vec<Name> = self.turn().into_iter().collect();
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user: Vec::new() });
        RecordOutcome::InParts
    }

    fn event(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>) -> RecordOutcome {
        let kind = event.text("type").unwrap_or_default();
        let call: Option<Arc<str>> = event.text("toolCallId").map(|id| id.into());
        self.is_mixed = !self.agents.is_empty() && (self.is_mixed || kind == "iteration_start");
        if self.is_mixed && call.as_ref().is_none_or(|call| !self.calls.contains(call)) {
            return RecordOutcome::left_out("event while sub-agents run");
        }
        let step = Name::Message(format!("printed-{}", self.steps).into());
        match (&*kind, event.text("contentType").as_deref(), call) {
            ("iteration_start", _, _) => {
                self.steps += 1;
                self.blocks.clear();
                let step = Name::Message(format!("printed-{}", self.steps).into());
                emit.push(EventKind::StepStarted { step, model: None });
                RecordOutcome::Metadata
            }
            ("iteration_end", _, _) => {
                emit.push(EventKind::StepEnded { step, stop_reason: None });
                RecordOutcome::Metadata
            }
            ("usage", _, _) => {
                let usage = usage(event);
                emit.push(EventKind::UsageUpdated { step, usage });
                self.cost.report(emit, event.read("cost"), usage);
                RecordOutcome::Metadata
            }
            ("content_start", Some("tool"), Some(call)) => {
                let name = event.string("toolName").unwrap_or_default();
                self.calls.insert(call.clone());
                if starts_agent(&name) {
                    self.agents.insert(call.clone());
                }
                emit_use(emit, call, name, event);
                RecordOutcome::InParts
            }
            ("content_update", Some("tool"), Some(call)) => {
                let text = event.fields("update").string("chunk").unwrap_or_default();
                if text.is_empty() {
                    return RecordOutcome::Metadata;
                }
                emit.push(EventKind::ToolOutputDelta { call: CallRef::Id(call), text });
                RecordOutcome::InParts
            }
            ("content_end", Some("tool"), Some(call)) => {
                self.calls.remove(&call);
                self.agents.remove(&call);
                let tool = event.text("toolName").unwrap_or_default();
                end_call(emit, &call, &tool, event, "output", event.has("error"));
                RecordOutcome::InParts
            }
            ("content_start" | "content_end", Some(content), None) => {
                self.prose(emit, content, event, kind == "content_end")
            }
            ("notice", _, _) => {
                let code = event.string("noticeType").unwrap_or_default();
                let text = event.string("message").unwrap_or_default();
                emit.push(EventKind::Part(None, Body::Notice(Notice { code, text })));
                RecordOutcome::InParts
            }
            (kind, _, _) => RecordOutcome::left_out(kind.to_owned()),
        }
    }

    /// Every word is a `content_start`; `content_end` has the whole text.
    fn prose(
        &mut self,
        emit: &mut Emitter<'_>,
        content: &str,
        event: &Fields<'_>,
        ended: bool,
    ) -> RecordOutcome {
        let prose_kind = match content {
            "text" => ProseKind::Text,
            "reasoning" => ProseKind::Reasoning,
            other => return RecordOutcome::left_out(format!("content/{other}")),
        };
        let nth = self.blocks.iter().position(|held| held == content).unwrap_or_else(|| {
            self.blocks.push(content.to_owned());
            self.blocks.len() - 1
        });
        let step = format!("printed-{}", self.steps).into();
        let block = Some(Name::Block(step, u32::try_from(nth).unwrap_or(u32::MAX)));
        let text = event.string(content).unwrap_or_default();
        let redacted = event.flag("redacted");
        emit.push(if ended {
            let detail = ProseDetail { redacted, ..ProseDetail::default() };
            EventKind::ProseCompleted { prose_kind, block, text, detail }
        } else {
            EventKind::ProseDelta { prose_kind, block, text }
        });
        RecordOutcome::InParts
    }
}
