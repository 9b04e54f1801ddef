//! The test harness: records scripts as sessions and queries the archive for the result.

use std::cell::Cell;
use std::collections::HashMap;

use unspool_ingest::recorder::Recorder;
use unspool_ingest::recorder::batch::{IngestMode, Packer};
use unspool_ingest::recorder::session_writer::SessionWriter;
use unspool_model::event::{Event, EventKind};
use unspool_model::id::{PartId, SessionId};
use unspool_model::part::Body;
use unspool_model::session::Turn;
use unspool_store::blocking::block_on;
use unspool_store::rows::{Batch, RowId};
use unspool_store::search::{Hit, SearchRequest, SearchResults};
use unspool_store::store::{
    CheckReport, SessionFilter, Store, StoredSession, TurnWindow, View, Viewer,
};

use crate::script::{Line, prompt_name, started};
use crate::test_archive::TestArchive;

pub const AGENT: &str = "claude-code";

pub struct Harness<H: TestArchive> {
    pub archive: H,
    pub recorder: Recorder<H::Store>,
    next: Cell<u64>,
}

impl<H: TestArchive> Harness<H> {
    pub fn new() -> Harness<H> {
        Harness::at(H::new())
    }

    /// With an existing archive.
    pub fn at(archive: H) -> Harness<H> {
        let recorder = Recorder::new(archive.open()).unwrap();
        Harness::with(archive, recorder)
    }

    pub fn with(archive: H, recorder: Recorder<H::Store>) -> Harness<H> {
        Harness { archive, recorder, next: Cell::new(0) }
    }

    /// Simulates a restart of the process.
    pub fn reopened(self) -> Harness<H> {
        let Harness { archive, recorder, next } = self;
        drop(recorder);
        let recorder = Recorder::new(archive.open()).unwrap();
        Harness { archive, recorder, next }
    }

    pub fn store(&self) -> &H::Store {
        self.recorder.store()
    }

    pub fn view(&self) -> <H::Store as Store>::View {
        self.store().view(Viewer::Sole)
    }

    /// The next event. Each has its own position in its source.
    pub fn event(&self, line: Line) -> Event {
        let nth = self.next.replace(self.next.get() + 1);
        line.event(nth)
    }

    pub fn packer(&self, mode: IngestMode) -> Packer {
        self.recorder.packer(mode).unwrap()
    }

    pub fn open(&self, agent: &str, session: &str) -> SessionWriter {
        self.recorder.open(agent, session).unwrap().unwrap()
    }

    /// Applies a script to an open session.
    pub fn take(&self, writer: &mut SessionWriter, script: impl IntoIterator<Item = Line>) {
        for line in script {
            self.recorder.take(writer, self.event(line)).unwrap();
        }
    }

    pub fn commit(&self, packer: &mut Packer, writer: &mut SessionWriter) {
        packer.add(writer).unwrap();
        self.recorder.commit(packer, [writer]).unwrap();
    }

    /// The batch that a session would be written as.
    pub fn batch(&self, session: &str, script: impl IntoIterator<Item = Line>) -> Batch {
        let mut packer = self.packer(IngestMode::Bulk);
        let mut writer = self.open(AGENT, session);
        self.take(&mut writer, script);
        packer.add(&mut writer).unwrap();
        packer.finish().unwrap()
    }

    /// Records a script like an import, in one batch.
    pub fn record(&self, session: &str, script: impl IntoIterator<Item = Line>) -> StoredSession {
        self.record_as(AGENT, session, IngestMode::Bulk, script)
    }

    /// Records a script live: a commit after every line.
    pub fn live(&self, session: &str, script: impl IntoIterator<Item = Line>) -> StoredSession {
        let mut packer = self.packer(IngestMode::Live);
        let mut writer = self.open(AGENT, session);
        for line in script {
            self.take(&mut writer, [line]);
            self.commit(&mut packer, &mut writer);
        }
        self.session(session)
    }

    pub fn record_as(
        &self,
        agent: &str,
        session: &str,
        mode: IngestMode,
        script: impl IntoIterator<Item = Line>,
    ) -> StoredSession {
        let mut packer = self.packer(mode);
        let mut writer = self.open(agent, session);
        self.take(&mut writer, script);
        self.commit(&mut packer, &mut writer);
        self.stored(SessionId::of(agent, session))
    }

    pub fn stored(&self, id: SessionId) -> StoredSession {
        block_on(self.view().session(id)).unwrap().unwrap()
    }

    /// A session of the default agent.
    pub fn session(&self, session: &str) -> StoredSession {
        self.stored(SessionId::of(AGENT, session))
    }

    pub fn sessions(&self, filter: SessionFilter) -> Vec<String> {
        let found = block_on(self.view().sessions(filter)).unwrap();
        found.into_iter().map(|stored| stored.summary.session.agent_session_id).collect()
    }

    pub fn turns(&self, session: RowId) -> Vec<Turn> {
        block_on(self.view().turns(session, TurnWindow::All)).unwrap()
    }

    pub fn check(&self) -> CheckReport {
        block_on(self.store().check()).unwrap()
    }

    pub fn is_clean(&self) {
        let report = self.check();
        assert_eq!((report.count, report.problems.as_slice()), (0, [].as_slice()));
    }

    pub fn search(&self, request: SearchRequest) -> SearchResults {
        block_on(self.view().search(request)).unwrap()
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
    pub fn parts(&self, session: RowId) -> HashMap<PartId, Body> {
        let turns = block_on(self.view().whole_turns(session, TurnWindow::All)).unwrap();
        turns.into_iter().flat_map(|turn| turn.parts).map(|part| (part.id, part.body)).collect()
    }
}

/// A turn start with this prompt.
pub fn ask(id: &str, text: &str) -> Line {
    started(vec![prompt_name(id)], vec![crate::script::words(text)])
}

pub fn in_project(project: &str) -> Line {
    Line::from(EventKind::SessionUpdated {
        project: Some(project.to_owned()),
        branch: None,
        version: None,
        cost: None,
    })
}
