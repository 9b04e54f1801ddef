//! Tool calls and what they gave back, model calls and what their prompts were made of.

use unspool_core::event::{Call, Outcome, ToolCall, ToolEnd, What};
use unspool_core::id::sha256;
use unspool_core::json::Json;
use unspool_core::part::{Answer, Decision, Question, QuestionItem, QuestionKind, ToolState};
use unspool_core::session::{PromptPiece, Provenance, SnapshotUse, Usage};

use super::super::{Emit, Fields};
use super::steps::{Step, Steps, snapshot_kind};

/// What is in our own parts of a call, of how far it came, and of what it gave back.
pub(super) const CALLED: [&str; 8] = [
    "name",
    "call_id",
    "parent_call_id",
    "title",
    "arguments",
    "arguments_text",
    "question",
    "provider_executed",
];
pub(super) const CAME: [&str; 2] = ["state", "answer"];
pub(super) const GAVE: [&str; 8] =
    ["name", "call_id", "state", "output", "result", "error", "exit_code", "duration_ms"];

pub(super) fn state(payload: &Fields<'_>) -> Option<ToolState> {
    ToolState::of_name(&payload.text("state")?)
}

/// How a call ended, if it did.
pub(super) fn end(state: ToolState) -> Option<ToolEnd> {
    match state {
        ToolState::Pending | ToolState::Running => None,
        ToolState::Completed => Some(ToolEnd::Completed),
        ToolState::Failed => Some(ToolEnd::Failed),
        ToolState::Denied => Some(ToolEnd::Denied),
        ToolState::Interrupted => Some(ToolEnd::Interrupted),
    }
}

pub(super) fn tell(emit: &mut Emit<'_>, call: &Call, payload: &Fields<'_>, running: bool) {
    let name = payload.string("name").unwrap_or_default();
    let input = payload.told("arguments").map(Json::checked);
    let text = payload.string("arguments_text").filter(|text| input.is_none() && !text.is_empty());
    emit.push(What::ToolCalled(Box::new(ToolCall {
        call: call.clone(),
        parent_call_id: payload.string("parent_call_id"),
        likeness: payload.likeness(&name, "arguments"),
        name: name.clone(),
        input,
        provider_executed: payload.flag("provider_executed"),
        title: payload.string("title"),
        running,
    })));
    if let Some(text) = text {
        emit.push(What::ToolInputGrew { call: call.clone(), name, text });
    }
}

/// What a call gave back: its text, and its result where it is more than that.
pub(super) fn outcome(payload: &Fields<'_>) -> Option<Outcome> {
    let text = payload.string("output").or_else(|| payload.string("error"));
    let other = payload.raw("output").or_else(|| payload.raw("error")).filter(|_| text.is_none());
    let result = payload.told("result").or(other).map(Json::checked);
    let outcome = Outcome {
        output: text.or_else(|| other.map(str::to_owned)),
        result,
        exit_code: payload.read("exit_code"),
        duration_ms: payload.number("duration_ms"),
    };
    (outcome != Outcome::default()).then_some(outcome)
}

/// What somebody was asked about a call. One that cannot be read is kept by the caller.
pub(super) fn question(told: &Fields<'_>) -> Option<Question> {
    let kind = match &*told.text("kind")? {
        "permission" => QuestionKind::Permission,
        "choice" => QuestionKind::Choice,
        "text" => QuestionKind::Text,
        _ => return None,
    };
    let items: Vec<QuestionItem> = told.read("items")?;
    Some(Question { request_id: told.string("request_id"), kind, items })
}

pub(super) fn answer(told: &Fields<'_>) -> Option<Answer> {
    let decision = match &*told.text("decision")? {
        "allowed" => Decision::Allowed,
        "denied" => Decision::Denied,
        "answered" => Decision::Answered,
        "declined" => Decision::Declined,
        _ => return None,
    };
    let text = told.string("text").unwrap_or_default();
    let choices = told.fields("choices").pairs();
    Some(Answer { decision, text, choices, observed: told.truth("observed").unwrap_or(true) })
}

/// What a model call used: in our own words, or in those that providers have for it.
pub(super) fn usage(told: &Fields<'_>) -> Option<(Usage, bool)> {
    if let Ok(usage) = serde_json::from_str::<Usage>(told.whole().text()) {
        return Some((usage, true));
    }
    let any = |names: [&str; 3]| names.into_iter().find_map(|name| told.number(name));
    let input = any(["input_tokens", "prompt_tokens", "inputTokens"]);
    let output = any(["output_tokens", "completion_tokens", "outputTokens"]);
    input.or(output)?;
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    Some((Usage { input, output, ..Usage::default() }, false))
}

/// What a prompt was made of (R-002-15 to R-002-18).
pub(super) fn provenance(steps: &Steps<'_>, call: &Step<'_>) -> Option<Provenance> {
    let told = call.started.fields("prompt_provenance");
    if !told.is_object() {
        return None;
    }
    let mut pieces: Vec<PromptPiece> = told
        .list("parts")
        .map(|part| PromptPiece {
            kind: part.string("type").unwrap_or_default(),
            value: part.string("value").unwrap_or_default(),
            span: None,
        })
        .collect();
    for span in told.list("assembly") {
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
    // What is a piece itself is no snapshot beside it.
    let is_piece = |used: &SnapshotUse| {
        let wanted = format!("{}_preamble", used.kind);
        let mut alike = pieces.iter().filter(|piece| piece.kind == wanted);
        alike.any(|piece| sha256(piece.value.as_bytes()) == used.sha256)
    };
    let snapshots: Vec<SnapshotUse> = snapshots.filter(|used| !is_piece(used)).collect();
    Some(Provenance { final_prompt: told.string("final_prompt"), pieces, snapshots })
}

/// Whether a snapshot that a prompt used shows something that does not follow from the prompt.
pub(super) fn shows_more(steps: &Steps<'_>, step: &Step<'_>) -> bool {
    if !steps.own || step.completed.is_object() {
        return true;
    }
    if step.label == "prompt.adaptations" {
        return step.started.raw("included_ids").is_some_and(|ids| ids != "[]");
    }
    let version = step.started.string("version");
    let mut pieces = steps.all.iter().flat_map(|call| {
        call.started.fields("prompt_provenance").list("parts").collect::<Vec<_>>()
    });
    let is_piece = pieces.any(|piece| {
        piece.string("value").map(|value| sha256(value.as_bytes())) == version && version.is_some()
    });
    let shown = ["produced_at", "content_preview", "schemas_preview", "count", "names"];
    !is_piece && shown.iter().any(|name| step.started.has(name))
}

/// Whether the arguments of a model call say something that does not follow from its prompt.
pub(super) fn says_more(arguments: &Fields<'_>, prompt: Option<&str>) -> bool {
    let preview = |text: &str| text.chars().take(200).collect::<String>();
    arguments.each().any(|(name, value)| {
        let follows = name == "instructions_preview"
            && prompt.is_some_and(|prompt| Json::checked(value).value() == preview(prompt));
        value != "null" && !follows
    })
}
