//! The provenance of an imported call: snapshots by content digest, and the final prompt with the
//! span of each piece. The steps of snapshots and adaptations are made here for recorded prompts, too
//! (`recorded_steps`). Without a recording there are no such steps.

use serde::Serialize;
use serde_json::{Value, json};
use unspool_model::id::sha256;
use unspool_model::json::Json;
use unspool_model::session::{PromptPiece, Provenance, SnapshotUse};

use super::document::{FlowStep, Label};
use super::payload::PayloadFields;

/// Characters of content shown in a preview.
const PREVIEW_CHARS: usize = 200;

/// The agent and channel of a run.
pub struct Scope<'a> {
    pub agent: &'a str,
    pub channel: &'a str,
}

#[derive(Serialize)]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    value: &'a str,
}

/// The span of a piece in the final prompt, in characters; `end` is exclusive.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub part: usize,
    pub start: u32,
    pub end: u32,
}

/// The `prompt_provenance` of a call (R-002-15 to R-002-18).
pub fn provenance_payload(provenance: &Provenance) -> Json {
    let parts: Vec<Part<'_>> = provenance
        .pieces
        .iter()
        .map(|piece| Part { kind: &piece.kind, value: &piece.value })
        .collect();
    PayloadFields::default()
        .put("parts", &parts)
        .put_some("final_prompt", provenance.final_prompt.as_ref())
        .put("assembly", &spans(provenance))
        .json()
}

/// The valid spans: the prompt has the piece's text there, and spans do not overlap.
pub fn spans(provenance: &Provenance) -> Vec<Span> {
    let Some(prompt) = &provenance.final_prompt else { return Vec::new() };
    let places: Vec<usize> =
        prompt.char_indices().map(|(at, _)| at).chain([prompt.len()]).collect();
    let place = |at: u32| places.get(at as usize).copied();
    let mut spans: Vec<Span> = Vec::new();
    for (part, PromptPiece { value, span, .. }) in provenance.pieces.iter().enumerate() {
        let Some((start, end)) = *span else { continue };
        let there = place(start).zip(place(end)).and_then(|(start, end)| prompt.get(start..end));
        let behind = spans.last().is_none_or(|last| last.end <= start);
        if behind && there == Some(value.as_str()) {
            spans.push(Span { part, start, end });
        }
    }
    spans
}

/// The first characters of a text.
pub fn preview(text: &str) -> String {
    text.chars().take(PREVIEW_CHARS).collect()
}

/// Looks up the content of a snapshot by digest.
pub type PromptContent<'a> = dyn FnMut(&str) -> Option<Json> + 'a;

/// The steps for the snapshots, preambles and adaptations of a prompt.
pub fn prompt_steps(
    provenance: &Provenance,
    scope: &Scope<'_>,
    content: &mut PromptContent<'_>,
) -> Vec<FlowStep> {
    let mut steps: Vec<FlowStep> = Vec::new();
    for snapshot in &provenance.snapshots {
        let snapshot_content = content(&snapshot.sha256);
        steps.push(snapshot_step(snapshot, snapshot_content.as_ref(), scope));
    }
    for piece in &provenance.pieces {
        let kind = match piece.kind.as_str() {
            "context_preamble" => "context",
            "channel_preamble" => "channel",
            _ => continue,
        };
        let snapshot = SnapshotUse { kind: kind.into(), sha256: sha256(piece.value.as_bytes()) };
        let snapshot_content = Json::string(&piece.value);
        let step = snapshot_step(&snapshot, Some(&snapshot_content), scope);
        if !steps.iter().any(|existing| existing.step_id == step.step_id) {
            steps.push(step);
        }
    }
    steps.push(adaptations(provenance, scope));
    steps
}

/// The adaptations step, present even if there were none (R-002-13).
fn adaptations(provenance: &Provenance, scope: &Scope<'_>) -> FlowStep {
    let own = provenance.pieces.iter().filter(|piece| piece.kind == "prompt_adaptations");
    let text = own.map(|piece| piece.value.as_str()).collect::<Vec<_>>().join("\n");
    // The ids are not recorded; an empty text means that there were none.
    let included = if text.is_empty() { json!([]) } else { Value::Null };
    adaptations_step(&included, Some(&text), scope)
}

/// The step of adaptations with this text; `None` if it is not known whether there were any.
pub fn adaptations_step(included: &Value, text: Option<&str>, scope: &Scope<'_>) -> FlowStep {
    let payload = PayloadFields::default()
        .put("included_ids", included)
        .put("content_preview", &text.map(preview))
        .put("content_length", &text.map(|text| text.chars().count()))
        .put("scope", &json!({ "agent": scope.agent, "channel": scope.channel }))
        .put("modifiable", &true);
    let version = text.map_or_else(|| "unknown".to_owned(), |text| sha256(text.as_bytes()));
    used_step(Label::PromptAdaptations, format!("snp_adaptations_{version}"), payload)
}

/// The step of a snapshot. Its id is the content digest, so equal content is one step (R-002-11).
fn snapshot_step(
    snapshot: &SnapshotUse,
    snapshot_content: Option<&Json>,
    scope: &Scope<'_>,
) -> FlowStep {
    let SnapshotUse { kind, sha256 } = snapshot;
    let value = snapshot_content.map(Json::value).unwrap_or_default();
    let text =
        snapshot_content.map(|snapshot_content| value.as_str().unwrap_or(snapshot_content.text()));
    let shown = text.map(preview);
    let head = PayloadFields::default().put("version", sha256);
    match kind.as_str() {
        "policy" | "system-policy" => {
            policy_step(sha256, policy_fields(sha256, &value["produced_at"], shown.as_deref()))
        }
        "tools" | "tool-schemas" => {
            let names = snapshot_content.map(|_| tool_names(&value));
            tools_step(sha256, tools_fields(sha256, names.as_deref(), shown.as_deref()))
        }
        "context" => context_step(sha256, preamble(head, &value, shown, scope)),
        "channel" => {
            let fields = preamble(head, &value, shown, scope);
            used_step(Label::ChannelPreamble, format!("snp_channel_{sha256}"), fields)
        }
        other => {
            let fields = head.put("kind", other).put("content_preview", &shown);
            used_step(Label::Generic, format!("snp_{other}_{sha256}"), fields)
        }
    }
}

/// A step that a call uses: it stands where it is used and has no times of its own (R-002-12).
fn used_step(label: Label, step_id: String, fields: PayloadFields) -> FlowStep {
    FlowStep {
        step_id,
        label: label.name().to_owned(),
        payload_started: Some(fields.json()),
        ..FlowStep::default()
    }
}

pub fn policy_step(version: &str, fields: PayloadFields) -> FlowStep {
    used_step(Label::PolicySnapshot, format!("snp_policy_{version}"), fields)
}

/// The payload of a policy (R-002-10).
pub fn policy_fields(version: &str, produced_at: &Value, shown: Option<&str>) -> PayloadFields {
    let fields = PayloadFields::default().put("version", version);
    fields.put("produced_at", produced_at).put("content_preview", &shown)
}

pub fn tools_step_id(version: &str) -> String {
    format!("snp_tools_{version}")
}

pub fn tools_step(version: &str, fields: PayloadFields) -> FlowStep {
    used_step(Label::ToolSchemasSnapshot, tools_step_id(version), fields)
}

/// The payload of tool schemas (R-002-10).
pub fn tools_fields(version: &str, names: Option<&[&str]>, shown: Option<&str>) -> PayloadFields {
    PayloadFields::default()
        .put("version", version)
        .put("count", &names.map(<[&str]>::len))
        .put("names", &names)
        .put("schemas_preview", &shown)
}

pub fn context_step(version: &str, fields: PayloadFields) -> FlowStep {
    used_step(Label::ContextPreamble, format!("snp_context_{version}"), fields)
}

/// The payload of a context (R-002-10).
pub fn preamble(
    head: PayloadFields,
    value: &Value,
    shown: Option<String>,
    scope: &Scope<'_>,
) -> PayloadFields {
    let channel = value["channel"].as_str().unwrap_or(scope.channel);
    let context = json!({
        "channel": channel,
        "currentTime": value["currentTime"],
        "timeZone": value["timeZone"],
    });
    head.put("context", &context).put("content_preview", &shown)
}

/// The tool names in a list of schemas, in any provider's format.
pub fn tool_names(schemas: &Value) -> Vec<&str> {
    let tools = schemas.as_array().map(Vec::as_slice).unwrap_or_default();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap_or_default())
        .collect()
}
