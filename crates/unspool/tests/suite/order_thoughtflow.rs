//! Law 1 (order is kept) for ThoughtFlow documents: the texts of the steps, in order, against a
//! plain reader of the document.

use std::path::Path;

use serde_json::Value;
use unspool_model::part::Body;
use unspool_model::session::{Transcript, Turn};
use unspool_sources::in_memory::SessionSet;
use unspool_sources::read::document::DocumentLines;

use crate::case::{captures, cases, fold_in, main_session, name};

type LabelledText = (&'static str, String);

/// True if the first step is of the prompt of a model call that follows before any tool call.
fn is_of_next_call(steps: &[&Value]) -> bool {
    const SNAPSHOTS: [&str; 4] =
        ["policy.snapshot", "tool.schemas.snapshot", "context.preamble", "prompt.adaptations"];
    let mut labels = steps.iter().map(|step| step["label"].as_str().unwrap());
    labels.next().is_some_and(|label| SNAPSHOTS.contains(&label))
        && labels.find(|label| ["assistant_call", "tool_call"].contains(label))
            == Some("assistant_call")
}

/// The texts of a conversation's steps.
fn said(run: &Value) -> Vec<LabelledText> {
    let steps: Vec<&Value> =
        run["steps"].as_array().unwrap().iter().filter(|step| step.is_object()).collect();
    let mut all: Vec<LabelledText> = Vec::new();
    let (mut begun, mut gave) = (false, Vec::new());
    for (at, step) in steps.iter().enumerate() {
        let (started, completed) = (&step["payload_started"], &step["payload_completed"]);
        let either = |name: &str| started[name].as_str().or(completed[name].as_str());
        let text = || either("text").unwrap_or_default().to_owned();
        let label = step["label"].as_str().unwrap();
        match label {
            "user_message" if begun => all.push(("interjection", text())),
            "user_message" => all.push(("user", text())),
            "assistant_message" => all.push(("text", text())),
            "tool_call" => all.push(("tool", either("name").unwrap().to_owned())),
            "tool_output" | "tool_error" => {
                // One output per call; without a call it is a tool part of its own.
                let on = step["depends_on"].as_str().or(step["depends_on"][0].as_str());
                let of = |call: &&&Value| {
                    let own = call["payload_started"]["call_id"].as_str();
                    call["label"] == "tool_call"
                        && (call["step_id"].as_str() == on
                            || own.is_some() && own == either("call_id"))
                };
                match steps.iter().find(of) {
                    Some(call) if gave.contains(&call["step_id"]) => {
                        all.push(("data", label.to_owned()));
                    }
                    Some(call) => gave.push(call["step_id"].clone()),
                    None => all.push(("tool", either("name").unwrap_or_default().to_owned())),
                }
            }
            "generic" => match either("kind") {
                Some("trigger") => {}
                Some("reasoning") => all.push(("reasoning", text())),
                Some("notice") if completed.as_object().unwrap().len() == 3 => {
                    all.push(("notice", text()));
                }
                Some("data") => all.push(("data", either("data_kind").unwrap().to_owned())),
                kind => all.push(("data", kind.map_or(label, |_| "generic").to_owned())),
            },
            // These are the parts of a model call's prompt.
            "assistant_call" => {}
            _ if is_of_next_call(&steps[at..]) => {}
            other => all.push(("data", other.to_owned())),
        }
        begun |= !["user_message", "policy.snapshot", "prompt.adaptations"].contains(&label);
    }
    all
}

fn turn_texts(turn: &Turn) -> Vec<LabelledText> {
    let user = turn.user.iter().filter_map(Body::prose).map(|text| ("user", text.to_owned()));
    let parts = turn.parts.iter().filter_map(|part| match &part.body {
        Body::Text(text) => Some(("text", text.text.clone())),
        Body::Reasoning(reasoning) => Some(("reasoning", reasoning.text.clone())),
        Body::Tool(tool) => Some(("tool", tool.name.clone())),
        Body::Interjection(said) => Some(("interjection", said.text.clone())),
        // Notices added at the end of a turn have no step.
        Body::Notice(_) if part.evidence.is_empty() => None,
        Body::Notice(notice) => Some(("notice", notice.text.clone())),
        // Fields kept beside the steps have no step.
        Body::Data(data) if data.kind.starts_with("thoughtflow-") => None,
        Body::Data(data) => Some(("data", data.kind.clone())),
        _ => None,
    });
    user.chain(parts).collect()
}

#[test]
fn law_1_steps_keep_their_order() {
    // R-002-01, R-002-43, R-002-44
    let all = cases("thoughtflow");
    assert!(all.len() >= 2);
    for case in all {
        let text = std::fs::read_to_string(case.join("log.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let expected: Vec<LabelledText> =
            document["conversations"].as_array().unwrap().iter().flat_map(said).collect();
        let session_set = fold_in(&captures(&case), &[0]);
        let transcript = main_session(&session_set).transcript();
        let found: Vec<LabelledText> = transcript.turns.iter().flat_map(turn_texts).collect();
        assert_eq!(found, expected, "{}", name(&case));
        // Usage is counted once for each call.
        let calls = document["conversations"].as_array().unwrap().iter();
        let calls = calls.flat_map(|run| run["steps"].as_array().unwrap());
        let used = calls.map(|step| &step["payload_completed"]["usage"]);
        let output =
            used.filter_map(|usage| usage["output"].as_u64().or(usage["output_tokens"].as_u64()));
        assert_eq!(transcript.usage().output, output.sum::<u64>(), "{}", name(&case));
    }
}

#[test]
fn unmapped_fields_are_kept() {
    // Law 4: every field of every conversation is in its turn, under its own name or ours.
    let case = cases("thoughtflow").into_iter().find(|case| name(case) == "written-by-others");
    let case = case.unwrap();
    let session_set = fold_in(&captures(&case), &[0]);
    let transcript = main_session(&session_set).transcript();
    let text = std::fs::read_to_string(case.join("log.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let runs = document["conversations"].as_array().unwrap();
    assert_eq!(runs.len(), transcript.turns.len());
    let (mut lost, mut seen) = (Vec::new(), 0);
    for (run, turn) in runs.iter().zip(&transcript.turns) {
        let (mut turn_texts, mut held) = (Vec::new(), Vec::new());
        leaves("", run, &mut turn_texts);
        leaves("", &serde_json::to_value(turn).unwrap(), &mut held);
        turn_texts.retain(|(field, value)| !is_kind(field, value));
        seen += turn_texts.len();
        for (field, value) in turn_texts {
            let ours = in_our_words(&field, &value);
            let found = held.iter().position(|(name, held)| {
                (*name == field && *held == value)
                    || ours.iter().any(|(own, said)| own == name && said == held)
            });
            // As often as in the document.
            match found {
                Some(at) => drop(held.swap_remove(at)),
                None => lost.push((run["conversation_id"].clone(), field, value)),
            }
        }
    }
    assert!(seen > 120, "{seen}");
    // The session's owner is kept once, not with every model call.
    let of_session = |lost: &(Value, String, Value)| lost.1 == "name" && lost.2 == "host";
    assert_eq!(lost.iter().filter(|lost| of_session(lost)).count(), 2);
    lost.retain(|lost| !of_session(lost));
    // An output is stored with its call, so their common id is stored once.
    assert_eq!(lost, [("confirm".into(), "call_id".to_owned(), "call_0".into())]);
    let mut session = Vec::new();
    leaves("", &serde_json::to_value(&transcript).unwrap(), &mut session);
    for (field, value) in [
        ("agent_session_id", "booking-2026-11-14"),
        ("started", "2026-11-14T09:00:00Z"),
        ("ended_at", "2026-11-14T09:03:00.000Z"),
        ("name", "host"),
    ] {
        assert!(session.contains(&(field.to_owned(), value.into())), "{field}");
    }
}

/// True if the field is expressed by the kind of the part.
fn is_kind(field: &str, value: &Value) -> bool {
    const LABELS: [&str; 8] = [
        "user_message",
        "assistant_call",
        "assistant_message",
        "tool_call",
        "tool_output",
        "tool_error",
        "policy.snapshot",
        "prompt.adaptations",
    ];
    let text = value.as_str().unwrap_or_default();
    match field {
        "label" => LABELS.contains(&text) || text == "generic",
        "kind" => ["trigger", "reasoning"].contains(&text),
        "channel" => text == "text",
        // The position of a prompt piece is stored with the piece.
        "part" => true,
        "redacted" => value == false,
        _ => false,
    }
}

/// The field under its possible names in a turn.
fn in_our_words(field: &str, value: &Value) -> Vec<(String, Value)> {
    let text = value.as_str().unwrap_or_default();
    let ours = |name: &str| vec![(name.to_owned(), value.clone())];
    match field {
        "status" if text == "aborted" => vec![("state".to_owned(), "interrupted".into())],
        "status" => ours("state"),
        "conversation_id" if text == "greeting" => {
            vec![("names".to_owned(), "preamble".into())]
        }
        "conversation_id" => {
            let again = format!("{text} #4");
            vec![("prompt".to_owned(), value.clone()), ("prompt".to_owned(), again.into())]
        }
        "response_id" => ours("message"),
        "type" => ours("kind"),
        "start" | "end" => ours("span"),
        "version" => ours("sha256"),
        "error" => ours("output"),
        "call_id" => vec![("call_id".to_owned(), format!("confirm t3 {text}").into())],
        "steps" => ours("steps[7]"),
        _ => Vec::new(),
    }
}

/// The values of all fields; those of a list are its field's.
fn leaves(field: &str, value: &Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| leaves(field, one, out)),
        Value::Object(all) => all.iter().for_each(|(name, one)| leaves(name, one, out)),
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push((field.to_owned(), value.clone()));
        }
    }
}

/// The document when its last conversation had only this many steps.
fn earlier(document: &Value, steps: usize) -> String {
    let mut document = document.clone();
    let run = document["conversations"].as_array_mut().unwrap().last_mut().unwrap();
    run["steps"].as_array_mut().unwrap().truncate(steps);
    run["status"] = "unknown".into();
    run.as_object_mut().unwrap().remove("ended_at");
    document.to_string()
}

#[test]
fn a_rewritten_document_adds_nothing_twice() {
    // Law 5: its writer rewrites the whole document for every step.
    for case in cases("thoughtflow") {
        let text = std::fs::read_to_string(case.join("log.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let last = document["conversations"].as_array().unwrap().last().unwrap();
        let steps = last["steps"].as_array().unwrap().len();
        let mut session_set = SessionSet::default();
        let mut texts: Vec<String> = (1..=steps).map(|count| earlier(&document, count)).collect();
        texts.push(text);
        for (nth, text) in texts.iter().enumerate() {
            // A document with another header is another source.
            let text = text.replacen('{', &format!("{{\"saved\":{nth},"), 1);
            let path = Path::new("log.json");
            session_set.read(path, DocumentLines::new(text.as_bytes()), &mut |_| {}).unwrap();
        }
        let once = main_session(&fold_in(&captures(&case), &[0])).transcript();
        let grown = main_session(&session_set).transcript();
        let pieces = |transcript: &Transcript| -> Vec<Vec<LabelledText>> {
            transcript.turns.iter().map(turn_texts).collect()
        };
        assert_eq!(pieces(&grown), pieces(&once), "{}", name(&case));
        let states = |transcript: &Transcript| -> Vec<&'static str> {
            transcript.turns.iter().map(|turn| turn.state.name()).collect()
        };
        assert_eq!(states(&grown), states(&once), "{}", name(&case));
        // Fields kept beside the steps have their latest value, once.
        let kept = |transcript: &Transcript| {
            let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
            let kept = parts.filter_map(|part| match &part.body {
                Body::Data(data) if data.kind == "thoughtflow-conversation" => {
                    Some(data.payload.value())
                }
                _ => None,
            });
            kept.collect::<Vec<Value>>()
        };
        assert_eq!(kept(&grown), kept(&once), "{}", name(&case));
    }
}
