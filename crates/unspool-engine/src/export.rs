//! Sessions of the archive in other forms: loaded a few turns at a time, without their secrets, and
//! handed to whoever writes the form. Nothing is changed in the archive.

use std::cell::RefCell;
use std::io;

use jiff::Timestamp;
use thiserror::Error;
use unspool_core::id::SessionId;
use unspool_core::live::settle;
use unspool_core::redact::{Redactor, Report, Rules};
use unspool_core::session::Turn;
use unspool_core::summary::Summary;
use unspool_render::project::{Library, Options, ProjectError, Projection, Story, Way};
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, StoreError, StoredSession, Window};

use crate::exchange::{self, ExchangeError};

/// So many turns are loaded at once.
const TURNS: u32 = 16;

#[derive(Debug, Error)]
pub enum ExportError {
    #[error(transparent)]
    Stored(#[from] ExchangeError),
    #[error(transparent)]
    Told(#[from] ProjectError),
}

/// Writes a session in some form, without the secrets that the rules find, and says what was
/// replaced. What is written as it is stored is never redacted: it could not be stored again.
pub fn write<S: Store>(
    store: &S,
    stored: &StoredSession,
    projection: &Projection,
    options: &Options,
    rules: Option<&Rules>,
    out: &mut dyn io::Write,
) -> Result<Report, ExportError> {
    let tell = match projection.way {
        Way::Stored => {
            exchange::export(store, stored, out)?;
            return Ok(Report::default());
        }
        Way::Told(tell) => tell,
    };
    let shelf = Shelf { store, redactor: rules.map(|rules| RefCell::new(Redactor::new(rules))) };
    shelf.gather(stored)?;
    tell(shelf.tell(stored), options, out)?;
    let report = shelf.redactor.map(|redactor| redactor.into_inner().report().clone());
    Ok(report.unwrap_or_default())
}

/// The sessions of an archive, to be told.
struct Shelf<'a, S> {
    store: &'a S,
    /// One for everything that is told: the same secret is the same everywhere.
    redactor: Option<RefCell<Redactor<'a>>>,
}

impl<S: Store> Shelf<'_, S> {
    fn tell(&self, stored: &StoredSession) -> Story<'_> {
        let turns = self.turns(stored).map(|turn| {
            let mut turn = turn?;
            if let Some(redactor) = &self.redactor {
                redactor.borrow_mut().turn(&mut turn);
            }
            Ok(turn)
        });
        Story::new(self.head(&stored.summary), turns, self)
    }

    fn turns(&self, stored: &StoredSession) -> Turns<'_, S> {
        let (row, last) = (stored.row, stored.summary.ended);
        Turns { store: self.store, row, last, next: 0, loaded: Vec::new() }
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

    /// What a later turn gives away is known before the first one is told.
    fn gather(&self, stored: &StoredSession) -> Result<(), ProjectError> {
        let Some(redactor) = &self.redactor else { return Ok(()) };
        for turn in self.turns(stored) {
            redactor.borrow_mut().gather(&mut turn?);
        }
        Ok(())
    }
}

impl<S: Store> Library for Shelf<'_, S> {
    fn open(&self, session: SessionId) -> Result<Option<Story<'_>>, ProjectError> {
        let found = wait(self.store.find(session.to_string())).map_err(unread)?;
        let stored = found.iter().find(|stored| stored.summary.session.id == session);
        Ok(stored.map(|stored| self.tell(stored)))
    }
}

fn unread(error: StoreError) -> ProjectError {
    ProjectError::Read(Box::new(error))
}

/// The turns of a session, loaded as they are needed.
struct Turns<'a, S> {
    store: &'a S,
    row: i64,
    /// When something happened in the session for the last time.
    last: Option<Timestamp>,
    next: u32,
    /// Those that are loaded and were not taken, the next one last.
    loaded: Vec<Turn>,
}

impl<S: Store> Iterator for Turns<'_, S> {
    type Item = Result<Turn, ProjectError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.loaded.is_empty() {
            let window = Window::From { number: self.next, count: TURNS };
            match wait(self.store.turns(self.row, window)) {
                Ok(mut turns) => {
                    settle(&mut turns, self.last, Timestamp::now());
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
