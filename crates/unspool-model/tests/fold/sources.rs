//! Several files of one feed: the order in which they are read does not matter.

use proptest::prelude::*;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{Event, ToolEnd};
use unspool_model::provenance::Name;
use unspool_model::session::Transcript;

use crate::laws::same;
use crate::script::*;

/// The files of a session that was resumed twice. Each begins with a record without a turn.
fn files() -> Vec<Vec<Event>> {
    let files = [
        vec![prompt("p1"), said(Text, "one"), over(Completed), prompt("p2"), called("t1", "Bash")],
        vec![prompt("p3"), called("t2", "Bash"), said(Text, "three"), over(Completed)],
        vec![prompt("p4"), said(Text, "four"), prompt("p5"), called("t3", "Bash")],
    ];
    let files = files.into_iter().zip(0u16..).map(|(lines, source)| {
        let events = lines.into_iter().zip(0..).map(|(line, nth)| {
            let mut event = line.at(i64::from(source) * 100 + nth).event(nth as u64);
            event.evidence.source = source;
            event
        });
        events.collect()
    });
    files.collect()
}

/// Folds the next event of each of these files in turn, and orders the files after each event.
fn fold_files(order: &[usize], restarts: bool) -> Transcript {
    let mut files: Vec<_> = files().into_iter().map(Vec::into_iter).collect();
    let mut run = fold([]);
    for file in order {
        let Some(event) = files[*file].next() else { continue };
        let changes = run.assembler.apply(event);
        run.builder.apply_all(changes);
        if restarts {
            run.builder.apply_all(run.assembler.order_sources());
            let rows = run.builder.rows();
            let cursors: Vec<_> = run.assembler.cursors().collect();
            run = run.restarted();
            for cursor in cursors {
                let source = cursor.source;
                let mine = |name: &&Name| source_of(name) == Some(source);
                let mut names = rows.turns.iter().flat_map(|turn| &turn.origin.names);
                if let Some(turn) = names.rfind(mine) {
                    run.assembler.resume_at(cursor.feed, source, turn);
                }
                run.assembler.set_cursor(cursor);
            }
        }
    }
    run.builder.apply_all(run.assembler.order_sources());
    run.transcript()
}

fn source_of(name: &Name) -> Option<u16> {
    let Name::Prompt(id) = name else { return None };
    match &**id {
        "p1" | "p2" => Some(0),
        "p3" => Some(1),
        _ => Some(2),
    }
}

fn one_after_another(order: [usize; 3]) -> Vec<usize> {
    order.into_iter().flat_map(|file| [file; 5]).collect()
}

#[test]
fn law_5_the_order_of_the_files_of_one_feed_does_not_matter() {
    // R-X-03
    let expected = fold_files(&one_after_another([0, 1, 2]), false);
    let numbers: Vec<u32> = expected.turns.iter().map(|turn| turn.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let states: Vec<_> = expected.turns.iter().map(|turn| turn.state.name()).collect();
    assert_eq!(states, ["completed", "interrupted", "completed", "completed", "running"]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let order = one_after_another(order);
        same(&fold_files(&order, false), &expected).unwrap();
        same(&fold_files(&order, true), &expected).unwrap();
    }
}

#[test]
fn law_5_files_are_ordered_after_a_crash() {
    // The recorder is killed after it has read the files and before it orders them.
    let mut run = fold([]);
    for event in files().into_iter().rev().flatten() {
        run.builder.apply_all(run.assembler.apply(event));
    }
    let mut run = run.restarted();
    run.builder.apply_all(run.assembler.order_sources());
    let turns = run.transcript().turns;
    let names: Vec<_> = turns.iter().map(|turn| turn.origin.names[0].clone()).collect();
    assert_eq!(names, ["p1", "p2", "p3", "p4", "p5"].map(prompt_name));
}

#[test]
fn law_5_a_late_record_in_a_later_file_does_not_move_its_turn() {
    // A call of p2 reports its end in the file of p3.
    let at = |line: Line, source: u16, nth: u64| {
        let mut event = line.at(i64::from(source) * 100 + nth as i64).event(nth);
        event.evidence.source = source;
        event
    };
    let end = ended("t1", ToolEnd::Completed, "ok").in_turn("p2");
    let first = [at(prompt("p1"), 0, 0), at(prompt("p2"), 0, 1), at(called("t1", "Bash"), 0, 2)];
    let second = [at(prompt("p3"), 1, 0), at(end, 1, 1)];
    for files in [[&first[..], &second[..]], [&second[..], &first[..]]] {
        let mut run = fold([]);
        for event in files.concat() {
            run.builder.apply_all(run.assembler.apply(event));
        }
        run.builder.apply_all(run.assembler.order_sources());
        let turns = run.transcript().turns;
        let names: Vec<_> = turns.iter().map(|turn| turn.origin.names[0].clone()).collect();
        assert_eq!(names, ["p1", "p2", "p3"].map(prompt_name));
        assert_eq!(turns[1].started.unwrap().as_second(), 1);
        assert!(as_tool(&turns[1].parts[0]).unwrap().state.is_terminal());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn law_5_files_of_one_feed_may_grow_side_by_side(
        order in Just(one_after_another([0, 1, 2])).prop_shuffle(),
    ) {
        let expected = fold_files(&one_after_another([0, 1, 2]), false);
        same(&fold_files(&order, false), &expected)?;
        same(&fold_files(&order, true), &expected)?;
    }
}
