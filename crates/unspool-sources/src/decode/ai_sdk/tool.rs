//! Tool calls, shared by stored chats and streams.

use std::sync::Arc;

use unspool_model::event::{CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind};

use super::super::{Emitter, Fields};
use super::unmapped::UnmappedFields;

/// The fields of a tool part that our parts hold.
const TOOL_FIELDS: [&str; 12] = [
    "type",
    "toolName",
    "toolCallId",
    "state",
    "title",
    "providerExecuted",
    "input",
    "output",
    "errorText",
    "approval",
    "rawInput",
    // Only if it holds nothing but our own `unspool` entry.
    "callProviderMetadata",
];

/// How a call ended, from the metadata that our exports add where the SDK's state cannot say it.
pub(super) fn exported_end(metadata: &Fields<'_>) -> Option<ToolEnd> {
    let ours = metadata.fields("unspool");
    if metadata.each().count() != 1 || ours.each().count() != 1 {
        return None;
    }
    match &*ours.text("state")? {
        "denied" => Some(ToolEnd::Denied),
        "interrupted" => Some(ToolEnd::Interrupted),
        _ => None,
    }
}

/// The tool of a part: `tool-NAME`, where NAME may be any text, or `dynamic-tool`.
pub(super) fn tool_name(part: &Fields<'_>) -> Option<String> {
    let kind = part.text("type")?;
    if !part.is_text("toolCallId") {
        return None;
    }
    match kind.strip_prefix("tool-") {
        Some(name) => Some(name.to_owned()),
        None => part.string("toolName").filter(|_| kind == "dynamic-tool"),
    }
}

/// Decodes a tool part of a stored message. Returns true if the call has ended.
pub(super) fn part(
    emit: &mut Emitter<'_>,
    call: &Arc<str>,
    name: &str,
    part: &Fields<'_>,
    index: u32,
    rest: &mut UnmappedFields,
) -> bool {
    let state = part.text("state").unwrap_or_default();
    let id = || CallRef::Id(call.clone());
    let metadata = part.fields("callProviderMetadata");
    let how = exported_end(&metadata);
    rest.keep_except(index, part, if how.is_some() { &TOOL_FIELDS } else { &TOOL_FIELDS[..11] });
    rest.keep_non_texts(index, part, &["title", "errorText", "rawInput"]);
    for (name, read) in [
        ("providerExecuted", part.truth("providerExecuted").is_some()),
        ("approval", part.fields("approval").is_object()),
        // With an `errorText`, the error is the output.
        ("output", !part.is_text("errorText")),
    ] {
        if part.has(name) && !read {
            rest.keep_present(index, part, name);
        }
    }
    if part.is("type", "dynamic-tool") {
        rest.keep(index, "type", Json::string("dynamic-tool"));
    }
    let writing = state == "input-streaming";
    let raw = part.string("rawInput");
    let input = part.raw_or_null("input").filter(|_| !writing);
    emit_call(emit, call, name, part, input, !writing);
    // A streaming or invalid input. The SDK's partial parse of a streaming input follows from
    // its text.
    if input.is_none() {
        let text = raw.or_else(|| part.raw_or_null("input").map(str::to_owned)).unwrap_or_default();
        if !text.is_empty() {
            emit.push(EventKind::ToolInputDelta { call: id(), name: name.to_owned(), text });
        }
    } else {
        rest.keep_present(index, part, "rawInput");
    }
    approval(emit, call, name, &part.fields("approval"), index, rest);
    let outcome = outcome(part);
    match &*state {
        "output-available" if part.flag("preliminary") => {
            emit.push(EventKind::ToolRefined { call: id(), outcome });
            return false;
        }
        "output-available" => emit_end(emit, call, ToolEnd::Completed, outcome),
        "output-error" => emit_end(emit, call, how.unwrap_or(ToolEnd::Failed), outcome),
        "input-available" if how == Some(ToolEnd::Interrupted) => {
            emit_end(emit, call, ToolEnd::Interrupted, outcome);
        }
        "output-denied" => emit_end(emit, call, ToolEnd::Denied, outcome),
        "input-streaming" | "input-available" | "approval-requested" | "approval-responded" => {
            return false;
        }
        _ => {
            // A state of a future version.
            for name in ["state", "output", "errorText"] {
                rest.keep_present(index, part, name);
            }
            return false;
        }
    }
    true
}

pub(super) fn emit_call(
    emit: &mut Emitter<'_>,
    call: &Arc<str>,
    name: &str,
    fields: &Fields<'_>,
    input: Option<&str>,
    running: bool,
) {
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(call.clone()),
        parent_call_id: None,
        name: name.to_owned(),
        input: input.map(Json::checked),
        content_hash: fields.content_hash(name, "input"),
        provider_executed: fields.flag("providerExecuted"),
        title: fields.string("title"),
        running,
    })));
}

pub(super) fn emit_end(
    emit: &mut Emitter<'_>,
    call: &Arc<str>,
    end: ToolEnd,
    outcome: ToolOutcome,
) {
    emit.push(EventKind::ToolEnded { call: CallRef::Id(call.clone()), end, outcome });
}

/// The outcome of a call. An output that is no string is kept as the result, and its text content
/// is the output.
pub(super) fn outcome(fields: &Fields<'_>) -> ToolOutcome {
    if let Some(text) = fields.string("errorText").or_else(|| fields.string("output")) {
        return ToolOutcome { output: Some(text), ..ToolOutcome::default() };
    }
    let Some(output) = fields.raw_or_null("output") else { return ToolOutcome::default() };
    let texts: Vec<String> = fields
        .fields("output")
        .list("content")
        .filter(|item| item.is("type", "text"))
        .filter_map(|item| item.string("text"))
        .collect();
    let text = if texts.is_empty() { output.to_owned() } else { texts.join("\n") };
    ToolOutcome {
        output: Some(text),
        result: Some(Json::checked(output)),
        ..ToolOutcome::default()
    }
}

/// Emits an approval request and its response. An automatic approval asks no one.
fn approval(
    emit: &mut Emitter<'_>,
    call: &Arc<str>,
    name: &str,
    approval: &Fields<'_>,
    index: u32,
    rest: &mut UnmappedFields,
) {
    if !approval.is_object() {
        return;
    }
    let mapped_fields = ["id", "approved", "reason"];
    let read = |name: &str| match name {
        "approved" => !approval.has(name) || approval.truth(name).is_some(),
        _ => mapped_fields.contains(&name) && (!approval.has(name) || approval.is_text(name)),
    };
    if approval.each().any(|(name, _)| !read(&name)) {
        rest.keep(index, "approval", approval.whole());
    }
    if approval.flag("isAutomatic") {
        return;
    }
    approval_request(emit, call, name, approval.string("id"), approval.string("requestReason"));
    if let Some(approved) = approval.truth("approved") {
        approval_response(emit, call, approved, approval.string("reason"));
    }
}

pub(super) fn approval_request(
    emit: &mut Emitter<'_>,
    call: &Arc<str>,
    tool: &str,
    request_id: Option<String>,
    reason: Option<String>,
) {
    let question = reason.unwrap_or_else(|| format!("Allow {tool}?"));
    let items = vec![QuestionItem { question, ..QuestionItem::default() }];
    emit.push(EventKind::QuestionAsked {
        call: CallRef::Id(call.clone()),
        tool: tool.to_owned(),
        question: Question { request_id, kind: QuestionKind::Permission, items },
        requested: true,
        inferred: false,
    });
}

pub(super) fn approval_response(
    emit: &mut Emitter<'_>,
    call: &Arc<str>,
    approved: bool,
    reason: Option<String>,
) {
    let decision = if approved { Decision::Allowed } else { Decision::Denied };
    let text = reason.filter(|reason| !reason.is_empty());
    let text = text.unwrap_or_else(|| decision.name().to_owned());
    let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call.clone()), answer });
}
