//! Several readers beside one writer: each sees whole commits in order and never waits for the
//! writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::Text;
use unspool_model::event::ToolEnd;
use unspool_store::blocking::block_on;
use unspool_store::search::SearchRequest;
use unspool_store::store::{Maintenance, SessionFilter, Store, TurnWindow, View, Viewer};

use crate::harness::{AGENT, Harness, ask};
use crate::script::*;
use crate::test_archive::TestArchive;

const COMMITS: u64 = 60;
const SESSIONS: [&str; 2] = ["left", "right"];

/// A turn with three parts. One of them, in the first turn, is updated by each later turn.
fn turn(nth: u64) -> Vec<Line> {
    let call = format!("t{nth}");
    vec![
        ask(&format!("p{nth}"), &format!("marker number{nth}")),
        said(Text, &format!("answer {nth}")),
        called(&call, "Bash"),
        ended(&call, ToolEnd::Completed, &format!("{nth} {}", "output ".repeat(100))),
        notice(Some("count"), &format!("count{nth}")).in_turn("p0"),
        over(Completed),
    ]
}

/// Checks that each call sees one snapshot. Returns the number of commits seen.
fn look<S: Store>(store: &S) -> u64 {
    let listed = block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap();
    let [one, other] = listed.as_slice() else { return 0 };
    let figures = |stored: &unspool_store::store::StoredSession| {
        (stored.seq, stored.summary.turns, stored.summary.parts, stored.summary.tools)
    };
    assert_eq!(figures(one), figures(other), "half a commit");
    let seen = one.summary.turns;
    assert_eq!((one.seq, one.summary.parts), (seen * 6, seen * 2 + 1));

    let turns = block_on(store.view(Viewer::Sole).whole_turns(one.row, TurnWindow::All)).unwrap();
    assert!(turns.len() as u64 >= seen, "it went back");
    let newest = turns.len() - 1;
    assert_eq!(turns[0].parts.len(), 3);
    assert!(turns[1..].iter().all(|turn| turn.parts.len() == 2), "half a turn");
    let count = turns[0].parts.iter().find(|part| part.body.kind().name() == "notice").unwrap();
    assert!(format!("{:?}", count.body).contains(&format!("\"count{newest}\"")), "half a commit");

    let results = block_on(
        store
            .view(Viewer::Sole)
            .search(SearchRequest { limit: 1000, ..SearchRequest::new("marker") }),
    )
    .unwrap();
    let of = |stored: &unspool_store::store::StoredSession| {
        let id = stored.summary.session.id;
        results.hits.iter().filter(|hit| hit.session == id).count() as u64
    };
    assert_eq!(of(one), of(other), "half of an index");
    assert!(of(one) >= seen, "{} of {seen} are found", of(one));
    seen
}

pub fn readers_see_whole_commits<H: TestArchive + Sync>() {
    // R-001-11, law 2: what one transaction wrote is seen together.
    let harness = Harness::<H>::new();
    let (done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let archive = &harness.archive;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let store = archive.open_to_read();
                let mut seen = 0;
                while !done.load(Ordering::SeqCst) {
                    let now = look(&store);
                    assert!(now >= seen, "it went back");
                    seen = now;
                    looks.fetch_add(1, Ordering::SeqCst);
                }
                assert_eq!(look(&store), COMMITS, "the last commit is seen");
            });
        }
        // If the writer panics, the readers must still stop.
        let written = catch_unwind(AssertUnwindSafe(|| write(&harness)));
        done.store(true, Ordering::SeqCst);
        assert!(written.is_ok(), "the writer failed");
    });
    assert!(looks.load(Ordering::SeqCst) > 3, "nobody looked");
    harness.is_clean();
}

fn write<H: TestArchive>(harness: &Harness<H>) {
    for nth in 0..COMMITS {
        let mode = if nth % 3 == 0 { IngestMode::Bulk } else { IngestMode::Live };
        let mut packer = harness.packer(mode);
        let mut writers = SESSIONS.map(|name| harness.open(AGENT, name));
        for writer in &mut writers {
            harness.take(writer, turn(nth));
            packer.add(writer).unwrap();
        }
        harness.recorder.commit(&mut packer, &mut writers).unwrap();
        match nth % 10 {
            4 => block_on(harness.store().maintain(Maintenance::IfDue)).unwrap(),
            7 => block_on(harness.store().maintain(Maintenance::Full)).unwrap(),
            9 => {
                block_on(harness.store().rebuild()).unwrap();
            }
            _ => {}
        }
    }
}

pub fn a_reader_reads_and_nothing_else<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let row = harness.record("s", turn(0)).row;
    let reader = harness.archive.open_to_read();
    assert_eq!(
        block_on(reader.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap().len(),
        1
    );
    let batch = harness.batch("t", turn(0));
    let refused = [
        block_on(reader.write(batch)),
        block_on(reader.maintain(Maintenance::Full)),
        block_on(reader.rebuild()).map(|_| ()),
        block_on(reader.rename(row, None)),
        block_on(reader.tag(row, vec!["x".to_owned()], Vec::new())),
        block_on(reader.delete(row)).map(|_| ()),
        block_on(reader.undelete(unspool_model::id::SessionId::of(AGENT, "s"))).map(|_| ()),
        block_on(reader.forget(row)),
    ];
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("read-only"), "{error}");
    }
    assert_eq!(harness.sessions(SessionFilter::default()), ["s"]);
    harness.is_clean();
}
