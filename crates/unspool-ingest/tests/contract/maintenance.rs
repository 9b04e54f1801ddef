//! Maintenance and rebuilding do not change search results.

use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::Text;
use unspool_model::event::ToolEnd;
use unspool_store::blocking::block_on;
use unspool_store::search::SearchRequest;
use unspool_store::store::{Maintenance, SessionFilter, Store};

use crate::harness::{AGENT, Harness, ask};
use crate::script::*;
use crate::test_archive::TestArchive;

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
fn all_found<H: TestArchive>(harness: &Harness<H>) -> Vec<(String, Vec<String>, bool)> {
    QUERIES
        .iter()
        .map(|query| {
            let request = SearchRequest { limit: 10_000, ..SearchRequest::new(query) };
            let widened = harness.search(request.clone()).widened;
            let mut found = harness.find_with(request);
            found.sort();
            ((*query).to_owned(), found, widened)
        })
        .collect()
}

/// An archive from many batches, with live parts and with changed and deleted ones.
fn untidy<H: TestArchive>() -> Harness<H> {
    let harness = Harness::<H>::new();
    for nth in 0..40 {
        let name = format!("s{}", nth % 7);
        let script = [
            ask(&format!("p{nth}"), &format!("common words quicksort number{nth}")),
            said(Text, &format!("see lib.rs:{nth} {}", if nth == 5 { "rare" } else { "" })),
            called(&format!("t{nth}"), "Bash"),
            ended(&format!("t{nth}"), ToolEnd::Completed, "output common"),
            over(Completed),
        ];
        harness.record(&name, script);
    }
    let mut packer = harness.packer(IngestMode::Live);
    let mut writer = harness.open(AGENT, "live");
    harness.take(&mut writer, [ask("p", "lively common sort")]);
    for nth in 0..100 {
        harness.take(&mut writer, [notice(None, &format!("live{nth}")), said(Text, "live")]);
    }
    harness.take(&mut writer, [called("t", "Bash"), ended("t", ToolEnd::Failed, "live output")]);
    harness.take(&mut writer, [called("u", "Bash"), output_grew("u", "outlive")]);
    harness.commit(&mut packer, &mut writer);
    block_on(harness.store().delete(harness.session("s3").row)).unwrap();
    harness
}

pub fn tidying_changes_nothing_that_is_found<H: TestArchive>() {
    let harness = untidy::<H>();
    let before = all_found(&harness);
    assert_eq!(before[0].1.len(), 34 * 2 + 1, "common");
    assert!(before[1].1.len() == 1 && before[12].1.is_empty(), "rare, and nothing");
    for how in [Maintenance::IfDue, Maintenance::Full, Maintenance::IfDue, Maintenance::Full] {
        block_on(harness.store().maintain(how)).unwrap();
        for (now, before) in all_found(&harness).iter().zip(&before) {
            assert_eq!(now, before, "{how:?}");
        }
        harness.is_clean();
    }
    let harness = harness.reopened();
    assert_eq!(all_found(&harness), before);
    let parts = harness.check().parts;
    assert_eq!(block_on(harness.store().rebuild()).unwrap(), parts);
    assert_eq!(all_found(&harness), before, "rebuilt");
    block_on(harness.store().rebuild()).unwrap();
    block_on(harness.store().maintain(Maintenance::Full)).unwrap();
    assert_eq!(all_found(&harness), before, "rebuilt twice, and tidied");
    harness.is_clean();
}

pub fn an_archive_is_recorded_into_after_tidying<H: TestArchive>() {
    let harness = untidy::<H>();
    block_on(harness.store().maintain(Maintenance::Full)).unwrap();
    let mut packer = harness.packer(IngestMode::Live);
    let mut writer = harness.open(AGENT, "live");
    // Open parts were not put into a segment before they ended.
    harness.take(&mut writer, [ended("u", ToolEnd::Completed, "antelope")]);
    harness.commit(&mut packer, &mut writer);
    assert_eq!(harness.found("antelope"), ["live.1 tool"]);
    assert!(!harness.found("outlive").iter().any(|hit| hit == "live.1 tool"));
    harness.record("live", [over(Completed), ask("q", "bison"), said(Text, "caribou")]);
    block_on(harness.store().maintain(Maintenance::Full)).unwrap();
    assert_eq!(harness.found("antelope"), ["live.1 tool"]);
    assert_eq!(harness.found("bison"), ["live.2 user"]);
    assert_eq!(harness.found("caribou"), ["live.2 text"]);
    harness.is_clean();
}

pub fn an_empty_archive_can_be_tidied<H: TestArchive>() {
    let harness = Harness::<H>::new();
    for how in [Maintenance::IfDue, Maintenance::Full] {
        block_on(harness.store().maintain(how)).unwrap();
    }
    assert_eq!(block_on(harness.store().rebuild()).unwrap(), 0);
    assert!(harness.found("anything").is_empty());
    assert!(harness.sessions(SessionFilter::default()).is_empty());
    let checked = harness.check();
    assert_eq!((checked.sessions, checked.turns, checked.parts, checked.count), (0, 0, 0, 0));
}

pub fn numbers_of_rows_that_are_free_again_mix_nothing_up<H: TestArchive>() {
    // Another session reuses the row numbers of a deleted one: old postings must not match it.
    let harness = Harness::<H>::new();
    harness.record("s", [ask("p", "dromedary"), said(Text, "elk")]);
    block_on(harness.store().delete(harness.session("s").row)).unwrap();
    let harness = harness.reopened();
    harness.record("t", [ask("p", "ferret"), said(Text, "gnu")]);
    for _ in 0..2 {
        assert!(harness.found("dromedary").is_empty() && harness.found("elk").is_empty());
        assert_eq!(harness.found("ferret"), ["t.1 user"]);
        assert_eq!(harness.found("gnu"), ["t.1 text"]);
        block_on(harness.store().maintain(Maintenance::Full)).unwrap();
    }
    harness.is_clean();
}
