//! Reads the fields of a row under their many names. Used by `RowsDecoder`.

use std::borrow::Cow;

use jiff::Timestamp;
use unspool_model::event::EndReason;
use unspool_model::id::digest;
use unspool_model::json::Json;
use unspool_model::legacy::{LegacyCall, LegacyMessage};
use unspool_model::part::ToolState;
use unspool_model::provenance::Name;

use super::super::Fields;
use super::blocks::{self, BLOCK_FIELDS, RESULT_LIST_FIELDS};

pub const NAME: &str = "rows";

/// The session of the row.
pub(super) const SESSION_FIELDS: [&str; 10] = [
    "session",
    "session_id",
    "sessionId",
    "conversation",
    "conversation_id",
    "conversationId",
    "chat_id",
    "chatId",
    "thread_id",
    "threadId",
];
const ROLE_FIELDS: [&str; 4] = ["role", "type", "kind", "sender"];
pub(super) const TEXT_FIELDS: [&str; 4] = ["text", "content", "message", "body"];
const THINKING_FIELDS: [&str; 3] = ["thinking", "think", "reasoning"];
const TOOL_NAME_FIELDS: [&str; 5] = ["name", "tool", "tool_name", "toolName", "function"];
const INPUT_FIELDS: [&str; 7] =
    ["input", "tool_input", "toolInput", "args", "arguments", "parameters", "params"];
const OUTPUT_FIELDS: [&str; 5] = ["output", "tool_output", "toolOutput", "result", "response"];
pub(super) const CALL_ID_FIELDS: [&str; 6] =
    ["call_id", "callId", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId"];
const CALL_LIST_FIELDS: [&str; 3] = ["tool_calls", "toolCalls", "calls"];
const TIME_FIELDS: [&str; 9] =
    ["at", "timestamp", "time", "created_at", "createdAt", "date", "ts", "started_at", "startedAt"];
const ROW_ID_FIELDS: [&str; 4] = ["id", "uuid", "row_id", "message_id"];
const STATE_FIELDS: [&str; 2] = ["state", "status"];
pub(super) const END_TIME_FIELDS: [&str; 3] = ["completed_at", "ended_at", "finished_at"];
const ERROR_FIELDS: [&str; 3] = ["error", "error_text", "errorText"];
pub(super) const PROMPT_FIELDS: [&str; 3] = ["prompt", "question", "task"];
pub(super) const RESULT_FIELDS: [&str; 4] = ["result", "response", "answer", "completion"];

/// The role of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowRole {
    User,
    Assistant,
    Think,
    Tool,
    ToolResult,
    System,
    /// A prompt with its result.
    Pair,
    /// Its role is unknown.
    Other,
}

pub(super) fn kind(fields: &Fields<'_>) -> Option<RowRole> {
    let has = |names: &[&str]| names.iter().any(|name| fields.raw_or_null(name).is_some());
    if any_text(fields, &PROMPT_FIELDS).is_some() && has(&RESULT_FIELDS) && !has(&TEXT_FIELDS) {
        return Some(RowRole::Pair);
    }
    Some(match &*any_text(fields, &ROLE_FIELDS)?.to_ascii_lowercase() {
        // Results in a user's message belong to the reply before it (R-001-18).
        "user" | "human" if blocks::has_only_results(fields) => RowRole::Assistant,
        "user" | "human" | "prompt" | "user_message" => RowRole::User,
        "assistant" | "ai" | "bot" | "model" | "text" | "assistant_message" | "message" => {
            RowRole::Assistant
        }
        "think" | "thinking" | "thought" | "reasoning" => RowRole::Think,
        // A tool result in OpenAI's format.
        "tool" | "function" if has(&CALL_ID_FIELDS) && has(&TEXT_FIELDS) && !has(&INPUT_FIELDS) => {
            RowRole::ToolResult
        }
        "tool" | "tool_call" | "tool_use" | "tool-call" | "function" | "function_call" => {
            RowRole::Tool
        }
        "tool_result" | "tool-result" | "tool_output" | "function_result" => RowRole::ToolResult,
        "system" | "developer" => RowRole::System,
        _ => RowRole::Other,
    })
}

/// True if an object is a row: it has a role, and the fields of that role.
pub(super) fn is_row(fields: &Fields<'_>) -> bool {
    let said = || any_raw(fields, &TEXT_FIELDS).is_some() || blocks::has_blocks(fields);
    match kind(fields) {
        Some(RowRole::User | RowRole::System) => said(),
        Some(RowRole::Assistant) => {
            said()
                || fields.list(CALL_LIST_FIELDS[0]).next().is_some()
                || any_text(fields, &THINKING_FIELDS).is_some()
        }
        Some(RowRole::Think) => said() || any_text(fields, &THINKING_FIELDS).is_some(),
        Some(RowRole::Tool) => {
            any_text(fields, &TOOL_NAME_FIELDS).is_some()
                || any_text(fields, &CALL_ID_FIELDS).is_some()
        }
        Some(RowRole::ToolResult) => any_text(fields, &CALL_ID_FIELDS).is_some(),
        Some(RowRole::Pair) => true,
        Some(RowRole::Other) | None => false,
    }
}

pub(super) fn any_text<'a>(fields: &Fields<'a>, names: &[&str]) -> Option<Cow<'a, str>> {
    names.iter().find_map(|name| fields.text(name).filter(|text| !text.is_empty()))
}

/// A value that is not `null`.
fn any_raw<'a>(fields: &Fields<'a>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| fields.raw(name))
}

/// The source's id of the row: a string or a number.
pub(super) fn id(fields: &Fields<'_>) -> Option<String> {
    let value = ROW_ID_FIELDS.into_iter().find_map(|name| {
        let number = || fields.number(name).map(|number| number.to_string());
        fields.string(name).or_else(number)
    });
    value.filter(|id| !id.is_empty())
}

/// The text of a row: a string, or the texts of a list of blocks.
pub(super) fn text(fields: &Fields<'_>, names: &[&str]) -> String {
    let blocks = |name: &&str| {
        let texts: Vec<String> =
            fields.list(name).filter_map(|block| block.string("text")).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    };
    let text = any_text(fields, names).map(Cow::into_owned);
    text.or_else(|| names.iter().find_map(blocks))
        .or_else(|| any_raw(fields, names).filter(|value| *value != "\"\"").map(str::to_owned))
        .unwrap_or_default()
}

pub(super) fn thinking(fields: &Fields<'_>) -> String {
    any_text(fields, &THINKING_FIELDS).map(Cow::into_owned).unwrap_or_default()
}

/// The time of the row: RFC 3339, SQLite's format, or seconds or milliseconds since 1970.
pub(super) fn time(fields: &Fields<'_>) -> Option<Timestamp> {
    TIME_FIELDS.into_iter().find_map(|name| {
        fields.time(name).or_else(|| time_of(&fields.text(name)?)).or_else(|| {
            let number: f64 = fields.raw(name)?.parse().ok()?;
            since_1970(number)
        })
    })
}

/// A time in a database's format, `2026-03-01 10:00:00`, which is UTC.
pub(crate) fn time_of(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let civil: Option<jiff::civil::DateTime> = text.parse().ok();
    if let Some(civil) = civil {
        return jiff::tz::Offset::UTC.to_timestamp(civil).ok();
    }
    since_1970(text.parse().ok()?)
}

/// Seconds or milliseconds since 1970: no source is older than 1973.
pub(crate) fn since_1970(number: f64) -> Option<Timestamp> {
    let scale = if number.abs() < 1e11 { 1000.0 } else { 1.0 };
    Timestamp::from_millisecond((number * scale) as i64).ok()
}

/// The call of a tool row.
pub(super) fn call(fields: &Fields<'_>) -> LegacyCall {
    let output = OUTPUT_FIELDS.iter().find(|name| fields.raw_or_null(name).is_some());
    let output = output.map(|name| {
        fields
            .string(name)
            .unwrap_or_else(|| fields.raw_or_null(name).unwrap_or_default().to_owned())
    });
    let error = any_text(fields, &ERROR_FIELDS).map(Cow::into_owned);
    let failed = error.is_some() || fields.flag("is_error") || fields.flag("isError");
    let state = any_text(fields, &STATE_FIELDS).unwrap_or_default();
    let state = match &*state.to_ascii_lowercase() {
        "failed" | "error" | "output-error" => ToolState::Failed,
        "denied" | "rejected" | "output-denied" => ToolState::Denied,
        "interrupted" | "cancelled" | "canceled" | "aborted" => ToolState::Interrupted,
        "completed" | "complete" | "success" | "succeeded" | "ok" | "done" | "finished"
            if !failed =>
        {
            ToolState::Completed
        }
        _ if failed => ToolState::Failed,
        _ if output.is_some() => ToolState::Completed,
        _ => ToolState::Running,
    };
    LegacyCall {
        id: any_text(fields, &CALL_ID_FIELDS).map(Cow::into_owned).unwrap_or_default(),
        name: any_text(fields, &TOOL_NAME_FIELDS).map(Cow::into_owned).unwrap_or_default(),
        input: input(fields),
        output: output.or(error),
        state,
        offset: fields
            .number("offset")
            .and_then(|at| usize::try_from(at).ok())
            .unwrap_or(usize::MAX),
    }
}

/// The input of a call. A string that holds JSON is parsed.
fn input(fields: &Fields<'_>) -> Option<Json> {
    let name = INPUT_FIELDS.iter().find(|name| fields.raw_or_null(name).is_some())?;
    let written = fields.text(name).filter(|text| text.trim_start().starts_with(['{', '[']));
    let read = written.and_then(|text| Json::parse(text.trim()));
    read.or_else(|| Some(Json::checked(fields.raw_or_null(name)?)))
}

/// A reply stored as one message, with its thinking and its calls.
pub(super) fn message(fields: &Fields<'_>) -> LegacyMessage {
    let id = |call: &Fields<'_>| {
        any_text(call, &CALL_ID_FIELDS).or_else(|| any_text(call, &["id"])).map(Cow::into_owned)
    };
    let calls = CALL_LIST_FIELDS.into_iter().flat_map(|name| fields.list(name));
    let calls = calls.map(|value| {
        // OpenAI puts name and arguments into an object of their own.
        let inner = value.fields("function");
        let held = if inner.is_object() { call(&inner) } else { call(&value) };
        LegacyCall { id: id(&value).unwrap_or(held.id.clone()), ..held }
    });
    LegacyMessage {
        thinking: thinking(fields),
        content: text(fields, &TEXT_FIELDS),
        calls: calls.collect(),
        agents: Vec::new(),
    }
}

/// How the turn of a prompt-with-result row ended; `None` if it is still running.
pub(super) fn end(fields: &Fields<'_>) -> Option<EndReason> {
    let error = any_text(fields, &ERROR_FIELDS).map(Cow::into_owned);
    let state = any_text(fields, &STATE_FIELDS).unwrap_or_default();
    match &*state.to_ascii_lowercase() {
        "failed" | "error" | "failure" => Some(EndReason::Failed(error)),
        "cancelled" | "canceled" | "interrupted" | "aborted" | "stopped" | "killed" => {
            Some(EndReason::Interrupted)
        }
        "running" | "pending" | "queued" | "started" | "in_progress" => None,
        _ if error.is_some() => Some(EndReason::Failed(error)),
        _ => Some(EndReason::Idle),
    }
}

/// The name of the model call of a row.
pub(super) fn step(at: Option<Timestamp>, fields: &Fields<'_>) -> Name {
    let content = digest(format!("{at:?} {}", fields.whole().text()).as_bytes());
    let name = id(fields).unwrap_or_else(|| format!("{content:016x}"));
    Name::Message(format!("row {name}").into())
}

/// The text of a reply that is an error. A flag says so, or in old data, which has none, the
/// words with which such replies begin (R-004-18).
pub(super) fn error_reply(fields: &Fields<'_>, reply: &str) -> Option<String> {
    let flag = fields.truth("is_error").or_else(|| fields.truth("isError"));
    let text = reply.strip_prefix("Error: ");
    match flag {
        Some(true) => Some(text.unwrap_or(reply).to_owned()).filter(|text| !text.trim().is_empty()),
        Some(false) => None,
        None => text.map(str::to_owned),
    }
}

/// The fields of a row that no other function here reads.
pub(super) fn unmapped<'a>(fields: &Fields<'a>) -> Vec<(Cow<'a, str>, &'a str)> {
    let pair = kind(fields) == Some(RowRole::Pair);
    let pair_fields = super::pair::mapped_fields();
    let mapped_fields: Vec<&str> = [
        &SESSION_FIELDS[..],
        &ROLE_FIELDS,
        &TEXT_FIELDS,
        &THINKING_FIELDS,
        &TOOL_NAME_FIELDS,
        &INPUT_FIELDS,
        &OUTPUT_FIELDS,
        &CALL_ID_FIELDS,
        &CALL_LIST_FIELDS,
        &TIME_FIELDS,
        &ERROR_FIELDS,
        &PROMPT_FIELDS,
        &RESULT_FIELDS,
        &ROW_ID_FIELDS,
        &STATE_FIELDS,
        &["is_error", "isError", "offset", "model", "title"],
        if pair { &pair_fields[..] } else { &[] },
        if blocks::has_blocks(fields) { &BLOCK_FIELDS[..] } else { &[] },
        if blocks::has_blocks(fields) { &RESULT_LIST_FIELDS[..] } else { &[] },
    ]
    .concat();
    fields
        .each()
        .filter(|(name, value)| !mapped_fields.contains(&&**name) && *value != "null")
        .collect()
}
