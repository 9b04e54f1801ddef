//! Random sequences of user operations: record, name, tag, delete, undelete and forget sessions,
//! maintain and rebuild the archive. A few maps in memory give the expected state.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use unspool_core::event::EndReason::Completed;
use unspool_core::id::SessionId;
use unspool_core::part::Body;
use unspool_store::batch::Pace;
use unspool_store::blocking::wait;
use unspool_store::contract::{SessionFilter, Store, Tidy, Window};

use crate::desk::{AGENT, Desk, ask};
use crate::home::Home;
use crate::model::{Model, Outcome, same};
use crate::recording::{compare_search, hold};
use crate::script::*;
use crate::writing::busy_turn;

/// Sessions. Some become sub-agents of others during a run.
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

#[derive(Clone, Debug)]
enum Deed {
    /// Records a turn, which may start a sub-agent.
    Record(usize, Pace, Option<usize>),
    /// Records a late event of the last turn.
    Late(usize),
    Rename(usize, Option<&'static str>),
    Tag(usize, &'static str, bool),
    Delete(usize),
    Undelete(usize),
    Forget(usize),
    Set(&'static str, Option<&'static str>),
    Tidy(Tidy),
    Rebuild,
    Reopen,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let which = || 0..NAMES.len();
    let paces = select(vec![Pace::Bulk, Pace::Live]);
    let deed = prop_oneof![
        8 => (which(), paces, prop::option::weighted(0.2, which()))
            .prop_map(|(session, pace, agent)| Deed::Record(session, pace, agent)),
        2 => which().prop_map(Deed::Late),
        2 => (which(), select(vec![None, Some("mine"), Some("other")]))
            .prop_map(|(session, name)| Deed::Rename(session, name)),
        3 => (which(), select(vec!["a", "b"]), any::<bool>())
            .prop_map(|(session, tag, add)| Deed::Tag(session, tag, add)),
        2 => which().prop_map(Deed::Delete),
        2 => which().prop_map(Deed::Undelete),
        1 => which().prop_map(Deed::Forget),
        1 => (select(vec!["x", "y"]), select(vec![None, Some("1"), Some("2")]))
            .prop_map(|(name, value)| Deed::Set(name, value)),
        1 => select(vec![Tidy::WhenDue, Tidy::Thorough]).prop_map(Deed::Tidy),
        1 => Just(Deed::Rebuild),
        1 => Just(Deed::Reopen),
    ];
    prop::collection::vec(deed, 1..24)
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
                let of = |name: &str| NAMES.iter().position(|known| *known == name);
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

struct Run<H: Home> {
    desk: Desk<H>,
    expected: Expected,
    turns: u32,
}

impl<H: Home> Run<H> {
    fn record(&mut self, session: usize, pace: Pace, script: Vec<Line>) {
        let opened = self.desk.recorder.open(AGENT, NAMES[session]).unwrap();
        assert_eq!(opened.is_none(), self.expected.deleted.contains(&session));
        let Some(mut fold) = opened else { return };
        let model = self.expected.sessions.entry(session);
        let model = model.or_insert_with(|| Model::new(AGENT, NAMES[session]));
        for line in script {
            let event = self.desk.event(line);
            model.take(event.clone());
            self.desk.recorder.take(&mut fold, event).unwrap();
        }
        let mut packer = self.desk.packer(pace);
        self.desk.commit(&mut packer, &mut fold);
    }

    fn row(&self, session: usize) -> Option<i64> {
        let found = wait(self.desk.store().find(id(session).to_string())).unwrap();
        assert_eq!(found.len(), usize::from(self.expected.sessions.contains_key(&session)));
        found.first().map(|stored| stored.row)
    }

    fn run(mut self, deeds: &[Deed]) -> Outcome {
        for deed in deeds {
            match deed {
                Deed::Record(session, pace, agent) => {
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
                    self.record(*session, *pace, script);
                }
                Deed::Late(session) => {
                    let late = refined(
                        &format!("t-turn{}", self.turns),
                        unspool_core::event::Outcome {
                            output: Some("birch ".repeat(120)),
                            ..Default::default()
                        },
                    );
                    if self.expected.sessions.contains_key(session) {
                        self.record(*session, Pace::Live, vec![late]);
                    }
                }
                Deed::Rename(session, name) => {
                    if let Some(row) = self.row(*session) {
                        let owned = name.map(str::to_owned);
                        wait(self.desk.store().rename(row, owned)).unwrap();
                        match name {
                            Some(name) => self.expected.names.insert(*session, name),
                            None => self.expected.names.remove(session),
                        };
                    }
                }
                Deed::Tag(session, tag, add) => {
                    if let Some(row) = self.row(*session) {
                        let (name, none) = (vec![(*tag).to_owned()], Vec::new());
                        let tags = self.expected.tags.entry(*session).or_default();
                        if *add {
                            tags.insert(tag)
                        } else {
                            tags.remove(tag)
                        };
                        let (add, remove) = if *add { (name, none) } else { (none, name) };
                        wait(self.desk.store().tag(row, add, remove)).unwrap();
                    }
                }
                Deed::Delete(session) => {
                    if let Some(row) = self.row(*session) {
                        let family = self.expected.family(*session);
                        let gone = wait(self.desk.store().delete(row)).unwrap();
                        same("how many are gone", &gone, &(family.len() as u64))?;
                        for gone in family {
                            self.expected.forget(gone, true);
                            self.expected.deleted.insert(gone);
                        }
                    }
                }
                Deed::Undelete(session) => {
                    let known = wait(self.desk.store().undelete(id(*session))).unwrap();
                    same("undeleted", &known, &self.expected.deleted.remove(session))?;
                }
                Deed::Forget(session) => {
                    if let Some(row) = self.row(*session) {
                        wait(self.desk.store().forget(row)).unwrap();
                        self.expected.forget(*session, false);
                    }
                }
                Deed::Set(name, value) => {
                    let (key, owned) = ((*name).to_owned(), value.map(str::to_owned));
                    wait(self.desk.store().set(key, owned)).unwrap();
                    match value {
                        Some(value) => self.expected.settings.insert(name, value),
                        None => self.expected.settings.remove(name),
                    };
                }
                Deed::Tidy(how) => wait(self.desk.store().tidy(*how)).unwrap(),
                Deed::Rebuild => {
                    wait(self.desk.store().rebuild()).unwrap();
                }
                Deed::Reopen => self.desk = self.desk.reopened(),
            }
            self.compare()?;
            // Run the slow checks only after operations that may affect them.
            let about_rows = match deed {
                Deed::Delete(_) | Deed::Forget(_) | Deed::Late(_) => true,
                Deed::Tidy(_) | Deed::Rebuild => true,
                Deed::Record(..)
                | Deed::Rename(..)
                | Deed::Tag(..)
                | Deed::Undelete(_)
                | Deed::Set(..)
                | Deed::Reopen => false,
            };
            if about_rows {
                self.compare_rows()?;
            }
        }
        self.compare_rows()
    }

    fn compare_rows(&self) -> Outcome {
        let store = self.desk.store();
        let models: Vec<&Model> = self.expected.sessions.values().collect();
        compare_search(store, &models)?;
        same("leftovers", &self.desk.home.leftovers(), &Vec::new())?;
        same("problems", &wait(store.check()).unwrap().problems, &Vec::new())
    }

    fn compare(&self) -> Outcome {
        let store = self.desk.store();
        let listed = wait(store.sessions(SessionFilter::default())).unwrap();
        same("sessions", &listed.len(), &self.expected.sessions.len())?;
        for (session, model) in &self.expected.sessions {
            let stored = listed.iter().find(|stored| stored.summary.session.id == id(*session));
            let Some(stored) = stored else {
                return Err(TestCaseError::fail(format!("{} is not there", NAMES[*session])));
            };
            let turns = wait(store.whole_turns(stored.row, Window::All)).unwrap();
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
            let deleted = wait(store.is_deleted(id(session))).unwrap();
            same("deleted", &deleted, &self.expected.deleted.contains(&session))?;
        }
        for name in ["x", "y"] {
            let value = wait(store.setting(name.to_owned())).unwrap();
            same("setting", &value.as_deref(), &self.expected.settings.get(name).copied())?;
        }
        Ok(())
    }
}

pub fn whatever_people_do_is_what_is_there<H: Home>() {
    // R-004-20 R-001-09 C-12
    hold(48, deeds(), |deeds| {
        Run::<H> { desk: Desk::new(), expected: Expected::default(), turns: 0 }.run(deeds)
    });
}
