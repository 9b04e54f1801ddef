//! The requests of Claude Code as they were sent: what `OTEL_LOG_RAW_API_BODIES=file:DIR` writes. The
//! index says which reply of the log answers each of them. They place no part.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::event::Event;
use unspool_model::prompt::{
    CallTimes, MessageDigest, MessageList, Piece, PieceKind, PromptMessage, Role,
};
use unspool_model::provenance::{Feed, Name};

use super::super::prompt_pieces::kept;
use super::super::sent_requests::{Request, SentRequests};
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, RecordOwner};
use super::prompts::sent_pieces;

#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct BodiesDecoder(SentRequests);

pub(super) fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let index = fields.fields("trace_index");
    if !index.has("request_file") {
        return None;
    }
    index.text("session_id").map(RecordOwner::Session)
}

impl Decoder for BodiesDecoder {
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
        let Some(file) = index.text("request_file") else {
            return RecordOutcome::left_out("index line without a request");
        };
        // The index names the session of the user for it, and no agent. The agent's own log has the
        // same request, so here it would be a second call, in a session that did not make it.
        let source = index.text("query_source").unwrap_or_default();
        if source.starts_with("agent:") {
            return RecordOutcome::left_out("request of a sub-agent");
        }
        if !fields.has("payload") {
            return RecordOutcome::left_out("request whose body is not there");
        }
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        emit.at = index.time("timestamp");
        let body = fields.fields("payload");
        let messages: Vec<Fields<'_>> = body.list("messages").collect();
        let digests = messages.iter().map(message_digest).collect();
        let head = Some(head_digest(&body));
        let request = Request {
            name: file.as_ref().into(),
            at: emit.at,
            // The index is written when the reply is complete.
            times: CallTimes { ended: emit.at, ..CallTimes::default() },
            model: body.text("model").map(|model| model.as_ref().into()),
            list: MessageList::Messages,
            gaps: Vec::new(),
            step: index.text("message_id").map(|id| Name::Message(id.as_ref().into())),
        };
        self.0.report(&mut emit, request, head, digests, |emit, nth| {
            match nth.and_then(|nth| messages.get(nth)) {
                Some(message) => {
                    let (digest, role) = (message_digest(message), role_of(message));
                    let pieces = sent_pieces(emit, role, message);
                    PromptMessage { digest, role, verified: false, pieces }
                }
                None => head_message(emit, &body),
            }
        });
        RecordOutcome::Metadata
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

fn role_of(message: &Fields<'_>) -> Role {
    match message.text("role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some(_) | None => Role::User,
    }
}

/// The digest that the log has of the same message: without marks of the cache, and a string counts
/// as one block of text.
fn message_digest(message: &Fields<'_>) -> MessageDigest {
    let mut value = message.whole().value();
    if let Some(text) = value.get("content").and_then(Value::as_str) {
        let block = serde_json::json!({ "type": "text", "text": text });
        value["content"] = Value::Array(vec![block]);
    }
    drop_cache_marks(&mut value);
    // Keys are sorted.
    MessageDigest::of(value.to_string().as_bytes())
}

fn drop_cache_marks(message: &mut Value) {
    let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) else { return };
    for block in blocks {
        if let Some(block) = block.as_object_mut() {
            block.remove("cache_control");
        }
    }
}

fn head_digest(body: &Fields<'_>) -> MessageDigest {
    let part = |name: &str| body.raw(name).unwrap_or_default();
    MessageDigest::of(format!("{}\n{}", part("system"), part("tools")).as_bytes())
}

fn head_message(emit: &mut Emitter<'_>, body: &Fields<'_>) -> PromptMessage {
    let mut pieces = Vec::new();
    if let Some(text) = body.string("system") {
        pieces.push(kept(emit, PieceKind::Policy, "/system", &text));
    }
    for (block, nth) in body.list("system").zip(0u32..) {
        let text = block.string("text").unwrap_or_default();
        pieces.push(kept(emit, PieceKind::Policy, format!("/system/{nth}/text"), &text));
    }
    for (tool, nth) in body.list("tools").zip(0u32..) {
        let piece = kept(emit, PieceKind::ToolSchema, format!("/tools/{nth}"), tool.whole().text());
        let label = tool.string("name").or_else(|| tool.string("type"));
        pieces.push(Piece { label, ..piece });
    }
    PromptMessage { digest: head_digest(body), role: Role::Head, verified: false, pieces }
}
