//! Importing an exported session: it is adopted as a whole and then continues like one that was
//! recorded here.

use proptest::prelude::*;
use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::Event;
use unspool_store::blocking::block_on;
use unspool_store::rows::Snapshot;
use unspool_store::store::View;

use crate::harness::{AGENT, Harness};
use crate::model::{Model, Outcome};
use crate::recorder::{check_property, compare_search, compare_session};
use crate::script::Line;
use crate::script_strategies::cut_script;
use crate::test_archive::TestArchive;

pub fn a_session_that_was_kept_elsewhere_goes_on_here<H: TestArchive>() {
    // R-000-14 R-001-28 R-001-30 R-X-15
    check_property(24, cut_script(25), |script| {
        [script.len() / 3, script.len()].into_iter().try_for_each(|cut| adopted::<H>(script, cut))
    });
}

fn adopted<H: TestArchive>(script: &[Line], cut: usize) -> Outcome {
    let events: Vec<Event> = script.iter().map(|line| line.clone().event(0)).collect();
    let mut model = Model::new(AGENT, "s");
    events[..cut].iter().for_each(|event| {
        model.take(event.clone());
    });
    for mode in [IngestMode::Bulk, IngestMode::Live] {
        let mut model = model.clone();
        let harness = Harness::<H>::new();
        let mut packer = harness.packer(mode);
        let mut writer = harness.recorder.begin(AGENT, "s");
        writer.set_head(model.builder.session().clone(), model.seq, model.skip_counts());
        model.cursors().into_iter().for_each(|cursor| writer.set_cursor(cursor));
        model.rows().into_iter().for_each(|turn| writer.adopt(turn));
        writer.add_snapshot(Snapshot {
            kind: "policy".to_owned(),
            sha256: "5ha".to_owned(),
            content: "{}".to_owned(),
        });
        harness.commit(&mut packer, &mut writer);
        compare_session(harness.store(), &model, &[&model])?;
        let session_export = block_on(harness.view().session_export(writer.row)).unwrap();
        prop_assert_eq!(session_export.snapshots.len(), 1);
        // Replay all events from the start: the adopted ones are duplicates, the rest continues.
        for event in events.iter().cloned() {
            model.take(event.clone());
            harness.recorder.take(&mut writer, event).unwrap();
        }
        harness.commit(&mut packer, &mut writer);
        compare_session(harness.store(), &model, &[&model])?;
        compare_search(harness.store(), &[&model])?;
        prop_assert_eq!(harness.check().problems, Vec::<String>::new());
    }
    Ok(())
}
