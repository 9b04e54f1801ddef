//! Work handed on: to sub-agents and to skills.

use serde_json::Value;

use super::call::{Call, Shown};
use crate::block::{Block, Fold, Notice, Span, Tone};
use crate::present::{format, markdown};

/// A sub-agent: what it was asked and what it reported.
pub fn agent(call: &Call) -> Shown {
    let task = call.text(&["description", "name", "task", "task_name"]);
    let prompt = call.text(&["prompt", "message", "objective"]).unwrap_or_default();
    let mut summary = Vec::new();
    if let Some(kind) = call.text(&["subagent_type", "agent_type", "agent_name", "agent"]) {
        summary.push(Span::plain(format!("{}  ", super::line(kind))).strong());
    }
    summary.push(Span::plain(super::line(task.unwrap_or(prompt))));
    let mut shown = Shown::new(call.name(), summary);
    if !prompt.is_empty() {
        shown.body.push(Block::Fold(Fold {
            title: vec![Span::plain("Prompt")],
            summary: format::first_line(prompt, 120),
            open: false,
            tone: Tone::Muted,
            blocks: markdown::blocks(prompt),
        }));
    }
    // What Claude Code launched in the background has no report yet, only advice to the model.
    if call.result.get("isAsync").is_some_and(|flag| flag == true) {
        let text = "Runs in the background".to_owned();
        shown.body.push(Block::Notice(Notice { tone: Tone::Background, code: None, text }));
    } else {
        shown.body.extend(report(call));
    }
    shown
}

/// The result's own texts; what the model was told wraps them in notes of the agent's.
fn report(call: &Call) -> Vec<Block> {
    let texts: Vec<&str> = call
        .result
        .get("content")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text")?.as_str())
        .filter(|text| !text.starts_with("<tools-used-before-summary>"))
        .collect();
    if !texts.is_empty() && !call.is_failed() {
        return texts.into_iter().flat_map(markdown::blocks).collect();
    }
    call.output().map(markdown::blocks).unwrap_or_default()
}

/// A skill that the model loads.
pub fn skill(call: &Call) -> Shown {
    let name = call.text(&["skill", "name", "command"]).unwrap_or_default();
    let mut summary = vec![Span::plain(super::line(name)).strong()];
    if let Some(arguments) = call.text(&["args", "arguments"]) {
        summary.push(Span::plain(format!("  {}", super::line(arguments))));
    }
    let body = call.output().map(markdown::blocks).unwrap_or_default();
    Shown::new(call.name(), summary).with(body)
}
