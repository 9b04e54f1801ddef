//! Our parts as parts of SDK messages.

use rustc_hash::FxHashSet;
use serde::Serialize;
use serde_json::{Map, Value, json};
use unspool_model::agent::{AgentTraits, Provider, signature_field};
use unspool_model::document::BodyDocument;
use unspool_model::id::PartId;
use unspool_model::json::Json;
use unspool_model::part::{
    Body, Data, Failure, File, Interjection, Part, Reasoning, SourceLink, Text,
};
use unspool_model::session::{Session, Turn, TurnState};

use super::original::{AGENT, is_system};
use super::tool;
use crate::project::Sdk;

/// A part. Absent fields are omitted: validators strip unexpected fields and reject nulls.
#[derive(Serialize, Clone, PartialEq, Debug, Default)]
#[serde(rename_all = "camelCase")]
pub struct UiPart {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_executed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// The text of a partial input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preliminary: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub citations: Option<Vec<Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_metadata: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_provider_metadata: Option<Value>,
}

impl UiPart {
    pub fn new(kind: impl Into<String>) -> UiPart {
        UiPart { kind: kind.into(), ..UiPart::default() }
    }
}

/// The user's parts: text and files (R-001-06); for imported AI SDK messages, all parts.
pub fn user_parts(session: &Session, turn: &Turn) -> Vec<UiPart> {
    let bodies = turn.user.iter().enumerate().filter(|(_, body)| is_user_part(session, body));
    let parts = bodies.map(|(nth, body)| match body {
        Body::Text(text) => UiPart { text: Some(text.text.clone()), ..UiPart::new("text") },
        Body::File(file) => UiPart {
            filename: file.name.clone(),
            ..self::file(file).unwrap_or_else(|| file_placeholder(file))
        },
        Body::Reasoning(_)
        | Body::Tool(_)
        | Body::Source(_)
        | Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => as_data(session, &format!("{}-user-{nth}", turn.id), body, Sdk::Common),
    });
    parts.collect()
}

/// The parts of the reply, with step markers.
pub fn content(session: &Session, turn: &Turn, sdk: Sdk) -> Vec<UiPart> {
    let mut parts = prompt_data_parts(session, turn);
    let mut step = None;
    let (mut in_step, mut called) = (false, false);
    let mut call_ids = FxHashSet::default();
    for part in turn.parts.iter().filter(|part| !is_system(session, part)) {
        // Without a step marker the SDK would merge calls and results of several steps. Parts
        // outside a model call join the next one, unless tools were called already.
        let begins = match (part.step, step) {
            (Some(now), Some(before)) => now != before,
            (Some(_), None) => !in_step || called,
            (None, _) => !in_step && is_of_model(&part.body),
        };
        if begins {
            parts.push(UiPart::new("step-start"));
            (in_step, called) = (true, false);
        }
        called |= matches!(part.body, Body::Tool(_));
        step = part.step.or(step);
        let mut reply = reply_part(session, part, sdk);
        // Clients find a call of a message by its id. Some providers restart call ids in each of
        // its steps: a call whose id is taken keeps the id that is unique in the session.
        if let (Body::Tool(tool), Some(id)) = (&part.body, &reply.tool_call_id)
            && !call_ids.insert(id.clone())
        {
            reply.tool_call_id = Some(tool.call_id.clone());
        }
        parts.push(reply);
    }
    // The first model call of a running turn may still come, behind what is there.
    if !in_step && !parts.is_empty() && turn.state != TurnState::Running {
        parts.insert(0, UiPart::new("step-start"));
    }
    parts
}

/// Model output, which belongs to a step.
fn is_of_model(body: &Body) -> bool {
    matches!(
        body,
        Body::Text(_) | Body::Reasoning(_) | Body::Tool(_) | Body::File(_) | Body::Source(_)
    )
}

/// Prompt parts that are neither text nor file come before the reply: user messages cannot hold
/// them (R-001-06), except imported AI SDK messages.
fn prompt_data_parts(session: &Session, turn: &Turn) -> Vec<UiPart> {
    let bodies = turn.user.iter().enumerate().filter(|(_, body)| !is_user_part(session, body));
    let name = |nth: usize| format!("{}-user-{nth}", turn.id);
    bodies.map(|(nth, body)| as_data(session, &name(nth), body, Sdk::Common)).collect()
}

fn is_user_part(session: &Session, body: &Body) -> bool {
    matches!(body, Body::Text(_) | Body::File(_)) || session.agent == AGENT
}

fn reply_part(session: &Session, part: &Part, sdk: Sdk) -> UiPart {
    let id = part.id;
    match &part.body {
        Body::Text(text) => text_part(text, sdk),
        Body::Reasoning(reasoning) => reasoning_part(session, id, reasoning),
        Body::Tool(tool) => tool::part(session, id, tool, sdk),
        Body::File(content) => {
            file(content).unwrap_or_else(|| as_data(session, &id.to_string(), &part.body, sdk))
        }
        Body::Source(source) => source_part(id, source),
        Body::Error(failure) => error_part(failure),
        Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Data(_) => as_data(session, &id.to_string(), &part.body, sdk),
    }
}

fn state(open: bool) -> Option<&'static str> {
    Some(if open { "streaming" } else { "done" })
}

fn text_part(text: &Text, sdk: Sdk) -> UiPart {
    let citations = (sdk >= Sdk::Seven && !text.citations.is_empty()).then_some(&text.citations);
    UiPart {
        text: Some(text.text.clone()),
        state: state(text.open),
        citations: citations.filter(|all| all.iter().all(is_citation)).cloned(),
        ..UiPart::new("text")
    }
}

/// An error in the model's place. Clients of the SDK show text and skip data parts that they do not
/// know, so it is text; the metadata of its message has `error: true` (R-001-23). What text cannot
/// say is under our key.
fn error_part(failure: &Failure) -> UiPart {
    let mut error = Map::new();
    error.extend(failure.code.as_ref().map(|code| ("code".to_owned(), json!(code))));
    error.extend(failure.status.map(|status| ("status".to_owned(), json!(status))));
    UiPart {
        text: Some(failure.text.clone()),
        state: state(false),
        provider_metadata: Some(json!({ OUR_KEY: { "error": error } })),
        ..UiPart::new("text")
    }
}

/// Citations are stored as the source wrote them: only those of the SDK have its format.
fn is_citation(citation: &Json) -> bool {
    citation.value()["source"]["type"] == "source"
}

/// The signature under the name of its provider.
pub fn signature_metadata(agent: &str, reasoning: &Reasoning) -> Option<Value> {
    let signature = reasoning.signature.as_ref()?;
    // No provider has the name of a prototype key.
    let content = reasoning.signer.as_deref().filter(|name| !tool::PROTOTYPE_KEYS.contains(name));
    let signer = content.unwrap_or_else(|| provider(agent));
    Some(json!({ signer: { signature_field(signer, reasoning.redacted): signature } }))
}

fn reasoning_part(session: &Session, id: PartId, reasoning: &Reasoning) -> UiPart {
    UiPart {
        id: Some(id.to_string()),
        text: Some(reasoning.text.clone()),
        state: state(reasoning.open),
        provider_metadata: signature_metadata(&session.agent, reasoning),
        ..UiPart::new("reasoning")
    }
}

/// The default provider of an agent. A signature of unknown origin is kept under our own key, so
/// that no provider takes it for its own.
fn provider(agent: &str) -> &'static str {
    AgentTraits::of(agent).provider.map_or(OUR_KEY, Provider::ai_sdk_key)
}

/// Our key in provider metadata.
pub(super) const OUR_KEY: &str = "unspool";

/// A file as a URL: an address, or a data URL with its content.
fn file(file: &File) -> Option<UiPart> {
    let media_type = file.media_type.clone();
    let (url, usual) = match (&file.url, &file.text) {
        (Some(url), _) if is_url(url) => (url.clone(), "application/octet-stream"),
        (Some(path), None) if path.starts_with('/') => {
            (format!("file://{}", percent_encode(path)), "application/octet-stream")
        }
        (_, Some(text)) => {
            (format!("data:text/plain;charset=utf-8,{}", percent_encode(text)), "text/plain")
        }
        (_, None) => return None,
    };
    let media_type = Some(media_type.unwrap_or_else(|| usual.to_owned()));
    Some(UiPart { media_type, url: Some(url), ..UiPart::new("file") })
}

/// A file without content or URL: its name as text.
fn file_placeholder(file: &File) -> UiPart {
    let name = file.name.as_deref().or(file.url.as_deref()).unwrap_or("without a name");
    UiPart { text: Some(format!("[file: {name}]")), ..UiPart::new("text") }
}

fn is_url(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Percent-encodes text for a URL.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn source_part(id: PartId, source: &SourceLink) -> UiPart {
    let quote = source.quote.as_ref().map(|quote| json!({ OUR_KEY: { "quote": quote } }));
    let part = UiPart {
        source_id: Some(id.to_string()),
        title: source.title.clone(),
        provider_metadata: quote,
        ..UiPart::default()
    };
    match &source.url {
        Some(url) => UiPart { kind: "source-url".to_owned(), url: Some(url.clone()), ..part },
        None => UiPart {
            kind: "source-document".to_owned(),
            media_type: Some("text/plain".to_owned()),
            title: Some(source.title.clone().unwrap_or_default()),
            ..part
        },
    }
}

/// A part that the SDK does not have, as a whole `data-*` part.
fn as_data(session: &Session, id: &str, body: &Body, sdk: Sdk) -> UiPart {
    if let Body::Interjection(Interjection { text }) = body
        && sdk >= Sdk::Seven
    {
        return UiPart {
            id: Some(id.to_owned()),
            parts: Some(json!([{ "type": "text", "text": text }])),
            ..UiPart::new("steering-message")
        };
    }
    if let Body::Data(data) = body {
        return data_part(id, data);
    }
    let document = serde_json::to_string(&BodyDocument { agent: &session.agent, body });
    let document = document.ok().and_then(|text| Json::parse(&text));
    UiPart {
        id: Some(id.to_owned()),
        data: Some(document.as_ref().map_or_else(|| Json::from(Value::Null), tool::safe)),
        ..UiPart::new(format!("data-{}", body.kind().name()))
    }
}

/// A data part of a source. An application's `data-*` part becomes the same again.
fn data_part(id: &str, data: &Data) -> UiPart {
    #[derive(serde::Deserialize)]
    struct Own {
        #[serde(rename = "type")]
        kind: String,
        id: Option<String>,
        data: Json,
    }
    let own: Option<Own> = data.payload.read();
    match own.filter(|own| own.kind == data.kind && own.kind.starts_with("data-")) {
        Some(own) => {
            UiPart { id: own.id, data: Some(tool::safe(&own.data)), ..UiPart::new(own.kind) }
        }
        None => UiPart {
            id: Some(id.to_owned()),
            data: Some(tool::safe(&data.payload)),
            ..UiPart::new(format!("data-{}", data.kind))
        },
    }
}
