//! What we send to the agent. Every line that goes out is made here, so that a test can hold all of
//! them against the schema of the protocol.

use std::path::Path;

use serde_json::{Value, json};

use crate::protocol::PromptImage;
use crate::wire::RequestId;

/// The version of the protocol that we speak.
pub const PROTOCOL_VERSION: u64 = 1;

/// Lines that go to the agent's standard input in one write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outgoing {
    pub lines: Vec<String>,
    /// The queued message that these lines deliver, if they do.
    pub prompt: Option<u64>,
    /// What is recorded instead of the lines, if they hold secrets.
    pub recorded: Option<String>,
}

impl Outgoing {
    pub fn line(message: &Value) -> Outgoing {
        Outgoing { lines: vec![message.to_string()], ..Outgoing::default() }
    }

    /// A line that starts MCP servers. Only their names are recorded: what starts them, their
    /// environment and their headers may be secret.
    pub fn with_servers(mut message: Value) -> Outgoing {
        let sent = message.to_string();
        let recorded = hide_secrets(&mut message).then(|| message.to_string());
        Outgoing { lines: vec![sent], prompt: None, recorded }
    }
}

/// Leaves of MCP servers only their names, wherever they stand, and removes the vendor's own fields
/// (`_meta`), in which clients pass keys. True if there was anything to hide.
pub fn hide_secrets(message: &mut Value) -> bool {
    let Some(params) = message.get_mut("params") else { return false };
    let mut is_changed = false;
    if let Some(params) = params.as_object_mut() {
        is_changed = params.remove("_meta").is_some();
    }
    let mut rest = vec![params];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(servers) = fields.get_mut("mcpServers") {
                    is_changed |= *servers != json!([]);
                    *servers = server_names(servers);
                }
                rest.extend(
                    fields.iter_mut().filter(|(name, _)| *name != "mcpServers").map(|(_, one)| one),
                );
            }
            Value::Array(all) => rest.extend(all),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    is_changed
}

fn server_names(servers: &Value) -> Value {
    match servers {
        Value::Array(all) => {
            let name = |server: &Value| json!({"name": server.get("name")});
            Value::Array(all.iter().map(name).collect())
        }
        Value::Object(all) => json!(all.keys().collect::<Vec<_>>()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Value::Null,
    }
}

/// A file of the project that a message mentions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLink {
    /// As it stands in the message.
    pub name: String,
    pub uri: String,
}

/// The blocks of a message. The first one is what the person typed, and nothing else: recordings of
/// the agent are matched by it.
pub fn blocks(text: &str, links: &[FileLink], images: &[PromptImage]) -> Value {
    let mut blocks = Vec::new();
    // Models refuse empty text, and a picture may say it all.
    if !text.is_empty() {
        blocks.push(json!({"type": "text", "text": text}));
    }
    let link =
        |link: &FileLink| json!({"type": "resource_link", "name": link.name, "uri": link.uri});
    let image = |image: &PromptImage| json!({"type": "image", "mimeType": image.media_type, "data": image.data});
    blocks.extend(links.iter().map(link));
    blocks.extend(images.iter().map(image));
    Value::Array(blocks)
}

fn request(id: &RequestId, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": raw(id), "method": method, "params": params})
}

fn response(id: &RequestId, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": raw(id), "result": result})
}

/// An id as it is written on the wire.
pub fn raw(id: &RequestId) -> Value {
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

pub fn authenticate(id: &RequestId, method: &str) -> Value {
    request(id, "authenticate", json!({"methodId": method}))
}

pub fn new_session(id: &RequestId, folder: &Path, servers: &[Value]) -> Value {
    request(id, "session/new", json!({"cwd": folder, "mcpServers": servers}))
}

/// How an agent goes on with an earlier session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Continue {
    /// `session/resume`: without repeating the history.
    Resume,
    /// `session/load`: with it.
    Load,
}

pub fn continue_session(
    id: &RequestId,
    how: Continue,
    session: &str,
    folder: &Path,
    servers: &[Value],
) -> Value {
    let method = match how {
        Continue::Resume => "session/resume",
        Continue::Load => "session/load",
    };
    request(id, method, json!({"sessionId": session, "cwd": folder, "mcpServers": servers}))
}

pub fn prompt(id: &RequestId, session: &str, blocks: &Value) -> Value {
    request(id, "session/prompt", json!({"sessionId": session, "prompt": blocks}))
}

/// A message into the turn that runs, for agents that offer it. If the turn has ended by then, the
/// agent says so and the message is sent as a prompt.
pub fn steering(id: &RequestId, session: &str, blocks: &Value) -> Value {
    let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
    let params = json!({"sessionId": session, "prompt": blocks, "_meta": meta});
    request(id, "_session/steering", params)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let server = json!({"name": "db", "env": [{"name": "KEY", "value": "s3cret"}]});
        for params in [
            json!({"mcpServers": [server]}),
            json!({"mcpServers": {"db": server}}),
            json!({"nested": [{"mcpServers": [server, "s3cret", 7]}]}),
            json!({"mcpServers": "s3cret"}),
            json!({"_meta": {"api-key": "s3cret"}}),
            json!([{"mcpServers": [server]}]),
        ] {
            let mut message = json!({"id": 1, "method": "session/new", "params": params});
            assert!(hide_secrets(&mut message));
            let text = message.to_string();
            assert!(!text.contains("s3cret"), "{text}");
        }
        for params in [json!([]), json!("x"), json!(7), json!(null), json!({"mcpServers": []})] {
            let mut message = json!({"id": 1, "method": "session/new", "params": params});
            assert!(!hide_secrets(&mut message), "{message}");
        }
        assert!(!hide_secrets(&mut json!([1, 2])));
    }
}
