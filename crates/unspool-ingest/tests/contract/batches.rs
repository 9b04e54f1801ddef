//! Writing: atomic batches, row numbers, files, and what the recorder reads back to resume.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{EventKind, ToolEnd, ToolOutcome};
use unspool_model::id::SessionId;
use unspool_model::session::Usage;
use unspool_model::source::{FileStamp, Fingerprint, RecordCounts};
use unspool_store::blocking::block_on;
use unspool_store::rows::{Batch, Chunk, FileRow, SourceRow, WarningRow};
use unspool_store::store::{SessionFilter, Store, TurnWindow, View, Viewer};

use crate::harness::{AGENT, Harness, ask};
use crate::model::Model;
use crate::script::*;
use crate::test_archive::TestArchive;

/// A turn with many kinds of parts, under unique names.
pub fn busy_turn(id: &str) -> Vec<Line> {
    let (message, call) = (format!("m-{id}"), format!("t-{id}"));
    vec![
        ask(id, &format!("please {id}")),
        step(&message),
        said_in(Reasoning, block(&message, 0), "let me think"),
        said_in(Text, block(&message, 1), &format!("I look at {id}")),
        called_with(&call, "Bash", r#"{"command":"ls -la"}"#),
        ended(&call, ToolEnd::Completed, &format!("{id} {}", "output ".repeat(200))),
        notice(Some(&format!("n-{id}")), "retry"),
        over(Completed),
    ]
}

/// Everything that can be read from an archive, as one text.
fn everything<H: TestArchive>(harness: &Harness<H>) -> String {
    let store = harness.store();
    let mut all = format!("{:?}", block_on(store.next_rows()).unwrap());
    all += &format!("{:?}", block_on(store.files()).unwrap());
    for stored in block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap() {
        all += &format!("{stored:?}");
        all += &format!(
            "{:?}",
            block_on(store.view(Viewer::Sole).whole_turns(stored.row, TurnWindow::All)).unwrap()
        );
        all += &format!("{:?}", block_on(store.view(Viewer::Sole).warnings(stored.row)).unwrap());
        all += &format!("{:?}", block_on(store.view(Viewer::Sole).records(stored.row)).unwrap());
    }
    all += &format!("{:?}", harness.find("output"));
    all
}

fn source(file: i64) -> SourceRow {
    SourceRow {
        file,
        number: 0,
        feed: unspool_model::provenance::Feed::Log,
        first: 0,
        sub_agent: false,
        records: RecordCounts::default(),
    }
}

pub fn a_batch_is_written_whole_or_not_at_all<H: TestArchive>() {
    // R-001-11 R-004-02 R-004-24 C-21: each of these breaks one constraint of an otherwise valid batch.
    type Spoil = fn(&mut Batch);
    let spoil: [(&str, Spoil); 9] = [
        ("a part of a turn that is not there", |b| b.sessions[0].parts[2].turn = 9999),
        ("a part in a chunk that is not there", |b| b.chunks.clear()),
        ("a content that is not there", |b| b.contents.clear()),
        ("a second session with the id of the first", |b| {
            b.sessions[0].id = SessionId::of(AGENT, "first");
        }),
        ("a chunk that is there already", |b| {
            let session = Some(b.sessions[0].row);
            b.chunks.push(Chunk { row: 1, session, data: vec![1] });
        }),
        ("a chunk of a session that is not there", |b| {
            b.chunks.push(Chunk { row: 9999, session: Some(9999), data: vec![1] });
        }),
        ("a source that no file is", |b| b.sessions[0].sources.push(source(77))),
        ("a warning about no file", |b| {
            let (file, session, line) = (77, None, 1);
            b.warnings.push(WarningRow {
                file,
                session,
                line,
                what: "odd".to_owned(),
                bytes: vec![0],
            });
        }),
        ("a turn of no session", |b| {
            b.sessions[0].head = None;
            b.sessions[0].row = 9999;
        }),
    ];
    let harness = Harness::<H>::new();
    harness.record("first", busy_turn("one"));
    let before = everything(&harness);
    for (what, spoil) in spoil {
        let script = [busy_turn("two"), busy_turn("three")].concat();
        let mut batch = harness.batch("second", script);
        batch.files.push(FileRow { row: 1, path: "/log".to_owned(), ..FileRow::default() });
        spoil(&mut batch);
        assert!(block_on(harness.store().write(batch)).is_err(), "{what} was written");
        assert_eq!(everything(&harness), before, "{what} left a trace");
        assert_eq!(harness.archive.leftovers(), Vec::<String>::new(), "{what}");
    }
    harness.is_clean();
    harness.record("second", busy_turn("two"));
    assert_eq!(harness.found("output"), ["first.1 tool", "second.1 tool"]);
    harness.is_clean();
}

pub fn a_recorder_goes_on_after_a_batch_that_failed<H: TestArchive>() {
    // C-21: the packer does not treat contents of the failed batch as stored.
    let harness = Harness::<H>::new();
    let mut packer = harness.packer(IngestMode::Bulk);
    let mut writer = harness.open(AGENT, "s");
    harness.take(&mut writer, busy_turn("one"));
    packer.add(&mut writer).unwrap();
    packer.batch().sessions[0].sources.push(source(77));
    assert!(harness.recorder.commit(&mut packer, [&mut writer]).is_err());

    let mut writer = harness.open(AGENT, "s");
    harness.take(&mut writer, busy_turn("one"));
    packer.add(&mut writer).unwrap();
    harness.recorder.commit(&mut packer, [&mut writer]).unwrap();
    assert_eq!(harness.turns(harness.session("s").row).len(), 1);
    harness.is_clean();
}

pub fn rows_are_numbered_on<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let first = block_on(harness.store().next_rows()).unwrap();
    let all = |rows: unspool_store::store::NextRows| {
        [rows.session, rows.turn, rows.part, rows.chunk, rows.file]
    };
    assert_eq!(all(first), [1; 5]);
    harness.record("s", busy_turn("one"));
    let next = block_on(harness.store().next_rows()).unwrap();
    assert_eq!(all(next)[..3], [2, 2, 6], "one session, one turn, four parts and the prompt");
    let harness = harness.reopened();
    assert_eq!(block_on(harness.store().next_rows()).unwrap(), next);
    harness.record("t", busy_turn("two"));
    harness.is_clean();
}

pub fn files_are_remembered_with_how_far_they_were_read<H: TestArchive>() {
    // R-001-28
    let harness = Harness::<H>::new();
    let most = FileRow {
        row: 1,
        path: "/home/ä b/log.jsonl".to_owned(),
        stamp: FileStamp {
            size: u64::MAX,
            modified: i64::MIN,
            changed: i64::MAX,
            inode: u64::MAX,
            device: 7,
        },
        line: u64::MAX,
        print: Fingerprint { offset: u64::MAX, head: u64::MAX, tail: u64::MAX - 1 },
        saved: Some("{\"open\":\"\u{1F600}\\ud800\0\"}".repeat(1000)),
        refused: Some("why".to_owned()),
    };
    let least = FileRow { row: 2, path: String::new(), ..FileRow::default() };
    let write = |files: Vec<FileRow>| {
        block_on(harness.store().write(Batch { files, ..Batch::default() })).unwrap();
    };
    write(vec![most.clone(), least.clone()]);
    let listed = || {
        let mut files = block_on(harness.store().files()).unwrap();
        files.sort_by_key(|file| file.row);
        files
    };
    assert_eq!(listed(), [FileRow { saved: None, ..most.clone() }, least.clone()]);
    assert_eq!(block_on(harness.store().saved(1)).unwrap(), most.saved);
    assert_eq!(block_on(harness.store().saved(2)).unwrap(), None);
    assert_eq!(block_on(harness.store().saved(3)).unwrap(), None);
    // A path keeps its first row.
    let five = Fingerprint { offset: 5, ..Fingerprint::default() };
    let again = FileRow { row: 9, path: most.path.clone(), print: five, ..FileRow::default() };
    write(vec![again.clone()]);
    assert_eq!(listed(), [FileRow { row: 1, ..again }, least]);
    assert_eq!(block_on(harness.store().saved(1)).unwrap(), None);
    assert_eq!(block_on(harness.store().next_rows()).unwrap().file, 3);
}

pub fn a_turn_comes_back_with_its_rows<H: TestArchive>() {
    // R-004-01 R-004-02 R-004-04 C-02
    for mode in [IngestMode::Bulk, IngestMode::Live] {
        let harness = Harness::<H>::new();
        let mut open = busy_turn("one");
        open.truncate(5);
        open.push(called("t-other", "Read"));
        let stored = harness.record_as(AGENT, "s", mode, open);
        let turns = block_on(harness.view().whole_turns(stored.row, TurnWindow::All)).unwrap();
        let turn = block_on(harness.store().turn(stored.row, turns[0].id)).unwrap().unwrap();
        assert_eq!(turn.turn, turns[0]);
        assert_eq!((turn.parts.len(), turn.user.len()), (4, 1));
        for (row, part) in turn.parts.iter().zip(&turn.turn.parts) {
            assert_eq!(block_on(harness.store().part(*row)).unwrap().as_ref(), Some(part));
        }
        let said = block_on(harness.store().part(turn.user[0])).unwrap().unwrap();
        assert_eq!(said.body, turn.turn.user[0]);
        // Running parts are always in the journal; settled ones only in live mode.
        let open = if mode == IngestMode::Bulk { 2 } else { 4 };
        assert_eq!(turn.open.len(), open, "{mode:?}");
        assert!(block_on(harness.store().turn(stored.row + 1, turns[0].id)).unwrap().is_none());
        let other = unspool_model::id::TurnId(SessionId::of("no", "turn").0);
        assert!(block_on(harness.store().turn(stored.row, other)).unwrap().is_none());
        assert!(block_on(harness.store().part(9999)).unwrap().is_none());
        assert!(block_on(harness.store().outline(SessionId::of(AGENT, "t"))).unwrap().is_none());
    }
}

pub fn the_recorder_sees_what_it_has_sent<H: TestArchive>() {
    // C-21: even before the write is acknowledged.
    let harness = Harness::<H>::new();
    let batch = harness.batch("s", busy_turn("one"));
    let mut sent = pin!(harness.store().write(batch));
    let mut context = Context::from_waker(Waker::noop());
    let written = sent.as_mut().poll(&mut context);
    let outline = block_on(harness.store().outline(SessionId::of(AGENT, "s"))).unwrap();
    let outline = outline.unwrap();
    assert_eq!(outline.turns.len(), 1);
    let turn =
        block_on(harness.store().turn(outline.stored.row, outline.turns[0].1.turn.id)).unwrap();
    assert_eq!(turn.unwrap().parts.len(), 4);
    match written {
        Poll::Ready(written) => written.unwrap(),
        Poll::Pending => block_on(sent).unwrap(),
    }
}

/// Applies the same events to the archive and a model, and compares.
fn assert_stored_as_model<H: TestArchive>(harness: &Harness<H>, session: &str, script: Vec<Line>) {
    let mut model = Model::new(AGENT, session);
    let mut packer = harness.packer(IngestMode::Bulk);
    let mut writer = harness.open(AGENT, session);
    for line in script {
        let event = harness.event(line);
        model.take(event.clone());
        harness.recorder.take(&mut writer, event).unwrap();
    }
    harness.commit(&mut packer, &mut writer);
    let stored = harness.session(session);
    assert_eq!(
        block_on(harness.view().whole_turns(stored.row, TurnWindow::All)).unwrap(),
        model.rows()
    );
}

pub fn numbers_that_make_no_sense_are_kept<H: TestArchive>() {
    // Law 3: counts come from logs; absurd ones must not cause failures.
    let harness = Harness::<H>::new();
    let most = Usage {
        input: u64::MAX,
        output: u64::MAX,
        cache_read: u64::MAX,
        cache_write: u64::MAX,
        reasoning: u64::MAX,
        cache_write_1h: u64::MAX,
    };
    let used =
        |step: &str| Line::from(EventKind::UsageUpdated { step: message(step), usage: most });
    let odd = ToolOutcome {
        exit_code: Some(i64::MIN),
        duration_ms: Some(u64::MAX),
        output: Some(String::new()),
        ..ToolOutcome::default()
    };
    let script = vec![
        ask("p1", "how much?").at(-9_000_000_000),
        step("m1"),
        used("m1"),
        step("m2").at(200_000_000_000),
        used("m2"),
        called("t1", "Bash"),
        refined("t1", odd),
        ended("t1", ToolEnd::Completed, ""),
        over(Completed),
    ];
    assert_stored_as_model(&harness, "s", script.clone());
    assert_stored_as_model(&harness, "t", script);
    let usage = harness.session("s").summary.usage;
    assert!(usage.input > 1 << 40, "it says that it was much: {usage:?}");
    assert_eq!(block_on(harness.view().sessions(SessionFilter::default())).unwrap().len(), 2);
    block_on(harness.view().stats(Default::default())).unwrap();
    block_on(harness.store().rebuild()).unwrap();
    harness.is_clean();
}

pub fn text_of_any_kind_is_kept<H: TestArchive>() {
    // Law 8: agent output is hostile.
    let harness = Harness::<H>::new();
    let hostile = [
        "",
        " ",
        "\0",
        "a\0b",
        "'; DROP TABLE part; --",
        "\u{FEFF}\u{202E}\u{10FFFF}",
        "{\"a\":\n1}",
        "\u{1b}[31mred",
        "%s%n{}?1:name@x$y",
    ];
    let mut script = Vec::new();
    for (nth, text) in hostile.into_iter().enumerate() {
        let (prompt, call) = (format!("{text}{nth}"), format!("{text}t{nth}"));
        script.extend([
            ask(&prompt, text),
            said(Text, text),
            called_with(&call, text, &serde_json::to_string(text).unwrap()),
            ended(&call, ToolEnd::Failed, &text.repeat(300)),
            failed(Some(&prompt), text),
            data(None, text, &serde_json::to_string(&[text]).unwrap()),
            over(Completed),
        ]);
    }
    assert_stored_as_model(&harness, "s", script.clone());
    for text in hostile {
        assert_stored_as_model(&harness, &format!("t{text}"), script.clone());
    }
    harness.is_clean();
}
