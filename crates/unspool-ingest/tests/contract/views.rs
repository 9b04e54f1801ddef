//! Reading by id, one session or many, through a view.

use unspool_model::event::{EndReason, EventKind};
use unspool_model::id::SessionId;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoreErrorKind, View, Viewer};

use crate::harness::{AGENT, Harness, ask};
use crate::script::Line;
use crate::test_archive::TestArchive;

fn id(session: &str) -> SessionId {
    SessionId::of(AGENT, session)
}

pub fn a_session_is_read_by_its_id_and_by_nothing_else<H: TestArchive>() {
    let harness = Harness::<H>::new();
    harness.record("other", [ask("p", "hello")]);
    // An import that has no id of its own is named after the session that it was exported from.
    let copy = harness.record(&id("gone").to_string(), [ask("p", "hello")]);
    let found = block_on(harness.view().find(id("gone").to_string())).unwrap();
    assert_eq!(found, [copy], "a person who types the id means the copy");
    assert_eq!(block_on(harness.view().session(id("gone"))).unwrap(), None);
    let other = block_on(harness.view().session(id("other"))).unwrap().unwrap();
    assert_eq!(other.summary.session.id, id("other"));
}

pub fn sessions_are_read_together_in_the_order_of_the_ids<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let names: Vec<String> = (0..300).map(|nth| format!("s-{nth}")).collect();
    for name in &names {
        harness.record(name, [ask("p", "hello")]);
    }
    let view = harness.view();
    let mut ids: Vec<SessionId> = names.iter().rev().map(|name| id(name)).collect();
    ids.insert(7, id("not there"));
    let read = block_on(view.sessions_by_id(ids)).unwrap();
    let read: Vec<&str> =
        read.iter().map(|stored| stored.summary.session.agent_session_id.as_str()).collect();
    assert_eq!(read, names.iter().rev().map(String::as_str).collect::<Vec<_>>());
    assert!(block_on(view.sessions_by_id(Vec::new())).unwrap().is_empty());
    // Each is what a read of its own gives.
    let one = block_on(view.session(id("s-9"))).unwrap().unwrap();
    assert_eq!(block_on(view.sessions_by_id(vec![one.summary.session.id])).unwrap(), [one]);
}

pub fn sessions_with_a_turn_without_an_end_are_found<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let end = || Line::from(EventKind::TurnEnded(EndReason::Completed));
    harness.record("completed", [ask("p", "hello"), end()]);
    harness.record("running", [ask("p", "hello"), end(), ask("q", "more")]);
    harness.record("resumed", [ask("p", "hello"), end(), ask("q", "more"), end()]);
    let found = block_on(harness.view().sessions_with_running_turns()).unwrap();
    assert_eq!(found, [id("running")]);
}

pub fn a_view_sees_what_is_committed_after_it_was_made<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let beside = harness.archive.open_to_read().view(Viewer::Sole);
    let here = harness.view();
    let stored = harness.record("s", [ask("p", "hello")]);
    for view in [here, beside] {
        let seen = block_on(view.session(id("s"))).unwrap().unwrap();
        assert_eq!(seen.seq, stored.seq);
    }
}

pub fn an_error_has_a_kind_and_says_where<H: TestArchive>() {
    let harness = Harness::<H>::new();
    harness.record("s", [ask("p", "hello")]);
    let reader = harness.archive.open_to_read();
    let error = block_on(reader.set("x".to_owned(), None)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly);
    assert!(error.cause().is_none(), "it was refused before the database was asked");
    let place = harness.archive.place();
    assert!(error.to_string().contains(&place), "{error} does not name {place}");
}
