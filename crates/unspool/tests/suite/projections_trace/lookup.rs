//! The sessions of a case, with lookup by id, for projections that follow sub-agents.

use std::path::Path;

use rustc_hash::FxHashMap;

use unspool_export::project::{
    Options, ProjectError, Projection, SessionLookup, SessionStream, WriteMethod,
};
use unspool_model::document::settle_as_file;
use unspool_model::id::SessionId;
use unspool_model::price::Prices;
use unspool_model::prompt::RecordedPrompts;
use unspool_model::session::{Transcript, Turn};
use unspool_model::summary::Completeness;
use unspool_redact::{Redacted, Redactor};
use unspool_sources::in_memory::SessionSet;

use crate::case::captures;

/// The main session first, and what the model calls of each were sent.
pub struct CaseLookup(pub Vec<Transcript>, FxHashMap<SessionId, RecordedPrompts>);

impl CaseLookup {
    /// Sessions without prompts.
    pub fn new(sessions: Vec<Transcript>) -> CaseLookup {
        CaseLookup(sessions, FxHashMap::default())
    }

    /// All sessions of a case, including the sub-agents in its subfolder.
    pub fn of_case(case: &Path) -> CaseLookup {
        let mut session_set = SessionSet::default();
        for capture in captures(case) {
            let mut reading = session_set.open(&capture.file);
            capture.lines.iter().for_each(|line| session_set.take(&mut reading, line.line()));
            session_set.close(reading, &mut |_| {});
        }
        let agents = case.join("subagents");
        if agents.is_dir() {
            let mut logs: Vec<_> =
                agents.read_dir().unwrap().map(|one| one.unwrap().path()).collect();
            logs.retain(|path| path.is_file());
            logs.sort();
            for log in logs {
                session_set.read_file(&log, &mut |_| {}).unwrap();
            }
        }
        let prompts = session_set
            .sessions
            .iter()
            .filter_map(|session| Some((session.transcript().session.id, session.prompts()?)));
        let prompts = prompts.collect();
        let mut sessions: Vec<Transcript> =
            session_set.sessions.iter().map(|session| session.transcript()).collect();
        sessions.iter_mut().for_each(settle_as_file);
        sessions.sort_by_key(|session| session.session.parent.is_some());
        CaseLookup(sessions, prompts)
    }

    pub fn main(&self) -> &Transcript {
        &self.0[0]
    }

    fn tell<'a>(&'a self, transcript: &'a Transcript) -> SessionStream<'a> {
        let head = transcript.summary(Completeness::Full, &[]);
        let released = |turn: &Turn| Ok(Redactor::off().release_turn(turn.clone()));
        let head = Redactor::off().release_summary(head);
        SessionStream::new(head, transcript.turns.iter().map(released), self)
    }
}

impl SessionLookup for CaseLookup {
    fn open(&self, session: SessionId) -> Result<Option<SessionStream<'_>>, ProjectError> {
        let found = self.0.iter().find(|transcript| transcript.session.id == session);
        Ok(found.map(|transcript| self.tell(transcript)))
    }

    fn prompts(
        &self,
        session: SessionId,
    ) -> Result<Option<Redacted<RecordedPrompts>>, ProjectError> {
        let found = self.1.get(&session).cloned();
        Ok(found.map(|prompts| Redactor::off().release_prompts(prompts)))
    }
}

/// Projects a session into a format, without prices: they change more often than recordings.
pub fn project(form: &str, lookup: &CaseLookup, transcript: &Transcript) -> String {
    let WriteMethod::Projected(tell) = Projection::named(form).unwrap().method else {
        panic!("{form} is stored")
    };
    let mut out = Vec::new();
    let options = Options { prices: Prices::none(), ..Options::default() };
    tell(lookup.tell(transcript), &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
