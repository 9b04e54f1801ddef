//! Delegated work: sub-agents and skills.

use super::call::{CardContent, ParsedCall};
use crate::block::{Block, Fold, Notice, Span, Tone};
use crate::present::{format, markdown};

/// A sub-agent call: prompt and report.
pub fn agent(call: &ParsedCall) -> CardContent {
    let task = call.text(&["description", "name", "task", "task_name"]);
    let prompt = call.text(&["prompt", "message", "objective"]).unwrap_or_default();
    let mut summary = Vec::new();
    if let Some(kind) = call.text(&["subagent_type", "agent_type", "agent_name", "agent"]) {
        summary.push(Span::plain(format!("{}  ", super::line(kind))).strong());
    }
    summary.push(Span::plain(super::line(task.unwrap_or(prompt))));
    let mut shown = CardContent::new(call.name(), summary);
    if !prompt.is_empty() {
        shown.body.push(Block::Fold(Fold {
            title: vec![Span::plain("Prompt")],
            summary: format::first_line(prompt, 120),
            open: false,
            tone: Tone::Muted,
            blocks: markdown::blocks(prompt),
        }));
    }
    // A Claude Code background agent has no report yet; the result is only advice to the model. Of
    // other agents only the part of the agent says so (`present/agents.rs`).
    if call.result.get("isAsync").is_some_and(|flag| flag == true) {
        shown.body.push(started_in_background());
    } else {
        shown.body.extend(report(call));
    }
    shown
}

/// What is shown of the result of a call that started an agent in the background.
pub fn started_in_background() -> Block {
    let text = "Started in the background: its report comes later".to_owned();
    Block::Notice(Notice { tone: Tone::Background, code: None, text })
}

/// The report texts of the result. The output for the model wraps them in notes.
fn report(call: &ParsedCall) -> Vec<Block> {
    let listed = call.result.get("content").unwrap_or(&call.result).as_array();
    let texts: Vec<String> = listed
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text")?.as_str())
        .filter(|text| !text.starts_with("<tools-used-before-summary>"))
        .map(|text| hand_back_report(text).unwrap_or_else(|| text.to_owned()))
        .collect();
    if !texts.is_empty() && !call.is_failed() {
        return texts.iter().flat_map(|text| markdown::blocks(text)).collect();
    }
    call.output().map(markdown::blocks).unwrap_or_default()
}

/// Unwraps the hand-back frame that Claude Code 2.1.325 puts around the report of an agent that
/// started another agent: the lines of the report are indented, those of the frame are not.
fn hand_back_report(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("[Subagent hand-back]"));
    lines.next()?;
    let report: Vec<&str> =
        lines.map_while(|line| line.strip_prefix("  ").or(line.is_empty().then_some(""))).collect();
    Some(report.join("\n"))
}

/// A skill loaded by the model.
pub fn skill(call: &ParsedCall) -> CardContent {
    let name = call.text(&["skill", "name", "command"]).unwrap_or_default();
    let mut summary = vec![Span::plain(super::line(name)).strong()];
    if let Some(arguments) = call.text(&["args", "arguments"]) {
        summary.push(Span::plain(format!("  {}", super::line(arguments))));
    }
    let body = call.output().map(markdown::blocks).unwrap_or_default();
    CardContent::new(call.name(), summary).with(body)
}
