//! The files that calls changed: a table derived from the parts, to find the edits of a file in a
//! large archive. Parts that were stored before the table existed are read until a rebuild.

use crate::sql;
use crate::sql::Value;
use crate::sql::{Connection, OptionalExtension, Transaction, params_from_iter};
use unspool_model::id::SessionId;
use unspool_model::part::{Part, Place};
use unspool_model::tools::Family;

use super::load::{Loader, id};
use crate::rows::{RowId, edited_paths};
use crate::store::{EditedFile, EditedFiles, StoreError};

const SETTING: &str = "edited_files_after";

/// The paths that a part changed, in order and without repetition.
pub(super) fn paths_of(part: &Part) -> Vec<String> {
    edited_paths(&part.body)
}

/// The last component of a path, with the separators of any system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Writes the paths of a part; `stored`: it may have other ones.
pub(super) fn write(
    connection: &Connection,
    part: RowId,
    paths: &[String],
    stored: bool,
) -> sql::Result<()> {
    if stored {
        connection.prepare_cached("DELETE FROM edited_file WHERE part = ?1")?.run([part])?;
    }
    for path in paths {
        connection
            .prepare_cached(
                "INSERT INTO edited_file (part, path, name) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO NOTHING",
            )?
            .run((part, path, file_name(path)))?;
    }
    Ok(())
}

/// After all parts were derived again.
pub(super) fn all_derived(transaction: &Transaction<'_>) -> sql::Result<()> {
    transaction.execute("DELETE FROM setting WHERE name = ?1", [SETTING]).map(|_| ())
}

/// Whether the table exists, and the last row that it may lack. An archive that is only read is not
/// migrated.
pub(super) fn coverage(connection: &Connection) -> sql::Result<Option<RowId>> {
    if !connection.has_table("edited_file")? {
        return Ok(None);
    }
    let after = "SELECT CAST(value AS INTEGER) FROM setting WHERE name = ?1";
    let after = connection.prepare_cached(after)?.query_row([SETTING], |row| row.get(0));
    Ok(Some(after.optional()?.unwrap_or(0)))
}

/// True if the rows of a part match its payload.
pub(super) fn matches(
    connection: &Connection,
    covered_after: Option<RowId>,
    row: RowId,
    part: &Part,
) -> sql::Result<bool> {
    if covered_after.is_none_or(|after| row <= after) {
        return Ok(true);
    }
    let mut found = paths_of(part);
    found.sort_unstable();
    let sql = "SELECT path, name FROM edited_file WHERE part = ?1 ORDER BY path";
    let mut statement = connection.prepare_cached(sql)?;
    let stored = statement.query_map([row], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let stored: Vec<(String, String)> = stored.collect::<Result<_, _>>()?;
    Ok(stored.iter().map(|(path, _)| path).eq(found.iter())
        && stored.iter().all(|(path, name)| file_name(path) == name))
}

/// The calls that changed files. Turns that were copied from another session are left out: their
/// edits are found there.
pub(super) fn edited_files(
    connection: &Connection,
    wanted: &EditedFiles,
) -> Result<Vec<EditedFile>, StoreError> {
    let mut found = Vec::new();
    let covered = coverage(connection)?;
    let (condition, values) = condition(wanted);
    if covered.is_some() {
        let sql = format!(
            "SELECT part.row, session.row, session.id, session.project, turn.number, part.place,
                 edited_file.path
             FROM edited_file JOIN part ON part.row = edited_file.part
             JOIN turn ON turn.row = part.turn JOIN session ON session.row = turn.session
             WHERE {condition} AND NOT turn.inherited AND NOT part.hidden"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values.clone()))?;
        while let Some(row) = rows.next()? {
            let path = row.get(6)?;
            found.push(edited_file(&row, path)?);
        }
    }
    if covered != Some(0) {
        add_underived(connection, wanted, covered.unwrap_or(RowId::MAX), &mut found)?;
    }
    Ok(found)
}

fn condition(wanted: &EditedFiles) -> (String, Vec<Value>) {
    let list = |count: usize| vec!["?"; count].join(", ");
    match wanted {
        EditedFiles::Named(names) => (
            format!("edited_file.name IN ({})", list(names.len())),
            names.iter().map(|name| Value::from(name.clone())).collect(),
        ),
        EditedFiles::OfSessions(sessions) => (
            format!("session.row IN ({})", list(sessions.len())),
            sessions.iter().map(|session| Value::from(*session)).collect(),
        ),
    }
}

fn edited_file(row: &sql::Row<'_>, path: String) -> Result<EditedFile, StoreError> {
    Ok(EditedFile {
        row: row.get(1)?,
        session: SessionId(id(row.get_ref(2)?.as_str()?)?),
        project: row.get(3)?,
        turn: row.get(4)?,
        place: Place(row.get(5)?),
        path,
    })
}

/// Reads the calls up to this row, which the table does not have.
fn add_underived(
    connection: &Connection,
    wanted: &EditedFiles,
    last: RowId,
    found: &mut Vec<EditedFile>,
) -> Result<(), StoreError> {
    let (of_sessions, values) = match wanted {
        EditedFiles::OfSessions(_) => {
            let (condition, values) = condition(wanted);
            (format!("AND {condition}"), values)
        }
        EditedFiles::Named(_) => (String::new(), Vec::new()),
    };
    let sql = format!(
        "SELECT part.row, session.row, session.id, session.project, turn.number, part.place,
             part.tool, part.kind
         FROM part JOIN turn ON turn.row = part.turn JOIN session ON session.row = turn.session
         WHERE part.row <= {last} AND (part.tool IS NOT NULL OR part.kind = 'patch')
             AND NOT turn.inherited AND NOT part.hidden {of_sessions} ORDER BY part.row"
    );
    let mut loader = Loader::new(connection);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let tool: Option<String> = row.get(6)?;
        let may_edit = |tool: String| {
            Family::of(&tool).is_some_and(|it| it.is_edit() || it == Family::RunShell)
        };
        if !tool.is_none_or(may_edit) {
            continue;
        }
        let Some(loaded) = loader.part_if_readable(row.get(0)?)? else { continue };
        for path in paths_of(&loaded.part) {
            let is_wanted = match wanted {
                EditedFiles::Named(names) => names.iter().any(|name| name == file_name(&path)),
                EditedFiles::OfSessions(_) => true,
            };
            if is_wanted {
                found.push(edited_file(&row, path)?);
            }
        }
    }
    Ok(())
}
