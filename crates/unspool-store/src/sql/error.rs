//! Errors of either database.

use std::fmt;

use rusqlite::ErrorCode;
use rusqlite::types::FromSqlError;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug)]
pub enum Error {
    Sqlite(rusqlite::Error),
    Postgres(tokio_postgres::Error),
    /// A value has another type than the reader expects.
    Value(FromSqlError),
    /// A query for one row found none.
    NoRows,
    /// A part that was written refers to a row that is not there.
    NoOwner,
    /// Another process has written to the archive since this one last did.
    Overtaken,
    /// The thread that drives the connections has ended.
    Closed,
}

impl Error {
    /// True if a row clashes with another one.
    pub fn is_clash(&self) -> bool {
        match self {
            Error::Sqlite(error) => {
                error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
            }
            // PostgreSQL checks at the end of the transaction, and then it is a mistake.
            Error::Postgres(_) | Error::Value(_) | Error::NoRows => false,
            Error::NoOwner | Error::Overtaken | Error::Closed => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sqlite(error) => error.fmt(f),
            // Its own text is only "db error"; what the server said is the cause.
            Error::Postgres(error) => match error.as_db_error() {
                Some(said) => write!(f, "{} ({})", said.message(), said.code().code()),
                None => {
                    write!(f, "{error}")?;
                    let mut cause = std::error::Error::source(error);
                    while let Some(inner) = cause {
                        write!(f, ": {inner}")?;
                        cause = inner.source();
                    }
                    Ok(())
                }
            },
            Error::Value(error) => error.fmt(f),
            Error::NoRows => write!(f, "the query returned no rows"),
            Error::NoOwner => write!(f, "a part refers to a row that is missing"),
            Error::Overtaken => write!(f, "another process wrote meanwhile"),
            Error::Closed => write!(f, "the connection was closed"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        if matches!(error, rusqlite::Error::QueryReturnedNoRows) {
            Error::NoRows
        } else {
            Error::Sqlite(error)
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Error {
        Error::Postgres(error)
    }
}

impl From<FromSqlError> for Error {
    fn from(error: FromSqlError) -> Error {
        Error::Value(error)
    }
}

/// A missing row as `None`.
pub trait OptionalExtension<T> {
    fn optional(self) -> Result<Option<T>>;
}

impl<T> OptionalExtension<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoRows) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
