//! Contents that parts share, and the contents and chunks that no part uses any more.

use crate::sql;
use crate::sql::{OptionalExtension, Statement, Transaction, params};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::rows::{Batch, Content, RowId};

/// Contents and chunks that lost a part in this transaction and may be unused now.
#[derive(Default)]
pub(in crate::database) struct OrphanCandidates {
    pub contents: FxHashSet<RowId>,
    pub chunks: FxHashSet<RowId>,
}

impl OrphanCandidates {
    /// Notes the payload location of a part that will be replaced or deleted.
    pub(super) fn note(&mut self, statement: &mut Statement<'_>, part: RowId) -> sql::Result<()> {
        let mut rows = statement.query([part])?;
        if let Some(row) = rows.next()? {
            self.contents.extend(row.get::<_, Option<RowId>>(0)?);
            self.chunks.extend(row.get::<_, Option<RowId>>(1)?);
        }
        Ok(())
    }

    /// Deletes those that no part uses. Returns the chunks that lost a payload.
    pub fn drop_unused(mut self, transaction: &Transaction<'_>) -> sql::Result<FxHashSet<RowId>> {
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
            chunk.run([*row])?;
        }
        Ok(self.chunks)
    }
}

pub(super) const PAYLOAD_LOCATION: &str = "SELECT content, chunk FROM part WHERE row = ?1";

/// Stores new contents. Returns the row of each content of the batch, and the chunks that hold a new
/// one.
pub(super) fn contents(
    transaction: &Transaction<'_>,
    batch: &Batch,
    chunks: &[RowId],
) -> sql::Result<(FxHashMap<u128, RowId>, FxHashSet<usize>)> {
    if transaction.is_server() {
        return contents_on_server(transaction, batch, chunks);
    }
    let mut rows = FxHashMap::default();
    let mut filled = FxHashSet::default();
    let mut find = transaction.prepare_cached("SELECT row FROM content WHERE digest = ?1")?;
    let mut add = transaction.prepare_cached(
        "INSERT INTO content (digest, chunk, at, size) VALUES (?1, ?2, ?3, ?4) RETURNING row",
    )?;
    for content in &batch.contents {
        let digest = content.digest.to_be_bytes();
        let existing: Option<RowId> = find.query_row([&digest[..]], |row| row.get(0)).optional()?;
        let row = match existing {
            Some(row) => row,
            None => {
                filled.insert(content.chunk);
                let values = params![
                    &digest[..],
                    chunks.get(content.chunk),
                    content.at as i64,
                    content.size as i64,
                ];
                add.query_row(values, |row| row.get(0))?
            }
        };
        rows.insert(content.digest, row);
    }
    Ok((rows, filled))
}

/// The same with three round trips for all contents, and those that earlier batches stored.
fn contents_on_server(
    transaction: &Transaction<'_>,
    batch: &Batch,
    chunks: &[RowId],
) -> sql::Result<(FxHashMap<u128, RowId>, FxHashSet<usize>)> {
    let mut rows = FxHashMap::default();
    let mut filled = FxHashSet::default();
    let parts = batch.sessions.iter().flat_map(|session| &session.parts);
    let wanted = batch.contents.iter().map(|content| content.digest);
    let wanted: FxHashSet<u128> = wanted.chain(parts.filter_map(|part| part.content)).collect();
    if wanted.is_empty() {
        return Ok((rows, filled));
    }
    let wanted: Vec<String> = wanted.iter().map(|digest| format!("\"{digest:032x}\"")).collect();
    let mut find = transaction.prepare_cached(
        "SELECT digest, row FROM content
         WHERE digest IN (SELECT decode(value, 'hex') FROM json_each(?1))",
    )?;
    let mut found = find.query([format!("[{}]", wanted.join(","))])?;
    while let Some(row) = found.next()? {
        if let Ok(digest) = row.get_ref(0)?.as_blob()?.try_into() {
            rows.insert(u128::from_be_bytes(digest), row.get(1)?);
        }
    }
    drop(found);
    let new: Vec<&Content> =
        batch.contents.iter().filter(|content| !rows.contains_key(&content.digest)).collect();
    let mut numbers = transaction.prepare_cached(
        "SELECT nextval(pg_get_serial_sequence('content', 'row')) FROM generate_series(1, ?1)",
    )?;
    let numbers: Vec<RowId> =
        numbers.query_map([new.len() as i64], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut add = transaction.prepare_cached(
        "INSERT INTO content (row, digest, chunk, at, size) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (content, row) in new.into_iter().zip(numbers) {
        // A batch may have one digest twice.
        if rows.contains_key(&content.digest) {
            continue;
        }
        filled.insert(content.chunk);
        rows.insert(content.digest, row);
        add.run(params![
            row,
            &content.digest.to_be_bytes()[..],
            chunks.get(content.chunk),
            content.at as i64,
            content.size as i64,
        ])?;
    }
    Ok((rows, filled))
}
