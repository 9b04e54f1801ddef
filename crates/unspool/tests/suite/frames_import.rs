//! Frames and blocks as input: what an application pushes or stores in the words of frames
//! (`thinking`, `text`, `tool_call`, `tool_result`) becomes the same parts in the same order.

use std::path::Path;

use serde_json::{Value, json};
use unspool_model::part::Body;
use unspool_model::session::Transcript;
use unspool_server::frames_encoder::FramesEncoder;
use unspool_sources::in_memory::{RecordTrace, SessionSet};

use crate::by_source::{assert_seen, by_source};
use crate::case::{cases, name, root};
use crate::harness::Machine;
use crate::projections_trace::lookup::CaseLookup;
use crate::test_server::Server;

/// The user's words, and the texts, thoughts and calls of each reply, in order.
fn essence(transcript: &Transcript) -> Vec<Value> {
    let body = |body: &Body| match body {
        Body::Text(text) => Some(json!(["text", text.text])),
        // R-X-07: a thought without words makes no part.
        Body::Reasoning(reasoning) if reasoning.text.is_empty() => None,
        Body::Reasoning(reasoning) => Some(json!(["thinking", reasoning.text])),
        Body::Tool(tool) => {
            let input = tool.input.as_ref().map(unspool_model::json::Json::value);
            Some(json!(["tool", tool.name, input, tool.state.name(), tool.output]))
        }
        _ => None,
    };
    let turn = |turn: &unspool_model::session::Turn| {
        let user: Vec<Value> = turn.user.iter().filter_map(body).collect();
        let shown = turn.parts.iter().filter(|part| !part.origin.is_hidden());
        let parts: Vec<Value> = shown.filter_map(|part| body(&part.body)).collect();
        (!user.is_empty() || !parts.is_empty()).then(|| json!([user, parts]))
    };
    transcript.turns.iter().filter_map(turn).collect()
}

fn read(file: &str, text: &str) -> Transcript {
    let mut session_set = SessionSet::default();
    session_set.read(Path::new(file), text.as_bytes(), &mut |_| {}).unwrap();
    assert_eq!(session_set.sessions.len(), 1, "{text}");
    assert_eq!(session_set.sessions[0].agent, "rows");
    session_set.sessions[0].transcript()
}

by_source!(frames_of_every_recording_are_read_again);

fn frames_of_every_recording_are_read_again(source: &str) {
    // R-000-12, R-000-14, C-01
    let mut seen = 0;
    for case in cases(source) {
        for transcript in CaseLookup::of_case(&case).0 {
            let expected = essence(&transcript);
            if expected.is_empty() {
                continue;
            }
            let mut encoder = FramesEncoder::new(transcript.session, transcript.turns);
            let frames = encoder.snapshot();
            let text: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
            let again = essence(&read("frames.jsonl", &text));
            for (at, (expected, again)) in expected.iter().zip(&again).enumerate() {
                assert_eq!(again, expected, "{} turn {at}", name(&case));
            }
            assert_eq!(again.len(), expected.len(), "{}", name(&case));
            // A new channel repeats everything.
            let more: String =
                encoder.snapshot().iter().map(|frame| format!("{frame}\n")).collect();
            assert_eq!(essence(&read("frames.jsonl", &(text + &more))), again, "{}", name(&case));
            seen += 1;
        }
    }
    assert_seen(source, seen, [5, 0, 0, 40, 0, 20, 0, 10, 0, 8, 0, 0, 20, 0, 0, 5, 2]);
}

/// What a harness pushes: no part ids, no turn, no positions.
const PUSHED: &str = r#"{"type":"channel.start","seq":1,"session":"run-7"}
{"type":"message.start","seq":2,"role":"user"}
{"type":"message.delta","seq":3,"kind":"text","text":"Fix "}
{"type":"message.delta","seq":4,"kind":"text","text":"it."}
{"type":"message.end","seq":5}
{"type":"message.start","seq":6,"role":"assistant","model":"large"}
{"type":"message.delta","seq":7,"kind":"thinking","text":"Where"}
{"type":"message.delta","seq":8,"kind":"thinking","text":" is it?"}
{"type":"message.delta","seq":9,"kind":"text","text":"I will look."}
{"type":"message.tool_call","seq":10,"tool_call_id":"c1","name":"Read","input":{"path":"a"}}
{"type":"message.tool_result","seq":11,"tool_call_id":"c1","is_error":true,"output":"no such file"}
{"type":"message.tool_result","seq":11,"tool_call_id":"c1","is_error":false,"output":"repeated"}
{"type":"message.delta","seq":12,"kind":"text","text":"It is"}
{"type":"message.delta","seq":13,"kind":"thinking","text":"Hm."}
{"type":"message.delta","seq":15,"kind":"text","text":" gone."}
{"type":"message.end","seq":16,"state":"completed","usage":{"input_tokens":7,"output_tokens":3}}
"#;

#[test]
fn a_harness_pushes_frames_through_standard_input() {
    // R-000-09, R-000-11, R-000-12, R-000-13, R-X-06
    let machine = Machine::new();
    let output = machine.run("data", &["import", "-", "--json"], PUSHED);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["warnings"].to_string().contains("15 follows 13"), "a gap: {report}");
    let shown = machine.json("data", &["show", "run-7"]);
    assert_eq!(shown["session"]["agent"], "rows");
    assert_eq!(shown["session"]["usage"]["input"], 7);
    let turn = &shown["turns"][0];
    assert_eq!((&turn["state"], &turn["trigger"]), (&json!("completed"), &json!("user")));
    assert_eq!(turn["user"], json!([{ "kind": "text", "text": "Fix it." }]));
    let parts = turn["parts"].as_array().unwrap().iter();
    let parts: Vec<Value> = parts
        .map(|part| match part["kind"].as_str().unwrap() {
            "tool" => json!([part["call_id"], part["state"], part["output"]]),
            kind => json!([kind, part["text"]]),
        })
        .collect();
    let expected = json!([
        ["reasoning", "Where is it?"],
        ["text", "I will look."],
        ["c1", "failed", "no such file"],
        ["text", "It is"],
        ["reasoning", "Hm."],
        ["text", " gone."]
    ]);
    assert_eq!(json!(parts), expected);
    assert_eq!(shown["records"]["left_out"], json!({ "repeated frame": 1 }));
    // Twice is once.
    let again = machine.run("data", &["import", "-", "--json"], PUSHED);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&again["turns"], &again["parts"]), (&json!(0), &json!(0)));
}

#[test]
fn blocks_and_the_results_beside_them_become_parts_in_their_order() {
    // R-000-02, R-000-07, R-001-18, C-01
    let file = root().join("fixtures/rows/content-blocks/log.jsonl");
    let transcript = read("log.jsonl", &std::fs::read_to_string(file).unwrap());
    let kinds = |turn: &unspool_model::session::Turn| -> Vec<String> {
        let parts = turn.parts.iter();
        parts
            .map(|part| match &part.body {
                Body::Tool(tool) => format!("{} {}", tool.call_id, tool.state.name()),
                body => body.kind().name().to_owned(),
            })
            .collect()
    };
    let first = ["reasoning", "text", "c1 completed", "reasoning", "text"];
    assert_eq!(kinds(&transcript.turns[0]), first);
    // A message that has only results is no prompt; a result without its call is kept.
    assert_eq!(transcript.turns.len(), 2);
    let second = ["c2 failed", "c3 completed", "c9 completed", "text", "image"];
    assert_eq!(kinds(&transcript.turns[1]).len(), second.len());
    assert_eq!(kinds(&transcript.turns[1])[..4], second[..4]);
}

#[test]
fn messages_in_the_words_of_frames_can_be_read_again() {
    // R-000-02, R-000-23, C-01, C-03
    let machine = Machine::new();
    let case = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    machine.ok("data", &["import", case.to_str().unwrap()]);
    let server = Server::begin(&machine, "data", &[]);
    let id = server.json("/api/sessions")[0]["id"].as_str().unwrap().to_owned();
    let messages = server.json(&format!("/api/sessions/{id}/messages?form=frames"));
    let messages = messages.as_array().unwrap();
    let parts: Vec<&Value> =
        messages.iter().flat_map(|message| message["parts"].as_array().unwrap()).collect();
    assert!(parts.iter().any(|part| part["kind"] == "thinking"));
    assert!(!parts.iter().any(|part| part["kind"] == "reasoning" || part["kind"] == "tool"));
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part["kind"] == "tool_result") {
        assert_eq!(parts[at - 1]["kind"], "tool_call");
        assert_eq!(parts[at - 1]["tool_call_id"], part["tool_call_id"]);
    }
    // As rows of another application they give the same texts, thoughts and calls.
    let rows: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let lookup = CaseLookup::of_case(case.parent().unwrap());
    let stored = essence(lookup.main());
    let again = essence(&read("rows.jsonl", &rows));
    let calls = |turns: &[Value]| -> Vec<Value> {
        let replies = turns.iter().flat_map(|turn| turn[1].as_array().unwrap().clone());
        replies.map(|part| json!([part[0], part[1]])).collect()
    };
    assert_eq!(calls(&again), calls(&stored));
}

#[test]
fn frames_of_an_earlier_stream_change_nothing() {
    // R-003-38: the sender of the first reply was cut off, and its frames arrive late. So are those
    // of a channel after it started again.
    let stream = [
        r#"{"type":"channel.start","seq":1,"session":"run-8"}"#,
        r#"{"type":"message.start","seq":2,"message":"u","role":"user"}"#,
        r#"{"type":"message.delta","seq":3,"message":"u","kind":"text","text":"go"}"#,
        r#"{"type":"message.end","seq":4,"message":"u"}"#,
        r#"{"type":"message.start","seq":5,"message":"old","role":"assistant"}"#,
        r#"{"type":"message.delta","seq":6,"message":"old","kind":"text","text":"One"}"#,
        r#"{"type":"message.start","seq":7,"message":"new","role":"assistant"}"#,
        r#"{"type":"message.delta","seq":8,"message":"new","kind":"text","text":"Two"}"#,
    ];
    let late = [
        r#"{"type":"message.delta","seq":9,"message":"old","kind":"text","text":" late"}"#,
        r#"{"type":"message.tool_call","seq":10,"message":"old","tool_call_id":"c","name":"Read"}"#,
        r#"{"type":"message.tool_result","seq":11,"message":"old","tool_call_id":"c","output":"x"}"#,
        r#"{"type":"message.end","seq":12,"message":"old","state":"failed"}"#,
    ];
    let rest = [
        r#"{"type":"message.delta","seq":13,"message":"new","kind":"text","text":" three"}"#,
        r#"{"type":"channel.start","seq":14,"session":"run-8"}"#,
        r#"{"type":"message.delta","seq":15,"message":"new","kind":"text","text":" four"}"#,
    ];
    let machine = Machine::new();
    let lines = [&stream[..], &late, &rest].concat().join("\n") + "\n";
    let output = machine.run("data", &["import", "-", "--json"], &lines);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let shown = machine.json("data", &["show", "run-8"]);
    let turn = &shown["turns"][0];
    let texts: Vec<&Value> =
        turn["parts"].as_array().unwrap().iter().map(|part| &part["text"]).collect();
    assert_eq!(texts, ["One", "Two three"], "{turn}");
    assert_ne!(turn["state"], "failed");
    assert_eq!(shown["records"]["left_out"], json!({ "frame of an earlier stream": 5 }));
    // Each stream has its number, which the fold compares.
    let mut generations = Vec::new();
    let mut session_set = SessionSet::default();
    let mut note =
        |trace: RecordTrace<'_>| generations.extend(trace.events.iter().map(|one| one.generation));
    session_set.read(Path::new("frames.jsonl"), lines.as_bytes(), &mut note).unwrap();
    generations.dedup();
    assert_eq!(generations, [Some(1), Some(2), Some(3)]);
}

#[test]
fn a_reply_goes_on_after_an_earlier_one_was_sent_again() {
    // R-003-38: the server sends a reply again if something in it changes late, while the newest
    // reply is being sent. That is no new stream.
    let lines = [
        r#"{"type":"channel.start","seq":1,"session":"run-9"}"#,
        r#"{"type":"message.start","seq":2,"message":"a","role":"assistant","turn":"t1"}"#,
        r#"{"type":"message.delta","seq":3,"message":"a","part":"p1","kind":"text","text":"One"}"#,
        r#"{"type":"message.end","seq":4,"message":"a"}"#,
        r#"{"type":"message.start","seq":5,"message":"b","role":"assistant","turn":"t2"}"#,
        r#"{"type":"message.delta","seq":6,"message":"b","part":"p2","kind":"text","text":"Two"}"#,
        r#"{"type":"message.start","seq":7,"message":"a","role":"assistant","turn":"t1"}"#,
        r#"{"type":"message.delta","seq":8,"message":"a","part":"p1","kind":"text","text":"One!"}"#,
        r#"{"type":"message.end","seq":9,"message":"a"}"#,
        r#"{"type":"message.delta","seq":10,"message":"b","part":"p2","kind":"text","text":" more"}"#,
        r#"{"type":"message.end","seq":11,"message":"b"}"#,
    ];
    let transcript = read("frames.jsonl", &(lines.join("\n") + "\n"));
    // The other reply closed the text that was open, so it goes on as another part.
    let second = json!([["text", "Two"], ["text", " more"]]);
    let expected = json!([[[], [["text", "One!"]]], [[], second]]);
    assert_eq!(json!(essence(&transcript)), expected);
}
