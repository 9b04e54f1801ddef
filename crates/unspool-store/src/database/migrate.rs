//! Schema migrations: numbered, forward only, one transaction each. A database of a newer version
//! or of another program is refused.

use std::path::Path;

use rusqlite::Connection;

use crate::store::{StoreError, StoreErrorKind};

/// Migration n takes the schema from version n to n + 1. Never change a released one.
const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("hour_cache.sql"),
    include_str!("last_heard.sql"),
    include_str!("running_turns.sql"),
    include_str!("part_kinds.sql"),
    include_str!("counted_calls.sql"),
    include_str!("note.sql"),
    include_str!("prompt.sql"),
    include_str!("shown_turns.sql"),
    include_str!("unique_places.sql"),
    include_str!("edited_file.sql"),
    include_str!("received.sql"),
];

/// "Unsp": the SQLite application id, which `file` also shows.
const APPLICATION_ID: i32 = 0x556e_7370;

pub const SCHEMA_VERSION: usize = MIGRATIONS.len();

/// Migrates the database to the current schema version.
pub fn migrate(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let mut version = check_version(connection, path)?;
    while let Some(migration) = MIGRATIONS.get(version) {
        version += 1;
        let script = format!(
            "BEGIN IMMEDIATE;\n{migration}\nPRAGMA application_id = {APPLICATION_ID};\n\
             PRAGMA user_version = {version};\nCOMMIT;"
        );
        connection.execute_batch(&script).map_err(|error| {
            let _ = connection.execute_batch("ROLLBACK");
            StoreError::from(error).at(path)
        })?;
    }
    Ok(())
}

/// The schema version of the database. Fails if it belongs to another program or is newer.
pub fn check_version(connection: &Connection, path: &Path) -> Result<usize, StoreError> {
    let at = |error: rusqlite::Error| StoreError::from(error).at(path);
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = number("user_version").map_err(at)?;
    let application = number("application_id").map_err(at)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))
        .map_err(at)?;
    let ours = application == i64::from(APPLICATION_ID);
    if !ours && (tables > 0 || application != 0 || version != 0) {
        return Err(StoreError::new(StoreErrorKind::Foreign).at(path));
    }
    let version = usize::try_from(version).unwrap_or_default();
    if version > SCHEMA_VERSION {
        let kind = StoreErrorKind::Newer { version, supported: SCHEMA_VERSION };
        return Err(StoreError::new(kind).at(path));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::{APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION, check_version, migrate};

    /// Migrating from any earlier version gives the same tables as a fresh database.
    #[test]
    fn every_version_becomes_the_newest() {
        let columns = |connection: &Connection| -> Vec<(String, String)> {
            let sql = "SELECT kind.name, field.name FROM sqlite_master AS kind, \
                       pragma_table_info(kind.name) AS field ORDER BY 1, 2";
            let mut statement = connection.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.collect::<Result<_, _>>().unwrap()
        };
        let path = Path::new("here");
        let fresh = Connection::open_in_memory().unwrap();
        migrate(&fresh, path).unwrap();
        for version in 1..=SCHEMA_VERSION {
            let old = Connection::open_in_memory().unwrap();
            for migration in &MIGRATIONS[..version] {
                old.execute_batch(migration).unwrap();
            }
            old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
            old.pragma_update(None, "user_version", version as i64).unwrap();
            migrate(&old, path).unwrap();
            assert_eq!(check_version(&old, path).unwrap(), SCHEMA_VERSION);
            assert_eq!(columns(&old), columns(&fresh), "from version {version}");
        }
    }

    /// R-001-07: an archive whose rows clash can still be opened, and every row stays.
    #[test]
    fn rows_that_share_a_place_are_separated() {
        let old = Connection::open_in_memory().unwrap();
        let unique = MIGRATIONS.iter().position(|sql| sql.contains("UNIQUE INDEX part_turn"));
        for migration in &MIGRATIONS[..unique.unwrap()] {
            old.execute_batch(migration).unwrap();
        }
        old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        old.pragma_update(None, "user_version", unique.unwrap() as i64).unwrap();
        old.execute_batch(
            "INSERT INTO session (row, id, agent, agent_session_id, state, completeness, head)
                 VALUES (1, 's', 'a', 's', 'idle', 'full', '{}');
             INSERT INTO turn (row, session, id, number, trigger, thinking_mode, state, abandoned,
                     inherited, settled, head, names)
                 SELECT value, 1, 't' || value, min(value, 2), 'user', 0, 'completed', 0, 0, 1,
                     '{}', '' FROM json_each('[1, 2, 3, 4]');
             INSERT INTO part (row, turn, place, id, role, kind)
                 SELECT value, 1, min(value, 2) * 10, 'p' || value, 'assistant', 'text'
                 FROM json_each('[1, 2, 3, 4]');",
        )
        .unwrap();
        migrate(&old, Path::new("here")).unwrap();
        let list = |sql: &str| -> Vec<i64> {
            let mut statement = old.prepare(sql).unwrap();
            let rows = statement.query_map([], |row| row.get(0)).unwrap();
            rows.collect::<Result<_, _>>().unwrap()
        };
        assert_eq!(list("SELECT number FROM turn ORDER BY row"), [1, 2, 3, 4]);
        assert_eq!(list("SELECT place FROM part ORDER BY row"), [10, 20, 21, 22]);
    }
}
