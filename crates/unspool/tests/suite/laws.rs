//! The laws, on every recording: folding live, resumed at any point, from changes alone or from
//! stored rows gives the same transcript.

use std::path::Path;

use unspool_model::assemble::{Assembler, TurnStub};
use unspool_model::change::{Change, merged};
use unspool_model::event::Event;
use unspool_model::id::SessionId;
use unspool_model::json::replace_lone_surrogates;
use unspool_model::part::{Body, ToolState};
use unspool_model::session::{Transcript, Turn, TurnState};
use unspool_model::transcript::TranscriptBuilder;
use unspool_sources::in_memory::SessionSet;

use crate::by_source::{SOURCES, by_source};
use crate::case::{Capture, captures, case_sessions, cases, difference, main_session, name};
use crate::json_client::{JsonClient, comparable};

/// The events of one session of a case, one capture after another.
pub struct SessionEvents {
    pub case: String,
    pub agent: &'static str,
    pub session: String,
    pub events: Vec<Event>,
}

/// Every session that the cases of a source are about.
pub fn session_events(source: &str) -> Vec<SessionEvents> {
    cases(source).iter().flat_map(|case| session_events_of(case)).collect()
}

fn session_events_of(case: &Path) -> Vec<SessionEvents> {
    session_events_in(case, &captures(case).iter().collect::<Vec<_>>())
}

/// The sessions of a case, with its captures in this order.
fn session_events_in(case: &Path, captures: &[&Capture]) -> Vec<SessionEvents> {
    let mut session_set = SessionSet::default();
    let mut all: Vec<(String, Event)> = Vec::new();
    for capture in captures {
        let mut reading = session_set.open(&capture.file);
        let mut watch = |decoded: unspool_sources::in_memory::RecordTrace<'_>| {
            let session = decoded.session.to_owned();
            all.extend(decoded.events.iter().map(|event| (session.clone(), event.clone())));
        };
        for line in &capture.lines {
            session_set.take_traced(&mut reading, line.line(), &mut watch);
        }
        session_set.close(reading, &mut watch);
    }
    case_sessions(&session_set)
        .map(|session| {
            let id = session.agent_session_id.clone();
            let events = all.iter().filter(|(of, _)| *of == id).map(|(_, event)| event.clone());
            let events = events.collect();
            SessionEvents { case: name(case), agent: session.agent, session: id, events }
        })
        .collect()
}

#[derive(Clone)]
struct LiveFold {
    assembler: Assembler,
    builder: TranscriptBuilder,
}

impl LiveFold {
    fn new(session_events: &SessionEvents) -> LiveFold {
        LiveFold {
            assembler: Assembler::new(SessionId::of(session_events.agent, &session_events.session)),
            builder: TranscriptBuilder::new(session_events.agent, &session_events.session),
        }
    }

    fn apply(&mut self, event: Event) {
        self.builder.apply_all(self.assembler.apply(event));
    }

    fn all(session_events: &SessionEvents) -> Transcript {
        let mut fold = LiveFold::new(session_events);
        session_events.events.iter().for_each(|event| fold.apply(event.clone()));
        fold.builder.into_transcript()
    }
}

fn assert_same(what: String, expected: &Transcript, found: &Transcript) {
    if let Some(difference) = difference(expected, found) {
        panic!("{what}: {difference}");
    }
}

by_source!(law_2_live_is_stored);

fn law_2_live_is_stored(source: &str) {
    // R-000-14, R-004-14: at every cut, the rest can be folded onto the stored rows.
    for session_events in session_events(source) {
        let (case, events) = (&session_events.case, &session_events.events);
        let expected = LiveFold::all(&session_events);
        let mut live = LiveFold::new(&session_events);
        // Each cut folds the rest again. In long recordings only every seventh cut folds all of
        // it; the others fold the next events.
        let step = if events.len() > 300 { 7 } else { 1 };
        for (cut, event) in events.iter().enumerate() {
            if cut % step != 0 {
                let stored = live.builder.clone();
                let assembler = Assembler::resume(&stored.rows());
                let (mut ahead, mut resumed) =
                    (live.clone(), LiveFold { assembler, builder: stored });
                for event in &events[cut..events.len().min(cut + step)] {
                    ahead.apply(event.clone());
                    resumed.apply(event.clone());
                }
                let (ahead, resumed) = (ahead.builder.into_transcript(), resumed.builder);
                assert_same(format!("{case} cut at {cut}"), &ahead, &resumed.into_transcript());
            }
            if cut % step == 0 {
                let stored = live.builder.clone();
                let mut resumed =
                    LiveFold { assembler: Assembler::resume(&stored.rows()), builder: stored };
                events[cut..].iter().for_each(|event| resumed.apply(event.clone()));
                let what = format!("{} cut at {cut}", case);
                assert_same(what, &expected, &resumed.builder.into_transcript());
                let what = format!("{} taken up in outline at {cut}", case);
                assert_same(what, &expected, &from_outline(&live, &events[cut..]));
            }
            live.apply(event.clone());
        }
        assert_same(case.clone(), &expected, &live.builder.into_transcript());
    }
}

/// Continues like a recorder that opens a stored session: it starts with outlines, and restores a
/// turn from its rows when an event needs it.
fn from_outline(stored: &LiveFold, events: &[Event]) -> Transcript {
    let rows = stored.builder.rows();
    let outlines = rows.turns.iter().map(|turn| TurnStub {
        turn: Turn { parts: Vec::new(), steps: Vec::new(), ..turn.clone() },
        names: turn.name_digests(0),
    });
    let mut assembler = Assembler::resume_from_stubs(&rows.session, outlines);
    for turn in rows.turns.iter().filter(|turn| !stored.assembler.is_settled(turn.id)) {
        assembler.restore(turn);
    }
    let mut builder = stored.builder.clone();
    for event in events {
        for turn in assembler.needs(event) {
            assembler.restore(builder.find_turn(turn).unwrap());
        }
        builder.apply_all(assembler.apply(event.clone()));
    }
    builder.into_transcript()
}

by_source!(changes_alone_rebuild_the_session);

fn changes_alone_rebuild_the_session(source: &str) {
    // R-X-03: batched, merged, and after a round trip through JSON.
    for session_events in session_events(source) {
        let expected = LiveFold::all(&session_events);
        let mut assembler =
            Assembler::new(SessionId::of(session_events.agent, &session_events.session));
        let changes: Vec<Change> =
            session_events.events.into_iter().flat_map(|event| assembler.apply(event)).collect();
        let count = changes.len();
        let merged = merged(changes);
        assert!(merged.len() <= count);
        let mut builder = TranscriptBuilder::new(session_events.agent, &session_events.session);
        for change in merged {
            let written = serde_json::to_string(&change).unwrap();
            builder.apply(serde_json::from_str(&written).unwrap());
        }
        assert_same(session_events.case, &expected, &builder.into_transcript());
    }
}

#[test]
fn law_2_changes_alone_rebuild_the_session_in_any_client() {
    // R-X-14, R-000-14: with the feeds in several orders, so that turns and parts are merged.
    let mut merges = 0;
    for case in SOURCES.iter().flat_map(|source| cases(source)) {
        let captures = captures(&case);
        let in_order: Vec<&Capture> = captures.iter().collect();
        let mut orders = vec![in_order.clone()];
        if captures.len() > 1 {
            orders.push(captures.iter().rev().collect());
            orders.push(captures[1..].iter().chain(&captures[..1]).collect());
        }
        for session_events in orders.iter().flat_map(|order| session_events_in(&case, order)) {
            merges += fold_in_client(&session_events);
        }
    }
    assert!(merges > 100, "only {merges} merges");
}

/// As a client parses it. Recordings have lone surrogates, which a `Value` cannot hold.
fn value_of(of: &impl serde::Serialize) -> serde_json::Value {
    let text = serde_json::to_string(of).unwrap();
    serde_json::from_str(&replace_lone_surrogates(&text)).unwrap()
}

/// Compares the client's transcript with the product's, and returns the number of merges.
fn fold_in_client(session_events: &SessionEvents) -> usize {
    let SessionEvents { case, agent, session, events } = session_events;
    let mut assembler = Assembler::new(SessionId::of(agent, session));
    let empty = TranscriptBuilder::new(agent, session).into_transcript();
    let mut client = JsonClient::new(&value_of(&empty));
    let mut merges = 0;
    for change in events.iter().flat_map(|event| assembler.apply(event.clone())) {
        let change = value_of(&change);
        merges += usize::from(change.get("part-merged").or(change.get("turn-merged")).is_some());
        client.apply(&change);
    }
    let expected = comparable(value_of(&LiveFold::all(session_events)));
    let found = client.transcript();
    for (expected, found) in
        expected["turns"].as_array().unwrap().iter().zip(found["turns"].as_array().unwrap())
    {
        assert!(expected == found, "{case}:\n{expected}\n\n{found}");
    }
    assert!(expected == found, "{case}: other turns or another head");
    merges
}

by_source!(law_5_twice_is_once);

fn law_5_twice_is_once(source: &str) {
    // R-001-28: applying all events again, in the same order, changes nothing.
    for session_events in session_events(source) {
        let expected = LiveFold::all(&session_events);
        let mut fold = LiveFold::new(&session_events);
        for _ in 0..2 {
            session_events.events.iter().for_each(|event| fold.apply(event.clone()));
        }
        assert_same(session_events.case, &expected, &fold.builder.into_transcript());
    }
}

by_source!(law_5_a_log_and_its_copy_are_one);

fn law_5_a_log_and_its_copy_are_one(source: &str) {
    // R-001-28: a log and its copy, also one that has grown since, are imported once.
    for case in cases(source) {
        let captures = captures(&case);
        let [log, ..] = captures.as_slice() else { continue };
        if log.file != "log.jsonl" {
            continue;
        }
        let once = crate::case::fold_in(&captures[..1], &[0]);
        let mut twice = SessionSet::default();
        for (name, length) in [("copy.jsonl", log.lines.len() / 2), ("log.jsonl", log.lines.len())]
        {
            let mut reading = twice.open(name);
            for line in &log.lines[..length] {
                twice.take(&mut reading, line.line());
            }
            twice.close(reading, &mut |_| {});
        }
        let (expected, found) = (main_session(&once), main_session(&twice));
        assert_same(name(&case), &expected.transcript(), &found.transcript());
    }
}

#[test]
fn law_9_memory_is_bounded() {
    // Release every turn that can be released after every event; restore it when needed.
    let mut released = 0;
    for session_events in SOURCES.into_iter().flat_map(session_events) {
        let expected = LiveFold::all(&session_events);
        let mut fold = LiveFold::new(&session_events);
        for event in session_events.events {
            for turn in fold.assembler.needs(&event) {
                let stored = fold.builder.find_turn(turn).unwrap().clone();
                fold.assembler.restore(&stored);
            }
            fold.apply(event);
            let turns: Vec<_> = fold.builder.turn_ids().collect();
            released += turns.iter().filter(|turn| fold.assembler.release(**turn)).count();
        }
        assert_same(session_events.case, &expected, &fold.builder.into_transcript());
    }
    assert!(released > 50, "only {released} turns were let go");
}

by_source!(every_end_leaves_nothing_running);

fn every_end_leaves_nothing_running(source: &str) {
    // R-X-02, R-004-17
    for session_events in session_events(source) {
        let case = &session_events.case;
        for turn in LiveFold::all(&session_events).turns {
            if matches!(turn.state, TurnState::Running | TurnState::Unknown) {
                continue;
            }
            for part in &turn.parts {
                match &part.body {
                    Body::Text(text) => assert!(!text.open, "{}", case),
                    Body::Reasoning(reasoning) => assert!(!reasoning.open, "{}", case),
                    Body::Tool(tool) => {
                        assert!(tool.state.is_terminal(), "{} {}", case, tool.call_id);
                        assert!(tool.question.is_none() || tool.answer.is_some());
                    }
                    _ => {}
                }
            }
            let commanded = turn.trigger == unspool_model::session::Trigger::Command;
            // The preamble may only have what belongs to the whole session.
            let may_be_empty = commanded || turn.number == 0;
            assert!(!turn.parts.is_empty() || may_be_empty, "{}: no reply", case);
        }
    }
}

#[test]
fn a_rejected_permission_is_denied_and_any_other_rejection_interrupted() {
    // R-003-13, R-003-15: identical in the log, distinguished by hooks.
    let states = |case: &str, count: usize| -> Vec<ToolState> {
        let path = crate::case::root().join("fixtures/claude-code").join(case);
        let captures = captures(&path);
        let order: Vec<usize> = (0..captures.len()).take(count).collect();
        let session_set = crate::case::fold_in(&captures, &order);
        let turns = main_session(&session_set).transcript().turns;
        turns
            .iter()
            .flat_map(|turn| &turn.parts)
            .filter_map(
                |part| if let Body::Tool(tool) = &part.body { Some(tool.state) } else { None },
            )
            .collect()
    };
    use ToolState::{Completed, Denied, Interrupted};
    let with_questions = "terminal-permissions-and-questions";
    assert_eq!(
        states(with_questions, 1),
        [Completed, Interrupted, Interrupted, Completed, Completed, Interrupted]
    );
    assert_eq!(
        states(with_questions, 2),
        [Completed, Denied, Denied, Completed, Completed, Denied]
    );
    let stopped = "terminal-interrupts-and-queued-prompts";
    assert_eq!(states(stopped, 2), [Interrupted, Interrupted, Completed, Completed]);
    // A decision that the log itself records needs no hook.
    assert_eq!(states("permission-denied-by-host", 1), [Denied]);
}

#[test]
fn answers_of_every_kind_have_words_to_display() {
    // R-003-13: as agents recorded them.
    let mut found = std::collections::BTreeSet::new();
    for case in ["claude-code", "opencode", "copilot"].into_iter().flat_map(cases) {
        let captures = captures(&case);
        let order: Vec<usize> = (0..captures.len()).collect();
        for session in case_sessions(&crate::case::fold_in(&captures, &order)) {
            let turns = session.transcript().turns;
            let tools =
                turns.iter().flat_map(|turn| &turn.parts).filter_map(|part| part.body.tool());
            for answer in tools.filter_map(|tool| tool.answer.as_ref()) {
                assert!(!answer.text.is_empty(), "{}: {answer:?}", name(&case));
                found.insert(format!("{}: {}", answer.decision.name(), answer.text));
            }
        }
    }
    for expected in [
        // One of several, several, one's own words, and both.
        "answered: Celsius (Recommended) · JSON",
        "answered: Fahrenheit · JSON, Table",
        "answered: my own words",
        "answered: Celsius; ZRH, typed by hand: Bern",
        "declined: dismissed",
        "declined: Session aborted",
        "denied: Not now — keep it.",
        "allowed: allowed once",
    ] {
        assert!(found.contains(expected), "{expected}: {found:#?}");
    }
}
