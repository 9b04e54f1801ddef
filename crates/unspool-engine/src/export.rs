//! Exports stored sessions: loads a few turns at a time, redacts secrets, and passes them to a
//! projection. Never modifies the archive.

use std::cell::RefCell;
use std::io;

use jiff::Timestamp;
use thiserror::Error;
use unspool_core::id::SessionId;
use unspool_core::json::Json;
use unspool_core::redact::{RedactionReport, Redactor, Rules};
use unspool_core::session::Turn;
use unspool_core::summary::Summary;
use unspool_render::flow::FlowRun;
use unspool_render::project::thoughtflow::Flow;
use unspool_render::project::{
    Options, ProjectError, Projection, SessionLookup, SessionStream, WriteMethod,
};
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoreError, StoredSession, TurnWindow};

use crate::exchange::{self, ExchangeError};

/// Number of turns loaded at once.
const TURNS_PER_LOAD: u32 = 16;

#[derive(Debug, Error)]
pub enum ExportError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error(transparent)]
    Project(#[from] ProjectError),
}

/// Writes a session in the projection's format, with the secrets that the rules find replaced, and
/// reports the replacements. The lossless format is never redacted, because it must be importable.
pub fn write<S: Store>(
    store: &S,
    stored: &StoredSession,
    projection: &Projection,
    options: &Options,
    rules: Option<&Rules>,
    out: &mut dyn io::Write,
) -> Result<RedactionReport, ExportError> {
    let tell = match projection.method {
        WriteMethod::Stored => {
            exchange::export(store, stored, out)?;
            return Ok(RedactionReport::default());
        }
        WriteMethod::Projected(tell) => tell,
    };
    let library =
        ArchiveLibrary { store, redactor: rules.map(|rules| RefCell::new(Redactor::new(rules))) };
    library.collect_secrets(stored)?;
    tell(library.tell(stored), options, out)?;
    let report = library.redactor.map(|redactor| redactor.into_inner().report().clone());
    Ok(report.unwrap_or_default())
}

/// A page of runs, and where the next page starts.
pub struct RunPage {
    pub runs: Vec<FlowRun>,
    /// A turn, and the number of its steps to skip.
    pub later: Option<(u32, usize)>,
}

/// The runs from a turn on, skipping that turn's first steps, with at most `most` steps in all. Not
/// redacted: for the local web page.
pub fn runs<S: Store>(
    store: &S,
    stored: &StoredSession,
    from: u32,
    skip: usize,
    most: usize,
) -> Result<RunPage, ExportError> {
    let library = ArchiveLibrary { store, redactor: None };
    let mut flow = Flow::new(library.tell_from(stored, from));
    let (mut runs, mut steps) = (Vec::new(), 0);
    while let Some(mut conversation) = flow.next_run()? {
        let number = flow.number();
        let before = if number == from { skip.min(conversation.steps.len()) } else { 0 };
        conversation.steps.drain(..before);
        let room = most - steps;
        if conversation.steps.len() > room {
            // Split a run only if it does not fit on a page of its own.
            if !runs.is_empty() {
                return Ok(RunPage { runs, later: Some((number, before)) });
            }
            conversation.steps.truncate(room);
            runs.push(FlowRun { number, conversation, before });
            return Ok(RunPage { runs, later: Some((number, before + room)) });
        }
        steps += conversation.steps.len();
        runs.push(FlowRun { number, conversation, before });
    }
    Ok(RunPage { runs, later: None })
}

/// Gives projections access to the archive's sessions.
struct ArchiveLibrary<'a, S> {
    store: &'a S,
    /// Shared by all sessions of an export, so that a secret gets the same placeholder everywhere.
    redactor: Option<RefCell<Redactor<'a>>>,
}

impl<S: Store> ArchiveLibrary<'_, S> {
    fn tell(&self, stored: &StoredSession) -> SessionStream<'_> {
        self.tell_from(stored, 0)
    }

    /// Starts at the turn with this number.
    fn tell_from(&self, stored: &StoredSession, from: u32) -> SessionStream<'_> {
        let turns = Turns { next: from, ..self.turns(stored) };
        let turns = turns.map(|turn| {
            let mut turn = turn?;
            if let Some(redactor) = &self.redactor {
                redactor.borrow_mut().turn(&mut turn);
            }
            Ok(turn)
        });
        SessionStream::new(self.head(&stored.summary), turns, self)
    }

    fn turns(&self, stored: &StoredSession) -> Turns<'_, S> {
        let (row, summary) = (stored.row, stored.summary.clone());
        Turns { store: self.store, row, summary, next: 0, loaded: Vec::new() }
    }

    fn head(&self, summary: &Summary) -> Summary {
        let mut head = summary.clone();
        if let Some(redactor) = &self.redactor {
            let mut redactor = redactor.borrow_mut();
            redactor.session(&mut head.session);
            head.title = head.title.map(|title| redactor.text(&title).into_owned());
        }
        head
    }

    /// First pass: collects secrets from all turns, because a later turn may reveal an earlier one.
    fn collect_secrets(&self, stored: &StoredSession) -> Result<(), ProjectError> {
        let Some(redactor) = &self.redactor else { return Ok(()) };
        for turn in self.turns(stored) {
            redactor.borrow_mut().collect_secrets(&mut turn?);
        }
        Ok(())
    }
}

impl<S: Store> SessionLookup for ArchiveLibrary<'_, S> {
    fn open(&self, session: SessionId) -> Result<Option<SessionStream<'_>>, ProjectError> {
        let found = block_on(self.store.find(session.to_string())).map_err(unread)?;
        let stored = found.iter().find(|stored| stored.summary.session.id == session);
        Ok(stored.map(|stored| self.tell(stored)))
    }

    fn snapshot(&self, session: SessionId, sha256: &str) -> Result<Option<Json>, ProjectError> {
        let found = block_on(self.store.find(session.to_string())).map_err(unread)?;
        let Some(stored) = found.iter().find(|stored| stored.summary.session.id == session) else {
            return Ok(None);
        };
        let session_export = block_on(self.store.session_export(stored.row)).map_err(unread)?;
        let snapshot = session_export.snapshots.iter().find(|snapshot| snapshot.sha256 == sha256);
        let content = snapshot.and_then(|snapshot| Json::parse(&snapshot.content));
        Ok(match &self.redactor {
            Some(redactor) => content.map(|content| redactor.borrow_mut().json(&content)),
            None => content,
        })
    }
}

fn unread(error: StoreError) -> ProjectError {
    ProjectError::Read(Box::new(error))
}

/// The turns of a session, loaded on demand.
struct Turns<'a, S> {
    store: &'a S,
    row: i64,
    summary: Summary,
    next: u32,
    /// Loaded turns not yet yielded, in reverse order.
    loaded: Vec<Turn>,
}

impl<S: Store> Iterator for Turns<'_, S> {
    type Item = Result<Turn, ProjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.loaded.is_empty() {
            let window = TurnWindow::From { number: self.next, count: TURNS_PER_LOAD };
            match block_on(self.store.turns(self.row, window)) {
                Ok(mut turns) => {
                    self.summary.settle(&mut turns, Timestamp::now());
                    self.loaded = turns;
                }
                Err(error) => return Some(Err(unread(error))),
            }
            self.loaded.reverse();
        }
        let turn = self.loaded.pop()?;
        self.next = turn.number.saturating_add(1);
        Some(Ok(turn))
    }
}
