//! Draws the runs of a session as SVG: one lane per run, steps as boxes, dependencies as lines.
//! Laid out on the server, from the ThoughtFlow document.

mod layout;

use layout::{BOX_HEIGHT, BOX_WIDTH, Lane, PADDING, StepBox, layout};
use maud::{Markup, html};

use crate::html::dom;
use crate::html::text::safe;
use crate::project::thoughtflow::{
    Conversation, FlowStep, Label, StepText, address_of_step, first_sentence, part_of_step,
};

/// Maximum tooltip length in characters: there are many boxes.
const MAX_HINT_CHARS: usize = 300;
/// Title width of a box in columns; wide characters count as two.
const MAX_TITLE_COLUMNS: usize = 28;

/// A run with its turn number.
pub struct FlowRun {
    pub number: u32,
    pub conversation: Conversation,
    /// Number of steps omitted at the start.
    pub before: usize,
}

/// Draws the runs of a session.
pub fn picture(session: &str, runs: &[FlowRun]) -> Markup {
    let lanes: Vec<Lane> = runs.iter().map(|run| layout(&run.conversation)).collect();
    let width = lanes.iter().map(|lane| lane.width).max().unwrap_or(0);
    let height: i64 = lanes.iter().map(|lane| lane.height).sum();
    let tops = lanes.iter().scan(0, |top, lane| {
        let own = *top;
        *top += lane.height;
        Some(own)
    });
    html! {
        svg.flow width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
            role="group" aria-label="Runs and their steps" {
            clipPath id="flow-box" { rect x="0" y="0" width=(BOX_WIDTH - 10) height=(BOX_HEIGHT) {} }
            marker id="flow-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                path.flow-head d="M0 0 8 4 0 8z" {}
            }
            @for ((run, lane), top) in runs.iter().zip(&lanes).zip(tops) {
                (draw_lane(session, run, lane, width, top))
            }
        }
    }
}

fn draw_lane(session: &str, run: &FlowRun, lane: &Lane, width: i64, top: i64) -> Markup {
    let Conversation { conversation_id, status, steps, .. } = &run.conversation;
    let number = run.number as usize;
    let target = format!("/s/{session}?turn={number}#{}", dom::turn(safe(conversation_id)));
    html! {
        g.flow-lane.(status.name()) transform={ "translate(0 " (top) ")" } {
            rect.flow-ground x="1" y="6" width=(width - 2) height=(lane.height - 12) rx="10" {}
            a href=(target) { text.flow-heading x=(PADDING) y="34" { (run.conversation.heading(number)) } }
            @if run.before > 0 {
                text.flow-left-out x=(width - PADDING) y="34" text-anchor="end" { "continues from step " (run.before + 1) }
            }
            @for edge in &lane.edges { path.flow-edge d=(edge) marker-end="url(#flow-end)" {} }
            @for (step, place) in steps.iter().zip(&lane.boxes) {
                (draw_step(step, place, &address(session, run, step)))
            }
        }
    }
}

/// The URL of a step in the transcript.
fn address(session: &str, run: &FlowRun, step: &FlowStep) -> String {
    let number = run.number;
    if let Some(id) = part_of_step(step) {
        return format!("/s/{session}?turn={number}&part={id}#{}", dom::part(id));
    }
    let turn = || dom::turn(safe(&run.conversation.conversation_id));
    address_of_step(session, step)
        .unwrap_or_else(|| format!("/s/{session}?turn={number}#{}", turn()))
}

fn draw_step(step: &FlowStep, place: &StepBox, target: &str) -> Markup {
    let words = StepText::of(step);
    let label = Label::of_name(&step.label);
    let (class, name) = class_and_name(step, label);
    let failed = failed(step);
    // The kind is already shown above the title.
    let title = words.title.strip_prefix(&format!("{name}: ")).unwrap_or(&words.title);
    let hint: String = words.tooltip.chars().take(MAX_HINT_CHARS).collect();
    html! {
        a.flow-step.(class).failed[failed] href=(target) data-step=(safe(&step.step_id))
            transform={ "translate(" (place.x) " " (place.y) ")" } {
            title { (name) "\n" (hint) @if hint.len() < words.tooltip.len() { "…" } }
            rect x="0" y="0" width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="7" {}
            g clip-path="url(#flow-box)" {
                text.flow-kind x="12" y="19" { (name) @if let Some(duration_label) = duration_label(step) { " · " (duration_label) } }
                text.flow-title x="12" y="39" { (truncate_title(title)) }
            }
        }
    }
}

/// The duration of a step, if at least 100 ms.
fn duration_label(step: &FlowStep) -> Option<String> {
    let long = step.duration_ms.filter(|duration| *duration >= 100)?;
    Some(crate::project::thoughtflow::format_duration(long))
}

/// True if the call failed, was denied or was interrupted.
fn failed(step: &FlowStep) -> bool {
    let state = step.payload_completed.as_ref().map(|payload| payload.value()["state"].clone());
    let state = state.as_ref().and_then(|state| state.as_str());
    matches!(state, Some("failed" | "denied" | "interrupted"))
}

/// The CSS class and the display name of a step.
fn class_and_name(step: &FlowStep, label: Label) -> (&'static str, String) {
    let class = match label {
        Label::UserMessage => "is-user",
        Label::AssistantMessage => "is-said",
        Label::AssistantCall => "is-model",
        Label::ToolCall => "is-tool",
        Label::ToolOutput => "is-output",
        Label::ToolError => "is-error",
        Label::Generic => "is-other",
        Label::PolicySnapshot
        | Label::ToolSchemasSnapshot
        | Label::ContextPreamble
        | Label::ChannelPreamble
        | Label::PromptAdaptations => "is-prompt",
    };
    let name = match label {
        Label::UserMessage => "user",
        Label::AssistantMessage => "reply",
        Label::AssistantCall => "model call",
        Label::ToolCall => "tool call",
        Label::ToolOutput => "output",
        Label::ToolError => "error",
        Label::Generic => return (class, kind(step)),
        Label::PolicySnapshot => "policy",
        Label::ToolSchemasSnapshot => "tool schemas",
        Label::ContextPreamble => "context",
        Label::ChannelPreamble => "channel",
        Label::PromptAdaptations => "adaptations",
    };
    (class, name.to_owned())
}

/// The kind of a step with a generic or unknown label.
fn kind(step: &FlowStep) -> String {
    if step.label != Label::Generic.name() {
        return safe(&first_sentence(&step.label)).into_owned();
    }
    let payloads = [&step.payload_completed, &step.payload_started];
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: String,
    }
    let kind = payloads.into_iter().flatten().find_map(|payload| payload.read::<Kind>());
    kind.map_or_else(
        || "step".to_owned(),
        |payload| safe(&first_sentence(&payload.kind)).into_owned(),
    )
}

/// Truncates a title to the width of a box.
fn truncate_title(title: &str) -> String {
    let mut out = String::new();
    let mut room = MAX_TITLE_COLUMNS;
    for c in title.chars() {
        let wide = if c as u32 >= 0x1100 { 2 } else { 1 };
        if room < wide {
            out.push('…');
            break;
        }
        room -= wide;
        out.push(if c == '\n' || c == '\t' { ' ' } else { c });
    }
    out
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
