//! The numbers of new rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use unspool_store::rows::RowId;
use unspool_store::store::NextRows;

/// Allocates row numbers. The recorder is the only writer, so counters suffice.
pub struct RowIds {
    counters: Arc<Counters>,
    /// The numbers for parts, until they are used up.
    part_block: Option<PartBlock>,
}

struct Counters {
    session: AtomicI64,
    turn: AtomicI64,
    part: AtomicI64,
    chunk: AtomicI64,
    file: AtomicI64,
}

struct PartBlock {
    next: AtomicI64,
    end: RowId,
}

fn next(count: &AtomicI64) -> RowId {
    count.fetch_add(1, Ordering::Relaxed)
}

impl RowIds {
    pub fn new(rows: NextRows) -> RowIds {
        let counters = Counters {
            session: rows.session.into(),
            turn: rows.turn.into(),
            part: rows.part.into(),
            chunk: rows.chunk.into(),
            file: rows.file.into(),
        };
        RowIds { counters: Arc::new(counters), part_block: None }
    }

    /// Sets numbers for so many parts aside and returns the first.
    pub fn reserve_parts(&self, count: i64) -> RowId {
        self.counters.part.fetch_add(count, Ordering::Relaxed)
    }

    /// The same counters, but parts get numbers of a block that was set aside. Searches take the
    /// order of these numbers for the order in time, and files are not read in that order.
    pub fn with_part_block(&self, block: Range<RowId>) -> RowIds {
        let part_block = Some(PartBlock { next: block.start.into(), end: block.end });
        RowIds { counters: self.counters.clone(), part_block }
    }

    pub(super) fn session(&self) -> RowId {
        next(&self.counters.session)
    }

    pub(super) fn turn(&self) -> RowId {
        next(&self.counters.turn)
    }

    pub fn part(&self) -> RowId {
        let in_block = self.part_block.as_ref().and_then(|block| {
            let row = next(&block.next);
            (row < block.end).then_some(row)
        });
        in_block.unwrap_or_else(|| next(&self.counters.part))
    }

    pub fn chunk(&self) -> RowId {
        next(&self.counters.chunk)
    }

    pub fn file(&self) -> RowId {
        next(&self.counters.file)
    }
}
