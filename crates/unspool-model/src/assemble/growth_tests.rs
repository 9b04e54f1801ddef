//! The work of reading a turn event by event must grow with the turn only, whatever one feed has
//! and another lacks. Work is counted, never timed: the changes that leave, and the items that were
//! given a place.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::Assembler;
use crate::event::{CallRef, Event, EventKey, EventKind, ProseDetail, ProseKind, ToolCall};
use crate::id::SessionId;
use crate::part::{Body, Notice};
use crate::provenance::Feed::{self, Hooks, Log, Stream};
use crate::provenance::{Evidence, Name};
use crate::session::Trigger;

/// What feeds report of one turn besides its calls.
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    /// A part before each call that only this feed has.
    extra: Option<Feed>,
    /// Each feed knows steps.
    steps: bool,
    /// Words before each call, which the log names and the stream does not.
    prose: bool,
    /// The log has other words than the stream.
    other_words: bool,
}

/// In which order feeds are read.
#[derive(Clone, Copy, Debug)]
enum Reading {
    /// One feed to its end, then the next.
    OneByOne(&'static [Feed]),
    /// Stream and log in turn, so many events at a time of each.
    InTurn(usize, usize),
}

/// What was counted while a turn was read.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    events: usize,
    changes: usize,
    placed: usize,
    compared: usize,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Work { events, changes, placed, compared } = self;
        write!(
            f,
            "{events:>7} events {changes:>9} changes {placed:>9} placed {compared:>9} compared"
        )
    }
}

fn kinds(feed: Feed, count: u32, report: Report) -> Vec<EventKind> {
    let mut kinds = vec![EventKind::TurnStarted {
        names: vec![Name::Prompt("prompt".into())],
        trigger: Trigger::User,
        user: Vec::new(),
    }];
    for nth in 0..count {
        // Hooks know no steps, and no prose.
        if report.steps && nth % 2 == 0 && feed != Hooks {
            let step = Name::Message(format!("message {nth}").into());
            kinds.push(EventKind::StepStarted { step, model: None });
        }
        if report.extra == Some(feed) {
            let name = Name::Record(format!("notice {nth}").into());
            let notice = Notice { code: "informational".to_owned(), text: format!("{nth}") };
            kinds.push(EventKind::Part(Some(name), Body::Notice(notice)));
        }
        if report.prose && feed != Hooks {
            kinds.push(prose(feed, nth, report));
        }
        let id: Arc<str> = format!("call {nth}").into();
        kinds.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(id),
            parent_call_id: None,
            name: "Read".to_owned(),
            content_hash: u64::from(nth),
            input: None,
            provider_executed: false,
            title: None,
            running: true,
        })));
    }
    kinds
}

fn prose(feed: Feed, nth: u32, report: Report) -> EventKind {
    let prose_kind = ProseKind::Text;
    let text = format!("Look at the {nth}th file.");
    if feed == Log {
        let text = if report.other_words { format!("{text} Or not.") } else { text };
        let block = Some(Name::Record(format!("text {nth}").into()));
        EventKind::ProseCompleted { prose_kind, block, text, detail: ProseDetail::default() }
    } else {
        EventKind::ProseDelta { prose_kind, block: None, text }
    }
}

fn events(feed: Feed, count: u32, report: Report) -> Vec<Event> {
    let event = |(offset, kind): (u64, EventKind)| {
        let source = feed.index() as u16;
        let evidence = Evidence { feed, source, offset, length: 1, digest: offset };
        let key = EventKey { record: offset, nth: 0 };
        Event { key, feed, at: None, evidence, turn: None, generation: None, kind }
    };
    (0..).zip(kinds(feed, count, report)).map(event).collect()
}

fn in_order(reading: Reading, count: u32, report: Report) -> Vec<Event> {
    match reading {
        Reading::OneByOne(feeds) => {
            feeds.iter().flat_map(|feed| events(*feed, count, report)).collect()
        }
        Reading::InTurn(stream, log) => {
            let mut of_stream = events(Stream, count, report).into_iter().peekable();
            let mut of_log = events(Log, count, report).into_iter().peekable();
            let mut all = Vec::new();
            while of_stream.peek().is_some() || of_log.peek().is_some() {
                all.extend(of_stream.by_ref().take(stream));
                all.extend(of_log.by_ref().take(log));
            }
            all
        }
    }
}

fn work(reading: Reading, count: u32, report: Report) -> Work {
    let mut assembler = Assembler::new(SessionId::of("agent", "session"));
    let mut work = Work::default();
    for event in in_order(reading, count, report) {
        work.events += 1;
        work.changes += assembler.apply(event).len();
    }
    let [turn] = &assembler.turns[..] else { panic!("{} turns", assembler.turns.len()) };
    work.compared = turn.lookups.runs.as_ref().map_or(0, |runs| runs.compared);
    work.placed = turn.order.as_ref().map_or(0, |order| order.counted().placed);
    work
}

const READINGS: [Reading; 5] = [
    Reading::OneByOne(&[Stream, Log]),
    Reading::OneByOne(&[Log, Stream]),
    Reading::InTurn(1, 1),
    Reading::InTurn(100, 50),
    Reading::InTurn(50, 100),
];

fn reports() -> Vec<(&'static str, Report)> {
    let plain = Report::default();
    vec![
        ("calls", plain),
        ("calls, steps", Report { steps: true, ..plain }),
        ("extra in the log", Report { extra: Some(Log), ..plain }),
        ("extra in the log, steps", Report { extra: Some(Log), steps: true, ..plain }),
        ("extra in the stream", Report { extra: Some(Stream), ..plain }),
        ("extra in the stream, steps", Report { extra: Some(Stream), steps: true, ..plain }),
        ("nameless prose", Report { prose: true, ..plain }),
        ("nameless prose, steps", Report { prose: true, steps: true, ..plain }),
        ("nameless prose, other words", Report { prose: true, other_words: true, ..plain }),
    ]
}

const READINGS_WITH_HOOKS: [Reading; 8] = [
    Reading::OneByOne(&[Hooks, Log]),
    Reading::OneByOne(&[Log, Hooks]),
    Reading::OneByOne(&[Hooks, Stream]),
    Reading::OneByOne(&[Stream, Hooks]),
    Reading::OneByOne(&[Hooks, Stream, Log]),
    Reading::OneByOne(&[Stream, Hooks, Log]),
    Reading::OneByOne(&[Hooks, Log, Stream]),
    Reading::OneByOne(&[Log, Stream, Hooks]),
];

/// Prints what reading a turn costs.
#[test]
#[ignore = "a measurement: run it with --nocapture"]
fn measure_growth() {
    for (name, report) in reports() {
        for reading in READINGS.into_iter().chain(READINGS_WITH_HOOKS) {
            for count in [500, 1000, 2000, 4000] {
                let start = Instant::now();
                let work = work(reading, count, report);
                let took = start.elapsed();
                println!("{name}, {reading:?}, {count}: {took:>10.1?} {work}");
                // The next size would take a minute.
                if took.as_secs() > 3 {
                    break;
                }
            }
        }
    }
}

/// Reads four times as many calls and compares the work.
fn assert_linear(readings: &[Reading], report: Report, of: impl Fn(Work) -> usize) {
    for reading in readings {
        let [few, many] = [500, 2000].map(|count| of(work(*reading, count, report)));
        assert!(few <= 16 * 500, "{reading:?}, {report:?}: {few}");
        assert!(many <= 4 * few + 500, "{reading:?}, {report:?}: {many}, and {few} for a quarter");
    }
}

fn with_and_without_steps(report: Report) -> [Report; 2] {
    [report, Report { steps: true, ..report }]
}

#[test]
fn parts_that_only_the_log_has_move_others_a_few_times() {
    for report in with_and_without_steps(Report { extra: Some(Log), ..Report::default() }) {
        assert_linear(&READINGS, report, |work| work.changes);
        assert_linear(&READINGS, report, |work| work.placed);
    }
}

#[test]
fn parts_that_only_the_stream_has_move_others_a_few_times() {
    for report in with_and_without_steps(Report { extra: Some(Stream), ..Report::default() }) {
        assert_linear(&READINGS, report, |work| work.changes);
        assert_linear(&READINGS, report, |work| work.placed);
    }
}

#[test]
fn hooks_that_know_calls_alone_are_moved_a_few_times() {
    for extra in [Log, Stream] {
        let report = Report { extra: Some(extra), ..Report::default() };
        assert_linear(&READINGS_WITH_HOOKS, report, |work| work.changes);
        assert_linear(&READINGS_WITH_HOOKS, report, |work| work.placed);
    }
}

#[test]
fn prose_without_names_is_compared_where_it_is() {
    let report = Report { prose: true, ..Report::default() };
    for report in with_and_without_steps(report) {
        assert_linear(&READINGS, report, |work| work.changes);
        assert_linear(&READINGS, report, |work| work.placed);
        assert_linear(&READINGS, report, |work| work.compared);
    }
}
