//! Tests of saving and resuming decoders, of recognition, and of unusual documents.

use std::path::{Path, PathBuf};

use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::part::Body;
use unspool_model::session::Transcript;

use super::*;
use crate::decode::{JsonOutline, Record};
use crate::in_memory::SessionSet;
use crate::read::document::DocumentLines;
use crate::read::{lines, source};

fn recordings() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/thoughtflow");
    let cases = folder.read_dir().unwrap().map(|case| case.unwrap().path());
    let cases = cases.filter(|case| case.is_dir());
    cases.map(|case| case.join("log.json")).collect()
}

fn lines_of(path: &Path) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    let mut keep = |line: lines::Line<'_>| {
        all.push((line.offset, String::from_utf8(line.bytes.to_vec()).unwrap()));
    };
    lines::read(source::open(path).unwrap().text(), &mut keep).unwrap();
    all
}

#[test]
fn law_2_resuming_after_every_record_emits_the_same_events() {
    let recordings = recordings();
    assert!(recordings.len() >= 2);
    for path in recordings {
        let decode = |resumed: bool| -> Vec<Event> {
            let mut decoder = (DOCUMENT.decoder)();
            let mut events = Vec::new();
            for (line, (offset, text)) in (1..).zip(lines_of(&path)) {
                let mut outline = JsonOutline::default();
                let fields = outline.read(&text).unwrap();
                let record = Record { source: 0, line, offset, text: &text };
                decoder.decode(&record, &fields, &mut events);
                if resumed {
                    decoder = (DOCUMENT.resume)(&decoder.save().unwrap()).unwrap();
                }
            }
            events
        };
        assert_eq!(decode(true), decode(false), "{}", path.display());
    }
}

fn read(document: &str) -> Transcript {
    let mut session_set = SessionSet::default();
    session_set
        .read(Path::new("d.json"), DocumentLines::new(document.as_bytes()), &mut |_| {})
        .unwrap();
    let [session] = &session_set.sessions[..] else { panic!("one session") };
    session.transcript()
}

fn run(status: &str, steps: &str) -> String {
    format!(
        r#"{{"session_id":"s","started_at":null,"ended_at":null,"conversations":[{{"conversation_id":"c","channel":"text","status":"{status}","steps":[{steps}]}}]}}"#
    )
}

const USER_STEP: &str = r#"{"step_id":"u","label":"user_message","payload_started":{"text":"hi"}}"#;

#[test]
fn a_status_says_how_a_turn_ended_and_an_unknown_one_nothing() {
    // R-002-07
    for (status, state) in [
        ("completed", "completed"),
        ("aborted", "interrupted"),
        ("error", "failed"),
        ("unknown", "running"),
        ("paused", "running"),
    ] {
        let transcript = read(&run(status, USER_STEP));
        assert_eq!(transcript.turns[0].state.name(), state, "{status}");
    }
    // A turn without a recorded end becomes unknown when another conversation follows.
    let first = run("unknown", USER_STEP);
    let second = first.replace("\"c\"", "\"d\"");
    let (_, second) = second.split_once("\"conversations\":[").unwrap();
    let both = first.replace("]}", "]}@").replacen("]}@]}@", &format!("]}},{second}"), 1);
    let transcript = read(&both.replace('@', ""));
    let states: Vec<&str> = transcript.turns.iter().map(|turn| turn.state.name()).collect();
    assert_eq!(states, ["unknown", "running"], "{both}");
}

#[test]
fn steps_that_cannot_be_read_are_kept_whole() {
    // R-002-43
    for step in [
        r#"{"step_id":"a","label":"chat.typing","payload_started":{"seconds":3}}"#,
        r#"{"step_id":"a","label":"tool_output","payload_completed":"only text"}"#,
        r#"{"step_id":"a","label":"assistant_message","payload_completed":{"words":"x"}}"#,
        r#"{"step_id":"a","label":"generic","payload_completed":{"kind":"notice","loud":true}}"#,
        r#"{"step_id":"a"}"#,
        r#"{"label":7,"depends_on":{"a":1}}"#,
        "{}",
    ] {
        let transcript = read(&run("unknown", &format!("{USER_STEP},{step}")));
        let Body::Data(data) = &transcript.turns[0].parts[0].body else { panic!("{step}") };
        let expected: serde_json::Value = serde_json::from_str(step).unwrap();
        assert_eq!(data.payload.value(), expected, "{step}");
    }
}

#[test]
fn an_end_notice_that_was_derived_is_derived_again() {
    let id = |letter: &str| letter.repeat(20);
    let (turn, user, end) = (id("a"), format!("{}-user-0", id("a")), id("b"));
    let steps = format!(
        r#"{{"step_id":"{user}","label":"user_message","payload_started":{{"text":"hi"}}}},{{"step_id":"{end}","label":"generic","depends_on":"{user}","payload_completed":{{"kind":"error","code":null,"status":null,"text":"out of luck"}}}}"#
    );
    let document = run("error", &steps).replace("\"c\"", &format!("\"{turn}\""));
    let mut decoder = (DOCUMENT.decoder)();
    let mut events = Vec::new();
    let line = document.split_once("\"conversations\":[").unwrap().1.strip_suffix("]}").unwrap();
    let mut outline = JsonOutline::default();
    let fields = outline.read(line).unwrap();
    let record = Record { source: 0, line: 1, offset: 0, text: line };
    decoder.decode(&record, &fields, &mut events);
    let expected: Vec<&EventKind> = events.iter().map(|event| &event.kind).collect();
    let why = EndReason::Failed(Some("out of luck".to_owned()));
    assert!(
        matches!(&expected[..], [EventKind::TurnStarted { .. }, EventKind::TurnEnded(end)] if *end == why)
    );
    let transcript = read(&document);
    let [part] = &transcript.turns[0].parts[..] else { panic!("one part") };
    assert!(matches!(&part.body, Body::Error(error) if error.text == "out of luck"));
}

/// The tools of the only turn: names, states and outputs.
fn tools(transcript: &Transcript) -> Vec<(String, &'static str, String)> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    let tools =
        parts.filter_map(|part| if let Body::Tool(tool) = &part.body { Some(tool) } else { None });
    tools
        .map(|tool| (tool.name.clone(), tool.state.name(), tool.output.clone().unwrap_or_default()))
        .collect()
}

fn tool(name: &str, state: &'static str, output: &str) -> (String, &'static str, String) {
    (name.to_owned(), state, output.to_owned())
}

/// The unmapped fields of a document.
fn kept(transcript: &Transcript, kind: &str) -> serde_json::Value {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    let data =
        parts.filter_map(|part| if let Body::Data(data) = &part.body { Some(data) } else { None });
    let mut kept = data.filter(|data| data.kind == kind);
    kept.next().map(|data| data.payload.value()).unwrap_or_default()
}

#[test]
fn calls_without_ids_of_their_own_are_several() {
    for id in ["", r#""step_id":"t","#] {
        let call = |name: &str| {
            format!(
                r#"{{{id}"label":"tool_call","payload_started":{{"name":"{name}"}},"payload_completed":{{"output":"{name}!"}}}}"#
            )
        };
        let steps = format!("{USER_STEP},{},{}", call("one"), call("two"));
        let expected = [tool("one", "completed", "one!"), tool("two", "completed", "two!")];
        assert_eq!(tools(&read(&run("completed", &steps))), expected, "{id}");
    }
}

#[test]
fn a_call_that_gave_an_error_failed() {
    let steps = |completed: &str| {
        format!(
            r#"{USER_STEP},{{"step_id":"t","label":"tool_call","payload_started":{{"name":"x"}},"payload_completed":{completed}}}"#
        )
    };
    for (completed, state, output) in [
        (r#"{"error":"boom"}"#, "failed", "boom"),
        (r#"{"error":{"code":7}}"#, "failed", r#"{"code":7}"#),
        (r#"{"error":"boom","output":"half"}"#, "failed", "half"),
        (r#"{"error":null,"output":"all"}"#, "completed", "all"),
        (r#"{"error":"","output":"all"}"#, "completed", "all"),
        (r#"{"error":"boom","state":"denied"}"#, "denied", "boom"),
    ] {
        let transcript = read(&run("completed", &steps(completed)));
        assert_eq!(tools(&transcript), [tool("x", state, output)], "{completed}");
    }
    let both = read(&run("completed", &steps(r#"{"error":"boom","output":{"half":1}}"#)));
    assert_eq!(tools(&both), [tool("x", "failed", r#"{"half":1}"#)]);
    let rest = kept(&both, "thoughtflow-conversation");
    assert_eq!(rest["steps"]["1"]["payload_completed"]["error"], "boom");
}

#[test]
fn a_step_may_have_both_payloads() {
    // R-002-05
    let call =
        r#"{"step_id":"t","label":"tool_call","payload_started":{"name":"x","call_id":"a"}}"#;
    for output in [
        r#""payload_started":{},"payload_completed":{"output":"all"}"#,
        r#""payload_started":{"output":"all"},"payload_completed":{}"#,
        r#""payload_started":{"call_id":"a"},"payload_completed":{"output":"all"}"#,
    ] {
        let on = if output.contains("call_id") { "" } else { r#""depends_on":"t","# };
        let steps =
            format!(r#"{USER_STEP},{call},{{"step_id":"o",{on}"label":"tool_output",{output}}}"#);
        let transcript = read(&run("completed", &steps));
        assert_eq!(tools(&transcript), [tool("x", "completed", "all")], "{output}");
    }
    let thought = r#"{"step_id":"r","label":"generic","payload_started":{"kind":"reasoning","text":"hm"},"payload_completed":{"text":"hmm"}}"#;
    let transcript = read(&run("completed", &format!("{USER_STEP},{thought}")));
    let Body::Reasoning(reasoning) = &transcript.turns[0].parts[0].body else { panic!() };
    assert_eq!(reasoning.text, "hmm");
    let rest = kept(&transcript, "thoughtflow-conversation");
    assert_eq!(rest["steps"]["1"]["payload_started"], serde_json::json!({ "text": "hm" }));
}

#[test]
fn an_output_goes_to_the_nearest_call_before_it() {
    let call = |name: &str| {
        format!(
            r#"{{"label":"tool_call","payload_started":{{"name":"{name}","call_id":"call_0"}}}}"#
        )
    };
    let gave = |text: &str| {
        format!(
            r#"{{"label":"tool_output","payload_completed":{{"call_id":"call_0","output":"{text}"}}}}"#
        )
    };
    let agent = r#"{"label":"generic","payload_completed":{"kind":"agent","call_id":"call_0","agents":[{"id":"a1","name":"n","task":"t","state":"completed"}]}}"#;
    let patch = r#"{"label":"generic","payload_completed":{"kind":"patch","path":"p","diff":"d","call_id":"call_0"}}"#;
    let steps = [
        USER_STEP.to_owned(),
        call("one"),
        gave("1"),
        call("two"),
        agent.into(),
        patch.into(),
        gave("2"),
    ];
    let transcript = read(&run("completed", &steps.join(",")));
    let expected = [tool("one", "completed", "1"), tool("two", "completed", "2")];
    assert_eq!(tools(&transcript), expected);
    // The agent and the patch refer to the second call by the id that we gave it.
    let mut second = None;
    for part in &transcript.turns[0].parts {
        if let Body::Tool(tool) = &part.body {
            second = Some(tool.call_id.clone());
        } else if let Body::Agent(agents) = &part.body {
            assert_eq!(Some(&agents.call_id), second.as_ref());
        } else if let Body::Patch(patch) = &part.body {
            assert_eq!(patch.call_id, second);
        }
    }
    let kinds: Vec<&str> =
        transcript.turns[0].parts.iter().map(|part| part.body.kind().name()).collect();
    // The last part holds the unmapped fields of the first step.
    assert_eq!(kinds, ["tool", "tool", "agent", "patch", "data"]);
    assert_ne!(second.as_deref(), Some("call_0"));
}

#[test]
fn a_field_that_is_not_what_it_should_be_is_kept() {
    // Law 4: a step, the path of its bad field, and the value kept for it.
    let call = r#"{"step_id":"t","label":"tool_call","#;
    let model = r#"{"step_id":"c","label":"assistant_call","#;
    for (step, place, value) in [
        (format!(r#"{call}"payload_started":{{"name":"x","call_id":7}}}}"#), "payload_started/call_id", "7"),
        (format!(r#"{call}"payload_started":{{"name":["x"]}}}}"#), "payload_started/name", r#"["x"]"#),
        (
            format!(r#"{call}"payload_started":{{"name":"x","arguments":{{}},"arguments_text":"{{"}}}}"#),
            "payload_started/arguments_text",
            r#""{""#,
        ),
        (
            format!(r#"{call}"payload_started":{{"name":"x"}},"payload_completed":{{"output":"o","duration_ms":12.5}}}}"#),
            "payload_completed/duration_ms",
            "12.5",
        ),
        (
            format!(r#"{call}"payload_started":{{"name":"x"}},"payload_completed":{{"output":"o","exit_code":"1"}}}}"#),
            "payload_completed/exit_code",
            r#""1""#,
        ),
        (
            r#"{"step_id":"o","label":"tool_output","payload_completed":{"name":"x","output":"o","exit_code":"1"}}"#.to_owned(),
            "payload/exit_code",
            r#""1""#,
        ),
        (format!(r#"{model}"payload_started":{{"model":{{"id":"m"}}}}}}"#), "payload_started/model", r#"{"id":"m"}"#),
        (format!(r#"{model}"payload_completed":{{"stop_reason":4}}}}"#), "payload_completed/stop_reason", "4"),
        (
            format!(r#"{model}"payload_started":{{"prompt_provenance":{{"parts":[],"version":3}}}}}}"#),
            "prompt_provenance/version",
            "3",
        ),
        (
            format!(r#"{model}"payload_started":{{"prompt_provenance":{{"parts":[{{"type":"a","value":"b","id":"i"}}]}}}}}}"#),
            "prompt_provenance/parts/0/id",
            r#""i""#,
        ),
        (
            format!(r#"{model}"payload_started":{{"prompt_provenance":{{"parts":[],"assembly":[{{"part":0}}]}}}}}}"#),
            "prompt_provenance/assembly/0/part",
            "0",
        ),
        (format!(r#"{model}"payload_started":{{"prompt_provenance":"none"}}}}"#), "payload_started/prompt_provenance", r#""none""#),
        (
            r#"{"label":"assistant_message","payload_completed":{"text":"x","open":true,"citations":[1]}}"#.to_owned(),
            "payload_completed/citations",
            "[1]",
        ),
        (
            r#"{"label":"assistant_message","payload_completed":{"text":"x","citations":"c"}}"#.to_owned(),
            "payload_completed/citations",
            r#""c""#,
        ),
        (
            r#"{"label":"generic","payload_completed":{"kind":"reasoning","text":"x","open":true,"signature":"s"}}"#.to_owned(),
            "payload/signature",
            r#""s""#,
        ),
        (
            r#"{"label":"generic","payload_completed":{"kind":"reasoning","text":"x","duration_ms":1.5}}"#.to_owned(),
            "payload/duration_ms",
            "1.5",
        ),
    ] {
        let transcript = read(&run("completed", &format!("{USER_STEP},{step}")));
        let rest = kept(&transcript, "thoughtflow-conversation");
        let expected: serde_json::Value = serde_json::from_str(value).unwrap();
        assert_eq!(rest.pointer(&format!("/steps/1/{place}")), Some(&expected), "{step}\n{rest}");
    }
}

fn session_of(document: &str) -> (String, Transcript) {
    let mut session_set = SessionSet::default();
    session_set
        .read(Path::new("d.json"), DocumentLines::new(document.as_bytes()), &mut |_| {})
        .unwrap();
    let [session] = &session_set.sessions[..] else { panic!("one session") };
    (session.agent_session_id.clone(), session.transcript())
}

#[test]
fn a_document_is_named_by_its_head_however_much_that_says() {
    // R-002-04: also while the session is running.
    let whole = run("completed", USER_STEP);
    let (_, behind) = whole.split_once(r#""ended_at":null,"#).unwrap();
    for (head, left) in [
        (r#""session_id":"s","started_at":"2026-11-14T09:00:00.000Z""#, "null"),
        (r#""session_id":"s""#, "null"),
        (r#""session_id":"s","started_at":null,"ended_at":null,"owner":"o""#, r#"{"owner":"o"}"#),
        (r#""session_id":"s","started_at":"soon","ended_at":null"#, r#"{"started_at":"soon"}"#),
    ] {
        let (id, transcript) = session_of(&format!("{{{head},{behind}"));
        assert_eq!(id, "s", "{head}");
        let expected: serde_json::Value = serde_json::from_str(left).unwrap();
        assert_eq!(kept(&transcript, "thoughtflow-session"), expected, "{head}");
    }
    let began = session_of(&format!(
        r#"{{"session_id":"s","started_at":"2026-11-14T09:00:00.000Z",{behind}"#
    ));
    assert_eq!(began.1.session.facts.started.unwrap().to_string(), "2026-11-14T09:00:00Z");
    // A document without conversations is recognised too.
    let (id, transcript) = session_of(r#"{"session_id":"s","conversations":[]}"#);
    assert_eq!((id.as_str(), transcript.turns.len()), ("s", 0));
}

#[test]
fn what_stands_behind_the_conversations_belongs_to_none_of_them() {
    let document = run("completed", USER_STEP);
    let document = format!(r#"{},"note":"n"}}"#, document.strip_suffix('}').unwrap());
    let transcript = read(&document);
    let numbers: Vec<u32> = transcript.turns.iter().map(|turn| turn.number).collect();
    assert_eq!(numbers, [0, 1]);
    assert_eq!(
        transcript.turns[1].parts.iter().filter(|part| !part.evidence.is_empty()).count(),
        1
    );
    assert_eq!(kept(&transcript, "thoughtflow-record"), serde_json::json!({ "note": "n" }));
}

#[test]
fn open_parts_grow_when_the_document_grows() {
    let steps = |text: &str, input: &str| {
        format!(
            r#"{USER_STEP},{{"step_id":"a","label":"assistant_message","payload_completed":{{"text":"{text}","open":true}}}},{{"step_id":"t","label":"tool_call","payload_started":{{"name":"x","call_id":"k","arguments_text":"{input}"}},"payload_completed":{{"state":"pending"}}}}"#
        )
    };
    let mut session_set = SessionSet::default();
    for (saved, text, input) in [(1, "It", "4"), (2, "It is", "42"), (3, "It is so", "421")] {
        let document = run("unknown", &steps(text, input));
        let document = document.replacen('{', &format!(r#"{{"saved":{saved},"#), 1);
        let lines = DocumentLines::new(document.as_bytes());
        session_set.read(Path::new("d.json"), lines, &mut |_| {}).unwrap();
    }
    let transcript = session_set.sessions[0].transcript();
    let turn = transcript.turns.last().unwrap();
    let [text, call, _kept] = &turn.parts[..] else { panic!("three parts") };
    assert_eq!(text.body.prose(), Some("It is so"));
    let Body::Tool(tool) = &call.body else { panic!("a call") };
    assert_eq!(tool.input_text, "421");
}

// Law 4: a conversation is one record, however long it is.
#[test]
fn a_long_conversation_is_read_to_its_end() {
    let said = |nth: usize| {
        format!(
            r#",{{"step_id":"a{nth}","label":"assistant_message","payload_completed":{{"text":"{nth}"}}}}"#
        )
    };
    let steps: String = (0..70_000).map(said).collect();
    let transcript = read(&run("completed", &format!("{USER_STEP}{steps}")));
    let words: Vec<&str> =
        transcript.turns[0].parts.iter().filter_map(|part| part.body.prose()).collect();
    assert_eq!((words.len(), words.last()), (70_000, Some(&"69999")));
}
