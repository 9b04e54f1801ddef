//! Readers for the payloads of tool calls (input, outcome, question, answer) and of model calls
//! (usage, prompt provenance).

use std::collections::{BTreeMap, BTreeSet};

use unspool_model::event::{CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::id::sha256;
use unspool_model::json::Json;
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind, ToolState};
use unspool_model::session::{PromptPiece, Provenance, SnapshotUse, Usage};

use super::super::{Emitter, Fields};
use super::kinds;
use super::steps::{Step, Steps, has_fields, snapshot_kind};
use super::unmapped::{FieldMap, fields_except, json};

/// The fields of a call that our parts hold. A field of the wrong type is not among them, so it is
/// kept as unmapped.
pub(super) fn mapped_call_fields(payload: &Fields<'_>) -> Vec<&'static str> {
    let input = payload.raw_or_null("arguments").is_some();
    let read = |name: &str| match name {
        "arguments" => input,
        "arguments_text" => !input && payload.is_text(name),
        "provider_executed" => payload.truth(name).is_some(),
        _ => payload.is_text(name),
    };
    let names = ["name", "call_id", "parent_call_id", "title", "arguments", "arguments_text"];
    let names = names.into_iter().chain(["provider_executed"]);
    names.filter(|name| read(name) || !payload.has(name)).collect()
}

/// The fields of an outcome that our parts hold.
pub(super) fn mapped_outcome_fields(payload: &Fields<'_>) -> Vec<&'static str> {
    let read = |name: &str| match name {
        "error" => !payload.has("output"),
        "exit_code" => payload.read::<i64>(name).is_some(),
        "duration_ms" => payload.number(name).is_some(),
        _ => true,
    };
    let names = ["output", "error", "result", "exit_code", "duration_ms"];
    names.into_iter().filter(|name| read(name) || !payload.has(name)).collect()
}

pub(super) fn state(payload: &Fields<'_>) -> Option<ToolState> {
    ToolState::of_name(&payload.text("state")?)
}

/// True if an `error` marks the call as failed, for payloads without a state.
pub(super) fn says_error(payload: &Fields<'_>) -> bool {
    payload.raw("error").is_some_and(|error| error != "\"\"" && error != "false")
}

/// How a call ended; `None` if it is still open.
pub(in super::super) fn end(state: ToolState) -> Option<ToolEnd> {
    match state {
        ToolState::Pending | ToolState::Running => None,
        ToolState::Completed => Some(ToolEnd::Completed),
        ToolState::Failed => Some(ToolEnd::Failed),
        ToolState::Denied => Some(ToolEnd::Denied),
        ToolState::Interrupted => Some(ToolEnd::Interrupted),
    }
}

pub(super) fn emit_call(
    emit: &mut Emitter<'_>,
    call: &CallRef,
    payload: &Fields<'_>,
    running: bool,
) {
    let name = payload.string("name").unwrap_or_default();
    let input = payload.raw_or_null("arguments").map(Json::checked);
    let text = payload.string("arguments_text").filter(|text| input.is_none() && !text.is_empty());
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: call.clone(),
        parent_call_id: payload.string("parent_call_id"),
        content_hash: payload.content_hash(&name, "arguments"),
        name: name.clone(),
        input,
        provider_executed: payload.flag("provider_executed"),
        title: payload.string("title"),
        running,
    })));
    if let Some(text) = text {
        emit.push(EventKind::ToolInputDelta { call: call.clone(), name, text });
    }
}

/// The outcome of a call: its output text, and the result if that is more than the text.
pub(super) fn outcome(payload: &Fields<'_>) -> Option<ToolOutcome> {
    let name = if payload.has("output") { "output" } else { "error" };
    let text = payload.string(name);
    let other = payload.raw(name).filter(|_| text.is_none());
    let result = payload.raw_or_null("result").or(other).map(Json::checked);
    let outcome = ToolOutcome {
        output: text.or_else(|| other.map(str::to_owned)),
        result,
        exit_code: payload.read("exit_code"),
        duration_ms: payload.number("duration_ms"),
    };
    (outcome != ToolOutcome::default()).then_some(outcome)
}

/// The question of a call. The caller keeps one that cannot be read.
pub(in super::super) fn question(fields: &Fields<'_>) -> Option<Question> {
    let kind = match &*fields.text("kind")? {
        "permission" => QuestionKind::Permission,
        "choice" => QuestionKind::Choice,
        "text" => QuestionKind::Text,
        _ => return None,
    };
    let items: Vec<QuestionItem> = fields.read("items")?;
    Some(Question { request_id: fields.string("request_id"), kind, items })
}

pub(in super::super) fn answer(fields: &Fields<'_>) -> Option<Answer> {
    let decision = match &*fields.text("decision")? {
        "allowed" => Decision::Allowed,
        "denied" => Decision::Denied,
        "answered" => Decision::Answered,
        "declined" => Decision::Declined,
        _ => return None,
    };
    let text = fields.string("text").unwrap_or_default();
    let choices = fields.fields("choices").pairs();
    let (observed, by) = (fields.truth("observed").unwrap_or(true), fields.string("by"));
    Some(Answer { decision, text, choices, observed, by })
}

/// The token usage of a model call, in our own field names or in a provider's. The flag is true
/// if it has no other fields.
pub(in super::super) fn usage(fields: &Fields<'_>) -> Option<(Usage, bool)> {
    if let Ok(usage) = serde_json::from_str::<Usage>(fields.whole().text()) {
        let ours = ["input", "output", "cache_read", "cache_write", "reasoning", "cache_write_1h"];
        return Some((usage, kinds::has_only(fields, &ours)));
    }
    let any = |names: [&str; 3]| names.into_iter().find_map(|name| fields.number(name));
    let input = any(["input_tokens", "prompt_tokens", "inputTokens"]);
    let output = any(["output_tokens", "completion_tokens", "outputTokens"]);
    input.or(output)?;
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    Some((Usage { input, output, ..Usage::default() }, false))
}

/// The provenance of a prompt (R-002-15 to R-002-18).
pub(super) fn provenance(steps: &Steps<'_>, call: &Step<'_>) -> Option<Provenance> {
    let fields = call.started.fields("prompt_provenance");
    if !fields.is_object() {
        return None;
    }
    let mut pieces: Vec<PromptPiece> = fields
        .list("parts")
        .map(|part| PromptPiece {
            kind: part.string("type").unwrap_or_default(),
            value: part.string("value").unwrap_or_default(),
            span: None,
        })
        .collect();
    for span in fields.list("assembly") {
        let at = |name: &str| u32::try_from(span.number(name)?).ok();
        let (Some(part), Some(start), Some(end)) = (at("part"), at("start"), at("end")) else {
            continue;
        };
        if let Some(piece) = pieces.get_mut(part as usize) {
            piece.span = Some((start, end));
        }
    }
    let snapshots = steps.snapshots_of(call).filter_map(|step| {
        let sha256 = step.started.string("version")?;
        Some(SnapshotUse { kind: snapshot_kind(&step.label)?.to_owned(), sha256 })
    });
    // A snapshot that is one of the pieces is not listed again.
    let is_piece = |used: &SnapshotUse| {
        let wanted = format!("{}_preamble", used.kind);
        let mut alike = pieces.iter().filter(|piece| piece.kind == wanted);
        alike.any(|piece| sha256(piece.value.as_bytes()) == used.sha256)
    };
    let snapshots: Vec<SnapshotUse> = snapshots.filter(|used| !is_piece(used)).collect();
    Some(Provenance { final_prompt: fields.string("final_prompt"), pieces, snapshots })
}

/// The unmapped fields of a prompt's provenance.
pub(super) fn unmapped_provenance(fields: &Fields<'_>) -> Option<Json> {
    let mut left = FieldMap::new();
    for (name, value) in fields.each() {
        let kept = match &*name {
            "final_prompt" if fields.is_text("final_prompt") || value == "null" => None,
            "parts" if value.starts_with('[') => unmapped_pieces(fields),
            "assembly" if is_assembly(fields) => None,
            _ => Some(Json::checked(value)),
        };
        left.extend(kept.map(|kept| (name.into_owned(), kept)));
    }
    if left.is_empty() { None } else { json(&left) }
}

/// The unmapped fields of the pieces, by index.
fn unmapped_pieces(fields: &Fields<'_>) -> Option<Json> {
    let left = fields.items("parts").enumerate().filter_map(|(index, (raw, piece))| {
        let mapped: Vec<&str> =
            ["type", "value"].into_iter().filter(|name| piece.is_text(name)).collect();
        let kept = if piece.is_object() {
            fields_except(&piece, &mapped)
        } else {
            Some(Json::checked(raw))
        };
        Some((index, kept?))
    });
    let left: BTreeMap<usize, Json> = left.collect();
    if left.is_empty() { None } else { json(&left) }
}

/// True if all spans of `assembly` can be read, with at most one per piece.
fn is_assembly(fields: &Fields<'_>) -> bool {
    let pieces = fields.list("parts").count() as u64;
    let mut placed = BTreeSet::new();
    fields.raw("assembly").is_none_or(|raw| raw.starts_with('['))
        && fields.items("assembly").all(|(_, span)| {
            let small = |name: &str| span.number(name).filter(|at| u32::try_from(*at).is_ok());
            small("part").is_some_and(|part| part < pieces && placed.insert(part))
                && small("start").is_some()
                && small("end").is_some()
                && span.names().count() == 3
        })
}

/// True if a snapshot used by a prompt has content that cannot be derived from the prompt.
pub(super) fn snapshot_has_extra(steps: &Steps<'_>, step: &Step<'_>) -> bool {
    if !steps.own || has_fields(&step.completed) {
        return true;
    }
    if step.label == "prompt.adaptations" {
        return step.started.raw("included_ids").is_some_and(|ids| ids != "[]");
    }
    let version = step.started.text("version");
    let is_piece = version.is_some_and(|version| steps.pieces.contains(&*version));
    let shown = ["produced_at", "content_preview", "schemas_preview", "count", "names"];
    !is_piece && shown.iter().any(|name| step.started.has(name))
}

/// True if the arguments of a model call have content that cannot be derived from its prompt.
pub(super) fn arguments_have_extra(arguments: &Fields<'_>, prompt: Option<&str>) -> bool {
    let preview = |text: &str| text.chars().take(200).collect::<String>();
    arguments.each().any(|(name, value)| {
        let follows = name == "instructions_preview"
            && prompt.is_some_and(|prompt| Json::checked(value).value() == preview(prompt));
        value != "null" && !follows
    })
}
