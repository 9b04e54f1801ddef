//! Importing an exported session: it is adopted as a whole and then continues like one that was
//! recorded here.

use proptest::prelude::*;
use unspool_core::event::Event;
use unspool_store::batch::Pace;
use unspool_store::blocking::wait;
use unspool_store::contract::Store;
use unspool_store::rows::Snapshot;

use crate::desk::{AGENT, Desk};
use crate::dress::cut_script;
use crate::home::Home;
use crate::model::{Model, Outcome};
use crate::recording::{compare_search, compare_session, hold};
use crate::script::Line;

pub fn a_session_that_was_kept_elsewhere_goes_on_here<H: Home>() {
    // R-000-14 R-000-19 R-001-28 R-001-30 R-X-15
    hold(24, cut_script(25), |script| {
        [script.len() / 3, script.len()].into_iter().try_for_each(|cut| adopted::<H>(script, cut))
    });
}

fn adopted<H: Home>(script: &[Line], cut: usize) -> Outcome {
    let events: Vec<Event> = script.iter().map(|line| line.clone().event(0)).collect();
    let mut model = Model::new(AGENT, "s");
    events[..cut].iter().for_each(|event| {
        model.take(event.clone());
    });
    for pace in [Pace::Bulk, Pace::Live] {
        let mut model = model.clone();
        let desk = Desk::<H>::new();
        let mut packer = desk.packer(pace);
        let mut fold = desk.recorder.begin(AGENT, "s");
        fold.set_head(model.mirror.session().clone(), model.seq, model.oddities());
        model.cursors().into_iter().for_each(|cursor| fold.set_cursor(cursor));
        model.rows().into_iter().for_each(|turn| fold.adopt(turn));
        fold.add_snapshot(Snapshot {
            kind: "policy".to_owned(),
            sha256: "5ha".to_owned(),
            content: "{}".to_owned(),
        });
        desk.commit(&mut packer, &mut fold);
        compare_session(desk.store(), &model, &[&model])?;
        let archived = wait(desk.store().archived(fold.row)).unwrap();
        prop_assert_eq!(archived.snapshots.len(), 1);
        // Replay all events from the start: the adopted ones are duplicates, the rest continues.
        for event in events.iter().cloned() {
            model.take(event.clone());
            desk.recorder.take(&mut fold, event).unwrap();
        }
        desk.commit(&mut packer, &mut fold);
        compare_session(desk.store(), &model, &[&model])?;
        compare_search(desk.store(), &[&model])?;
        prop_assert_eq!(desk.check().problems, Vec::<String>::new());
    }
    Ok(())
}
