//! The app-server protocol: JSON-RPC between Codex and its client, one message per line, bare or in
//! a two-way capture (`{"t","dir","msg"}`). It is the live feed: prose arrives as deltas, and only
//! this source records approval requests.
//!
//! This file owns the state of the decoder, turns and steps. Items are decoded in `server_item.rs`,
//! approval requests in `server/`.

mod questions;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use questions::PendingRequest;
use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, Event, EventKind, ProseKind};
use unspool_model::id::{SessionId, digest};
use unspool_model::part::{Body, Interjection, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{ForkedFrom, Parent, Title, TitleOrigin, Trigger, Usage};

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::metadata::failure;
use super::review::Review;
use super::server_item::ItemPhase;
use super::text::user_parts;
use super::{NAME, block_name, failure_name, message, step_name, turn_name};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerDecoder {
    pub(super) turn: Option<Arc<str>>,
    pub(super) prompted: bool,
    turns: Vec<Arc<str>>,
    model: Option<String>,
    steps: u32,
    in_step: bool,
    /// Token totals of the thread: input, cache reads, cache writes, output, reasoning.
    total: Option<[u64; 5]>,
    pub(super) compactions: u32,
    retries: u32,
    /// Open requests to the user, by JSON-RPC id.
    requests: BTreeMap<String, PendingRequest>,
    pub(super) review: Option<Review>,
    /// The first turn to drop, from a `thread/revert` request that has not been confirmed yet.
    reverting: Option<String>,
}

impl Decoder for ServerDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let message = message(fields);
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        let sent = message.number("emittedAtMs").and_then(|at| i64::try_from(at).ok());
        let captured = fields.read::<f64>("t").map(|seconds| (seconds * 1000.0) as i64);
        emit.at = sent.or(captured).and_then(|at| Timestamp::from_millisecond(at).ok());
        let params = message.fields("params");
        match message.text("method").as_deref() {
            Some(method) => self.method(&mut emit, method, &message, &params),
            None => self.response(&mut emit, &message),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.turn.as_ref().map(turn_name)
    }
}

impl ServerDecoder {
    fn method(
        &mut self,
        emit: &mut Emitter<'_>,
        method: &str,
        message: &Fields<'_>,
        params: &Fields<'_>,
    ) -> RecordOutcome {
        let turn = params.text("turnId");
        emit.turn = self.turn.as_ref().map(turn_name);
        if let Some(turn) = turn.as_deref().filter(|_| method.starts_with("item/")) {
            self.enter(emit, turn);
            emit.turn = Some(Name::Prompt(turn.into()));
        }
        match method {
            "thread/started" => self.thread(emit, &params.fields("thread")),
            "thread/name/updated" => {
                if let Some(text) = params.string("threadName") {
                    let origin = TitleOrigin::Custom;
                    emit.push(EventKind::TitleSet(Title { text, origin }));
                }
                RecordOutcome::Metadata
            }
            "turn/start" => {
                self.model = params.string("model").or(self.model.take());
                RecordOutcome::Metadata
            }
            "turn/started" => {
                if let Some(id) = params.fields("turn").text("id")
                    && self.review.is_none()
                {
                    self.enter(emit, &id);
                }
                RecordOutcome::Metadata
            }
            "turn/completed" => self.end(emit, &params.fields("turn")),
            "thread/revert" => {
                self.reverting = params.string("beforeTurnId");
                RecordOutcome::Metadata
            }
            "thread/reverted" => self.revert(emit),
            "item/started" => self.item(emit, &params.fields("item"), ItemPhase::Started),
            "item/completed" => self.item(emit, &params.fields("item"), ItemPhase::Completed),
            "item/agentMessage/delta" | "item/plan/delta" => {
                self.prose_delta(emit, ProseKind::Text, params)
            }
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.prose_delta(emit, ProseKind::Reasoning, params)
            }
            "item/reasoning/summaryPartAdded" => summary_part(emit, params),
            "item/commandExecution/outputDelta" => {
                let call = CallRef::Id(params.text("itemId").unwrap_or_default().into());
                let text = params.string("delta").unwrap_or_default();
                emit.push(EventKind::ToolOutputDelta { call, text });
                RecordOutcome::InParts
            }
            "item/commandExecution/requestApproval"
            | "item/fileChange/requestApproval"
            | "item/permissions/requestApproval"
            | "item/tool/requestUserInput" => self.request(emit, method, message, params),
            "thread/tokenUsage/updated" => {
                let usage = params.fields("tokenUsage");
                self.usage(emit, &usage.fields("total"), turn.as_deref());
                let window = usage.number("modelContextWindow");
                if let (Some(tokens), Some(model)) = (window, self.model.clone()) {
                    emit.push(EventKind::ContextWindowReported { model, tokens });
                }
                RecordOutcome::Metadata
            }
            "error" => self.error(emit, params),
            "warning" => warning(emit, params),
            "serverRequest/resolved" | "thread/status/changed" | "thread/settings/updated" => {
                RecordOutcome::Metadata
            }
            _ => RecordOutcome::left_out(method),
        }
    }

    // ── The thread ──────────────────────────────────────────────────────────────────────────

    fn thread(&mut self, emit: &mut Emitter<'_>, thread: &Fields<'_>) -> RecordOutcome {
        self.model = thread.string("model").or(self.model.take());
        emit.push(EventKind::SessionUpdated {
            project: thread.string("cwd"),
            branch: thread.fields("gitInfo").string("branch"),
            version: thread.string("cliVersion"),
            cost: None,
        });
        if let Some(parent) = thread.text("parentThreadId") {
            let session = SessionId::of(NAME, &parent);
            emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind: None }));
        } else if let Some(from) = thread.text("forkedFromId") {
            let session = SessionId::of(NAME, &from);
            emit.push(EventKind::BranchedOff(ForkedFrom { session, turn: None }));
        }
        RecordOutcome::Metadata
    }

    // ── Turns and steps ─────────────────────────────────────────────────────────────────────

    fn enter(&mut self, emit: &mut Emitter<'_>, turn: &str) {
        if self.turns.iter().any(|seen| **seen == *turn) {
            return;
        }
        let turn: Arc<str> = turn.into();
        self.turns.push(turn.clone());
        self.turn = Some(turn.clone());
        (self.steps, self.in_step, self.prompted) = (0, false, false);
        (self.compactions, self.retries, self.review) = (0, 0, None);
        let (names, user) = (vec![turn_name(&turn)], Vec::new());
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
    }

    pub(super) fn user(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) -> RecordOutcome {
        let user = user_parts(item);
        let Some(turn) = self.turn.clone().filter(|_| !self.prompted) else {
            let texts: Vec<&str> = user.iter().filter_map(Body::prose).collect();
            let name = item.text("id").map(|id| Name::Record(id.into()));
            emit.push(EventKind::Part(
                name,
                Body::Interjection(Interjection { text: texts.join("\n") }),
            ));
            return RecordOutcome::InParts;
        };
        self.prompted = true;
        let names = vec![turn_name(&turn)];
        emit.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
        RecordOutcome::InParts
    }

    pub(super) fn step(&mut self, emit: &mut Emitter<'_>) {
        let Some(turn) = self.turn.as_ref().filter(|_| !self.in_step) else { return };
        self.in_step = true;
        let step = step_name(turn, self.steps);
        emit.push(EventKind::StepStarted { step, model: self.model.clone() });
    }

    /// Handles the thread's running totals, which are repeated. An increase marks the end of a
    /// response.
    fn usage(&mut self, emit: &mut Emitter<'_>, total: &Fields<'_>, turn: Option<&str>) {
        let names = [
            "inputTokens",
            "cachedInputTokens",
            "cacheWriteInputTokens",
            "outputTokens",
            "reasoningOutputTokens",
        ];
        let value = names.map(|name| total.number(name).unwrap_or(0));
        // A resumed thread first reports the totals of earlier turns.
        let runs = self.turn.as_deref() == turn;
        let before = self.total.replace(value).unwrap_or_default();
        let [input, read, write, output, reasoning] =
            std::array::from_fn(|at| value[at].saturating_sub(before[at]));
        let Some(turn) = self.turn.as_ref().filter(|_| runs && input + output > 0) else { return };
        let step = step_name(turn, self.steps);
        self.steps += 1;
        self.in_step = false;
        let input = input.saturating_sub(read).saturating_sub(write);
        let (cache_read, cache_write) = (read, write);
        let usage = Usage { input, output, cache_read, cache_write, reasoning, ..Usage::default() };
        emit.push(EventKind::UsageUpdated { step, usage });
    }

    fn end(&mut self, emit: &mut Emitter<'_>, turn: &Fields<'_>) -> RecordOutcome {
        let id = turn.text("id").unwrap_or_default();
        emit.turn = Some(Name::Prompt((*id).into()));
        let error = turn.fields("error");
        let reason = match turn.text("status").as_deref() {
            Some("interrupted") => EndReason::Interrupted,
            Some("failed") => {
                let failure = failure(&error);
                let why = Some(failure.text.clone()).filter(|text| !text.is_empty());
                emit.push(EventKind::Part(Some(failure_name()), Body::Error(failure)));
                EndReason::Failed(why)
            }
            Some(_) | None => EndReason::Completed,
        };
        emit.push(EventKind::TurnEnded(reason));
        RecordOutcome::Metadata
    }

    /// The user rewound: the named turn and all later ones are abandoned.
    fn revert(&mut self, emit: &mut Emitter<'_>) -> RecordOutcome {
        let Some(first) = self.reverting.take() else { return RecordOutcome::Metadata };
        let kept = self.turns.iter().position(|turn| **turn == *first);
        let kept = kept.unwrap_or(self.turns.len());
        let turns: Vec<Name> = self.turns.drain(kept..).map(|turn| turn_name(&turn)).collect();
        if !turns.is_empty() {
            emit.push(EventKind::Rewound { turns });
        }
        RecordOutcome::Metadata
    }

    /// An error that Codex will retry, or that ends the turn.
    fn error(&mut self, emit: &mut Emitter<'_>, params: &Fields<'_>) -> RecordOutcome {
        let error = params.fields("error");
        if !params.flag("willRetry") {
            // `turn/completed` reports the same error.
            return RecordOutcome::Metadata;
        }
        let said = error.string("message").unwrap_or_default();
        let text = match error.string("additionalDetails") {
            Some(detail) => format!("{said} ({detail})"),
            None => said,
        };
        let name = Name::ByContent(digest(b"retry"), self.retries);
        self.retries += 1;
        emit.push(EventKind::Part(
            Some(name),
            Body::Notice(Notice { code: "retry".to_owned(), text }),
        ));
        RecordOutcome::InParts
    }

    fn prose_delta(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        params: &Fields<'_>,
    ) -> RecordOutcome {
        self.step(emit);
        let block = params.text("itemId").map(|id| block_name(&id));
        let text = params.string("delta").unwrap_or_default();
        emit.push(EventKind::ProseDelta { prose_kind, block, text });
        RecordOutcome::InParts
    }
}

fn summary_part(emit: &mut Emitter<'_>, params: &Fields<'_>) -> RecordOutcome {
    // Summary parts are paragraphs.
    if params.number("summaryIndex").is_some_and(|index| index > 0) {
        let block = params.text("itemId").map(|id| block_name(&id));
        let text = "\n\n".to_owned();
        emit.push(EventKind::ProseDelta { prose_kind: ProseKind::Reasoning, block, text });
    }
    RecordOutcome::Metadata
}

fn warning(emit: &mut Emitter<'_>, params: &Fields<'_>) -> RecordOutcome {
    let notice = Notice {
        code: "informational".to_owned(),
        text: params.string("message").unwrap_or_default(),
    };
    let value = digest(notice.text.as_bytes());
    emit.push(EventKind::Part(Some(Name::ByContent(value, 0)), Body::Notice(notice)));
    RecordOutcome::InParts
}
