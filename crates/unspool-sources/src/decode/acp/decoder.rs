//! Decodes a capture message by message: what the client sent, what the agent sent, and the
//! replies of both. The two sides number their requests separately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind, ProseKind, ToolEnd};
use unspool_model::part::{Body, Failure, Interjection, Notice, Text};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::adapter::Adapter;
use super::call::Call;
use super::compaction::LatestCompaction;
use super::question::PendingQuestion;
use super::update::attached;

/// Below this number of milliseconds a time counts from the start of the capture.
const FIRST_EPOCH_MS: u64 = 1_000_000_000_000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AcpDecoder {
    pub adapter: Adapter,
    /// The number of the connection, if the capture has it: request ids begin anew with each.
    pub connection: u64,
    prompts: PromptNames,
    /// The client's requests without a reply, by id.
    requests: BTreeMap<String, Request>,
    /// Messages into a turn that the agent has not confirmed, by the id of their request.
    #[serde(default)]
    steerings: BTreeMap<String, String>,
    /// The agent's questions without an answer, by id.
    pub questions: BTreeMap<String, PendingQuestion>,
    pub calls: BTreeMap<Arc<str>, Call>,
    /// Open calls that start a sub-agent.
    pub agent_calls: BTreeSet<Arc<str>>,
    /// The agent repeats the history of the session.
    pub repeats: bool,
    /// Words of a prompt in that history.
    pub repeated: String,
    /// A turn is open.
    pub open: bool,
    /// The turn is complete, but its prompt has no reply: what follows is another turn.
    pub complete: bool,
    /// The connection has ended: whatever a process that outlived it may still write is not of a
    /// session that goes on in another connection (R-003-38).
    #[serde(default)]
    is_over: bool,
    /// The model call or the block that the last chunk named.
    pub step: Option<String>,
    pub block: Option<Name>,
    /// Words in the model's place that are the program's if the prompt fails with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub possible_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<LatestCompaction>,
}

/// A request of the client.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    Prompt,
    Other,
}

impl Decoder for AcpDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        let milliseconds = fields.number("t").filter(|t| *t >= FIRST_EPOCH_MS);
        emit.at = milliseconds
            .and_then(|t| i64::try_from(t).ok())
            .and_then(|t| Timestamp::from_millisecond(t).ok());
        if fields.has("acp") {
            return self.head(&mut emit, fields);
        }
        if self.is_over {
            return RecordOutcome::left_out("line after the end of its connection");
        }
        let message = fields.fields("msg");
        let direction = fields.text("dir").unwrap_or_default();
        self.settle_possible_error(&mut emit, &message);
        match &*direction {
            "us" | "exit" => self.own(&mut emit, &direction, &message),
            "junk" => self.junk(&mut emit, &message),
            _ => match message.text("method") {
                Some(method) => self.message(&mut emit, &method, &message),
                None => self.reply(&mut emit, &direction, &message),
            },
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl AcpDecoder {
    pub fn new(adapter: Adapter) -> AcpDecoder {
        AcpDecoder {
            adapter,
            connection: 0,
            prompts: PromptNames::default(),
            requests: BTreeMap::new(),
            steerings: BTreeMap::new(),
            questions: BTreeMap::new(),
            calls: BTreeMap::new(),
            agent_calls: BTreeSet::new(),
            repeats: false,
            repeated: String::new(),
            open: false,
            complete: false,
            is_over: false,
            step: None,
            block: None,
            possible_error: None,
            compaction: None,
        }
    }

    /// Output that is not of the protocol. What was too long to be kept may have been of the turn.
    fn junk(&self, emit: &mut Emitter<'_>, message: &Fields<'_>) -> RecordOutcome {
        let size = message.number("size").filter(|_| self.open && message.has("digest"));
        let Some(size) = size else { return RecordOutcome::left_out("output that is not ACP") };
        let megabytes = size.div_ceil(1_000_000);
        let text = format!("The agent wrote a line of {megabytes} MB, which was not recorded.");
        let notice = Notice { code: "skipped-output".to_owned(), text };
        emit.push(EventKind::Part(None, Body::Notice(notice)));
        RecordOutcome::InParts
    }

    /// The first line of our own captures.
    fn head(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.connection = fields.number("connection").unwrap_or_default();
        self.prompts = fields.read("prompts").unwrap_or_default();
        let (branch, version, cost) = (None, None, None);
        let project = fields.string("cwd");
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        RecordOutcome::Metadata
    }

    fn message(
        &mut self,
        emit: &mut Emitter<'_>,
        method: &str,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let params = message.fields("params");
        let mut request = Request::Other;
        let outcome = match method {
            "session/new" | "session/load" | "session/resume" => {
                self.repeats = method == "session/load";
                let (branch, version, cost) = (None, None, None);
                let project = params.string("cwd");
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                RecordOutcome::Metadata
            }
            "session/prompt" => {
                request = Request::Prompt;
                self.prompt(emit, &params)
            }
            "_session/steering" => {
                self.steering(&id_of(message), &params);
                RecordOutcome::Metadata
            }
            "session/update" => return self.update(emit, &params.fields("update")),
            "session/request_permission" => {
                return self.permission(emit, &id_of(message), &params);
            }
            "elicitation/create" => return self.elicitation(emit, &id_of(message), &params),
            "$/cancel_request" => {
                return self.withdraw(emit, params.raw("requestId").unwrap_or_default());
            }
            "initialize"
            | "authenticate"
            | "session/cancel"
            | "session/close"
            | "session/list"
            | "session/set_mode"
            | "session/set_model"
            | "session/set_config_option"
            | "_auth/status_update" => RecordOutcome::Metadata,
            _ => return RecordOutcome::left_out(method),
        };
        if message.has("id") {
            self.requests.insert(id_of(message), request);
        }
        outcome
    }

    fn prompt(&mut self, emit: &mut Emitter<'_>, params: &Fields<'_>) -> RecordOutcome {
        self.end_repetition();
        self.repeats &= self.adapter.repeats_late();
        let mut user = Vec::new();
        for block in params.list("prompt") {
            user.push(match block.text("type").as_deref() {
                Some("text") => {
                    let text = block.string("text").unwrap_or_default();
                    Body::Text(Text { text, ..Text::default() })
                }
                _ => attached(&block),
            });
        }
        let first = user.iter().find_map(Body::prose).unwrap_or_default();
        let trigger = if first.starts_with('/') { Trigger::Command } else { Trigger::User };
        let names = vec![self.prompts.next(first)];
        self.begin(emit, names, trigger, user);
        RecordOutcome::InParts
    }

    /// A message into the turn that runs. The logs of agents that have one tell it too, with the place
    /// where the agent read it.
    fn steering(&mut self, request: &str, params: &Fields<'_>) {
        let text = params.list("prompt").find_map(|block| block.string("text"));
        if let Some(text) = text.filter(|_| self.adapter == Adapter::Other) {
            self.steerings.insert(request.to_owned(), text);
        }
    }

    pub fn begin(
        &mut self,
        emit: &mut Emitter<'_>,
        names: Vec<Name>,
        trigger: Trigger,
        user: Vec<Body>,
    ) {
        self.calls.retain(|_, call| !call.ended);
        self.agent_calls.clear();
        (self.open, self.complete) = (true, false);
        (self.step, self.block) = (None, None);
        emit.push(EventKind::TurnStarted { names, trigger, user });
    }

    /// A prompt in the repeated history counts: the log has its turn too.
    pub fn end_repetition(&mut self) {
        let words = std::mem::take(&mut self.repeated);
        if !words.is_empty() {
            self.prompts.next(&words);
        }
    }

    fn reply(
        &mut self,
        emit: &mut Emitter<'_>,
        direction: &str,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let id = id_of(message);
        if direction.starts_with('c') {
            return match self.questions.remove(&id) {
                Some(question) => self.answer(emit, question, message),
                None => RecordOutcome::Metadata,
            };
        }
        let steering = self.steerings.remove(&id);
        match self.requests.remove(&id) {
            Some(Request::Other) if steering.is_some() => {
                let result = message.fields("result");
                // Otherwise it follows as a prompt.
                let is_taken = result.text("outcome").is_some_and(|word| word != "promptRequired");
                let Some(text) = steering.filter(|_| is_taken) else {
                    return RecordOutcome::Metadata;
                };
                emit.push(EventKind::Part(None, Body::Interjection(Interjection { text })));
                RecordOutcome::InParts
            }
            Some(Request::Prompt) => self.end(emit, message),
            Some(Request::Other) => RecordOutcome::Metadata,
            None => RecordOutcome::left_out("reply without its request"),
        }
    }

    /// What follows tells whose words were held back.
    fn settle_possible_error(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>) {
        let Some(text) = self.possible_error.take() else { return };
        let error = message.fields("error").string("data");
        if error.is_none() || error.as_deref() != self.adapter.error_words(&text) {
            let block = self.block.clone();
            emit.push(EventKind::ProseDelta { prose_kind: ProseKind::Text, block, text });
        }
    }

    /// The reply to a prompt ends its turn.
    fn end(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>) -> RecordOutcome {
        self.end_refused(emit);
        self.open = false;
        let error = message.fields("error");
        if error.is_object() {
            let data = error.fields("data");
            let detail = data.string("message").or_else(|| data.string("details"));
            let detail = detail.or_else(|| error.string("data"));
            let text = detail.or_else(|| error.string("message"));
            if let Some((text, name)) = text.clone().zip(self.adapter.failure_name()) {
                let failure = Failure { text, ..Failure::default() };
                emit.push(EventKind::Part(Some(name), Body::Error(failure)));
            }
            emit.push(EventKind::TurnEnded(EndReason::Failed(text)));
            return RecordOutcome::InParts;
        }
        let reason = message.fields("result").string("stopReason").unwrap_or_default();
        let end = match &*reason {
            "cancelled" => EndReason::Interrupted,
            _ => EndReason::Completed,
        };
        let text = match &*reason {
            "max_tokens" => "The reply reached the limit of tokens.",
            "max_turn_requests" => "The turn reached the limit of model calls.",
            "refusal" => "The model refused to go on.",
            _ => "",
        };
        if !text.is_empty() {
            let notice = Notice { code: reason, text: text.to_owned() };
            emit.push(EventKind::Part(None, Body::Notice(notice)));
        }
        emit.push(EventKind::TurnEnded(end));
        RecordOutcome::Metadata
    }

    /// Ends calls that a person refused and of which the agent says nothing more.
    fn end_refused(&mut self, emit: &mut Emitter<'_>) {
        for (id, call) in self.calls.iter_mut().filter(|(_, call)| call.refused && !call.ended) {
            call.ended = true;
            let (call, outcome) = (self.adapter.call(id), Default::default());
            emit.push(EventKind::ToolEnded { call, end: ToolEnd::Denied, outcome });
        }
    }

    /// What the recording program itself notes: that the agent or the recording ended.
    fn own(
        &mut self,
        emit: &mut Emitter<'_>,
        direction: &str,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let what = message.string("what").unwrap_or_else(|| direction.to_owned());
        self.is_over = matches!(&*what, "exit" | "lost");
        match &*what {
            "exit" if self.open => {
                self.open = false;
                let code = message.raw("code").filter(|code| *code != "null");
                let how = match (code, message.text("signal")) {
                    (Some(code), _) => format!("with code {code}"),
                    (None, Some(signal)) => format!("by {signal}"),
                    (None, None) => "without a code".to_owned(),
                };
                let stderr = message.string("stderr").filter(|text| !text.trim().is_empty());
                let tail = stderr.map(|text| format!("\n{}", text.trim_end())).unwrap_or_default();
                let text = format!("The agent ended {how} during the turn.{tail}");
                emit.push(EventKind::TurnEnded(EndReason::Failed(Some(text))));
                RecordOutcome::InParts
            }
            // The recording process was killed, or the user ended the agent.
            "lost" | "end" if self.open => {
                self.open = false;
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
                RecordOutcome::Metadata
            }
            // A session goes on that the head of the capture does not know.
            "prompts" => {
                self.prompts = message.read("prompts").unwrap_or_default();
                RecordOutcome::Metadata
            }
            // The answer to this question, which follows, is no, to talk about it first.
            "discuss" => {
                let request = message.raw("request").and_then(|id| self.questions.get_mut(id));
                if let Some(question) = request {
                    question.discusses = true;
                }
                RecordOutcome::Metadata
            }
            // Whose answer to this question follows.
            "answer" => {
                let request = message.raw("request").and_then(|id| self.questions.get_mut(id));
                if let Some(question) = request {
                    question.by = message.string("by");
                }
                RecordOutcome::Metadata
            }
            "exit" | "lost" | "end" | "prompt" => RecordOutcome::Metadata,
            _ => RecordOutcome::left_out(what),
        }
    }
}

/// The id of a request or a reply, as it is written: a number or a string.
fn id_of(message: &Fields<'_>) -> String {
    message.raw("id").unwrap_or_default().to_owned()
}
