//! Frames that an application pushes while its agent works: `message.start`, `message.delta`,
//! `message.tool_call`, `message.tool_result`, `message.end`, each with a `seq` (`docs/frames.md`).
//! The order of the frames is the order of the parts (R-000-12, R-000-13).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use unspool_model::event::{
    CallRef, EndReason, Event, EventKind, ProseDetail, ProseKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Text, ToolState};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::thoughtflow::{
    call_answer, call_end, call_question, call_usage, document_agents, document_body, emit_agents,
};
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, RecordOwner};
use super::frame_streams::{FrameStreams, Reply};
use super::row;

const TYPES: [&str; 6] = [
    "channel.start",
    "message.start",
    "message.delta",
    "message.tool_call",
    "message.tool_result",
    "message.end",
];
const MESSAGE_FIELDS: [&str; 2] = ["message", "message_id"];
const CALL_FIELDS: [&str; 3] = ["tool_call_id", "call_id", "id"];

pub(super) fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let kind = fields.text("type")?;
    fields.number("seq").filter(|_| TYPES.contains(&&*kind))?;
    let session =
        row::any_text(fields, &row::SESSION_FIELDS).or_else(|| row::any_text(fields, &["channel"]));
    Some(session.map_or(RecordOwner::Format, RecordOwner::Session))
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FramesDecoder {
    /// The last `seq` of the channel.
    seq: u64,
    /// The name of each message: its first id.
    messages: BTreeMap<String, String>,
    turns: BTreeSet<String>,
    /// The turn of the last user message.
    turn: Option<String>,
    /// The user's message that is being sent.
    user: Option<UserMessage>,
    /// The reply that is being sent.
    reply: Reply,
    #[serde(default)]
    streams: FrameStreams,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserMessage {
    turn: String,
    bodies: Vec<(String, Body)>,
}

impl Decoder for FramesDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        emit.at = row::time(fields);
        let kind = fields.text("type").unwrap_or_default();
        let seq = fields.number("seq").unwrap_or(self.seq + 1);
        if seq <= self.seq && kind != "channel.start" {
            return RecordOutcome::left_out("repeated frame");
        }
        self.seq = seq;
        let reply = self.reply_of(fields).filter(|_| kind != "message.start");
        if reply.as_deref().is_some_and(|name| self.streams.is_stale(name)) {
            return RecordOutcome::left_out("frame of an earlier stream");
        }
        if let Some(name) = &reply {
            self.streams.go_on(name, &mut self.reply);
        }
        emit.generation = Some(self.streams.generation());
        match &*kind {
            "channel.start" => {
                self.streams.start_channel();
                RecordOutcome::Metadata
            }
            "message.start" => self.start(&mut emit, fields),
            "message.delta" if self.user.is_some() && reply.is_none() => self.add_to_user(fields),
            "message.delta" => self.delta(&mut emit, fields),
            "message.tool_call" => self.call(&mut emit, fields),
            "message.tool_result" => self.result(&mut emit, fields),
            "message.end" => self.end(&mut emit, fields),
            _ => {
                self.begin_part(&mut emit, None);
                let data = Data { kind: kind.into_owned(), payload: fields.whole() };
                let name = Name::Record(format!("{} {seq}", self.reply.name).into());
                emit.push(EventKind::Part(Some(name), Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    /// R-000-13: a gap is reported.
    fn check(&self, fields: &Fields<'_>) -> Result<(), String> {
        let starts = fields.is("type", "channel.start") || self.seq == 0;
        match fields.number("seq") {
            Some(seq) if !starts && seq > self.seq + 1 => {
                Err(format!("seq: {seq} follows {}, so frames are missing", self.seq))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl FramesDecoder {
    /// The reply that a frame names.
    fn reply_of(&self, fields: &Fields<'_>) -> Option<String> {
        let id = row::any_text(fields, &MESSAGE_FIELDS)?;
        self.messages.get(&*id).filter(|name| self.streams.is_reply(name)).cloned()
    }

    fn start(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.close_user(emit);
        let id = row::any_text(fields, &MESSAGE_FIELDS).map(|id| id.into_owned());
        let id = id.unwrap_or_else(|| format!("frame {}", self.seq));
        let old = fields.text("replaces").unwrap_or_default();
        let held = self.messages.get(&id).or_else(|| self.messages.get(&*old)).cloned();
        let name = held.clone().unwrap_or_else(|| id.clone());
        self.messages.insert(id, name.clone());
        let turn = fields.string("turn");
        if fields.is("role", "user") {
            let turn = turn.unwrap_or(name);
            self.turn = Some(turn.clone());
            self.user = Some(UserMessage { turn, bodies: Vec::new() });
            return RecordOutcome::Metadata;
        }
        let again = held.map(|_| BTreeMap::new());
        let turn = turn.or_else(|| self.turn.clone());
        let reply = Reply { name, turn, again, ..Reply::default() };
        self.streams.start_reply(reply, &mut self.reply);
        emit.generation = Some(self.streams.generation());
        self.set_turn(emit);
        if let Some(turn) = self.reply.turn.clone()
            && self.turns.insert(turn.clone())
        {
            let names = vec![Name::Prompt(turn.as_str().into())];
            let (trigger, user) = (Trigger::Continuation, Vec::new());
            emit.push(EventKind::TurnStarted { names, trigger, user });
        }
        let step = Name::Message(self.reply.name.as_str().into());
        emit.push(EventKind::StepStarted { step, model: fields.string("model") });
        RecordOutcome::Metadata
    }

    /// The turn of the reply; without one, what comes before the first prompt.
    fn set_turn(&self, emit: &mut Emitter<'_>) {
        let name = self.reply.turn.as_deref().map(|turn| Name::Prompt(turn.into()));
        emit.turn = Some(name.unwrap_or(Name::Preamble));
    }

    fn add_to_user(&mut self, fields: &Fields<'_>) -> RecordOutcome {
        let Some(user) = &mut self.user else { return RecordOutcome::Metadata };
        let part = fields.string("part").unwrap_or_default();
        let text = fields.string("text").unwrap_or_default();
        match user.bodies.last_mut() {
            Some((id, Body::Text(held))) if *id == part && !fields.has("data") => {
                held.text += &text;
            }
            Some(_) | None => {
                let body = match fields.has("data") {
                    true => whole_part(fields),
                    false => Body::Text(Text { text, ..Text::default() }),
                };
                user.bodies.push((part, body));
            }
        }
        RecordOutcome::InParts
    }

    /// Starts the turn of the user's message, which is complete.
    fn close_user(&mut self, emit: &mut Emitter<'_>) {
        let Some(UserMessage { turn, bodies }) = self.user.take() else { return };
        let names = vec![Name::Prompt(turn.as_str().into())];
        let user = bodies.into_iter().map(|(_, body)| body).collect();
        emit.turn = Some(Name::Prompt(turn.as_str().into()));
        self.turns.insert(turn);
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
    }

    fn block(&self, part: &str) -> Name {
        Name::Block(format!("{} {part}", self.reply.name).into(), 0)
    }

    /// Ends the text that another part follows.
    fn begin_part(&mut self, emit: &mut Emitter<'_>, part: Option<String>) {
        self.close_user(emit);
        self.set_turn(emit);
        if self.reply.open != part {
            let open = std::mem::replace(&mut self.reply.open, part);
            if let Some(open) = open {
                emit.push(EventKind::BlockEnded { block: self.block(&open) });
            }
        }
    }

    fn delta(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let part = fields.string("part").filter(|part| !part.is_empty());
        let text = fields.string("text").unwrap_or_default();
        let prose_kind = match fields.text("kind").as_deref() {
            Some("text") => ProseKind::Text,
            // C-01: all names of it are read.
            Some("thinking" | "reasoning" | "think" | "thought") => ProseKind::Reasoning,
            Some(kind @ ("tool-input" | "tool-output")) => {
                self.set_turn(emit);
                return self.grow_call(emit, fields, kind, text);
            }
            Some(_) | None => {
                self.begin_part(emit, None);
                let data = fields.fields("data");
                if let Some((call, agents)) = document_agents(&data) {
                    emit_agents(emit, &call.into(), agents);
                } else {
                    let name = part.unwrap_or_else(|| self.seq.to_string());
                    let name = Name::Record(format!("{} {name}", self.reply.name).into());
                    emit.push(EventKind::Part(Some(name), whole_part(fields)));
                }
                return RecordOutcome::InParts;
            }
        };
        self.begin_part(emit, part.clone());
        let block = part.as_deref().map(|part| self.block(part));
        match (&mut self.reply.again, part) {
            (Some(texts), Some(part)) => {
                let whole = texts.entry(part).or_default();
                whole.push_str(&text);
                let (text, detail) = (whole.clone(), ProseDetail::default());
                emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
            }
            (_, _) => emit.push(EventKind::ProseDelta { prose_kind, block, text }),
        }
        RecordOutcome::InParts
    }

    /// The call of a frame: by its id, or by the part that an earlier frame gave it.
    fn call_of(&mut self, fields: &Fields<'_>) -> CallRef {
        let part = fields.string("part").unwrap_or_default();
        let id = row::any_text(fields, &CALL_FIELDS).map(|id| id.into_owned());
        let id = id.or_else(|| self.reply.calls.get(&part).cloned());
        let id = id.unwrap_or_else(|| format!("{} {part}", self.reply.name));
        self.reply.calls.insert(part, id.clone());
        CallRef::Id(id.into())
    }

    fn grow_call(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        kind: &str,
        text: String,
    ) -> RecordOutcome {
        let call = self.call_of(fields);
        // A call that is sent again has its input and output already.
        if self.reply.again.is_none() {
            emit.push(match kind {
                "tool-input" => EventKind::ToolInputDelta { call, name: String::new(), text },
                _ => EventKind::ToolOutputDelta { call, text },
            });
        }
        RecordOutcome::InParts
    }

    fn call(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.begin_part(emit, None);
        let call = self.call_of(fields);
        let name = fields.string("name").unwrap_or_default();
        let input = fields.raw("input").map(Json::checked);
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: call.clone(),
            parent_call_id: fields.string("parent_call_id"),
            content_hash: fields.content_hash(&name, "input"),
            name: name.clone(),
            provider_executed: fields.flag("provider_executed"),
            title: fields.string("title"),
            running: !fields.is("state", "pending"),
            input,
        })));
        for earlier in fields.list("earlier") {
            let question = call_question(&earlier.fields("question"));
            let Some((question, answer)) = question.zip(call_answer(&earlier.fields("answer")))
            else {
                continue;
            };
            let (asked, tool) = (call.clone(), name.clone());
            emit.push(EventKind::QuestionAsked {
                call: asked,
                tool,
                question,
                requested: true,
                inferred: false,
            });
            emit.push(EventKind::QuestionAnswered { call: call.clone(), answer });
        }
        if let Some(question) = call_question(&fields.fields("question")) {
            let (call, tool) = (call.clone(), name);
            emit.push(EventKind::QuestionAsked {
                call,
                tool,
                question,
                requested: true,
                inferred: false,
            });
        }
        if let Some(answer) = call_answer(&fields.fields("answer")) {
            emit.push(EventKind::QuestionAnswered { call, answer });
        }
        RecordOutcome::InParts
    }

    fn result(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.begin_part(emit, None);
        let call = self.call_of(fields);
        let state = fields.text("state").and_then(|state| ToolState::of_name(&state));
        let failed = fields.flag("is_error") || fields.raw("error").is_some();
        let usual = if failed { ToolEnd::Failed } else { ToolEnd::Completed };
        let end = state.and_then(call_end).unwrap_or(usual);
        let text = ["output", "error", "content"]
            .into_iter()
            .find_map(|name| fields.string(name).or_else(|| fields.raw(name).map(str::to_owned)));
        let outcome = ToolOutcome {
            output: text,
            result: fields.raw("result").map(Json::checked),
            exit_code: fields.read("exit_code"),
            duration_ms: fields.number("duration_ms"),
        };
        emit.push(EventKind::ToolEnded { call, end, outcome });
        RecordOutcome::InParts
    }

    fn end(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        if self.user.is_some() {
            self.close_user(emit);
            return RecordOutcome::Metadata;
        }
        self.begin_part(emit, None);
        let step = Name::Message(self.reply.name.as_str().into());
        if let Some((usage, _)) = call_usage(&fields.fields("usage")) {
            emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
        }
        emit.push(EventKind::StepEnded { step, stop_reason: fields.string("stop_reason") });
        let error = fields.string("error");
        let reason = match fields.text("state").as_deref() {
            Some("failed" | "error") => EndReason::Failed(error),
            Some("interrupted" | "aborted" | "cancelled" | "canceled") => EndReason::Interrupted,
            // It ended for the sender only: nobody saw an end.
            Some("unknown") => return RecordOutcome::Metadata,
            Some(_) | None if error.is_some() => EndReason::Failed(error),
            Some(_) | None => EndReason::Completed,
        };
        emit.push(EventKind::TurnEnded(reason));
        RecordOutcome::Metadata
    }
}

/// A part that is sent as a whole: one of our kinds, or data.
fn whole_part(fields: &Fields<'_>) -> Body {
    let data = fields.fields("data");
    document_body(&data).unwrap_or_else(|| {
        Body::Data(Data {
            kind: fields.string("kind").unwrap_or_else(|| "frame".to_owned()),
            payload: fields.json("data").unwrap_or_else(|| fields.whole()),
        })
    })
}
