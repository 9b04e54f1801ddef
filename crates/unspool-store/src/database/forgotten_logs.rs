//! Forgets where logs are (R-001-30). The stored data is complete without them.

use super::erase::erasing;
use crate::rows::{RowId, forgotten_path, is_forgotten, received_from};
use crate::sql::{Connection, params};
use crate::store::StoreError;

/// Replaces paths, and removes the digests of the content and what decoders remember. The stamps of
/// the file system stay: a file that does not change is not read again.
pub fn forget(connection: &mut Connection, before: i64) -> Result<u64, StoreError> {
    erasing(connection, |transaction| {
        let mut files = transaction.prepare("SELECT row, path FROM file WHERE modified < ?1")?;
        let files = files
            .query_map([before], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<Vec<(RowId, String)>, _>>()?;
        let mut replace = transaction.prepare(
            "UPDATE file SET path = ?2, head = 0, tail = 0, saved = NULL WHERE row = ?1",
        )?;
        // A forgotten file that grew was read again under its path.
        let mut earlier = transaction.prepare("DELETE FROM file WHERE path = ?1")?;
        let mut count = 0;
        // What another machine sent is here and nowhere else, and is asked for by its name.
        let is_here = |path: &str| !is_forgotten(path) && received_from(path).is_none();
        for (row, path) in files.into_iter().filter(|(_, path)| is_here(path)) {
            let forgotten = forgotten_path(&path);
            earlier.execute([&forgotten])?;
            replace.execute(params![row, forgotten])?;
            count += 1;
        }
        Ok(count)
    })
}
