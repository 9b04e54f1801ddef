//! Call ids: what people and programs see is the id that the agent gave a call, not the name under
//! which the assembler keeps it.

use std::path::Path;

use serde_json::Value;
use unspool_export::project::{ALL, WriteMethod};
use unspool_model::document::settle_as_file;
use unspool_model::part::Body;
use unspool_model::session::Transcript;
use unspool_sources::in_memory::SessionSet;
use unspool_sources::read::document::DocumentLines;

use crate::case::{cases, name};
use crate::harness::Machine;
use crate::projections_trace::lookup::{CaseLookup, project};
use crate::test_server::Server;

/// The call ids of a session, as they are stored.
fn stored_ids(transcript: &Transcript) -> Vec<&str> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    let ids = parts.filter_map(|part| match &part.body {
        Body::Tool(tool) => Some(tool.call_id.as_str()),
        _ => None,
    });
    ids.collect()
}

#[test]
fn every_export_has_the_call_ids_of_the_agent() {
    // R-001-03, R-000-06
    let mut seen = 0;
    for case in cases("opencode") {
        let lookup = CaseLookup::of_case(&case);
        for transcript in &lookup.0 {
            let ids = stored_ids(transcript);
            for form in ALL.iter().filter(|form| matches!(form.method, WriteMethod::Projected(_))) {
                let text = project(form.name, &lookup, transcript);
                for id in &ids {
                    let (message, own) = id.split_once('/').unwrap();
                    assert!(message.starts_with("msg_"), "{id}");
                    assert!(!text.contains(id), "{} {}: {id}", name(&case), form.name);
                    let lists_ids = ["json", "uimessage", "thoughtflow", "atif", "otel"];
                    assert!(!lists_ids.contains(&form.name) || text.contains(own), "{id}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 300, "{seen}");
}

/// A call of OpenCode in its own message.
fn message(nth: u32) -> String {
    format!(
        r#"{{"info":{{"id":"msg_{nth}","sessionID":"ses_a","role":"assistant","parentID":"msg_0","time":{{"created":2000,"completed":3000}},"finish":"tool-calls"}},"parts":[{{"id":"prt_{nth}","messageID":"msg_{nth}","sessionID":"ses_a","type":"tool","tool":"read","callID":"call_0","state":{{"status":"completed","input":{{"n":{nth}}},"output":"{nth}","title":"","metadata":{{}},"time":{{"start":1,"end":2}}}}}}]}}"#
    )
}

fn with_repeated_ids() -> String {
    let head = r#""info":{"id":"ses_a","directory":"/w","version":"1","time":{"created":1000}}"#;
    let user = r#"{"info":{"id":"msg_0","sessionID":"ses_a","role":"user","time":{"created":1000}},"parts":[{"id":"prt_0","messageID":"msg_0","sessionID":"ses_a","type":"text","text":"go"}]}"#;
    format!("{{{head},\"messages\":[{user},{},{}]}}", message(1), message(2))
}

fn transcript_of(file: &str, text: &str) -> Transcript {
    let mut session_set = SessionSet::default();
    session_set.read(Path::new(file), DocumentLines::new(text.as_bytes()), &mut |_| {}).unwrap();
    let mut transcript = session_set.sessions[0].transcript();
    settle_as_file(&mut transcript);
    transcript
}

#[test]
fn ids_that_a_provider_repeats_stay_apart_where_clients_look_calls_up() {
    // R-X-06: the AI SDK finds a call of a message by its id.
    let lookup = CaseLookup::new(vec![transcript_of("session.json", &with_repeated_ids())]);
    assert_eq!(stored_ids(lookup.main()), ["msg_1/call_0", "msg_2/call_0"]);
    let messages = project("uimessage", &lookup, lookup.main());
    let messages: Value = serde_json::from_str(&messages).unwrap();
    let parts = messages[1]["parts"].as_array().unwrap().iter();
    let calls: Vec<&Value> = parts.filter(|part| part["type"] == "tool-read").collect();
    assert_eq!(calls.len(), 2);
    assert_eq!((&calls[0]["toolCallId"], &calls[0]["output"]), (&"call_0".into(), &"1".into()));
    assert_ne!(calls[1]["toolCallId"], "call_0");
    assert_eq!(calls[1]["output"], "2");
    // Both calls come back from the formats that are read again.
    for form in ["uimessage", "thoughtflow"] {
        let again = transcript_of("exported.json", &project(form, &lookup, lookup.main()));
        let outputs = again.turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| {
            part.body.tool().map(|tool| tool.output.clone().unwrap_or_default())
        });
        assert_eq!(outputs.collect::<Vec<_>>(), ["1", "2"], "{form}");
    }
}

#[test]
fn json_and_rest_have_the_call_ids_of_the_agent() {
    let machine = Machine::new();
    let case = crate::case::root().join("fixtures/opencode/subagents-parallel-and-resumed");
    machine.ok("data", &["import", case.to_str().unwrap()]);
    let server = Server::begin(&machine, "data", &[]);
    let mut calls = 0;
    for session in machine.json("data", &["list"]).as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let paths = ["", "/turns", "/messages", "/groups", "/tool-calls"];
        for text in paths
            .map(|path| server.json(&format!("/api/sessions/{id}{path}")).to_string())
            .into_iter()
            .chain([session.to_string(), machine.ok("data", &["show", id, "--json"])])
        {
            calls += text.matches("\"call_id\":\"call_").count();
            assert!(!text.contains("call_id\":\"msg_"), "{text}");
            assert!(!text.contains("temp_msg_"), "{text}");
        }
    }
    assert!(calls > 10, "{calls}");
}
