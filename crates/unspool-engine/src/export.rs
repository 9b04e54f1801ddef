//! Sessions of the archive in other forms: loaded a few turns at a time, and handed to whoever
//! writes the form.

use std::io;

use jiff::Timestamp;
use thiserror::Error;
use unspool_core::id::SessionId;
use unspool_core::live::settle;
use unspool_core::session::Turn;
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

/// Writes a session in some form.
pub fn write<S: Store>(
    store: &S,
    stored: &StoredSession,
    projection: &Projection,
    options: &Options,
    out: &mut dyn io::Write,
) -> Result<(), ExportError> {
    match projection.way {
        Way::Stored => exchange::export(store, stored, out)?,
        Way::Told(tell) => {
            let shelf = Shelf { store };
            tell(shelf.tell(stored), options, out)?;
        }
    }
    Ok(())
}

/// The sessions of an archive, to be told.
struct Shelf<'a, S> {
    store: &'a S,
}

impl<S: Store> Shelf<'_, S> {
    fn tell(&self, stored: &StoredSession) -> Story<'_> {
        let (row, last) = (stored.row, stored.summary.ended);
        let turns = Turns { store: self.store, row, last, next: 0, loaded: Vec::new() };
        Story::new(stored.summary.clone(), turns, self)
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
