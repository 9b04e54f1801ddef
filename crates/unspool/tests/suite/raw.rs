//! Every part leads to its raw records, quoted from the agent's file; missing and changed records
//! are reported as such.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use unspool_model::id::digest;
use unspool_model::part::Part;
use unspool_model::provenance::Feed;
use unspool_query::raw::{Absent, Raw, raw};
use unspool_store::blocking::block_on;
use unspool_store::database::{Database, DatabaseView};
use unspool_store::store::{SessionFilter, Store, StoredSession, TurnWindow, View, Viewer};

use crate::by_source::by_source;
use crate::case::{cases, name};
use crate::harness::{Machine, copy};

/// Imports a path and opens the archive.
fn read(machine: &Machine, path: &Path) -> DatabaseView {
    machine.ok("data", &["import", path.to_str().unwrap()]);
    let path = machine.data("data").join("unspool.db");
    Database::open_to_read(&path).unwrap().view(Viewer::Sole)
}

fn sessions(store: &DatabaseView) -> Vec<StoredSession> {
    let all = SessionFilter { with_empty: true, ..SessionFilter::default() };
    block_on(store.sessions(all)).unwrap()
}

/// All parts with their raw records.
fn parts_with_records(store: &DatabaseView) -> Vec<(Part, Raw)> {
    let mut parts_with_records = Vec::new();
    for session in sessions(store) {
        for turn in block_on(store.turns(session.row, TurnWindow::All)).unwrap() {
            for part in turn.parts {
                let raw = raw(store, &session, part.id).unwrap().unwrap();
                parts_with_records.push((part, raw));
            }
        }
    }
    parts_with_records
}

by_source!(every_part_of_every_recording_leads_to_its_records);

fn every_part_of_every_recording_leads_to_its_records(source: &str) {
    // R-001-30: for every source format: lines, compressed, documents, SSE, databases.
    let mut forms = std::collections::BTreeSet::new();
    for case in cases(source) {
        let machine = Machine::new();
        let document = case.join("log.json");
        let store = read(&machine, if document.exists() { &document } else { &case });
        for (part, raw) in parts_with_records(&store) {
            let whose = format!("{}: {}", name(&case), part.id);
            assert_eq!(raw.records.len() + raw.left_out, part.evidence.len(), "{whose}");
            for record in &raw.records {
                let text = record.text.as_ref();
                let text = text.unwrap_or_else(|why| panic!("{whose}: {}", why.explain(record)));
                let is = |text: &str| {
                    part.evidence.iter().any(|it| it.digest == digest(text.as_bytes()))
                };
                assert!(is(text), "{whose}: {text}");
                assert!(text.starts_with('{'), "{whose}: {text}");
                let path = record.file.as_deref().unwrap();
                forms
                    .insert(Path::new(path).extension().unwrap().to_str().unwrap()[..2].to_owned());
            }
            // The strongest feed first, each in its order.
            let order: Vec<_> = raw.records.iter().map(|it| (it.feed, it.offset)).collect();
            let log = order.iter().take_while(|(feed, _)| *feed == Feed::Log).count();
            assert!(order[log..].iter().all(|(feed, _)| *feed != Feed::Log), "{whose}");
        }
    }
    let expected: &[&str] = match source {
        "ai-sdk" => &["ss"],
        "claude-code" => &["js"],
        "codex" => &["js", "zs"],
        "opencode" => &["db"],
        _ => &[],
    };
    for form in expected {
        assert!(forms.contains(*form), "no part came out of .{form}: {forms:?}");
    }
}

#[test]
fn missing_and_changed_records_are_reported() {
    let machine = Machine::new();
    let folder = TempDir::new().unwrap();
    copy(&crate::case::root().join("fixtures/claude-code/discovery-loop"), folder.path());
    fs::remove_file(folder.path().join("stream.jsonl")).unwrap();
    fs::remove_file(folder.path().join("hooks.jsonl")).unwrap();
    let log = folder.path().join("log.jsonl");
    let store = read(&machine, &log);
    let absent = || -> Vec<&'static str> {
        let parts_with_records = parts_with_records(&store);
        let records = parts_with_records.iter().flat_map(|(_, raw)| &raw.records);
        records.filter_map(|record| record.text.as_ref().err()).map(Absent::name).collect()
    };
    assert!(absent().is_empty());

    // Appending does not affect earlier records.
    let whole = fs::read(&log).unwrap();
    fs::write(&log, [whole.as_slice(), b"{\"type\":\"later\"}\n"].concat()).unwrap();
    assert!(absent().is_empty());

    // One changed byte of one record affects only the parts of that record.
    let first_read = parts_with_records(&store);
    let (part, raw_one) = first_read.iter().find(|(_, raw)| raw.records.len() == 1).unwrap();
    let at = raw_one.records[0].offset as usize + raw_one.records[0].length as usize - 2;
    let mut altered = whole.clone();
    altered[at] ^= 1;
    fs::write(&log, &altered).unwrap();
    let changed = absent();
    assert!(!changed.is_empty() && changed.len() < first_read.len(), "{changed:?}");
    assert!(changed.iter().all(|why| *why == "changed"), "{changed:?}");
    let found = raw(&store, &sessions(&store)[0], part.id).unwrap().unwrap();
    let why = found.records[0].text.as_ref().unwrap_err().explain(&found.records[0]);
    assert!(why.contains("was rewritten"), "{why}");

    // Another record of the same length is at its offset.
    fs::write(&log, &whole[..whole.len() / 2]).unwrap();
    assert!(absent().contains(&"changed"));

    fs::remove_file(&log).unwrap();
    let gone = absent();
    assert!(gone.iter().all(|why| *why == "gone"), "{gone:?}");
    let written =
        serde_json::to_value(raw(&store, &sessions(&store)[0], part.id).unwrap()).unwrap();
    let record = &written["records"][0];
    assert!(record["text"].is_null() && record["absent"] == "gone", "{record}");
    assert!(record["why"].as_str().unwrap().contains("no longer exists"), "{record}");

    // A part id of another session is not found.
    let stranger = unspool_model::id::PartId(unspool_model::id::Id::derive([b"x".as_slice()]));
    assert!(raw(&store, &sessions(&store)[0], stranger).unwrap().is_none());
}
