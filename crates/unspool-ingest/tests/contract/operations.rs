//! Random sequences of user operations: record, name, tag, delete, undelete and forget sessions,
//! maintain and rebuild the archive. A few maps in memory give the expected state.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::id::SessionId;
use unspool_model::part::Body;
use unspool_store::blocking::block_on;
use unspool_store::store::{Maintenance, SessionFilter, Store, TurnWindow, View, Viewer};

use crate::batches::busy_turn;
use crate::harness::{AGENT, Harness, ask};
use crate::model::{Model, Outcome, same};
use crate::recorder::{check_property, compare_search};
use crate::script::*;
use crate::test_archive::TestArchive;

/// Sessions. Some become sub-agents of others during a run.
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

#[derive(Clone, Debug)]
enum UserOp {
    /// Records a turn, which may start a sub-agent.
    Record(usize, IngestMode, Option<usize>),
    /// Records a late event of the last turn.
    Late(usize),
    Rename(usize, Option<&'static str>),
    Tag(usize, &'static str, bool),
    Delete(usize),
    Undelete(usize),
    Forget(usize),
    Set(&'static str, Option<&'static str>),
    Maintenance(Maintenance),
    Rebuild,
    Reopen,
}

fn ops() -> impl Strategy<Value = Vec<UserOp>> {
    let which = || 0..NAMES.len();
    let paces = select(vec![IngestMode::Bulk, IngestMode::Live]);
    let op = prop_oneof![
        8 => (which(), paces, prop::option::weighted(0.2, which()))
            .prop_map(|(session, mode, agent)| UserOp::Record(session, mode, agent)),
        2 => which().prop_map(UserOp::Late),
        2 => (which(), select(vec![None, Some("mine"), Some("other")]))
            .prop_map(|(session, name)| UserOp::Rename(session, name)),
        3 => (which(), select(vec!["a", "b"]), any::<bool>())
            .prop_map(|(session, tag, add)| UserOp::Tag(session, tag, add)),
        2 => which().prop_map(UserOp::Delete),
        2 => which().prop_map(UserOp::Undelete),
        1 => which().prop_map(UserOp::Forget),
        1 => (select(vec!["x", "y"]), select(vec![None, Some("1"), Some("2")]))
            .prop_map(|(name, value)| UserOp::Set(name, value)),
        1 => select(vec![Maintenance::IfDue, Maintenance::Full]).prop_map(UserOp::Maintenance),
        1 => Just(UserOp::Rebuild),
        1 => Just(UserOp::Reopen),
    ];
    prop::collection::vec(op, 1..24)
}

/// The expected state.
#[derive(Default)]
struct Expected {
    sessions: BTreeMap<usize, Model>,
    names: BTreeMap<usize, &'static str>,
    tags: BTreeMap<usize, BTreeSet<&'static str>>,
    deleted: BTreeSet<usize>,
    settings: BTreeMap<&'static str, &'static str>,
}

fn id(session: usize) -> SessionId {
    SessionId::of(AGENT, NAMES[session])
}

impl Expected {
    /// A session and its stored sub-agents.
    fn family(&self, session: usize) -> BTreeSet<usize> {
        let mut family = BTreeSet::new();
        let mut open = vec![session];
        while let Some(next) = open.pop() {
            let Some(model) = self.sessions.get(&next).filter(|_| family.insert(next)) else {
                continue;
            };
            for part in model.rows().iter().flat_map(|turn| &turn.parts) {
                let Body::Agent(agents) = &part.body else { continue };
                let of = |name: &str| NAMES.iter().position(|existing| *existing == name);
                open.extend(agents.agents.iter().filter_map(|agent| of(&agent.id)));
            }
        }
        family
    }

    fn forget(&mut self, session: usize, also_what_it_was_called: bool) {
        self.sessions.remove(&session);
        if also_what_it_was_called {
            self.names.remove(&session);
            self.tags.remove(&session);
        }
    }
}

struct Run<H: TestArchive> {
    harness: Harness<H>,
    expected: Expected,
    turns: u32,
}

impl<H: TestArchive> Run<H> {
    fn record(&mut self, session: usize, mode: IngestMode, script: Vec<Line>) {
        let opened = self.harness.recorder.open(AGENT, NAMES[session]).unwrap();
        assert_eq!(opened.is_none(), self.expected.deleted.contains(&session));
        let Some(mut writer) = opened else { return };
        let model = self.expected.sessions.entry(session);
        let model = model.or_insert_with(|| Model::new(AGENT, NAMES[session]));
        for line in script {
            let event = self.harness.event(line);
            model.take(event.clone());
            self.harness.recorder.take(&mut writer, event).unwrap();
        }
        let mut packer = self.harness.packer(mode);
        self.harness.commit(&mut packer, &mut writer);
    }

    fn row(&self, session: usize) -> Option<i64> {
        let found = block_on(self.harness.view().find(id(session).to_string())).unwrap();
        assert_eq!(found.len(), usize::from(self.expected.sessions.contains_key(&session)));
        found.first().map(|stored| stored.row)
    }

    fn run(mut self, ops: &[UserOp]) -> Outcome {
        for op in ops {
            match op {
                UserOp::Record(session, mode, agent) => {
                    self.turns += 1;
                    let turn = format!("turn{}", self.turns);
                    let mut script = busy_turn(&turn);
                    if let Some(agent) = agent {
                        let call = format!("{turn}-task");
                        let started = agent_started(&call, NAMES[*agent]);
                        let more = format!("{turn}-more");
                        script.extend([ask(&more, "amber"), called(&call, "Task"), started]);
                        script.push(over(Completed));
                    }
                    self.record(*session, *mode, script);
                }
                UserOp::Late(session) => {
                    let late = refined(
                        &format!("t-turn{}", self.turns),
                        unspool_model::event::ToolOutcome {
                            output: Some("birch ".repeat(120)),
                            ..Default::default()
                        },
                    );
                    if self.expected.sessions.contains_key(session) {
                        self.record(*session, IngestMode::Live, vec![late]);
                    }
                }
                UserOp::Rename(session, name) => {
                    if let Some(row) = self.row(*session) {
                        let owned = name.map(str::to_owned);
                        block_on(self.harness.store().rename(row, owned)).unwrap();
                        match name {
                            Some(name) => self.expected.names.insert(*session, name),
                            None => self.expected.names.remove(session),
                        };
                    }
                }
                UserOp::Tag(session, tag, add) => {
                    if let Some(row) = self.row(*session) {
                        let (name, none) = (vec![(*tag).to_owned()], Vec::new());
                        let tags = self.expected.tags.entry(*session).or_default();
                        if *add {
                            tags.insert(tag)
                        } else {
                            tags.remove(tag)
                        };
                        let (add, remove) = if *add { (name, none) } else { (none, name) };
                        block_on(self.harness.store().tag(row, add, remove)).unwrap();
                    }
                }
                UserOp::Delete(session) => {
                    if let Some(row) = self.row(*session) {
                        let family = self.expected.family(*session);
                        let gone = block_on(self.harness.store().delete(row)).unwrap();
                        same("how many are gone", &gone, &(family.len() as u64))?;
                        for gone in family {
                            self.expected.forget(gone, true);
                            self.expected.deleted.insert(gone);
                        }
                    }
                }
                UserOp::Undelete(session) => {
                    let existing = block_on(self.harness.store().undelete(id(*session))).unwrap();
                    same("undeleted", &existing, &self.expected.deleted.remove(session))?;
                }
                UserOp::Forget(session) => {
                    if let Some(row) = self.row(*session) {
                        block_on(self.harness.store().forget(row)).unwrap();
                        self.expected.forget(*session, false);
                    }
                }
                UserOp::Set(name, value) => {
                    let (key, owned) = ((*name).to_owned(), value.map(str::to_owned));
                    block_on(self.harness.store().set(key, owned)).unwrap();
                    match value {
                        Some(value) => self.expected.settings.insert(name, value),
                        None => self.expected.settings.remove(name),
                    };
                }
                UserOp::Maintenance(how) => block_on(self.harness.store().maintain(*how)).unwrap(),
                UserOp::Rebuild => {
                    block_on(self.harness.store().rebuild()).unwrap();
                }
                UserOp::Reopen => self.harness = self.harness.reopened(),
            }
            self.compare()?;
            // Run the slow checks only after operations that may affect them.
            let about_rows = match op {
                UserOp::Delete(_) | UserOp::Forget(_) | UserOp::Late(_) => true,
                UserOp::Maintenance(_) | UserOp::Rebuild => true,
                UserOp::Record(..)
                | UserOp::Rename(..)
                | UserOp::Tag(..)
                | UserOp::Undelete(_)
                | UserOp::Set(..)
                | UserOp::Reopen => false,
            };
            if about_rows {
                self.compare_rows()?;
            }
        }
        self.compare_rows()
    }

    fn compare_rows(&self) -> Outcome {
        let store = self.harness.store();
        let models: Vec<&Model> = self.expected.sessions.values().collect();
        compare_search(store, &models)?;
        same("leftovers", &self.harness.archive.leftovers(), &Vec::new())?;
        same("problems", &block_on(store.check()).unwrap().problems, &Vec::new())
    }

    fn compare(&self) -> Outcome {
        let store = self.harness.store();
        let listed = block_on(store.view(Viewer::Sole).sessions(SessionFilter::default())).unwrap();
        same("sessions", &listed.len(), &self.expected.sessions.len())?;
        for (session, model) in &self.expected.sessions {
            let stored = listed.iter().find(|stored| stored.summary.session.id == id(*session));
            let Some(stored) = stored else {
                return Err(TestCaseError::fail(format!("{} is not there", NAMES[*session])));
            };
            let turns = block_on(store.view(Viewer::Sole).whole_turns(stored.row, TurnWindow::All))
                .unwrap();
            same("turns", &turns, &model.rows())?;
            let name = self.expected.names.get(session).map(|name| (*name).to_owned());
            same("name", &stored.name, &name)?;
            let tags = self.expected.tags.get(session).into_iter().flatten();
            let tags: Vec<String> = tags.map(|tag| (*tag).to_owned()).collect();
            same("tags", &stored.summary.tags, &tags)?;
            let title = name.or_else(|| model.transcript().title());
            same("title", &stored.summary.title, &title)?;
        }
        for session in 0..NAMES.len() {
            let deleted = block_on(store.is_deleted(id(session))).unwrap();
            same("deleted", &deleted, &self.expected.deleted.contains(&session))?;
        }
        for name in ["x", "y"] {
            let value = block_on(store.setting(name.to_owned())).unwrap();
            same("setting", &value.as_deref(), &self.expected.settings.get(name).copied())?;
        }
        Ok(())
    }
}

pub fn whatever_people_do_is_what_is_there<H: TestArchive>() {
    // R-004-20 R-001-09 C-12
    check_property(48, ops(), |ops| {
        Run::<H> { harness: Harness::new(), expected: Expected::default(), turns: 0 }.run(ops)
    });
}
