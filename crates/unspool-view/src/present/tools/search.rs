//! Search tools: file names, file contents, tools.

use serde_json::Value;

use super::call::{CardContent, ParsedCall};
use crate::block::{Block, List, ListItem, Span};
use crate::present::{ansi, format};

/// File name patterns and directory listings.
pub fn glob(call: &ParsedCall) -> CardContent {
    let pattern = call.text(&["pattern"]).map(|text| Span::plain(super::line(text)).code());
    let mut summary: Vec<Span> = pattern.into_iter().collect();
    if let Some(path) = call.path() {
        let space = if summary.is_empty() { "" } else { "  " };
        summary.push(Span::plain(format!("{space}{}", super::line(path))).path());
    }
    push_count(call, &mut summary, "numFiles", "file");
    let mut shown = CardContent::new(call.name(), summary);
    shown.body.extend(output_block(call));
    shown
}

/// Cline searches for several patterns at once.
fn queries(call: &ParsedCall) -> Option<String> {
    let queries = call.input.get("queries")?.as_array()?;
    let queries: Vec<&str> = queries.iter().filter_map(Value::as_str).collect();
    Some(queries.join(", "))
}

/// Content search.
pub fn grep(call: &ParsedCall) -> CardContent {
    let pattern = call.text(&["pattern", "query"]).map(str::to_owned);
    let pattern = pattern.or_else(|| queries(call)).unwrap_or_default();
    let mut summary = vec![Span::plain(super::line(&pattern)).code()];
    for key in ["path", "glob", "include", "type"] {
        if let Some(text) = call.text(&[key]) {
            summary.push(Span::plain(format!("  {}", super::line(text))).path());
        }
    }
    match call.result.get("mode").and_then(Value::as_str) {
        Some("content") => push_count(call, &mut summary, "numLines", "line"),
        Some(_) | None => push_count(call, &mut summary, "numFiles", "file"),
    }
    let mut shown = CardContent::new(call.name(), summary);
    shown.body.extend(output_block(call));
    shown
}

/// Search for tools by name or keywords.
pub fn tools(call: &ParsedCall) -> CardContent {
    let query = call.text(&["query"]).unwrap_or_default();
    let mut shown = CardContent::new(call.name(), vec![Span::plain(super::line(query)).code()]);
    let names = call.result.get("matches").and_then(Value::as_array);
    let items: Vec<ListItem> = names
        .into_iter()
        .flatten()
        .filter_map(|name| {
            let spans = vec![Span::plain(name.as_str()?).code()];
            Some(ListItem { check: None, blocks: vec![Block::Paragraph { spans }] })
        })
        .collect();
    if !items.is_empty() {
        shown.body.push(Block::List(List { start: None, tight: true, items }));
    } else {
        shown.body.extend(output_block(call));
    }
    shown
}

fn output_block(call: &ParsedCall) -> Option<Block> {
    call.output().map(|output| Block::Terminal(ansi::terminal(output)))
}

fn push_count(call: &ParsedCall, summary: &mut Vec<Span>, key: &str, noun: &str) {
    if let Some(count) = call.result.get(key).and_then(Value::as_u64) {
        let count = format::count(count as usize, noun);
        summary.push(Span::plain(format!("  {count}")).dim());
    }
}
