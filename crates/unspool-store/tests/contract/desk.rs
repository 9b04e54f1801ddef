//! The test harness: records scripts as sessions and queries the archive for the result.

use std::cell::Cell;
use std::collections::HashMap;

use unspool_core::event::{Event, What};
use unspool_core::id::{PartId, SessionId};
use unspool_core::part::Body;
use unspool_core::session::Turn;
use unspool_store::batch::{Pace, Packer};
use unspool_store::blocking::wait;
use unspool_store::contract::{Checked, SessionFilter, Store, StoredSession, Window};
use unspool_store::fold::SessionFold;
use unspool_store::recorder::Recorder;
use unspool_store::rows::{Batch, Row};
use unspool_store::search::{Findings, Hit, SearchRequest};

use crate::home::Home;
use crate::script::{Line, prompt_name, started};

pub const AGENT: &str = "claude-code";

pub struct Desk<H: Home> {
    pub home: H,
    pub recorder: Recorder<H::Store>,
    next: Cell<u64>,
}

impl<H: Home> Desk<H> {
    pub fn new() -> Desk<H> {
        Desk::at(H::new())
    }

    /// With an existing archive.
    pub fn at(home: H) -> Desk<H> {
        let recorder = Recorder::new(home.open()).unwrap();
        Desk { home, recorder, next: Cell::new(0) }
    }

    /// Simulates a restart of the process.
    pub fn reopened(self) -> Desk<H> {
        let Desk { home, recorder, next } = self;
        drop(recorder);
        let recorder = Recorder::new(home.open()).unwrap();
        Desk { home, recorder, next }
    }

    pub fn store(&self) -> &H::Store {
        self.recorder.store()
    }

    /// The next event. Each has its own position in its source.
    pub fn event(&self, line: Line) -> Event {
        let nth = self.next.replace(self.next.get() + 1);
        line.event(nth)
    }

    pub fn packer(&self, pace: Pace) -> Packer {
        self.recorder.packer(pace).unwrap()
    }

    pub fn open(&self, agent: &str, session: &str) -> SessionFold {
        self.recorder.open(agent, session).unwrap().unwrap()
    }

    /// Applies a script to an open session.
    pub fn take(&self, fold: &mut SessionFold, script: impl IntoIterator<Item = Line>) {
        for line in script {
            self.recorder.take(fold, self.event(line)).unwrap();
        }
    }

    pub fn commit(&self, packer: &mut Packer, fold: &mut SessionFold) {
        packer.add(fold).unwrap();
        self.recorder.commit(packer, [fold]).unwrap();
    }

    /// The batch that a session would be written as.
    pub fn batch(&self, session: &str, script: impl IntoIterator<Item = Line>) -> Batch {
        let mut packer = self.packer(Pace::Bulk);
        let mut fold = self.open(AGENT, session);
        self.take(&mut fold, script);
        packer.add(&mut fold).unwrap();
        packer.finish().unwrap()
    }

    /// Records a script like an import, in one batch.
    pub fn record(&self, session: &str, script: impl IntoIterator<Item = Line>) -> StoredSession {
        self.record_as(AGENT, session, Pace::Bulk, script)
    }

    /// Records a script live: a commit after every line.
    pub fn live(&self, session: &str, script: impl IntoIterator<Item = Line>) -> StoredSession {
        let mut packer = self.packer(Pace::Live);
        let mut fold = self.open(AGENT, session);
        for line in script {
            self.take(&mut fold, [line]);
            self.commit(&mut packer, &mut fold);
        }
        self.session(session)
    }

    pub fn record_as(
        &self,
        agent: &str,
        session: &str,
        pace: Pace,
        script: impl IntoIterator<Item = Line>,
    ) -> StoredSession {
        let mut packer = self.packer(pace);
        let mut fold = self.open(agent, session);
        self.take(&mut fold, script);
        self.commit(&mut packer, &mut fold);
        self.stored(SessionId::of(agent, session))
    }

    pub fn stored(&self, id: SessionId) -> StoredSession {
        let found = wait(self.store().find(id.to_string())).unwrap();
        assert_eq!(found.len(), 1);
        found.into_iter().next().unwrap()
    }

    /// A session of the default agent.
    pub fn session(&self, session: &str) -> StoredSession {
        self.stored(SessionId::of(AGENT, session))
    }

    pub fn sessions(&self, filter: SessionFilter) -> Vec<String> {
        let found = wait(self.store().sessions(filter)).unwrap();
        found.into_iter().map(|stored| stored.summary.session.agent_session_id).collect()
    }

    pub fn turns(&self, session: Row) -> Vec<Turn> {
        wait(self.store().turns(session, Window::All)).unwrap()
    }

    pub fn check(&self) -> Checked {
        wait(self.store().check()).unwrap()
    }

    pub fn is_clean(&self) {
        let checked = self.check();
        assert_eq!((checked.count, checked.problems.as_slice()), (0, [].as_slice()));
    }

    pub fn search(&self, request: SearchRequest) -> Findings {
        wait(self.store().search(request)).unwrap()
    }

    /// The hits of a query as short strings, in result order.
    pub fn find(&self, query: &str) -> Vec<String> {
        self.find_with(SearchRequest::new(query))
    }

    pub fn find_with(&self, request: SearchRequest) -> Vec<String> {
        self.search(request).hits.iter().map(|hit| self.name(hit)).collect()
    }

    /// The same, sorted.
    pub fn found(&self, query: &str) -> Vec<String> {
        let mut found = self.find(query);
        found.sort();
        found
    }

    /// The agent session id, turn and kind of a hit.
    fn name(&self, hit: &Hit) -> String {
        let session = self.stored(hit.session).summary.session.agent_session_id;
        match hit.turn {
            Some(turn) => format!("{session}.{turn} {}", hit.kind),
            None => format!("{session} {}", hit.kind),
        }
    }

    /// Every part of a session by its id.
    pub fn parts(&self, session: Row) -> HashMap<PartId, Body> {
        let turns = wait(self.store().whole_turns(session, Window::All)).unwrap();
        turns.into_iter().flat_map(|turn| turn.parts).map(|part| (part.id, part.body)).collect()
    }
}

/// A turn start with this prompt.
pub fn ask(id: &str, text: &str) -> Line {
    started(vec![prompt_name(id)], vec![crate::script::words(text)])
}

pub fn told(project: &str) -> Line {
    Line::from(What::SessionTold {
        project: Some(project.to_owned()),
        branch: None,
        version: None,
        cost_usd: None,
    })
}
