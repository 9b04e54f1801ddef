//! A strict reader of traces: checks the fields and values of OTLP/JSON, ids, parents and times,
//! and restores the order of a turn's parts from messages and events.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use unspool_model::session::Transcript;

use super::Item;

/// All violations of the protocol and of the semantic conventions.
pub fn problems(trace: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen_ids: Vec<&str> = Vec::new();
    let all = spans(trace);
    for span in &all {
        let fields = [
            "traceId",
            "spanId",
            "parentSpanId",
            "name",
            "kind",
            "startTimeUnixNano",
            "endTimeUnixNano",
            "attributes",
            "events",
            "status",
        ];
        let name = span["name"].as_str().unwrap();
        let strange =
            span.as_object().unwrap().keys().filter(|key| !fields.contains(&key.as_str()));
        wrong.extend(strange.map(|key| format!("{name}: unknown field {key}")));
        let id = span["spanId"].as_str().unwrap();
        if !is_hex(id, 16) || !is_hex(span["traceId"].as_str().unwrap(), 32) {
            wrong.push(format!("{name}: ids {id}, {}", span["traceId"]));
        }
        if span["traceId"] != all[0]["traceId"] || seen_ids.contains(&id) {
            wrong.push(format!("{name}: {id} stands twice, or in another trace"));
        }
        // A parent precedes its children, so there are no cycles.
        if let Some(parent) = span.get("parentSpanId")
            && !seen_ids.contains(&parent.as_str().unwrap())
        {
            wrong.push(format!("{name}: the parent {parent} is not there"));
        }
        seen_ids.push(id);
        if nanos(&span["endTimeUnixNano"]) < nanos(&span["startTimeUnixNano"]) {
            wrong.push(format!("{name} ends before it begins"));
        }
        let events = span["events"].as_array().into_iter().flatten();
        for list in events.map(|event| &event["attributes"]).chain([&span["attributes"]]) {
            list.as_array().unwrap().iter().for_each(|one| check_value(&one["value"]));
        }
        wrong.extend(conventions(span).into_iter().map(|problem| format!("{name}: {problem}")));
    }
    wrong
}

fn is_hex(id: &str, length: usize) -> bool {
    id.len() == length && id.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
}

fn nanos(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

fn check_value(value: &Value) {
    let fields = value.as_object().unwrap();
    assert!(fields.len() <= 1, "{value}");
    for (kind, own) in fields {
        match kind.as_str() {
            "stringValue" => assert!(own.is_string()),
            "boolValue" => assert!(own.is_boolean()),
            "doubleValue" => assert!(own.is_f64()),
            "intValue" => assert!(own.as_str().unwrap().parse::<i64>().is_ok()),
            "arrayValue" => own["values"].as_array().unwrap().iter().for_each(check_value),
            "kvlistValue" => own["values"].as_array().unwrap().iter().for_each(|field| {
                assert!(field["key"].is_string() && field.as_object().unwrap().len() == 2);
                check_value(&field["value"]);
            }),
            other => panic!("a value of kind {other}"),
        }
    }
}

/// Violations of the generative AI conventions.
fn conventions(span: &Value) -> Vec<String> {
    let all = attributes(span);
    let Some(operation) = all.get("gen_ai.operation.name") else {
        let preamble = span["name"] == "preamble" && span["kind"] == 1;
        return (!preamble).then(|| "no operation".to_owned()).into_iter().collect();
    };
    let (required, subject, kind): (&[&str], &str, u8) = match operation.as_str().unwrap() {
        "invoke_agent" => (&["gen_ai.provider.name"], "gen_ai.agent.name", 1),
        "chat" => (&["gen_ai.provider.name"], "gen_ai.request.model", 3),
        "execute_tool" => (&["gen_ai.tool.name", "gen_ai.tool.call.id"], "gen_ai.tool.name", 1),
        other => panic!("the operation {other}"),
    };
    let mut wrong: Vec<String> = Vec::new();
    let missing = required.iter().filter(|key| !all.contains_key(**key));
    wrong.extend(missing.map(|key| format!("{key} is missing")));
    let subject = all.get(subject).map_or("", |subject| subject.as_str().unwrap());
    let name = format!("{} {subject}", operation.as_str().unwrap());
    if span["name"] != name.trim_end() && span["name"] != name || span["kind"] != kind {
        wrong.push(format!("should be {name} of kind {kind}"));
    }
    for key in ["gen_ai.input.messages", "gen_ai.output.messages"] {
        for message in all.get(key).and_then(Value::as_array).into_iter().flatten() {
            assert!(message["role"].is_string());
            let closed = key == "gen_ai.input.messages" || message["finish_reason"].is_string();
            let parts = message["parts"].as_array().unwrap();
            if !closed || parts.is_empty() || !parts.iter().all(is_part) {
                wrong.push(format!("{key}: {message}"));
            }
        }
    }
    wrong
}

fn is_part(part: &Value) -> bool {
    match part["type"].as_str().unwrap() {
        "text" | "reasoning" | "compaction" => part["content"].is_string(),
        "tool_call" => part["name"].is_string() && part["id"].is_string(),
        "tool_call_response" => part["id"].is_string() && part.get("response").is_some(),
        "server_tool_call" => part["server_tool_call"]["type"].is_string(),
        "server_tool_call_response" => part["server_tool_call_response"]["type"].is_string(),
        "blob" => part["modality"].is_string() && part["content"].is_string(),
        "uri" => part["modality"].is_string() && part["uri"].is_string(),
        other => other.starts_with("unspool.") && part["part"].is_object(),
    }
}

pub fn spans(trace: &Value) -> Vec<&Value> {
    let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    spans.iter().collect()
}

/// The names of a span and of those above it, from the outermost one.
pub fn path<'a>(spans: &[&'a Value], span: &'a Value) -> Vec<&'a str> {
    let above = spans.iter().find(|other| other["spanId"] == span["parentSpanId"]);
    let mut path = above.map_or_else(Vec::new, |above| self::path(spans, above));
    path.push(span["name"].as_str().unwrap());
    path
}

/// Attributes as plain JSON values.
fn attributes(holder: &Value) -> BTreeMap<&str, Value> {
    let list = holder["attributes"].as_array().unwrap();
    let all: BTreeMap<&str, Value> =
        list.iter().map(|one| (one["key"].as_str().unwrap(), plain(&one["value"]))).collect();
    assert_eq!(all.len(), list.len(), "an attribute stands twice");
    all
}

fn plain(value: &Value) -> Value {
    let Some((kind, own)) = value.as_object().unwrap().iter().next() else { return Value::Null };
    match kind.as_str() {
        "intValue" => json!(own.as_str().unwrap().parse::<i64>().unwrap()),
        "arrayValue" => own["values"].as_array().unwrap().iter().map(plain).collect(),
        "kvlistValue" => {
            let fields = own["values"].as_array().unwrap().iter();
            let fields =
                fields.map(|one| (one["key"].as_str().unwrap().to_owned(), plain(&one["value"])));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        _ => own.clone(),
    }
}

/// The parts of a session in order: those of messages, with events inserted at their part numbers.
pub fn items(transcript: &Transcript, trace: &Value) -> Vec<Item> {
    let of_session = |span: &&&Value| {
        attributes(span)["gen_ai.conversation.id"] == transcript.session.agent_session_id.as_str()
    };
    let all = spans(trace);
    let all: Vec<&&Value> = all.iter().filter(of_session).collect();
    let turns = all.iter().filter(|span| attributes(span).contains_key("unspool.turn.number"));
    turns.flat_map(|turn| items_of_turn(turn, &all)).collect()
}

fn items_of_turn(turn: &Value, all: &[&&Value]) -> Vec<Item> {
    let own = attributes(turn);
    let mut items = Vec::new();
    for part in own
        .get("gen_ai.input.messages")
        .map_or(&Vec::new(), |all| all[0]["parts"].as_array().unwrap())
    {
        let (kind, text) = spoken(part);
        items.push((format!("user {kind}"), text));
    }
    // Nested calls are deeper in the tree.
    let within = |span: &&&&Value| {
        let mut above = &span["parentSpanId"];
        while *above != turn["spanId"] {
            match all.iter().find(|other| other["spanId"] == *above) {
                Some(other) => above = &other["parentSpanId"],
                None => return false,
            }
        }
        true
    };
    let mut results: Vec<(Value, String)> = Vec::new();
    let mut said: Vec<Value> = Vec::new();
    for span in all.iter().filter(within) {
        let own = attributes(span);
        if let Some(messages) = own.get("gen_ai.output.messages") {
            said.extend(messages[0]["parts"].as_array().unwrap().iter().cloned());
        }
        if let Some(id) = own.get("gen_ai.tool.call.id") {
            let result = own.get("gen_ai.tool.call.result").map(text_of).unwrap_or_default();
            results.push((id.clone(), result));
        }
    }
    said.retain(|part| part["type"] != "server_tool_call_response");
    let (mut said, mut results) = (said.into_iter(), results.into_iter());
    let events = turn["events"].as_array().into_iter().flatten().map(attributes);
    let events: BTreeMap<u64, Value> = events
        .map(|mut event| {
            (event["unspool.part.number"].as_u64().unwrap(), event.remove("unspool.part").unwrap())
        })
        .collect();
    let mut next = |number: u64| {
        if let Some(part) = events.get(&number) {
            return Some(held(part));
        }
        let part = said.next()?;
        if !part["type"].as_str().unwrap().ends_with("tool_call") {
            return Some(spoken(&part));
        }
        let (id, result) = results.next().unwrap();
        assert_eq!(part["id"], id, "calls and their spans are in one order");
        Some((format!("tool {}", id.as_str().unwrap()), result))
    };
    items.extend((1..).map_while(&mut next));
    assert!(said.next().is_none() && results.next().is_none());
    items
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn spoken(part: &Value) -> Item {
    match part["type"].as_str().unwrap() {
        "blob" | "uri" => ("file".to_owned(), String::new()),
        kind @ ("text" | "reasoning" | "compaction") => {
            (kind.to_owned(), part["content"].as_str().unwrap().to_owned())
        }
        _ => held(&part["part"]),
    }
}

/// A part that is embedded as a whole.
pub fn held(part: &Value) -> Item {
    let kind = part["kind"].as_str().unwrap();
    let text = match kind {
        "interjection" | "context-info" | "skill-load" | "notice" | "error" => &part["text"],
        "compaction" => &part["summary"],
        _ => &Value::Null,
    };
    (kind.to_owned(), text.as_str().unwrap_or_default().to_owned())
}

/// Compares the model calls' tokens with those of the session.
pub fn sums(transcript: &Transcript, trace: &Value) -> Option<String> {
    let usage = transcript.usage();
    let expected = usage.input + usage.cache_read + usage.cache_write + usage.output;
    let mut found = 0;
    for span in spans(trace) {
        let own = attributes(span);
        let here = own.get("gen_ai.conversation.id");
        if own.get("gen_ai.operation.name") == Some(&json!("chat"))
            && here == Some(&json!(transcript.session.agent_session_id))
        {
            let count = |key: &str| own.get(key).and_then(Value::as_u64).unwrap_or(0);
            found += count("gen_ai.usage.input_tokens") + count("gen_ai.usage.output_tokens");
        }
    }
    (expected != found).then(|| format!("{expected} tokens became {found}"))
}

/// A trace as readable text.
pub fn readable(trace: &Value) -> String {
    let mut out = String::new();
    let resource = &trace["resourceSpans"][0]["resource"];
    super::lines(&mut out, 0, "resource", &json!(attributes(resource)));
    let all = spans(trace);
    for span in &all {
        let depth = path(&all, span).len() - 1;
        let pad = "  ".repeat(depth);
        let text = |key: &str| span[key].as_str().unwrap();
        let above = span["parentSpanId"].as_str().map_or(String::new(), |id| format!(" in {id}"));
        out += &format!("{pad}{} ({}) {}{above}\n", text("name"), span["kind"], text("spanId"));
        out += &format!("{pad}  {} .. {}\n", text("startTimeUnixNano"), text("endTimeUnixNano"));
        if let Some(status) = span.get("status") {
            super::lines(&mut out, depth + 1, "status", status);
        }
        for (key, value) in attributes(span) {
            super::lines(&mut out, depth + 1, key, &value);
        }
        for event in span["events"].as_array().into_iter().flatten() {
            let name =
                format!("event {} {}", event["name"].as_str().unwrap(), event["timeUnixNano"]);
            super::lines(&mut out, depth + 1, &name, &json!(attributes(event)));
        }
    }
    out
}
