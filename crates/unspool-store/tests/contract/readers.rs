//! Several readers beside one writer: each sees whole commits in order and never waits for the
//! writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use unspool_core::event::EndReason::Completed;
use unspool_core::event::ToolEnd;
use unspool_core::event::Voice::Text;
use unspool_store::batch::Pace;
use unspool_store::blocking::wait;
use unspool_store::contract::{SessionFilter, Store, Tidy, Window};
use unspool_store::search::SearchRequest;

use crate::desk::{AGENT, Desk, ask};
use crate::home::Home;
use crate::script::*;

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
    let listed = wait(store.sessions(SessionFilter::default())).unwrap();
    let [one, other] = listed.as_slice() else { return 0 };
    let figures = |stored: &unspool_store::contract::StoredSession| {
        (stored.seq, stored.summary.turns, stored.summary.parts, stored.summary.tools)
    };
    assert_eq!(figures(one), figures(other), "half a commit");
    let seen = one.summary.turns;
    assert_eq!((one.seq, one.summary.parts), (seen * 6, seen * 2 + 1));

    let turns = wait(store.whole_turns(one.row, Window::All)).unwrap();
    assert!(turns.len() as u64 >= seen, "it went back");
    let newest = turns.len() - 1;
    assert_eq!(turns[0].parts.len(), 3);
    assert!(turns[1..].iter().all(|turn| turn.parts.len() == 2), "half a turn");
    let count = turns[0].parts.iter().find(|part| part.body.kind().name() == "notice").unwrap();
    assert!(format!("{:?}", count.body).contains(&format!("\"count{newest}\"")), "half a commit");

    let findings =
        wait(store.search(SearchRequest { limit: 1000, ..SearchRequest::new("marker") })).unwrap();
    let of = |stored: &unspool_store::contract::StoredSession| {
        let id = stored.summary.session.id;
        findings.hits.iter().filter(|hit| hit.session == id).count() as u64
    };
    assert_eq!(of(one), of(other), "half of an index");
    assert!(of(one) >= seen, "{} of {seen} are found", of(one));
    seen
}

pub fn readers_see_whole_commits<H: Home + Sync>() {
    // R-X-14 R-X-15
    let desk = Desk::<H>::new();
    let (done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let home = &desk.home;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let store = home.open_to_read();
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
        let written = catch_unwind(AssertUnwindSafe(|| write(&desk)));
        done.store(true, Ordering::SeqCst);
        assert!(written.is_ok(), "the writer failed");
    });
    assert!(looks.load(Ordering::SeqCst) > 3, "nobody looked");
    desk.is_clean();
}

fn write<H: Home>(desk: &Desk<H>) {
    for nth in 0..COMMITS {
        let pace = if nth % 3 == 0 { Pace::Bulk } else { Pace::Live };
        let mut packer = desk.packer(pace);
        let mut folds = SESSIONS.map(|name| desk.open(AGENT, name));
        for fold in &mut folds {
            desk.take(fold, turn(nth));
            packer.add(fold).unwrap();
        }
        desk.recorder.commit(&mut packer, &mut folds).unwrap();
        match nth % 10 {
            4 => wait(desk.store().tidy(Tidy::WhenDue)).unwrap(),
            7 => wait(desk.store().tidy(Tidy::Thorough)).unwrap(),
            9 => {
                wait(desk.store().rebuild()).unwrap();
            }
            _ => {}
        }
    }
}

pub fn a_reader_reads_and_nothing_else<H: Home>() {
    let desk = Desk::<H>::new();
    let row = desk.record("s", turn(0)).row;
    let reader = desk.home.open_to_read();
    assert_eq!(wait(reader.sessions(SessionFilter::default())).unwrap().len(), 1);
    let batch = desk.batch("t", turn(0));
    let refused = [
        wait(reader.write(batch)),
        wait(reader.tidy(Tidy::Thorough)),
        wait(reader.rebuild()).map(|_| ()),
        wait(reader.rename(row, None)),
        wait(reader.tag(row, vec!["x".to_owned()], Vec::new())),
        wait(reader.delete(row)).map(|_| ()),
        wait(reader.undelete(unspool_core::id::SessionId::of(AGENT, "s"))).map(|_| ()),
        wait(reader.forget(row)),
    ];
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("read only"), "{error}");
    }
    assert_eq!(desk.sessions(SessionFilter::default()), ["s"]);
    desk.is_clean();
}
