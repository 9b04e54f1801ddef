//! An independent reader of the AI SDK's messages and streams: plain JSON values, and for streams
//! the rules of the SDK's reducer.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// A part of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedPart {
    Text(String),
    Reasoning(String),
    /// Call id, tool, state, and result.
    Tool(String, String, String, Value),
    /// Any other part: its kind and one of its fields.
    Other(String, String),
}

/// The messages of a document.
pub fn document(path: &Path) -> Vec<Value> {
    let whole: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let list = if whole.is_array() { whole } else { whole["messages"].clone() };
    list.as_array().unwrap().clone()
}

/// The chunks of a stream.
pub fn chunks(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(parse).collect()
}

/// Parses JSON that may contain half of a surrogate pair.
fn parse(text: &str) -> Value {
    let mut text = text.to_owned();
    for unit in 0xD800..0xE000 {
        for escape in [format!("\\u{unit:04x}"), format!("\\u{unit:04X}")] {
            if text.contains(&escape) && serde_json::from_str::<Value>(&text).is_err() {
                text = text.replace(&escape, &format!("<half {unit:04x}>"));
            }
        }
    }
    serde_json::from_str(&text).unwrap()
}

fn joined(text: &str) -> String {
    let halves = text.replace("<half d83d><half de00>", "😀");
    halves.replace("<half ", "<")
}

pub fn expected_parts(parts: &[Value]) -> Vec<ExpectedPart> {
    parts.iter().filter_map(expected_part).collect()
}

fn expected_part(part: &Value) -> Option<ExpectedPart> {
    let text = |name: &str| part[name].as_str().unwrap_or_default().to_owned();
    let kind = text("type");
    Some(match &*kind {
        "step-start" => return None,
        "text" | "reasoning" if text("text").trim().is_empty() => {
            // Redacted reasoning counts although it has no text.
            let metadata = part["providerMetadata"].to_string();
            let hidden = kind == "reasoning"
                && ["redactedData", "EncryptedContent", "ignature"]
                    .iter()
                    .any(|n| metadata.contains(n));
            return hidden.then(|| ExpectedPart::Reasoning(String::new()));
        }
        "text" => ExpectedPart::Text(joined(&text("text"))),
        "reasoning" => ExpectedPart::Reasoning(text("text")),
        kind if kind == "dynamic-tool" || kind.starts_with("tool-") => {
            let tool = kind.strip_prefix("tool-").map_or(text("toolName"), str::to_owned);
            let given = [&part["output"], &part["errorText"]];
            let given = given.into_iter().find(|value| !value.is_null()).cloned();
            let mut state = text("state");
            if part["preliminary"] == true {
                state = "preliminary".to_owned();
            }
            ExpectedPart::Tool(text("toolCallId"), tool, state, given.unwrap_or_default())
        }
        "file" | "reasoning-file" => ExpectedPart::Other("file".to_owned(), text("url")),
        "source-url" => ExpectedPart::Other("source".to_owned(), text("url")),
        "source-document" => ExpectedPart::Other("source".to_owned(), text("title")),
        "steering-message" => ExpectedPart::Other(
            "steering".to_owned(),
            part["parts"][0]["text"].as_str()?.to_owned(),
        ),
        kind => ExpectedPart::Other(kind.to_owned(), part["data"].to_string()),
    })
}

/// Reduces a stream to messages: their ids and parts, in order.
pub fn reduced(chunks: &[Value]) -> Vec<(String, Vec<Value>)> {
    let mut messages: Vec<(String, Vec<Value>)> = Vec::new();
    let mut open: BTreeMap<String, usize> = BTreeMap::new();
    for chunk in chunks {
        let text = |name: &str| chunk[name].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        if kind == "start" || messages.is_empty() {
            let id = text("messageId");
            if messages.last().is_none_or(|(held, _)| *held != id) {
                messages.push((id, Vec::new()));
                open.clear();
            }
        }
        let parts = &mut messages.last_mut().unwrap().1;
        let call = text("toolCallId");
        let tool = parts.iter().rposition(|part| part["toolCallId"] == *call && !call.is_empty());
        match &*kind {
            "start-step" => parts.push(json!({"type": "step-start"})),
            "reset-step" => {
                let kept = parts.iter().rposition(|part| part["type"] == "step-start");
                parts.truncate(kept.map_or(0, |at| at + 1));
            }
            "text-start" | "reasoning-start" => {
                let voice = kind.trim_end_matches("-start");
                open.insert(format!("{voice} {}", text("id")), parts.len());
                parts.push(json!({"type": voice, "text": ""}));
            }
            "text-delta" | "reasoning-delta" => {
                let at = open[&format!("{} {}", kind.trim_end_matches("-delta"), text("id"))];
                let grown = parts[at]["text"].as_str().unwrap().to_owned() + &text("delta");
                parts[at]["text"] = Value::from(grown);
            }
            "tool-input-start" | "tool-input-available" | "tool-input-error" => {
                let at = tool.unwrap_or_else(|| {
                    let name = text("toolName");
                    parts.push(
                        json!({"type": "dynamic-tool", "toolName": name, "toolCallId": call}),
                    );
                    parts.len() - 1
                });
                let state = match &*kind {
                    "tool-input-start" => "input-streaming",
                    "tool-input-available" => "input-available",
                    _ => "output-error",
                };
                parts[at]["state"] = Value::from(state);
                parts[at]["errorText"] = chunk["errorText"].clone();
            }
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                let Some(at) = tool else { continue };
                parts[at]["state"] = Value::from(kind.trim_start_matches("tool-"));
                parts[at]["output"] = chunk["output"].clone();
                parts[at]["errorText"] = chunk["errorText"].clone();
                parts[at]["preliminary"] = chunk["preliminary"].clone();
            }
            "source-url" | "source-document" | "file" | "reasoning-file" | "custom"
            | "steering-message" => parts.push(chunk.clone()),
            kind if kind.starts_with("data-") && chunk["transient"] != true => {
                let same = |part: &Value| part["type"] == *kind && part["id"] == chunk["id"];
                match parts.iter().position(same).filter(|_| chunk["id"].is_string()) {
                    Some(at) => parts[at]["data"] = chunk["data"].clone(),
                    None => parts.push(chunk.clone()),
                }
            }
            _ => {}
        }
        if let Some(metadata) = chunk.get("providerMetadata")
            && let Some(at) = open.get(&format!("reasoning {}", text("id")))
            && kind.starts_with("reasoning-")
        {
            parts[*at]["providerMetadata"] = metadata.clone();
        }
    }
    messages
}
