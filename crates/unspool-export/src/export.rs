//! The one way out of the archive (law 12): loads a session a few turns at a time, redacts secrets,
//! and passes it to a projection. Files, REST exports and Markdown copies of all surfaces are
//! written here; the AI SDK stream shares its first pass. Never modifies the archive.

mod excerpt;

use std::cell::RefCell;
use std::io;

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use thiserror::Error;
use unspool_model::id::SessionId;
use unspool_model::json::Json;
use unspool_model::note::PlacedNote;
use unspool_model::part::Body;
use unspool_model::prompt::RecordedPrompts;
use unspool_model::session::{Turn, TurnState};
use unspool_model::summary::Summary;
use unspool_redact::{Redacted, RedactionReport, Redactor, Rules};
use unspool_store::blocking::block_on;
use unspool_store::piece_texts::recorded_prompts;
use unspool_store::store::{StoreError, StoredSession, TurnWindow, View};

use crate::archive_lines::{self, LinesError};
use crate::html::flow::FlowRun;
use crate::project::thoughtflow::Flow;
use crate::project::{
    Audience, Excerpt, Options, ProjectError, Projection, SessionLookup, SessionStream, TurnRange,
    WriteMethod, write_excerpt,
};

/// Number of turns loaded at once.
const TURNS_PER_LOAD: u32 = 16;

#[derive(Debug, Error)]
pub enum ExportError {
    #[error(transparent)]
    Lines(#[from] LinesError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this session has no {0}; `unspool show` lists its turns")]
    NoTurns(TurnRange),
}

impl ExportError {
    /// The error of the writer or of the file, if it is one.
    pub fn io_error(&self) -> Option<&io::Error> {
        match self {
            ExportError::Lines(LinesError::Io(error))
            | ExportError::Project(ProjectError::Io(error)) => Some(error),
            ExportError::Lines(LinesError::Store(_))
            | ExportError::Project(ProjectError::Read(_))
            | ExportError::Store(_)
            | ExportError::NoTurns(_) => None,
        }
    }
}

/// Writes a session in the projection's format, with the secrets that the rules find replaced, and
/// reports the replacements. The lossless format is never redacted, because it must be importable.
pub fn write<V: View>(
    view: &V,
    stored: &StoredSession,
    projection: &Projection,
    options: &Options,
    rules: Option<&Rules>,
    out: &mut dyn io::Write,
) -> Result<RedactionReport, ExportError> {
    let write = match projection.method {
        WriteMethod::Stored => {
            archive_lines::write(view, stored, options.notes, out)?;
            return Ok(RedactionReport::default());
        }
        WriteMethod::Projected(write) => write,
    };
    let (notes, audience) = (options.notes, options.audience);
    let library = ArchiveLibrary { notes, audience, ..ArchiveLibrary::new(view, redactor(rules)) };
    library.collect(stored)?;
    let stream = match options.turns {
        Some(range) => library.excerpt(stored, range)?,
        None => library.stream(stored)?,
    };
    write(stream, options, out)?;
    Ok(library.redactor.into_inner().report().clone())
}

/// Writes a part, a turn or a whole session as redacted Markdown: for copies and for files that
/// people pass on. Returns false if the session does not have it.
pub fn markdown<V: View>(
    view: &V,
    stored: &StoredSession,
    excerpt: &Excerpt,
    options: &Options,
    rules: &Rules,
    out: &mut dyn io::Write,
) -> Result<bool, ExportError> {
    let library = ArchiveLibrary::new(view, Redactor::new(rules));
    library.collect(stored)?;
    let stream = library.stream_from(stored, excerpt.first_turn())?;
    Ok(write_excerpt(stream, excerpt, options, out)?)
}

/// Without rules nothing is redacted: somebody has asked for that explicitly.
fn redactor(rules: Option<&Rules>) -> Redactor<'_> {
    rules.map_or_else(Redactor::off, Redactor::new)
}

/// The first pass over a session: collects the secrets of all its turns, because a later turn may
/// reveal that an earlier text is one.
pub async fn collect_secrets<V: View>(
    view: &V,
    stored: &StoredSession,
    redactor: &mut Redactor<'_>,
) -> Result<(), StoreError> {
    collect_secrets_from(view, stored, 0, redactor).await.map(drop)
}

/// The same from the turn with this number on. Returns the number of the last turn, which may grow.
pub async fn collect_secrets_from<V: View>(
    view: &V,
    stored: &StoredSession,
    from: u32,
    redactor: &mut Redactor<'_>,
) -> Result<u32, StoreError> {
    let mut last_read = from;
    let mut next = Some(from).filter(|_| !redactor.is_off());
    while let Some(number) = next {
        let window = TurnWindow::From { number, count: TURNS_PER_LOAD };
        let mut turns = view.turns(stored.row, window).await?;
        turns.iter_mut().for_each(|turn| redactor.collect_secrets(turn));
        let last = turns.last().map(|last| last.number);
        last_read = last.unwrap_or(last_read);
        next = last.and_then(|last| last.checked_add(1));
    }
    Ok(last_read)
}

/// A page of runs, and where the next page starts.
pub struct RunPage {
    pub runs: Vec<FlowRun>,
    /// A turn, and the number of its steps to skip.
    pub later: Option<(u32, usize)>,
}

/// The runs from a turn on, skipping that turn's first steps, with at most `most` steps in all. The
/// redactor has collected the session's secrets, or is off: for the local web page.
pub fn runs<V: View>(
    view: &V,
    stored: &StoredSession,
    from: u32,
    skip: usize,
    most: usize,
    redactor: Redactor<'_>,
) -> Result<RunPage, ExportError> {
    let library = ArchiveLibrary::new(view, redactor);
    let mut flow = Flow::new(library.stream_from(stored, from)?)?.from_parts();
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
struct ArchiveLibrary<'a, V> {
    view: &'a V,
    /// Shared by all sessions of an export, so that a secret gets the same placeholder everywhere.
    redactor: RefCell<Redactor<'a>>,
    /// The sessions whose secrets are collected.
    collected: RefCell<FxHashSet<SessionId>>,
    /// Include the user's notes.
    notes: bool,
    audience: Audience,
}

impl<'a, V: View> ArchiveLibrary<'a, V> {
    fn new(view: &'a V, redactor: Redactor<'a>) -> ArchiveLibrary<'a, V> {
        let (redactor, collected) = (RefCell::new(redactor), RefCell::default());
        let (notes, audience) = (false, Audience::Owner);
        ArchiveLibrary { view, redactor, collected, notes, audience }
    }

    fn collect(&self, stored: &StoredSession) -> Result<(), ProjectError> {
        if self.collected.borrow_mut().insert(stored.summary.session.id) {
            let mut redactor = self.redactor.borrow_mut();
            block_on(collect_secrets(self.view, stored, &mut redactor)).map_err(unread)?;
            for placed in self.notes(stored)? {
                redactor.collect_note(&placed.note.text);
            }
        }
        Ok(())
    }

    fn notes(&self, stored: &StoredSession) -> Result<Vec<PlacedNote>, ProjectError> {
        match self.notes {
            true => block_on(self.view.notes(stored.summary.session.id)).map_err(unread),
            false => Ok(Vec::new()),
        }
    }

    fn stream(&self, stored: &StoredSession) -> Result<SessionStream<'_>, ProjectError> {
        self.stream_from(stored, 0)
    }

    /// Only some turns. Its head says nothing of the others: its title is what the user said first
    /// in these turns, and its figures are theirs.
    fn excerpt(
        &self,
        stored: &StoredSession,
        range: TurnRange,
    ) -> Result<SessionStream<'_>, ExportError> {
        let summary = excerpt::summary(stored, range, self.turns_from(stored, range.first))?;
        let summary = summary.ok_or(ExportError::NoTurns(range))?;
        let turns = self.turns_from(stored, range.first);
        let turns = turns.take_while(move |turn| match turn {
            Ok(turn) => turn.number <= range.last,
            Err(_) => true,
        });
        let mut notes = self.notes(stored)?;
        notes.retain(|placed| placed.turn.is_some_and(|turn| range.contains(turn)));
        let mut redactor = self.redactor.borrow_mut();
        let (head, notes) = (redactor.release_summary(summary), redactor.release_notes(notes));
        drop(redactor);
        Ok(SessionStream::new(head, turns, self).with_notes(notes))
    }

    /// Starts at the turn with this number.
    fn stream_from(
        &self,
        stored: &StoredSession,
        from: u32,
    ) -> Result<SessionStream<'_>, ProjectError> {
        let turns = self.turns_from(stored, from);
        let head = self.redactor.borrow_mut().release_summary(stored.summary.clone());
        let notes = self.redactor.borrow_mut().release_notes(self.notes(stored)?);
        Ok(SessionStream::new(head, turns, self).with_notes(notes))
    }

    /// The redacted turns from the one with this number on.
    fn turns_from<'b>(
        &'b self,
        stored: &StoredSession,
        from: u32,
    ) -> impl Iterator<Item = Result<Redacted<Turn>, ProjectError>> + use<'b, 'a, V> {
        let (row, summary) = (stored.row, stored.summary.clone());
        let turns = Turns { view: self.view, row, summary, next: from, loaded: Vec::new() };
        turns.map(|turn| {
            let turn = match self.audience {
                Audience::Owner => turn?,
                Audience::Guest => without_growing_parts(turn?),
            };
            Ok(self.redactor.borrow_mut().release_turn(turn))
        })
    }
}

impl<V: View> SessionLookup for ArchiveLibrary<'_, V> {
    fn open(&self, session: SessionId) -> Result<Option<SessionStream<'_>>, ProjectError> {
        let Some(stored) = block_on(self.view.session(session)).map_err(unread)? else {
            return Ok(None);
        };
        let parent = stored.summary.session.parent.as_ref().map(|parent| parent.session);
        let is_ours = parent.is_some_and(|parent| self.collected.borrow().contains(&parent));
        let is_ours = is_ours && stored.sub_agent;
        // A log can name any session as a sub-agent.
        if self.audience == Audience::Guest && !is_ours {
            return Ok(None);
        }
        self.collect(&stored)?;
        Ok(Some(self.stream(&stored)?))
    }

    fn snapshot(
        &self,
        session: SessionId,
        sha256: &str,
    ) -> Result<Option<Redacted<Json>>, ProjectError> {
        let Some(stored) = block_on(self.view.session(session)).map_err(unread)? else {
            return Ok(None);
        };
        let digests = vec![sha256.to_owned()];
        let found = block_on(self.view.snapshots(stored.row, digests)).map_err(unread)?;
        let snapshot = found.first();
        let content = snapshot.and_then(|snapshot| Json::parse(&snapshot.content));
        Ok(content.map(|content| self.redactor.borrow_mut().release_json(&content)))
    }

    fn prompts(
        &self,
        session: SessionId,
    ) -> Result<Option<Redacted<RecordedPrompts>>, ProjectError> {
        let Some(stored) = block_on(self.view.session(session)).map_err(unread)? else {
            return Ok(None);
        };
        let found = block_on(recorded_prompts(self.view, &stored)).map_err(unread)?;
        Ok(found.map(|prompts| self.redactor.borrow_mut().release_prompts(prompts)))
    }
}

fn unread(error: StoreError) -> ProjectError {
    ProjectError::Read(Box::new(error))
}

/// A running turn without what is still being written.
fn without_growing_parts(mut turn: Turn) -> Turn {
    if turn.state != TurnState::Running {
        return turn;
    }
    turn.parts.retain(|part| part.body.streamed_text().is_none() || !part.body.is_open());
    for part in &mut turn.parts {
        if let Body::Tool(tool) = &mut part.body
            && !tool.state.is_terminal()
        {
            (tool.output, tool.result) = (None, None);
            tool.input_text.clear();
        }
    }
    turn
}

/// The turns of a session, loaded on demand.
struct Turns<'a, V> {
    view: &'a V,
    row: i64,
    summary: Summary,
    next: u32,
    /// Loaded turns not yet yielded, in reverse order.
    loaded: Vec<Turn>,
}

impl<V: View> Iterator for Turns<'_, V> {
    type Item = Result<Turn, ProjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.loaded.is_empty() {
            let window = TurnWindow::From { number: self.next, count: TURNS_PER_LOAD };
            match block_on(self.view.turns(self.row, window)) {
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

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
