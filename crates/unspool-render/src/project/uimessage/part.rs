//! Parts of messages, as the SDK writes them.

use serde::Serialize;
use serde_json::{Value, json};
use unspool_core::document::BodyDocument;
use unspool_core::id::PartId;
use unspool_core::json::Json;
use unspool_core::part::{
    Body, Data, File, Interjection, Part, Reasoning, SourceLink, Text, signature_name,
};
use unspool_core::session::{Session, Turn};

use super::kept::{AGENT, is_system};
use super::tool;
use crate::project::Sdk;

/// A part. Which fields there are depends on what it is: a field that a validator does not expect
/// is taken away, or is an error where it is null.
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
    /// What was written so far of an input that is not whole.
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

/// What the user said: text and files (R-001-06), and of an application's own messages everything.
pub fn said(session: &Session, turn: &Turn) -> Vec<UiPart> {
    let bodies = turn.user.iter().enumerate().filter(|(_, body)| is_said(session, body));
    let parts = bodies.map(|(nth, body)| match body {
        Body::Text(text) => UiPart { text: Some(text.text.clone()), ..UiPart::new("text") },
        Body::File(file) => UiPart {
            filename: file.name.clone(),
            ..self::file(file).unwrap_or_else(|| named(file))
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

/// The parts of the reply, with the steps that they were made in.
pub fn told(session: &Session, turn: &Turn, sdk: Sdk) -> Vec<UiPart> {
    let mut parts = beside(session, turn);
    let mut step = None;
    let (mut in_step, mut called) = (false, false);
    for part in turn.parts.iter().filter(|part| !is_system(session, part)) {
        // Without a step before it, calls and results would fall together into one. What no model
        // call made stands in the one that follows it, as long as it made no calls.
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
        parts.push(one(session, part, sdk));
    }
    if !in_step && !parts.is_empty() {
        parts.insert(0, UiPart::new("step-start"));
    }
    parts
}

/// What a model makes: it stands in a step.
fn is_of_model(body: &Body) -> bool {
    matches!(
        body,
        Body::Text(_) | Body::Reasoning(_) | Body::Tool(_) | Body::File(_) | Body::Source(_)
    )
}

/// What came with a prompt and is neither text nor file stands before the reply: a message of the
/// user has no place for it (R-001-06), but for an application's own.
fn beside(session: &Session, turn: &Turn) -> Vec<UiPart> {
    let bodies = turn.user.iter().enumerate().filter(|(_, body)| !is_said(session, body));
    let name = |nth: usize| format!("{}-user-{nth}", turn.id);
    bodies.map(|(nth, body)| as_data(session, &name(nth), body, Sdk::Common)).collect()
}

fn is_said(session: &Session, body: &Body) -> bool {
    matches!(body, Body::Text(_) | Body::File(_)) || session.agent == AGENT
}

fn one(session: &Session, part: &Part, sdk: Sdk) -> UiPart {
    let id = part.id;
    match &part.body {
        Body::Text(text) => said_text(text, sdk),
        Body::Reasoning(reasoning) => thought(session, id, reasoning),
        Body::Tool(tool) => tool::part(session, id, tool, sdk),
        Body::File(told) => {
            file(told).unwrap_or_else(|| as_data(session, &id.to_string(), &part.body, sdk))
        }
        Body::Source(source) => cited(id, source),
        Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => as_data(session, &id.to_string(), &part.body, sdk),
    }
}

fn state(open: bool) -> Option<&'static str> {
    Some(if open { "streaming" } else { "done" })
}

fn said_text(text: &Text, sdk: Sdk) -> UiPart {
    let citations = (sdk >= Sdk::Seven && !text.citations.is_empty()).then_some(&text.citations);
    UiPart {
        text: Some(text.text.clone()),
        state: state(text.open),
        citations: citations.filter(|all| all.iter().all(is_citation)).cloned(),
        ..UiPart::new("text")
    }
}

/// Citations are kept as their source wrote them: only the SDK's own are its citations.
fn is_citation(citation: &Json) -> bool {
    citation.value()["source"]["type"] == "source"
}

fn thought(session: &Session, id: PartId, reasoning: &Reasoning) -> UiPart {
    let signature = reasoning.signature.as_ref().map(|signature| {
        // A name that reaches into a program's prototypes is no provider's.
        let told = reasoning.signer.as_deref().filter(|name| !tool::REACHES.contains(name));
        let signer = told.unwrap_or_else(|| provider(&session.agent));
        json!({ signer: { signature_name(signer, reasoning.redacted): signature } })
    });
    UiPart {
        id: Some(id.to_string()),
        text: Some(reasoning.text.clone()),
        state: state(reasoning.open),
        provider_metadata: signature,
        ..UiPart::new("reasoning")
    }
}

/// The provider whose models an agent runs, where its log says nothing else. Where nobody knows who
/// signed, the signature is kept, and no provider is told that it is its own.
fn provider(agent: &str) -> &'static str {
    match agent {
        "claude-code" => "anthropic",
        "codex" => "openai",
        "gemini" => "google",
        _ => OURS,
    }
}

/// What we ourselves say of a part.
pub(super) const OURS: &str = "unspool";

/// A file as something that can be fetched: an address, or its content itself.
fn file(file: &File) -> Option<UiPart> {
    let media_type = file.media_type.clone();
    let (url, usual) = match (&file.url, &file.text) {
        (Some(url), _) if is_address(url) => (url.clone(), "application/octet-stream"),
        (Some(path), None) if path.starts_with('/') => {
            (format!("file://{}", in_address(path)), "application/octet-stream")
        }
        (_, Some(text)) => {
            (format!("data:text/plain;charset=utf-8,{}", in_address(text)), "text/plain")
        }
        (_, None) => return None,
    };
    let media_type = Some(media_type.unwrap_or_else(|| usual.to_owned()));
    Some(UiPart { media_type, url: Some(url), ..UiPart::new("file") })
}

/// A file of which only the name is known.
fn named(file: &File) -> UiPart {
    let name = file.name.as_deref().or(file.url.as_deref()).unwrap_or("without a name");
    UiPart { text: Some(format!("[file: {name}]")), ..UiPart::new("text") }
}

fn is_address(url: &str) -> bool {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Text inside an address.
fn in_address(text: &str) -> String {
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

fn cited(id: PartId, source: &SourceLink) -> UiPart {
    let quote = source.quote.as_ref().map(|quote| json!({ OURS: { "quote": quote } }));
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

/// Whatever the SDK has no part for, whole and at its place.
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
        return given(id, data);
    }
    let document = serde_json::to_string(&BodyDocument { agent: &session.agent, body });
    let document = document.ok().and_then(|text| Json::parse(&text));
    UiPart {
        id: Some(id.to_owned()),
        data: Some(document.as_ref().map_or_else(|| Json::from(Value::Null), tool::safe)),
        ..UiPart::new(format!("data-{}", body.kind().name()))
    }
}

/// Data that a source gave. A `data-*` part of an application is one again.
fn given(id: &str, data: &Data) -> UiPart {
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
