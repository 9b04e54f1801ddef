//! Which part of the transcript a step is: pictures link to it.

use unspool_model::id::Id;

use super::document::{FlowStep, Label};

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
