//! The numbers of new rows.

use std::sync::atomic::{AtomicI64, Ordering};

use unspool_store::rows::RowId;
use unspool_store::store::NextRows;

/// Allocates row numbers. The recorder is the only writer, so counters suffice.
pub struct RowIds {
    session: AtomicI64,
    turn: AtomicI64,
    part: AtomicI64,
    chunk: AtomicI64,
    file: AtomicI64,
}

fn next(count: &AtomicI64) -> RowId {
    count.fetch_add(1, Ordering::Relaxed)
}

impl RowIds {
    pub fn new(rows: NextRows) -> RowIds {
        RowIds {
            session: rows.session.into(),
            turn: rows.turn.into(),
            part: rows.part.into(),
            chunk: rows.chunk.into(),
            file: rows.file.into(),
        }
    }

    pub(super) fn session(&self) -> RowId {
        next(&self.session)
    }

    pub(super) fn turn(&self) -> RowId {
        next(&self.turn)
    }

    pub fn part(&self) -> RowId {
        next(&self.part)
    }

    pub fn chunk(&self) -> RowId {
        next(&self.chunk)
    }

    pub fn file(&self) -> RowId {
        next(&self.file)
    }
}
