//! Images and documents in results: shown by type and size, never printed as base64.

use std::sync::Arc;

use serde_json::Value;
use unspool_model::part::File;

use super::call::ParsedCall;
use crate::block::{Block, FileReference, safe_link};

/// Image types that a browser displays without executing anything; SVG can run scripts.
const RASTER_TYPES: [&str; 5] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];
/// Larger images get no preview.
const MAX_PREVIEW_BYTES: usize = 8 * 1024 * 1024;

/// The images and documents of a call's result.
pub fn blocks(call: &ParsedCall) -> Vec<Block> {
    let mut found = Vec::new();
    // Read stores one file; MCP tools return a list of content blocks.
    if let Some(file) = call.result.get("file")
        && let Some(data) = file.get("base64").and_then(Value::as_str)
    {
        let name = file.get("filePath").and_then(Value::as_str).or_else(|| call.path());
        let kind = call.result.get("type").and_then(Value::as_str);
        let media_type = file.get("type").and_then(Value::as_str);
        let media_type = media_type.or_else(|| (kind == Some("pdf")).then_some("application/pdf"));
        found.push(encoded_file(name, media_type, data));
    }
    for list in [Some(&call.result), call.result.get("content"), call.result.get("attachments")] {
        let items = list.and_then(Value::as_array);
        found.extend(items.into_iter().flatten().filter_map(content_block));
    }
    found.into_iter().map(Block::File).collect()
}

fn content_block(block: &Value) -> Option<FileReference> {
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    // Anthropic puts the data into `source`, MCP beside the type.
    let holder = block.get("source").unwrap_or(block);
    let media_type = text(holder, "media_type")
        .or_else(|| text(holder, "mimeType"))
        .or_else(|| text(holder, "mime"));
    let name = text(block, "name").or_else(|| text(block, "filename"));
    if let Some(data) = text(holder, "data").or_else(|| text(holder, "blob")) {
        return Some(encoded_file(name.as_deref(), media_type.as_deref(), &data));
    }
    let url = text(holder, "url").filter(|_| text(block, "type").is_some_and(|t| t != "text"))?;
    Some(file_reference(&File { name, media_type, url: Some(url), text: None }))
}

fn encoded_file(name: Option<&str>, media_type: Option<&str>, data: &str) -> FileReference {
    let is_raster = media_type.is_some_and(|kind| RASTER_TYPES.contains(&kind));
    let is_encoded = data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
    let preview = (is_raster && is_encoded && data.len() <= MAX_PREVIEW_BYTES)
        .then(|| format!("data:{};base64,{data}", media_type.unwrap_or_default()));
    FileReference {
        name: name.map(Into::into),
        media_type: media_type.map(Into::into),
        bytes: Some(data.trim_end_matches('=').len() as u64 * 3 / 4),
        link: None,
        preview: preview.map(Arc::from),
    }
}

/// The reference block of an attached file.
pub fn file_reference(file: &File) -> FileReference {
    let url = file.url.as_deref().unwrap_or_default();
    if let Some((media_type, data)) =
        url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"))
    {
        let media_type = file.media_type.as_deref().unwrap_or(media_type);
        return encoded_file(file.name.as_deref(), Some(media_type), data);
    }
    let name = file.name.clone().or_else(|| {
        // Never use a data URL as a name.
        (!url.is_empty() && !url.starts_with("data:")).then(|| url.to_owned())
    });
    FileReference {
        name,
        media_type: file.media_type.clone(),
        bytes: file.text.as_ref().map(|text| text.len() as u64),
        link: safe_link(url),
        preview: None,
    }
}
