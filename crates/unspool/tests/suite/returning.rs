//! What left comes back: a session that was exported in a form that Unspool reads, and imported
//! from it, is exported as the same again. What is not the same is listed here, with why.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use unspool_core::document::settle_as_file;
use unspool_core::json::Json;
use unspool_core::part::{Agent, Body, Part};
use unspool_core::session::Transcript;
use unspool_render::project::uimessage::{self, stream};
use unspool_render::project::{Options, Projection, Sdk};
use unspool_sources::gather::Gathering;
use unspool_sources::read::document::Document;
use unspool_sources::read::events::Events;

use crate::case::{all_cases, assert_none, name, root};
use crate::projections::projected;
use crate::thoughtflow::transcripts;

/// The sessions that a text tells of, as they are read from a file.
fn gathered(text: &str, file: &str) -> Gathering {
    let mut gathering = Gathering::default();
    let (path, bytes) = (Path::new(file), text.as_bytes());
    let read = if file.ends_with(".sse") {
        gathering.read(path, Events::new(bytes), &mut |_| {})
    } else {
        gathering.read(path, Document::new(bytes), &mut |_| {})
    };
    read.unwrap_or_else(|error| panic!("{file}: {error}\n{text}"));
    gathering
}

fn returned(text: &str, file: &str) -> Transcript {
    let gathering = gathered(text, file);
    let [session] = &gathering.sessions[..] else { panic!("{file}: one session\n{text}") };
    assert_eq!((session.warnings.len(), session.ledger.unreadable), (0, 0), "{file}");
    let mut transcript = session.transcript();
    settle_as_file(&mut transcript);
    transcript
}

/// Where two values differ.
fn differences(path: &str, one: &Value, other: &Value, out: &mut Vec<(String, String)>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let (one, other) = (one.get(name), other.get(name));
                match (one, other) {
                    (Some(one), Some(other)) => {
                        differences(&format!("{path}.{name}"), one, other, out);
                    }
                    _ => out.push((format!("{path}.{name}"), shown(one, other))),
                }
            }
        }
        (Value::Array(all), Value::Array(others)) if all.len() == others.len() => {
            for (one, other) in all.iter().zip(others) {
                differences(&format!("{path}[]"), one, other, out);
            }
        }
        _ if one == other => {}
        _ => out.push((path.to_owned(), shown(Some(one), Some(other)))),
    }
}

fn shown(one: Option<&Value>, other: Option<&Value>) -> String {
    let cut = |value: Option<&Value>| {
        let text = value.map_or("nothing".to_owned(), Value::to_string);
        text.chars().take(400).collect::<String>()
    };
    format!("{} → {}", cut(one), cut(other))
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

// ── ThoughtFlow ─────────────────────────────────────────────────────────────────────────────────

/// Ids are made of what a source calls things, and a document is another source: each id becomes
/// the number under which it comes first, so that the same things must still refer to each other.
fn numbered(mut document: Value) -> Value {
    let mut known = BTreeMap::new();
    let mut number = |id: &mut Value| {
        let next = known.len();
        let number = *known.entry(id.as_str().unwrap().to_owned()).or_insert(next);
        *id = Value::from(number);
    };
    number(&mut document["session_id"]);
    for run in document["conversations"].as_array_mut().unwrap() {
        number(&mut run["conversation_id"]);
        for step in run["steps"].as_array_mut().unwrap() {
            match step.get_mut("depends_on") {
                Some(Value::Array(all)) => all.iter_mut().for_each(&mut number),
                Some(one) => number(one),
                None => {}
            }
            number(&mut step["step_id"]);
        }
    }
    document
}

/// What is kept of whose session it was: it stands in the model calls again.
fn is_kept(part: &Part) -> bool {
    matches!(&part.body, Body::Data(data) if data.kind == "thoughtflow-session")
}

/// Every part's kind and words, in order; not what only says how a turn ended.
fn told_parts(transcript: &Transcript) -> Vec<(&'static str, String)> {
    let mut transcript = transcript.clone();
    for turn in &mut transcript.turns {
        turn.parts.retain(|part| !part.evidence.is_empty());
    }
    told(&transcript)
}

/// Every part's kind and words, in order.
fn told(transcript: &Transcript) -> Vec<(&'static str, String)> {
    let mut told = Vec::new();
    for turn in &transcript.turns {
        let parts = turn.parts.iter().filter(|part| !is_kept(part)).map(|part| &part.body);
        for body in turn.user.iter().chain(parts) {
            let words = match body {
                Body::Text(text) => text.text.clone(),
                Body::Reasoning(reasoning) => {
                    format!("{:?} {}", reasoning.signature, reasoning.text)
                }
                // White space between the pieces of JSON says nothing.
                Body::Tool(tool) => format!(
                    "{} {} {:?} {:?} {:?}",
                    tool.name,
                    tool.call_id,
                    tool.state,
                    tool.input.as_ref().map(Json::value),
                    tool.output
                ),
                Body::Agent(agents) => {
                    let one = |agent: &Agent| {
                        format!("{} {} {} {:?}", agent.id, agent.name, agent.task, agent.state)
                    };
                    agents.agents.iter().map(one).collect()
                }
                Body::Interjection(said) => said.text.clone(),
                Body::Notice(notice) => format!("{} {}", notice.code, notice.text),
                Body::Error(failure) => failure.text.clone(),
                Body::Compaction(compaction) => compaction.summary.clone(),
                Body::ContextInfo(info) => info.text.clone(),
                Body::Data(data) => format!("{} {}", data.kind, data.payload.value()),
                other => format!("{other:?}"),
            };
            told.push((body.kind().name(), words));
        }
    }
    told
}

#[test]
fn thoughtflow_documents_come_back() {
    let form = Projection::named("thoughtflow").unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for case in all_cases() {
        for transcript in transcripts(&case) {
            let first = projected(form, &transcript, &Options::default());
            let back = returned(&first, "document.json");
            let second = projected(form, &back, &Options::default());
            let mut all = Vec::new();
            differences("", &numbered(read(&first)), &numbered(read(&second)), &mut all);
            wrong.extend(all.into_iter().take(4).map(|(path, what)| {
                format!("{} {path}: {what}", case.strip_prefix(root()).unwrap().display())
            }));
            let (expected, found) = (told(&transcript), told(&back));
            if expected != found {
                let at = expected.iter().zip(&found).position(|(one, other)| one != other);
                let at = at.unwrap_or(expected.len().min(found.len()));
                wrong.push(format!(
                    "{} part {at}: {:?} → {:?}",
                    case.strip_prefix(root()).unwrap().display(),
                    expected.get(at),
                    found.get(at)
                ));
            }
            seen += expected.len();
        }
    }
    assert!(seen > 2000, "{seen}");
    assert_none(wrong);
}

// ── Messages ────────────────────────────────────────────────────────────────────────────────────

#[test]
fn messages_come_back() {
    let form = Projection::named("uimessage").unwrap();
    let mut wrong: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for case in all_cases() {
        for transcript in transcripts(&case) {
            for sdk in [Sdk::Common, Sdk::Seven] {
                let options = Options { sdk, ..Options::default() };
                let first = projected(form, &transcript, &options);
                if read(&first) == Value::Array(Vec::new()) {
                    continue;
                }
                let back = returned(&first, "chat.json");
                let second = projected(form, &back, &options);
                let mut all = Vec::new();
                differences("", &read(&first), &read(&second), &mut all);
                for (path, what) in all {
                    let held = wrong.entry(path).or_insert((0, format!("{}: {what}", name(&case))));
                    held.0 += 1;
                }
            }
        }
    }
    assert_none(wrong.into_iter().map(|(path, what)| format!("{path} {what:?}")).collect());
}

/// A stream of a message tells the same parts as the message itself.
#[test]
fn streams_of_messages_come_back_as_the_messages_do() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for case in all_cases() {
        for transcript in transcripts(&case) {
            for turn in transcript.turns.iter().filter(|turn| !turn.parts.is_empty()) {
                for sdk in [Sdk::Common, Sdk::Seven] {
                    let message = uimessage::reply(&transcript.session, turn, sdk);
                    let document = serde_json::to_string(&[&message]).unwrap();
                    let chunks = stream::whole(message, sdk);
                    let mut events: String = chunks.iter().map(stream::Chunk::event).collect();
                    events.push_str(stream::DONE);
                    let kept = returned(&document, "chat.json");
                    let streamed = returned(&events, "chat.sse");
                    // A stream says how its turn ended, and a message does not.
                    let (kept, streamed) = (told_parts(&kept), told_parts(&streamed));
                    seen += kept.len();
                    if kept != streamed {
                        let at = kept.iter().zip(&streamed).position(|(one, other)| one != other);
                        let at = at.unwrap_or(kept.len().min(streamed.len()));
                        wrong.push(format!(
                            "{} {sdk:?} turn {} part {at}: {:?} → {:?}",
                            name(&case),
                            turn.number,
                            kept.get(at),
                            streamed.get(at)
                        ));
                    }
                }
            }
        }
    }
    assert!(seen > 2000, "{seen}");
    assert_none(wrong);
}
