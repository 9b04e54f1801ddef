//! The steps and payloads of a recorded prompt: its snapshots, its adaptations, and the provenance of
//! the call.

use serde::Serialize;
use serde_json::{Value, json};
use unspool_model::document::time;
use unspool_model::id::sha256;
use unspool_model::prompt::{PieceKind, PromptGap};

use super::document::FlowStep;
use super::payload::PayloadFields;
use super::prompt::{self, Scope, Span, preview};
use super::recorded::{ComposedPrompt, PromptLog, PromptPart, PromptTruth, RecordedPrompt};

/// A part of a prompt: `type` is one of R-002-16, `kind` what `unspool prompt --json` calls it.
#[derive(Serialize)]
struct Part<'a> {
    #[serde(rename = "type")]
    type_name: &'a str,
    value: &'a str,
    kind: &'a str,
    /// Where its piece stands in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
}

impl<'a> Part<'a> {
    fn of(part: &'a PromptPart) -> Part<'a> {
        Part {
            type_name: part.kind.type_name(),
            value: &part.value,
            kind: part.kind.name(),
            at: Some(&part.at),
            label: part.label.as_deref(),
        }
    }
}

/// The snapshots and adaptations of a prompt (R-002-10 to R-002-13).
pub fn steps(prompt: &RecordedPrompt, scope: &Scope<'_>, log: &mut PromptLog) -> Vec<FlowStep> {
    let Some(composed) = &prompt.composed else { return Vec::new() };
    let gaps = |gap: PromptGap| prompt.truth.gaps.contains(&gap).then(|| gap.label());
    let mut steps = Vec::new();
    if let Some(policy) = composed.text_of(PieceKind::Policy) {
        let version = sha256(policy.as_bytes());
        let produced = time(log.produced(&version, prompt.at));
        let missing = [PromptGap::BillingBlock, PromptGap::Instructions].map(gaps);
        let fields = prompt::policy_fields(&version, &json!(produced), Some(&preview(&policy)));
        let fields = with_missing(fields, &missing);
        steps.push(prompt::policy_step(&version, fields));
    }
    if let Some((schemas, version)) = composed.schemas().zip(composed.tools_version()) {
        let names: Vec<&str> = composed.tools.iter().map(|tool| tool.name.as_str()).collect();
        let fields = prompt::tools_fields(&version, Some(&names), Some(&preview(&schemas)));
        let fields = with_missing(fields, &[gaps(PromptGap::ToolSchemas)]);
        steps.push(prompt::tools_step(&version, fields));
    }
    if let Some(context) = composed.text_of(PieceKind::Environment) {
        let version = sha256(context.as_bytes());
        let now = json!({
            "currentTime": between(&context, "<current_date>", "</current_date>")
                .or_else(|| between(&context, "Today's date is ", ".")),
            "timeZone": between(&context, "<timezone>", "</timezone>"),
        });
        let shown = Some(preview(&context));
        let fields = PayloadFields::default().put("version", &version);
        let fields = prompt::preamble(fields, &now, shown, scope);
        steps.push(prompt::context_step(&version, fields));
    }
    steps.push(adaptations(composed, &prompt.truth, scope));
    steps
}

/// Names what of the content is not recorded.
fn with_missing(fields: PayloadFields, missing: &[Option<&str>]) -> PayloadFields {
    let missing: Vec<&str> = missing.iter().flatten().copied().collect();
    fields.put_some("not_recorded", Some(&missing).filter(|missing| !missing.is_empty()))
}

/// The last stretch between two marks, on one line: a later context replaces an earlier one.
fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let from = text.rfind(start)? + start.len();
    let to = from + text[from..].find(end)?;
    Some(text[from..to].trim()).filter(|found| !found.is_empty() && !found.contains('\n'))
}

/// The adaptations that are in the prompt. Without any the step has the length 0; it says `null` if
/// they could be in what is not known.
fn adaptations(composed: &ComposedPrompt, truth: &PromptTruth, scope: &Scope<'_>) -> FlowStep {
    let found = &composed.adaptations;
    let texts: Vec<&str> = found.iter().map(|adaptation| adaptation.content.as_str()).collect();
    let text = texts.join("\n");
    let ids: Option<Vec<&String>> = found
        .iter()
        .map(|adaptation| adaptation.ids.as_ref())
        .collect::<Option<Vec<_>>>()
        .map(|ids| ids.into_iter().flatten().collect());
    let is_known = !found.is_empty() || truth.shows_adaptations();
    let included = if is_known { json!(ids) } else { Value::Null };
    prompt::adaptations_step(&included, Some(text.as_str()).filter(|_| is_known), scope)
}

/// The arguments of the call (R-002-15).
pub fn arguments(prompt: &RecordedPrompt) -> Value {
    let composed = prompt.composed.as_ref();
    let final_prompt = composed.and_then(|composed| composed.final_prompt());
    let tools = composed.filter(|_| prompt.truth.shows_tools());
    json!({
        "instructions_preview": final_prompt.map(preview),
        "tools_count": tools.map(|composed| composed.tools.len()),
    })
}

/// The `prompt_provenance` of the call (R-002-15 to R-002-18). The conversation is in the steps of
/// the run; of it only the user's last words are a part.
pub fn provenance(prompt: &RecordedPrompt) -> PayloadFields {
    let truth = &prompt.truth;
    let not_recorded: Vec<&str> = truth.gaps.iter().map(|gap| gap.label()).collect();
    let told = json!({
        "complete": truth.is_complete() && prompt.composed.is_some(),
        "unknown_messages": truth.unknown_messages,
        "unknown_pieces": truth.unknown_pieces,
        "not_recorded": not_recorded,
    });
    let Some(composed) = &prompt.composed else {
        let none: [&str; 0] = [];
        return PayloadFields::default()
            .put("parts", &none)
            .put("final_prompt", &Value::Null)
            .put("assembly", &none)
            .put("left_out_chars", &truth.chars)
            .put("truth", &told);
    };
    let mut parts: Vec<Part<'_>> = composed.parts.iter().map(Part::of).collect();
    let assembly: Vec<Span> = (0..)
        .zip(&composed.parts)
        .filter_map(|(part, piece)| piece.span.map(|(start, end)| Span { part, start, end }))
        .collect();
    parts.extend(composed.user.as_ref().map(Part::of));
    let tools = format!("tools:{}", composed.tools.len());
    let version = composed.tools_version().map(|version| prompt::tools_step_id(&version));
    if let Some(version) = &version {
        parts.push(Part {
            type_name: "tool_schemas_snapshot",
            value: &tools,
            kind: PieceKind::ToolSchema.name(),
            at: None,
            label: Some(version),
        });
    }
    PayloadFields::default()
        .put("parts", &parts)
        .put("final_prompt", &composed.final_prompt())
        .put("assembly", &assembly)
        .put("truth", &told)
}

impl ComposedPrompt {
    /// The instruction string; `None` if nothing of it is known.
    fn final_prompt(&self) -> Option<&str> {
        Some(self.final_prompt.as_str()).filter(|prompt| !prompt.is_empty())
    }
}
