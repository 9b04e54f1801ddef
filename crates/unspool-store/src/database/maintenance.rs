//! Index maintenance: puts unindexed parts into a segment, merges segments, and rebuilds the index
//! from the stored parts.

use crate::sql;
use crate::sql::{Connection, Transaction};
use unspool_index::{SegmentBuilder, SegmentItem, merge, plan_merge};

use super::block_store::{Blocks, SegmentWriter, add_segment};
use super::erase;
use super::load::Loader;
use crate::rows::{RowId, is_settled};
use crate::searchable::{SearchField, fields};
use crate::store::{Maintenance, StoreError};

/// Unindexed parts become a segment at this number. A search scans them one by one.
const MAX_UNINDEXED_PARTS: i64 = 256;

/// Segments are merged above this number. A large import makes many of one size, and merging those
/// at once would slow it down; a lookup visits this many in a few milliseconds.
const MAX_SEGMENTS: usize = 24;

/// Indexes unindexed parts and merges segments, as far as due.
pub fn maintain(connection: &mut Connection, how: Maintenance) -> Result<(), StoreError> {
    let pending: i64 =
        connection.query_row("SELECT count(*) FROM unindexed", [], |row| row.get(0))?;
    if pending >= MAX_UNINDEXED_PARTS || (how == Maintenance::Full && pending > 0) {
        index_pending(connection)?;
    }
    let mut merged = false;
    let mut stale = how == Maintenance::Full && erase::has_deleted_words(connection)?;
    loop {
        let segments = segments(connection)?;
        let sizes: Vec<u64> = segments.iter().map(|(_, tokens)| *tokens).collect();
        let chosen = match how {
            Maintenance::Full if segments.len() > 1 || stale && !segments.is_empty() => {
                Some((0..segments.len()).collect())
            }
            Maintenance::Full => None,
            Maintenance::IfDue => plan_merge(&sizes).filter(|_| segments.len() > MAX_SEGMENTS),
        };
        let Some(chosen) = chosen else { break };
        merged = true;
        let rows: Vec<RowId> =
            chosen.into_iter().filter_map(|at| segments.get(at)).map(|(row, _)| *row).collect();
        merge_segments(connection, &rows)?;
        stale = false;
    }
    if how == Maintenance::Full {
        erase::clear_deleted_words(connection)?;
    }
    if merged {
        erase::release_free_pages(connection)?;
    }
    Ok(())
}

/// The segments of one merge that other writes wait for.
const MAX_MERGED_AT_ONCE: usize = 16;

/// Indexes unindexed parts or merges some segments, if that is due.
pub fn maintain_a_little(connection: &mut Connection) -> Result<bool, StoreError> {
    let pending: i64 =
        connection.query_row("SELECT count(*) FROM unindexed", [], |row| row.get(0))?;
    if pending >= MAX_UNINDEXED_PARTS {
        index_pending(connection)?;
    }
    let segments = segments(connection)?;
    let sizes: Vec<u64> = segments.iter().map(|(_, tokens)| *tokens).collect();
    let Some(chosen) = plan_merge(&sizes).filter(|_| segments.len() > MAX_SEGMENTS) else {
        return Ok(false);
    };
    let rows = chosen.into_iter().take(MAX_MERGED_AT_ONCE).filter_map(|at| segments.get(at));
    merge_segments(connection, &rows.map(|(row, _)| *row).collect::<Vec<RowId>>())?;
    erase::release_free_pages(connection)?;
    Ok(true)
}

fn segments(connection: &Connection) -> sql::Result<Vec<(RowId, u64)>> {
    connection
        .prepare_cached("SELECT row, tokens FROM segment ORDER BY row")?
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?
        .collect()
}

/// Puts the settled parts among the unindexed ones into a segment.
fn index_pending(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    let rows: Vec<RowId> = transaction
        .prepare("SELECT part FROM unindexed ORDER BY part")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut words = SegmentBuilder::default();
    let mut loader = Loader::new(&transaction);
    let mut done = transaction.prepare_cached("DELETE FROM unindexed WHERE part = ?1")?;
    for row in rows {
        let Some(loaded) = loader.part_if_readable(row)? else { continue };
        if !is_settled(&loaded.part) {
            continue;
        }
        index_part(&mut words, row, &loaded.part.body);
        done.run([row])?;
    }
    drop(done);
    if words.documents() > 0 {
        add_segment(&transaction, &words.finish())?;
    }
    Ok(transaction.commit()?)
}

fn index_part(words: &mut SegmentBuilder, row: RowId, body: &unspool_model::part::Body) {
    words.begin(row as u64);
    fields(body, &mut |field| match field {
        SearchField::Text(text) => words.text(text),
        SearchField::Json(raw) => words.json(raw),
    });
    words.end();
}

/// Merges segments into one. Drops the postings of deleted parts.
fn merge_segments(connection: &mut Connection, rows: &[RowId]) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    let mut writer = SegmentWriter::begin(&transaction)?;
    let sources = rows.iter().map(|row| Blocks::new(&transaction, *row));
    let mut there = transaction.prepare_cached("SELECT 1 FROM part WHERE row = ?1")?;
    let mut failed = None;
    let mut keep = |document: u64| match there.exists([document as RowId]) {
        Ok(there) => there,
        Err(error) => {
            failed.get_or_insert(error);
            true
        }
    };
    let mut emit = |piece: SegmentItem| -> Result<(), StoreError> { Ok(writer.put(&piece)?) };
    let counts = merge(sources, &mut keep, &mut emit)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    drop(there);
    writer.finish(counts)?;
    remove(&transaction, rows)?;
    Ok(transaction.commit()?)
}

fn remove(transaction: &Transaction<'_>, rows: &[RowId]) -> sql::Result<()> {
    for row in rows {
        transaction.execute("DELETE FROM segment WHERE row = ?1", [row])?;
    }
    Ok(())
}

/// Rebuilds the whole index from the stored parts. Returns the number of parts.
pub fn reindex(connection: &mut Connection) -> Result<u64, StoreError> {
    /// A segment is closed when its builder takes this much memory.
    const SEGMENT_MEMORY_BYTES: usize = 32 * 1024 * 1024;
    let transaction = connection.transaction()?;
    // Clear the tables directly, which also removes rows without a segment.
    for table in ["word_runs", "word_block", "segment", "unindexed"] {
        transaction.execute(&format!("DELETE FROM {table}"), [])?;
    }
    let mut words = SegmentBuilder::default();
    let mut loader = Loader::new(&transaction);
    let mut statement =
        transaction.prepare("SELECT row FROM part WHERE NOT hidden ORDER BY row")?;
    let mut later =
        transaction.prepare("INSERT INTO unindexed (part) VALUES (?1) ON CONFLICT DO NOTHING")?;
    let mut parts = statement.query([])?;
    let mut done = 0;
    while let Some(row) = parts.next()? {
        let row: RowId = row.get(0)?;
        done += 1;
        if let Some(loaded) = loader.part_if_readable(row)? {
            if is_settled(&loaded.part) {
                index_part(&mut words, row, &loaded.part.body);
            } else {
                later.run([row])?;
            }
        }
        if words.memory() > SEGMENT_MEMORY_BYTES {
            add_segment(&transaction, &std::mem::take(&mut words).finish())?;
        }
    }
    if words.documents() > 0 {
        add_segment(&transaction, &words.finish())?;
    }
    drop((parts, later));
    drop(statement);
    transaction.commit()?;
    Ok(done)
}
