//! The blocks of a `stream-json` capture, assembled from its deltas. Versions that stream only
//! whole blocks (1.0.x), and the CLI's own texts, come as assistant frames.

use std::path::Path;

use serde_json::Value;

use super::{Block, Kind, Lines, Messages, block, bytes_of, string};

/// The expected content of a stream.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stream {
    /// In order of first appearance. The first one may be unused: a resumed process reports its
    /// SessionStart hooks under an id that it then drops.
    pub session_ids: Vec<String>,
    /// The blocks of the main thread, in order.
    pub blocks: Vec<Block>,
    pub records: usize,
    pub unparsable: Vec<usize>,
}

/// The blocks of a capture's main thread, in order.
pub fn stream_blocks(path: &Path) -> Vec<Block> {
    stream_of(&bytes_of(path)).blocks
}

pub fn stream_of(bytes: &[u8]) -> Stream {
    let lines = Lines::of(bytes);
    let mut stream =
        Stream { records: lines.records, unparsable: lines.unparsable, ..Stream::default() };
    let mut messages = Messages::default();
    // Messages with deltas: their assistant frames only repeat them.
    let mut streamed: Vec<String> = Vec::new();
    let mut current = String::new();
    for frame in &lines.values {
        let session = string(&frame["session_id"]);
        if !session.is_empty() && !stream.session_ids.iter().any(|id| id == session) {
            stream.session_ids.push(session.to_owned());
        }
        if !frame["parent_tool_use_id"].is_null() {
            continue;
        }
        match string(&frame["type"]) {
            "stream_event" => {
                let event = &frame["event"];
                if event["type"] == "message_start" {
                    current = string(&event["message"]["id"]).to_owned();
                    streamed.push(current.clone());
                }
                take_event(&mut messages, &current, event);
                take_abandoned(&mut messages, frame);
            }
            "assistant" => {
                let id = string(&frame["message"]["id"]);
                if !streamed.iter().any(|streamed| streamed == id) {
                    messages.take_record(frame);
                }
            }
            _ => {}
        }
    }
    for message in &mut messages.seen {
        message.blocks.iter_mut().for_each(finish);
    }
    stream.blocks = messages.blocks();
    stream
}

fn take_event(messages: &mut Messages, id: &str, event: &Value) {
    let index = event["index"].as_u64().unwrap_or_default() as usize;
    let message = messages.message(id);
    match string(&event["type"]) {
        "content_block_start" => message.blocks.push(block(id, index, &event["content_block"])),
        "content_block_delta" => {
            let delta = &event["delta"];
            let grown = match string(&delta["type"]) {
                "text_delta" => string(&delta["text"]),
                "thinking_delta" => string(&delta["thinking"]),
                "input_json_delta" => string(&delta["partial_json"]),
                _ => "",
            };
            let block = message.blocks.iter_mut().find(|block| block.index == index);
            if let Some(block) = block {
                block.text.push_str(grown);
            }
        }
        _ => {}
    }
}

/// A broken stream names the first block that the agent discarded.
fn take_abandoned(messages: &mut Messages, frame: &Value) {
    let nested = &frame["event"]["abandoned_blocks"];
    let abandoned = if nested.is_null() { &frame["abandoned_blocks"] } else { nested };
    let (Some(id), Some(from)) =
        (abandoned["api_message_id"].as_str(), abandoned["from_block_index"].as_u64())
    else {
        return;
    };
    for block in &mut messages.message(id).blocks {
        block.abandoned |= block.index as u64 >= from;
    }
}

/// Parses a tool's streamed input. An incomplete one stays text.
fn finish(block: &mut Block) {
    if block.kind != Kind::Tool || block.text.is_empty() {
        return;
    }
    if let (Some(call), Ok(input)) = (&mut block.call, serde_json::from_str(&block.text)) {
        call.input = input;
        block.text.clear();
    }
}
