//! D2 diagrams of a session. The first board has a swimlane per run and links to one board per run
//! with its steps. The only input is the ThoughtFlow document, so the same document gives the same
//! bytes (R-002-20).
//!
//! The boards of the runs come first in the file, written as the runs are read; the swimlanes need
//! little memory and come last.

mod write;

use std::io::Write;

use unspool_model::id::Id;

use super::thoughtflow::{
    Conversation, Document, Flow, FlowStep, Head, Label, Status, StepText, address_of_step,
};
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};
use write::{D2Keys, comment_text, quoted, tooltip_string};

pub const PROJECTION: Projection = Projection {
    name: "d2",
    title: "Diagram (D2)",
    extension: "d2",
    media_type: "text/plain; charset=utf-8",
    about: "diagrams in D2: the runs of a session as swimlanes, and the steps of each run",
    has_notes: false,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

fn write(stream: SessionStream<'_>, _: &Options, out: &mut dyn Write) -> Result<(), ProjectError> {
    let mut flow = Flow::new(stream)?;
    let head = flow.head.clone();
    draw(&head, || flow.next_run(), out)
}

/// Draws a ThoughtFlow document.
pub fn draw_document(document: &Document, out: &mut dyn Write) -> Result<(), ProjectError> {
    let mut runs = document.conversations.iter();
    draw(&document.head, || Ok(runs.next().cloned()), out)
}

fn draw(
    head: &Head,
    mut next: impl FnMut() -> Result<Option<Conversation>, ProjectError>,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    writeln!(out, "# ThoughtFlow of session {}", comment_text(&head.session_id))?;
    writeln!(out, "direction: down")?;
    write::classes(out)?;
    let mut lanes = Vec::new();
    while let Some(run) = next()? {
        if lanes.is_empty() {
            writeln!(out, "layers: {{")?;
        }
        let number = lanes.len() + 1;
        board(&head.session_id, &run, number, out)?;
        lanes.push(Lane::of(&run, number));
    }
    if lanes.is_empty() {
        // R-002-27
        let note = quoted("Nothing happened in this session.");
        writeln!(out, "\"note\": {note} {{ class: \"note\" }}")?;
        return Ok(());
    }
    writeln!(out, "}}")?;
    for lane in &lanes {
        lane.draw(out)?;
    }
    for number in 2..=lanes.len() {
        writeln!(out, "\"run-{}\" -> \"run-{number}\"", number - 1)?;
    }
    Ok(())
}

/// The board of a run: its steps (R-002-22).
fn board(
    session: &str,
    run: &Conversation,
    number: usize,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    writeln!(out, "  \"run-{number}\": {{")?;
    writeln!(out, "    direction: down")?;
    let heading = quoted(&format!("{} ↑ all runs", run.heading(number)));
    let mut keys = D2Keys::default();
    let back = keys.key("session");
    writeln!(out, "    {back}: {heading} {{ class: \"back\"; link: \"_\" }}")?;
    let named: Vec<String> = run.steps.iter().map(|step| keys.key(&step.step_id)).collect();
    for (step, key) in run.steps.iter().zip(&named) {
        let words = StepText::of(step);
        let class = Label::of_name(&step.label).name();
        let times = [&step.started_at, &step.ended_at].into_iter().flatten();
        let times: Vec<&str> = times.map(String::as_str).collect();
        let tooltip = format!("{} {}\n{}", step.label, step.step_id, times.join(" – "));
        let tooltip = format!("{}\n{}", tooltip.trim_end(), words.tooltip);
        let (label, tooltip) = (quoted(&words.title), tooltip_string(&tooltip));
        let link = address(session, step).map(|to| format!("; link: {}", quoted(&to)));
        let link = link.unwrap_or_default();
        writeln!(out, "    {key}: {label} {{ class: \"{class}\"; tooltip: {tooltip}{link} }}")?;
    }
    if run.steps.is_empty() {
        let note = quoted("Nothing happened in this run.");
        writeln!(out, "    \"note\": {note} {{ class: \"note\" }}")?;
    }
    for (from, to) in run.edges() {
        if let (Some(from), Some(to)) = (named.get(from), named.get(to)) {
            writeln!(out, "    {from} -> {to}")?;
        }
    }
    for unknown in run.unknown_steps() {
        let (step, on) = (comment_text(unknown.step), comment_text(unknown.depends_on));
        writeln!(out, "    # {step} depends on {on}, which is not in this run")?;
    }
    writeln!(out, "  }}")?;
    Ok(())
}

/// Where a step leads. A document of another program names no session of ours.
fn address(session: &str, step: &FlowStep) -> Option<String> {
    address_of_step(session, step).filter(|_| session.parse::<Id>().is_ok())
}

/// The swimlane of a run on the first board.
struct Lane {
    number: usize,
    heading: String,
    status: Status,
    prompt: Option<StepText>,
    work: Option<String>,
    reply: Option<StepText>,
}

impl Lane {
    fn of(run: &Conversation, number: usize) -> Lane {
        let is = |label: Label| move |step: &&_| has(step, label);
        let count = |label: Label| run.steps.iter().filter(is(label)).count();
        let (calls, tools) = (count(Label::AssistantCall), count(Label::ToolCall));
        let failed = count(Label::ToolError);
        let mut work = Vec::new();
        if calls > 0 {
            work.push(plural(calls, "model call"));
        }
        if tools > 0 {
            work.push(plural(tools, "tool call"));
        }
        if failed > 0 {
            work.push(format!("{failed} failed"));
        }
        Lane {
            number,
            heading: run.heading(number),
            status: run.status,
            prompt: run.steps.iter().find(is(Label::UserMessage)).map(StepText::of),
            work: (!work.is_empty()).then(|| work.join(" · ")),
            reply: run.steps.iter().rfind(is(Label::AssistantMessage)).map(StepText::of),
        }
    }

    fn draw(&self, out: &mut dyn Write) -> Result<(), ProjectError> {
        let Lane { number, heading, .. } = self;
        writeln!(out, "\"run-{number}\": {} {{", quoted(heading))?;
        writeln!(out, "  class: \"run-{}\"", self.status.name())?;
        writeln!(out, "  link: \"layers.run-{number}\"")?;
        let said = |words: &Option<StepText>| {
            words.as_ref().map(|words| (words.title.clone(), words.tooltip.clone()))
        };
        let work = self.work.clone().map(|work| (work.clone(), work));
        let nodes = [
            ("asked", Label::UserMessage, said(&self.prompt)),
            ("worked", Label::AssistantCall, work),
            ("answered", Label::AssistantMessage, said(&self.reply)),
        ];
        let mut before = None;
        for (key, label, words) in nodes {
            let Some((title, tooltip)) = words else { continue };
            let (title, tooltip) = (quoted(&title), tooltip_string(&tooltip));
            let class = label.name();
            writeln!(out, "  \"{key}\": {title} {{ class: \"{class}\"; tooltip: {tooltip} }}")?;
            if let Some(before) = before {
                writeln!(out, "  \"{before}\" -> \"{key}\"")?;
            }
            before = Some(key);
        }
        if before.is_none() {
            let note = quoted("Nothing was said in this run.");
            writeln!(out, "  \"note\": {note} {{ class: \"note\" }}")?;
        }
        writeln!(out, "}}")?;
        Ok(())
    }
}

fn has(step: &FlowStep, label: Label) -> bool {
    Label::of_name(&step.label) == label
}

fn plural(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
#[path = "d2_tests.rs"]
mod tests;
