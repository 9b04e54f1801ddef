//! Decoders that are saved and resumed, what is recognised, and documents that are odd.

use std::path::{Path, PathBuf};

use unspool_core::event::{EndReason, Event, What};
use unspool_core::part::Body;
use unspool_core::session::Transcript;

use super::*;
use crate::decode::{Outline, Record};
use crate::gather::Gathering;
use crate::read::document::Document;
use crate::read::{lines, source};

fn recordings() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/thoughtflow");
    let cases = folder.read_dir().unwrap().map(|case| case.unwrap().path());
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
fn law_2_a_decoder_that_is_saved_behind_every_record_tells_the_same() {
    let recordings = recordings();
    assert!(recordings.len() >= 2);
    for path in recordings {
        let decode = |resumed: bool| -> Vec<Event> {
            let mut decoder = (DOCUMENT.decoder)();
            let mut events = Vec::new();
            for (line, (offset, text)) in (1..).zip(lines_of(&path)) {
                let mut outline = Outline::default();
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
    let mut gathering = Gathering::default();
    gathering.read(Path::new("d.json"), Document::new(document.as_bytes()), &mut |_| {}).unwrap();
    let [session] = &gathering.sessions[..] else { panic!("one session") };
    session.transcript()
}

fn run(status: &str, steps: &str) -> String {
    format!(
        r#"{{"session_id":"s","started_at":null,"ended_at":null,"conversations":[{{"conversation_id":"c","channel":"text","status":"{status}","steps":[{steps}]}}]}}"#
    )
}

const ASKED: &str = r#"{"step_id":"u","label":"user_message","payload_started":{"text":"hi"}}"#;

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
        let transcript = read(&run(status, ASKED));
        assert_eq!(transcript.turns[0].state.name(), state, "{status}");
    }
    // What nobody saw the end of stays unknown when another conversation follows.
    let first = run("unknown", ASKED);
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
        let transcript = read(&run("unknown", &format!("{ASKED},{step}")));
        let Body::Data(data) = &transcript.turns[0].parts[0].body else { panic!("{step}") };
        let told: serde_json::Value = serde_json::from_str(step).unwrap();
        assert_eq!(data.payload.value(), told, "{step}");
    }
}

#[test]
fn an_end_that_only_the_rule_of_ends_told_is_told_by_it_again() {
    let id = |letter: &str| letter.repeat(20);
    let (turn, user, end) = (id("a"), format!("{}-user-0", id("a")), id("b"));
    let steps = format!(
        r#"{{"step_id":"{user}","label":"user_message","payload_started":{{"text":"hi"}}}},{{"step_id":"{end}","label":"generic","depends_on":"{user}","payload_completed":{{"kind":"error","code":null,"status":null,"text":"out of luck"}}}}"#
    );
    let document = run("error", &steps).replace("\"c\"", &format!("\"{turn}\""));
    let mut decoder = (DOCUMENT.decoder)();
    let mut events = Vec::new();
    let line = document.split_once("\"conversations\":[").unwrap().1.strip_suffix("]}").unwrap();
    let mut outline = Outline::default();
    let fields = outline.read(line).unwrap();
    let record = Record { source: 0, line: 1, offset: 0, text: line };
    decoder.decode(&record, &fields, &mut events);
    let told: Vec<&What> = events.iter().map(|event| &event.what).collect();
    let why = EndReason::Failed(Some("out of luck".to_owned()));
    assert!(matches!(&told[..], [What::TurnStarted { .. }, What::TurnEnded(end)] if *end == why));
    let transcript = read(&document);
    let [part] = &transcript.turns[0].parts[..] else { panic!("one part") };
    assert!(matches!(&part.body, Body::Error(error) if error.text == "out of luck"));
}
