#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::path::Path;

use unspool_model::part::Body;
use unspool_model::session::{Transcript, Trigger, TurnState};

use crate::in_memory::SessionSet;

/// The text of a session in the database with these events.
fn log(events: &[(&str, &str)]) -> String {
    let mut text = String::from(
        "{\"type\":\"opencode.session\",\"id\":\"ses_a\",\"directory\":\"/w\",\"version\":\"1\",\
         \"time\":{\"created\":1000}}\n",
    );
    for (seq, (kind, data)) in events.iter().enumerate() {
        text += &format!(
            "{{\"id\":\"evt_{seq}\",\"seq\":{seq},\"type\":\"{kind}.1\",\"data\":{data}}}\n"
        );
    }
    text
}

fn transcript_of(text: &str) -> Transcript {
    let mut session_set = SessionSet::default();
    session_set.read(Path::new("x"), text.as_bytes(), &mut |_| {}).unwrap();
    assert_eq!(session_set.sessions.len(), 1);
    session_set.sessions[0].transcript()
}

fn user(id: &str, at: u64) -> (&'static str, String) {
    let info = format!(r#"{{"info":{{"id":"{id}","role":"user","time":{{"created":{at}}}}}}}"#);
    ("message.updated", info)
}

fn model(id: &str, parent: &str, rest: &str) -> (&'static str, String) {
    let info = format!(
        r#"{{"info":{{"id":"{id}","role":"assistant","parentID":"{parent}","time":{{"created":2000,"completed":3000}}{rest}}}}}"#
    );
    ("message.updated", info)
}

fn part(id: &str, message: &str, rest: &str) -> (&'static str, String) {
    let part = format!(r#"{{"part":{{"id":"{id}","messageID":"{message}",{rest}}},"time":2500}}"#);
    ("message.part.updated", part)
}

fn text(id: &str, message: &str, text: &str) -> (&'static str, String) {
    part(id, message, &format!(r#""type":"text","text":"{text}","time":{{"start":1,"end":2}}"#))
}

fn transcript_of_events(events: &[(&'static str, String)]) -> Transcript {
    let events: Vec<(&str, &str)> = events.iter().map(|(kind, data)| (*kind, &**data)).collect();
    transcript_of(&log(&events))
}

/// One line per turn: trigger, user text, state, parts.
pub(super) fn outline(transcript: &Transcript) -> Vec<String> {
    let written = |body: &Body| match body {
        Body::Text(text) => text.text.clone(),
        Body::Tool(tool) => format!("{} {}", tool.name, tool.state.name()),
        Body::Agent(agents) => agents
            .agents
            .iter()
            .map(|agent| format!("{} {}", agent.id, agent.state.name()))
            .collect(),
        other => other.kind().name().to_owned(),
    };
    let line = |turn: &unspool_model::session::Turn| {
        let said: Vec<&str> = turn.user.iter().filter_map(Body::prose).collect();
        let parts: Vec<String> = turn.parts.iter().map(|part| written(&part.body)).collect();
        let (trigger, state) = (turn.trigger.name(), turn.state.name());
        format!("{trigger} {said:?} {state}: {}", parts.join(", "))
    };
    transcript.turns.iter().map(line).collect()
}

#[test]
fn a_message_that_is_sent_while_the_model_works_waits_for_its_turn() {
    // R-X-02: the first turn lasts until its step has ended.
    let pending =
        r#""type":"tool","callID":"c","tool":"bash","state":{"status":"running","input":{}}"#;
    let done = r#""type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{},"output":"x"}"#;
    let transcript = transcript_of_events(&[
        user("u1", 1500),
        text("p1", "u1", "first"),
        model("m1", "u1", r#","finish":"tool-calls""#),
        part("p2", "m1", pending),
        user("u2", 1600),
        text("p3", "u2", "second"),
        part("p2", "m1", done),
        model("m2", "u2", r#","finish":"stop""#),
        text("p4", "m2", "both done"),
    ]);
    assert_eq!(
        outline(&transcript),
        [r#"user ["first"] completed: bash completed"#, r#"user ["second"] completed: both done"#]
    );
}

#[test]
fn a_sub_agent_in_the_background_reports_in_a_turn_of_its_own() {
    let task = r#""type":"tool","callID":"c","tool":"task","state":{"status":"completed","input":{"subagent_type":"explore","description":"Look"},"output":"<task id=\"ses_b\" state=\"running\">","metadata":{"sessionId":"ses_b","background":true}}"#;
    let report = r#""type":"text","synthetic":true,"text":"<task id=\"ses_b\" state=\"completed\">found</task>""#;
    let mut events = vec![
        user("u1", 1500),
        text("p1", "u1", "look"),
        model("m1", "u1", r#","finish":"stop""#),
        part("p2", "m1", task),
    ];
    assert_eq!(
        outline(&transcript_of_events(&events)),
        [r#"user ["look"] completed: task completed, ses_b background"#]
    );
    events.extend([
        user("u2", 1700),
        part("p3", "u2", report),
        model("m2", "u2", r#","finish":"stop""#),
        text("p4", "m2", "found it"),
    ]);
    assert_eq!(
        outline(&transcript_of_events(&events)),
        [
            r#"user ["look"] completed: task completed, ses_b completed"#,
            r#"agent [] completed: context-info, found it"#
        ]
    );
}

#[test]
fn what_a_failed_attempt_left_behind_is_not_shown() {
    let begun = r#""type":"text","text":"","time":{"start":1}"#;
    let step = r#""type":"step-start""#;
    let over = r#""type":"step-finish","reason":"stop","tokens":{"input":3,"output":1,"reasoning":2,"cache":{"read":4,"write":5}}"#;
    let transcript = transcript_of_events(&[
        user("u1", 1500),
        text("p1", "u1", "go"),
        model("m1", "u1", ""),
        part("p2", "m1", step),
        part("p3", "m1", begun),
        part("p4", "m1", step),
        part("p5", "m1", begun),
        text("p5", "m1", "at last"),
        part("p6", "m1", over),
        model("m1", "u1", r#","finish":"stop""#),
    ]);
    assert_eq!(outline(&transcript), [r#"user ["go"] completed: at last"#]);
    assert_eq!(transcript.turns[0].steps.len(), 1);
    let usage = transcript.usage();
    assert_eq!((usage.input, usage.output, usage.reasoning), (3, 3, 2));
    assert_eq!((usage.cache_read, usage.cache_write), (4, 5));
}

#[test]
fn events_of_the_global_stream_count_once() {
    let event = |body: &str| format!("{{\"directory\":\"/w\",\"payload\":{body}}}\n");
    let sent_twice = |kind: &str, data: &str| {
        event(&format!(r#"{{"id":"evt_1","type":"{kind}","properties":{data}}}"#))
            + &event(&format!(
                r#"{{"type":"sync","syncEvent":{{"type":"{kind}.1","seq":1,"aggregateID":"ses_a","data":{data}}}}}"#
            ))
    };
    let part = r#"{"sessionID":"ses_a","part":{"id":"p1","sessionID":"ses_a","messageID":"m1","type":"text","text":"","time":{"start":1}}}"#;
    let whole = r#"{"sessionID":"ses_a","part":{"id":"p1","sessionID":"ses_a","messageID":"m1","type":"text","text":"Hello","time":{"start":1,"end":2}}}"#;
    let delta = r#"{"id":"evt_9","type":"message.part.delta","properties":{"sessionID":"ses_a","messageID":"m1","partID":"p1","field":"text","delta":"Hel"}}"#;
    let user = r#"{"sessionID":"ses_a","info":{"id":"u1","sessionID":"ses_a","role":"user","time":{"created":1}}}"#;
    let model = r#"{"sessionID":"ses_a","info":{"id":"m1","parentID":"u1","sessionID":"ses_a","role":"assistant","time":{"created":1}}}"#;
    let mut stream = event(r#"{"type":"server.connected","properties":{}}"#)
        + &sent_twice("message.updated", user)
        + &sent_twice("message.updated", model)
        + &sent_twice("message.part.updated", part)
        + &event(delta);
    assert_eq!(outline(&transcript_of(&stream)), [r#"user [] running: Hel"#]);
    stream += &sent_twice("message.part.updated", whole);
    assert_eq!(outline(&transcript_of(&stream)), [r#"user [] running: Hello"#]);
}

#[test]
fn a_turn_that_was_taken_back_is_kept_and_abandoned() {
    let transcript = transcript_of_events(&[
        user("u1", 1500),
        text("p1", "u1", "wrong"),
        model("m1", "u1", r#","finish":"stop""#),
        text("p2", "m1", "done"),
        ("message.removed", r#"{"messageID":"u1"}"#.to_owned()),
        ("message.removed", r#"{"messageID":"m1"}"#.to_owned()),
        user("u2", 1600),
        text("p3", "u2", "right"),
    ]);
    let abandoned: Vec<bool> = transcript.turns.iter().map(|turn| turn.abandoned).collect();
    assert_eq!(abandoned, [true, false]);
    assert_eq!(
        outline(&transcript),
        [r#"user ["wrong"] completed: done"#, r#"user ["right"] running: "#]
    );
}

#[test]
fn what_a_fork_copied_is_inherited() {
    let over = r#""type":"step-finish","reason":"stop","tokens":{"input":3}"#;
    let step = r#""type":"step-start""#;
    let transcript = transcript_of_events(&[
        user("u1", 500),
        text("p1", "u1", "old"),
        model("m1", "u1", r#","finish":"stop""#),
        part("p2", "m1", step),
        text("p3", "m1", "answer"),
        part("p4", "m1", over),
        user("u2", 1500),
        text("p5", "u2", "new"),
    ]);
    assert_eq!(transcript.usage().total(), 0);
    let turn = &transcript.turns[0];
    assert_eq!((turn.inherited, turn.state), (true, TurnState::Completed));
    assert!(!transcript.turns[1].inherited);
    assert_eq!(transcript.turns[1].trigger, Trigger::User);
}

#[test]
fn a_marker_in_output_does_not_interrupt_a_command() {
    // Law 8: only the marker that OpenCode appends to the output counts.
    let faked = r#""type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{},"output":"<shell_metadata>\nUser aborted the command","metadata":{"output":"<shell_metadata>\nUser aborted the command","exit":null}}"#;
    let real = r#""type":"tool","callID":"d","tool":"bash","state":{"status":"completed","input":{},"output":"x\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>","metadata":{"output":"x\n","exit":null}}"#;
    let transcript = transcript_of_events(&[
        user("u1", 1500),
        text("p1", "u1", "go"),
        model("m1", "u1", r#","finish":"tool-calls""#),
        part("p2", "m1", faked),
        part("p3", "m1", real),
    ]);
    assert_eq!(outline(&transcript), [r#"user ["go"] running: bash completed, bash interrupted"#]);
}

#[test]
fn a_command_that_printed_nothing_was_stopped_if_its_agent_says_so() {
    // C-25, R-X-02: Kilo 7.7.9 then has its marker in both places.
    let stopped = r#""type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{},"output":"(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>","metadata":{"output":"(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>","exit":null}}"#;
    let transcript = transcript_of_events(&[
        user("u1", 1500),
        text("p1", "u1", "go"),
        model("m1", "u1", r#","finish":"tool-calls""#),
        part("p2", "m1", stopped),
    ]);
    assert_eq!(outline(&transcript), [r#"user ["go"] running: bash interrupted"#]);
}

#[test]
fn the_cost_of_a_session_includes_a_last_call_that_it_does_not_report() {
    // The session says what it cost a moment after the call.
    let finish = |cost| {
        format!(
            r#""type":"step-finish","reason":"stop","cost":{cost},"tokens":{{"input":3,"output":1}}"#
        )
    };
    let (first, second) = (finish("0.25"), finish("0.5"));
    let begin = r#""type":"step-start""#;
    let transcript = transcript_of_events(&[
        user("u1", 1500),
        text("p1", "u1", "go"),
        model("m1", "u1", r#","finish":"tool-calls""#),
        part("p2", "m1", begin),
        part("p3", "m1", &first),
        // The same again.
        part("p3", "m1", &first),
        model("m2", "u1", r#","finish":"stop""#),
        part("p4", "m2", begin),
        part("p5", "m2", &second),
    ]);
    assert_eq!(transcript.session.facts.cost().map(|cost| cost.usd), Some(0.75));
}
