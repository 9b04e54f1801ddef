//! SQL for both databases: a connection, its statements and their rows. The queries of the archive
//! are written once, against these types; they behave the same on SQLite and on PostgreSQL. What
//! the two call differently is translated in `postgres::dialect`.

mod error;
mod params;

use std::ops::Deref;

use rusqlite::types::FromSql;

use crate::postgres::connection::{self as postgres, PostgresConnection};

pub use self::error::{Error, OptionalExtension, Result};
pub use self::params::{Params, params_from_iter};
pub use rusqlite::params;
pub use rusqlite::types::{FromSqlError, ToSql, Value, ValueRef};

/// One connection to an archive.
pub enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<PostgresConnection>),
}

impl Connection {
    pub fn is_server(&self) -> bool {
        matches!(self, Connection::Postgres(_))
    }

    /// The connection if it is one to SQLite: for what only a file has.
    pub fn as_sqlite(&self) -> Option<&rusqlite::Connection> {
        match self {
            Connection::Sqlite(connection) => Some(connection),
            Connection::Postgres(_) => None,
        }
    }

    pub fn as_postgres(&self) -> Option<&PostgresConnection> {
        match self {
            Connection::Sqlite(_) => None,
            Connection::Postgres(connection) => Some(connection),
        }
    }

    /// True if the archive has this table. An archive that is only read is not migrated.
    pub fn has_table(&self, name: &str) -> Result<bool> {
        match self {
            Connection::Sqlite(_) => {
                self.prepare_cached("SELECT 1 FROM sqlite_master WHERE name = ?1")?.exists([name])
            }
            // An archive on a server always has the newest schema.
            Connection::Postgres(_) => Ok(true),
        }
    }

    /// Row numbers, given as a JSON array in a placeholder, as a table with the column `value`.
    pub fn row_list(&self, placeholder: &str) -> String {
        match self {
            Connection::Sqlite(_) => format!("json_each({placeholder})"),
            Connection::Postgres(_) => format!("row_list({placeholder})"),
        }
    }

    /// Begins a transaction. It is rolled back when dropped, unless it was committed.
    pub fn transaction(&mut self) -> Result<Transaction<'_>> {
        match &*self {
            Connection::Sqlite(connection) => connection.execute_batch("BEGIN DEFERRED")?,
            Connection::Postgres(connection) => connection.begin()?,
        }
        Ok(Transaction { connection: self, is_open: true })
    }

    /// A statement that is kept prepared.
    pub fn prepare_cached(&self, sql: &str) -> Result<Statement<'_>> {
        Ok(Statement(match self {
            Connection::Sqlite(connection) => Prepared::Cached(connection.prepare_cached(sql)?),
            Connection::Postgres(connection) => Prepared::Postgres(connection.prepare(sql)?),
        }))
    }

    /// A statement that runs once.
    pub fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        Ok(Statement(match self {
            Connection::Sqlite(connection) => Prepared::Once(connection.prepare(sql)?),
            Connection::Postgres(connection) => Prepared::Postgres(connection.prepare(sql)?),
        }))
    }

    pub fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.prepare(sql)?.execute(params)
    }

    pub fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare(sql)?.query_row(params, read)
    }
}

/// A transaction on a connection.
pub struct Transaction<'c> {
    connection: &'c Connection,
    is_open: bool,
}

impl Transaction<'_> {
    pub fn commit(mut self) -> Result<()> {
        match self.connection {
            Connection::Sqlite(connection) => connection.execute_batch("COMMIT")?,
            Connection::Postgres(connection) => connection.commit()?,
        }
        self.is_open = false;
        Ok(())
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        match self.connection {
            // SQLite may have rolled back by itself already.
            Connection::Sqlite(connection) if connection.is_autocommit() => {}
            Connection::Sqlite(connection) => {
                let _ = connection.execute_batch("ROLLBACK");
            }
            Connection::Postgres(connection) => connection.rollback(),
        }
    }
}

/// A prepared statement.
pub struct Statement<'c>(Prepared<'c>);

enum Prepared<'c> {
    Cached(rusqlite::CachedStatement<'c>),
    Once(rusqlite::Statement<'c>),
    Postgres(postgres::PostgresStatement<'c>),
}

impl Statement<'_> {
    /// Runs the statement and returns the number of rows that it changed.
    pub fn execute(&mut self, params: impl Params) -> Result<usize> {
        params.with(|values| match &mut self.0 {
            Prepared::Cached(statement) => Ok(statement.execute(values)?),
            Prepared::Once(statement) => Ok(statement.execute(values)?),
            Prepared::Postgres(statement) => statement.execute(values),
        })
    }

    /// Runs the statement for its effect. PostgreSQL may run it later, with its error: at the next
    /// query or at the end of the transaction. So a batch does not wait once for each row.
    pub fn run(&mut self, params: impl Params) -> Result<()> {
        params.with(|values| match &mut self.0 {
            Prepared::Cached(statement) => Ok(statement.execute(values).map(drop)?),
            Prepared::Once(statement) => Ok(statement.execute(values).map(drop)?),
            Prepared::Postgres(statement) => statement.run(values),
        })
    }

    pub fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        params.with(|values| match &mut self.0 {
            Prepared::Cached(statement) => Ok(Rows(Found::Sqlite(statement.query(values)?))),
            Prepared::Once(statement) => Ok(Rows(Found::Sqlite(statement.query(values)?))),
            Prepared::Postgres(statement) => Ok(Rows(Found::Postgres {
                rows: statement.query(values)?.into_iter(),
                current: None,
            })),
        })
    }

    /// The first row.
    pub fn query_row<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut rows = self.query(params)?;
        match rows.next()? {
            Some(row) => read(&row),
            None => Err(Error::NoRows),
        }
    }

    /// True if there is a row.
    pub fn exists(&mut self, params: impl Params) -> Result<bool> {
        Ok(self.query(params)?.next()?.is_some())
    }

    /// The rows, each read by a function.
    pub fn query_map<'s, T, F>(&'s mut self, params: impl Params, read: F) -> Result<Mapped<'s, F>>
    where
        F: FnMut(&Row<'_>) -> Result<T>,
    {
        Ok(Mapped { rows: self.query(params)?, read })
    }
}

/// The rows of a query.
pub struct Rows<'s>(Found<'s>);

enum Found<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Postgres { rows: std::vec::IntoIter<postgres::Row>, current: Option<postgres::Row> },
}

impl Rows<'_> {
    #[allow(clippy::should_implement_trait)] // The row borrows from `self`.
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        match &mut self.0 {
            Found::Sqlite(rows) => Ok(rows.next()?.map(Row::Sqlite)),
            Found::Postgres { rows, current } => {
                *current = rows.next();
                Ok(current.as_ref().map(Row::Postgres))
            }
        }
    }
}

pub struct Mapped<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for Mapped<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match self.rows.next() {
            Ok(Some(row)) => Some((self.read)(&row)),
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// One row. Columns are numbered from 0.
#[derive(Clone, Copy)]
pub enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r postgres::Row),
}

impl<'r> Row<'r> {
    pub fn get<I: Column, T: FromSql>(&self, at: I) -> Result<T> {
        let at = at.number();
        match self {
            Row::Sqlite(row) => Ok(row.get(at)?),
            Row::Postgres(row) => Ok(T::column_result(row.value(at)?)?),
        }
    }

    /// A value that is borrowed from the row.
    pub fn get_ref(&self, at: usize) -> Result<ValueRef<'r>> {
        match self {
            Row::Sqlite(row) => Ok(row.get_ref(at)?),
            Row::Postgres(row) => row.value(at),
        }
    }
}

/// The number of a column.
pub trait Column {
    fn number(self) -> usize;
}

impl Column for usize {
    fn number(self) -> usize {
        self
    }
}
