//! Web tools: search and fetch.

use serde_json::Value;

use super::call::{CardContent, ParsedCall};
use crate::block::{Block, List, ListItem, Span};
use crate::present::{format, markdown};

/// A search: its links and the summary text.
pub fn search(call: &ParsedCall) -> CardContent {
    let query = call.text(&["query", "q"]).unwrap_or_default();
    let mut shown = CardContent::new(call.name(), vec![Span::plain(super::line(query))]);
    let results = call.result.get("results").and_then(Value::as_array);
    for result in results.into_iter().flatten() {
        match (result.as_str(), result.get("content").and_then(Value::as_array)) {
            (Some(text), _) => shown.body.extend(markdown::blocks(text)),
            (None, Some(found)) => shown.body.extend(links(found)),
            (None, None) => shown.body.extend(links(std::slice::from_ref(result))),
        }
    }
    if shown.body.is_empty() {
        shown.body.extend(call.output().map(markdown::blocks).unwrap_or_default());
    }
    shown
}

/// A list of links, from objects with a URL and a title.
pub fn links(found: &[Value]) -> Option<Block> {
    let items: Vec<ListItem> = found
        .iter()
        .filter_map(|link| {
            let url = link.get("url")?.as_str()?;
            let title = link.get("title").and_then(Value::as_str).unwrap_or(url);
            let mut spans = vec![Span::plain(super::line(title)).link(url)];
            if title != url {
                spans.push(Span::plain(format!("  {}", super::line(url))).dim());
            }
            Some(ListItem { check: None, blocks: vec![Block::Paragraph { spans }] })
        })
        .collect();
    (!items.is_empty()).then_some(Block::List(List { start: None, tight: true, items }))
}

/// A fetched page, as summarised by the tool.
pub fn fetch(call: &ParsedCall) -> CardContent {
    let url = call.text(&["url", "urls", "prompt"]).unwrap_or_default();
    let mut summary = vec![Span::plain(super::line(url)).link(url)];
    if let Some(code) = call.result.get("code").and_then(Value::as_u64) {
        summary.push(Span::plain(format!("  {code}")).dim());
    }
    if let Some(bytes) = call.result.get("bytes").and_then(Value::as_u64) {
        summary.push(Span::plain(format!("  {}", format::size(bytes))).dim());
    }
    let text = call.result.get("result").and_then(Value::as_str).or_else(|| call.output());
    let body = if call.is_failed() { None } else { text.map(markdown::blocks) };
    CardContent::new(call.name(), summary).with(body.unwrap_or_default())
}
