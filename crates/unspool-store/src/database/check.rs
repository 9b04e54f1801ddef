//! Verifies an archive: the SQLite file, foreign keys, every payload, all derived columns and sums,
//! and the search index. Reports problems and changes nothing.

mod references;

use crate::sql::Connection;
use rusqlite::ErrorCode;
use rustc_hash::FxHashSet;
use unspool_index::{BitmapRebuilder, NgramBitmap, SegmentItem, merge};
use unspool_model::part::{Kind, Part};
use unspool_model::provenance::Name;
use unspool_model::session::{Session, Turn};
use xxhash_rust::xxh3::xxh3_128;

use self::references::references;
use super::block_store::Blocks;
use super::derived_columns::{
    SESSION, STEP_SUMS, TURN, TURN_SUMS, first_prompt, models_of, part_columns, part_sums,
    part_values, prompt_and_models, session_values, stored_names, turn_values,
};
use super::edited_files;
use super::error::sqlite_error;
use super::load::Loader;
use crate::rows::sub_agents;
use crate::rows::{RowId, is_settled};
use crate::searchable::texts;
use crate::store::{CheckReport, StoreError, StoreErrorKind};

/// Problems beyond this number are counted but not listed.
const MAX_PROBLEMS: usize = 100;

pub fn check(connection: &Connection) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    if !connection.is_server() {
        integrity(connection, &mut report)?;
    }
    for step in [references, sessions, turns, parts, bitmaps, contents, sums] {
        match step(connection, &mut report) {
            Ok(()) => {}
            // Damage is what this function reports: continue with the other checks.
            Err(error) => match sqlite_error(&error).filter(|error| is_damage(error)) {
                Some(damage) => {
                    report.problem(format!("a table cannot be read to its end: {damage}"));
                }
                None => return Err(error),
            },
        }
    }
    Ok(report)
}

/// The structure of the file. A server checks its own.
fn integrity(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let mut integrity = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = integrity.query([])?;
    while let Some(row) = rows.next()? {
        let found: String = row.get(0)?;
        if found != "ok" {
            report.problem(found);
        }
    }
    Ok(())
}

/// True if the error means a damaged file, not a disk error or a lock of another program.
fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, None | Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown))
}

fn sessions(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let mut statement = connection.prepare("SELECT row, id, head FROM session")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        report.sessions += 1;
        let (number, id): (RowId, String) = (row.get(0)?, row.get(1)?);
        let Ok(session) = serde_json::from_str::<Session>(row.get_ref(2)?.as_str()?) else {
            report.problem(format!("the metadata of session {id} cannot be read"));
            continue;
        };
        let title = (first_prompt(connection, number)?, models_of(connection, number)?);
        if SESSION.stored(connection, number)? != session_values(&session)
            || prompt_and_models(connection, number)? != title
        {
            report.problem(format!("the columns of session {id} differ from its metadata"));
        }
    }
    Ok(())
}

fn turns(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let loader = Loader::new(connection);
    let mut statement = connection.prepare("SELECT row, id, head FROM turn")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        report.turns += 1;
        let (number, id): (RowId, String) = (row.get(0)?, row.get(1)?);
        let Ok(turn) = serde_json::from_str::<Turn>(row.get_ref(2)?.as_str()?) else {
            report.problem(format!("the metadata of turn {id} cannot be read"));
            continue;
        };
        if TURN.stored(connection, number)? != turn_values(&turn) {
            report.problem(format!("the columns of turn {id} differ from its metadata"));
        }
        match loader.steps(number) {
            Ok(steps) => {
                let names: FxHashSet<u64> = stored_names(connection, number)?.into_iter().collect();
                let mut found = steps.iter().filter(|step| !step.name.is_local());
                if found.any(|step| !has_name(&names, &step.name)) {
                    report.problem(format!("turn {id} lacks the name of one of its steps"));
                }
            }
            Err(error) => report.problem(format!("a step of turn {id} cannot be read: {error}")),
        }
    }
    let mut doubled = connection.prepare(
        "SELECT min(session.id) FROM turn JOIN session ON session.row = turn.session
         GROUP BY turn.session, turn.number HAVING count(*) > 1",
    )?;
    for id in doubled.query_map([], |row| row.get::<_, String>(0))? {
        report.problem(format!("two turns of session {} have the same number", id?));
    }
    Ok(())
}

/// Reads every payload and compares the derived columns, names and index entries (R-001-09).
fn parts(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let indexed = match IndexedParts::of(connection) {
        Err(error) if error.kind() == StoreErrorKind::Index => {
            let corrupt = error.cause().map(ToString::to_string).unwrap_or_default();
            report.problem(format!("the search index cannot be read: {corrupt}"));
            IndexedParts::default()
        }
        indexed => indexed?,
    };
    let columns = part_columns(connection)?;
    let covered = edited_files::coverage(connection)?;
    let mut loader = Loader::new(connection);
    let mut statement = connection.prepare(
        "SELECT part.row, part.id, part.turn, part.place, session.agent
         FROM part JOIN turn ON turn.row = part.turn JOIN session ON session.row = turn.session
         ORDER BY part.turn, part.place",
    )?;
    let mut rows = statement.query([])?;
    let mut names: FxHashSet<u64> = FxHashSet::default();
    let mut last: Option<(RowId, i64)> = None;
    while let Some(row) = rows.next()? {
        let (number, id): (RowId, String) = (row.get(0)?, row.get(1)?);
        let (turn, place): (RowId, i64) = (row.get(2)?, row.get(3)?);
        report.parts += 1;
        if last == Some((turn, place)) {
            report.problem(format!("part {id} has the place of another part"));
        }
        if last.is_none_or(|(last, _)| last != turn) {
            names = stored_names(connection, turn)?.into_iter().collect();
        }
        last = Some((turn, place));
        let part = match loader.part(number) {
            Ok(Some(loaded)) => loaded.part,
            Ok(None) => continue,
            Err(error) => {
                report.problem(format!("part {id} cannot be read: {error}"));
                continue;
            }
        };
        let mut values = part_values(&part);
        values.truncate(columns.names.len());
        if columns.stored(connection, number)? != values
            || !agents_match(connection, number, &part, row.get_ref(4)?.as_str()?)?
            || !edited_files::matches(connection, covered, number, &part)?
        {
            report.problem(format!("the columns of part {id} differ from its payload"));
        }
        if part.origin.names.iter().any(|name| !name.is_local() && !has_name(&names, name)) {
            report.problem(format!("the turn of part {id} lacks one of its names"));
        }
        if !part.origin.is_hidden() && !indexed.has(number, &part) {
            report.problem(format!("the words of part {id} are not in the index"));
        }
    }
    Ok(())
}

/// True if the `agent` rows of a part match its payload.
/// True if one of the stored digests of a turn leads to it by this name.
fn has_name(digests: &FxHashSet<u64>, name: &Name) -> bool {
    digests.contains(&name.digest()) || digests.contains(&name.shared_digest())
}

fn agents_match(
    connection: &Connection,
    row: RowId,
    part: &Part,
    agent: &str,
) -> Result<bool, StoreError> {
    if part.body.kind() != Kind::Agent {
        return Ok(true);
    }
    let mut found = sub_agents(agent, &part.body);
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.dedup_by(|one, other| one.0 == other.0);
    let mut statement = connection.prepare_cached(
        "SELECT agent_id, call_id, session FROM agent WHERE part = ?1 ORDER BY agent_id",
    )?;
    let stored: Vec<(String, String, String)> = statement
        .query_map([row], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let found = found.into_iter().map(|(id, call, session)| (id, call, session.to_string()));
    Ok(found.eq(stored))
}

/// A bit set of the parts in the index, by row number.
#[derive(Default)]
struct IndexedParts {
    bits: Vec<u64>,
}

impl IndexedParts {
    fn of(connection: &Connection) -> Result<IndexedParts, StoreError> {
        let newest: Option<RowId> =
            connection.query_row("SELECT max(row) FROM part", [], |row| row.get(0))?;
        let pages = newest.and_then(|row| usize::try_from(row / 64 + 1).ok());
        let mut indexed = IndexedParts { bits: vec![0; pages.unwrap_or_default()] };
        let mut waiting = connection.prepare("SELECT part FROM unindexed")?;
        for part in waiting.query_map([], |row| row.get::<_, RowId>(0))? {
            indexed.add(part? as u64);
        }
        let segments: Vec<RowId> = connection
            .prepare("SELECT row FROM segment")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        // A merge that keeps nothing visits each document once.
        let sources = segments.into_iter().map(|segment| Blocks::new(connection, segment));
        let mut pass = |document: u64| {
            indexed.add(document);
            false
        };
        merge(sources, &mut pass, &mut |_: SegmentItem| Ok::<(), StoreError>(()))?;
        Ok(indexed)
    }

    fn place(document: u64) -> (usize, u64) {
        (usize::try_from(document / 64).unwrap_or(usize::MAX), 1 << (document % 64))
    }

    fn add(&mut self, document: u64) {
        let (page, bit) = IndexedParts::place(document);
        // A deleted part may still be in a segment.
        if let Some(bits) = self.bits.get_mut(page) {
            *bits |= bit;
        }
    }

    /// True if a part is indexed or has no words to index.
    fn has(&self, row: RowId, part: &Part) -> bool {
        let (page, bit) = IndexedParts::place(row as u64);
        let is_indexed = self.bits.get(page).is_some_and(|bits| bits & bit != 0);
        let has_words = |text: &str| text.chars().any(char::is_alphanumeric);
        is_indexed || (is_settled(part) && !texts(&part.body).iter().any(|text| has_words(text)))
    }
}

/// Compares the stored n-gram bitmaps with the words of their blocks. A missing bit would hide
/// matches from fragment searches.
fn bitmaps(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let segments: Vec<RowId> = connection
        .prepare("SELECT row FROM segment")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for segment in segments {
        match bitmaps_match(connection, segment) {
            Ok(true) => {}
            Ok(false) => {
                report.problem(format!("the n-gram bitmaps of segment {segment} are wrong"));
            }
            // `parts` has reported the corrupt index.
            Err(error) if error.kind() == StoreErrorKind::Index => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn bitmaps_match(connection: &Connection, segment: RowId) -> Result<bool, StoreError> {
    let mut stored = connection
        .prepare_cached("SELECT bits FROM word_runs WHERE segment = ?1 ORDER BY sheet, slice")?;
    let mut stored = stored.query([segment])?;
    let mut is_stored = |bitmap: NgramBitmap| -> Result<bool, StoreError> {
        for slice in bitmap.slices {
            match stored.next()? {
                Some(row) if row.get_ref(0)?.as_blob()? == slice => {}
                Some(_) | None => return Ok(false),
            }
        }
        Ok(true)
    };
    let mut words = connection
        .prepare_cached("SELECT words FROM word_block WHERE segment = ?1 ORDER BY number")?;
    let mut rows = words.query([segment])?;
    let mut made = BitmapRebuilder::default();
    while let Some(row) = rows.next()? {
        if let Some(bitmap) = made.add(row.get_ref(0)?.as_blob()?)?
            && !is_stored(bitmap)?
        {
            return Ok(false);
        }
    }
    let last = made.finish().map_or(Ok(true), is_stored)?;
    let numbered: bool = connection.query_row(
        "SELECT coalesce(max(sheet) = count(DISTINCT sheet) - 1, true)
             AND NOT EXISTS (SELECT 1 FROM word_runs WHERE segment = ?1
                 GROUP BY sheet HAVING max(slice) <> count(*) - 1)
         FROM word_runs WHERE segment = ?1",
        [segment],
        |row| row.get(0),
    )?;
    Ok(last && numbered && stored.next()?.is_none())
}

/// Compares every large payload with its digest.
fn contents(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let mut loader = Loader::new(connection);
    let mut statement = connection.prepare("SELECT row, digest FROM content ORDER BY chunk")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // `parts` reports contents that cannot be read at all.
        let Ok((chunk, range)) = loader.content(row.get(0)?) else { continue };
        let Some(content) = chunk.get(range) else { continue };
        if row.get_ref(1)?.as_blob()? != xxh3_128(content).to_be_bytes() {
            let number: RowId = row.get(0)?;
            report.problem(format!("content {number} does not match its digest"));
        }
    }
    Ok(())
}

/// Compares every sum with its rows.
fn sums(connection: &Connection, report: &mut CheckReport) -> Result<(), StoreError> {
    let (of_part, part_sums) = part_sums(&part_columns(connection)?);
    let (part_sums, turn_sums) = ((of_part, part_sums.as_str()), (TURN_SUMS.0, &*TURN_SUMS.1));
    for (table, (sums, of)) in [("turn", part_sums), ("turn", STEP_SUMS), ("session", turn_sums)] {
        let sql = match connection.is_server() {
            false => format!("SELECT id FROM {table} WHERE {sums} IS NOT {of}"),
            // There a query in parentheses is no row, so rows are compared as texts.
            true => {
                let names = sums.trim_matches(['(', ')']).split(',').map(str::trim);
                let names: Vec<String> = names.map(|name| format!("{table}.{name}")).collect();
                format!(
                    "SELECT {table}.id FROM {table} JOIN LATERAL {of} AS summed ON true
                     WHERE ROW ({})::text IS DISTINCT FROM summed::text",
                    names.join(", ")
                )
            }
        };
        let mut wrong = connection.prepare(&sql)?;
        for id in wrong.query_map([], |row| row.get::<_, String>(0))? {
            report.problem(format!("the totals of {table} {} are wrong", id?));
        }
    }
    let mut doubled = connection
        .prepare("SELECT id FROM part GROUP BY turn, id HAVING count(*) > 1 LIMIT 100")?;
    for id in doubled.query_map([], |row| row.get::<_, String>(0))? {
        report.problem(format!("part {} is stored twice", id?));
    }
    Ok(())
}

impl CheckReport {
    fn problem(&mut self, what: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(what);
        }
        self.count += 1;
    }
}
