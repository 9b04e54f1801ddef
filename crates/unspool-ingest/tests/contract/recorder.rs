//! Compares the recorder with the model: for any events, any batching and any restarts, the archive
//! equals the result of an assembler that never stopped (law 2, law 5, law 9).

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use unspool_ingest::recorder::Recorder;
use unspool_ingest::recorder::batch::{IngestMode, Packer};
use unspool_ingest::recorder::session_writer::SessionWriter;
use unspool_model::event::Event;
use unspool_store::blocking::block_on;
use unspool_store::search::SearchRequest;
use unspool_store::store::{SessionFilter, Store, TurnWindow, View, Viewer};

use crate::harness::AGENT;
use crate::messages::compare_messages;
use crate::model::{Model, Outcome, same, words_in};
use crate::ops::{RecorderOp, Reread, SESSIONS, program};
use crate::script_strategies::{WORDS, any_script, cut_script};
use crate::stats::compare_figures;
use crate::test_archive::TestArchive;

/// The number of cases of a property.
pub fn cases(usual: u32) -> u32 {
    std::env::var("STORE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Checks a property on random programs. Shrinks a failing program by removing operations.
pub fn check_property<T: Clone + std::fmt::Debug>(
    usual: u32,
    programs: impl Strategy<Value = Vec<T>>,
    law: impl Fn(&[T]) -> Outcome,
) {
    let config = ProptestConfig {
        cases: cases(usual),
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    let broken = |program: &[T]| match catch_unwind(AssertUnwindSafe(|| law(program))) {
        Ok(outcome) => outcome.err().map(|error| error.to_string()),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            Some(said.unwrap_or_else(|| "panic".to_owned()))
        }
    };
    let outcome = TestRunner::new(config).run(&programs, |mut program| {
        let Some(mut why) = broken(&program) else { return Ok(()) };
        let mut at = 0;
        while at < program.len() {
            let mut less = program.clone();
            less.remove(at);
            match broken(&less) {
                Some(still) => (program, why, at) = (less, still, 0),
                None => at += 1,
            }
        }
        Err(TestCaseError::fail(format!("{why}\n{program:#?}")))
    });
    if let Err(TestError::Fail(why, _)) = outcome {
        panic!("{why}");
    }
}

/// One session: as it is recorded, and as it should be.
struct Lane {
    name: &'static str,
    writer: Option<SessionWriter>,
    model: Model,
    /// Applied but not committed.
    pending: Vec<Event>,
    committed: Vec<Event>,
    /// In the batch that is not written yet.
    added: bool,
}

struct Process<H: TestArchive> {
    archive: H,
    recorder: Option<Recorder<H::Store>>,
    packer: Option<Packer>,
    mode: IngestMode,
    lanes: Vec<Lane>,
}

impl<H: TestArchive> Process<H> {
    fn new() -> Process<H> {
        let lanes = SESSIONS.map(|name| Lane {
            name,
            writer: None,
            model: Model::new(AGENT, name),
            pending: Vec::new(),
            committed: Vec::new(),
            added: false,
        });
        let mut process = Process {
            archive: H::new(),
            recorder: None,
            packer: None,
            mode: IngestMode::Bulk,
            lanes: lanes.into(),
        };
        process.start();
        process
    }

    fn start(&mut self) {
        let recorder = Recorder::new(self.archive.open()).unwrap();
        self.packer = Some(recorder.packer(self.mode).unwrap());
        self.recorder = Some(recorder);
    }

    fn recorder(&self) -> Recorder<H::Store> {
        self.recorder.clone().unwrap()
    }

    fn store(&self) -> H::Store {
        self.recorder().store().clone()
    }

    fn run(&mut self, program: &[RecorderOp]) -> Outcome {
        for op in program {
            match op {
                RecorderOp::Apply(session, line) => {
                    // A session in the batch is committed before it gets more events.
                    if self.lanes[*session].added {
                        self.commit()?;
                    }
                    let event = line.clone().event(0);
                    self.lanes[*session].model.take(event.clone());
                    self.take(*session, event);
                }
                RecorderOp::Add(session) => self.add(*session),
                RecorderOp::Commit => self.commit()?,
                RecorderOp::Crash(session, reread) => {
                    // A batch is written or lost as a whole.
                    self.commit_added()?;
                    self.lanes[*session].writer = None;
                    self.take_up(*session, *reread);
                }
                RecorderOp::Reopen(reread) => {
                    self.packer = None;
                    self.lanes.iter_mut().for_each(|lane| lane.writer = None);
                    self.recorder = None;
                    self.start();
                    for session in 0..self.lanes.len() {
                        self.take_up(session, *reread);
                    }
                }
                RecorderOp::IngestMode(mode) => {
                    self.commit()?;
                    self.mode = *mode;
                    self.packer = Some(self.recorder().packer(*mode).unwrap());
                }
                RecorderOp::Maintenance(how) => block_on(self.store().maintain(*how)).unwrap(),
                RecorderOp::Rebuild => {
                    block_on(self.store().rebuild()).unwrap();
                }
            }
        }
        self.commit()
    }

    /// Applies an event to a session, opening it from the archive if needed.
    fn take(&mut self, session: usize, event: Event) {
        let recorder = self.recorder();
        let lane = &mut self.lanes[session];
        let writer =
            lane.writer.get_or_insert_with(|| recorder.open(AGENT, lane.name).unwrap().unwrap());
        recorder.take(writer, event.clone()).unwrap();
        lane.pending.push(event);
    }

    /// Re-reads a source.
    fn take_up(&mut self, session: usize, reread: Reread) {
        let lane = &mut self.lanes[session];
        lane.added = false;
        let mut rest = std::mem::take(&mut lane.pending);
        if reread == Reread::All {
            // Committed events are skipped as duplicates, and counted.
            let committed = lane.committed.clone();
            committed.iter().for_each(|event| {
                lane.model.take(event.clone());
            });
            rest.splice(0..0, committed);
        }
        rest.into_iter().for_each(|event| self.take(session, event));
    }

    fn add(&mut self, session: usize) {
        let lane = &mut self.lanes[session];
        let Some(writer) = lane.writer.as_mut().filter(|_| !lane.added && !lane.pending.is_empty())
        else {
            return;
        };
        self.packer.as_mut().unwrap().add(writer).unwrap();
        lane.added = true;
    }

    fn commit_added(&mut self) -> Outcome {
        if self.lanes.iter().any(|lane| lane.added) { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Outcome {
        (0..self.lanes.len()).for_each(|session| self.add(session));
        let recorder = self.recorder();
        let writers = self.lanes.iter_mut().filter_map(|lane| lane.writer.as_mut());
        recorder.commit(self.packer.as_mut().unwrap(), writers).unwrap();
        for lane in &mut self.lanes {
            lane.added = false;
            lane.committed.append(&mut lane.pending);
        }
        self.compare()
    }

    /// Compares the whole archive with the models.
    fn compare(&self) -> Outcome {
        let store = self.store();
        let models: Vec<&Model> =
            self.lanes.iter().filter(|lane| lane.model.seq > 0).map(|lane| &lane.model).collect();
        for model in &models {
            compare_session(&store, model, &models)?;
        }
        let listed = block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap();
        prop_assert_eq!(listed.len(), models.len());
        compare_search(&store, &models)?;
        let transcripts: Vec<_> = models.iter().map(|model| model.transcript()).collect();
        compare_figures(&store, &transcripts)?;
        let report = block_on(store.check()).unwrap();
        prop_assert_eq!(report.problems, Vec::<String>::new());
        Ok(())
    }
}

/// Compares one stored session with its model.
pub fn compare_session<S: Store>(store: &S, model: &Model, all: &[&Model]) -> Outcome {
    let found = block_on(store.view(Viewer::Sole).find(model.id.to_string())).unwrap();
    prop_assert_eq!(found.len(), 1);
    let stored = &found[0];
    let whole =
        block_on(store.view(Viewer::Sole).whole_turns(stored.row, TurnWindow::All)).unwrap();
    same("whole turns", &whole, &model.rows())?;
    let shown = block_on(store.view(Viewer::Sole).turns(stored.row, TurnWindow::All)).unwrap();
    same("turns", &shown, &model.transcript().turns)?;
    compare_messages(store, model.id, &shown)?;
    same("summary", &stored.summary, &model.summary(all))?;
    same("seq", &stored.seq, &model.seq)?;
    same("oddities", &stored.skip_counts, &model.skip_counts())?;
    let session_export = block_on(store.view(Viewer::Sole).session_export(stored.row)).unwrap();
    same("head", &session_export.session, model.builder.session())?;
    let outline = block_on(store.outline(model.id)).unwrap().unwrap();
    same("cursors", &outline.cursors.into_iter().collect(), &model.cursors())?;
    same("unsettled", &outline.unsettled.into_iter().collect(), &model.unsettled())?;
    for (_, outline) in outline.turns {
        let names: BTreeSet<u64> = outline.names.into_iter().collect();
        let turn = whole.iter().find(|turn| turn.id == outline.turn.id);
        let reported = turn.map(|turn| turn.name_digests(0)).unwrap_or_default();
        prop_assert!(
            reported.iter().all(|name| names.contains(name)),
            "a stored turn lacks a name"
        );
    }
    Ok(())
}

/// A search finds exactly the parts with the whole word; if there are none, those with the word
/// inside another.
pub fn compare_search<S: Store>(store: &S, all: &[&Model]) -> Outcome {
    let texts = all.iter().flat_map(|model| model.texts());
    let parts: Vec<_> = texts.map(|(part, texts)| (part, words_in(&texts, &WORDS))).collect();
    for word in WORDS {
        let request = SearchRequest { limit: 10_000, ..SearchRequest::new(word) };
        let results = block_on(store.view(Viewer::Sole).search(request)).unwrap();
        let hits: Vec<_> = results.hits.iter().filter_map(|hit| hit.part).collect();
        let found: BTreeSet<_> = hits.iter().copied().collect();
        prop_assert_eq!(hits.len(), found.len(), "one hit for each part");
        let having = |inside: bool| -> BTreeSet<_> {
            let of = |(whole, within): &(Vec<_>, Vec<_>)| {
                if inside { within.contains(&word) } else { whole.contains(&word) }
            };
            parts.iter().filter(|(_, words)| of(words)).map(|(part, _)| *part).collect()
        };
        let (whole, inside) = (having(false), having(true));
        let expected = if whole.is_empty() { &inside } else { &whole };
        same(word, &found, expected)?;
    }
    Ok(())
}

pub fn recorded_sessions_match_the_model<H: TestArchive>() {
    // R-000-14 R-001-28 R-004-01 R-004-02 R-004-04 C-02 R-X-14, law 9: released turns
    // are restored from their rows.
    check_property(48, program(any_script(30), false), |ops| Process::<H>::new().run(ops));
}

pub fn a_process_may_end_anywhere<H: TestArchive>() {
    // R-000-14 R-001-28 C-21, law 2 and law 5.
    check_property(48, program(cut_script(25), true), |ops| Process::<H>::new().run(ops));
}
