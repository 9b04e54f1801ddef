//! The index of `unspool-index` in SQLite: writes and reads its blocks and n-gram bitmaps as rows.
//! Implements `BlockStore` for lookups.

use crate::sql;
use std::ops::{ControlFlow, Range};

use crate::sql::{Connection, OptionalExtension, Row as SqlRow, params};
use unspool_index::{
    BlockRef, BlockStore, NgramBitmap, Segment, SegmentBlock, SegmentCounts, SegmentHead,
    SegmentItem, WordsRef,
};

use crate::rows::RowId;
use crate::store::StoreError;

/// Stores a segment.
pub fn add_segment(connection: &Connection, segment: &Segment) -> sql::Result<()> {
    let mut writer = SegmentWriter::begin(connection)?;
    segment.blocks.iter().try_for_each(|block| writer.block(block))?;
    segment.bitmaps.iter().try_for_each(|bitmap| writer.bitmap(bitmap))?;
    let Segment { documents, words, tokens, .. } = *segment;
    writer.finish(SegmentCounts { documents, words, tokens })
}

/// Writes a new segment.
pub struct SegmentWriter<'c> {
    connection: &'c Connection,
    segment: RowId,
    blocks: i64,
    bitmaps: i64,
}

impl<'c> SegmentWriter<'c> {
    pub fn begin(connection: &'c Connection) -> sql::Result<SegmentWriter<'c>> {
        let segment = connection
            .prepare_cached(
                "INSERT INTO segment (documents, words, tokens) VALUES (0, 0, 0) RETURNING row",
            )?
            .query_row([], |row| row.get(0))?;
        Ok(SegmentWriter { connection, segment, blocks: 0, bitmaps: 0 })
    }

    pub fn put(&mut self, piece: &SegmentItem) -> sql::Result<()> {
        match piece {
            SegmentItem::SegmentBlock(block) => self.block(block),
            SegmentItem::NgramBitmap(bitmap) => self.bitmap(bitmap),
        }
    }

    fn block(&mut self, block: &SegmentBlock) -> sql::Result<()> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO word_block (segment, number, first, last, words, postings)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let SegmentBlock { first, last, words, postings } = block;
        insert.run(params![self.segment, self.blocks, first, last, words, postings])?;
        self.blocks += 1;
        Ok(())
    }

    fn bitmap(&mut self, bitmap: &NgramBitmap) -> sql::Result<()> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO word_runs (segment, sheet, slice, bits) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (number, slice) in bitmap.slices.iter().enumerate() {
            insert.run(params![self.segment, self.bitmaps, number as i64, slice])?;
        }
        self.bitmaps += 1;
        Ok(())
    }

    pub fn finish(self, counts: SegmentCounts) -> sql::Result<()> {
        let SegmentCounts { documents, words, tokens } = counts;
        self.connection
            .prepare_cached(
                "UPDATE segment SET documents = ?2, words = ?3, tokens = ?4 WHERE row = ?1",
            )?
            .run(params![self.segment, documents as i64, words as i64, tokens as i64])?;
        Ok(())
    }
}

/// Iterates over the blocks of a segment, one row at a time.
pub struct Blocks<'c> {
    connection: &'c Connection,
    segment: RowId,
    next: i64,
}

impl<'c> Blocks<'c> {
    pub fn new(connection: &'c Connection, segment: RowId) -> Blocks<'c> {
        Blocks { connection, segment, next: 0 }
    }

    fn read(&self) -> sql::Result<Option<SegmentBlock>> {
        let mut find = self.connection.prepare_cached(
            "SELECT first, last, words, postings FROM word_block
             WHERE segment = ?1 AND number = ?2",
        )?;
        find.query_row([self.segment, self.next], block).optional()
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<SegmentBlock, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.read();
        self.next += 1;
        found.map_err(StoreError::from).transpose()
    }
}

fn block(row: &SqlRow<'_>) -> sql::Result<SegmentBlock> {
    Ok(SegmentBlock {
        first: row.get(0)?,
        last: row.get(1)?,
        words: row.get(2)?,
        postings: row.get(3)?,
    })
}

/// The index, for lookups.
pub struct SqliteBlockStore<'c>(pub &'c Connection);

impl SqliteBlockStore<'_> {
    /// How many blocks to ask for at once. A file is read row by row; a server sends all rows of an
    /// answer, and a visitor mostly ends after the first ones.
    fn page(&self) -> i64 {
        if self.0.is_server() { 16 } else { i64::MAX }
    }
}

/// The blocks from the one that has a word on.
const FROM_BLOCK_OF: &str = "SELECT first, words, postings FROM word_block
    WHERE segment = ?1 AND first >= coalesce((SELECT first FROM word_block
        WHERE segment = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1), x'')
    ORDER BY first LIMIT ?3";
/// The blocks after the one with this first word.
const AFTER_BLOCK: &str = "SELECT first, words, postings FROM word_block
    WHERE segment = ?1 AND first > ?2 ORDER BY first LIMIT ?3";

impl BlockStore for SqliteBlockStore<'_> {
    type Error = StoreError;

    fn segments(&self) -> Result<Vec<SegmentHead>, StoreError> {
        let mut statement =
            self.0.prepare_cached("SELECT row, documents FROM segment ORDER BY row DESC")?;
        let rows = statement.query_map([], |row| {
            Ok(SegmentHead { id: row.get(0)?, documents: row.get::<_, i64>(1)? as u64 })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn block_with(&self, segment: i64, word: &[u8]) -> Result<Option<SegmentBlock>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT first, last, words, postings FROM word_block
             WHERE segment = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1",
        )?;
        Ok(statement.query_row((segment, word), block).optional()?)
    }

    fn blocks(
        &self,
        segment: i64,
        from: &[u8],
        visit: &mut dyn FnMut(BlockRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let page = self.page();
        let (mut sql, mut from) = (FROM_BLOCK_OF, from.to_vec());
        loop {
            let mut statement = self.0.prepare_cached(sql)?;
            let mut rows = statement.query((segment, &from, page))?;
            let (mut count, mut last) = (0, Vec::new());
            while let Some(row) = rows.next()? {
                let block = BlockRef {
                    first: row.get_ref(0)?.as_blob()?,
                    words: row.get_ref(1)?.as_blob()?,
                    postings: row.get_ref(2)?.as_blob()?,
                };
                count += 1;
                if count == page {
                    last = block.first.to_vec();
                }
                if visit(block).is_break() {
                    return Ok(());
                }
            }
            if count < page {
                return Ok(());
            }
            (sql, from) = (AFTER_BLOCK, last);
        }
    }

    fn slice(
        &self,
        segment: i64,
        bitmap: usize,
        slice: usize,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT bits FROM word_runs WHERE segment = ?1 AND sheet = ?2 AND slice = ?3",
        )?;
        let found = statement.query_row((segment, bitmap as i64, slice as i64), |row| row.get(0));
        Ok(found.optional()?)
    }

    fn words(
        &self,
        segment: i64,
        blocks: Range<usize>,
        visit: &mut dyn FnMut(WordsRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT first, words FROM word_block
             WHERE segment = ?1 AND number >= ?2 AND number < ?3 ORDER BY number",
        )?;
        let number = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
        let (mut start, end) = (number(blocks.start), number(blocks.end));
        while start < end {
            let next = end.min(start.saturating_add(self.page()));
            let mut rows = statement.query((segment, start, next))?;
            let mut is_empty = true;
            while let Some(row) = rows.next()? {
                is_empty = false;
                let block = WordsRef {
                    first: row.get_ref(0)?.as_blob()?,
                    words: row.get_ref(1)?.as_blob()?,
                };
                if visit(block).is_break() {
                    return Ok(());
                }
            }
            // The numbers of a segment have no gaps.
            if is_empty {
                break;
            }
            start = next;
        }
        Ok(())
    }

    fn postings(&self, segment: i64, first: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self
            .0
            .prepare_cached("SELECT postings FROM word_block WHERE segment = ?1 AND first = ?2")?;
        Ok(statement.query_row((segment, first), |row| row.get(0)).optional()?)
    }
}
