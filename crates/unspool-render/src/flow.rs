//! The picture of a session's runs: a lane for each, steps as boxes, what depends on what as lines.
//! It is laid out from the ThoughtFlow document and drawn as SVG, here and not in the browser.

mod lay;

use maud::{Markup, html};

use crate::project::thoughtflow::{Conversation, FlowStep, Label, Words, first_sentence};
use crate::text::safe;
use lay::{Box, HEIGHT, Lane, PAD, WIDTH, lay};

/// What stands behind a box when one points at it is no longer than this: there are many.
const HINT: usize = 300;
/// So much fits into a box, in characters of usual width.
const FITS: usize = 28;

/// A run, with the number of its turn.
pub struct Run {
    pub number: u32,
    pub conversation: Conversation,
    /// So many of its first steps were left out.
    pub before: usize,
}

/// Draws the runs of a session.
pub fn picture(session: &str, runs: &[Run]) -> Markup {
    let lanes: Vec<Lane> = runs.iter().map(|run| lay(&run.conversation)).collect();
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
            clipPath id="flow-box" { rect x="0" y="0" width=(WIDTH - 10) height=(HEIGHT) {} }
            marker id="flow-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                path.flow-head d="M0 0 8 4 0 8z" {}
            }
            @for ((run, lane), top) in runs.iter().zip(&lanes).zip(tops) {
                (drawn(session, run, lane, width, top))
            }
        }
    }
}

fn drawn(session: &str, run: &Run, lane: &Lane, width: i64, top: i64) -> Markup {
    let Conversation { conversation_id, status, steps, .. } = &run.conversation;
    let number = run.number as usize;
    let there = format!("/s/{session}?turn={number}#t-{}", safe(conversation_id));
    html! {
        g.flow-lane.(status.name()) transform={ "translate(0 " (top) ")" } {
            rect.flow-ground x="1" y="6" width=(width - 2) height=(lane.height - 12) rx="10" {}
            a href=(there) { text.flow-heading x=(PAD) y="34" { (run.conversation.heading(number)) } }
            @if run.before > 0 {
                text.flow-left-out x=(width - PAD) y="34" text-anchor="end" { "goes on from step " (run.before + 1) }
            }
            @for edge in &lane.edges { path.flow-edge d=(edge) marker-end="url(#flow-end)" {} }
            @for (step, place) in steps.iter().zip(&lane.boxes) {
                (boxed(step, place, &address(session, run, step)))
            }
        }
    }
}

/// Where the transcript shows what a step stands for.
fn address(session: &str, run: &Run, step: &FlowStep) -> String {
    let number = run.number;
    let part = match Label::of_name(&step.label) {
        Label::AssistantMessage | Label::ToolCall | Label::ToolOutput | Label::ToolError => true,
        Label::Generic => step.payload_completed.is_some(),
        // What was said while the model worked is a part; what began the turn stands above it.
        Label::UserMessage => !step.step_id.contains('-'),
        Label::AssistantCall
        | Label::PolicySnapshot
        | Label::ToolSchemasSnapshot
        | Label::ContextPreamble
        | Label::ChannelPreamble
        | Label::PromptAdaptations => false,
    };
    let id = step.step_id.split('-').next().unwrap_or_default();
    if part && !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return format!("/s/{session}?turn={number}&part={id}#p-{id}");
    }
    format!("/s/{session}?turn={number}#t-{}", safe(&run.conversation.conversation_id))
}

fn boxed(step: &FlowStep, place: &Box, there: &str) -> Markup {
    let words = Words::of(step);
    let label = Label::of_name(&step.label);
    let (class, name) = look(step, label);
    let failed = failed(step);
    // Its kind stands above it already.
    let title = words.title.strip_prefix(&format!("{name}: ")).unwrap_or(&words.title);
    let hint: String = words.behind.chars().take(HINT).collect();
    html! {
        a.flow-step.(class).failed[failed] href=(there) data-step=(safe(&step.step_id))
            transform={ "translate(" (place.x) " " (place.y) ")" } {
            title { (name) "\n" (hint) @if hint.len() < words.behind.len() { "…" } }
            rect x="0" y="0" width=(WIDTH) height=(HEIGHT) rx="7" {}
            g clip-path="url(#flow-box)" {
                text.flow-kind x="12" y="19" { (name) @if let Some(took) = took(step) { " · " (took) } }
                text.flow-title x="12" y="39" { (fitting(title)) }
            }
        }
    }
}

/// How long a step took, where that says something.
fn took(step: &FlowStep) -> Option<String> {
    let long = step.duration_ms.filter(|duration| *duration >= 100)?;
    Some(crate::project::thoughtflow::lasted(long))
}

/// A call that failed, was denied or interrupted.
fn failed(step: &FlowStep) -> bool {
    let state = step.payload_completed.as_ref().map(|payload| payload.value()["state"].clone());
    let state = state.as_ref().and_then(|state| state.as_str());
    matches!(state, Some("failed" | "denied" | "interrupted"))
}

/// The class of a step, and what it is called.
fn look(step: &FlowStep, label: Label) -> (&'static str, String) {
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

/// What a step is that has no label of its own.
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
    kind.map_or_else(|| "step".to_owned(), |known| safe(&first_sentence(&known.kind)).into_owned())
}

/// As much of a title as a box holds.
fn fitting(title: &str) -> String {
    let mut out = String::new();
    let mut room = FITS;
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
