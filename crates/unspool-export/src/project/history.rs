//! The history with which a model would continue the session: messages in the shape of the AI SDK's
//! `ModelMessage`, each call directly followed by its result (R-000-20). Turns that were rewound
//! are left out, and what a compaction replaced is its summary.

use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};
use unspool_model::agent::own_call_id;
use unspool_model::history::{
    AssistantContent, CallResult, ModelMessage, UserContent, model_history,
};
use unspool_model::json::{Json, replace_lone_surrogates};
use unspool_model::part::{Body, Compaction, File};
use unspool_model::session::Turn;

use super::uimessage::signature_metadata;
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};

pub const PROJECTION: Projection = Projection {
    name: "history",
    title: "Model history",
    extension: "history.json",
    media_type: "application/json",
    about: "the message history to continue with a model: calls with results, compacted as the agent did",
    has_notes: false,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
enum Content<'a> {
    Text {
        text: &'a str,
    },
    File {
        filename: Option<&'a str>,
        media_type: Option<&'a str>,
        data: Option<&'a str>,
    },
    Reasoning {
        text: &'a str,
        #[serde(skip_serializing_if = "Value::is_null")]
        provider_options: Value,
    },
    ToolCall {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: Option<&'a Json>,
    },
    ToolResult {
        tool_call_id: &'a str,
        tool_name: &'a str,
        output: Output<'a>,
        #[serde(skip_serializing_if = "Value::is_null")]
        provider_options: Value,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", content = "value", rename_all = "kebab-case")]
enum Output<'a> {
    Text(&'a str),
    ErrorText(&'a str),
}

fn write(
    mut stream: SessionStream<'_>,
    _: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let mut turns: Vec<Turn> = Vec::new();
    while let Some(turn) = stream.next_turn()? {
        // Memory is bounded by what a model's context holds: a summary replaces all earlier turns.
        if !turn.abandoned && has_summary(&turn) {
            turns.clear();
        }
        turns.push(turn);
    }
    let agent = &stream.head.session.agent;
    let mut between = "[\n";
    let mut calls: Vec<AssistantContent<'_>> = Vec::new();
    for message in model_history(&turns) {
        let message = match message {
            ModelMessage::User(content) => {
                let content = content.into_iter().map(user_content).collect();
                Message { role: "user", content }
            }
            ModelMessage::Assistant(content) => {
                calls.clone_from(&content);
                let content =
                    content.into_iter().map(|one| assistant_content(agent, one)).collect();
                Message { role: "assistant", content }
            }
            ModelMessage::Results(results) => {
                let content = results.into_iter().map(|result| tool_result(agent, result, &calls));
                Message { role: "tool", content: content.collect() }
            }
        };
        out.write_all(between.as_bytes())?;
        let text = serde_json::to_string(&message).map_err(std::io::Error::from)?;
        // Readers reject lone surrogates.
        out.write_all(replace_lone_surrogates(&text).as_bytes())?;
        between = ",\n";
    }
    if between == "[\n" {
        out.write_all(b"[")?;
    }
    out.write_all(b"\n]\n")?;
    Ok(())
}

fn has_summary(turn: &Turn) -> bool {
    let mut bodies = turn.user.iter().chain(turn.parts.iter().map(|part| &part.body));
    bodies.any(
        |body| matches!(body, Body::Compaction(Compaction { summary, .. }) if !summary.is_empty()),
    )
}

fn file(file: &File) -> Content<'_> {
    Content::File {
        filename: file.name.as_deref(),
        media_type: file.media_type.as_deref(),
        data: file.url.as_deref().or(file.text.as_deref()),
    }
}

fn user_content(content: UserContent<'_>) -> Content<'_> {
    match content {
        UserContent::Text(text) | UserContent::Context(text) => Content::Text { text },
        UserContent::File(one) => file(one),
    }
}

fn assistant_content<'a>(agent: &str, content: AssistantContent<'a>) -> Content<'a> {
    match content {
        AssistantContent::Text(text) => Content::Text { text },
        AssistantContent::Reasoning(reasoning) => {
            let provider_options = signature_metadata(agent, reasoning).unwrap_or_default();
            Content::Reasoning { text: &reasoning.text, provider_options }
        }
        AssistantContent::Call(tool) => Content::ToolCall {
            tool_call_id: own_call_id(agent, &tool.call_id),
            tool_name: &tool.name,
            input: tool.input.as_ref(),
        },
        AssistantContent::File(one) => file(one),
    }
}

/// A result that no source has is marked, because it is not what the model was given.
fn tool_result<'a>(
    agent: &str,
    result: CallResult<'a>,
    calls: &[AssistantContent<'a>],
) -> Content<'a> {
    let name = calls.iter().find_map(|call| match call {
        AssistantContent::Call(tool) if tool.call_id == result.call_id => Some(tool.name.as_str()),
        AssistantContent::Call(_)
        | AssistantContent::Text(_)
        | AssistantContent::Reasoning(_)
        | AssistantContent::File(_) => None,
    });
    let output = match result.is_error {
        true => Output::ErrorText(result.text),
        false => Output::Text(result.text),
    };
    let provider_options = match result.synthetic {
        true => json!({ "unspool": { "synthetic": true } }),
        false => Value::Null,
    };
    let tool_name = name.unwrap_or_default();
    let tool_call_id = own_call_id(agent, result.call_id);
    Content::ToolResult { tool_call_id, tool_name, output, provider_options }
}
