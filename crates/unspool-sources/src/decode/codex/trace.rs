//! The requests of Codex as they were sent: what `CODEX_ROLLOUT_TRACE_ROOT` writes (schema 2). A
//! request is that of the step of its turn that is answered next. They place no part.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::event::Event;
use unspool_model::prompt::{
    CallTimes, MessageDigest, MessageList, Piece, PieceKind, PieceText, PromptGap, PromptMessage,
    Role,
};
use unspool_model::provenance::Feed;

use super::super::prompt_pieces::{kept, timed};
use super::super::sent_requests::{Request, SentRequests};
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, RecordOwner};
use super::prompts::{pieces, role_of};
use super::step_name;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TraceDecoder {
    sent: SentRequests,
    /// The current turn, and how many of its calls are answered.
    turn: String,
    answered: u32,
}

pub(super) fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let index = fields.fields("trace_index");
    if !index.has("payload") {
        return None;
    }
    // What is about the whole trace names no thread.
    index.text("thread_id").or_else(|| index.text("rollout_id")).map(RecordOwner::Session)
}

impl Decoder for TraceDecoder {
    fn check(&self, fields: &Fields<'_>) -> Result<(), String> {
        fields.string("problem").map_or(Ok(()), Err)
    }

    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let index = fields.fields("trace_index");
        let event = index.fields("payload");
        let kind = event.text("type").unwrap_or_default();
        let turn = event.text("codex_turn_id").or_else(|| index.text("codex_turn_id"));
        if let Some(turn) = turn.filter(|turn| **turn != *self.turn) {
            (self.turn, self.answered) = (turn.into_owned(), 0);
        }
        match &*kind {
            "inference_started" if fields.has("payload") => {
                let mut emit = emitter(record, &index, out);
                self.request(&mut emit, &event, &fields.fields("payload"));
                RecordOutcome::Metadata
            }
            "inference_started" => RecordOutcome::left_out("request whose body is not there"),
            "inference_completed" => {
                self.answered = self.answered.saturating_add(1);
                ended(&mut emitter(record, &index, out), &event);
                RecordOutcome::Metadata
            }
            "inference_failed" | "inference_cancelled" => {
                ended(&mut emitter(record, &index, out), &event);
                RecordOutcome::Metadata
            }
            kind => RecordOutcome::left_out(format!("trace event {kind}")),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl TraceDecoder {
    fn request(&mut self, emit: &mut Emitter<'_>, event: &Fields<'_>, body: &Fields<'_>) {
        let items: Vec<Fields<'_>> = body.list("input").collect();
        let digest = |item: &Fields<'_>| MessageDigest::of(item.whole().text().as_bytes());
        let digests = items.iter().map(digest).collect();
        let has_head = body.has("instructions") || body.has("tools");
        let head = has_head.then(|| head_digest(body));
        let mut gaps = Vec::new();
        // Over a socket only what is new is sent.
        if body.text("previous_response_id").is_some() {
            gaps.push(PromptGap::EarlierMessages);
        }
        let request = Request {
            name: event.text("inference_call_id").unwrap_or_default().as_ref().into(),
            at: emit.at,
            times: CallTimes { sent: emit.at, ..CallTimes::default() },
            model: body.text("model").map(|model| model.as_ref().into()),
            list: MessageList::Input,
            gaps,
            step: Some(step_name(&self.turn, self.answered)),
        };
        self.sent.report(emit, request, head, digests, |emit, nth| {
            match nth.and_then(|nth| items.get(nth)) {
                Some(item) => item_message(emit, item),
                None => head_message(emit, body),
            }
        });
    }
}

fn emitter<'o>(record: &Record<'_>, index: &Fields<'_>, out: &'o mut Vec<Event>) -> Emitter<'o> {
    let mut emit = Emitter::new(Feed::Stream, record, None, out);
    let time = index.number("wall_time_unix_ms").and_then(|time| i64::try_from(time).ok());
    emit.at = time.and_then(|time| jiff::Timestamp::from_millisecond(time).ok());
    emit
}

/// A call is answered, or has failed.
fn ended(emit: &mut Emitter<'_>, event: &Fields<'_>) {
    if let Some(request) = event.text("inference_call_id") {
        let times = CallTimes { ended: emit.at, ..CallTimes::default() };
        timed(emit, request.as_ref().into(), times);
    }
}

fn item_message(emit: &mut Emitter<'_>, item: &Fields<'_>) -> PromptMessage {
    let whole = item.whole();
    let kind = item.text("type").unwrap_or_default();
    let role = role_of(&kind, item);
    let value = whole.value();
    let keep = |emit: &mut Emitter<'_>, piece: Piece| match piece.text {
        PieceText::Kept(_) | PieceText::Binary => piece,
        // No part need have it.
        PieceText::Prose(_) | PieceText::Input(_) | PieceText::Output(_) => {
            let text = value.pointer(&piece.at).and_then(Value::as_str).unwrap_or_default();
            let label = piece.label;
            Piece { label, ..kept(emit, piece.kind, piece.at, text) }
        }
    };
    let found = pieces(emit, &kind, role, item);
    let pieces = found.into_iter().map(|piece| keep(emit, piece)).collect();
    let digest = MessageDigest::of(whole.text().as_bytes());
    PromptMessage { digest, role, verified: false, pieces }
}

fn head_digest(body: &Fields<'_>) -> MessageDigest {
    let part = |name: &str| body.raw(name).unwrap_or_default();
    MessageDigest::of(format!("{}\n{}", part("instructions"), part("tools")).as_bytes())
}

fn head_message(emit: &mut Emitter<'_>, body: &Fields<'_>) -> PromptMessage {
    let mut pieces = Vec::new();
    if let Some(text) = body.string("instructions") {
        pieces.push(kept(emit, PieceKind::Policy, "/instructions", &text));
    }
    for (tool, nth) in body.list("tools").zip(0u32..) {
        let piece = kept(emit, PieceKind::ToolSchema, format!("/tools/{nth}"), tool.whole().text());
        let label = tool.string("name").or_else(|| tool.string("type"));
        pieces.push(Piece { label, ..piece });
    }
    PromptMessage { digest: head_digest(body), role: Role::Head, verified: false, pieces }
}
