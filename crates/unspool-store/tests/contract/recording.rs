//! Compares the recorder with the model: for any events, any batching and any restarts, the archive
//! equals the result of an assembler that never stopped (law 2, law 5, law 9).

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use unspool_core::event::Event;
use unspool_store::batch::{Pace, Packer};
use unspool_store::blocking::wait;
use unspool_store::contract::{SessionFilter, Store, Window};
use unspool_store::fold::SessionFold;
use unspool_store::recorder::Recorder;
use unspool_store::search::SearchRequest;

use crate::deed::{Again, Deed, SESSIONS, program};
use crate::desk::AGENT;
use crate::dress::{WORDS, any_script, cut_script};
use crate::figures::compare_figures;
use crate::home::Home;
use crate::messages::compare_messages;
use crate::model::{Model, Outcome, same, words_in};

/// The number of cases of a property.
pub fn cases(usual: u32) -> u32 {
    std::env::var("STORE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Checks a property on random programs. Shrinks a failing program by removing operations.
pub fn hold<T: Clone + std::fmt::Debug>(
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
    fold: Option<SessionFold>,
    model: Model,
    /// Applied but not committed.
    pending: Vec<Event>,
    committed: Vec<Event>,
    /// In the batch that is not written yet.
    added: bool,
}

struct Process<H: Home> {
    home: H,
    recorder: Option<Recorder<H::Store>>,
    packer: Option<Packer>,
    pace: Pace,
    lanes: Vec<Lane>,
}

impl<H: Home> Process<H> {
    fn new() -> Process<H> {
        let lanes = SESSIONS.map(|name| Lane {
            name,
            fold: None,
            model: Model::new(AGENT, name),
            pending: Vec::new(),
            committed: Vec::new(),
            added: false,
        });
        let mut process = Process {
            home: H::new(),
            recorder: None,
            packer: None,
            pace: Pace::Bulk,
            lanes: lanes.into(),
        };
        process.start();
        process
    }

    fn start(&mut self) {
        let recorder = Recorder::new(self.home.open()).unwrap();
        self.packer = Some(recorder.packer(self.pace).unwrap());
        self.recorder = Some(recorder);
    }

    fn recorder(&self) -> Recorder<H::Store> {
        self.recorder.clone().unwrap()
    }

    fn store(&self) -> H::Store {
        self.recorder().store().clone()
    }

    fn run(&mut self, program: &[Deed]) -> Outcome {
        for deed in program {
            match deed {
                Deed::Tell(session, line) => {
                    // A session in the batch is committed before it gets more events.
                    if self.lanes[*session].added {
                        self.commit()?;
                    }
                    let event = line.clone().event(0);
                    self.lanes[*session].model.take(event.clone());
                    self.take(*session, event);
                }
                Deed::Add(session) => self.add(*session),
                Deed::Commit => self.commit()?,
                Deed::Crash(session, again) => {
                    // A batch is written or lost as a whole.
                    self.commit_added()?;
                    self.lanes[*session].fold = None;
                    self.take_up(*session, *again);
                }
                Deed::Reopen(again) => {
                    self.packer = None;
                    self.lanes.iter_mut().for_each(|lane| lane.fold = None);
                    self.recorder = None;
                    self.start();
                    for session in 0..self.lanes.len() {
                        self.take_up(session, *again);
                    }
                }
                Deed::Pace(pace) => {
                    self.commit()?;
                    self.pace = *pace;
                    self.packer = Some(self.recorder().packer(*pace).unwrap());
                }
                Deed::Tidy(how) => wait(self.store().tidy(*how)).unwrap(),
                Deed::Rebuild => {
                    wait(self.store().rebuild()).unwrap();
                }
            }
        }
        self.commit()
    }

    /// Applies an event to a session, opening it from the archive if needed.
    fn take(&mut self, session: usize, event: Event) {
        let recorder = self.recorder();
        let lane = &mut self.lanes[session];
        let fold =
            lane.fold.get_or_insert_with(|| recorder.open(AGENT, lane.name).unwrap().unwrap());
        recorder.take(fold, event.clone()).unwrap();
        lane.pending.push(event);
    }

    /// Re-reads a source.
    fn take_up(&mut self, session: usize, again: Again) {
        let lane = &mut self.lanes[session];
        lane.added = false;
        let mut rest = std::mem::take(&mut lane.pending);
        if again == Again::All {
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
        let Some(fold) = lane.fold.as_mut().filter(|_| !lane.added && !lane.pending.is_empty())
        else {
            return;
        };
        self.packer.as_mut().unwrap().add(fold).unwrap();
        lane.added = true;
    }

    fn commit_added(&mut self) -> Outcome {
        if self.lanes.iter().any(|lane| lane.added) { self.commit() } else { Ok(()) }
    }

    fn commit(&mut self) -> Outcome {
        (0..self.lanes.len()).for_each(|session| self.add(session));
        let recorder = self.recorder();
        let folds = self.lanes.iter_mut().filter_map(|lane| lane.fold.as_mut());
        recorder.commit(self.packer.as_mut().unwrap(), folds).unwrap();
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
        let listed = wait(store.sessions(SessionFilter::default())).unwrap();
        prop_assert_eq!(listed.len(), models.len());
        compare_search(&store, &models)?;
        let transcripts: Vec<_> = models.iter().map(|model| model.transcript()).collect();
        compare_figures(&store, &transcripts)?;
        let checked = wait(store.check()).unwrap();
        prop_assert_eq!(checked.problems, Vec::<String>::new());
        Ok(())
    }
}

/// Compares one stored session with its model.
pub fn compare_session<S: Store>(store: &S, model: &Model, all: &[&Model]) -> Outcome {
    let found = wait(store.find(model.id.to_string())).unwrap();
    prop_assert_eq!(found.len(), 1);
    let stored = &found[0];
    let whole = wait(store.whole_turns(stored.row, Window::All)).unwrap();
    same("whole turns", &whole, &model.rows())?;
    let shown = wait(store.turns(stored.row, Window::All)).unwrap();
    same("turns", &shown, &model.transcript().turns)?;
    compare_messages(store, model.id, &shown)?;
    same("summary", &stored.summary, &model.summary(all))?;
    same("seq", &stored.seq, &model.seq)?;
    same("oddities", &stored.oddities, &model.oddities())?;
    let archived = wait(store.archived(stored.row)).unwrap();
    same("head", &archived.session, model.mirror.session())?;
    let outline = wait(store.outline(model.id)).unwrap().unwrap();
    same("cursors", &outline.cursors.into_iter().collect(), &model.cursors())?;
    same("unsettled", &outline.unsettled.into_iter().collect(), &model.unsettled())?;
    for (_, outline) in outline.turns {
        let names: BTreeSet<u64> = outline.names.into_iter().collect();
        let turn = whole.iter().find(|turn| turn.id == outline.turn.id);
        let told = turn.map(|turn| turn.name_digests()).unwrap_or_default();
        prop_assert!(told.iter().all(|name| names.contains(name)), "a stored turn lacks a name");
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
        let findings = wait(store.search(request)).unwrap();
        let hits: Vec<_> = findings.hits.iter().filter_map(|hit| hit.part).collect();
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

pub fn what_is_recorded_is_what_was_told<H: Home>() {
    // R-000-14 R-000-19 R-001-28 R-004-01 R-004-02 R-004-04 C-02 R-X-14, law 9: released turns
    // are restored from their rows.
    hold(48, program(any_script(30), false), |deeds| Process::<H>::new().run(deeds));
}

pub fn a_process_may_end_anywhere<H: Home>() {
    // R-000-14 R-001-28 C-21, law 2 and law 5.
    hold(48, program(cut_script(25), true), |deeds| Process::<H>::new().run(deeds));
}
