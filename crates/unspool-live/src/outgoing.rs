//! What we send to the agent. Every line that goes out is made here, so that a test can hold all of
//! them against the schema of the protocol.

use std::path::Path;

use serde_json::{Value, json};

use crate::wire::RequestId;

/// The version of the protocol that we speak.
pub const PROTOCOL_VERSION: u64 = 1;

/// Lines that go to the agent's standard input in one write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outgoing {
    pub lines: Vec<String>,
    /// The queued message that these lines deliver, if they do.
    pub prompt: Option<u64>,
}

impl Outgoing {
    pub fn line(message: &Value) -> Outgoing {
        Outgoing { lines: vec![message.to_string()], prompt: None }
    }
}

fn request(id: &RequestId, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": raw(id), "method": method, "params": params})
}

fn response(id: &RequestId, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": raw(id), "result": result})
}

fn raw(id: &RequestId) -> Value {
    serde_json::from_str(id.as_json()).unwrap_or_default()
}

/// No files and no terminals: Gemini cannot create files through the client, nobody uses the rest.
pub fn initialize(id: &RequestId) -> Value {
    request(
        id,
        "initialize",
        json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientInfo": {"name": "unspool", "title": "Unspool", "version": env!("CARGO_PKG_VERSION")},
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
                "elicitation": {"form": {}},
                "session": {"compaction": {}, "notices": {}, "configOptions": {"boolean": {}}},
                "_meta": {"terminal_output": true},
            },
        }),
    )
}

pub fn new_session(id: &RequestId, folder: &Path) -> Value {
    request(id, "session/new", json!({"cwd": folder, "mcpServers": []}))
}

/// How an agent goes on with an earlier session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Continue {
    /// `session/resume`: without repeating the history.
    Resume,
    /// `session/load`: with it.
    Load,
}

pub fn continue_session(id: &RequestId, how: Continue, session: &str, folder: &Path) -> Value {
    let method = match how {
        Continue::Resume => "session/resume",
        Continue::Load => "session/load",
    };
    request(id, method, json!({"sessionId": session, "cwd": folder, "mcpServers": []}))
}

pub fn prompt(id: &RequestId, session: &str, text: &str) -> Value {
    let prompt = json!([{"type": "text", "text": text}]);
    request(id, "session/prompt", json!({"sessionId": session, "prompt": prompt}))
}

pub fn cancel(session: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
}

pub fn cancel_request(request: &RequestId) -> Value {
    json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": raw(request)}})
}

pub fn set_option(id: &RequestId, session: &str, option: &str, value: &Value) -> Value {
    let mut params = json!({"sessionId": session, "configId": option, "value": value});
    if value.is_boolean() {
        params["type"] = json!("boolean");
    }
    request(id, "session/set_config_option", params)
}

pub fn set_mode(id: &RequestId, session: &str, mode: &str) -> Value {
    request(id, "session/set_mode", json!({"sessionId": session, "modeId": mode}))
}

pub fn set_model(id: &RequestId, session: &str, model: &str) -> Value {
    request(id, "session/set_model", json!({"sessionId": session, "modelId": model}))
}

/// The answer to a permission: the id of the chosen option, or None for *cancelled*.
pub fn permission_answer(id: &RequestId, option: Option<&str>) -> Value {
    let outcome = match option {
        Some(option) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    response(id, json!({"outcome": outcome}))
}

/// What a person did with a form.
#[derive(Clone, PartialEq, Debug)]
pub enum FormReply {
    Accept(Value),
    Decline,
    Cancel,
}

pub fn form_answer(id: &RequestId, reply: FormReply) -> Value {
    response(
        id,
        match reply {
            FormReply::Accept(content) => json!({"action": "accept", "content": content}),
            FormReply::Decline => json!({"action": "decline"}),
            FormReply::Cancel => json!({"action": "cancel"}),
        },
    )
}

pub fn error(id: &RequestId, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": raw(id), "error": {"code": code, "message": message}})
}
