//! A trajectory: `info`, then the messages of the run in order, then the name of the format. The
//! document is rewritten in place after each step. Messages never change, so their numbers name
//! what is made of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::sha256;
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Failure, Interjection, Notice, Text};
use unspool_model::price::ReportedCost;
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::calls::{OpenCalls, Resolution, TOOL};
use super::prompt::{task_of, words_after};
use super::reply::{RequestedCall, command_of, emit_reply, text_of, usage, with_reply_of};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TrajectoryDecoder {
    /// The number of the next message.
    index: u32,
    /// The template of the first prompt.
    template: String,
    model: Option<String>,
    turn: Option<Arc<str>>,
    calls: OpenCalls,
}

impl Decoder for TrajectoryDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        if fields.has("info") {
            return self.info(&mut emit, &fields.fields("info"));
        }
        let is_message = ["role", "output", "type", "object"].iter().any(|name| fields.has(name));
        if !is_message {
            return RecordOutcome::Metadata;
        }
        let extra = fields.fields("extra");
        emit.at = super::time(&extra);
        let outcome = self.message(&mut emit, fields, &extra);
        self.index += 1;
        outcome
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.turn.clone().map(Name::Prompt)
    }
}

impl TrajectoryDecoder {
    fn info(&mut self, emit: &mut Emitter<'_>, info: &Fields<'_>) -> RecordOutcome {
        let config = info.fields("config");
        self.template = config.fields("agent").string("instance_template").unwrap_or_default();
        self.model = config.fields("model").string("model_name");
        // Empty if the run began where it was started, which is not recorded.
        let project = config.fields("environment").string("cwd").filter(|path| !path.is_empty());
        let version = info.string("mini_version");
        let cost: Option<f64> = info.fields("model_stats").read("instance_cost");
        // Zero if the price of the model is not known.
        let cost = cost.filter(|usd| *usd > 0.0).map(ReportedCost::of_all);
        emit.push(EventKind::SessionUpdated { project, branch: None, version, cost });
        RecordOutcome::Metadata
    }

    fn message(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        extra: &Fields<'_>,
    ) -> RecordOutcome {
        let role = fields.text("role").unwrap_or_default();
        if let Some(kind) = extra.string("interrupt_type") {
            return self.interrupt(emit, fields, extra, &kind);
        }
        if extra.has("raw_output") || extra.has("returncode") {
            let id = fields.text("tool_call_id").or_else(|| fields.text("call_id"));
            self.calls.end(emit, id.as_deref(), extra, text_of(fields));
            return RecordOutcome::InParts;
        }
        match &*role {
            "system" => {
                let content = Json::string(&text_of(fields));
                let (kind, sha256) =
                    ("system-policy".to_owned(), sha256(content.text().as_bytes()));
                emit.push(EventKind::SnapshotTaken { kind, sha256, content });
                RecordOutcome::Metadata
            }
            "user" if extra.has("actions") => {
                self.calls.resolve(emit, &Resolution::Unknown);
                self.run_actions(emit, extra, &[], Some("run by the user".to_owned()));
                RecordOutcome::InParts
            }
            "user" => self.prompt(emit, &text_of(fields)),
            "exit" => self.exit(emit, fields, extra),
            "assistant" => self.step(emit, fields, &extra.fields("response"), extra),
            _ if fields.has("output") && fields.is("object", "response") => {
                self.step(emit, fields, fields, extra)
            }
            _ => {
                let kind = if role.is_empty() { "message" } else { &*role }.to_owned();
                let data = Data { kind, payload: fields.whole() };
                emit.push(EventKind::Part(Some(self.name()), Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    fn name(&self) -> Name {
        Name::Record(format!("message-{}", self.index).into())
    }

    fn start_turn(&mut self, emit: &mut Emitter<'_>, text: String) {
        let id: Arc<str> = format!("message-{}", self.index).into();
        self.turn = Some(id.clone());
        let user = vec![Body::Text(Text { text, ..Text::default() })];
        let (names, trigger) = (vec![Name::Prompt(id)], Trigger::User);
        emit.push(EventKind::TurnStarted { names, trigger, user });
    }

    /// The first prompt is the task in its template; any other is one without a mark.
    fn prompt(&mut self, emit: &mut Emitter<'_>, text: &str) -> RecordOutcome {
        if self.turn.is_some() {
            let interjection = Interjection { text: text.to_owned() };
            emit.push(EventKind::Part(Some(self.name()), Body::Interjection(interjection)));
            return RecordOutcome::InParts;
        }
        let task = task_of(&self.template, text);
        self.start_turn(emit, task);
        let content = Json::string(text);
        let (kind, sha256) = ("prompt".to_owned(), sha256(content.text().as_bytes()));
        emit.push(EventKind::SnapshotTaken { kind, sha256, content });
        RecordOutcome::InParts
    }

    /// A model call. `reply` has its pieces, `response` its tokens.
    fn step(
        &mut self,
        emit: &mut Emitter<'_>,
        reply: &Fields<'_>,
        response: &Fields<'_>,
        extra: &Fields<'_>,
    ) -> RecordOutcome {
        self.calls.resolve(emit, &Resolution::Unknown);
        let step: Arc<str> = format!("message-{}", self.index).into();
        let name = Name::Message(step.clone());
        let model = response.string("model").or_else(|| self.model.clone());
        emit.push(EventKind::StepStarted { step: name.clone(), model });
        let calls = emit_reply(emit, &step, reply);
        // What the program ran; without it, what the model asked for.
        if extra.list("actions").next().is_some() {
            self.run_actions(emit, extra, &calls, None);
        } else {
            self.request_calls(emit, &calls);
        }
        if response.has("usage") {
            let usage = usage(&response.fields("usage"));
            emit.push(EventKind::UsageUpdated { step: name.clone(), usage });
        }
        let choice = response.list("choices").next().unwrap_or_default();
        let stop_reason = choice.string("finish_reason");
        emit.push(EventKind::StepEnded { step: name, stop_reason });
        RecordOutcome::InParts
    }

    fn run_actions(
        &mut self,
        emit: &mut Emitter<'_>,
        extra: &Fields<'_>,
        requested: &[RequestedCall],
        title: Option<String>,
    ) {
        for (nth, action) in extra.list("actions").enumerate() {
            let given: Option<Arc<str>> = action.text("tool_call_id").map(|id| id.as_ref().into());
            let asked = requested.iter().find(|call| call.id.is_some() && call.id == given);
            let command = action.string("command").unwrap_or_default();
            let input = asked.and_then(|call| Json::parse(&call.arguments));
            let written = || Json::checked(&serde_json::json!({ "command": command }).to_string());
            let input = input.unwrap_or_else(written);
            let id = given.unwrap_or_else(|| format!("{}:{nth}", self.index).into());
            let name = asked.map_or(TOOL, |call| &call.name);
            self.calls.start(emit, id, name, Some(input), &command, title.clone());
        }
    }

    fn request_calls(&mut self, emit: &mut Emitter<'_>, requested: &[RequestedCall]) {
        for (nth, call) in requested.iter().enumerate() {
            let command = command_of(&call.arguments).unwrap_or_default();
            let id = call.id.clone().unwrap_or_else(|| format!("{}:{nth}", self.index).into());
            let input = Json::parse(&call.arguments);
            let input = input.unwrap_or_else(|| Json::string(&call.arguments));
            self.calls.start(emit, id, &call.name, Some(input), &command, None);
        }
    }

    /// A message of the program or the user that interrupts the run.
    fn interrupt(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        extra: &Fields<'_>,
        kind: &str,
    ) -> RecordOutcome {
        let text = text_of(fields);
        match kind {
            "UserRejection" => {
                let words = words_after(&text, "with the following message: ").to_owned();
                self.calls.resolve(emit, &Resolution::Refused(words));
            }
            "UserInterruption" => {
                self.calls.resolve(emit, &Resolution::Interrupted);
                let body = match text.strip_prefix("Interrupted by user: ") {
                    Some(words) => Body::Interjection(Interjection { text: words.to_owned() }),
                    None => Body::Notice(Notice { code: "interrupted".to_owned(), text }),
                };
                emit.push(EventKind::Part(Some(self.name()), body));
            }
            "UserNewTask" => {
                self.calls.resolve(emit, &Resolution::Submitted(None));
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                let task = words_after(&text, "The user added a new task: ").to_owned();
                self.start_turn(emit, task);
            }
            _ => {
                // A reply without a valid call is not among the messages, only in this one.
                let response = extra.fields("response");
                let mut is_in_call = false;
                if response.is_object() {
                    with_reply_of(&response, |reply| {
                        self.step(emit, reply, &response, &Fields::default())
                    });
                    is_in_call = self.calls.reject(emit, &text);
                } else {
                    self.calls.resolve(emit, &Resolution::Unknown);
                }
                if !is_in_call {
                    let failure = Failure { code: Some(kind.to_owned()), status: None, text };
                    emit.push(EventKind::Part(Some(self.name()), Body::Error(failure)));
                }
            }
        }
        RecordOutcome::InParts
    }

    /// The end of the run.
    fn exit(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        extra: &Fields<'_>,
    ) -> RecordOutcome {
        let status = extra.string("exit_status").unwrap_or_default();
        if status == "Submitted" {
            let submission = extra.string("submission").or_else(|| fields.string("content"));
            self.calls.resolve(emit, &Resolution::Submitted(submission));
            emit.push(EventKind::TurnEnded(EndReason::Completed));
        } else {
            self.calls.resolve(emit, &Resolution::Unknown);
            let text = extra.string("exception_str").or_else(|| Some(text_of(fields)));
            let text = text.filter(|text| !text.is_empty()).unwrap_or_else(|| status.clone());
            let failure = Failure { code: Some(status), status: None, text };
            emit.push(EventKind::Part(Some(self.name()), Body::Error(failure)));
            emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
        }
        emit.push(EventKind::SessionEnded);
        RecordOutcome::InParts
    }
}
