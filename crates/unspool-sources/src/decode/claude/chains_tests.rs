use serde_json::{Value, json};
use unspool_model::part::Body;
use unspool_model::session::Transcript;

use crate::in_memory::{DecodedSession, SessionSet};
use crate::read::lines::Line;

/// A record of a log of 1.0.100.
fn record(side: bool, uuid: &str, parent: Option<&str>, kind: &str, content: Value) -> Value {
    json!({
        "parentUuid": parent, "isSidechain": side, "sessionId": "s", "version": "1.0.100",
        "type": kind, "uuid": uuid, "timestamp": "2026-11-15T00:39:21.937Z",
        "message": { "id": format!("msg_{uuid}"), "role": kind, "content": content },
    })
}

fn said(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

fn task(id: &str, prompt: &str) -> Value {
    let input = json!({ "description": id, "prompt": prompt, "subagent_type": "general-purpose" });
    json!([{ "type": "tool_use", "id": id, "name": "Task", "input": input }])
}

fn done(id: &str) -> Value {
    json!([{ "type": "tool_result", "tool_use_id": id, "content": "done" }])
}

fn read(records: &[Value]) -> SessionSet {
    let mut session_set = SessionSet::default();
    let mut input = session_set.open("s.jsonl");
    for (number, record) in (1..).zip(records) {
        let bytes = record.to_string().into_bytes();
        session_set.take(&mut input, Line { number, offset: number * 1000, bytes: &bytes });
    }
    session_set.close(input, &mut |_| {});
    session_set
}

fn session<'g>(session_set: &'g SessionSet, id: &str) -> &'g DecodedSession {
    session_set.sessions.iter().find(|session| session.agent_session_id == id).unwrap()
}

fn call_of(transcript: &Transcript) -> Option<String> {
    transcript.session.parent.as_ref().and_then(|parent| parent.call_id.clone())
}

fn texts(session_set: &SessionSet, id: &str) -> Vec<String> {
    let turns = session(session_set, id).transcript().turns;
    let parts = turns.into_iter().flat_map(|turn| turn.parts);
    parts.filter_map(|part| part.body.prose().map(str::to_owned)).collect()
}

fn agents(session_set: &SessionSet, id: &str) -> Vec<(String, String)> {
    let turns = session(session_set, id).transcript().turns;
    let mut found = Vec::new();
    for part in turns.into_iter().flat_map(|turn| turn.parts) {
        let Body::Agent(agent) = part.body else { continue };
        found.extend(agent.agents.iter().map(|one| (agent.call_id.clone(), one.id.to_string())));
    }
    found
}

fn pair(call: &str, id: &str) -> (String, String) {
    (call.to_owned(), id.to_owned())
}

#[test]
fn interleaved_chains_are_kept_apart() {
    // R-001-24 R-X-04: two agents at the same time, line by line.
    let records = [
        record(false, "1", None, "user", json!("go")),
        record(false, "2", Some("1"), "assistant", task("t1", "one")),
        record(false, "3", Some("2"), "assistant", task("t2", "two")),
        record(true, "b0", None, "user", json!("two")),
        record(true, "a0", None, "user", said("one")),
        record(true, "b1", Some("b0"), "assistant", said("b")),
        record(true, "a1", Some("a0"), "assistant", said("a")),
        record(true, "b2", Some("b1"), "assistant", said("bb")),
        record(false, "4", Some("3"), "user", done("t2")),
        record(true, "a2", Some("a1"), "assistant", said("aa")),
        record(false, "5", Some("4"), "user", done("t1")),
        record(false, "6", Some("5"), "assistant", said("all done")),
    ];
    let whole = read(&records);
    assert_eq!(texts(&whole, "s"), ["all done"]);
    assert_eq!(texts(&whole, "s:a0"), ["a", "aa"]);
    assert_eq!(texts(&whole, "s:b0"), ["b", "bb"]);
    let of = |id: &str| session(&whole, id).transcript();
    assert_eq!(call_of(&of("s:a0")).as_deref(), Some("t1"));
    assert_eq!(call_of(&of("s:b0")).as_deref(), Some("t2"));
    assert_eq!(of("s:b0").session.facts.title.unwrap().text, "t2");
    assert_eq!(agents(&whole, "s"), [pair("t1", "s:a0"), pair("t2", "s:b0")]);
    // A prefix of the log gives a prefix of the result.
    for length in 1..records.len() {
        let part = read(&records[..length]);
        for held in &part.sessions {
            let id = &held.agent_session_id;
            assert!(texts(&whole, id).starts_with(&texts(&part, id)), "{id} at {length}");
        }
    }
}

#[test]
fn equal_prompts_are_taken_in_their_order() {
    let records = [
        record(false, "1", None, "user", json!("go")),
        record(false, "2", Some("1"), "assistant", task("t1", "same")),
        record(false, "3", Some("2"), "assistant", task("t2", "same")),
        record(true, "a0", None, "user", json!("same")),
        record(false, "4", Some("3"), "user", done("t1")),
        record(true, "b0", None, "user", json!("same")),
        record(false, "5", Some("4"), "user", done("t2")),
    ];
    let session_set = read(&records);
    assert_eq!(agents(&session_set, "s"), [pair("t1", "s:a0"), pair("t2", "s:b0")]);
}

#[test]
fn what_no_call_explains_is_a_session_all_the_same() {
    // A nested agent, an agent without a call, and a log that begins inside an agent.
    let records = [
        record(true, "x5", Some("x4"), "assistant", said("the end of something")),
        record(true, "x6", Some("x5"), "assistant", said("indeed")),
        record(false, "1", None, "user", json!("go")),
        record(false, "2", Some("1"), "assistant", task("t1", "one")),
        record(true, "a0", None, "user", json!("one")),
        record(true, "a1", Some("a0"), "assistant", task("t2", "inner")),
        record(true, "i0", None, "user", json!("inner")),
        record(true, "i1", Some("i0"), "assistant", said("i")),
        record(true, "a2", Some("a1"), "user", done("t2")),
        record(true, "a3", Some("a2"), "assistant", said("a")),
    ];
    let session_set = read(&records);
    assert_eq!(texts(&session_set, "s:x5"), ["the end of something", "indeed"]);
    assert_eq!(call_of(&session(&session_set, "s:x5").transcript()), None);
    assert_eq!(texts(&session_set, "s:i0"), ["i"]);
    let inner = session(&session_set, "s:i0").transcript().session.parent.unwrap();
    assert_eq!(inner.session, session(&session_set, "s:a0").transcript().session.id);
    assert_eq!(inner.call_id.as_deref(), Some("t2"));
    assert_eq!(texts(&session_set, "s:a0"), ["a"]);
    // Every record is counted once.
    let read: u64 = session_set.sessions.iter().map(|session| session.record_counts.read).sum();
    assert_eq!(read as usize, records.len());
}
