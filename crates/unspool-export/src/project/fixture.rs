//! A recording for other people's tests (R-001-32): for each turn the prompt, the stream chunk by
//! chunk, and the message that the chunks must produce.

use std::io::Write;

use serde::Serialize;

use super::uimessage::stream::{MessageChunk, encode_whole};
use super::uimessage::{UiMessage, messages};
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};

pub const PROJECTION: Projection = Projection {
    name: "fixture",
    title: "Fixture for a test",
    extension: "fixture.json",
    media_type: "application/json",
    about: "a test recording: each turn's prompt, its stream chunk by chunk, and the resulting message",
    has_notes: false,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

#[derive(Serialize)]
struct RecordedTurn {
    turn: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<UiMessage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chunks: Vec<MessageChunk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<UiMessage>,
}

fn write(
    mut stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let head = &stream.head.session;
    writeln!(out, "{{\"fixture\":1,")?;
    writeln!(out, "\"agent\":{},", serde_json::Value::from(head.agent.as_str()))?;
    writeln!(out, "\"session\":{},", serde_json::Value::from(head.agent_session_id.as_str()))?;
    write!(out, "\"turns\":[")?;
    let mut between = "\n";
    while let Some(turn) = stream.next_turn()? {
        let mut projected = messages(&stream.head.session, &turn, options.sdk);
        let message = projected.pop_if(|last| last.role == "assistant");
        let chunks = message.clone().map(|message| encode_whole(message, options.sdk));
        let recorded = RecordedTurn {
            turn: turn.number,
            prompt: projected.pop(),
            chunks: chunks.unwrap_or_default(),
            message,
        };
        out.write_all(between.as_bytes())?;
        serde_json::to_writer(&mut *out, &recorded).map_err(std::io::Error::from)?;
        between = ",\n";
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}
