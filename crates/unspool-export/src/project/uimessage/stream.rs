//! A message as the chunk stream from which an AI SDK client rebuilds exactly that message: the
//! whole of it, or what is new since the last call.

use serde::Serialize;
use serde_json::Value;
use unspool_model::json::Json;

use super::part::UiPart;
use super::{Sdk, UiMessage};

/// One chunk. Which fields are present depends on its type.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct MessageChunk {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_metadata: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_executed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_text_delta: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preliminary: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citations: Option<Vec<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Value>,
}

impl MessageChunk {
    fn new(kind: impl Into<String>) -> MessageChunk {
        MessageChunk { kind: kind.into(), ..MessageChunk::default() }
    }

    /// As a server-sent event.
    pub fn event(&self) -> String {
        format!("data: {}\n\n", serde_json::to_string(self).unwrap_or_default())
    }
}

/// The terminator of a stream.
pub const DONE: &str = "data: [DONE]\n\n";

/// The message changed in a way that chunks cannot express. The client must start over.
#[derive(PartialEq, Eq, Debug)]
pub struct Rewritten;

/// Encodes one growing message.
pub struct ChunkEncoder {
    sdk: Sdk,
    sent: Option<UiMessage>,
    in_step: bool,
}

impl ChunkEncoder {
    pub fn new(sdk: Sdk) -> ChunkEncoder {
        ChunkEncoder { sdk, sent: None, in_step: false }
    }

    pub fn sdk(&self) -> Sdk {
        self.sdk
    }

    /// The chunks for what is new.
    pub fn emit(&mut self, message: UiMessage) -> Result<Vec<MessageChunk>, Rewritten> {
        let mut out = Vec::new();
        let sent = self.sent.take();
        let before = sent.as_ref().map_or(&[][..], |sent| &sent.parts);
        match &sent {
            None => out.push(MessageChunk {
                message_id: Some(message.id.clone()),
                message_metadata: Some(message.metadata.clone()),
                ..MessageChunk::new("start")
            }),
            Some(sent) if sent.metadata != message.metadata => out.push(MessageChunk {
                message_metadata: Some(message.metadata.clone()),
                ..MessageChunk::new("message-metadata")
            }),
            Some(_) => {}
        }
        if before.len() > message.parts.len() {
            return Err(Rewritten);
        }
        let step = before.iter().rposition(|part| part.kind == "step-start");
        for (nth, (old, new)) in before.iter().zip(&message.parts).enumerate() {
            if old != new {
                let in_current_step = step.is_none_or(|step| nth > step);
                update_part(nth, old, new, in_current_step, &mut out)?;
            }
        }
        for (nth, part) in message.parts.iter().enumerate().skip(before.len()) {
            self.start_part(nth, part, &mut out);
        }
        self.sent = Some(message);
        Ok(out)
    }

    /// The end of the message.
    pub fn end(&mut self) -> Vec<MessageChunk> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.in_step) {
            out.push(MessageChunk::new("finish-step"));
        }
        let sent = |name: &str| self.sent.as_ref().and_then(|sent| sent.metadata[name].as_str());
        let finish_reason = match sent("state") {
            Some("completed") => Some(sent("stopReason").map_or("stop", sdk_finish_reason)),
            Some("failed") => Some("error"),
            Some("interrupted") if self.sdk >= Sdk::Seven => Some("interrupted"),
            Some("interrupted") => Some("other"),
            Some(_) | None => None,
        };
        out.push(MessageChunk { finish_reason, ..MessageChunk::new("finish") });
        out
    }

    /// Starts a part.
    fn start_part(&mut self, nth: usize, part: &UiPart, out: &mut Vec<MessageChunk>) {
        match part.kind.as_str() {
            "step-start" => {
                if std::mem::replace(&mut self.in_step, true) {
                    out.push(MessageChunk::new("finish-step"));
                }
                out.push(MessageChunk::new("start-step"));
            }
            "text" | "reasoning" => {
                // A reader must know before the text that it is an error.
                let error = part.kind == "text" && part.provider_metadata.is_some();
                out.push(MessageChunk {
                    id: name(nth, part),
                    provider_metadata: part.provider_metadata.clone().filter(|_| error),
                    ..MessageChunk::new(format!("{}-start", part.kind))
                });
                text_chunks(nth, part, part.text.as_deref().unwrap_or_default(), out);
            }
            kind if kind.starts_with("tool-") => call_chunks(part, out),
            _ => out.push(whole_part(part)),
        }
    }
}

/// The stream id of a text or reasoning part.
fn name(nth: usize, part: &UiPart) -> Option<String> {
    part.id.clone().or_else(|| Some(nth.to_string()))
}

/// More of a text, and its end.
fn text_chunks(nth: usize, part: &UiPart, more: &str, out: &mut Vec<MessageChunk>) {
    let chunk = |what: &str| MessageChunk {
        id: name(nth, part),
        ..MessageChunk::new(format!("{}-{what}", part.kind))
    };
    if !more.is_empty() {
        out.push(MessageChunk { delta: Some(more.to_owned()), ..chunk("delta") });
    }
    if part.state == Some("done") {
        out.push(MessageChunk {
            provider_metadata: part.provider_metadata.clone(),
            citations: part.citations.clone(),
            ..chunk("end")
        });
    }
}

/// A call and its outcome.
fn call_chunks(part: &UiPart, out: &mut Vec<MessageChunk>) {
    let call = |kind: &str| MessageChunk {
        tool_call_id: part.tool_call_id.clone(),
        tool_name: part.kind.strip_prefix("tool-").map(str::to_owned),
        title: part.title.clone(),
        provider_executed: part.provider_executed,
        ..MessageChunk::new(kind)
    };
    if part.state == Some("input-streaming") {
        out.push(call("tool-input-start"));
        return input_chunk(part, part.raw_input.as_deref().unwrap_or_default(), out);
    }
    match &part.input {
        Some(input) => {
            out.push(MessageChunk {
                input: Some(input.clone()),
                provider_metadata: part.call_provider_metadata.clone(),
                ..call("tool-input-available")
            });
        }
        None => out.push(call("tool-input-start")),
    }
    result_chunks(part, out);
}

/// More of an input.
fn input_chunk(part: &UiPart, more: &str, out: &mut Vec<MessageChunk>) {
    if !more.is_empty() {
        let tool_call_id = part.tool_call_id.clone();
        let input_text_delta = Some(more.to_owned());
        out.push(MessageChunk {
            tool_call_id,
            input_text_delta,
            ..MessageChunk::new("tool-input-delta")
        });
    }
}

/// The outcome of a call that was sent.
fn result_chunks(part: &UiPart, out: &mut Vec<MessageChunk>) {
    let tool_call_id = &part.tool_call_id;
    if let Some(approval) = &part.approval {
        let text = |name: &str| approval[name].as_str().map(str::to_owned);
        let tool_call_id = tool_call_id.clone();
        let request = MessageChunk::new("tool-approval-request");
        out.push(MessageChunk { approval_id: text("id"), tool_call_id, ..request });
        if let Some(approved) = approval["approved"].as_bool() {
            out.push(MessageChunk {
                approval_id: text("id"),
                approved: Some(approved),
                reason: text("reason"),
                ..MessageChunk::new("tool-approval-response")
            });
        }
    }
    let end =
        |kind: &str| MessageChunk { tool_call_id: tool_call_id.clone(), ..MessageChunk::new(kind) };
    match part.state {
        Some("output-available") => {
            let (output, preliminary) = (part.output.clone(), part.preliminary);
            out.push(MessageChunk { output, preliminary, ..end("tool-output-available") });
        }
        Some("output-error") => {
            out.push(MessageChunk {
                error_text: part.error_text.clone(),
                ..end("tool-output-error")
            });
        }
        Some("output-denied") => out.push(end("tool-output-denied")),
        Some(_) | None => {}
    }
}

/// A part that is sent as one chunk.
fn whole_part(part: &UiPart) -> MessageChunk {
    MessageChunk {
        id: part.id.clone(),
        source_id: part.source_id.clone(),
        url: part.url.clone(),
        filename: part.filename.clone(),
        title: part.title.clone(),
        media_type: part.media_type.clone(),
        data: part.data.clone(),
        parts: part.parts.clone(),
        provider_metadata: part.provider_metadata.clone(),
        ..MessageChunk::new(part.kind.clone())
    }
}

/// Updates a part that was sent. Clients find a call again only within the current step
/// (`in_current_step`).
fn update_part(
    nth: usize,
    old: &UiPart,
    new: &UiPart,
    in_current_step: bool,
    out: &mut Vec<MessageChunk>,
) -> Result<(), Rewritten> {
    if old.kind != new.kind {
        return Err(Rewritten);
    }
    match new.kind.as_str() {
        "text" | "reasoning" => {
            let (before, now) = (old.text.as_deref(), new.text.as_deref());
            let more = now.unwrap_or_default().strip_prefix(before.unwrap_or_default());
            let more = more
                .filter(|_| in_current_step && old.state == Some("streaming") && old.id == new.id);
            text_chunks(nth, new, more.ok_or(Rewritten)?, out);
            Ok(())
        }
        kind if kind.starts_with("tool-") => {
            // The fields that are sent with the input.
            let request = |part: &UiPart| {
                (part.input.clone(), part.title.clone(), part.call_provider_metadata.clone())
            };
            let same = request(old) == request(new);
            if old.tool_call_id != new.tool_call_id || !in_current_step && !same {
                return Err(Rewritten);
            }
            let writing = Some("input-streaming");
            if new.state == writing && old.title == new.title {
                let before = old.raw_input.as_deref().unwrap_or_default();
                let more = new.raw_input.as_deref().unwrap_or_default().strip_prefix(before);
                input_chunk(new, more.ok_or(Rewritten)?, out);
            } else if same && old.state != writing {
                result_chunks(new, out);
            } else {
                call_chunks(new, out);
            }
            Ok(())
        }
        kind if kind.starts_with("data-") && old.id.is_some() && old.id == new.id => {
            out.push(whole_part(new));
            Ok(())
        }
        _ => Err(Rewritten),
    }
}

/// The SDK's name for a provider's or agent's stop reason.
fn sdk_finish_reason(reason: &str) -> &'static str {
    match reason.to_lowercase().replace('_', "-").as_str() {
        "length" | "max-tokens" | "max-output-tokens" => "length",
        "content-filter" | "refusal" | "safety" => "content-filter",
        "tool-calls" | "tool-use" => "tool-calls",
        _ => "stop",
    }
}

/// All chunks of a finished message.
pub fn encode_whole(message: UiMessage, sdk: Sdk) -> Vec<MessageChunk> {
    let mut encoder = ChunkEncoder::new(sdk);
    let mut chunks = encoder.emit(message).unwrap_or_default();
    chunks.extend(encoder.end());
    chunks
}
