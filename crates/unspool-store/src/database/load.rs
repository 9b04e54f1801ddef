//! Loads turns and parts from their rows and unpacks their payloads.

use crate::sql;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::sql::{Connection, OptionalExtension, Row as SqlRow, params};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use unspool_model::id::{Id, PartId, StepId};
use unspool_model::part::{Body, Part, Place};
use unspool_model::provenance::{Name, Positions};
use unspool_model::session::{Provenance, Step, Turn, Usage};

use crate::pack::{self, Extent, PartKey};
use crate::rows::RowId;
use crate::store::{StoreError, StoreErrorKind, StoredTurn};

/// How many decompressed chunks to cache. The parts of a turn mostly lie in one or two.
const MAX_CACHED_CHUNKS: usize = 4;

/// Loads parts and caches the last decompressed chunks.
pub struct Loader<'c> {
    pub connection: &'c Connection,
    chunks: FxHashMap<RowId, Arc<Vec<u8>>>,
    order: Vec<RowId>,
}

/// A part with its row number.
pub struct LoadedPart {
    pub row: RowId,
    pub user: bool,
    pub open: bool,
    pub part: Part,
    /// The location of its result, if that was left out.
    left_out: Option<(Arc<Vec<u8>>, Range<usize>)>,
}

const PART: &str = "SELECT part.row, place, id, role, step, text, chunk, at, size, content,
    payload FROM part LEFT JOIN journal ON journal.part = part.row";

/// The row of a part, its payload not decoded yet.
pub struct RawPart {
    row: RowId,
    place: i64,
    id: String,
    user: bool,
    step: Option<String>,
    text: Option<String>,
    chunk: Option<RowId>,
    at: Option<i64>,
    size: Option<i64>,
    content: Option<RowId>,
    payload: Option<Vec<u8>>,
}

impl LoadedPart {
    /// The result, if it was left out.
    pub fn left_out(&self) -> Option<Cow<'_, str>> {
        let (chunk, range) = self.left_out.as_ref()?;
        pack::left_out(chunk.get(range.clone())?)
    }
}

fn raw(row: &SqlRow<'_>) -> sql::Result<RawPart> {
    Ok(RawPart {
        row: row.get(0)?,
        place: row.get(1)?,
        id: row.get(2)?,
        user: row.get_ref(3)?.as_str()? == "user",
        step: row.get(4)?,
        text: row.get(5)?,
        chunk: row.get(6)?,
        at: row.get(7)?,
        size: row.get(8)?,
        content: row.get(9)?,
        payload: row.get(10)?,
    })
}

impl<'c> Loader<'c> {
    pub fn new(connection: &'c Connection) -> Loader<'c> {
        Loader { connection, chunks: FxHashMap::default(), order: Vec::new() }
    }

    /// One part, by its row.
    pub fn part(&mut self, row: RowId) -> Result<Option<LoadedPart>, StoreError> {
        self.row(row)?.map(|raw| self.open(raw, Extent::Whole)).transpose()
    }

    /// One part, or None if it is missing or damaged: one bad part must not block access to all
    /// others. `check` reports it.
    pub fn part_if_readable(&mut self, row: RowId) -> Result<Option<LoadedPart>, StoreError> {
        self.part_if_readable_with(row, Extent::Whole)
    }

    /// The same, with an extent.
    pub fn part_if_readable_with(
        &mut self,
        row: RowId,
        extent: Extent,
    ) -> Result<Option<LoadedPart>, StoreError> {
        match self.row(row)? {
            Some(raw) => self.open_if_readable(raw, extent),
            None => Ok(None),
        }
    }

    fn row(&self, row: RowId) -> Result<Option<RawPart>, StoreError> {
        let sql = format!("{PART} WHERE part.row = ?1");
        Ok(self.connection.prepare_cached(&sql)?.query_row([row], raw).optional()?)
    }

    /// The rows of many parts in one query. Rows that are missing are left out.
    pub fn rows(&self, rows: &[RowId]) -> Result<FxHashMap<RowId, RawPart>, StoreError> {
        let sql = format!(
            "{PART} WHERE part.row IN (SELECT value FROM {})",
            self.connection.row_list("?1")
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_map([json_list(rows.iter().copied())], raw)?;
        found.map(|raw| raw.map(|raw| (raw.row, raw)).map_err(StoreError::from)).collect()
    }

    /// Decodes a part, or gives None if it is damaged.
    pub fn open_if_readable(
        &mut self,
        raw: RawPart,
        extent: Extent,
    ) -> Result<Option<LoadedPart>, StoreError> {
        let opened = self.open(raw, extent);
        if is_damaged(&opened) { Ok(None) } else { opened.map(Some) }
    }

    /// The parts of a turn in order, the user's message first.
    pub fn parts(&mut self, turn: RowId) -> Result<Vec<LoadedPart>, StoreError> {
        let sql = format!("{PART} WHERE turn = ?1 ORDER BY place");
        let raws: Vec<RawPart> = self
            .connection
            .prepare_cached(&sql)?
            .query_map([turn], raw)?
            .collect::<Result<_, _>>()?;
        raws.into_iter().map(|raw| self.open(raw, Extent::Whole)).collect()
    }

    /// The user's message of a turn.
    pub fn user(&mut self, turn: RowId) -> Result<Vec<Body>, StoreError> {
        let sql = format!("{PART} WHERE turn = ?1 AND place < 0 ORDER BY place");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let raws: Vec<RawPart> = statement.query_map([turn], raw)?.collect::<Result<_, _>>()?;
        let bodies = raws.into_iter().map(|raw| Ok(self.open(raw, Extent::Whole)?.part.body));
        bodies.collect()
    }

    fn open(&mut self, raw: RawPart, extent: Extent) -> Result<LoadedPart, StoreError> {
        let columns = PartKey {
            id: PartId(id(&raw.id)?),
            place: Place(raw.place),
            step: raw.step.as_deref().map(id).transpose()?.map(StepId),
        };
        let large = match raw.content {
            Some(row) => Some(self.content(row)?),
            None => None,
        };
        let left_out = large.clone().filter(|_| extent == Extent::WithoutResult);
        let large = large
            .as_ref()
            .map(|(chunk, range)| chunk.get(range.clone()).ok_or(pack::PackError::Truncated));
        let large = large.transpose()?;
        let open = raw.payload.is_some();
        let part = match (raw.payload, raw.chunk, raw.at, raw.size) {
            (Some(payload), _, _, _) => pack::unpack(columns, &payload, raw.text, large, extent)?,
            (None, Some(chunk), Some(at), Some(size)) => {
                let chunk = self.chunk(chunk)?;
                let (at, size) = (at as usize, size as usize);
                let rest = at.checked_add(size).and_then(|end| chunk.get(at..end));
                let rest = rest.ok_or(pack::PackError::Truncated)?;
                pack::unpack(columns, rest, raw.text, large, extent)?
            }
            (None, _, _, _) => return Err(pack::PackError::Truncated.into()),
        };
        Ok(LoadedPart { row: raw.row, user: raw.user, open, part, left_out })
    }

    /// The chunk and range of a large payload.
    pub fn content(&mut self, row: RowId) -> Result<(Arc<Vec<u8>>, Range<usize>), StoreError> {
        let (chunk, at, size): (RowId, usize, usize) = self
            .connection
            .prepare_cached("SELECT chunk, at, size FROM content WHERE row = ?1")?
            .query_row([row], |row| {
                let number = |at: usize| row.get::<_, i64>(at).map(|number| number as usize);
                Ok((row.get(0)?, number(1)?, number(2)?))
            })
            .optional()?
            .ok_or(pack::PackError::Truncated)?;
        Ok((self.chunk(chunk)?, at..at.saturating_add(size)))
    }

    fn chunk(&mut self, row: RowId) -> Result<Arc<Vec<u8>>, StoreError> {
        if let Some(chunk) = self.chunks.get(&row) {
            return Ok(chunk.clone());
        }
        let mut find = self.connection.prepare_cached("SELECT data FROM chunk WHERE row = ?1")?;
        let mut rows = find.query([row])?;
        let Some(found) = rows.next()? else { return Err(pack::PackError::Truncated.into()) };
        let chunk = Arc::new(pack::decompress(found.get_ref(0)?.as_blob()?)?);
        if self.order.len() >= MAX_CACHED_CHUNKS {
            self.chunks.remove(&self.order.remove(0));
        }
        self.order.push(row);
        self.chunks.insert(row, chunk.clone());
        Ok(chunk)
    }

    /// A turn with its steps and all parts.
    pub fn turn(&mut self, row: RowId, head: &str) -> Result<StoredTurn, StoreError> {
        let mut turn: Turn = serde_json::from_str(head).map_err(pack::PackError::from)?;
        turn.steps = self.steps(row)?;
        let mut stored =
            StoredTurn { row, turn, parts: Vec::new(), user: Vec::new(), open: Vec::new() };
        for loaded in self.parts(row)? {
            if loaded.open {
                stored.open.push(loaded.row);
            }
            if loaded.user {
                stored.user.push(loaded.row);
                stored.turn.user.push(loaded.part.body);
            } else {
                stored.parts.push(loaded.row);
                stored.turn.parts.push(loaded.part);
            }
        }
        Ok(stored)
    }

    /// The steps of a turn, or none if they are damaged.
    pub fn steps_if_readable(&self, turn: RowId) -> Result<Vec<Step>, StoreError> {
        let found = self.steps(turn);
        if is_damaged(&found) { Ok(Vec::new()) } else { found }
    }

    pub fn steps(&self, turn: RowId) -> Result<Vec<Step>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, model, input, output, cache_read, cache_write, reasoning, cache_write_1h,
                 stop_reason, origin FROM step WHERE turn = ?1 ORDER BY number",
        )?;
        let mut rows = statement.query(params![turn])?;
        let mut steps: Vec<Step> = Vec::new();
        while let Some(row) = rows.next()? {
            let origin: StepOrigin =
                serde_json::from_str(row.get_ref(9)?.as_str()?).map_err(pack::PackError::from)?;
            let model: Option<Arc<str>> = row.get(1)?;
            // Consecutive steps share one allocation of the model's name.
            let last = steps.last().and_then(|step| step.model.clone());
            let model = if last == model { last } else { model };
            steps.push(Step {
                id: StepId(id(row.get_ref(0)?.as_str()?)?),
                name: origin.name,
                at: origin.at,
                model,
                usage: origin.usage.map_or_else(|| usage(&row, 2), Ok)?,
                stop_reason: row.get(8)?,
                request: origin.request,
                provenance: origin.provenance,
            });
        }
        Ok(steps)
    }
}

#[derive(Deserialize)]
struct StepOrigin {
    name: Name,
    at: Positions,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    request: Option<Arc<str>>,
    #[serde(default)]
    provenance: Option<Provenance>,
}

/// Row numbers as a JSON array, for `json_each`.
pub fn json_list(rows: impl Iterator<Item = RowId>) -> String {
    let rows: Vec<String> = rows.map(|row| row.to_string()).collect();
    format!("[{}]", rows.join(","))
}

/// True if what was to be read is stored, and cannot be decoded.
fn is_damaged<T>(read: &Result<T, StoreError>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Payload)
}

/// Reads six consecutive columns of token counts.
pub fn usage(row: &SqlRow<'_>, from: usize) -> sql::Result<Usage> {
    let count = |at: usize| row.get::<_, i64>(from + at).map(|count| count.max(0) as u64);
    Ok(Usage {
        input: count(0)?,
        output: count(1)?,
        cache_read: count(2)?,
        cache_write: count(3)?,
        reasoning: count(4)?,
        cache_write_1h: count(5)?,
    })
}

pub fn id(text: &str) -> Result<Id, StoreError> {
    text.parse().map_err(|_| pack::PackError::Truncated.into())
}
