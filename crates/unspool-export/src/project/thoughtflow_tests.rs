#![allow(clippy::unwrap_used, clippy::panic)]

use jiff::Timestamp;
use serde_json::{Value, json};
use unspool_model::id::{Id, PartId, SessionId, StepId, TurnId, sha256};
use unspool_model::json::Json;
use unspool_model::part::{Body, Part, Place, Text, Tool, ToolState};
use unspool_model::provenance::{Name, Origin, Positions};
use unspool_model::session::{
    Facts, PromptPiece, Provenance, Session, SessionState, SnapshotUse, Step, Transcript, Trigger,
    Turn, TurnOrigin, TurnState, Usage,
};
use unspool_model::summary::Completeness;
use unspool_redact::{Redacted, Redactor};

use super::*;
use crate::project::session_stream::SessionLookup;

fn id(name: &str) -> Id {
    Id::derive([name.as_bytes()])
}

fn text(text: &str) -> Body {
    Body::Text(Text { text: text.to_owned(), ..Text::default() })
}

pub(crate) fn part(name: &str, step: Option<&str>, body: Body) -> Part {
    Part {
        id: PartId(id(name)),
        place: Place(0),
        step: step.map(|step| StepId(id(step))),
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

fn step(name: &str, provenance: Option<Provenance>) -> Step {
    Step {
        id: StepId(id(name)),
        name: Name::Message(name.into()),
        at: Positions::default(),
        model: Some("model-1".into()),
        usage: Usage::default(),
        stop_reason: None,
        request: None,
        provenance,
    }
}

fn tool(call_id: &str, state: ToolState, output: Option<&str>) -> Body {
    Body::Tool(Box::new(Tool {
        call_id: call_id.to_owned(),
        name: "Read".to_owned(),
        input: Json::parse(r#"{"path":"a"}"#),
        state,
        output: output.map(str::to_owned),
        ..Tool::default()
    }))
}

fn turn(number: u32, steps: Vec<Step>, parts: Vec<Part>) -> Turn {
    Turn {
        id: TurnId(id(&format!("turn {number}"))),
        number,
        trigger: Trigger::User,
        user: vec![text("why?")],
        thinking_mode: false,
        state: TurnState::Completed,
        abandoned: false,
        inherited: false,
        started: None,
        ended: None,
        steps,
        parts,
        origin: TurnOrigin::default(),
    }
}

fn session(turns: Vec<Turn>) -> Transcript {
    let session = Session {
        id: SessionId::of("agent", "one"),
        agent: "claude-code".to_owned(),
        agent_session_id: "one".to_owned(),
        facts: Facts::default(),
        state: SessionState::Idle,
        parent: None,
        forked_from: None,
    };
    Transcript { session, turns }
}

fn document(transcript: &Transcript) -> Value {
    let transcript = &Redactor::off().release_transcript(transcript.clone());
    let mut out = Vec::new();
    write(SessionStream::of(transcript), &Options::default(), &mut out).unwrap();
    let read: Document = serde_json::from_slice(&out).unwrap();
    assert_eq!(read, Flow::new(SessionStream::of(transcript)).unwrap().document().unwrap());
    serde_json::from_slice(&out).unwrap()
}

fn steps(document: &Value) -> Vec<Value> {
    document["conversations"][0]["steps"].as_array().unwrap().clone()
}

fn labelled(document: &Value, label: &str) -> Vec<Value> {
    steps(document).into_iter().filter(|step| step["label"] == label).collect()
}

/// Pieces of a prompt, one of them with a span that is not true.
fn provenance() -> Provenance {
    let piece = |kind: &str, value: &str, span| PromptPiece {
        kind: kind.to_owned(),
        value: value.to_owned(),
        span,
    };
    Provenance {
        pieces: vec![
            piece("context_preamble", "Näh: text, now 12:00.", Some((0, 21))),
            piece("prompt_adaptations", "Be brief.", Some((22, 31))),
            // A wrong span: the prompt has other text there.
            piece("personality", "Warm.", Some((31, 36))),
            piece("user_instruction", "Help me.", Some((38, 46))),
            piece("tool_schemas_snapshot", "[]", None),
        ],
        final_prompt: Some("Näh: text, now 12:00.\nBe brief.\nWarm.\nHelp me.".to_owned()),
        snapshots: vec![
            SnapshotUse { kind: "system-policy".to_owned(), sha256: "aa".repeat(32) },
            SnapshotUse { kind: "tool-schemas".to_owned(), sha256: "bb".repeat(32) },
        ],
    }
}

// R-002-15, R-002-16, R-002-17, R-002-18
#[test]
fn prompt_payload_has_only_valid_spans() {
    let parts = vec![part("a", Some("s1"), text("because"))];
    let written = document(&session(vec![turn(1, vec![step("s1", Some(provenance()))], parts)]));
    let call = &labelled(&written, "assistant_call")[0];
    let own = &call["payload_started"]["prompt_provenance"];
    let prompt: Vec<char> = own["final_prompt"].as_str().unwrap().chars().collect();
    assert_eq!(own["final_prompt"].as_str(), provenance().final_prompt.as_deref());
    let pieces = provenance().pieces;
    for (written, piece) in own["parts"].as_array().unwrap().iter().zip(&pieces) {
        assert_eq!(
            (&written["type"], &written["value"]),
            (&json!(piece.kind), &json!(piece.value))
        );
    }
    let assembly = own["assembly"].as_array().unwrap();
    let named: Vec<u64> = assembly.iter().map(|span| span["part"].as_u64().unwrap()).collect();
    assert_eq!(named, [0, 1, 3], "the span of the personality is not true");
    for span in assembly {
        let at = |name: &str| span[name].as_u64().unwrap() as usize;
        let there: String = prompt[at("start")..at("end")].iter().collect();
        assert_eq!(own["parts"][at("part")]["value"], there.as_str());
    }
    assert_eq!(own["parts"][4]["type"], "tool_schemas_snapshot");
    let preview = &call["payload_started"]["arguments"]["instructions_preview"];
    assert_eq!(preview, &own["final_prompt"], "it is short");
    assert_eq!(call["payload_started"]["model"], "model-1");
    assert_eq!(call["payload_completed"]["response_id"], "s1");
}

struct Snapshots;

impl SessionLookup for Snapshots {
    fn open(&self, _: SessionId) -> Result<Option<SessionStream<'_>>, ProjectError> {
        Ok(None)
    }

    fn snapshot(&self, _: SessionId, sha256: &str) -> Result<Option<Redacted<Json>>, ProjectError> {
        let content = match sha256.get(..2) {
            Some("aa") => Some(Json::string("Be good.")),
            Some("bb") => Json::parse(r#"[{"name":"Read"},{"function":{"name":"Write"}}]"#),
            _ => None,
        };
        Ok(content.map(|content| Redactor::off().release_json(&content)))
    }
}

// R-002-11, R-002-13, R-002-14, R-002-15, C-15
#[test]
fn snapshots_stand_once_in_a_run_and_by_their_digest() {
    let calls = || vec![step("s1", Some(provenance())), step("s2", Some(provenance()))];
    let parts = |name: &str| {
        vec![
            part(&format!("{name} a"), Some("s1"), text("one")),
            part(&format!("{name} b"), Some("s2"), text("two")),
        ]
    };
    let written = session(vec![turn(1, calls(), parts("1")), turn(2, calls(), parts("2"))]);
    let head = written.summary(Completeness::Full, &[]);
    let head = Redactor::off().release_summary(head);
    let released = |turn: &Turn| Ok(Redactor::off().release_turn(turn.clone()));
    let stream = SessionStream::new(head, written.turns.iter().map(released), &Snapshots);
    let document = Flow::new(stream).unwrap().document().unwrap();
    let of_run = |run: usize| {
        let steps = document.conversations[run].steps.iter();
        let ids = steps.filter(|step| step.step_id.starts_with("snp_"));
        ids.map(|step| step.step_id.clone()).collect::<Vec<_>>()
    };
    let wanted = [
        format!("snp_policy_{}", "aa".repeat(32)),
        format!("snp_tools_{}", "bb".repeat(32)),
        format!("snp_context_{}", sha256("Näh: text, now 12:00.".as_bytes())),
        format!("snp_adaptations_{}", sha256(b"Be brief.")),
    ];
    assert_eq!(of_run(0), wanted, "once each, though two calls used them");
    assert_eq!(of_run(1), wanted, "the same content has the same id");
    let call = document.conversations[0].steps.iter().find(|step| step.label == "assistant_call");
    let call = call.unwrap();
    assert!(wanted.iter().all(|id| call.depends_on.0.contains(id)));
    assert!(call.depends_on.0[0].ends_with("-user-0"));
    let request = call.payload_started.as_ref().unwrap().value();
    assert_eq!(request["arguments"]["tools_count"], 2);
    let payload = |label: &str| {
        let step = document.conversations[0].steps.iter().find(|step| step.label == label);
        step.unwrap().payload_started.as_ref().unwrap().value()
    };
    assert_eq!(payload("policy.snapshot")["version"], "aa".repeat(32));
    assert_eq!(payload("policy.snapshot")["content_preview"], "Be good.");
    assert_eq!(payload("tool.schemas.snapshot")["count"], 2);
    assert_eq!(payload("tool.schemas.snapshot")["names"], json!(["Read", "Write"]));
    assert_eq!(payload("context.preamble")["context"]["channel"], "text");
    let adapted = payload("prompt.adaptations");
    assert_eq!((&adapted["content_length"], &adapted["modifiable"]), (&9.into(), &true.into()));
}

/// Snapshots as objects, each with the digest of its content.
struct Contents(Vec<(SnapshotUse, Json)>);

impl Contents {
    fn of(contents: &[(&str, Value)]) -> Contents {
        let with_digest = |(kind, content): &(&str, Value)| {
            let content = Json::from(content.clone());
            let sha256 = sha256(content.text().as_bytes());
            (SnapshotUse { kind: (*kind).to_owned(), sha256 }, content)
        };
        Contents(contents.iter().map(with_digest).collect())
    }
}

impl SessionLookup for Contents {
    fn open(&self, _: SessionId) -> Result<Option<SessionStream<'_>>, ProjectError> {
        Ok(None)
    }

    fn snapshot(&self, _: SessionId, sha256: &str) -> Result<Option<Redacted<Json>>, ProjectError> {
        let found = self.0.iter().find(|(snapshot, _)| snapshot.sha256 == sha256);
        Ok(found.map(|(_, content)| Redactor::off().release_json(content)))
    }
}

// R-002-10, R-002-11; R-002-12: they stand where they are used, though produced before the session.
#[test]
fn snapshots_say_what_they_hold_and_stand_where_they_are_used() {
    let run = |policy: &str| {
        let contents = Contents::of(&[
            ("policy", json!({ "produced_at": "2020-01-01T00:00:00.000Z", "text": policy })),
            ("tools", json!([{ "name": "Read", "input_schema": {} }, { "name": "Write" }])),
            (
                "context",
                json!({ "channel": "voice", "currentTime": "12:00", "timeZone": "Europe/Rome" }),
            ),
        ]);
        let snapshots = contents.0.iter().map(|(snapshot, _)| snapshot.clone()).collect();
        let used = Provenance { snapshots, ..Provenance::default() };
        let steps = vec![step("s0", None), step("s1", Some(used))];
        let parts = vec![part("a", Some("s0"), text("one")), part("b", Some("s1"), text("two"))];
        let mut own = turn(1, steps, parts);
        own.started = Some("2026-01-02T03:04:05Z".parse().unwrap());
        let written = session(vec![own]);
        let head = Redactor::off().release_summary(written.summary(Completeness::Full, &[]));
        let released = |turn: &Turn| Ok(Redactor::off().release_turn(turn.clone()));
        let stream = SessionStream::new(head, written.turns.iter().map(released), &contents);
        let document = Flow::new(stream).unwrap().document().unwrap();
        serde_json::to_value(&document).unwrap()["conversations"][0].take()
    };
    let (written, other) = (run("Be good."), run("Be better."));
    let steps = written["steps"].as_array().unwrap();
    let labels: Vec<&str> = steps.iter().map(|step| step["label"].as_str().unwrap()).collect();
    let expected = "user_message assistant_call assistant_message policy.snapshot \
                    tool.schemas.snapshot context.preamble prompt.adaptations assistant_call \
                    assistant_message";
    assert_eq!(labels.join(" "), expected);
    let payload = |nth: usize| &steps[nth]["payload_started"];
    let (policy, tools, context) = (payload(3), payload(4), payload(5));
    assert_eq!(policy["produced_at"], "2020-01-01T00:00:00.000Z");
    assert!(policy["produced_at"].as_str() < written["started_at"].as_str());
    assert!(policy["content_preview"].as_str().unwrap().contains("Be good."));
    assert_eq!((&tools["count"], &tools["names"]), (&json!(2), &json!(["Read", "Write"])));
    assert!(tools["schemas_preview"].as_str().unwrap().contains("input_schema"));
    let wanted = json!({ "channel": "voice", "currentTime": "12:00", "timeZone": "Europe/Rome" });
    assert_eq!(context["context"], wanted);
    for (nth, short) in [(3, "policy"), (4, "tools"), (5, "context")] {
        let version = payload(nth)["version"].as_str().unwrap();
        assert_eq!(steps[nth]["step_id"], format!("snp_{short}_{version}"));
    }
    let ids = |run: &Value| -> Vec<Value> {
        (3..6).map(|nth| run["steps"][nth]["step_id"].clone()).collect()
    };
    assert_ne!(ids(&written)[0], ids(&other)[0], "another content has another id");
    assert_eq!(ids(&written)[1..], ids(&other)[1..], "the same content has the same id");
}

// R-002-13
#[test]
fn adaptations_step_is_written_only_for_a_recorded_prompt() {
    let none = Provenance { final_prompt: Some("Help.".to_owned()), ..Provenance::default() };
    let parts = || vec![part("a", Some("s1"), text("so"))];
    let written = document(&session(vec![turn(1, vec![step("s1", Some(none))], parts())]));
    let adapted = &labelled(&written, "prompt.adaptations")[0]["payload_started"];
    assert_eq!(adapted["content_length"], 0);
    assert_eq!(adapted["included_ids"], json!([]));
    let written = document(&session(vec![turn(1, vec![step("s1", None)], parts())]));
    assert!(labelled(&written, "prompt.adaptations").is_empty());
    let call = &labelled(&written, "assistant_call")[0]["payload_started"];
    assert_eq!(call["arguments"]["tools_count"], Value::Null);
    assert_eq!(call.get("prompt_provenance"), None);
}

// R-002-07, R-002-41
#[test]
fn a_run_ends_as_it_was_seen_to_end() {
    let states = [
        (TurnState::Completed, "completed"),
        (TurnState::Interrupted, "aborted"),
        (TurnState::Failed, "error"),
        (TurnState::Running, "unknown"),
        (TurnState::Unknown, "unknown"),
    ];
    for (state, status) in states {
        let parts = vec![part("a", Some("s1"), text("so"))];
        let turn = Turn { state, ..turn(1, vec![step("s1", None)], parts) };
        let written = document(&session(vec![turn]));
        assert_eq!(written["conversations"][0]["status"], status);
        let call = &labelled(&written, "assistant_call")[0];
        let cancelled = call["payload_completed"]["status"] == "canceled";
        assert_eq!(cancelled, state == TurnState::Interrupted);
    }
}

// R-002-06
#[test]
fn times_are_utc_with_milliseconds_and_durations_never_negative() {
    let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    let mut turn = turn(1, Vec::new(), vec![part("a", None, text("so"))]);
    turn.started = at("2026-01-02T03:04:05.6789+02:00");
    let written = document(&session(vec![turn.clone()]));
    let run = &written["conversations"][0];
    assert_eq!(run["started_at"], "2026-01-02T01:04:05.678Z");
    assert_eq!((&run["ended_at"], run.get("duration_ms")), (&Value::Null, None));
    turn.ended = at("2026-01-02T01:04:06Z");
    let written = document(&session(vec![turn.clone()]));
    assert_eq!(written["conversations"][0]["duration_ms"], 322);
    turn.ended = at("2026-01-02T01:04:05Z");
    let written = document(&session(vec![turn]));
    assert_eq!(written["conversations"][0]["duration_ms"], 0);
}

// R-002-09, R-002-19, R-002-44
#[test]
fn what_a_tool_gave_back_depends_on_its_call() {
    let parts = vec![
        part("a", Some("s1"), tool("c1", ToolState::Completed, Some("done"))),
        part("b", Some("s1"), tool("c2", ToolState::Failed, Some("no such file"))),
        part("c", Some("s1"), tool("c3", ToolState::Running, None)),
        part("d", Some("s2"), text("so")),
    ];
    let written =
        document(&session(vec![turn(1, vec![step("s1", None), step("s2", None)], parts)]));
    let labels: Vec<String> =
        steps(&written).iter().map(|step| step["label"].as_str().unwrap().to_owned()).collect();
    let wanted = "user_message assistant_call tool_call tool_output tool_call tool_error tool_call \
                  assistant_call assistant_message";
    assert_eq!(labels.join(" "), wanted);
    let all = steps(&written);
    assert_eq!(all[3]["depends_on"], all[2]["step_id"]);
    assert_eq!(all[5]["depends_on"], all[4]["step_id"]);
    assert_eq!(all[8]["depends_on"], all[7]["step_id"]);
    let second: Vec<&Value> = all[7]["depends_on"].as_array().unwrap().iter().collect();
    let before = [&all[0], &all[3], &all[5], &all[6]].map(|step| &step["step_id"]);
    assert_eq!(second, before, "it reads what the calls before it gave back");
}

// R-002-03
#[test]
fn dependencies_parse_in_either_form_and_unknown_ones_are_reported() {
    let text = r#"{"session_id":"s","conversations":[{"conversation_id":"c","steps":[
        {"step_id":"a","label":"user_message"},
        {"step_id":"b","label":"nlp.intent","depends_on":"a"},
        {"step_id":"c","label":"generic","depends_on":["a","z"],"payload_started":null}]}]}"#;
    let document: Document = serde_json::from_str(text).unwrap();
    let run = &document.conversations[0];
    assert_eq!(run.status, Status::Unknown);
    assert_eq!(Label::of_name(&run.steps[1].label), Label::Generic);
    assert_eq!(run.unknown_steps(), [UnknownStep { step: "c", depends_on: "z" }]);
    let again = serde_json::to_value(run).unwrap();
    assert_eq!(again["steps"][1]["depends_on"], "a");
    assert_eq!(again["steps"][2]["depends_on"], json!(["a", "z"]));
}

#[test]
fn what_is_no_text_and_what_is_nested_deep_breaks_nothing() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let hostile = format!("{{\"a\":\"half \\ud800 pair\",\"b\":{deep}}}");
    let mut call = Tool { call_id: "c".to_owned(), ..Tool::default() };
    call.input = Some(Json::checked(&hostile));
    call.state = ToolState::Completed;
    call.output = Some("\u{0}\u{1b}[31m\u{202e}</script>".to_owned());
    let written =
        session(vec![turn(1, Vec::new(), vec![part("a", None, Body::Tool(Box::new(call)))])]);
    let mut out = Vec::new();
    let written = Redactor::off().release_transcript(written);
    write(SessionStream::of(&written), &Options::default(), &mut out).unwrap();
    let read: Document = serde_json::from_slice(&out).unwrap();
    let [_, call, output] = read.conversations[0].steps.as_slice() else { panic!("three steps") };
    let arguments = call.payload_started.as_ref().unwrap().text();
    assert!(arguments.contains("half \\ufffd pair") && arguments.contains(&deep));
    let output = output.payload_completed.as_ref().unwrap().value();
    assert_eq!(output["output"], "\u{0}\u{1b}[31m\u{202e}</script>");
}

// R-002-27
#[test]
fn a_session_without_a_turn_is_a_document_without_a_run() {
    let written = document(&session(Vec::new()));
    assert_eq!(written["conversations"], json!([]));
}

#[test]
fn steps_follow_the_order_in_which_they_were_appended() {
    // R-002-08 as C-02 decides it: the order of appending. It is the order of starts wherever a
    // clock is right; equal starts and a missing one change nothing; a clock that was set back
    // (or the clock of another feed) moves no step, because law 1 keeps the order.
    let at = |name: &str, second: Option<i64>| Part {
        started: second.map(|second| Timestamp::from_second(second).unwrap()),
        ..part(name, None, text(name))
    };
    let order = |parts: Vec<Part>| -> Vec<String> {
        let document = document(&session(vec![turn(1, vec![], parts)]));
        let said = labelled(&document, "assistant_message");
        let text = |step: &Value| step["payload_completed"]["text"].as_str().unwrap().to_owned();
        said.iter().map(text).collect()
    };
    let clock = vec![at("a", Some(1)), at("b", Some(2)), at("c", Some(2)), at("d", Some(3))];
    assert_eq!(order(clock), ["a", "b", "c", "d"], "by start, ties as appended");
    let without = vec![at("a", Some(1)), at("b", None), at("c", Some(2))];
    assert_eq!(order(without), ["a", "b", "c"], "a step without a start keeps its place");
    let set_back = vec![at("a", Some(5)), at("b", Some(1)), at("c", Some(6))];
    assert_eq!(order(set_back), ["a", "b", "c"]);
}
