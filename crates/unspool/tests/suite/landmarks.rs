//! Law 6: what is an error and an edit is decided once, in the model, and what is an open card, by
//! the presenter. Outline, totals, page and terminal agree about every recorded session.

use std::collections::BTreeMap;

use unspool_export::html::turn::{fragments, turn};
use unspool_model::id::PartId;
use unspool_model::landmark::Landmark;
use unspool_query::window::{Anchor, Position, Size, WindowRequest, window};
use unspool_store::blocking::block_on;
use unspool_store::database::{Database, DatabaseView};
use unspool_store::store::{SessionFilter, Store, StoredSession, View, Viewer};
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;
use unspool_view::block::Block;
use unspool_view::present::{Item, TurnView};

use crate::case::{all_cases, assert_none, captures, case_sessions, fold_in, name};
use crate::harness::archive_of;

/// The whole session as one window.
fn views(archive: &DatabaseView, stored: &StoredSession) -> Vec<TurnView> {
    let size = Size { parts: 1_000_000, block: 1_000_000, long: 1_000_000 };
    let anchor = Anchor::From(Position::start_of(0));
    let request = WindowRequest { size, ..anchor.into() };
    block_on(window(archive, stored, request, |_| {})).unwrap().turns
}

/// How many parts the page marks with a landmark.
fn count_in_page(session: &str, views: &[TurnView], landmark: Landmark) -> usize {
    let html: String = views.iter().map(|view| turn(session, view).into_string()).collect();
    let marks = html.split("data-landmark=\"").skip(1);
    let names = marks.map(|rest| rest.split_once('"').unwrap().0);
    names.filter(|names| names.split(' ').any(|name| name == landmark.name())).count()
}

/// How often a key stops on the way from the first to the last part.
fn count_in_terminal(terminal: &mut TestHarness<Database>, key: &str) -> usize {
    terminal.press("g");
    let (mut stops, mut last) = (0, None);
    loop {
        terminal.press(key);
        let now = terminal.selected_part();
        if now == last {
            return stops;
        }
        (stops, last) = (stops + 1, now);
    }
}

#[test]
fn law_6_keys_stop_as_often_as_the_outline_counts() {
    let (store, folder) = archive_of(&all_cases());
    let archive = store.view(Viewer::Sole);
    let reader = Database::open_to_read(&folder.path().join("unspool.db")).unwrap();
    let mut terminal = TestHarness::new(reader, (100, 30), Theme::named("mocha").unwrap()).unwrap();
    let (mut differences, mut seen) = (Vec::new(), [0, 0]);
    for stored in block_on(archive.sessions(SessionFilter::default())).unwrap() {
        let id = stored.summary.session.id.to_string();
        let views = views(&archive, &stored);
        let errors: usize = views.iter().map(|view| view.outline.errors).sum();
        let edits: usize = views.iter().map(|view| view.outline.edits).sum();
        if stored.summary.errors != errors as u64 {
            differences.push(format!("{id}: {} in SQL, {errors}", stored.summary.errors));
        }
        terminal.open(&id);
        for (nth, (landmark, key, expected)) in
            [(Landmark::Error, "e", errors), (Landmark::Edit, "d", edits)].into_iter().enumerate()
        {
            let page = count_in_page(&id, &views, landmark);
            let terminal = count_in_terminal(&mut terminal, key);
            if (page, terminal) != (expected, expected) {
                let name = landmark.name();
                differences.push(format!(
                    "{id}, {name}: outline {expected}, page {page}, terminal {terminal}"
                ));
            }
            seen[nth] += expected;
        }
        terminal.press("\x1b");
    }
    assert_none(differences);
    assert!(seen[0] > 50 && seen[1] > 50, "{seen:?}");
}

/// The calls that have a card with a body, and whether the page opens it.
fn cards_in_page(views: &[TurnView]) -> BTreeMap<PartId, bool> {
    let mut cards = BTreeMap::new();
    for view in views {
        let html: BTreeMap<String, String> =
            fragments(view).into_iter().map(|fragment| (fragment.id, fragment.html)).collect();
        for item in &view.items {
            let Item::Part(part) = item else { continue };
            let Some(Block::Card(card)) = part.blocks.first() else { continue };
            if !card.body.is_empty() {
                let html = html.iter().find(|(id, _)| id.ends_with(&part.id.to_string())).unwrap();
                cards.insert(part.id, html.1.contains("<details class=\"card\" open>"));
            }
        }
    }
    cards
}

#[test]
fn law_6_the_same_cards_are_open_in_page_and_terminal() {
    let (store, folder) = archive_of(&all_cases());
    let archive = store.view(Viewer::Sole);
    let reader = Database::open_to_read(&folder.path().join("unspool.db")).unwrap();
    let mut terminal = TestHarness::new(reader, (100, 30), Theme::named("mocha").unwrap()).unwrap();
    let (mut differences, mut compared) = (Vec::new(), [0, 0]);
    for stored in block_on(archive.sessions(SessionFilter::default())).unwrap() {
        let id = stored.summary.session.id.to_string();
        let page = cards_in_page(&views(&archive, &stored));
        terminal.open(&id);
        for (part, open) in terminal.calls() {
            let Some(in_page) = page.get(&part) else { continue };
            compared[usize::from(open)] += 1;
            if *in_page != open {
                differences.push(format!("{id}, {part}: page {in_page}, terminal {open}"));
            }
        }
        terminal.press("\x1b");
    }
    assert_none(differences);
    assert!(compared[0] > 50 && compared[1] > 50, "{compared:?}");
}

/// A summary made from a transcript counts like the outline.
#[test]
fn law_6_summaries_count_the_errors_of_the_outline() {
    let mut differences = Vec::new();
    for case in all_cases() {
        let captures = captures(&case);
        let order: Vec<usize> = (0..captures.len()).collect();
        let session_set = fold_in(&captures, &order);
        for session in case_sessions(&session_set) {
            let transcript = session.transcript();
            let options = unspool_view::present::PresentOptions::of(&transcript.session);
            let outlines = transcript
                .turns
                .iter()
                .map(|turn| unspool_view::present::turn(turn, &options).outline.errors as u64);
            let expected: u64 = outlines.sum();
            let summary = transcript.summary(unspool_model::summary::Completeness::Full, &[]);
            if summary.errors != expected {
                differences.push(format!("{}: {} and {expected}", name(&case), summary.errors));
            }
        }
    }
    assert_none(differences);
}
