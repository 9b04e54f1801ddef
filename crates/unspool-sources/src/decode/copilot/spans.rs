//! What Copilot sends to the model, as its OpenTelemetry exporter writes it: one line of
//! `COPILOT_OTEL_FILE_EXPORTER_PATH` for each span (1.0.102). The span of a call has the instructions,
//! the tools, the messages that are new in it, and its times. It has neither the messages of earlier
//! calls nor what hooks added when the session started, so each prompt is known in part. Where a piece
//! stands is said in the attributes of the span: how the provider gets it depends on the provider.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use unspool_model::event::{Event, EventKind};
use unspool_model::prompt::{
    CallTimes, MessageDigest, MessageList, Piece, PieceKind, PromptCall, PromptGap, PromptMessage,
    PromptRecord, Role,
};
use unspool_model::provenance::Feed;

use super::super::prompt_pieces::{binary, kept, mark, timed};
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, RecordOwner};

/// The tags around what Copilot puts into a text, and what it is.
const TAGS: &[(&str, PieceKind)] = &[
    ("custom_instruction", PieceKind::Instructions),
    ("current_datetime", PieceKind::Environment),
    ("environment_context", PieceKind::Environment),
    ("system_reminder", PieceKind::Reminder),
];

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SpansDecoder {
    /// The instructions and tools that were reported last: all calls have the same.
    head: Option<MessageDigest>,
}

pub(super) fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let kind = fields.text("type")?;
    let service = fields.fields("resource").fields("attributes");
    if !matches!(&*kind, "span" | "metric" | "log") || !service.is("service.name", "github-copilot")
    {
        return None;
    }
    let session = fields.fields("attributes").text("gen_ai.conversation.id");
    Some(session.map_or(RecordOwner::Format, RecordOwner::Session))
}

impl Decoder for SpansDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let kind = fields.text("type").unwrap_or_default();
        let attributes = fields.fields("attributes");
        let operation = attributes.text("gen_ai.operation.name").unwrap_or_default();
        if kind != "span" || operation != "chat" {
            return RecordOutcome::left_out(format!("{kind} {operation}").trim_end().to_owned());
        }
        // The span names the session of the user for it, and no agent. It has no instructions either.
        if attributes.is("github.copilot.initiator", "sub-agent") {
            return RecordOutcome::left_out("call of a sub-agent");
        }
        let sent = span_time(fields, "startTime");
        let mut emit = Emitter::new(Feed::Stream, record, None, out);
        emit.at = sent;
        let first = attributes.read::<f64>("gen_ai.response.time_to_first_chunk");
        let first_token = first.and_then(|seconds| {
            sent?.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
        });
        let times = CallTimes { sent, first_token, ended: span_time(fields, "endTime") };
        self.call(&mut emit, fields, &attributes, times);
        RecordOutcome::Metadata
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }
}

impl SpansDecoder {
    fn call(
        &mut self,
        emit: &mut Emitter<'_>,
        span: &Fields<'_>,
        attributes: &Fields<'_>,
        times: CallTimes,
    ) {
        // A call that failed has no response.
        let name = attributes.text("gen_ai.response.id").or_else(|| span.text("spanId"));
        let Some(request) = name.filter(|name| !name.is_empty()) else { return };
        let mut gaps = vec![PromptGap::EarlierMessages, PromptGap::HookContext];
        let head = self.head(emit, attributes);
        if head.is_none() {
            gaps.push(PromptGap::MostOfIt);
        }
        let mut tail = Vec::new();
        for text in list(attributes, "gen_ai.input.messages") {
            let message = input_message(emit, &text);
            tail.push(message.digest);
            record(emit, PromptRecord::Message(message));
        }
        let call = PromptCall {
            request: request.as_ref().into(),
            at: emit.at,
            model: attributes.text("gen_ai.request.model").map(|model| model.as_ref().into()),
            head,
            base: None,
            keep: 0,
            tail,
            list: MessageList::SpanInput,
            gaps,
        };
        record(emit, PromptRecord::Call(call));
        timed(emit, request.as_ref().into(), times);
    }

    /// The instructions and tools. `None` if the content is not written down.
    fn head(&mut self, emit: &mut Emitter<'_>, span: &Fields<'_>) -> Option<MessageDigest> {
        let instructions = list(span, "gen_ai.system_instructions");
        let tools = list(span, "gen_ai.tool.definitions");
        if instructions.is_empty() && tools.is_empty() {
            return None;
        }
        let digest =
            MessageDigest::of([instructions.join("\n"), tools.join("\n")].join("\n").as_bytes());
        if self.head == Some(digest) {
            return self.head;
        }
        let mut pieces = Vec::new();
        for (text, nth) in instructions.iter().zip(0u32..) {
            let at = format!("/gen_ai.system_instructions/{nth}");
            pieces.push(part(emit, PieceKind::Policy, at, text));
        }
        for (text, nth) in tools.iter().zip(0u32..) {
            let at = format!("/gen_ai.tool.definitions/{nth}");
            let piece = kept(emit, PieceKind::ToolSchema, at, text);
            let name = value(text)["name"].as_str().map(str::to_owned);
            pieces.push(Piece { label: name, ..piece });
        }
        let role = Role::Head;
        record(
            emit,
            PromptRecord::Message(PromptMessage { digest, role, verified: false, pieces }),
        );
        self.head = Some(digest);
        self.head
    }
}

fn record(emit: &mut Emitter<'_>, record: PromptRecord) {
    emit.push(EventKind::PromptRecorded(Box::new(record)));
}

/// A message that is new in a call.
fn input_message(emit: &mut Emitter<'_>, text: &str) -> PromptMessage {
    let message = value(text);
    let (role, kind) = match message["role"].as_str() {
        Some("system" | "developer") => (Role::System, PieceKind::Reminder),
        Some("assistant") => (Role::Assistant, PieceKind::HistoryText),
        Some(_) | None => (Role::User, PieceKind::UserInstruction),
    };
    let parts = message["parts"].as_array().into_iter().flatten().zip(0u32..);
    let pieces =
        parts.map(|(it, nth)| part(emit, kind, format!("/parts/{nth}"), &it.to_string())).collect();
    let digest = MessageDigest::of(text.as_bytes());
    PromptMessage { digest, role, verified: false, pieces }
}

/// A part of a message, of which only one field is a text.
fn part(emit: &mut Emitter<'_>, kind: PieceKind, at: String, text: &str) -> Piece {
    let part = value(text);
    let (field, kind) = match part["type"].as_str() {
        Some("text") => ("content", kind),
        Some("reasoning") => ("content", PieceKind::HistoryReasoning),
        Some("tool_call_response") => ("response", PieceKind::ToolOutput),
        Some("tool_call") => ("arguments", PieceKind::ToolCall),
        Some("blob" | "file" | "uri") => return binary(at, text),
        Some(_) | None => ("", PieceKind::Other),
    };
    let label = part["name"].as_str().map(str::to_owned);
    let piece = match part.get(field) {
        Some(Value::String(text)) => {
            let mut piece = kept(emit, kind, format!("{at}/{field}"), text);
            mark_tags(&mut piece, text);
            piece
        }
        Some(other) => kept(emit, kind, format!("{at}/{field}"), &other.to_string()),
        None => kept(emit, PieceKind::Other, at, text),
    };
    Piece { label, ..piece }
}

/// Marks what Copilot put into a text.
fn mark_tags(piece: &mut Piece, text: &str) {
    if matches!(piece.kind, PieceKind::ToolOutput | PieceKind::ToolCall) {
        return;
    }
    for (tag, kind) in TAGS {
        let (opens, closes) = (format!("<{tag}>"), format!("</{tag}>"));
        let found = text.find(&opens).and_then(|from| {
            let end = text[from..].find(&closes)? + from + closes.len();
            text.get(from..end)
        });
        if let Some(found) = found {
            mark(piece, text, found, *kind, None);
        }
    }
}

/// The items of an attribute that is a list in a string, each as it is written.
fn list(attributes: &Fields<'_>, name: &str) -> Vec<String> {
    let text = attributes.text(name).unwrap_or_default();
    let items: Vec<&RawValue> = serde_json::from_str(&text).unwrap_or_default();
    items.into_iter().map(|item| item.get().to_owned()).collect()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A time as the exporter writes it: seconds and nanoseconds.
fn span_time(fields: &Fields<'_>, name: &str) -> Option<Timestamp> {
    let (seconds, nanoseconds) = fields.read::<(i64, i32)>(name)?;
    Timestamp::new(seconds, nanoseconds).ok()
}
