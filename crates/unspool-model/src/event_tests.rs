//! The stored form of events.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::part::{Compaction, Data, Kind};

#[test]
fn a_stored_compaction_of_an_earlier_version_is_read() {
    let stored = r#"{"compacted":[{"record":"r1"},{"trigger":"auto","tokens_before":9,
        "tokens_after":null,"duration_ms":null,"summary":""}]}"#;
    let compaction = Compaction {
        trigger: Some("auto".to_owned()),
        tokens_before: Some(9),
        ..Compaction::default()
    };
    let expected = EventKind::Part(Some(Name::Record("r1".into())), Body::Compaction(compaction));
    assert_eq!(serde_json::from_str::<EventKind>(stored).unwrap(), expected);
    let written = serde_json::to_string(&expected).unwrap();
    assert_eq!(serde_json::from_str::<EventKind>(&written).unwrap(), expected);
}

#[test]
fn a_part_event_keeps_its_bytes() {
    // R-000-24
    let payload = Json::parse(r#"{ "z":1e400,  "a":null }"#).unwrap();
    let event = EventKind::Part(None, Body::Data(Data { kind: "x".to_owned(), payload }));
    let written = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<EventKind>(&written).unwrap(), event);
}

#[test]
fn prose_calls_and_agents_are_not_plain() {
    let plain = Kind::ALL.into_iter().filter(|kind| kind.is_plain()).count();
    assert_eq!(plain, Kind::ALL.len() - 4);
}
