//! Law 1 for ThoughtFlow documents: what each step says, in the order of the steps, against a plain
//! reading of the document.

use serde_json::Value;
use unspool_core::part::Body;
use unspool_core::session::Turn;

use crate::case::{captures, cases, fold_in, main_session, name};

type Piece = (&'static str, String);

/// What the steps of a conversation say.
fn said(run: &Value) -> Vec<Piece> {
    let steps: Vec<&Value> =
        run["steps"].as_array().unwrap().iter().filter(|step| step.is_object()).collect();
    let mut all: Vec<Piece> = Vec::new();
    let (mut begun, mut gave) = (false, Vec::new());
    for step in &steps {
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
                // One output for each call; without its call it stands for itself.
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
            // They are what a model call's prompt was made of.
            "assistant_call" | "policy.snapshot" | "prompt.adaptations" => {}
            other => all.push(("data", other.to_owned())),
        }
        begun |= !["user_message", "policy.snapshot", "prompt.adaptations"].contains(&label);
    }
    all
}

fn told(turn: &Turn) -> Vec<Piece> {
    let user = turn.user.iter().filter_map(Body::prose).map(|text| ("user", text.to_owned()));
    let parts = turn.parts.iter().filter_map(|part| match &part.body {
        Body::Text(text) => Some(("text", text.text.clone())),
        Body::Reasoning(reasoning) => Some(("reasoning", reasoning.text.clone())),
        Body::Tool(tool) => Some(("tool", tool.name.clone())),
        Body::Interjection(said) => Some(("interjection", said.text.clone())),
        // What the rule of ends adds stands for no step.
        Body::Notice(_) if part.evidence.is_empty() => None,
        Body::Notice(notice) => Some(("notice", notice.text.clone())),
        // What is kept beside the steps stands for none.
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
        let expected: Vec<Piece> =
            document["conversations"].as_array().unwrap().iter().flat_map(said).collect();
        let gathering = fold_in(&captures(&case), &[0]);
        let transcript = main_session(&gathering).transcript();
        let found: Vec<Piece> = transcript.turns.iter().flat_map(told).collect();
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
fn what_has_no_place_is_kept() {
    let case = cases("thoughtflow").into_iter().find(|case| name(case) == "written-by-others");
    let case = case.unwrap();
    let gathering = fold_in(&captures(&case), &[0]);
    let all = format!("{:?}", main_session(&gathering).transcript());
    let text = std::fs::read_to_string(case.join("log.json")).unwrap();
    let mut words = Vec::new();
    leaves(&serde_json::from_str(&text).unwrap(), &mut words);
    assert!(words.len() > 80);
    // Times are times, labels and states are kinds.
    let read = |word: &str| {
        let kinds = ["user_message", "assistant_call", "assistant_message", "tool_call"];
        kinds.contains(&word)
            || ["tool_output", "generic", "trigger", "schedule", "reasoning"].contains(&word)
            || ["completed", "aborted", "denied", "policy.snapshot"].contains(&word)
            || word == "prompt.adaptations"
            || word == "tool_error"
    };
    let lost: Vec<&String> =
        words.iter().filter(|word| !all.contains(word.as_str()) && !read(word)).collect();
    assert_eq!(lost, Vec::<&String>::new());
}

fn leaves(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.replace(".000Z", "")),
        Value::Number(number) => out.push(number.to_string()),
        Value::Array(all) => all.iter().for_each(|one| leaves(one, out)),
        Value::Object(all) => all.values().for_each(|one| leaves(one, out)),
        Value::Null | Value::Bool(_) => {}
    }
}
