//! Contents that parts share, and the contents and chunks that no part uses any more.

use rusqlite::{CachedStatement, OptionalExtension, Transaction, params};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::rows::{Content, RowId};

/// Contents and chunks that lost a part in this transaction and may be unused now.
#[derive(Default)]
pub(in crate::sqlite) struct OrphanCandidates {
    pub contents: FxHashSet<RowId>,
    pub chunks: FxHashSet<RowId>,
}

impl OrphanCandidates {
    /// Notes the payload location of a part that will be replaced or deleted.
    pub(super) fn note(
        &mut self,
        statement: &mut CachedStatement<'_>,
        part: RowId,
    ) -> rusqlite::Result<()> {
        let mut rows = statement.query([part])?;
        if let Some(row) = rows.next()? {
            self.contents.extend(row.get::<_, Option<RowId>>(0)?);
            self.chunks.extend(row.get::<_, Option<RowId>>(1)?);
        }
        Ok(())
    }

    /// Deletes those that no part uses. Returns the chunks that lost a payload.
    pub fn drop_unused(
        mut self,
        transaction: &Transaction<'_>,
    ) -> rusqlite::Result<FxHashSet<RowId>> {
        let mut content = transaction.prepare_cached(
            "DELETE FROM content WHERE row = ?1
                 AND NOT EXISTS (SELECT 1 FROM part WHERE content = ?1) RETURNING chunk",
        )?;
        for row in &self.contents {
            let chunk: Option<RowId> = content.query_row([row], |row| row.get(0)).optional()?;
            self.chunks.extend(chunk);
        }
        let mut chunk = transaction.prepare_cached(
            "DELETE FROM chunk WHERE row = ?1
                 AND NOT EXISTS (SELECT 1 FROM content WHERE chunk = ?1)
                 AND NOT EXISTS (SELECT 1 FROM part WHERE chunk = ?1)",
        )?;
        for row in &self.chunks {
            chunk.execute([row])?;
        }
        Ok(self.chunks)
    }
}

pub(super) const PAYLOAD_LOCATION: &str = "SELECT content, chunk FROM part WHERE row = ?1";

/// Stores new contents. Returns the row of each content, and the chunks that hold a new one.
pub(super) fn contents(
    transaction: &Transaction<'_>,
    contents: &[Content],
    chunks: &[RowId],
) -> rusqlite::Result<(FxHashMap<u128, RowId>, FxHashSet<usize>)> {
    let mut rows = FxHashMap::default();
    let mut filled = FxHashSet::default();
    let mut find = transaction.prepare_cached("SELECT row FROM content WHERE digest = ?1")?;
    let mut add = transaction
        .prepare_cached("INSERT INTO content (digest, chunk, at, size) VALUES (?1, ?2, ?3, ?4)")?;
    for content in contents {
        let digest = content.digest.to_be_bytes();
        let existing: Option<RowId> = find.query_row([&digest[..]], |row| row.get(0)).optional()?;
        let row = match existing {
            Some(row) => row,
            None => {
                filled.insert(content.chunk);
                add.insert(params![
                    &digest[..],
                    chunks.get(content.chunk),
                    content.at as i64,
                    content.size as i64,
                ])?
            }
        };
        rows.insert(content.digest, row);
    }
    Ok((rows, filled))
}
