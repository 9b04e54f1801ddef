//! Maintenance and rebuilding do not change search results.

use unspool_core::event::EndReason::Completed;
use unspool_core::event::ToolEnd;
use unspool_core::event::Voice::Text;
use unspool_store::batch::Pace;
use unspool_store::blocking::wait;
use unspool_store::contract::{SessionFilter, Store, Tidy};
use unspool_store::search::SearchRequest;

use crate::desk::{AGENT, Desk, ask};
use crate::home::Home;
use crate::script::*;

const QUERIES: [&str; 14] = [
    "common",
    "rare",
    "sort",
    "quick",
    "live",
    "lively",
    "out*",
    "\"common words\"",
    "rs:1",
    "common -rare",
    "number3",
    "number",
    "nothing",
    "live common",
];

/// The sorted hits of each query.
fn all_found<H: Home>(desk: &Desk<H>) -> Vec<(String, Vec<String>, bool)> {
    QUERIES
        .iter()
        .map(|query| {
            let request = SearchRequest { limit: 10_000, ..SearchRequest::new(query) };
            let widened = desk.search(request.clone()).widened;
            let mut found = desk.find_with(request);
            found.sort();
            ((*query).to_owned(), found, widened)
        })
        .collect()
}

/// An archive from many batches, with live parts and with changed and deleted ones.
fn untidy<H: Home>() -> Desk<H> {
    let desk = Desk::<H>::new();
    for nth in 0..40 {
        let name = format!("s{}", nth % 7);
        let script = [
            ask(&format!("p{nth}"), &format!("common words quicksort number{nth}")),
            said(Text, &format!("see lib.rs:{nth} {}", if nth == 5 { "rare" } else { "" })),
            called(&format!("t{nth}"), "Bash"),
            ended(&format!("t{nth}"), ToolEnd::Completed, "output common"),
            over(Completed),
        ];
        desk.record(&name, script);
    }
    let mut packer = desk.packer(Pace::Live);
    let mut fold = desk.open(AGENT, "live");
    desk.take(&mut fold, [ask("p", "lively common sort")]);
    for nth in 0..100 {
        desk.take(&mut fold, [notice(None, &format!("live{nth}")), said(Text, "live")]);
    }
    desk.take(&mut fold, [called("t", "Bash"), ended("t", ToolEnd::Failed, "live output")]);
    desk.take(&mut fold, [called("u", "Bash"), output_grew("u", "outlive")]);
    desk.commit(&mut packer, &mut fold);
    wait(desk.store().delete(desk.session("s3").row)).unwrap();
    desk
}

pub fn tidying_changes_nothing_that_is_found<H: Home>() {
    let desk = untidy::<H>();
    let before = all_found(&desk);
    assert_eq!(before[0].1.len(), 34 * 2 + 1, "common");
    assert!(before[1].1.len() == 1 && before[12].1.is_empty(), "rare, and nothing");
    for how in [Tidy::WhenDue, Tidy::Thorough, Tidy::WhenDue, Tidy::Thorough] {
        wait(desk.store().tidy(how)).unwrap();
        for (now, before) in all_found(&desk).iter().zip(&before) {
            assert_eq!(now, before, "{how:?}");
        }
        desk.is_clean();
    }
    let desk = desk.reopened();
    assert_eq!(all_found(&desk), before);
    let parts = desk.check().parts;
    assert_eq!(wait(desk.store().rebuild()).unwrap(), parts);
    assert_eq!(all_found(&desk), before, "rebuilt");
    wait(desk.store().rebuild()).unwrap();
    wait(desk.store().tidy(Tidy::Thorough)).unwrap();
    assert_eq!(all_found(&desk), before, "rebuilt twice, and tidied");
    desk.is_clean();
}

pub fn an_archive_is_recorded_into_after_tidying<H: Home>() {
    let desk = untidy::<H>();
    wait(desk.store().tidy(Tidy::Thorough)).unwrap();
    let mut packer = desk.packer(Pace::Live);
    let mut fold = desk.open(AGENT, "live");
    // Open parts were not put into a segment before they ended.
    desk.take(&mut fold, [ended("u", ToolEnd::Completed, "antelope")]);
    desk.commit(&mut packer, &mut fold);
    assert_eq!(desk.found("antelope"), ["live.1 tool"]);
    assert!(!desk.found("outlive").iter().any(|hit| hit == "live.1 tool"));
    desk.record("live", [over(Completed), ask("q", "bison"), said(Text, "caribou")]);
    wait(desk.store().tidy(Tidy::Thorough)).unwrap();
    assert_eq!(desk.found("antelope"), ["live.1 tool"]);
    assert_eq!(desk.found("bison"), ["live.2 user"]);
    assert_eq!(desk.found("caribou"), ["live.2 text"]);
    desk.is_clean();
}

pub fn an_empty_archive_can_be_tidied<H: Home>() {
    let desk = Desk::<H>::new();
    for how in [Tidy::WhenDue, Tidy::Thorough] {
        wait(desk.store().tidy(how)).unwrap();
    }
    assert_eq!(wait(desk.store().rebuild()).unwrap(), 0);
    assert!(desk.found("anything").is_empty());
    assert!(desk.sessions(SessionFilter::default()).is_empty());
    let checked = desk.check();
    assert_eq!((checked.sessions, checked.turns, checked.parts, checked.count), (0, 0, 0, 0));
}

pub fn numbers_of_rows_that_are_free_again_mix_nothing_up<H: Home>() {
    // Another session reuses the row numbers of a deleted one: old postings must not match it.
    let desk = Desk::<H>::new();
    desk.record("s", [ask("p", "dromedary"), said(Text, "elk")]);
    wait(desk.store().delete(desk.session("s").row)).unwrap();
    let desk = desk.reopened();
    desk.record("t", [ask("p", "ferret"), said(Text, "gnu")]);
    for _ in 0..2 {
        assert!(desk.found("dromedary").is_empty() && desk.found("elk").is_empty());
        assert_eq!(desk.found("ferret"), ["t.1 user"]);
        assert_eq!(desk.found("gnu"), ["t.1 text"]);
        wait(desk.store().tidy(Tidy::Thorough)).unwrap();
    }
    desk.is_clean();
}
