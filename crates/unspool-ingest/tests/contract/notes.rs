//! Notes: one per target, beside the transcript. They follow their turn or part when it gets another
//! id, outlive a session that is read again, and go with a session that is deleted.

use jiff::Timestamp;
use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::ProseKind::Text;
use unspool_model::event::ToolEnd;
use unspool_model::id::SessionId;
use unspool_model::note::{Note, NoteTarget, PlacedNote};
use unspool_model::part::Kind;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, View};

use crate::batches::busy_turn;
use crate::harness::{AGENT, Harness, ask};
use crate::script::*;
use crate::test_archive::TestArchive;

fn id(session: &str) -> SessionId {
    SessionId::of(AGENT, session)
}

fn set<H: TestArchive>(harness: &Harness<H>, target: NoteTarget, text: &str, second: i64) {
    let note = Note { target, text: text.to_owned(), at: Timestamp::from_second(second).unwrap() };
    block_on(harness.store().set_note(id("s"), note)).unwrap();
}

fn notes<H: TestArchive>(harness: &Harness<H>) -> Vec<PlacedNote> {
    block_on(harness.view().notes(id("s"))).unwrap()
}

/// Each note as `turn: text`.
fn texts<H: TestArchive>(harness: &Harness<H>) -> Vec<String> {
    let text = |placed: &PlacedNote| match placed.turn {
        Some(turn) => format!("{turn}: {}", placed.note.text),
        None => format!("-: {}", placed.note.text),
    };
    notes(harness).iter().map(text).collect()
}

pub fn a_target_has_one_note<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let row = harness.record("s", [busy_turn("one"), busy_turn("two")].concat()).row;
    let turns = harness.turns(row);
    let (turn, part) = (NoteTarget::Turn(turns[1].id), NoteTarget::Part(turns[0].parts[2].id));
    set(&harness, turn, "second turn", 10);
    set(&harness, part, "", 20);
    set(&harness, NoteTarget::Session, "ä \"quoted\"\n\u{1b}[31m", 30);
    set(&harness, turn, "replaced", 40);
    let expected = ["-: ä \"quoted\"\n\u{1b}[31m", "1: ", "2: replaced"];
    assert_eq!(texts(&harness), expected, "in the order of the transcript");
    let placed = notes(&harness);
    assert_eq!(placed[1].place, Some(turns[0].parts[2].place));
    assert!(placed[1].note.is_bookmark() && !placed.iter().any(PlacedNote::is_lost));
    let all = block_on(harness.view().all_notes()).unwrap();
    let newest: Vec<i64> = all.iter().map(|(_, placed)| placed.note.at.as_second()).collect();
    assert_eq!(newest, [40, 30, 20]);
    assert!(all.iter().all(|(session, _)| *session == id("s")));
    let harness = harness.reopened();
    assert_eq!(texts(&harness), expected);
    block_on(harness.store().remove_note(id("s"), part)).unwrap();
    block_on(harness.store().remove_note(id("s"), NoteTarget::Turn(turns[0].id))).unwrap();
    assert_eq!(texts(&harness).len(), 2);
    // The transcript is the same with and without notes.
    assert_eq!(harness.turns(row), turns);
    harness.is_clean();
}

pub fn a_note_follows_its_turn_and_its_part<H: TestArchive>() {
    // Hooks and the log report the same turn; the two are merged only later.
    for mode in [IngestMode::Bulk, IngestMode::Live] {
        let harness = Harness::<H>::new();
        let alike = unspool_model::provenance::Name::ByContent(1, 0);
        let record = |script: Vec<Line>| harness.record_as(AGENT, "s", mode, script);
        let hooks = vec![
            started(vec![alike.clone()], vec![words("walrus")]).hook(),
            called("t", "Bash").hook(),
        ];
        let row = record(hooks).row;
        let early = harness.turns(row);
        set(&harness, NoteTarget::Turn(early[0].id), "by hooks", 10);
        set(&harness, NoteTarget::Part(early[0].parts[0].id), "the call", 20);
        record(vec![ask("p", "walrus"), said(Text, "vole")]);
        let late = harness.turns(row).iter().find(|turn| turn.id != early[0].id).unwrap().id;
        set(&harness, NoteTarget::Turn(late), "by the log", 30);
        record(vec![started(vec![prompt_name("p"), alike], vec![words("walrus")])]);
        record(vec![called("t", "Bash"), ended("t", ToolEnd::Completed, "urchin")]);
        let turns = harness.turns(row);
        assert_eq!(turns.len(), 1, "{mode:?}");
        let placed = notes(&harness);
        let found: Vec<NoteTarget> = placed.iter().map(|placed| placed.note.target).collect();
        let call = turns[0].parts.iter().find(|part| part.body.kind() == Kind::Tool).unwrap();
        assert_eq!(found, [NoteTarget::Turn(turns[0].id), NoteTarget::Part(call.id)], "{mode:?}");
        let (both, call) = (&placed[0].note.text, &placed[1].note.text);
        assert!(both.contains("by hooks") && both.contains("by the log"), "{mode:?}: {both}");
        assert_eq!(call, "the call");
        harness.is_clean();
    }
}

pub fn a_note_follows_its_part_to_another_turn<H: TestArchive>() {
    // Hooks without a prompt in one run, the log in the next.
    for mode in [IngestMode::Bulk, IngestMode::Live] {
        let harness = Harness::<H>::new();
        let hooks = vec![called("t", "Bash").hook(), called("u", "Bash").hook()];
        let row = harness.record_as(AGENT, "s", mode, hooks).row;
        let call = harness.turns(row)[0].parts[0].id;
        set(&harness, NoteTarget::Part(call), "the call", 10);
        assert_eq!(texts(&harness), ["0: the call"], "{mode:?}");
        let harness = harness.reopened();
        let log = vec![ask("p", "walrus"), step("m"), called("t", "Bash"), said(Text, "vole")];
        harness.record_as(AGENT, "s", mode, log);
        let turns = harness.turns(row);
        let calls =
            |turn: usize| -> Vec<_> { turns[turn].parts.iter().map(|part| part.id).collect() };
        assert!(!calls(0).contains(&call) && calls(1).contains(&call), "{mode:?}");
        assert_eq!(texts(&harness), ["1: the call"], "{mode:?}");
        harness.is_clean();
        // A later run finds the call where it is now.
        let harness = harness.reopened();
        harness.record_as(AGENT, "s", mode, vec![ended("t", ToolEnd::Completed, "urchin").hook()]);
        assert_eq!(harness.find("urchin").len(), 1, "{mode:?}");
        let parts: usize = harness.turns(row).iter().map(|turn| turn.parts.len()).sum();
        assert_eq!(parts, 3, "{mode:?}");
        harness.is_clean();
    }
}

pub fn a_note_outlives_its_session_and_its_target<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let row = harness.record("s", [busy_turn("one"), busy_turn("two")].concat()).row;
    let turns = harness.turns(row);
    set(&harness, NoteTarget::Turn(turns[1].id), "turn", 10);
    set(&harness, NoteTarget::Part(turns[1].parts[1].id), "part", 20);
    block_on(harness.store().forget(row)).unwrap();
    assert!(block_on(harness.view().all_notes()).unwrap().is_empty(), "no session, no entry");
    // Only the first turn comes back.
    harness.record("s", busy_turn("one"));
    assert_eq!(texts(&harness), ["-: turn", "-: part"]);
    assert!(notes(&harness).iter().all(PlacedNote::is_lost));
    harness.record("s", busy_turn("two"));
    assert_eq!(texts(&harness), ["2: turn", "2: part"]);
    let row = harness.session("s").row;
    block_on(harness.store().delete(row)).unwrap();
    assert!(notes(&harness).is_empty());
    harness.is_clean();
}
