//! What a model call returned: reasoning, text and calls. A message of chat completions, the whole
//! response of such a call, or a response object of the Responses API, which alone keeps the order
//! of its pieces.

use std::sync::Arc;

use unspool_model::event::{EventKind, ProseDetail, ProseKind};
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields, JsonOutline};

/// A call as the model requested it.
pub(super) struct RequestedCall {
    pub id: Option<Arc<str>>,
    pub name: String,
    pub arguments: String,
}

/// Emits the prose of a reply and returns its calls.
pub(super) fn emit_reply(
    emit: &mut Emitter<'_>,
    step: &Arc<str>,
    reply: &Fields<'_>,
) -> Vec<RequestedCall> {
    let mut prose = Prose { step, index: 0 };
    if reply.has("output") {
        return emit_output(emit, &mut prose, reply);
    }
    let mut thoughts = 0;
    for block in reply.list("thinking_blocks") {
        let redacted = block.string("data");
        let detail = ProseDetail {
            redacted: redacted.is_some(),
            signature: block.string("signature").or(redacted).filter(|text| !text.is_empty()),
            ..ProseDetail::default()
        };
        let text = block.string("thinking").unwrap_or_default();
        thoughts += 1;
        prose.say(emit, ProseKind::Reasoning, text, detail);
    }
    if let Some(text) = reply.string("reasoning_content").filter(|_| thoughts == 0) {
        prose.say(emit, ProseKind::Reasoning, text, ProseDetail::default());
    }
    let text = text_of(reply);
    prose.say(emit, ProseKind::Text, text, ProseDetail::default());
    let call = |call: Fields<'_>| {
        let function = call.fields("function");
        RequestedCall {
            id: call.text("id").map(|id| id.as_ref().into()),
            name: function.string("name").unwrap_or_default(),
            arguments: function.string("arguments").unwrap_or_default(),
        }
    };
    reply.list("tool_calls").map(call).collect()
}

/// The pieces of a response object, in order.
fn emit_output(
    emit: &mut Emitter<'_>,
    prose: &mut Prose<'_>,
    reply: &Fields<'_>,
) -> Vec<RequestedCall> {
    let mut calls = Vec::new();
    for item in reply.list("output") {
        match item.text("type").as_deref() {
            Some("reasoning") => {
                let summary = item.list("summary").chain(item.list("content"));
                let texts: Vec<String> = summary.filter_map(|part| part.string("text")).collect();
                let detail = ProseDetail {
                    signature: item.string("encrypted_content"),
                    redacted: texts.is_empty() && item.has("encrypted_content"),
                    ..ProseDetail::default()
                };
                prose.say(emit, ProseKind::Reasoning, texts.join("\n\n"), detail);
            }
            Some("function_call") => calls.push(RequestedCall {
                id: item.text("call_id").map(|id| id.as_ref().into()),
                name: item.string("name").unwrap_or_default(),
                arguments: item.string("arguments").unwrap_or_default(),
            }),
            Some(_) | None => {
                prose.say(emit, ProseKind::Text, text_of(&item), ProseDetail::default());
            }
        }
    }
    calls
}

struct Prose<'a> {
    step: &'a Arc<str>,
    index: u32,
}

impl Prose<'_> {
    fn say(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        text: String,
        detail: ProseDetail,
    ) {
        let block = Some(Name::Block(self.step.clone(), self.index));
        self.index += 1;
        emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
    }
}

/// The text of a message: a string, or the texts of its parts.
pub(super) fn text_of(message: &Fields<'_>) -> String {
    super::super::claude::message::message_text(message)
}

/// The reply in a whole response, and its usage, model and reason to stop. `run` gets the message of
/// chat completions or the response object itself.
pub(super) fn with_reply_of<T>(response: &Fields<'_>, run: impl FnOnce(&Fields<'_>) -> T) -> T {
    let choice = response.list("choices").next();
    match choice {
        Some(choice) => run(&choice.fields("message")),
        None => run(response),
    }
}

/// Token usage of either API. Prompt tokens include cached ones.
pub(super) fn usage(tokens: &Fields<'_>) -> Usage {
    let first = |names: [&str; 2]| names.iter().find_map(|name| tokens.number(name)).unwrap_or(0);
    let detail = |names: [&str; 2], count: &str| {
        names.iter().find_map(|name| tokens.fields(name).number(count)).unwrap_or(0)
    };
    let of_prompt = ["prompt_tokens_details", "input_tokens_details"];
    let of_reply = ["completion_tokens_details", "output_tokens_details"];
    let cached = detail(of_prompt, "cached_tokens");
    Usage {
        input: first(["prompt_tokens", "input_tokens"]).saturating_sub(cached),
        output: first(["completion_tokens", "output_tokens"]),
        cache_read: cached,
        reasoning: detail(of_reply, "reasoning_tokens"),
        ..Usage::default()
    }
}

/// The command of a call's arguments, if they are an object with one.
pub(super) fn command_of(arguments: &str) -> Option<String> {
    JsonOutline::default().read(arguments).ok()?.string("command")
}
