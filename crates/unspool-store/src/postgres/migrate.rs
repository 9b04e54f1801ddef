//! The schema of an archive on a server: numbered migrations, forward only, in one transaction. A
//! schema of a newer version or of another program is refused.

use super::connection::PostgresConnection;
use crate::sql::{Result, params};

/// Migration n takes the schema from version n to n + 1. Never change a released one.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql"), include_str!("received.sql")];

pub const SCHEMA_VERSION: usize = MIGRATIONS.len();

/// What is in the schema `unspool` of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// There is no such schema.
    Empty,
    /// An archive of this version.
    Version(usize),
    /// Tables of another program.
    Foreign,
}

pub fn state(connection: &PostgresConnection) -> Result<State> {
    let count = |sql: &str| -> Result<i64> {
        let rows = connection.prepare(sql)?.query(&[])?;
        match rows.first() {
            Some(row) => Ok(row.value(0)?.as_i64()?),
            None => Ok(0),
        }
    };
    if count("SELECT count(*) FROM pg_namespace WHERE nspname = 'unspool'")? == 0 {
        return Ok(State::Empty);
    }
    let ours =
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'unspool' AND tablename = 'archive'";
    if count(ours)? == 0 {
        let tables = count("SELECT count(*) FROM pg_tables WHERE schemaname = 'unspool'")?;
        return Ok(if tables == 0 { State::Empty } else { State::Foreign });
    }
    let version = count("SELECT coalesce(max(version), 0) FROM unspool.archive")?;
    Ok(State::Version(usize::try_from(version).unwrap_or_default()))
}

/// Brings the schema to the current version. Returns the version that it had.
pub fn migrate(connection: &PostgresConnection) -> Result<State> {
    // Two programs may begin at the same time: the lock is held to the end of the transaction.
    const BEGIN: &str = "BEGIN; SELECT pg_advisory_xact_lock(6012997911884391792);
        CREATE SCHEMA IF NOT EXISTS unspool;
        CREATE TABLE IF NOT EXISTS unspool.archive (
            version BIGINT NOT NULL,
            -- Changes with every write.
            nonce   BIGINT NOT NULL
        )";
    let before = state(connection)?;
    if before == State::Foreign || before == State::Version(SCHEMA_VERSION) {
        return Ok(before);
    }
    let run = || -> Result<()> {
        connection.batch(BEGIN)?;
        // Another program may have done it meanwhile.
        let done = match state(connection)? {
            State::Version(version) => version,
            State::Empty | State::Foreign => 0,
        };
        for migration in MIGRATIONS.iter().skip(done) {
            connection.batch(migration)?;
        }
        connection.batch("DELETE FROM unspool.archive")?;
        connection
            .prepare("INSERT INTO archive (version, nonce) VALUES (?1, 0)")?
            .execute(params![SCHEMA_VERSION as i64])?;
        connection.batch("COMMIT")
    };
    let outcome = run();
    if outcome.is_err() {
        let _ = connection.batch("ROLLBACK");
    }
    outcome.map(|()| before)
}
