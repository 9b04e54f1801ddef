//! Content blocks of messages, shared by log and stream: text, reasoning, calls, questions, files.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{AgentRef, CallRef, EventKind, ProseDetail, ProseKind, ToolCall};
use unspool_model::id::digest;
use unspool_model::json::Json;
use unspool_model::part::{
    Body, Data, Failure, File, Question, QuestionItem, QuestionKind, QuestionOption, Text,
};
use unspool_model::price::ReportedCost;
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields};

/// The tools of calls that have no result yet.
pub(in crate::decode) type Calls = BTreeMap<Arc<str>, String>;

/// The number of blocks seen per message of the turn, by a digest of the message id. Versions
/// before 2.1.325 do not number them.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Blocks(BTreeMap<u64, u32>);

impl Blocks {
    /// The index of the next block of a message: the given one, else the count so far.
    pub fn next(&mut self, message: &str, given_index: Option<u32>) -> u32 {
        let seen = self.0.entry(digest(message.as_bytes())).or_default();
        let index = given_index.unwrap_or(*seen);
        *seen = index.saturating_add(1);
        index
    }

    /// Drops the messages of an ended turn, except the last one, which may continue.
    pub fn forget_but(&mut self, message: Option<&str>) {
        let kept = message.map(|message| digest(message.as_bytes()));
        self.0.retain(|held, _| Some(*held) == kept);
    }
}

/// Decodes one block of a model's message. True if it made a part.
pub(in crate::decode) fn block(
    emit: &mut Emitter<'_>,
    calls: &mut Calls,
    name: Name,
    block: &Fields<'_>,
    duration_ms: Option<u64>,
) -> bool {
    let text = |field: &str| block.string(field).unwrap_or_default();
    match block.text("type").as_deref() {
        Some("text") => {
            let citations: Vec<Json> = block.read("citations").unwrap_or_default();
            let detail = ProseDetail { citations, ..ProseDetail::default() };
            say(emit, ProseKind::Text, name, text("text"), detail)
        }
        Some("thinking") => {
            let signature = block.string("signature").filter(|text| !text.is_empty());
            let detail = ProseDetail { signature, duration_ms, ..ProseDetail::default() };
            say(emit, ProseKind::Reasoning, name, text("thinking"), detail)
        }
        Some("redacted_thinking") => {
            let detail = ProseDetail {
                signature: block.string("data"),
                redacted: true,
                duration_ms,
                ..ProseDetail::default()
            };
            say(emit, ProseKind::Reasoning, name, String::new(), detail)
        }
        Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
            tool_call(emit, calls, block);
            true
        }
        // A tool that the provider ran: its result is in the same message.
        Some(kind) if kind.ends_with("_tool_result") => {
            super::result::server_result(emit, calls, block);
            true
        }
        kind => {
            let kind = kind.unwrap_or("block").to_owned();
            let payload = block.whole();
            emit.push(EventKind::Part(Some(name), Body::Data(Data { kind, payload })));
            true
        }
    }
}

fn say(
    emit: &mut Emitter<'_>,
    prose_kind: ProseKind,
    name: Name,
    text: String,
    detail: ProseDetail,
) -> bool {
    let made = detail.redacted || !text.trim().is_empty();
    emit.push(EventKind::ProseCompleted { prose_kind, block: Some(name), text, detail });
    made
}

fn tool_call(emit: &mut Emitter<'_>, calls: &mut Calls, block: &Fields<'_>) {
    let id: Arc<str> = block.text("id").unwrap_or_default().into();
    let name = block.string("name").unwrap_or_default();
    let input = block.json("input");
    let provider_executed = block.text("type").as_deref() != Some("tool_use");
    calls.insert(id.clone(), name.clone());
    let content_hash = block.content_hash(&name, "input");
    called(emit, CallRef::Id(id.clone()), &name, input, content_hash, provider_executed);
    if block.has("input") {
        started(emit, &id, &name, &block.fields("input"));
    }
}

/// Emits a call, from any feed.
pub(in crate::decode) fn called(
    emit: &mut Emitter<'_>,
    call: CallRef,
    name: &str,
    input: Option<Json>,
    content_hash: u64,
    provider_executed: bool,
) {
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call,
        parent_call_id: None,
        name: name.to_owned(),
        input,
        content_hash,
        provider_executed,
        title: None,
        // The call is written when its message is complete; then it runs or waits.
        running: true,
    })));
}

/// Emits the extra events of calls that start an agent or ask a question.
pub(in crate::decode) fn started(
    emit: &mut Emitter<'_>,
    id: &Arc<str>,
    name: &str,
    input: &Fields<'_>,
) {
    match name {
        "Agent" | "Task" => {
            emit.push(EventKind::AgentStarted {
                agent: AgentRef { call: Some(id.clone()), id: None },
                name: input.string("subagent_type").unwrap_or_else(|| "agent".to_owned()),
                task: input.string("description").unwrap_or_default(),
                background: input.asks_for_background(),
            });
        }
        "AskUserQuestion" => {
            if let Some(question) = choice(input) {
                emit.push(EventKind::QuestionAsked {
                    call: CallRef::Id(id.clone()),
                    tool: name.to_owned(),
                    question,
                    requested: false,
                    inferred: false,
                });
            }
        }
        _ => {}
    }
}

/// The questions of `AskUserQuestion`.
pub(in crate::decode) fn choice(input: &Fields<'_>) -> Option<Question> {
    let items: Vec<QuestionItem> = input
        .list("questions")
        .map(|item| QuestionItem {
            header: item.string("header"),
            question: item.string("question").unwrap_or_default(),
            options: item
                .list("options")
                .map(|option| QuestionOption {
                    label: option.string("label").unwrap_or_default(),
                    description: option.string("description"),
                })
                .collect(),
            multi_select: item.flag("multiSelect"),
        })
        .collect();
    (!items.is_empty()).then_some(Question { request_id: None, kind: QuestionKind::Choice, items })
}

/// The question of a permission request or of `AskUserQuestion`, in hooks or the control protocol.
pub(super) fn request(request_id: Option<String>, tool: &str, input: &Fields<'_>) -> Question {
    let question = (tool == "AskUserQuestion").then(|| choice(input)).flatten();
    match question {
        Some(question) => Question { request_id, ..question },
        None => Question {
            request_id,
            kind: QuestionKind::Permission,
            items: vec![QuestionItem {
                question: format!("Allow {tool}?"),
                ..QuestionItem::default()
            }],
        },
    }
}

pub(super) fn usage(usage: &Fields<'_>) -> Usage {
    let count = |name: &str| usage.number(name).unwrap_or(0);
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        reasoning: usage.fields("output_tokens_details").number("thinking_tokens").unwrap_or(0),
        cache_write_1h: usage
            .fields("cache_creation")
            .number("ephemeral_1h_input_tokens")
            .unwrap_or(0),
    }
}

/// The cost of a session so far, with the tokens that it is for: the sum over all models.
pub(super) fn reported_cost(fields: &Fields<'_>, name: &str) -> Option<ReportedCost> {
    let usd = fields.read(name)?;
    let models = fields.fields("modelUsage");
    let tokens = models.is_object().then(|| {
        let mut sum = Usage::default();
        for model in models.names() {
            let used = models.fields(&model);
            let count = |name: &str| used.number(name).unwrap_or(0);
            sum.add(Usage {
                input: count("inputTokens"),
                output: count("outputTokens"),
                cache_read: count("cacheReadInputTokens"),
                cache_write: count("cacheCreationInputTokens"),
                reasoning: count("thinkingTokens"),
                cache_write_1h: count("cacheCreationEphemeral1hInputTokens"),
            });
        }
        sum
    });
    Some(ReportedCost { usd, tokens })
}

/// The blocks of a user's message as the user's own parts.
pub(in crate::decode) fn user_parts(message: &Fields<'_>) -> Vec<Body> {
    if let Some(text) = message.string("content") {
        return vec![Body::Text(Text { text, ..Text::default() })];
    }
    message.list("content").map(|block| user_part(&block)).collect()
}

fn user_part(block: &Fields<'_>) -> Body {
    match block.text("type").as_deref() {
        Some("text") => {
            let text = block.string("text").unwrap_or_default();
            Body::Text(Text { text, ..Text::default() })
        }
        Some("image" | "document") => {
            let source = block.fields("source");
            Body::File(file_of(&source, block.string("title")))
        }
        kind => {
            Body::Data(Data { kind: kind.unwrap_or("block").to_owned(), payload: block.whole() })
        }
    }
}

/// A file whose bytes are in the record.
pub(super) fn file_of(source: &Fields<'_>, name: Option<String>) -> File {
    let media_type = source.string("media_type");
    if source.text("type").as_deref() == Some("text") {
        return File { name, media_type, url: None, text: source.string("data") };
    }
    let url = source.string("url").or_else(|| {
        let media = media_type.as_deref().unwrap_or("application/octet-stream");
        Some(format!("data:{media};base64,{}", source.text("data")?))
    });
    File { name, media_type, url, text: None }
}

/// An error that the program wrote as a message of the model.
pub(super) fn failure(fields: &Fields<'_>, text: String) -> Failure {
    let code = fields.string("error").or_else(|| fields.string("apiErrorType"));
    let status = fields.number("apiErrorStatus").or_else(|| fields.number("api_error_status"));
    Failure { code, status, text }
}

/// All text blocks of a message, joined.
pub(in crate::decode) fn message_text(message: &Fields<'_>) -> String {
    match message.string("content") {
        Some(text) => text,
        None => {
            let texts: Vec<String> =
                message.list("content").filter_map(|block| block.string("text")).collect();
            texts.join("\n")
        }
    }
}
