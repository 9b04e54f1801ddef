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
    // An agent in the background has no report yet; the result is only advice to the model.
    if is_launch(call) {
        let text = "Started in the background: its report comes later".to_owned();
        shown.body.push(Block::Notice(Notice { tone: Tone::Background, code: None, text }));
    } else {
        shown.body.extend(report(call));
    }
    shown
}

/// True if the result only says that the agent was started. An agent that was meant to run in the
/// background may have run in the foreground, so its call does not tell.
fn is_launch(call: &ParsedCall) -> bool {
    let flags = ["isAsync", "background"];
    let is_flagged = |name: &&str| call.result.get(*name).is_some_and(|flag| flag == true);
    // Qwen Code; Droid has nothing but words.
    flags.iter().any(is_flagged)
        || call.result.get("status").is_some_and(|status| status == "background")
        || call.output().is_some_and(|text| text.starts_with("Task launched in background"))
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
