//! What of a session a step shows: pictures link to it.

use serde::Deserialize;
use serde::de::IgnoredAny;
use unspool_model::id::Id;

use super::document::{FlowStep, Label};
use crate::html::dom;

/// What a step shows, on the pages of its session: the part, or the prompt of the model call. A path,
/// for a picture that `unspool serve` or a server beside it delivers.
pub fn address_of_step(session: &str, step: &FlowStep) -> Option<String> {
    if let Some(part) = part_of_step(step) {
        return Some(format!("/s/{session}?part={part}#{}", dom::part(part)));
    }
    let call = step.step_id.as_str();
    let is_known = has_recorded_prompt(step) && call.parse::<Id>().is_ok();
    is_known.then(|| format!("/s/{session}/prompts?step={call}"))
}

/// True for a model call whose prompt its agent recorded: only that says how far it is known.
fn has_recorded_prompt(step: &FlowStep) -> bool {
    #[derive(Deserialize)]
    struct Payload {
        prompt_provenance: Option<Provenance>,
    }
    #[derive(Deserialize)]
    struct Provenance {
        truth: Option<IgnoredAny>,
    }
    let is_call = Label::of_name(&step.label) == Label::AssistantCall;
    let payload = step.payload_started.as_ref().filter(|_| is_call);
    let provenance =
        payload.and_then(|payload| payload.read::<Payload>()).and_then(|it| it.prompt_provenance);
    provenance.is_some_and(|provenance| provenance.truth.is_some())
}

/// The id of the part that a step shows. None for the prompt, for model calls and what they used, and
/// for the steps of another program, whose ids are its own.
pub fn part_of_step(step: &FlowStep) -> Option<&str> {
    let is_part = match Label::of_name(&step.label) {
        Label::AssistantMessage | Label::ToolCall | Label::ToolOutput | Label::ToolError => true,
        Label::Generic => step.payload_completed.is_some(),
        // A message during the turn is a part; the one that started the turn is above the parts.
        Label::UserMessage => !step.step_id.contains('-'),
        Label::AssistantCall
        | Label::PolicySnapshot
        | Label::ToolSchemasSnapshot
        | Label::ContextPreamble
        | Label::ChannelPreamble
        | Label::PromptAdaptations => false,
    };
    let id = step.step_id.split('-').next().unwrap_or_default();
    (is_part && id.parse::<Id>().is_ok()).then_some(id)
}
