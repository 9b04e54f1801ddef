//! Fallback for tools without a presenter: name, input and output.

use serde_json::Value;
use unspool_model::json::Json;

use super::call::{CardContent, ParsedCall};
use crate::block::{Block, Code, Span, text_of};
use crate::present::{ansi, format, json};

/// Any tool.
pub fn unknown(call: &ParsedCall) -> CardContent {
    let mut shown = CardContent::new(call.name(), fallback_summary(call));
    shown.body.extend(call.tool.input.as_ref().map(json::fields).unwrap_or_default());
    shown.body.extend(output(call));
    shown
}

/// A tool of an MCP server: `mcp__server__tool`.
pub fn mcp(call: &ParsedCall) -> CardContent {
    let mut shown = unknown(call);
    if let Some((server, tool)) =
        call.name().strip_prefix("mcp__").and_then(|name| name.split_once("__"))
    {
        shown.title = format!("{server} › {tool}");
    }
    shown
}

/// Any tool while its input is still streaming.
pub fn streaming(call: &ParsedCall) -> CardContent {
    let text = &call.tool.input_text;
    let summary = vec![Span::plain(super::line(text)).dim()];
    let code = Code { language: Some("json".into()), text: text.clone(), first_line: None };
    CardContent::new(call.name(), summary).with(vec![Block::Code(code)])
}

/// One-line summary of any call: its title, else its input, else its output.
pub fn fallback_summary(call: &ParsedCall) -> Vec<Span> {
    let mut summary = call.title_summary();
    if summary.is_empty() {
        summary = input_summary(call);
    }
    if text_of(&summary).trim().is_empty() {
        let text = call.tool.output.as_deref().unwrap_or_default();
        summary = vec![Span::plain(super::line(text)).dim()];
    }
    summary
}

/// The short values of the input, in source order.
fn input_summary(call: &ParsedCall) -> Vec<Span> {
    let Some(input) = &call.tool.input else { return Vec::new() };
    let Some(json::Entries(entries)) = input.read() else {
        let text = call.input.as_str().unwrap_or(input.text());
        return vec![Span::plain(format::first_line(text, 120))];
    };
    let words = entries.iter().filter_map(|(name, value)| {
        let text = match serde_json::from_str::<Value>(value.get()).ok()? {
            Value::String(text) if json::binary_size(&text).is_none() => {
                format::first_line(&text, 48)
            }
            value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
            Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some(format!("{name}: {text}"))
    });
    let words: Vec<String> = words.take(4).collect();
    vec![Span::plain(super::line(&words.join(", "))).dim()]
}

/// The output as JSON if it parses, else as terminal output.
fn output(call: &ParsedCall) -> Option<Block> {
    let text = call.output()?;
    let trimmed = text.trim_start();
    if trimmed.starts_with(['{', '[']) && Json::parse(text).is_some() {
        return Some(json::block(text));
    }
    Some(Block::Terminal(ansi::terminal(text)))
}
