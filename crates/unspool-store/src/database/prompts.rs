//! What model calls were sent: the log of prompts of a session, and contents that are kept once by
//! their digest.

use crate::sql;
use std::sync::Arc;

use crate::sql::{Connection, OptionalExtension, Transaction, params};
use rustc_hash::FxHashSet;
use unspool_model::id::{PartId, StepId};
use unspool_model::part::Part;
use unspool_model::prompt::PromptRecord;
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::load::{Loader, id, usage};
use crate::pack::PackError;
use crate::rows::{RowId, SessionWrite, Snapshot};
use crate::store::{StepRequest, StoreError};

/// A short content would grow.
const MIN_COMPRESSED: usize = 128;

/// The first bytes of a zstd frame. No JSON text begins with them.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Most of a session's contents are some kilobytes of prose.
const COMPRESSION_LEVEL: i32 = 3;

/// Writes the snapshots and prompts of a batch.
pub(super) fn write(transaction: &Transaction<'_>, session: &SessionWrite) -> sql::Result<()> {
    let mut snapshot = transaction.prepare_cached(
        "INSERT INTO snapshot (sha256, kind, content) VALUES (?1, ?2, ?3)
         ON CONFLICT DO NOTHING",
    )?;
    let mut taken = transaction.prepare_cached(
        "INSERT INTO session_snapshot (session, sha256) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    for new in &session.snapshots {
        snapshot.run(params![new.sha256, new.kind, compress(&new.content)])?;
        taken.run(params![session.row, new.sha256])?;
    }
    if !session.prompts.is_empty() {
        let mut lines = Vec::new();
        for record in &session.prompts {
            if serde_json::to_writer(&mut lines, record).is_ok() {
                lines.push(b'\n');
            }
        }
        let data = zstd::bulk::compress(&lines, COMPRESSION_LEVEL).unwrap_or(lines);
        transaction
            .prepare_cached("INSERT INTO prompt_log (session, data) VALUES (?1, ?2)")?
            .run(params![session.row, data])?;
    }
    Ok(())
}

/// The sessions that have a log of prompts.
pub(super) fn sessions(connection: &Connection) -> Result<FxHashSet<RowId>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT DISTINCT session FROM prompt_log")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What the sources say about prompts of a session, in their order.
pub(super) fn records(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<PromptRecord>, StoreError> {
    // An archive of an earlier build that is only read is not migrated.
    if !connection.has_table("prompt_log")? {
        return Ok(Vec::new());
    }
    let mut statement =
        connection.prepare_cached("SELECT data FROM prompt_log WHERE session = ?1 ORDER BY row")?;
    let mut rows = statement.query([session])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let lines = decompress(row.get_ref(0)?.as_blob()?)?;
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            records.push(serde_json::from_slice(line).map_err(PackError::from)?);
        }
    }
    Ok(records)
}

/// The model calls of a session with the requests that they answer.
pub(super) fn step_requests(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<StepRequest>, StoreError> {
    #[derive(serde::Deserialize)]
    struct Origin {
        name: Name,
        #[serde(default)]
        request: Option<Arc<str>>,
    }
    let mut statement = connection.prepare_cached(
        "SELECT turn.number, step.number, model, step.input, step.output, step.cache_read,
             step.cache_write, step.reasoning, step.cache_write_1h, origin, step.id
         FROM turn JOIN step ON step.turn = turn.row
         WHERE turn.session = ?1 ORDER BY turn.number, step.number",
    )?;
    let mut rows = statement.query([session])?;
    let mut steps: Vec<StepRequest> = Vec::new();
    let mut with_reply = None;
    while let Some(row) = rows.next()? {
        let origin: Origin =
            serde_json::from_str(row.get_ref(9)?.as_str()?).map_err(PackError::from)?;
        let turn = row.get(0)?;
        let before = steps.last().filter(|before| before.turn == turn);
        let step: String = row.get(10)?;
        let usage = usage(&row, 3)?;
        let has_reply = usage != Usage::default() || {
            // Most steps have tokens, so most sessions do without this.
            let found = match with_reply.take() {
                Some(found) => found,
                None => steps_with_reply(connection, session)?,
            };
            with_reply.insert(found).contains(&step)
        };
        steps.push(StepRequest {
            turn,
            step: before.map_or(1, |before| before.step + 1),
            id: StepId(id(&step)?),
            name: origin.name,
            model: row.get(2)?,
            usage,
            request: origin.request,
            has_reply,
        });
    }
    Ok(steps)
}

/// The steps of a session in which the model said or called something.
fn steps_with_reply(
    connection: &Connection,
    session: RowId,
) -> Result<FxHashSet<String>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT part.step FROM turn JOIN part ON part.turn = turn.row
         WHERE turn.session = ?1 AND part.step IS NOT NULL AND role = 'assistant'
             AND kind IN ('text', 'reasoning', 'tool', 'agent')",
    )?;
    Ok(statement.query_map([session], |row| row.get(0))?.collect::<sql::Result<_>>()?)
}

pub(super) fn parts_by_id(
    connection: &Connection,
    session: RowId,
    ids: &[PartId],
) -> Result<Vec<Part>, StoreError> {
    let wanted: FxHashSet<String> = ids.iter().map(PartId::to_string).collect();
    // No index has ids of parts: it would be the largest one, and this is the only use of it.
    let mut statement = connection.prepare_cached(
        "SELECT part.row, part.id FROM turn JOIN part ON part.turn = turn.row
         WHERE turn.session = ?1 ORDER BY turn.number, part.place",
    )?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if wanted.contains(row.get_ref(1)?.as_str()?) {
            found.push(row.get(0)?);
        }
    }
    let mut loader = Loader::new(connection);
    let mut parts = Vec::with_capacity(found.len());
    for row in found {
        parts.extend(loader.part_if_readable(row)?.map(|loaded| loaded.part));
    }
    Ok(parts)
}

/// The contents that a session refers to by these digests. Those that are not stored are left out.
pub(super) fn snapshots(
    connection: &Connection,
    session: RowId,
    digests: &[String],
) -> Result<Vec<Snapshot>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, snapshot.sha256, content FROM session_snapshot
         JOIN snapshot ON snapshot.sha256 = session_snapshot.sha256
         WHERE session = ?1 AND session_snapshot.sha256 = ?2",
    )?;
    let mut found = Vec::new();
    for digest in digests {
        found.extend(statement.query_row(params![session, digest], row).optional()?);
    }
    found.into_iter().map(|stored: StoredSnapshot| stored.read()).collect()
}

/// All contents that a session refers to.
pub(super) fn all_snapshots(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<Snapshot>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT kind, snapshot.sha256, content FROM session_snapshot
         JOIN snapshot ON snapshot.sha256 = session_snapshot.sha256 WHERE session = ?1
         ORDER BY snapshot.sha256",
    )?;
    let rows = statement.query_map([session], row)?;
    rows.map(|stored| stored?.read()).collect()
}

struct StoredSnapshot {
    kind: String,
    sha256: String,
    content: Vec<u8>,
}

fn row(row: &sql::Row<'_>) -> sql::Result<StoredSnapshot> {
    // Earlier builds stored the text.
    let content = row.get_ref(2)?.as_bytes()?.to_vec();
    Ok(StoredSnapshot { kind: row.get(0)?, sha256: row.get(1)?, content })
}

impl StoredSnapshot {
    fn read(self) -> Result<Snapshot, StoreError> {
        let bytes = decompress(&self.content)?;
        let content = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Snapshot { kind: self.kind, sha256: self.sha256, content })
    }
}

fn compress(content: &str) -> Vec<u8> {
    let bytes = content.as_bytes();
    if bytes.len() < MIN_COMPRESSED {
        return bytes.to_vec();
    }
    zstd::bulk::compress(bytes, COMPRESSION_LEVEL).unwrap_or_else(|_| bytes.to_vec())
}

fn decompress(stored: &[u8]) -> Result<Vec<u8>, StoreError> {
    if !stored.starts_with(&ZSTD_MAGIC) {
        return Ok(stored.to_vec());
    }
    Ok(zstd::stream::decode_all(stored).map_err(PackError::Frame)?)
}
